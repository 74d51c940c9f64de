//! The state machine of an agent, for the loop.

use abide_kernel::fact::DecodeError;
use abide_kernel::id::{AgentId, Fresh, Seq};
use abide_kernel::input::{Answer, BootContext, Input, Refusal};
use abide_kernel::read_rows::{Row, rows_of};
use abide_kernel::state::IllegalFact;
use abide_kernel::summary::agent_summary;
use abide_kernel::time::Time;
use abide_kernel::views::agent::AgentSummary;
use abide_kernel::views::ledger::Forked;
use abide_kernel::vocabulary::{TaskKind, TaskStatus};
use abide_kernel::wake::{Wake, compute_wake};
use abide_kernel::{AgentState, Fact, admit, carry_out, decide};
use abide_ledger::StreamId;
use serde::{Deserialize, Serialize};

use crate::machine::{Admitted, Machine, Signal};

/// The part of a response that is shown besides the answer. It is stored with the answer under the request's key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestSummary {
    Agent(Box<AgentSummary>),
    Fork(Forked),
    Token { token_id: String },
}

impl Machine for AgentState {
    type Id = AgentId;
    type Input = Input;
    type Fact = Fact;
    type Effect = abide_kernel::effect::Effect;
    type Answer = Answer;
    type Summary = RequestSummary;
    type Boot = BootContext;
    type IllegalFact = IllegalFact;

    const FINGERPRINT: &'static str = AgentState::FINGERPRINT;

    fn stream_id(id: &AgentId) -> StreamId {
        StreamId::agent(id)
    }

    fn id_of(stream: &StreamId) -> Option<AgentId> {
        stream.agent_name().and_then(|name| AgentId::new(name).ok())
    }

    fn empty(id: AgentId) -> AgentState {
        AgentState::empty(id)
    }

    fn id(&self) -> &AgentId {
        self.id()
    }

    fn seq(&self) -> Seq {
        self.seq
    }

    fn apply(&mut self, at: Time, fact: &Fact) -> Result<(), IllegalFact> {
        self.apply(at, fact)
    }

    fn snapshot(&self) -> Vec<u8> {
        self.snapshot()
    }

    fn from_snapshot(bytes: &[u8]) -> Option<AgentState> {
        AgentState::from_snapshot(bytes).ok()
    }

    fn records(&self) -> u64 {
        (self.planes.queue.len() + self.planes.waits.open().len() + self.planes.work.items().len()) as u64
    }

    fn kind(fact: &Fact) -> &'static str {
        fact.kind()
    }

    fn encode(fact: &Fact) -> Vec<u8> {
        fact.encode()
    }

    fn decode(kind: &str, payload: &[u8]) -> Result<Fact, DecodeError> {
        Fact::decode(kind, payload)
    }

    fn rows(seq: Seq, at: Time, fact: &Fact) -> Vec<Row> {
        rows_of(seq, at, fact)
    }

    fn admit(&mut self, input: Input, now: Time, fresh: &mut Fresh) -> Result<Admitted<AgentState>, Refusal> {
        let abide_kernel::Admitted { facts, effects, answer } = admit(self, input, now, fresh)?;
        Ok(Admitted { facts, effects, answer })
    }

    fn decide(&mut self, now: Time, fresh: &mut Fresh) -> (Vec<Fact>, Vec<Self::Effect>) {
        let decision = decide(self, now);
        carry_out(self, &decision, now, fresh)
    }

    fn signal(signal: Signal<BootContext>) -> Input {
        match signal {
            Signal::Boot(context) => Input::Boot { context },
            Signal::FireDue => Input::FireDue,
            Signal::FollowClock => Input::FollowClock,
            Signal::Shutdown { at_once, reason } => Input::Shutdown { at_once, reason },
            Signal::Quarantine { reason } => Input::Quarantine { reason },
        }
    }

    fn creates(input: &Input) -> bool {
        matches!(input, Input::Create { .. } | Input::CreateChild(_))
    }

    fn retries(input: &Input) -> bool {
        matches!(input, Input::Start)
    }

    fn summary(&self, now: Time) -> RequestSummary {
        RequestSummary::Agent(Box::new(agent_summary(self, now)))
    }

    fn wake(&self) -> Wake {
        compute_wake(self)
    }

    fn next_due(&self) -> Option<Time> {
        if self.lifecycle.is_runnable() { self.next_due() } else { None }
    }

    fn clock_was_set_back(&self, now: Time) -> bool {
        self.clock_was_set_back(now)
    }

    fn is_busy(&self) -> bool {
        let commands = self.planes.tasks.open().values().any(|task| task.kind == TaskKind::Command);
        let children = self.planes.tasks.children().any(|task| task.status != TaskStatus::Running);
        self.turns.current.is_some() || commands || children
    }
}
