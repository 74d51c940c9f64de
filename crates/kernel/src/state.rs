//! The state of one agent: a fold of its facts, holding what is open and a bounded window of what was.
//!
//! `apply` is the only function that changes a state. It refuses facts that are not legal where the state is; a ledger
//! that holds such a fact is damaged or was written by something else, and its agent is quarantined.

mod apply;
pub mod approval;
pub mod clock;
pub mod guard;
pub mod hint;
pub mod kin;
pub mod lifecycle;
pub mod model;
pub mod pace;
pub mod place;
pub mod queue;
pub mod spending;
pub mod task;
pub mod timer;
pub mod token_calibration;
pub mod told;
pub mod turn;
pub mod unanswered;
pub mod waiting;
pub mod work;
pub mod workspace;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::budget::Usage;
use crate::config::{AgentLimits, Config, Identity};
use crate::continuation::Continuation;
use crate::decision::Decision;
use crate::fact::{BriefRecorded, ContextCompacted, DiskShort, Resource, TurnsHeld};
use crate::id::{AgentId, Seq, TriggerId, WorkItemId};
use crate::limits;
use crate::pack;
use crate::state::token_calibration::TokenCalibration;
use crate::time::Time;
use crate::vocabulary::{Scope, TriggerKind, WaitKind};

pub use apply::Illegal;
use hint::{Hints, Trigger};
use lifecycle::Control;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// The last fact that was applied, and its time: an earlier one may have a later time, if the clock was set back.
    pub seq: Seq,
    pub at: Time,
    pub identity: Identity,
    pub config: Config,
    /// What the settings allow it.
    #[serde(default)]
    pub limits: AgentLimits,
    pub control: Control,
    pub shutdown: bool,
    /// The last decision put the agent to rest, and nothing has come since.
    pub resting: bool,
    pub queue: queue::Queue,
    pub turn: Option<turn::Turn>,
    pub turn_index: u64,
    pub last_terminal: Option<turn::LastTerminal>,
    pub last_continuation: Option<Continuation>,
    /// What started the last turn: fairness looks at it.
    pub last_trigger: Option<LastTrigger>,
    /// Turns that it caused itself of late.
    #[serde(default, skip_serializing_if = "pace::Pace::is_new")]
    pub pace: pace::Pace,
    pub runtime_error: Option<String>,
    pub tasks: task::Tasks,
    pub work: work::Work,
    pub waits: waiting::Waits,
    pub timers: timer::Timers,
    pub triggers: BTreeMap<TriggerId, Trigger>,
    pub approvals: approval::Approvals,
    pub hints: Hints,
    pub usage: Usage,
    pub spending: spending::Spending,
    /// The last failure of each of its models that has not answered since, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<model::Trouble>,
    /// Models that failed lately, and until when they are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<model::Rest>,
    pub tool_executions: u64,
    /// Calls that were cut off, until a turn completes: whether they did their work is unknown.
    pub unknown_calls: VecDeque<turn::UnknownCall>,
    pub compaction: Option<ContextCompacted>,
    pub workspaces: workspace::Workspaces,
    /// The workspace's tree when a turn last ended.
    pub tree: Option<String>,
    pub decision: Option<Decision>,
    pub decision_seq: Seq,
    pub briefs: VecDeque<BriefRecorded>,
    /// What the model's provider wants back with the next call.
    pub carry: Option<serde_json::Value>,
    /// How far guesses at tokens were off.
    #[serde(default)]
    pub measure: TokenCalibration,
    /// No turn starts: a disk has less room than its reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_short: Option<DiskShort>,
    /// No turn starts: the home's budget is spent, or no model has a key that works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<TurnsHeld>,
    pub archived: bool,
    /// A child that lets go of everything, and is gone then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<kin::Leaving>,
    /// What a child said last: its result, when it has nothing left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_said: Option<String>,
    /// Messages whose answer was put off.
    #[serde(default, skip_serializing_if = "unanswered::Unanswered::is_empty")]
    pub unanswered: unanswered::Unanswered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTrigger {
    pub kind: TriggerKind,
    pub work_tick: bool,
}

impl AgentState {
    /// The state before the first fact. Only `AgentCreated` may follow.
    #[must_use]
    pub fn empty(id: AgentId) -> AgentState {
        AgentState {
            seq: 0,
            at: Time::EPOCH,
            identity: Identity::named(id),
            config: Config::default(),
            limits: AgentLimits::default(),
            control: Control::Booting,
            shutdown: false,
            resting: false,
            queue: queue::Queue::default(),
            turn: None,
            turn_index: 0,
            last_terminal: None,
            last_continuation: None,
            last_trigger: None,
            pace: pace::Pace::default(),
            runtime_error: None,
            tasks: task::Tasks::default(),
            work: work::Work::default(),
            waits: waiting::Waits::default(),
            timers: timer::Timers::default(),
            triggers: BTreeMap::new(),
            approvals: approval::Approvals::default(),
            hints: Hints::default(),
            usage: Usage::default(),
            spending: spending::Spending::default(),
            troubles: Vec::new(),
            rests: Vec::new(),
            tool_executions: 0,
            unknown_calls: VecDeque::new(),
            compaction: None,
            workspaces: workspace::Workspaces::default(),
            tree: None,
            decision: None,
            decision_seq: 0,
            briefs: VecDeque::new(),
            carry: None,
            measure: TokenCalibration::default(),
            disk_short: None,
            held: None,
            archived: false,
            leaving: None,
            last_said: None,
            unanswered: unanswered::Unanswered::default(),
        }
    }

    #[must_use]
    pub fn id(&self) -> &AgentId {
        &self.identity.id
    }

    /// What has to be written so that the state can be had back without its facts.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        match serde_json::to_vec(self) {
            Ok(json) => json,
            Err(error) => unreachable!("a state has only string keys and finite numbers: {error}"),
        }
    }

    /// From that, or from its packed form.
    pub fn from_snapshot(bytes: &[u8]) -> Result<AgentState, serde_json::Error> {
        let mut state: AgentState = pack::read_stored(bytes)?;
        state.reindex();
        Ok(state)
    }

    /// Tells apart snapshots that are not ours: of another shape, or folded by other rules. Bump it with every change of
    /// either.
    pub const FINGERPRINT: &'static str = "agent-state-28";

    /// Files every item under where it stands, and every timer by whether a wait names it. Needed once, after records were
    /// put in place by hand.
    pub(crate) fn reindex(&mut self) {
        let named: Vec<Resource> = self.waits.open().values().filter_map(|wait| wait.resource.clone()).collect();
        for resource in &named {
            self.note_awaited(Some(resource));
        }
        let ids: Vec<WorkItemId> = self.work.items().keys().cloned().collect();
        for id in ids {
            if let Some(tick) = self.work.open(&id).and_then(|item| item.ticks.undelivered.clone()) {
                self.work.tick_is_out(&tick, &id);
            }
            self.restand(&id);
        }
    }

    /// Tells the timers whether an open wait names this one. To be called whenever such a wait was made or ended.
    pub(crate) fn note_awaited(&mut self, resource: Option<&Resource>) {
        if let Some(named @ Resource::Timer(timer)) = resource {
            let awaited = self.waits.naming(named).next().is_some();
            self.timers.set_awaited(timer, awaited);
        }
    }

    /// Computes anew where an item stands. To be called whenever its record or its waits changed.
    pub(crate) fn restand(&mut self, id: &WorkItemId) {
        let Some(item) = self.work.open(id) else { return };
        let standing = item.standing(self.waits.holding(id));
        self.work.place(id, standing);
    }

    /// The next instant at which something comes due by itself, queue included. Work that a spent budget, a hold or a
    /// sleep of the agent keeps back does not: its time may pass, and there would still be nothing to do. A day's budget that is spent
    /// begins anew at midnight.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        let spent = self.spent();
        let may_start = self.turn.is_none() && spent.is_none() && self.disk_short.is_none() && self.held.is_none();
        let asleep = self.waits.first(Scope::Agent, WaitKind::Sleep).is_some();
        [
            self.timers.next_due().filter(|_| !planted!(UnindexedTimer)),
            self.work.next_recheck(),
            self.work.next_offer().filter(|_| may_start && !asleep && !self.work.is_spent()),
            self.approvals.next_deadline(),
            self.queue.next_not_before().filter(|_| may_start),
            self.pace_ends().filter(|_| may_start),
            spent.and_then(|spent| spent.until).filter(|_| self.turn.is_none()),
            self.disk_short.as_ref().map(|short| short.until).filter(|_| self.turn.is_none()),
            self.held.as_ref().map(|held| held.until).filter(|_| self.turn.is_none()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(crate) fn remember_brief(&mut self, brief: BriefRecorded) {
        if self.briefs.len() == limits::RECENT_MAX {
            self.briefs.pop_front();
        }
        self.briefs.push_back(brief);
    }
}
