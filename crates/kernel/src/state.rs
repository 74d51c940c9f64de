//! The state of one agent: a fold of its facts, with the open records and a bounded window of closed ones.
//!
//! `apply` is the only function that changes a state. It refuses facts that are illegal in the state; a ledger that holds
//! such a fact is damaged or was written by another program, and its agent is quarantined.

pub mod accounts;
mod apply;
pub mod approval;
pub mod child;
pub mod clock;
pub mod definition;
pub mod fired_streaks;
pub mod guard;
pub mod hint;
pub mod lifecycle;
pub mod model;
pub mod pace;
pub mod planes;
#[cfg(feature = "planted")]
pub(crate) mod planted;
pub mod queue;
pub mod spending;
mod stored;
pub mod task;
pub mod timer;
pub mod token_calibration;
pub mod tool_placement;
pub mod turn;
pub mod turns;
pub mod unanswered;
pub mod waiting;
pub mod work;
pub mod workspace;

use crate::config::{AgentLimits, Config, Identity};
use crate::decision::Decision;
use crate::id::{AgentId, Seq};
use crate::pack;
use crate::time::Time;
use crate::vocabulary::{Scope, WaitKind};

use accounts::Accounts;
pub use apply::IllegalFact;
use definition::Definition;
use lifecycle::Lifecycle;
use model::Models;
use planes::Planes;
use turns::Turns;

/// Its stored form is flat and older than these groups: see `stored.rs`.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentState {
    /// The last fact that was applied, and its time: an earlier one may have a later time, if the clock was set back.
    pub seq: Seq,
    pub at: Time,
    pub definition: Definition,
    pub lifecycle: Lifecycle,
    pub turns: Turns,
    pub planes: Planes,
    pub accounts: Accounts,
    pub models: Models,
    /// The scheduler's last decision other than to do nothing.
    pub last_decision: Option<RecordedDecision>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecordedDecision {
    pub seq: Seq,
    pub decision: Decision,
}

impl AgentState {
    /// The state before the first fact. Only `AgentCreated` may follow.
    #[must_use]
    pub fn empty(id: AgentId) -> AgentState {
        AgentState {
            seq: 0,
            at: Time::EPOCH,
            definition: Definition {
                identity: Identity::named(id),
                config: Config::default(),
                limits: AgentLimits::default(),
            },
            lifecycle: Lifecycle::default(),
            turns: Turns::default(),
            planes: Planes::default(),
            accounts: Accounts::default(),
            models: Models::default(),
            last_decision: None,
        }
    }

    #[must_use]
    pub fn id(&self) -> &AgentId {
        &self.definition.identity.id
    }

    /// The scheduler's last decision other than to do nothing.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.last_decision.as_ref().map(|last| &last.decision)
    }

    /// The stored form of the state, from which it is read without its facts.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        match serde_json::to_vec(self) {
            Ok(json) => json,
            Err(error) => unreachable!("a state has only string keys and finite numbers: {error}"),
        }
    }

    /// Reads a state from its stored form, packed or not.
    pub fn from_snapshot(bytes: &[u8]) -> Result<AgentState, serde_json::Error> {
        let mut state: AgentState = pack::read_stored(bytes)?;
        state.planes.rebuild_indexes();
        Ok(state)
    }

    /// Marks snapshots of this shape and these rules. It changes with every change of either: snapshots with another
    /// fingerprint are ignored, and the state is folded from its facts.
    pub const FINGERPRINT: &'static str = "agent-state-28";

    /// The next instant at which a record comes due, queue included. Work that a spent budget, a hold or a sleep of the
    /// agent keeps back is not counted: its time may pass, and there would still be nothing to do. A spent daily budget is
    /// due again at midnight.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        let spent = self.spent_limit();
        let may_start = self.turns.current.is_none() && spent.is_none() && !self.lifecycle.holds_turns();
        let asleep = self.planes.waits.first(Scope::Agent, WaitKind::Sleep).is_some();
        [
            self.planes.timers.next_due(),
            self.planes.work.next_recheck(),
            self.planes.work.next_offer().filter(|_| may_start && !asleep && !self.planes.work.is_spent()),
            self.planes.approvals.next_deadline(),
            self.planes.queue.next_not_before().filter(|_| may_start),
            self.pace_ends().filter(|_| may_start),
            spent.and_then(|spent| spent.until).filter(|_| self.turns.current.is_none()),
            self.lifecycle.disk_short.as_ref().map(|short| short.until).filter(|_| self.turns.current.is_none()),
            self.lifecycle.turns_held.as_ref().map(|held| held.until).filter(|_| self.turns.current.is_none()),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
