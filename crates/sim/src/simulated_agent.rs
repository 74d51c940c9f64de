//! One agent of a simulation, as an observer from outside sees it: the answers that it gave, its facts in the ledger,
//! and every rule that can be checked against both.

use std::collections::{BTreeMap, BTreeSet};

use abide_engine::Core;
use abide_kernel::effect::Effect;
use abide_kernel::fact::Fact;
use abide_kernel::id::{AgentId, CallId, MessageId, Seq, TaskId};
use abide_kernel::invariants::{self, Change};
use abide_kernel::limits;
use abide_kernel::read_rows::{AGENT_PLANE, rows_of};
use abide_kernel::scheduler::closure::compute_closure;
use abide_kernel::scheduler::posture::compute_posture;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{AbortReason, DecisionKind, RequeueReason};
use abide_kernel::{AgentState, decide};

use crate::model::Model;

#[derive(Debug)]
pub struct SimulatedAgent {
    pub id: AgentId,
    /// None while it is asleep in the ledger, or its process is dead.
    pub core: Option<Core>,
    /// The fold of what is durable, one fact at a time.
    pub shadow: AgentState,
    pub model: Model,
    /// Effects that the world has not reported on yet.
    pub effects: Vec<Effect>,
    /// Tasks that really run.
    pub processes: BTreeSet<TaskId>,
    /// Messages that somebody was told are safe.
    pub acknowledged: BTreeSet<MessageId>,
    pub asked: BTreeSet<u64>,
    keys: BTreeSet<String>,
    calls_started: BTreeSet<CallId>,
    tasks_ended: BTreeSet<TaskId>,
    results_queued: BTreeMap<TaskId, u32>,
    self_turns: u32,
    /// When each turn began that the agent caused itself, in the last hour.
    own_turns: Vec<Time>,
    /// The message of a turn that was cut short, until it is said what becomes of it.
    cut_short: Option<MessageId>,
    running: Option<MessageId>,
    /// Crashes under each message: since the last recorded round, and in all.
    crashes: BTreeMap<MessageId, (u32, u32)>,
    /// The status that a list of agents shows.
    listed_status: Option<String>,
}

impl SimulatedAgent {
    pub fn new(id: AgentId) -> SimulatedAgent {
        SimulatedAgent {
            core: None,
            shadow: AgentState::empty(id.clone()),
            model: Model::new(id.clone()),
            effects: Vec::new(),
            processes: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            asked: BTreeSet::new(),
            keys: BTreeSet::new(),
            calls_started: BTreeSet::new(),
            tasks_ended: BTreeSet::new(),
            results_queued: BTreeMap::new(),
            self_turns: 0,
            own_turns: Vec::new(),
            cut_short: None,
            running: None,
            crashes: BTreeMap::new(),
            listed_status: None,
            id,
        }
    }

    /// Takes note of one durable fact, and checks everything that can be checked about it.
    pub fn observe(&mut self, seq: Seq, at: Time, fact: &Fact, ends_commit: bool) -> Result<(), String> {
        if seq != self.shadow.seq + 1 {
            return Err(format!("fact {seq} follows {}", self.shadow.seq));
        }
        let before = self.shadow.clone();
        self.shadow.apply(at, fact).map_err(|illegal| illegal.to_string())?;
        let change = Change { before: &before, fact, after: &self.shadow };
        if let Some(broken) = invariants::check_invariants(change, ends_commit).first() {
            return Err(format!("invariant {}: {}", broken.invariant, broken.detail));
        }
        self.check_list(seq, at, fact, ends_commit)?;
        self.model.observe(seq, at, fact);
        self.check_pace(&before, at, fact)?;
        self.check_history(fact)
    }

    /// A list of agents is read from rows, and one agent from its state: both show the same status after every commit.
    fn check_list(&mut self, seq: Seq, at: Time, fact: &Fact, ends_commit: bool) -> Result<(), String> {
        let rows = rows_of(seq, at, fact).into_iter().filter(|row| row.plane == AGENT_PLANE);
        for status in rows.filter_map(|row| Some(row.patch["status"].as_str()?.to_owned())) {
            self.listed_status = Some(status);
        }
        let (listed, shown) = (self.listed_status.as_deref(), self.shadow.status());
        if ends_commit && listed != Some(shown.as_str()) {
            return Err(format!("a list says {listed:?}, the agent itself {shown}"));
        }
        Ok(())
    }

    /// Checks that an agent causes no more turns itself in an hour than it may.
    fn check_pace(&mut self, before: &AgentState, at: Time, fact: &Fact) -> Result<(), String> {
        if let Fact::ClockSetBack(set) = fact {
            self.own_turns.iter_mut().for_each(|earlier| *earlier = (*earlier).min(set.to));
        }
        let Fact::TurnStarted(turn) = fact else { return Ok(()) };
        let entry = before.planes.queue.get(&turn.message_id);
        if !entry.is_some_and(|entry| entry.message.self_caused && entry.taken == 1) {
            return Ok(());
        }
        self.own_turns.retain(|earlier| at.since_ms(*earlier) < 3_600_000);
        self.own_turns.push(at);
        let allowed = before.definition.limits.self_turns_per_hour;
        if allowed > 0 && self.own_turns.len() > allowed as usize {
            return Err(format!("{} turns that it caused itself within an hour", self.own_turns.len()));
        }
        Ok(())
    }

    /// Rules over the whole history, which no single state can show.
    #[allow(clippy::wildcard_enum_match_arm, reason = "only some facts have a history")]
    fn check_history(&mut self, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::MessageQueued(queued) => {
                if let Some(key) = queued.message.idempotency_key().filter(|_| queued.message.tick().is_some())
                    && !self.keys.insert(key.to_owned())
                {
                    return Err(format!("the key {key} was used twice"));
                }
                if let Some(task) = queued.message.task_id() {
                    *self.results_queued.entry(task.clone()).or_default() += 1;
                }
                if queued.message.tick().is_none() && queued.message.timer_id().is_none() {
                    self.self_turns = 0;
                }
            }
            Fact::TurnStarted(turn) => {
                self.running = Some(turn.message_id.clone());
                self.self_turns += 1;
                // Items may take turns at being offered, each within its own budget; all of them together are bounded.
                if self.self_turns > 2_000 {
                    return Err("the agent runs in circles".to_owned());
                }
            }
            Fact::TurnAborted(aborted) if aborted.reason != AbortReason::Abort => {
                if aborted.reason == AbortReason::Cut && self.shadow.lifecycle.shutdown {
                    return Err(format!("{} counts as crashed, and a shutdown cut it", aborted.exec_id));
                }
                self.cut_short = Some(aborted.message_id.clone());
            }
            Fact::AssistantRoundRecorded(_) => {
                if let Some(crashes) = self.running.as_ref().and_then(|id| self.crashes.get_mut(id)) {
                    crashes.0 = 0;
                }
            }
            Fact::MessageRequeued(requeued) if self.cut_short.as_ref() == Some(&requeued.message_id) => {
                self.cut_short = None;
                if requeued.reason == RequeueReason::Crash {
                    let crashes = self.crashes.entry(requeued.message_id.clone()).or_default();
                    *crashes = (crashes.0 + 1, crashes.1 + 1);
                    if crashes.0 >= limits::CRASHES_WITHOUT_ROUND || crashes.1 >= limits::CRASHES_MAX {
                        return Err(format!("{} is taken again after {crashes:?} crashes", requeued.message_id));
                    }
                }
            }
            Fact::MessageAborted(aborted) if self.cut_short.as_ref() == Some(&aborted.message_id) => {
                self.cut_short = None;
            }
            Fact::MessageProcessed(processed) if self.cut_short.as_ref() == Some(&processed.message_id) => {
                return Err(format!("{} counts as processed, and its turn was cut short", processed.message_id));
            }
            Fact::ToolStarted(started) if !self.calls_started.insert(started.call_id.clone()) => {
                return Err(format!("{} was run twice", started.call_id));
            }
            Fact::TaskCompleted(ended) => self.task_ended(&ended.end.task_id)?,
            Fact::TaskFailed(ended) => self.task_ended(&ended.end.task_id)?,
            Fact::TaskCancelled(ended) => self.task_ended(&ended.end.task_id)?,
            Fact::TaskInterrupted(ended) => self.task_ended(&ended.end.task_id)?,
            Fact::TaskRunning(running) if self.tasks_ended.contains(&running.task_id) => {
                return Err(format!("{} runs again after its end", running.task_id));
            }
            _ => {}
        }
        Ok(())
    }

    fn task_ended(&mut self, id: &TaskId) -> Result<(), String> {
        if self.tasks_ended.insert(id.clone()) { Ok(()) } else { Err(format!("{id} ended twice")) }
    }

    /// The live state is what the ledger says, and the reference model says the same of it.
    pub fn compare(&self, now: Time) -> Result<(), String> {
        if let Some(core) = &self.core
            && *core.state() != self.shadow
        {
            return Err(format!(
                "the live state differs from its replay: {}",
                first_difference(core.state(), &self.shadow)
            ));
        }
        if self.shadow.seq == 0 {
            return Ok(());
        }
        let decision = decide(&self.shadow, now);
        let expected = self.model.decide(now);
        // Which message and which item is fixed where the decision acts on one; elsewhere it is only a name.
        let same_subject = match decision.kind {
            DecisionKind::StartModelTurn | DecisionKind::ReduceMessageOnly => {
                decision.message_id == expected.message_id
            }
            DecisionKind::EmitSystemTick => decision.work_item_id == expected.work_item_id,
            DecisionKind::WaitForTask
            | DecisionKind::WaitForExternalChange
            | DecisionKind::WaitForTimer
            | DecisionKind::WaitForOperator
            | DecisionKind::Sleep
            | DecisionKind::StayIdle
            | DecisionKind::Stop
            | DecisionKind::Noop => true,
        };
        let same = decision.kind == expected.kind && decision.reason == expected.reason && same_subject;
        if !same {
            return Err(format!("the kernel decides {decision:?}, the reference model {expected:?}"));
        }
        let (kernel, model) = (self.shadow.status(), self.model.status());
        if kernel != model {
            return Err(format!("status: the kernel says {kernel}, the reference model {model}"));
        }
        let (kernel, model) = (compute_posture(&self.shadow), self.model.posture());
        if kernel != model {
            return Err(format!("posture: the kernel says {kernel}, the reference model {model}"));
        }
        let (kernel, model) = (compute_closure(&self.shadow), self.model.closure_outcome());
        if (kernel.outcome, kernel.waiting_reason) != model {
            return Err(format!("closure: the kernel says {kernel:?}, the reference model {model:?}"));
        }
        Ok(())
    }

    /// Every message that was acknowledged is somewhere.
    pub fn check_nothing_lost(&self) -> Result<(), String> {
        let accounts = self.model.accounts();
        let lost = self.acknowledged.iter().find(|id| !accounts.messages.contains_key(*id));
        match lost {
            Some(id) => Err(format!("{id} was acknowledged and is nowhere")),
            None => Ok(()),
        }
    }
}

/// Where two states differ, as far as a reader needs it.
fn first_difference(live: &AgentState, replayed: &AgentState) -> String {
    let (live, replayed) = (serde_json::to_value(live), serde_json::to_value(replayed));
    let (Ok(serde_json::Value::Object(live)), Ok(serde_json::Value::Object(replayed))) = (live, replayed) else {
        return "unprintable".to_owned();
    };
    live.iter()
        .find(|(key, value)| replayed.get(*key) != Some(value))
        .map_or_else(|| "an index".to_owned(), |(key, value)| format!("{key}: {value} / {:?}", replayed.get(key)))
}
