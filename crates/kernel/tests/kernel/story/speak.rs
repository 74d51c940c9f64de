//! The meaning of a story's lines: each becomes inputs.

use std::collections::BTreeMap;

use abide_kernel::budget::{Budget, Limits, Usage, Used};
use abide_kernel::config::{AgentLimits, Choice, ConfigChange, DefaultModels};
use abide_kernel::credentials::Credentials;
use abide_kernel::fact::{ChildSpec, TaskCreated, TaskEnd, WorkspaceAttached, Worktree};
use abide_kernel::id::{AgentId, ApprovalId, CallId, ExecId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::input::{BootContext, Checked, Delivery, Input, NewMessage, Reads, Refusal, Removal, Reply, Spent};
use abide_kernel::open_json::ToolOutput;
use abide_kernel::provider::NO_JITTER;
use abide_kernel::refusal::ErrorCode;
use abide_kernel::time::Time;
use abide_kernel::todo::Todo;
use abide_kernel::tool::{
    ApprovalNeeded, Call, Command, ExecCommand, ExecutorCall, RecordCall, ToolCall, When, WorkItemChange,
};
use abide_kernel::vocabulary::{
    ApprovalDefault, CatchUp, ChildWorkspace, ControlAction, DeliveryMode, HoldCause, MessageKind, PlanStatus,
    Priority, ProviderError, Role, TaskKind, TaskStatus, TodoState, ToolStatus, WaitKind, WaitPolicy, WorkItemFilter,
    WorkspaceMode,
};
use serde_json::{Value, json};

use super::Story;
use super::names::Names;

type Said<T> = Result<T, String>;

/// One line: its words, and what was said as `key=value`.
struct Line<'a> {
    names: &'a Names,
    words: Vec<&'a str>,
    given: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    fn of(names: &'a Names, text: &'a str) -> Line<'a> {
        let (given, words) = text.split_whitespace().partition::<Vec<_>, _>(|word| word.contains('='));
        let given = given.into_iter().filter_map(|word| word.split_once('=')).collect();
        Line { names, words, given }
    }

    fn word(&self, at: usize) -> Said<&'a str> {
        self.words.get(at).copied().ok_or_else(|| format!("a word is missing at {at}"))
    }

    fn text(&self, from: usize) -> String {
        self.words.get(from..).unwrap_or_default().join(" ")
    }

    fn id<T>(&self, name: &str, make: fn(String) -> T) -> Said<T> {
        self.names.long(name).map(make)
    }

    fn given_id<T>(&self, key: &str, make: fn(String) -> T) -> Said<Option<T>> {
        self.given.get(key).map(|name| self.id(name, make)).transpose()
    }

    fn span(&self, key: &str) -> Said<Option<u64>> {
        self.given.get(key).map(|text| span(text)).transpose()
    }

    fn item(&self) -> Said<Option<WorkItemId>> {
        self.given_id("item", WorkItemId::new)
    }
}

/// `250ms`, `30s`, `5m`, `2h`.
fn span(text: &str) -> Said<u64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        other => return Err(format!("{other} is not a unit of time")),
    };
    digits.parse::<u64>().map(|count| count * unit).map_err(|error| format!("{text}: {error}"))
}

fn word<T>(parse: fn(&str) -> Option<T>, text: &str) -> Said<T> {
    parse(text).ok_or_else(|| format!("{text} is not one of the words for this"))
}

pub fn speak(story: &mut Story, line: &str) -> Said<()> {
    let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
    match head {
        "crash" => story.crash(),
        "reload" => story.reload(),
        "back" => {
            let back = i64::try_from(span(rest)?).unwrap();
            story.now = Time::from_ms(story.now.as_ms() - back);
            story.drive(None);
        }
        "advance" => {
            story.now = story.now.plus_ms(span(rest)?);
            story.drive(None);
        }
        _ => {
            let input = input(story, head, rest)?;
            story.input(input);
        }
    }
    Ok(())
}

fn input(story: &mut Story, head: &str, rest: &str) -> Said<Input> {
    if head == "round" {
        return round(story, rest);
    }
    let exec_id = running(story);
    let line = Line::of(&story.names, rest);
    Ok(match head {
        "operator" => message(&line, MessageKind::OperatorPrompt, line.text(0))?,
        "interject" => {
            let message =
                NewMessage { text: Some(line.text(0)), priority: Some(Priority::Interject), ..NewMessage::default() };
            Input::Queue(message)
        }
        "event" => message(&line, MessageKind::WebhookEvent, line.text(0))?,
        "message" => message(&line, word(MessageKind::parse, line.word(0)?)?, line.text(1))?,
        "wake" => Input::Wake {
            reason: "look".to_owned(),
            source: line.given.get("source").map(|source| (*source).to_owned()),
            resource: line.given.get("resource").map(|name| line.names.long(name).unwrap_or((*name).to_owned())),
            body: (!line.words.is_empty()).then(|| line.text(0)),
        },
        "deliver" => Input::Deliver {
            trigger_id: line.id(line.word(0)?, TriggerId::new)?,
            generation: line.given.get("generation").and_then(|text| text.parse().ok()).unwrap_or(0),
            verified: line.given.contains_key("signed"),
            delivery: Delivery {
                delivery_id: line.given.get("id").map(|id| (*id).to_owned()),
                text: (line.words.len() > 1).then(|| line.text(1)),
                json: line.given.get("json").map(|text| serde_json::from_str(text).unwrap()),
                correlation_id: line.given.get("corr").map(|text| (*text).to_owned()),
            },
        },
        "fail" => Input::FailRound {
            round: story.state.turns.current.as_ref().map_or(0, |turn| turn.round),
            exec_id,
            error: word(ProviderError::parse, line.word(0)?)?,
            retry_after_ms: line.span("after")?,
            // Some providers send a whole page.
            message: "no\n"
                .repeat(line.given.get("page").and_then(|text| text.parse().ok()).unwrap_or(1))
                .trim()
                .to_owned(),
            carry: line.given.get("carry").map(|carry| Value::from(*carry).into()),
            jitter: line.given.get("jitter").and_then(|text| text.parse().ok()).unwrap_or(NO_JITTER),
            spent: line.given.get("tokens").map(|tokens| spent(tokens)).transpose()?,
            announce: !line.given.contains_key("told"),
        },
        "cut" => {
            let spent = spent(line.given.get("tokens").copied().unwrap_or_default())?;
            Input::CountCutRound { exec_id, round: 1, spent }
        }
        "models" => {
            let DefaultModels { model, fallback, .. } = models(&line)?;
            let (model, fallback) = (Some(Choice::Own(model)), Some(Choice::Own(fallback)));
            Input::Configure { change: Box::new(ConfigChange { model, fallback, ..ConfigChange::default() }) }
        }
        // It has none of its own, and these are the settings'.
        "follow" => {
            let DefaultModels { model, fallback, .. } = models(&line)?;
            let (model, fallback) = (Some(Choice::Default(model)), Some(Choice::Default(fallback)));
            Input::Configure { change: Box::new(ConfigChange { model, fallback, ..ConfigChange::default() }) }
        }
        // A new process, with these limits of the settings.
        "limits" => {
            let usual = story.state.definition.limits;
            let number =
                |key| line.given.get(key).map(|text| text.parse::<u32>().map_err(|_| format!("{text}?"))).transpose();
            let limits = AgentLimits {
                self_turns_per_hour: number("self_turns")?.unwrap_or(usual.self_turns_per_hour),
                rounds_per_turn: number("rounds")?.unwrap_or(usual.rounds_per_turn),
            };
            Input::Boot { context: BootContext { limits: Some(limits), ..BootContext::default() } }
        }
        // A new process, with these settings.
        "settings" => Input::Boot { context: BootContext { models: Some(models(&line)?), ..BootContext::default() } },
        "overflow" => Input::OverflowBaseline { exec_id, needed_tokens: 9, budget_tokens: 8 },
        "checkpoint" => Input::Checkpoint { exec_id, recap: "so far".to_owned(), through_round: None },
        "compact" => {
            Input::Compact { compacted_messages: 7, summary: Some("short".to_owned()), through: None, usage: None }
        }
        "tool" => Input::FinishTool {
            exec_id,
            call_id: CallId::new(line.word(0)?),
            status: ToolStatus::Completed,
            // The text that follows is said as JSON, or is a text.
            result: match line.given.get("result") {
                Some(result) => serde_json::from_str(result).unwrap_or_else(|_| Value::from(*result)).into(),
                None => ToolOutput::default(),
            },
            reads: line.given.get("reads").map(|task| Reads { task_id: TaskId::new(*task), end: true }),
        },
        "checked" => {
            let timer_id = line.id(line.word(0)?, TimerId::new)?;
            let timer = story.state.planes.timers.get(&timer_id).ok_or("it is not active")?;
            let due =
                timer.checking.map(|checking| checking.due).or(timer.last_fired_at).ok_or("nothing is checked")?;
            let checked = match line.word(1)?.parse() {
                Ok(exit_code) => Checked::Exited { exit_code, output: line.text(2) },
                Err(_) => Checked::NotDone { why: line.text(1) },
            };
            Input::FinishCheck { timer_id, due, checked }
        }
        "task" => task(&line, exec_id)?,
        "person" => Input::Act { by: "ann".to_owned(), act: act(&line)? },
        "start" => Input::Start,
        "stop" => Input::Stop,
        "boot" => Input::Boot { context: BootContext::default() },
        "shutdown" => Input::Shutdown { at_once: line.words.first() == Some(&"now"), reason: "SIGTERM".to_owned() },
        "archive" => Input::Archive,
        "abort" => Input::Abort { exec_id: line.words.first().map(|name| line.id(name, ExecId::new)).transpose()? },
        "quarantine" => Input::Quarantine { reason: line.text(0) },
        "error" => Input::RecordRuntimeError { error: line.text(0) },
        "occupy" => Input::OccupyWorkspace { workspace: line.word(0)?.to_owned() },
        "disk" => match line.span("after")? {
            Some(after) => Input::HoldForDisk { until: story.now.plus_ms(after), evidence: line.text(0) },
            None => Input::DiskHasRoom,
        },
        "good" => Input::ReleaseTurns { cause: HoldCause::ModelKey, evidence: "the key works".to_owned() },
        // Another load of an agent by the process that holds its turns.
        "wake_up" => Input::Boot { context: BootContext { holds_turns: true, ..BootContext::default() } },
        "release" => Input::ReleaseWorkspace {
            workspace: line.word(0)?.to_owned(),
            action: line.given.get("after").map(|_| ControlAction::Stop),
            error: line.given.get("error").map(|error| (*error).to_owned()),
        },
        "use" => Input::UseWorkspace(WorkspaceAttached {
            workspace: line.given.get("of").copied().unwrap_or(line.word(0)?).to_owned(),
            root: line.word(0)?.to_owned(),
            mode: if line.given.contains_key("of") { WorkspaceMode::Worktree } else { WorkspaceMode::Direct },
            worktree: line.given.get("of").map(|repo| Worktree {
                branch: "abide/a-1".to_owned(),
                base_commit: "c0ffee".to_owned(),
                repo: (*repo).to_owned(),
            }),
            note: None,
        }),
        "role" => {
            let role = Some(word(Role::parse, line.word(0)?)?);
            Input::Configure { change: Box::new(ConfigChange { role, ..ConfigChange::default() }) }
        }
        "removed" => Input::FinishRemoval {
            root: line.word(0)?.to_owned(),
            removal: match line.given.get("error") {
                Some(error) => Err((*error).to_owned()),
                None => Ok(Removal::default()),
            },
        },
        "budget" => budget(&line)?,
        "fork" => Input::Fork {
            agent_id: AgentId::new(line.word(0)?).map_err(|error| error.to_string())?,
            parent: story.state.id().clone(),
            at_seq: story.state.seq,
        },
        _ => return Err(format!("{head} is not a word of stories")),
    })
}

/// The usage of a call that came to nothing, by guess.
fn spent(tokens: &str) -> Said<Spent> {
    let input_tokens = tokens.parse().map_err(|_| format!("{tokens}?"))?;
    Ok(Spent { usage: Usage { input_tokens, ..Usage::default() }, estimated: true })
}

/// The running execution, or one that is not.
fn running(story: &Story) -> ExecId {
    story.state.turns.current.as_ref().map_or_else(|| ExecId::new("exec_over"), |turn| turn.exec_id.clone())
}

fn message(line: &Line<'_>, kind: MessageKind, text: String) -> Said<Input> {
    Ok(Input::Queue(NewMessage {
        kind: Some(kind),
        text: (!text.is_empty()).then_some(text),
        priority: line.given.get("priority").map(|text| word(Priority::parse, text)).transpose()?,
        work_item_id: line.item()?,
        trigger_id: line.given_id("trigger", TriggerId::new)?,
        correlation_id: line.given.get("corr").map(|text| (*text).to_owned()),
        from_agent: line.given.get("from").map(|name| AgentId::new(name).unwrap()),
        from_outside: line.given.contains_key("relayed"),
        causation_id: line.given.get("cause").map(|cause| (*cause).to_owned()),
        ..NewMessage::default()
    }))
}

/// `task t1` creates one, `task t1 runs` and `task t1 ends [how]` report about it.
fn task(line: &Line<'_>, exec_id: ExecId) -> Said<Input> {
    let task_id = TaskId::new(line.word(0)?);
    Ok(match line.words.get(1).copied() {
        None => Input::CreateTask(TaskCreated {
            task_id,
            task_kind: if line.given.contains_key("child") { TaskKind::ChildAgent } else { TaskKind::Command },
            wait_policy: WaitPolicy::Background,
            summary: line.given.get("summary").map_or_else(|| "make".to_owned(), |text| (*text).to_owned()),
            command: line.given.get("command").map(|command| (*command).to_owned()),
            workdir: None,
            tty: false,
            accepts_input: false,
            work_item_id: line.item()?,
            child_agent_id: line.given.get("child").map(|name| (*name).to_owned()),
            child: new_child(line)?,
            recovery: None,
            // The call that became the task: `call=call1`.
            exec_id: line.given.get("call").map(|_| exec_id.clone()),
            call_id: line.given.get("call").map(|call| CallId::new(*call)),
        }),
        Some("runs") => Input::RunTask { task_id, recovery: None },
        Some("ends") => Input::EndTask {
            status: line.words.get(2).map_or(Ok(TaskStatus::Completed), |text| word(TaskStatus::parse, text))?,
            end: TaskEnd { task_id, exit_code: Some(0), used: used(line)?, ..TaskEnd::default() },
        },
        Some(other) => return Err(format!("tasks do not {other}")),
    })
}

/// `a/one b/two`, or `a/one unchosen=1`.
fn models(line: &Line<'_>) -> Said<DefaultModels> {
    let model = line.word(0)?.to_owned();
    let fallback = line.words[1..].iter().map(|model| (*model).to_owned()).collect();
    Ok(DefaultModels { model, fallback, chosen: !line.given.contains_key("unchosen") })
}

/// A child with what it was granted: `grant_turns=3`.
fn new_child(line: &Line<'_>) -> Said<Option<Box<ChildSpec>>> {
    let grant = limits(line, "grant_")?;
    let child = || ChildSpec {
        message: "do it".to_owned(),
        workspace_mode: ChildWorkspace::Inherit,
        folder: None,
        model: String::new(),
        fallback: Vec::new(),
        default_model: false,
        default_fallback: false,
        credentials: Credentials::default(),
        instructions: None,
        network: false,
        grant,
    };
    Ok((!grant.is_none()).then(|| Box::new(child())))
}

/// The usage that a child reports: `used_turns=2 used_tokens=30`.
fn used(line: &Line<'_>) -> Said<Option<Used>> {
    let limits = limits(line, "used_")?;
    Ok((!limits.is_none()).then(|| Used::all_of(&limits)))
}

fn budget(line: &Line<'_>) -> Said<Input> {
    let budget = Budget { daily: limits(line, "daily_")?, ..Budget::from(limits(line, "")?) };
    Ok(Input::Configure { change: Box::new(ConfigChange { budget: Some(budget), ..ConfigChange::default() }) })
}

fn limits(line: &Line<'_>, before: &str) -> Said<Limits> {
    let number = |key| {
        let given = line.given.get(format!("{before}{key}").as_str());
        given.map(|text| text.parse().map_err(|_| format!("{text}?"))).transpose()
    };
    let max_wall_ms = line.span(&format!("{before}wall"))?;
    Ok(Limits {
        max_turns: number("turns")?,
        max_tokens: number("tokens")?,
        max_micro_usd: number("micro_usd")?,
        max_wall_ms,
    })
}

/// `round done` ends the turn; `round WaitFor operator` acts; `round Tool build` runs something in the world; `round Ask
/// push` would, if a person lets it; `round Cut` calls something, but not to its end; several calls are divided by `;`.
/// `cut=yes` makes it an answer that was cut.
fn round(story: &mut Story, rest: &str) -> Said<Input> {
    let (mut calls, mut text) = (Vec::new(), String::new());
    let mut line = Line::of(&story.names, "");
    for part in rest.split(" ; ") {
        line = Line::of(&story.names, part);
        let tool = line.words.first().copied().unwrap_or_default();
        if !tool.starts_with(char::is_uppercase) {
            text = line.text(0);
            continue;
        }
        let parsed = match tool {
            "Tool" => command(&line),
            "Ask" => held_back(&line)?,
            "Cut" => ToolCall::Refused(Refusal::new(ErrorCode::CallCutOff, "cut").with_hint("less")),
            _ => ToolCall::Record(act(&line)?),
        };
        let call_id = CallId::new(format!("call{}", story.calls + 1 + u32::try_from(calls.len()).unwrap()));
        let input = json!({ "words": line.text(1) });
        calls.push(Call { call_id, tool: tool.to_owned(), input: input.into(), parsed });
    }
    let tokens = line.given.get("tokens").and_then(|text| text.parse().ok()).unwrap_or(0);
    let tree = line.given.get("tree").map(|tree| (*tree).to_owned());
    story.calls += u32::try_from(calls.len()).unwrap();
    let round = story.state.turns.current.as_ref().map_or(0, |turn| turn.round);
    let usage = Usage { input_tokens: tokens, ..Usage::default() };
    let stop = line.given.contains_key("cut").then(|| Reply::FULL.to_owned());
    Ok(Input::FinishRound {
        exec_id: running(story),
        round,
        reply: Reply { text, calls, usage, tree, stop, ..Reply::default() },
    })
}

/// A call that a person has to let run; its words are its digest.
fn held_back(line: &Line<'_>) -> Said<ToolCall> {
    let default = line.given.get("default").map_or(Ok(ApprovalDefault::Deny), |t| word(ApprovalDefault::parse, t))?;
    let (digest, deadline_ms) = (line.text(1), line.span("deadline")?);
    let summary = format!("run {digest}");
    let call = command(line);
    Ok(ToolCall::NeedsApproval(Box::new(ApprovalNeeded { digest, summary, deadline_ms, default, call })))
}

/// A call that runs outside and may change anything there.
fn command(line: &Line<'_>) -> ToolCall {
    ToolCall::Executor(ExecutorCall::ExecCommand(ExecCommand {
        command: Command { command: line.text(1), ..Command::default() },
        yield_time_ms: 0,
        start_new: false,
        max_output_bytes: 0,
    }))
}

fn act(line: &Line<'_>) -> Said<RecordCall> {
    let first = |make: fn(String) -> WorkItemId| line.id(line.word(1)?, make);
    Ok(match line.word(0)? {
        "WaitFor" => wait_for(line)?,
        "CancelWait" => RecordCall::CancelWait { waiting_intent_id: line.id(line.word(1)?, WaitId::new)? },
        "Sleep" => {
            RecordCall::Sleep { reason: None, duration_ms: line.words.get(1).map(|text| span(text)).transpose()? }
        }
        "CreateTimer" => RecordCall::CreateTimer {
            summary: line.text(1),
            when: match (line.span("after")?, line.span("every")?, line.given.get("cron")) {
                (Some(ms), ..) => When::AfterMs(ms),
                (None, Some(ms), _) => When::EveryMs(ms),
                // Words are split at blanks, so a story's fields are joined by underscores.
                (None, None, Some(cron)) => When::Cron {
                    cron: cron.replace('_', " "),
                    time_zone: line.given.get("zone").map_or_else(|| "UTC".to_owned(), |zone| (*zone).to_owned()),
                },
                (None, None, None) => return Err("say after=, every= or cron=".to_owned()),
            },
            catch_up: line.given.get("catch_up").map_or(Ok(CatchUp::Latest), |text| word(CatchUp::parse, text))?,
            work_item_id: line.item()?,
            check: line.given.get("check").map(|check| (*check).to_owned()),
        },
        "CancelTimer" => RecordCall::CancelTimer { timer_id: line.id(line.word(1)?, TimerId::new)? },
        "CreateTrigger" => RecordCall::CreateTrigger {
            name: line.text(1),
            delivery_mode: line
                .given
                .get("mode")
                .map_or(Ok(DeliveryMode::EnqueueMessage), |text| word(DeliveryMode::parse, text))?,
            work_item_id: line.item()?,
            signed: line.given.contains_key("signed"),
            address: None,
        },
        "RotateTrigger" => RecordCall::RotateTrigger { trigger_id: line.id(line.word(1)?, TriggerId::new)? },
        "RevokeTrigger" => RecordCall::RevokeTrigger { trigger_id: line.id(line.word(1)?, TriggerId::new)? },
        "CreateWorkItem" => RecordCall::CreateWorkItem {
            objective: line.text(1),
            plan: None,
            plan_status: line.given.get("status").map(|text| word(PlanStatus::parse, text)).transpose()?,
            todo: Vec::new(),
            budget: item_budget(line)?,
        },
        "PickWorkItem" => RecordCall::PickWorkItem { work_item_id: first(WorkItemId::new)? },
        "UpdateWorkItem" => {
            RecordCall::UpdateWorkItem { work_item_id: first(WorkItemId::new)?, change: Box::new(change(line)?) }
        }
        "CompleteWorkItem" => {
            RecordCall::CompleteWorkItem { work_item_id: first(WorkItemId::new)?, report: "done".to_owned() }
        }
        "RequestApproval" => RecordCall::RequestApproval {
            summary: line.text(1),
            tool: None,
            deadline_ms: line.span("deadline")?,
            default: line
                .given
                .get("default")
                .map_or(Ok(ApprovalDefault::Deny), |t| word(ApprovalDefault::parse, t))?,
        },
        "DecideApproval" => RecordCall::DecideApproval {
            approval_id: line.id(line.word(1)?, ApprovalId::new)?,
            grant: line.word(2)? == "grant",
        },
        "SpawnAgent" => RecordCall::SpawnChild {
            message: line.text(1),
            workspace_mode: ChildWorkspace::Inherit,
            model: None,
            instructions: None,
            work_item_id: line.item()?,
        },
        "NotifyOperator" => RecordCall::NotifyOperator { text: line.text(1) },
        "ListWorkItems" => RecordCall::ListWorkItems { filter: word(WorkItemFilter::parse, line.word(1)?)? },
        "ShowWorkItem" => RecordCall::ShowWorkItem { work_item_id: first(WorkItemId::new)? },
        "ListTasks" => RecordCall::ListTasks,
        "RunCommand" => {
            RecordCall::RunCommand { command: line.text(1), workdir: None, tty: false, accepts_input: false }
        }
        "ShowTask" => RecordCall::ShowTask { task_id: TaskId::new(line.word(1)?) },
        "DetachWorkspace" => RecordCall::DetachWorkspace { folder: line.word(1)?.to_owned(), discard: false },
        "StopTask" => RecordCall::StopTask { task_id: TaskId::new(line.word(1)?) },
        other => return Err(format!("{other} is not an act")),
    })
}

/// `WaitFor task t1`, `WaitFor external c1`, `WaitFor timer after=30s`, `WaitFor operator item=w1`.
fn wait_for(line: &Line<'_>) -> Said<RecordCall> {
    let wake = match line.word(1)? {
        "operator" => WaitKind::Operator,
        "task" => WaitKind::Task,
        "external" => WaitKind::External,
        "timer" => WaitKind::Timer,
        "sleep" => WaitKind::Sleep,
        other => return Err(format!("nobody waits for {other}")),
    };
    let named = line.words.get(2).map(|name| line.names.long(name).unwrap_or((*name).to_owned()));
    let after_ms = line.span("after")?;
    Ok(RecordCall::WaitFor { wake, resource: named, after_ms, work_item_id: line.item()?, reason: "later".to_owned() })
}

fn change(line: &Line<'_>) -> Said<WorkItemChange> {
    let text = |key: &str| line.given.get(key).map(|text| (*text).to_owned());
    let blocked_by = match (text("blocked"), line.words.contains(&"unblocked")) {
        (_, true) => Some(None),
        (Some(by), false) => Some(Some(by)),
        (None, false) => None,
    };
    Ok(WorkItemChange {
        objective: text("objective"),
        plan: text("plan"),
        plan_status: line.given.get("status").map(|text| word(PlanStatus::parse, text)).transpose()?,
        todo: text("todo").map(|text| vec![Todo { text, state: TodoState::Pending }]),
        blocked_by,
        recheck_after_ms: line.span("recheck")?,
        budget: item_budget(line)?,
    })
}

/// `max_turns=2`, and `max=none` for no limit at all.
fn item_budget(line: &Line<'_>) -> Said<Option<Limits>> {
    let limits = limits(line, "max_")?;
    Ok((!limits.is_none() || line.given.get("max") == Some(&"none")).then_some(limits))
}
