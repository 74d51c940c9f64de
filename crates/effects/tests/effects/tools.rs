//! The parsing of a model's tool calls, and the refusals of calls that mean nothing.

use abide_effects::limits;
use abide_effects::tools::{self, Tool, ToolSet};
use abide_kernel::id::{CallId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::todo::Todo;
use abide_kernel::tool::{
    Call, Command, EditFile, ExecCommand, ExecutorCall, FileCall, Grep, HostCall, ReadFile, RecordCall, TaskInput,
    TaskOutput, ToolCall, UseWorkspace, WebFetch, When, WorkItemChange, WorkspacePath,
};
use abide_kernel::vocabulary::{
    ApprovalDefault, CatchUp, ChildWorkspace, DeliveryMode, PlanStatus, SideEffect, TodoState, WaitKind,
    WorkItemFilter, WorkspaceMode,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::calls::parse;

fn refused(tool: &str, input: &Value) -> Refusal {
    match parse(tool, input) {
        ToolCall::Refused(refusal) => refusal,
        other @ (ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::NeedsApproval(_)) => {
            panic!("{tool} {input} is {other:?}")
        }
    }
}

#[test]
fn calls_mean_acts() {
    let todo = |text: &str, state| Todo { text: text.to_owned(), state };
    let wait = |wake, resource: Option<&str>, after_ms, item: Option<&str>, reason: &str| RecordCall::WaitFor {
        wake,
        resource: resource.map(str::to_owned),
        after_ms,
        work_item_id: item.map(WorkItemId::new),
        reason: reason.to_owned(),
    };
    let cron = |zone: &str| When::Cron { cron: "0 7 * * *".to_owned(), time_zone: zone.to_owned() };
    let timer = |when| RecordCall::CreateTimer {
        summary: "s".to_owned(),
        when,
        catch_up: CatchUp::Latest,
        work_item_id: None,
        check: None,
    };
    let trigger = |delivery_mode, work_item_id, signed| RecordCall::CreateTrigger {
        name: "ci".to_owned(),
        delivery_mode,
        work_item_id,
        signed,
        address: None,
    };
    let child = |workspace_mode, item: Option<&str>| RecordCall::SpawnChild {
        message: "m".to_owned(),
        workspace_mode,
        model: item.map(|_| "script/echo".to_owned()),
        instructions: None,
        work_item_id: item.map(WorkItemId::new),
    };
    let update =
        |change| RecordCall::UpdateWorkItem { work_item_id: WorkItemId::new("work_1"), change: Box::new(change) };
    let approval = |deadline_ms, default| RecordCall::RequestApproval {
        summary: "s".to_owned(),
        tool: None,
        deadline_ms,
        default,
    };
    let same = WorkItemChange::default;
    let cases = [
        (
            "WaitFor",
            json!({ "wake": "task_result", "resource": "task_1", "work_item_id": "work_1", "reason": "build" }),
            wait(WaitKind::Task, Some("task_1"), None, Some("work_1"), "build"),
        ),
        (
            "WaitFor",
            json!({ "wake": "operator_input", "reason": "a word" }),
            wait(WaitKind::Operator, None, None, None, "a word"),
        ),
        (
            "WaitFor",
            json!({ "wake": "external", "resource": "pr-7", "after_ms": null, "reason": "review" }),
            wait(WaitKind::External, Some("pr-7"), None, None, "review"),
        ),
        (
            "WaitFor",
            json!({ "wake": "timer", "after_ms": 0, "reason": "a moment" }),
            wait(WaitKind::Timer, None, Some(0), None, "a moment"),
        ),
        (
            "CancelWait",
            json!({ "waiting_intent_id": "wait_1" }),
            RecordCall::CancelWait { waiting_intent_id: WaitId::new("wait_1") },
        ),
        ("Sleep", json!({}), RecordCall::Sleep { reason: None, duration_ms: None }),
        (
            "Sleep",
            json!({ "reason": "night", "duration_ms": 5_000 }),
            RecordCall::Sleep { reason: Some("night".to_owned()), duration_ms: Some(5_000) },
        ),
        ("CreateTimer", json!({ "summary": "s", "after_ms": 7 }), timer(When::AfterMs(7))),
        (
            "CreateTimer",
            json!({ "summary": "s", "at": "2026-01-31T12:00:00Z" }),
            timer(When::At("2026-01-31T12:00:00Z".parse().unwrap())),
        ),
        ("CreateTimer", json!({ "summary": "s", "every_ms": 100 }), timer(When::EveryMs(100))),
        ("CreateTimer", json!({ "summary": "s", "cron": "0 7 * * *" }), timer(cron("UTC"))),
        (
            "CreateTimer",
            json!({ "summary": "s", "cron": "0 7 * * *", "time_zone": "Asia/Tokyo" }),
            timer(cron("Asia/Tokyo")),
        ),
        (
            "CancelTimer",
            json!({ "timer_id": "timer_1" }),
            RecordCall::CancelTimer { timer_id: TimerId::new("timer_1") },
        ),
        ("CreateTrigger", json!({ "name": "ci" }), trigger(DeliveryMode::EnqueueMessage, None, false)),
        (
            "CreateTrigger",
            json!({ "name": "ci", "delivery_mode": "wake_hint", "work_item_id": "work_1", "secret": "12345678" }),
            trigger(DeliveryMode::WakeHint, Some(WorkItemId::new("work_1")), true),
        ),
        (
            "RevokeTrigger",
            json!({ "trigger_id": "trig_1" }),
            RecordCall::RevokeTrigger { trigger_id: TriggerId::new("trig_1") },
        ),
        (
            "CreateWorkItem",
            json!({ "objective": "o" }),
            RecordCall::CreateWorkItem {
                objective: "o".to_owned(),
                plan: None,
                plan_status: None,
                todo: Vec::new(),
                budget: None,
            },
        ),
        (
            "CreateWorkItem",
            json!({ "objective": "o", "plan": "p", "plan_status": "ready",
                "todo": [{ "text": "a", "state": "in_progress" }, { "text": "b" }] }),
            RecordCall::CreateWorkItem {
                objective: "o".to_owned(),
                plan: Some("p".to_owned()),
                plan_status: Some(PlanStatus::Ready),
                todo: vec![todo("a", TodoState::InProgress), todo("b", TodoState::Pending)],
                budget: None,
            },
        ),
        (
            "PickWorkItem",
            json!({ "work_item_id": "work_1" }),
            RecordCall::PickWorkItem { work_item_id: WorkItemId::new("work_1") },
        ),
        ("UpdateWorkItem", json!({ "work_item_id": "work_1" }), update(same())),
        (
            "UpdateWorkItem",
            json!({ "work_item_id": "work_1", "blocked_by": null }),
            update(WorkItemChange { blocked_by: Some(None), ..same() }),
        ),
        (
            "UpdateWorkItem",
            json!({ "work_item_id": "work_1", "objective": "o", "plan": "p", "plan_status": "needs_input",
                "todo": [], "blocked_by": "review", "recheck_after_ms": 9 }),
            update(WorkItemChange {
                objective: Some("o".to_owned()),
                plan: Some("p".to_owned()),
                plan_status: Some(PlanStatus::NeedsInput),
                todo: Some(Vec::new()),
                blocked_by: Some(Some("review".to_owned())),
                recheck_after_ms: Some(9),
                budget: None,
            }),
        ),
        (
            "CompleteWorkItem",
            json!({ "work_item_id": "work_1", "report": "done" }),
            RecordCall::CompleteWorkItem { work_item_id: WorkItemId::new("work_1"), report: "done".to_owned() },
        ),
        (
            "GetWorkItem",
            json!({ "work_item_id": "work_1" }),
            RecordCall::ShowWorkItem { work_item_id: WorkItemId::new("work_1") },
        ),
        ("ListWorkItems", json!({}), RecordCall::ListWorkItems { filter: WorkItemFilter::All }),
        ("ListWorkItems", json!({ "filter": "queued" }), RecordCall::ListWorkItems { filter: WorkItemFilter::Queued }),
        ("SpawnAgent", json!({ "message": "m" }), child(ChildWorkspace::Inherit, None)),
        (
            "SpawnAgent",
            json!({ "message": "m", "workspace_mode": "worktree", "model": "script/echo", "work_item_id": "work_1" }),
            child(ChildWorkspace::Worktree, Some("work_1")),
        ),
        ("TaskList", json!({}), RecordCall::ListTasks),
        ("TaskStatus", json!({ "task_id": "task_1" }), RecordCall::ShowTask { task_id: TaskId::new("task_1") }),
        ("TaskStop", json!({ "task_id": "task_1" }), RecordCall::StopTask { task_id: TaskId::new("task_1") }),
        ("NotifyOperator", json!({ "text": "look" }), RecordCall::NotifyOperator { text: "look".to_owned() }),
        ("RequestApproval", json!({ "summary": "s" }), approval(None, ApprovalDefault::Deny)),
        (
            "RequestApproval",
            json!({ "summary": "s", "deadline_ms": 60_000, "default": "deny" }),
            approval(Some(60_000), ApprovalDefault::Deny),
        ),
    ];
    for (tool, input, act) in &cases {
        assert_eq!(parse(tool, input), ToolCall::Record(act.clone()), "{tool} {input}");
    }
    for tool in tools::ALL.iter().filter(|tool| !OUTSIDE.iter().any(|(name, ..)| *name == tool.name)) {
        assert!(cases.iter().any(|(name, ..)| *name == tool.name), "{} has no case", tool.name);
    }
}

/// Tools that run outside, the least they take, and what they may change there.
const OUTSIDE: &[(&str, &str, SideEffect)] = &[
    ("ExecCommand", r#"{ "cmd": "true" }"#, SideEffect::Unknown),
    ("TaskOutput", r#"{ "task_id": "task_1" }"#, SideEffect::ReadOnly),
    ("TaskInput", r#"{ "task_id": "task_1", "input": "y" }"#, SideEffect::Unknown),
    ("UseWorkspace", r#"{ "path": "a" }"#, SideEffect::WorkspaceMutation),
    ("ReadFile", r#"{ "path": "a" }"#, SideEffect::ReadOnly),
    ("WriteFile", r#"{ "path": "a", "content": "" }"#, SideEffect::WorkspaceMutation),
    ("EditFile", r#"{ "path": "a", "old": "b", "new": "" }"#, SideEffect::WorkspaceMutation),
    ("ApplyPatch", r#"{ "patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" }"#, SideEffect::WorkspaceMutation),
    ("Glob", r#"{ "pattern": "**/*.rs" }"#, SideEffect::ReadOnly),
    ("Grep", r#"{ "pattern": "fn .*main" }"#, SideEffect::ReadOnly),
    ("ReadSkill", r#"{ "skill": "a" }"#, SideEffect::ReadOnly),
    ("AgentGet", r#"{ "agent_id": "scout" }"#, SideEffect::ReadOnly),
    ("AgentGet", "{}", SideEffect::ReadOnly),
    ("SendMessage", r#"{ "agent_id": "scout", "text": "hello" }"#, SideEffect::ExternalMutation),
    ("WebFetch", r#"{ "url": "https://example.com" }"#, SideEffect::ReadOnly),
];

#[test]
fn calls_that_run_outside_say_what_they_may_change() {
    for (tool, input, changes) in OUTSIDE {
        let input: Value = serde_json::from_str(input).unwrap();
        assert_eq!(parse(tool, &input).side_effect(), Some(*changes), "{tool} {input}");
    }
}

#[test]
fn calls_that_run_outside_are_parsed_into_their_fields() {
    let path = |path: &str| WorkspacePath::new(path).unwrap();
    let file = |call: FileCall| ExecutorCall::File(call);
    let task = TaskId::new("task_1");
    let cases = [
        (
            "ExecCommand",
            json!({ "cmd": "make", "workdir": "a", "accepts_input": true, "yield_time_ms": 5, "start_new": true }),
            ExecutorCall::ExecCommand(ExecCommand {
                command: Command {
                    command: "make".to_owned(),
                    workdir: Some("a".to_owned()),
                    tty: false,
                    accepts_input: true,
                },
                yield_time_ms: 5,
                start_new: true,
                max_output_bytes: limits::COMMAND_OUTPUT_BYTES as usize,
            }),
        ),
        (
            "TaskOutput",
            json!({ "task_id": "task_1", "block": false, "offset": 3 }),
            ExecutorCall::TaskOutput(TaskOutput {
                task_id: task.clone(),
                block: false,
                timeout_ms: limits::TASK_WAIT_MS,
                offset: Some(3),
            }),
        ),
        (
            "TaskInput",
            json!({ "task_id": "task_1", "input": "y\n", "close": true }),
            ExecutorCall::TaskInput(TaskInput { task_id: task, input: "y\n".to_owned(), close: true }),
        ),
        (
            "ReadFile",
            json!({ "path": "./a/b", "offset": 0, "limit": 7 }),
            file(FileCall::Read(ReadFile { path: path("a/b"), offset: 1, limit: 7 })),
        ),
        (
            "EditFile",
            json!({ "path": "a", "old": "b", "new": "c", "all": true }),
            file(FileCall::Edit(EditFile { path: path("a"), old: "b".to_owned(), new: "c".to_owned(), all: true })),
        ),
        (
            "Grep",
            json!({ "pattern": "x", "path": "a", "glob": "!*.rs", "context": 2, "limit": 9 }),
            file(FileCall::Grep(Grep {
                pattern: "x".to_owned(),
                path: Some(path("a")),
                glob: Some("!*.rs".to_owned()),
                context: 2,
                limit: 9,
            })),
        ),
        (
            "WebFetch",
            json!({ "url": "https://example.com", "max_bytes": 10 }),
            ExecutorCall::WebFetch(WebFetch { url: "https://example.com".to_owned(), max_bytes: 10 }),
        ),
        (
            "UseWorkspace",
            json!({ "path": "a", "mode": "worktree" }),
            ExecutorCall::UseWorkspace(UseWorkspace { path: "a".to_owned(), mode: WorkspaceMode::Worktree }),
        ),
    ];
    for (tool, input, call) in cases {
        assert_eq!(parse(tool, &input), ToolCall::Executor(call), "{tool} {input}");
    }
}

#[test]
fn a_set_of_tools_parses_its_own_calls_and_names_them_where_it_refuses() {
    let few = ToolSet::of_names(&["ReadFile", "Glob"]);
    let refused = |set: &ToolSet, tool: &str| {
        let parsed = set.parse(tool, &json!({ "path": "a" }));
        let ToolCall::Refused(refusal) = parsed else { panic!("{parsed:?}") };
        refusal
    };
    assert!(matches!(few.parse("ReadFile", &json!({ "path": "a" })), ToolCall::Executor(_)));
    let other = refused(&few, "WriteFile");
    assert_eq!((other.code.word(), other.message.as_str()), ("tool_not_offered", "WriteFile can't be called here"));
    assert_eq!(other.hint, "the tools here are: ReadFile, Glob");
    let unknown = refused(&few, "read_fle");
    assert_eq!(
        (unknown.code.word(), unknown.hint.as_str()),
        ("unknown_tool", "did you mean ReadFile? the tools are: ReadFile, Glob")
    );
    assert_eq!(refused(&ToolSet::empty(), "nothing like it").hint, "answer with text");
    assert_eq!(refused(&ToolSet::empty(), "Glob").hint, "answer with text");
    assert!(few.tokens() > 0 && few.tokens() < ToolSet::every().tokens());
    assert_eq!(few.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["ReadFile", "Glob"]);
}

#[test]
fn the_secret_of_a_trigger_is_taken_out_of_its_call_refused_or_not() {
    for (secret, taken) in
        [(json!("0123456789"), Some("0123456789")), (json!("short"), Some("short")), (json!(7), None)]
    {
        let input = json!({ "name": "ci", "secret": secret });
        let parsed = parse("CreateTrigger", &input);
        let mut call =
            Call { call_id: CallId::new("call_1"), tool: "CreateTrigger".to_owned(), input: input.into(), parsed };
        assert_eq!(tools::take_secret(&mut call).as_deref(), taken);
        assert_eq!(call.input, json!({ "name": "ci", "secret": "(kept outside of the records)" }));
    }
    let input = json!({ "secret": "of another kind" });
    let mut call = Call {
        call_id: CallId::new("call_1"),
        tool: "Other".to_owned(),
        parsed: parse("Other", &input),
        input: input.into(),
    };
    assert_eq!(tools::take_secret(&mut call), None);
    assert_eq!(call.input["secret"], "of another kind");
}

#[test]
fn an_agent_with_a_name_is_made_outside() {
    let named = json!({ "message": "m", "name": "scout" });
    let parsed = parse("SpawnAgent", &named);
    assert!(matches!(&parsed, ToolCall::Host(HostCall::SpawnAgent(call)) if call.name == "scout"), "{parsed:?}");
    assert_eq!(parsed.side_effect(), Some(SideEffect::ExternalMutation));
}

#[test]
fn inputs_that_mean_nothing_are_refused_by_field_and_with_a_hint() {
    let far = 100_u64 * 365 * 24 * 3_600_000 + 1;
    let cases = [
        ("Sleep", json!(null), "null, not an object", "may have: duration_ms, reason"),
        ("Sleep", json!("x"), "the text \"x\", not an object", "may have"),
        ("Sleep", json!([]), "a list", "give an object"),
        ("Sleep", json!({ "duration": 5 }), "\"duration\"", "did you mean `duration_ms`?"),
        ("Sleep", json!({ "durationMs": 5 }), "\"durationMs\"", "did you mean `duration_ms`?"),
        ("Sleep", json!({ "quite_something_else": 5 }), "\"quite_something_else\"", "may have: duration_ms, reason"),
        (
            "Sleep",
            json!({ "duration_ms": "5" }),
            "`duration_ms` of Sleep is the text \"5\"",
            "a whole number of milliseconds",
        ),
        ("Sleep", json!({ "duration_ms": -5 }), "`duration_ms` of Sleep is -5", "from 0 to 3153600000000"),
        ("Sleep", json!({ "duration_ms": 1.5 }), "`duration_ms` of Sleep is 1.5", "whole number"),
        ("Sleep", json!({ "duration_ms": far }), "`duration_ms` of Sleep is", "to 3153600000000"),
        ("Sleep", json!({ "reason": ["x"] }), "`reason` of Sleep is a list", "give a text"),
        ("WaitFor", json!({ "reason": "r" }), "lacks `wake`", "give: wake, reason; optional: after_ms"),
        ("WaitFor", json!({ "wake": null, "reason": "r" }), "lacks `wake`", "give: wake"),
        ("WaitFor", json!({ "wake": "timer", "after_ms": 5 }), "lacks `reason`", "give: wake, reason"),
        (
            "WaitFor",
            json!({ "wake": "sleep", "reason": "r" }),
            "`wake`",
            "operator_input, task_result, external, timer",
        ),
        ("WaitFor", json!({ "wake": "taskresult", "reason": "r" }), "`wake`", "did you mean task_result?"),
        ("WaitFor", json!({ "wake": 4, "reason": "r" }), "`wake` of WaitFor is 4", "give one of"),
        ("WaitFor", json!({ "wake": "task_result", "task_id": "t", "reason": "r" }), "\"task_id\"", "in `resource`"),
        (
            "WaitFor",
            json!({ "wake": "task_result", "timeout_ms": 5, "reason": "r" }),
            "\"timeout_ms\"",
            "create a timer",
        ),
        ("WaitFor", json!({ "wake": "external", "after_ms": 5, "reason": "r" }), "`after_ms`", "create a timer"),
        (
            "WaitFor",
            json!({ "wake": "timer", "after_ms": 5, "resource": "t", "reason": "r" }),
            "both `after_ms`",
            "`resource` for",
        ),
        ("WaitFor", json!({ "wake": "timer", "after_ms": far, "reason": "r" }), "`after_ms`", "to 3153600000000"),
        ("CancelWait", json!({ "wait_id": "w" }), "\"wait_id\"", "give: waiting_intent_id"),
        (
            "CreateTrigger",
            json!({ "name": "n", "delivery_mode": "wake" }),
            "`delivery_mode`",
            "enqueue_message, wake_hint",
        ),
        (
            "CreateTrigger",
            json!({ "name": "n", "secret": "hunter2" }),
            "`secret` of CreateTrigger is too short",
            "8 to 512",
        ),
        ("CreateTrigger", json!({ "name": "n", "url": "http://x" }), "no field \"url\"", "is in the result"),
        ("CreateTimer", json!({ "summary": "s" }), "doesn't say when", "`after_ms`, `at`, `every_ms`"),
        ("CreateTimer", json!({ "summary": "s", "after_ms": 1, "at": "x" }), "both `after_ms` and `at`", "exactly one"),
        (
            "CreateTimer",
            json!({ "summary": "s", "after_ms": 1, "every_ms": 100 }),
            "both `after_ms` and `every_ms`",
            "exactly one",
        ),
        (
            "CreateTimer",
            json!({ "summary": "s", "at": "x", "every_ms": 100 }),
            "both `at` and `every_ms`",
            "exactly one",
        ),
        ("CreateTimer", json!({ "summary": "s", "at": "tomorrow" }), "`at` of CreateTimer", "2026-01-31T12:00:00Z"),
        ("CreateTimer", json!({ "summary": "s", "every_ms": 99 }), "`every_ms` of CreateTimer is 99", "from 100 to"),
        (
            "CreateTimer",
            json!({ "summary": "s", "after_ms": 1, "cron": "0 7 * * *" }),
            "both `after_ms` and `cron`",
            "exactly one",
        ),
        (
            "CreateTimer",
            json!({ "summary": "s", "every_ms": 100, "time_zone": "UTC" }),
            "`time_zone` and no `cron`",
            "for `cron` only",
        ),
        ("CreateWorkItem", json!({ "objective": "o", "plan_status": "redy" }), "`plan_status`", "did you mean ready?"),
        ("CreateWorkItem", json!({ "objective": "o", "todo": "x" }), "`todo` of CreateWorkItem", "give a list"),
        (
            "CreateWorkItem",
            json!({ "objective": "o", "todo": ["x"] }),
            "todo[0] is the text \"x\"",
            "give: text; optional: state",
        ),
        (
            "CreateWorkItem",
            json!({ "objective": "o", "todo": [{ "text": "a" }, {}] }),
            "todo[1] lacks `text`",
            "give: text",
        ),
        (
            "CreateWorkItem",
            json!({ "objective": "o", "todo": [{ "text": "a", "state": "done" }] }),
            "`state` of todo[0]",
            "pending, in_progress, completed",
        ),
        (
            "CreateWorkItem",
            json!({ "objective": "o", "todo": [{ "text": "a", "status": "x" }] }),
            "todo[0] has no field \"status\"",
            "did you mean `state`?",
        ),
        ("CreateWorkItem", json!({ "objective": "o", "todo": vec![0; 257] }), "`todo` has 257 entries", "at most 256"),
        ("UpdateWorkItem", json!({ "work_item_id": 7 }), "`work_item_id` of UpdateWorkItem is 7", "give a text"),
        ("UpdateWorkItem", json!({ "work_item_id": "w", "blocked_by": 7 }), "`blocked_by`", "give a text"),
        ("UpdateWorkItem", json!({ "work_item_id": "w", "state": "completed" }), "\"state\"", "CompleteWorkItem"),
        ("CompleteWorkItem", json!({ "work_item_id": "w" }), "lacks `report`", "give: work_item_id, report"),
        ("GetWorkItem", json!({ "id": "w" }), "\"id\"", "give: work_item_id"),
        ("ListWorkItems", json!({ "filter": "queue" }), "`filter`", "did you mean queued?"),
        ("ListWorkItems", json!({ "state": "open" }), "\"state\"", "say `filter`"),
        ("AgentGet", json!({ "agent_id": "No Name" }), "`agent_id` of AgentGet", "the name of an agent"),
        ("NotifyOperator", json!({ "message": "x" }), "\"message\"", "give: text"),
        ("RequestApproval", json!({ "summary": "s", "default": "maybe" }), "`default`", "give one of: deny"),
        (
            "RequestApproval",
            json!({ "summary": "s", "deadline_ms": 1_000, "default": "grant" }),
            "granted by default",
            "leave default out: only a person can grant it",
        ),
        (
            "RequestApproval",
            json!({ "summary": "s", "deadline_ms": true }),
            "`deadline_ms` of RequestApproval is true",
            "whole number",
        ),
    ];
    for (tool, input, says, hints) in cases {
        let refusal = refused(tool, &input);
        assert_eq!(refusal.code, ErrorCode::InvalidInput, "{tool} {input}: {refusal:?}");
        assert!(refusal.message.contains(says) && refusal.hint.contains(hints), "{tool} {input}: {refusal:?}");
    }
}

#[test]
fn a_tool_there_is_none_of_brings_the_nearest_and_the_list() {
    for (name, near) in [("wait_for", "WaitFor"), ("Slep", "Sleep"), ("CreateWorkitems", "CreateWorkItem")] {
        let refusal = refused(name, &json!({}));
        assert_eq!(refusal.code, ErrorCode::UnknownTool);
        assert!(refusal.message.contains(name), "{refusal:?}");
        assert!(refusal.hint.starts_with(&format!("did you mean {near}? the tools are: ExecCommand, ")), "{refusal:?}");
    }
    for name in ["", "ReticulateSplines", &"x".repeat(100_000)] {
        let refusal = refused(name, &json!({}));
        assert!(refusal.hint.starts_with("the tools are: ExecCommand, ") && refusal.message.len() < 200, "{refusal:?}");
    }
}

/// An input that has every field, each of the kind its schema asks for.
fn fields(tool: &Tool) -> Map<String, Value> {
    tool.schema()["properties"].as_object().unwrap().clone()
}

#[test]
fn schemas_say_what_is_read() {
    for tool in tools::ALL {
        let schema = tool.schema();
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        assert!(!tool.description.contains('\n') && tool.description.ends_with('.'), "{}", tool.description);
        let required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        for name in &required {
            let mut input: Map<String, Value> = required.iter().map(|name| ((*name).to_owned(), json!("x"))).collect();
            input.remove(*name);
            assert!(refused(tool.name, &Value::Object(input)).message.contains(&format!("lacks `{name}`")));
        }
        // A field that is in the schema is known, and looked at: no kind of value but its own is taken.
        for name in fields(tool).keys() {
            let mut input: Map<String, Value> = required.iter().map(|name| ((*name).to_owned(), json!("x"))).collect();
            for (known, value) in [("wake", "timer"), ("task_id", "task_1")] {
                if required.contains(&known) {
                    input.insert(known.to_owned(), json!(value));
                }
            }
            input.insert(name.clone(), json!({ "an": "object" }));
            let refusal = refused(tool.name, &Value::Object(input));
            assert!(refusal.message.starts_with(&format!("`{name}` of {} is an object", tool.name)), "{refusal:?}");
        }
    }
}

#[test]
fn names_differ() {
    let mut names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), tools::ALL.len());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["timer", "task_result", "ready", "deny", "pending"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(any_key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Mostly names that some tool knows, so that what is behind them is reached.
fn any_key() -> impl Strategy<Value = String> {
    let known: Vec<String> =
        tools::ALL.iter().flat_map(|tool| fields(tool).into_iter().map(|(name, _)| name)).collect();
    prop_oneof![4 => prop::sample::select(known), 1 => ".{0,8}"]
}

fn any_tool() -> impl Strategy<Value = String> {
    let known: Vec<String> = tools::ALL.iter().map(|tool| tool.name.to_owned()).collect();
    prop_oneof![8 => prop::sample::select(known), 1 => ".{0,80}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_a_model_says_makes_it_panic(name in any_tool(), input in any_json()) {
        if let ToolCall::Refused(refusal) = parse(&name, &input) {
            prop_assert!(matches!(refusal.code, ErrorCode::InvalidInput | ErrorCode::UnknownTool));
            prop_assert!(!refusal.message.is_empty() && !refusal.hint.is_empty());
            prop_assert!(refusal.message.len() < 1_000 && refusal.hint.len() < 1_000);
        }
    }
}
