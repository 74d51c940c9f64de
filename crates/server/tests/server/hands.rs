//! The services of these tests: a `Perform` that does what the text of a message says. Only this is faked; everything
//! between it and the wire is ours.

use std::sync::{Condvar, Mutex};

use abide_engine::{Deltas, Perform};
use abide_kernel::effect::{CommandEffect, Effect, ModelCall, TurnEffect, WorkspaceEffect};
use abide_kernel::fact::{TaskCreated, TaskEnd};
use abide_kernel::id::{AgentId, CallId, ExecId, TaskId};
use abide_kernel::input::{Input, Reply};
use abide_kernel::tool::{Call, RecordCall, ToolCall};
use abide_kernel::vocabulary::{
    ApprovalDefault, DeliveryMode, PlanStatus, TaskKind, TaskStatus, ToolStatus, WaitKind, WaitPolicy,
};
use tokio::sync::watch;

type Job = std::pin::Pin<Box<dyn Future<Output = Vec<Input>> + Send>>;

/// ToolCall what the first word of a message says; any other message is echoed.
///
/// - `hold`: the model answers when the test lets go
/// - `block`: the loop of the agent itself stands still until the test lets go
/// - `panic`: the model call panics
/// - `crash`: the loop of the agent panics
/// - `wait`, `sleep`, `ask`, `plan`, `tell`, `open`: the model changes its records, then says `done`
/// - `run`: a command is started, and ends when the test lets go
/// - `occupy`: a workspace is held
/// - `speak`: what follows is said word by word, and then answered
#[derive(Debug)]
pub struct Hands {
    pub deltas: Deltas,
    open: watch::Sender<bool>,
    blocked: Mutex<bool>,
    unblocked: Condvar,
}

impl Default for Hands {
    fn default() -> Hands {
        let open = watch::Sender::new(false);
        Hands { deltas: Deltas::default(), open, blocked: Mutex::new(true), unblocked: Condvar::new() }
    }
}

impl Hands {
    /// Everything that is held, and everything that would be, comes to its end.
    pub fn let_go(&self) {
        self.open.send_replace(true);
        *self.blocked.lock().unwrap() = false;
        self.unblocked.notify_all();
    }

    fn stand_still(&self) {
        // Only this agent stands still: what else its thread had to do goes to another.
        tokio::task::block_in_place(|| {
            let blocked = self.blocked.lock().unwrap();
            drop(self.unblocked.wait_while(blocked, |blocked| *blocked).unwrap());
        });
    }
}

impl Perform for Hands {
    fn perform(&self, agent: &AgentId, effect: Effect) -> Option<Job> {
        let mut open = self.open.subscribe();
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, call }) => {
                let word = first_word(&call);
                match word.as_str() {
                    "block" => self.stand_still(),
                    "crash" => panic!("the loop was told to crash"),
                    _ => {}
                }
                let (deltas, agent) = (self.deltas.clone(), agent.clone());
                Some(Box::pin(async move {
                    match word.as_str() {
                        "speak" => {
                            let said = text(&call);
                            for word in said.split_inclusive(' ') {
                                deltas.publish(&agent, &exec_id, round, word);
                                tokio::task::yield_now().await;
                            }
                        }
                        "hold" => {
                            open.wait_for(|open| *open).await.unwrap();
                        }
                        "panic" => panic!("the model was told to panic"),
                        _ => {}
                    }
                    answer(exec_id, round, &call, &word)
                }))
            }
            Effect::Turn(TurnEffect::RunTool { exec_id, call_id, .. }) => {
                let result = serde_json::json!({ "ok": true }).into();
                let finish = Input::FinishTool { exec_id, call_id, status: ToolStatus::Completed, result, reads: None };
                Some(Box::pin(async move { vec![finish] }))
            }
            Effect::Command(CommandEffect::Await { task_id }) => Some(Box::pin(async move {
                open.wait_for(|open| *open).await.unwrap();
                let output_tail = "all of its output".to_owned();
                let end = TaskEnd { task_id, exit_code: Some(0), output_tail, ..TaskEnd::default() };
                vec![Input::EndTask { status: TaskStatus::Completed, end }]
            })),
            Effect::Command(CommandEffect::End { .. }) => Some(Box::pin(async { Vec::new() })),
            Effect::Workspace(WorkspaceEffect::Release { workspace, action }) => {
                Some(Box::pin(async move { vec![Input::ReleaseWorkspace { workspace, action, error: None }] }))
            }
            Effect::Command(CommandEffect::Start { .. } | CommandEffect::Close { .. })
            | Effect::Turn(TurnEffect::AnswerCall { .. } | TurnEffect::EndExec { .. })
            | Effect::Workspace(WorkspaceEffect::RemoveWorktree { .. })
            | Effect::Child(_)
            | Effect::TimerCheck(_)
            | Effect::Trigger(_) => None,
        }
    }
}

fn text(call: &ModelCall) -> String {
    let texts = std::iter::once(&call.message).chain(&call.interjections);
    texts.filter_map(|message| message.text.clone()).collect::<Vec<_>>().join("\n")
}

fn first_word(call: &ModelCall) -> String {
    text(call).split_whitespace().next().unwrap_or_default().to_owned()
}

fn answer(exec_id: ExecId, round: u32, call: &ModelCall, word: &str) -> Vec<Input> {
    let act = (round == 1).then(|| act(word)).flatten();
    let calls = act.map(|(tool, act)| Call {
        call_id: CallId::new(format!("call_{exec_id}")),
        tool: tool.to_owned(),
        input: serde_json::json!({}).into(),
        parsed: ToolCall::Record(act),
    });
    let said = if act_of(word) { "done".to_owned() } else { text(call) };
    let reply = Reply { text: said, calls: calls.into_iter().collect(), ..Reply::default() };
    let mut inputs = Vec::new();
    if word == "run" && round == 1 {
        let task_id = TaskId::new(format!("task_{exec_id}"));
        inputs.push(Input::CreateTask(TaskCreated {
            task_id: task_id.clone(),
            task_kind: TaskKind::Command,
            wait_policy: WaitPolicy::Background,
            summary: "a long command".to_owned(),
            command: Some("sleep 1000".to_owned()),
            workdir: None,
            tty: false,
            accepts_input: false,
            work_item_id: None,
            child_agent_id: None,
            child: None,
            recovery: None,
            exec_id: Some(exec_id.clone()),
            call_id: Some(CallId::new("call_run")),
        }));
        inputs.push(Input::RunTask { task_id, recovery: None });
    }
    if word == "occupy" && round == 1 {
        inputs.push(Input::OccupyWorkspace { workspace: "/somewhere".to_owned() });
    }
    inputs.push(Input::FinishRound { exec_id, round, reply });
    inputs
}

fn act_of(word: &str) -> bool {
    act(word).is_some()
}

fn act(word: &str) -> Option<(&'static str, RecordCall)> {
    Some(match word {
        "wait" => {
            let resource = Some("order-7".to_owned());
            let reason = "the order comes".to_owned();
            let act =
                RecordCall::WaitFor { wake: WaitKind::External, resource, after_ms: None, work_item_id: None, reason };
            ("WaitFor", act)
        }
        "sleep" => ("Sleep", RecordCall::Sleep { reason: Some("tired".to_owned()), duration_ms: Some(3_600_000) }),
        "ask" => {
            let summary = "may I?".to_owned();
            let default = ApprovalDefault::Deny;
            (
                "RequestApproval",
                RecordCall::RequestApproval { summary, tool: None, deadline_ms: Some(3_600_000), default },
            )
        }
        "plan" => {
            let objective = "the big one".to_owned();
            let plan_status = Some(PlanStatus::NeedsInput);
            (
                "CreateWorkItem",
                RecordCall::CreateWorkItem { objective, plan: None, plan_status, todo: Vec::new(), budget: None },
            )
        }
        "tell" => ("NotifyOperator", RecordCall::NotifyOperator { text: "look at this".to_owned() }),
        "open" => {
            let (name, delivery_mode) = ("door".to_owned(), DeliveryMode::EnqueueMessage);
            (
                "CreateTrigger",
                RecordCall::CreateTrigger { name, delivery_mode, work_item_id: None, signed: false, address: None },
            )
        }
        _ => return None,
    })
}
