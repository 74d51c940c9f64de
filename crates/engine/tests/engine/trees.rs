//! Trees of agents in the host: how many there may be, what a stop above them ends, and in which order children are made
//! and dismissed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abide_engine::{Clock, Host, HostOptions, Perform};
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{Effect, TurnEffect, WorkspaceEffect};
use abide_kernel::fact::{Fact, WorkspaceAttached, Worktree};
use abide_kernel::id::{AgentId, CallId, TaskId};
use abide_kernel::input::{Input, Refusal, Removal, Reply};
use abide_kernel::time::Time;
use abide_kernel::tool::{Call, ExecutorCall, ReadSkill, RecordCall, ToolCall};
use abide_kernel::vocabulary::{ChildWorkspace, WaitKind, WorkspaceMode};
use abide_ledger::{Ledger, Memory, StreamId};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{facts, id, kinds, noon, say};

/// Models that do what their message says: `spawn N: MESSAGE`, `branch N: MESSAGE` (each in a worktree), `ponder N:
/// MESSAGE` (spawns when it is let), `think` until it is let and call a tool, `nap` for a minute, `crash` the loop. Others
/// say something, and are done.
#[derive(Debug, Clone)]
struct Troupe {
    thoughts: Arc<Semaphore>,
    worktrees: Arc<Semaphore>,
    /// The worktrees that there are.
    there: Arc<Mutex<BTreeSet<String>>>,
    /// The tools that were run, by agent.
    ran: Arc<Mutex<Vec<AgentId>>>,
}

impl Troupe {
    fn new() -> Troupe {
        Troupe {
            thoughts: Arc::new(Semaphore::new(0)),
            worktrees: Arc::new(Semaphore::new(0)),
            there: Arc::default(),
            ran: Arc::default(),
        }
    }

    fn host(&self, ledger: &Ledger, now: Time, tree_agents: u32) -> Host {
        let (perform, clock) = (Arc::new(self.clone()), Clock::simulated(now, 7));
        Host::start_with(ledger.clone(), perform, clock, HostOptions { tree_agents }).unwrap()
    }
}

fn call(number: usize, tool: &str, parsed: ToolCall) -> Call {
    Call {
        call_id: CallId::new(format!("call_{number}")),
        tool: tool.to_owned(),
        input: Value::from(number).into(),
        parsed,
    }
}

fn wait(wake: WaitKind, after_ms: Option<u64>) -> ToolCall {
    ToolCall::Record(RecordCall::WaitFor {
        wake,
        resource: None,
        after_ms,
        work_item_id: None,
        reason: "it".to_owned(),
    })
}

/// A call that runs outside.
fn look() -> ToolCall {
    ToolCall::Executor(ExecutorCall::ReadSkill(ReadSkill {
        skill: "look".to_owned(),
        path: None,
        offset: None,
        limit: 1,
    }))
}

fn reply(text: &str, round: u32) -> Reply {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let calls = match (verb, round) {
        ("spawn" | "branch" | "ponder", 1) => {
            let (count, message) = rest.split_once(": ").unwrap();
            let workspace_mode = if verb == "branch" { ChildWorkspace::Worktree } else { ChildWorkspace::Inherit };
            let message = message.to_owned();
            let act =
                RecordCall::SpawnChild { message, workspace_mode, model: None, instructions: None, work_item_id: None };
            (0..count.parse().unwrap())
                .map(|number| call(number, "SpawnAgent", ToolCall::Record(act.clone())))
                .collect()
        }
        ("spawn" | "branch" | "ponder", _) => vec![call(100, "WaitFor", wait(WaitKind::Task, None))],
        ("nap", _) => vec![call(100, "WaitFor", wait(WaitKind::Timer, Some(60_000)))],
        ("think", 1) => vec![call(100, "ClockReading", look())],
        _ => Vec::new(),
    };
    Reply { text: "Said.".to_owned(), calls, ..Reply::default() }
}

impl Perform for Troupe {
    fn perform(&self, agent: &AgentId, effect: Effect) -> Option<BoxFuture<'static, Vec<Input>>> {
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, call }) => {
                let text = call.message.text.clone().unwrap_or_default();
                assert!(text != "crash", "as it was told");
                let thoughts = Arc::clone(&self.thoughts);
                Some(Box::pin(async move {
                    if round == 1 && (text.starts_with("think") || text.starts_with("ponder")) {
                        thoughts.acquire().await.unwrap().forget();
                    }
                    vec![Input::FinishRound { exec_id, round, reply: reply(&text, round) }]
                }))
            }
            Effect::Turn(TurnEffect::RunTool { exec_id, call_id, .. }) => {
                self.ran.lock().unwrap().push(agent.clone());
                let status = abide_kernel::vocabulary::ToolStatus::Completed;
                let result = json!({ "seen": true }).into();
                Some(Box::pin(async move { vec![Input::FinishTool { exec_id, call_id, status, result, reads: None }] }))
            }
            Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }) => {
                self.there.lock().unwrap().remove(&workspace.root);
                let removal = Ok(Removal::default());
                Some(Box::pin(async move { vec![Input::FinishRemoval { root: workspace.root, removal }] }))
            }
            Effect::Workspace(WorkspaceEffect::Release { workspace, action }) => {
                Some(Box::pin(async move { vec![Input::ReleaseWorkspace { workspace, action, error: None }] }))
            }
            _ => None,
        }
    }

    fn worktree(&self, agent: &AgentId, folder: String) -> BoxFuture<'static, Result<WorkspaceAttached, Refusal>> {
        let (allowed, there) = (Arc::clone(&self.worktrees), Arc::clone(&self.there));
        let root = format!("/worktrees/{agent}");
        Box::pin(async move {
            allowed.acquire().await.unwrap().forget();
            there.lock().unwrap().insert(root.clone());
            let worktree = Worktree { branch: "abide".into(), base_commit: "c0".into(), repo: folder.clone() };
            let (mode, worktree) = (WorkspaceMode::Worktree, Some(worktree));
            Ok(WorkspaceAttached { workspace: folder, root, mode, worktree, note: None })
        })
    }
}

async fn create_lead(host: &Host) {
    let config = Config { workspace: Some("/work".to_owned()), ..Config::default() };
    host.ask(&id("lead"), Input::Create { identity: Identity::named(id("lead")), config, start: true }).await.unwrap();
}

/// Long enough for everything that needs no time, and too short for what does.
async fn pass() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

/// The tasks of its children, oldest first.
fn child_tasks(ledger: &Ledger, agent: &str) -> Vec<TaskId> {
    let created = facts(ledger, agent).into_iter().filter_map(|fact| match fact {
        Fact::TaskCreated(task) => Some(task.task_id),
        _ => None,
    });
    created.collect()
}

/// The names of all agents but the first that are not archived.
fn made(ledger: &Ledger) -> Vec<String> {
    let streams = ledger.streams(None, 10_000).unwrap();
    let names = streams.iter().filter_map(|(stream, _)| stream.agent_name()).filter(|name| *name != "lead");
    let there = names.filter(|name| !kinds(ledger, name).contains(&"agent.archived"));
    there.map(str::to_owned).collect()
}

fn count(ledger: &Ledger, agent: &str, kind: &str) -> usize {
    kinds(ledger, agent).iter().filter(|known| **known == kind).count()
}

/// The codes of refused calls that make children.
fn refusals(ledger: &Ledger, agent: &str) -> Vec<String> {
    let results = facts(ledger, agent).into_iter().filter_map(|fact| match fact {
        Fact::ToolFinished(tool) if tool.tool == "SpawnAgent" => Some(tool.result),
        _ => None,
    });
    results.filter_map(|result| Some(result["error"]["code"].as_str()?.to_owned())).collect()
}

async fn stop_task(host: &Host, agent: &str, task_id: TaskId) {
    let act = RecordCall::StopTask { task_id };
    host.ask(&id(agent), Input::Act { by: "somebody".to_owned(), act }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_in_line_is_not_made_when_it_is_dismissed() {
    let (ledger, troupe) = (Ledger::memory(), Troupe::new());
    let host = troupe.host(&ledger, noon(), 256);
    create_lead(&host).await;
    say(&host, "lead", "branch 3: nap").await.unwrap();
    pass().await;
    let tasks = child_tasks(&ledger, "lead");
    assert_eq!((tasks.len(), made(&ledger).len()), (3, 0), "the first of them is being made");
    stop_task(&host, "lead", tasks[2].clone()).await;
    pass().await;
    let is_over = |fact: &Fact| matches!(fact, Fact::TaskCancelled(task) if task.end.task_id == tasks[2]);
    assert!(facts(&ledger, "lead").iter().any(is_over), "its dismissal waits for no other child");
    // The second is withdrawn too, and its place in the line holds up nobody.
    stop_task(&host, "lead", tasks[1].clone()).await;
    troupe.worktrees.add_permits(3);
    pass().await;
    assert_eq!(made(&ledger), ["lead.1"]);
    assert_eq!(troupe.there.lock().unwrap().len(), 1);
    assert!(ledger.head(&StreamId::agent(&id("lead.3"))).unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_dismissed_while_it_is_made_does_not_come_to_be() {
    let (ledger, troupe) = (Ledger::memory(), Troupe::new());
    let host = troupe.host(&ledger, noon(), 256);
    create_lead(&host).await;
    say(&host, "lead", "branch 1: nap").await.unwrap();
    pass().await;
    host.ask(&id("lead"), Input::Stop).await.unwrap();
    pass().await;
    // A second dismissal waits for the making as the first one does.
    stop_task(&host, "lead", child_tasks(&ledger, "lead").remove(0)).await;
    pass().await;
    assert_eq!(count(&ledger, "lead", "task.cancelled"), 0, "it is still being made");
    troupe.worktrees.add_permits(1);
    pass().await;
    assert!(ledger.head(&StreamId::agent(&id("lead.1"))).unwrap().is_none());
    assert_eq!(count(&ledger, "lead", "task.cancelled"), 1);
    assert!(troupe.there.lock().unwrap().is_empty(), "its worktree goes");
}

/// Makes all written facts durable.
async fn sync(memory: &Memory) {
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        memory.sync();
    }
}

/// An agent with a child with a child, which does this. All commits so far are durable.
async fn three_levels(memory: &Memory, troupe: &Troupe, message: &str) -> Host {
    let host = troupe.host(&Ledger::Memory(memory.clone()), noon(), 256);
    tokio::join!(create_lead(&host), sync(memory));
    let text = format!("spawn 1: spawn 1: {message}");
    let (said, ()) = tokio::join!(say(&host, "lead", &text), sync(memory));
    said.unwrap();
    host
}

/// Stops the agent at the top; the stop is on its way to the disk, and nothing else.
async fn begin_stop(host: &Host, memory: &Memory) -> tokio::task::JoinHandle<()> {
    let host = host.clone();
    let stopped = tokio::spawn(async move { drop(host.ask(&id("lead"), Input::Stop).await.unwrap()) });
    pass().await;
    assert_eq!(memory.staged(), 1, "the stop");
    stopped
}

/// The commit of a stop takes its time. Whatever is decided below meanwhile would have a later time than the stop.
#[tokio::test(start_paused = true)]
async fn nothing_is_decided_below_an_agent_while_its_stop_is_recorded() {
    let (memory, troupe) = (Memory::with_manual_sync(), Troupe::new());
    let ledger = Ledger::Memory(memory.clone());
    let host = three_levels(&memory, &troupe, "think").await;
    assert_eq!(count(&ledger, "lead.1.1", "turn.round_started"), 1, "{:?}", made(&ledger));
    let stopped = begin_stop(&host, &memory).await;
    troupe.thoughts.add_permits(1);
    pass().await;
    assert_eq!(memory.staged(), 1, "the answer of the model waits");
    sync(&memory).await;
    stopped.await.unwrap();
    assert_eq!(made(&ledger), Vec::<String>::new());
    assert_eq!(count(&ledger, "lead.1.1", "tool.started"), 0, "{:?}", kinds(&ledger, "lead.1.1"));
    assert_eq!(*troupe.ran.lock().unwrap(), []);
}

/// A round was recorded before the stop, and is durable after it: its tool is not run.
#[tokio::test(start_paused = true)]
async fn an_effect_that_was_decided_before_a_stop_is_not_begun_after_it() {
    let (memory, troupe) = (Memory::with_manual_sync(), Troupe::new());
    let ledger = Ledger::Memory(memory.clone());
    let host = three_levels(&memory, &troupe, "think").await;
    troupe.thoughts.add_permits(1);
    pass().await;
    assert_eq!(memory.staged(), 1, "the round");
    let stopped = tokio::spawn(async move { drop(host.ask(&id("lead"), Input::Stop).await.unwrap()) });
    pass().await;
    assert_eq!(memory.staged(), 2, "the round, and the stop");
    sync(&memory).await;
    stopped.await.unwrap();
    assert_eq!(count(&ledger, "lead.1.1", "tool.started"), 1);
    assert_eq!(*troupe.ran.lock().unwrap(), []);
    assert_eq!(made(&ledger), Vec::<String>::new());
}

/// The process dies when the stop is durable and nothing else; when the next one begins, a timer below is due.
#[tokio::test(start_paused = true)]
async fn a_stop_holds_below_in_the_next_process_too() {
    let (memory, troupe) = (Memory::with_manual_sync(), Troupe::new());
    let host = three_levels(&memory, &troupe, "nap").await;
    let _stopped = begin_stop(&host, &memory).await;
    memory.sync();
    let memory = memory.crash();
    let ledger = Ledger::Memory(memory.clone());
    assert_eq!(made(&ledger), ["lead.1", "lead.1.1"]);
    assert_eq!(count(&ledger, "lead", "task.cancelling"), 1);
    assert_eq!(count(&ledger, "lead.1", "child.leaving"), 0, "nobody was told yet");
    let turns = |name| count(&ledger, name, "turn.started");
    let before = (turns("lead.1"), turns("lead.1.1"));
    let next = troupe.host(&ledger, noon().plus_ms(120_000), 256);
    // Started again at once, it gets its children back in no way.
    let started = async { next.ask(&id("lead"), Input::Start).await.unwrap() };
    tokio::join!(started, sync(&memory));
    sync(&memory).await;
    assert_eq!(made(&ledger), Vec::<String>::new());
    assert_eq!((turns("lead.1"), turns("lead.1.1")), before, "{:?}", kinds(&ledger, "lead.1.1"));
}

#[tokio::test(start_paused = true)]
async fn children_of_an_agent_that_is_quarantined_are_dismissed() {
    let (ledger, troupe) = (Ledger::memory(), Troupe::new());
    let host = troupe.host(&ledger, noon(), 256);
    create_lead(&host).await;
    say(&host, "lead", "spawn 2: spawn 1: think").await.unwrap();
    pass().await;
    assert_eq!(made(&ledger).len(), 4);
    say(&host, "lead", "crash").await.unwrap();
    pass().await;
    assert_eq!(count(&ledger, "lead", "agent.quarantined"), 1, "{:?}", kinds(&ledger, "lead"));
    assert_eq!(made(&ledger), Vec::<String>::new());
    assert_eq!(*troupe.ran.lock().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_tree_has_no_more_agents_than_the_settings_allow() {
    let (memory, troupe) = (Memory::new(), Troupe::new());
    let ledger = Ledger::Memory(memory.clone());
    let host = troupe.host(&ledger, noon(), 3);
    create_lead(&host).await;
    say(&host, "lead", "spawn 5: nap").await.unwrap();
    pass().await;
    assert_eq!(made(&ledger), ["lead.1", "lead.2", "lead.3"]);
    assert_eq!(refusals(&ledger, "lead"), ["tree_full"; 2], "the call says so");
    // A place is given back when its agent is archived.
    stop_task(&host, "lead", child_tasks(&ledger, "lead")[0].clone()).await;
    pass().await;
    say(&host, "lead", "spawn 2: nap").await.unwrap();
    pass().await;
    assert_eq!(made(&ledger), ["lead.2", "lead.3", "lead.4"]);
    assert_eq!(refusals(&ledger, "lead").len(), 3);
    // A new process counts the same.
    let ledger = Ledger::Memory(memory.crash());
    let next = troupe.host(&ledger, noon().plus_ms(20_000), 3);
    say(&next, "lead", "spawn 2: nap").await.unwrap();
    pass().await;
    assert_eq!(made(&ledger), ["lead.2", "lead.3", "lead.4"]);
    assert_eq!(refusals(&ledger, "lead").len(), 5);
}

/// None of what they ask for is durable when the last of them asks, and yet no two of them are given the same place.
#[tokio::test(start_paused = true)]
async fn agents_that_make_children_at_the_same_time_do_not_pass_the_bound() {
    let (memory, troupe) = (Memory::with_manual_sync(), Troupe::new());
    let ledger = Ledger::Memory(memory.clone());
    let host = troupe.host(&ledger, noon(), 10);
    tokio::join!(create_lead(&host), sync(&memory));
    let (said, ()) = tokio::join!(say(&host, "lead", "spawn 4: ponder 5: nap"), sync(&memory));
    said.unwrap();
    troupe.thoughts.add_permits(4);
    pass().await;
    assert_eq!(memory.staged(), 4, "all of them have answered, and nothing of it is durable");
    sync(&memory).await;
    let parents: Vec<String> = (1..=4).map(|number| format!("lead.{number}")).collect();
    let refused: usize = parents.iter().map(|name| refusals(&ledger, name).len()).sum();
    let failed: usize = parents.iter().map(|name| count(&ledger, name, "task.failed")).sum();
    assert_eq!((refused, failed), (14, 0), "their calls say so");
    let ever = ledger.streams(None, 10_000).unwrap().len() - 1;
    assert_eq!(ever, 10);
}

/// The count is repeated when a child is made: the tasks are of an earlier process, to which the settings allowed more.
#[tokio::test(start_paused = true)]
async fn a_child_for_which_there_is_no_room_when_it_is_made_is_a_failed_task() {
    let (memory, troupe) = (Memory::with_manual_sync(), Troupe::new());
    let host = troupe.host(&Ledger::Memory(memory.clone()), noon(), 10);
    tokio::join!(create_lead(&host), sync(&memory));
    let (said, ()) = tokio::join!(say(&host, "lead", "ponder 5: nap"), sync(&memory));
    said.unwrap();
    troupe.thoughts.add_permits(1);
    pass().await;
    assert_eq!(memory.sync(), 1, "its tasks");
    let memory = memory.crash();
    let ledger = Ledger::Memory(memory.clone());
    assert_eq!((child_tasks(&ledger, "lead").len(), made(&ledger).len()), (5, 0));
    let _next = troupe.host(&ledger, noon().plus_ms(1_000), 2);
    sync(&memory).await;
    assert_eq!((made(&ledger).len(), count(&ledger, "lead", "task.failed")), (2, 3));
    let why = facts(&ledger, "lead").into_iter().find_map(|fact| match fact {
        Fact::TaskFailed(task) => Some(task.end.output_tail),
        _ => None,
    });
    assert!(why.as_ref().is_some_and(|why| why.contains("tree_agents")), "{why:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_nothing_is_counted() {
    let (ledger, troupe) = (Ledger::memory(), Troupe::new());
    let host = troupe.host(&ledger, noon(), 0);
    create_lead(&host).await;
    say(&host, "lead", "spawn 32: nap").await.unwrap();
    pass().await;
    assert_eq!((made(&ledger).len(), refusals(&ledger, "lead").len()), (32, 0));
}
