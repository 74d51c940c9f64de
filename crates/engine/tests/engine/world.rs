//! A world for the host: a ledger, a clock, and a model that does what the test says.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abide_engine::{AskError, Clock, Host, Perform, Response};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{CommandEffect, Effect, TurnEffect};
use abide_kernel::fact::{Fact, TaskEnd};
use abide_kernel::id::{AgentId, ExecId, MessageId, Seq};
use abide_kernel::input::{Answer, BootContext, Input, NewMessage, Reply};
use abide_kernel::provider::NO_JITTER;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{ProviderError, TaskStatus};
use abide_ledger::{Ledger, StreamId};

/// How the model behaves, by what it is told.
#[derive(Debug, Default)]
pub struct Mind {
    pub calls: AtomicUsize,
    /// How often it was asked what is left of an agent.
    pub looked: AtomicUsize,
    /// Signals and effects, in their order.
    pub heard: Mutex<Vec<Heard>>,
    /// Its key is refused.
    pub refused: AtomicBool,
    /// Agents whose turns it holds.
    pub held: Mutex<HashSet<AgentId>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Recorded(Seq, Fact),
    CallModel,
}

impl Perform for Mind {
    fn perform(&self, _: &AgentId, effect: Effect) -> Option<futures_util::future::BoxFuture<'static, Vec<Input>>> {
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, call }) => {
                self.calls.fetch_add(1, Ordering::SeqCst);
                self.heard.lock().unwrap().push(Heard::CallModel);
                let text = call.message.text.clone().unwrap_or_default();
                assert!(text != "crash the loop", "as it was told");
                if self.refused.load(Ordering::SeqCst) {
                    return Some(Box::pin(async move { vec![refused(exec_id, round)] }));
                }
                Some(Box::pin(async move {
                    match text.as_str() {
                        "never answer" => std::future::pending().await,
                        "crash the call" => panic!("as it was told"),
                        "take a minute" => tokio::time::sleep(Duration::from_secs(60)).await,
                        _ => {}
                    }
                    vec![Input::FinishRound { exec_id, round, reply: Reply { text, ..Reply::default() } }]
                }))
            }
            Effect::Command(CommandEffect::End { task_id, .. }) => {
                let end = TaskEnd { task_id, ..TaskEnd::default() };
                Some(Box::pin(async move { vec![Input::EndTask { status: TaskStatus::Cancelled, end }] }))
            }
            Effect::Turn(TurnEffect::RunTool { .. } | TurnEffect::AnswerCall { .. } | TurnEffect::EndExec { .. })
            | Effect::Command(
                CommandEffect::Start { .. } | CommandEffect::Await { .. } | CommandEffect::Close { .. },
            )
            | Effect::Workspace(_)
            | Effect::Child(_)
            | Effect::TimerCheck(_)
            | Effect::Trigger(_) => None,
        }
    }

    fn recorded(&self, agent: &AgentId, facts: Vec<(Seq, Time, Fact)>) {
        for (_, _, fact) in &facts {
            match fact {
                Fact::TurnsHeld(_) => drop(self.held.lock().unwrap().insert(agent.clone())),
                Fact::TurnsReleased(_) => drop(self.held.lock().unwrap().remove(agent)),
                _ => {}
            }
        }
        let facts = facts.into_iter().map(|(seq, _, fact)| Heard::Recorded(seq, fact));
        self.heard.lock().unwrap().extend(facts);
    }

    fn boot_context(&self, agent: &AgentId) -> BootContext {
        self.looked.fetch_add(1, Ordering::SeqCst);
        BootContext { holds_turns: self.held.lock().unwrap().contains(agent), ..BootContext::default() }
    }
}

fn refused(exec_id: ExecId, round: u32) -> Input {
    Input::FailRound {
        exec_id,
        round,
        error: ProviderError::Auth,
        retry_after_ms: None,
        message: "no".to_owned(),
        carry: None,
        jitter: NO_JITTER,
        spent: None,
        announce: true,
    }
}

pub fn id(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

pub fn noon() -> Time {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub fn host(ledger: &Ledger) -> Host {
    host_at(ledger, noon())
}

pub fn host_at(ledger: &Ledger, now: Time) -> Host {
    Host::start(ledger.clone(), Arc::new(Mind::default()), Clock::simulated(now, 7)).unwrap()
}

pub async fn create(host: &Host, name: &str) {
    let input = Input::Create { identity: Identity::named(id(name)), config: Config::default(), start: true };
    host.ask(&id(name), input).await.unwrap();
}

pub async fn say(host: &Host, name: &str, text: &str) -> Result<MessageId, AskError> {
    let message = NewMessage { text: Some(text.to_owned()), ..NewMessage::default() };
    match host.ask(&id(name), Input::Queue(message)).await? {
        Response { answer: Answer::Queued { message_id }, .. } => Ok(message_id),
        other => panic!("a message was answered with {other:?}"),
    }
}

/// Every fact of an agent.
pub fn facts(ledger: &Ledger, name: &str) -> Vec<Fact> {
    let stream = StreamId::agent(&id(name));
    let recorded = ledger.read(&stream, 0, usize::MAX).unwrap();
    recorded.iter().map(|recorded| abide_engine::fold::decode::<AgentState>(&stream, recorded).unwrap()).collect()
}

pub fn kinds(ledger: &Ledger, name: &str) -> Vec<&'static str> {
    facts(ledger, name).iter().map(Fact::kind).collect()
}

/// The notices to the operator, in order.
pub fn briefs(ledger: &Ledger, name: &str) -> Vec<String> {
    let text = |fact: Fact| match fact {
        Fact::BriefRecorded(brief) => Some(brief.text),
        _ => None,
    };
    facts(ledger, name).into_iter().filter_map(text).collect()
}

/// Until nobody is awake: in simulated time this takes as long as it takes.
pub async fn all_asleep(host: &Host) {
    while host.awake() > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
