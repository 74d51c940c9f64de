//! Lifecycle control over HTTP: what start, stop, abort and wake do, and which facts say so.

use abide_api::types::{Abort, Wake};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

async fn of_kind(daemon: &Daemon, kind: &str) -> Vec<Value> {
    let events = daemon.events("a").await.into_iter();
    events.filter(|event| event["kind"] == kind).map(|event| event["data"].clone()).collect()
}

async fn start(daemon: &Daemon) -> Value {
    daemon.ask(Ask::post("/v1/agents/a/start")).await.is(200)
}

async fn stop(daemon: &Daemon) -> Value {
    daemon.ask(Ask::post("/v1/agents/a/stop")).await.is(200)
}

/// Says something, and waits until the model was called about it.
async fn begin(daemon: &Daemon, text: &str) -> (String, String) {
    let message = daemon.say("a", text).await;
    let started = daemon.event("a", "turn.started", |data| data["message_id"] == message.as_str()).await;
    let exec = started["data"]["exec_id"].as_str().unwrap().to_owned();
    daemon.event("a", "turn.round_started", |data| data["exec_id"] == exec.as_str()).await;
    (message, exec)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_agent_keeps_messages_and_start_has_them_worked_on_in_order() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let mut said = Vec::new();
    for text in ["one", "two", "three"] {
        said.push(daemon.say("a", text).await);
    }
    let summary = daemon.summary("a").await;
    assert_eq!((&summary["agent"]["status"], &summary["agent"]["pending"]), (&json!("stopped"), &json!(3)));
    assert_eq!(summary["decision"]["kind"], "Stop");
    assert_eq!(daemon.kinds("a").await, ["agent.created", "message.queued", "message.queued", "message.queued"]);

    let started = start(&daemon).await;
    assert_eq!((&started["agent"]["status"], &started["agent"]["turn_index"]), (&json!("awake_idle"), &json!(0)));
    let last = said.last().unwrap().as_str();
    daemon.event("a", "message.processed", |data| data["message_id"] == last).await;
    let worked: Vec<Value> =
        of_kind(&daemon, "turn.started").await.iter().map(|turn| turn["message_id"].clone()).collect();
    assert_eq!(json!(worked), json!(said), "one turn each, in order");
    // It is the scheduler that starts turns: between the start and the first turn lies its decision.
    let kinds: Vec<Value> = daemon.events("a").await.iter().map(|event| event["kind"].clone()).collect();
    let place = |kind: &str| kinds.iter().position(|known| known == kind).unwrap();
    let between = &kinds[place("control.applied")..place("turn.started")];
    assert!(between.contains(&json!("scheduler.decision")), "{between:?}");
    let briefs = daemon.items("/v1/agents/a/briefs").await;
    let texts: Vec<&Value> =
        briefs.iter().filter(|brief| brief["kind"] == "result").map(|brief| &brief["text"]).collect();
    assert_eq!(json!(texts), json!(["one", "two", "three"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_leaves_its_trail_and_makes_nothing_up() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    start(&daemon).await;
    daemon.event("a", "posture.changed", |data| data["next_status"] == "asleep").await;
    let admitted = of_kind(&daemon, "control.admitted").await;
    let wanted = json!({
        "action": "start", "boundary": "control", "previous_status": "stopped", "next_status": "awake_idle",
        "task_ids": [], "evidence": ["was_stopped", "messages_pending 0"],
    });
    assert_eq!((admitted.len(), &admitted[0]), (1, &wanted));
    let applied = of_kind(&daemon, "control.applied").await;
    assert_eq!((applied.len(), &applied[0]), (1, &wanted));
    assert_eq!(of_kind(&daemon, "posture.changed").await[0], wanted);
    assert!(daemon.items("/v1/agents/a/messages").await.is_empty());
    assert!(of_kind(&daemon, "turn.started").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_of_one_that_runs_is_refused_with_its_status() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.event("a", "posture.changed", |data| data["next_status"] == "asleep").await;
    let problem = daemon.ask(Ask::post("/v1/agents/a/start")).await.refused(409, "not_stopped");
    assert!(problem["detail"].as_str().unwrap().contains("asleep"), "{problem}");
    begin(&daemon, "hold").await;
    let problem = daemon.post("/v1/agents/a/resume", json!({})).await.refused(409, "not_stopped");
    assert!(problem["detail"].as_str().unwrap().contains("awake_running"), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_of_a_stopped_one_changes_nothing() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    assert_eq!(stop(&daemon).await, daemon.summary("a").await);
    assert_eq!(daemon.kinds("a").await, ["agent.created"]);
    for action in ["start", "stop", "pause", "resume", "abort"] {
        daemon.post(&format!("/v1/agents/nobody/{action}"), json!({})).await.refused(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_and_resume_are_stop_and_start_and_say_so() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let client = daemon.client();
    let paused = client.control("a", "pause").await.unwrap();
    assert_eq!((paused.agent.status.as_str(), paused.deprecated.as_deref()), ("stopped", Some("use stop")));
    let resumed = client.control("a", "resume").await.unwrap();
    assert_eq!((resumed.agent.status.as_str(), resumed.deprecated.as_deref()), ("awake_idle", Some("use start")));
    assert_eq!(client.control("a", "stop").await.unwrap().deprecated, None);
    let actions: Vec<Value> =
        of_kind(&daemon, "control.applied").await.iter().map(|applied| applied["action"].clone()).collect();
    assert_eq!(json!(actions), json!(["start", "stop", "start", "stop"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_during_a_model_call_ends_it_and_keeps_what_waits() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let (message, exec) = begin(&daemon, "hold on").await;
    daemon.say("a", "later").await;
    let running = daemon.summary("a").await;
    assert_eq!(
        (&running["agent"]["status"], &running["agent"]["current_run_id"]),
        (&json!("awake_running"), &json!(exec))
    );
    let stopped = stop(&daemon).await;
    assert_eq!((&stopped["agent"]["status"], &stopped["agent"]["current_run_id"]), (&json!("stopped"), &Value::Null));
    assert_eq!(stopped["agent"]["pending"], 2);
    let aborted = of_kind(&daemon, "exec.aborted").await;
    assert_eq!((&aborted[0]["exec_id"], &aborted[0]["reason"]), (&json!(exec), &json!("stop")));
    let applied = of_kind(&daemon, "control.applied").await.pop().unwrap();
    assert_eq!((&applied["action"], &applied["exec_id"]), (&json!("stop"), &json!(exec)));
    assert_eq!((&applied["previous_status"], &applied["next_status"]), (&json!("awake_running"), &json!("stopped")));
    assert_eq!(of_kind(&daemon, "control.admitted").await.pop().unwrap()["previous_status"], "awake_running");
    let messages = daemon.items("/v1/agents/a/messages").await;
    assert_eq!((&messages[0]["message_id"], &messages[0]["status"]), (&json!(message), &json!("queued")));
    assert_eq!(messages[1]["status"], "queued");

    // The execution is over, its message is not: after the start it has another one, and goes first.
    daemon.hands.let_go();
    start(&daemon).await;
    let last = messages[1]["message_id"].clone();
    daemon.event("a", "message.processed", |data| data["message_id"] == last).await;
    let turns = of_kind(&daemon, "turn.started").await;
    let worked: Vec<&Value> = turns.iter().map(|turn| &turn["message_id"]).collect();
    assert_eq!(worked, [&json!(message), &json!(message), &last]);
    let said = daemon.items("/v1/agents/a/transcript").await;
    assert!(said.iter().all(|entry| entry["role"] != "assistant" || entry["exec_id"] != exec.as_str()), "{said:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_ends_one_execution_and_the_agent_goes_on() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.post("/v1/agents/a/abort", json!({})).await.refused(409, "no_turn");
    let client = daemon.client();
    let (message, exec) = begin(&daemon, "hold").await;
    let stale = daemon.post("/v1/agents/a/abort", json!({ "exec_id": "exec_gone" })).await;
    let problem = stale.refused(409, "stale_exec");
    assert!(problem["detail"].as_str().unwrap().contains(&exec), "{problem}");
    let aborted = client.abort("a", &Abort { exec_id: Some(exec.clone()) }).await.unwrap();
    assert_eq!((aborted.agent.current_run_id, aborted.agent.pending), (None, 0));
    assert_ne!(aborted.agent.status.as_str(), "stopped");
    let fact = of_kind(&daemon, "exec.aborted").await.pop().unwrap();
    assert_eq!(
        (&fact["exec_id"], &fact["message_id"], &fact["reason"]),
        (&json!(exec), &json!(message), &json!("abort"))
    );
    daemon.post("/v1/agents/a/abort", json!({ "exec_id": exec })).await.refused(409, "no_turn");
    daemon.finish("a", "go on").await;

    // Without a name, the running turn is meant; no body is as good as an empty one.
    begin(&daemon, "hold again").await;
    daemon.ask(Ask::post("/v1/agents/a/abort")).await.is(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_sleeps_and_blank_hints() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.finish("a", "sleep").await;
    let asleep = daemon.summary("a").await;
    assert!(asleep["agent"]["sleeping_until"].is_string(), "{asleep}");
    assert_eq!(asleep["active_waiting_intents"].as_array().unwrap().len(), 1);
    let stopped = stop(&daemon).await;
    assert_eq!(stopped["agent"]["sleeping_until"], Value::Null);
    assert_eq!((&stopped["active_waiting_intents"], &stopped["active_timers"]), (&json!([]), &json!([])));
    let waits = daemon.items("/v1/agents/a/waits").await;
    assert_eq!((&waits[0]["kind"], &waits[0]["status"]), (&json!("sleep"), &json!("cancelled")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_releases_the_workspace() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    // With a command that runs, the folder is held past the turn.
    daemon.finish("a", "run").await;
    daemon.finish("a", "occupy").await;
    assert_eq!(daemon.summary("a").await["execution"]["occupied"], "/somewhere");
    stop(&daemon).await;
    let applied = of_kind(&daemon, "control.applied").await.pop().unwrap();
    assert_eq!(applied["workspace"], "/somewhere");
    daemon.event("a", "workspace.released", |data| data["workspace"] == "/somewhere").await;
    assert_eq!(daemon.summary("a").await["execution"]["occupied"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ends_after_the_stop_is_evidence_and_starts_nothing() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.finish("a", "run").await;
    let task = daemon.items("/v1/agents/a/tasks").await.pop().unwrap();
    assert_eq!((&task["kind"], &task["status"]), (&json!("command_task"), &json!("running")));
    stop(&daemon).await;
    let applied = of_kind(&daemon, "control.applied").await.pop().unwrap();
    assert_eq!(applied["task_ids"], json!([task["task_id"]]));
    assert_eq!(of_kind(&daemon, "task.cancelling").await[0]["task_id"], task["task_id"]);
    daemon.delete("/v1/agents/a").await.refused(409, "tasks_open");
    daemon.hands.let_go();
    daemon.event("a", "task.completed", |data| data["task_id"] == task["task_id"]).await;
    let summary = daemon.summary("a").await;
    assert_eq!((&summary["agent"]["status"], &summary["agent"]["turn_index"]), (&json!("stopped"), &json!(1)));
    let ended = daemon.items("/v1/agents/a/tasks").await.pop().unwrap();
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("completed"), &json!(0)));
    // Its result is owed, and told after the next start.
    assert_eq!(summary["owed_results"][0]["task_id"], task["task_id"]);
    start(&daemon).await;
    daemon.event("a", "task.result_delivered", |data| data["task_id"] == task["task_id"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_a_restart_cut_is_run_again() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let (message, exec) = begin(&daemon, "hold").await;
    let daemon = daemon.restart().await;
    daemon.hands.let_go();
    daemon.event("a", "message.processed", |data| data["message_id"] == message.as_str()).await;
    let aborted = of_kind(&daemon, "exec.aborted").await;
    assert_eq!(aborted[0]["exec_id"], exec.as_str());
    assert_eq!(of_kind(&daemon, "turn.started").await.len(), 2);
    let boundaries: Vec<Value> =
        of_kind(&daemon, "control.applied").await.iter().map(|applied| applied["boundary"].clone()).collect();
    assert_eq!(json!(boundaries), json!(["bootstrap", "shutdown", "bootstrap"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_agent_stays_stopped_over_a_restart() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    daemon.say("a", "kept").await;
    let before = daemon.events("a").await;
    let daemon = daemon.restart().await;
    assert_eq!(daemon.summary("a").await["agent"]["status"], "stopped");
    assert_eq!(daemon.events("a").await, before);
    start(&daemon).await;
    daemon.event("a", "message.processed", |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_to_a_running_turn_wait_for_it_and_interjections_join_it() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let (first, exec) = begin(&daemon, "hold this").await;
    let second = daemon.say("a", "second").await;
    let interject = json!({ "text": "and this", "priority": "interject" });
    let joined = daemon.post("/v1/agents/a/messages", interject).await.is(202)["message_id"].clone();
    assert_eq!(daemon.summary("a").await["agent"]["pending"], 3);
    daemon.hands.let_go();
    daemon.event("a", "message.processed", |data| data["message_id"] == second.as_str()).await;
    let interjected = of_kind(&daemon, "message.interjected").await;
    assert_eq!((&interjected[0]["message_id"], &interjected[0]["exec_id"]), (&joined, &json!(exec)));
    let turns: Vec<Value> =
        of_kind(&daemon, "turn.started").await.iter().map(|turn| turn["message_id"].clone()).collect();
    assert_eq!(json!(turns), json!([first, second]));
    let said = daemon.items("/v1/agents/a/transcript").await;
    assert!(
        said.iter().any(|entry| entry["role"] == "assistant" && entry["text"] == "hold this\nand this"),
        "{said:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_first_is_what_matters_most() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let mut ids = Vec::new();
    for priority in ["background", "normal", "next", "normal"] {
        let message = json!({ "text": priority, "priority": priority });
        ids.push(daemon.post("/v1/agents/a/messages", message).await.is(202)["message_id"].clone());
    }
    start(&daemon).await;
    let last = ids[0].clone();
    daemon.event("a", "message.processed", |data| data["message_id"] == last).await;
    let turns: Vec<Value> =
        of_kind(&daemon, "turn.started").await.iter().map(|turn| turn["message_id"].clone()).collect();
    assert_eq!(turns, [ids[2].clone(), ids[1].clone(), ids[3].clone(), ids[0].clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_call_that_crashes_fails_its_turn_and_no_other() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let message = daemon.say("a", "panic").await;
    let failed = daemon.event("a", "turn.provider_round_failed", |_| true).await;
    assert!(failed["data"]["message"].as_str().unwrap().contains("crashed"), "{failed}");
    daemon.event("a", "turn.terminal", |_| true).await;
    let brief = daemon.event("a", "brief.recorded", |data| data["message_id"] == message.as_str()).await;
    assert_eq!(brief["data"]["kind"], "failure");
    daemon.create("b").await;
    daemon.finish("b", "unharmed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_keeps_crashing_is_quarantined_and_the_others_live() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    daemon.create("b").await;
    daemon.say("a", "crash").await;
    daemon.event("a", "agent.quarantined", |_| true).await;
    daemon.finish("b", "unharmed").await;
    let why = daemon.get("/v1/agents/a/why").await;
    assert_eq!((&why["status"], &why["decision"]["reason"]), (&json!("stopped"), &json!("quarantined")));
    // Tried again, it does not run into the same: the message is given up, and its operator asked.
    start(&daemon).await;
    daemon.event("a", "brief.recorded", |data| data["kind"] == "failure").await;
    daemon.finish("a", "better now").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_says_what_became_of_it() {
    let daemon = Daemon::start().await;
    let client = daemon.client();
    daemon.create_stopped("a").await;
    let wake = Wake { reason: "look".to_owned(), source: Some("ci".to_owned()), ..Wake::default() };
    let woken = client.wake("a", &wake).await.unwrap();
    assert_eq!(woken.disposition, "ignored");
    start(&daemon).await;
    daemon.event("a", "posture.changed", |data| data["next_status"] == "asleep").await;
    assert_eq!(client.wake("a", &wake).await.unwrap().disposition, "triggered");
    daemon.event("a", "wake_hint.submitted", |data| data["source"] == "ci").await;
    let (_, exec) = begin(&daemon, "hold").await;
    let woken =
        daemon.post("/v1/agents/a/wake", json!({ "reason": "again", "body": "the build is red" })).await.is(200);
    assert_eq!(woken["disposition"], "coalesced");
    client.abort("a", &Abort { exec_id: Some(exec) }).await.unwrap();
    // A hint with something in it becomes a turn of its own.
    daemon.event("a", "message.queued", |data| data.to_string().contains("the build is red")).await;
    let long = json!({ "reason": "x".repeat(5_000) });
    daemon.post("/v1/agents/a/wake", long).await.refused(413, "wake_too_large");
    daemon.post("/v1/agents/nobody/wake", json!({ "reason": "x" })).await.refused(404, "not_found");
}
