//! Records as surfaces show them, field by field.

use std::collections::{BTreeMap, BTreeSet};

use abide_kernel::act_result::{told as shown_in_full, told_workspace};
use abide_kernel::config::ConfigChange;
use abide_kernel::credentials::CredentialsChange;
use abide_kernel::explain::FolderHolder;
use abide_kernel::input::Input;
use abide_kernel::read_rows::rows_of;
use abide_kernel::summary::agent_summary;
use abide_kernel::view::timer_ahead;
use abide_views::agent::{SandboxPart, Surrounding};
use abide_views::approval::ApprovalView;
use abide_views::task::TaskView;
use abide_views::trigger::TriggerView;
use serde_json::{Value, json};

use crate::story::Story;

fn told(lines: &str) -> Story {
    let mut story = Story::begin();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        story.tell(line).unwrap();
    }
    story
}

/// With ids and times by their short names.
fn short(story: &Story, shape: &Value) -> Value {
    match shape {
        Value::String(text) => story.short(text).into(),
        Value::Array(list) => list.iter().map(|value| short(story, value)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), short(story, value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => shape.clone(),
    }
}

#[test]
fn a_task_is_shown_with_its_end() {
    let story = told("operator hi\ntask t1 child=a.1 grant_turns=3\ntask t1 runs\ntask t1 ends failed used_turns=2");
    let task = story.state.planes.tasks.owed().values().next().unwrap();
    let shown = short(&story, &shown_in_full(&TaskView::from(task)));
    let limits = |turns: u64| json!({ "max_turns": turns, "max_tokens": null, "max_usd": null, "max_wall_ms": null });
    let expected = json!({
        "granted": limits(3), "used": shown["used"], "task_id": "t1", "kind": "child_agent_task", "status": "failed",
        "summary": "make", "command": null, "work_item_id": null, "child_agent_id": "a.1", "created_at": "+0s",
        "ended_at": "+0s", "exit_code": 0, "signal": null, "output": { "bytes": 0, "truncated": false },
        "recovery": null, "evidence": [],
    });
    assert_eq!(shown, expected);
    assert_eq!((&shown["used"]["turns"], &shown["used"]["wall_ms"]), (&json!(2), &json!(0)));
}

#[test]
fn a_timer_is_shown_with_what_is_to_come() {
    let shown = |when: &str| {
        let story = told(&format!("person CreateTimer {when} check=look tea"));
        let timer = story.state.planes.timers.active().values().next().unwrap();
        short(&story, &shown_in_full(&timer_ahead(timer)))
    };
    let hourly = shown("every=1h");
    assert_eq!(hourly["upcoming"], json!(["+3600s", "+7200s", "+10800s", "+14400s", "+18000s"]));
    let fields = json!([hourly["summary"], hourly["every_ms"], hourly["check"], hourly["status"], hourly["made_by"]]);
    assert_eq!(fields, json!(["tea", 3_600_000, "look", "active", "person"]));
    assert_eq!(shown("after=1h")["upcoming"], json!(["+3600s"]));
    let daily = shown("cron=0_9_*_*_* zone=UTC");
    assert_eq!((&daily["cron"], &daily["time_zone"]), (&json!("0 9 * * *"), &json!("UTC")));
    assert_eq!(daily["upcoming"][1], "+118800s");
}

#[test]
fn questions_triggers_and_items_are_shown() {
    let story = told(
        "person CreateTrigger mode=wake_hint hook
         person CreateWorkItem max_turns=4 max_micro_usd=2500000 build
         round RequestApproval deadline=1h deploy it",
    );
    let question = story.state.planes.approvals.pending().values().next().unwrap();
    let expected = json!({
        "approval_id": "appr1", "tool": null, "summary": "deploy it", "status": "pending", "deadline": "+3600s",
        "default": "deny", "decided_by": null, "decided_at": null,
    });
    assert_eq!(short(&story, &shown_in_full(&ApprovalView::from(question))), expected);
    let trigger = story.state.planes.triggers.values().next().unwrap();
    let expected = json!({
        "trigger_id": "trig1", "name": "hook", "delivery_mode": "wake_hint", "work_item_id": null, "signed": false,
        "status": "active", "delivery_count": 0, "last_delivered_at": null,
    });
    assert_eq!(short(&story, &shown_in_full(&TriggerView::from(trigger))), expected);
    let item = story.state.planes.work.items().values().next().unwrap();
    let shown = short(&story, &shown_in_full(&story.state.work_item_view(item)));
    let fields = json!([
        shown["work_item_id"],
        shown["revision"],
        shown["objective"],
        shown["state"],
        shown["plan_status"],
        shown["readiness"],
        shown["current"],
        shown["budget"]["max_turns"],
        shown["budget"]["max_usd"],
        shown["used"]["turns"],
    ]);
    assert_eq!(fields, json!(["w1", 1, "build", "open", "draft", "waiting_for_operator", false, 4, 2.5, 1]));
}

#[test]
fn folders_are_shown_as_they_are_bound() {
    let story = told("use shop\nuse barn of=farm\noccupy barn");
    let shown: Vec<Value> = story
        .state
        .planes
        .workspaces
        .attached()
        .values()
        .map(|bound| {
            let mut shape = short(&story, &told_workspace(&story.state.workspace_view(bound)));
            shape.as_object_mut().unwrap().remove("attached_at");
            shape
        })
        .collect();
    let expected = [
        json!({
            "workspace": "farm", "root": "barn", "mode": "worktree", "branch": "abide/a-1", "base_commit": "c0ffee",
            "status": "attached", "active": true, "occupied": true, "kept": null, "note": null,
        }),
        json!({
            "workspace": "shop", "root": "shop", "mode": "direct", "branch": null, "base_commit": null,
            "status": "attached", "active": false, "occupied": false, "kept": null, "note": null,
        }),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_sleeper_is_shown_until_it_wakes() {
    let until = |lines: &str| {
        let story = told(lines);
        short(&story, &json!(agent_summary(&story.state, story.now).agent.sleeping_until))
    };
    assert_eq!(until("operator hi\nround Sleep 1h"), "+3600s");
    assert_eq!(until("operator hi\nround WaitFor timer after=1h"), Value::Null);
    assert_eq!(until("operator hi\nround Sleep 2h\nperson CreateTimer after=1h tea"), "+7200s");
}

/// Fields that are new or empty are not written into every snapshot.
#[test]
fn a_snapshot_of_a_new_agent_is_short() {
    let story = Story::begin();
    let snapshot: Value = serde_json::from_slice(&story.state.snapshot()).unwrap();
    for absent in ["pace", "rests", "troubles", "held", "disk_short", "leaving"] {
        assert_eq!(snapshot.get(absent), None, "{absent}");
    }
}

/// Of the folders that are bound, the one it works in can't be taken away while it does.
#[test]
fn a_folder_is_detached_unless_a_turn_is_in_it() {
    let mut story = told("use shop\nuse barn\noperator hi");
    let roots = |story: &Story| story.state.planes.workspaces.attached().keys().cloned().collect::<Vec<_>>();
    story.tell("person DetachWorkspace barn").unwrap();
    assert_eq!(roots(&story), ["barn", "shop"]);
    story.tell("person DetachWorkspace shop").unwrap();
    assert_eq!(roots(&story), ["barn"]);
    assert_eq!(story.state.planes.workspaces.active().unwrap().root, "barn", "it goes on where it was");
    story.tell("round done").unwrap();
    story.tell("person DetachWorkspace barn").unwrap();
    assert!(story.state.planes.workspaces.active().is_none() && roots(&story).is_empty());
}

#[test]
fn a_worktree_that_is_being_removed_is_not_used_again() {
    let used = "use barn of=farm\nperson DetachWorkspace barn";
    let told = crate::story::tell(&format!("{used}\n---\nuse barn of=farm"));
    assert_eq!(told, ["refused being_removed"]);
}

/// Its supervisor wants to know what a child said last; an operator reads the briefs.
#[test]
fn what_was_said_last_is_kept_for_a_supervisor_only() {
    assert_eq!(told("operator hi\nround done").state.turns.last_text, None);
    assert_eq!(told("operator hi\nfail overloaded").state.turns.last_text, None);
}

/// The summary has every part, whatever there is of it.
#[test]
fn a_summary_is_shown_whole() {
    let story = told(
        "models a/one b/two
         budget turns=9 daily_tokens=500
         use /h/1 of=/w
         task t1 child=a.1 grant_turns=3
         task t2
         task t2 runs
         operator hi",
    );
    let mut shown = short(&story, &shown_in_full(&agent_summary(&story.state, story.now)));
    let children = shown["active_children"].take();
    assert_eq!((children.as_array().unwrap().len(), &children[0]["task_id"]), (1, &json!("t1")));
    let limits = |turns: Option<u64>, tokens: Option<u64>| json!({ "max_turns": turns, "max_tokens": tokens, "max_usd": null, "max_wall_ms": null });
    let usage = json!({ "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": 0.0 });
    let used = |turns: u64| json!({ "turns": turns, "wall_ms": 0, "usage": usage });
    let mut budget = limits(Some(9), None);
    budget["daily"] = limits(None, Some(500));
    let model = json!({
        "name": "a/one", "default": false, "answered_by": null, "cut": false, "fallback": ["b/two"],
        "default_fallback": false, "in_use": "a/one", "priced": false, "trouble": null, "rests": [], "usage": usage, "budget": budget,
        "wall_ms": 0, "today": used(1), "today_until": "+86400s", "children": used(0), "granted": limits(Some(3), None),
    });
    assert_eq!(shown["model"], model);
    let execution = json!({
        "workspace": "/w", "cwd": "/h/1", "mode": "worktree", "branch": "abide/a-1", "commands": 1, "occupied": null,
        "network": story.state.definition.config.network, "credentials": null,
    });
    // The daemon adds the rest.
    for field in ["sandbox", "disk_bytes", "held_by"] {
        assert_eq!(shown["execution"][field].take(), json!(null));
        shown["execution"].as_object_mut().unwrap().remove(field);
    }
    assert_eq!(shown["execution"], execution);
    let agent = json!({
        "status": "awake_running", "pending": 1, "parked": 0, "turn_index": 1, "current_run_id": "exec1",
        "current_work_item_id": null, "current_turn_work_item_id": null, "sleeping_until": null,
    });
    assert_eq!(shown["agent"], agent);
    assert_eq!(shown["lifecycle"], json!({ "accepts_messages": true, "hint": null }));
    let stopped = told("stop");
    let lifecycle = json!({
        "accepts_messages": true, "hint": "messages are kept; start the agent to have them worked on",
    });
    assert_eq!(shown_in_full(&agent_summary(&stopped.state, stopped.now))["lifecycle"], lifecycle);
}

/// Fields that no agent's records hold are added where they belong.
#[test]
fn the_surroundings_are_added_to_a_summary() {
    let story = told("use /w");
    let mut summary = agent_summary(&story.state, story.now);
    let mut expected = shown_in_full(&summary);
    let folder = "/w".to_owned();
    let holder =
        FolderHolder { agent_id: Some("ada".to_owned()), daemon_pid: None, folder, since: None, is_next: false };
    let sandbox = SandboxPart {
        mode: "auto".to_owned(),
        mechanism: "none".to_owned(),
        enforced: Vec::new(),
        problems: Vec::new(),
        processes: String::new(),
        memory: String::new(),
    };
    expected["execution"]["sandbox"] = shown_in_full(&sandbox).0;
    expected["execution"]["disk_bytes"] = json!(7);
    expected["execution"]["held_by"] = shown_in_full(&holder.view()).0;
    expected["model"]["priced"] = json!(true);
    let held_by = Some(holder.view());
    summary.surround(Surrounding { sandbox, disk_bytes: Some(7), held_by, priced: true });
    assert_eq!(shown_in_full(&summary), expected);
}

/// Credentials are changed part by part, and shown without a value of a secret; rows name the secrets once.
#[test]
fn credentials_are_changed_and_shown_by_part() {
    let change = CredentialsChange {
        env: Some(BTreeMap::from([("A".to_owned(), "1".to_owned())])),
        secrets: Some(BTreeSet::from(["TOKEN".to_owned()])),
        git_credentials: Some(BTreeMap::from([("host".to_owned(), "GIT".to_owned())])),
        ssh_agent: Some(true),
        known_hosts: Some(Some("host key".to_owned())),
        for_children: Some(true),
    };
    assert!(!change.is_empty() && CredentialsChange::default().is_empty());
    let mut story = Story::begin();
    let credentials = change.clone();
    story.input(Input::Configure { change: Box::new(ConfigChange { credentials, ..ConfigChange::default() }) });
    let expected = json!({
        "env": { "A": "1" }, "secrets": ["TOKEN"], "git_credentials": { "host": "GIT" }, "ssh_agent": true,
        "known_hosts": "host key", "for_children": true,
    });
    let shown =
        |story: &Story| shown_in_full(&agent_summary(&story.state, story.now))["execution"]["credentials"].clone();
    assert_eq!(shown(&story), expected);
    let (at, fact) = story.facts.iter().rev().find(|(_, fact)| fact.kind() == "agent.configured").unwrap();
    assert_eq!(rows_of(1, *at, fact)[0].patch["secrets"], json!(["GIT", "TOKEN"]));
    // A field that is left out stays; a field that is said to be nothing goes.
    let credentials = CredentialsChange { known_hosts: Some(None), ..CredentialsChange::default() };
    story.input(Input::Configure { change: Box::new(ConfigChange { credentials, ..ConfigChange::default() }) });
    let mut expected = expected;
    expected["known_hosts"] = json!(null);
    assert_eq!(shown(&story), expected);
}

/// A child has the credentials of its supervisor only where they are for children.
#[test]
fn a_child_has_credentials_that_are_for_children() {
    let of_child = |for_children: bool| {
        let mut story = Story::begin();
        let credentials = CredentialsChange {
            secrets: Some(BTreeSet::from(["TOKEN".to_owned()])),
            for_children: Some(for_children),
            ..CredentialsChange::default()
        };
        story.input(Input::Configure { change: Box::new(ConfigChange { credentials, ..ConfigChange::default() }) });
        story.tell("operator hi").unwrap();
        story.tell("round SpawnAgent do it").unwrap();
        let (_, made) = story.facts.iter().find(|(_, fact)| fact.kind() == "task.created").unwrap();
        serde_json::from_slice::<Value>(&made.encode()).unwrap()["child"]["credentials"].clone()
    };
    assert_eq!(of_child(true), json!({ "secrets": ["TOKEN"], "for_children": true }));
    assert_eq!(of_child(false), Value::Null);
}

/// An agent that names another folder is meant to work in it.
#[test]
fn another_folder_of_the_configuration_is_the_one_that_is_worked_in() {
    let mut story = told("use /w");
    let change = ConfigChange { workspace: Some("/v".to_owned()), ..ConfigChange::default() };
    story.input(Input::Configure { change: Box::new(change) });
    assert!(story.state.planes.workspaces.active().is_none());
    assert_eq!(shown_in_full(&agent_summary(&story.state, story.now))["execution"]["cwd"], "/v");
}
