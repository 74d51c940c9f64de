//! The loop's synchronous core for one agent: inbox → admit all → decide → commit → effects.
//!
//! The driver calls `poll` until it rests. What `poll` hands out must be committed, in that order, one at a time;
//! `committed` then releases what waited for it: answers, effects, and facts for the feed. The state runs ahead of the
//! ledger by at most one commit; if that commit fails, the core is dropped, and the agent is recovered from the ledger.

use std::collections::VecDeque;
use std::sync::Arc;

use abide_kernel::effect::Effect;
use abide_kernel::id::{AgentId, Fresh, Seq};
use abide_kernel::input::{Act, Answer, Does, Input, Refusal, Remains};
use abide_kernel::rows::rows_of;
use abide_kernel::summary::agent_summary;
use abide_kernel::time::Time;
use abide_kernel::views::agent::AgentSummary;
use abide_kernel::vocabulary::Status;
use abide_kernel::wake::{self, Wake};
use abide_kernel::{AgentState, Decision, Fact, admit, carry_out, decide};
use abide_ledger::{Append, Commit, Ledger, NewFact, Recorded, RowOp, Snapshot, StreamId};

use serde::{Deserialize, Serialize};

use crate::fold::{Damage, decode, fold};
use crate::host::Holding;

/// An input, and a number by which its asker knows the answer again.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub token: u64,
    pub input: Input,
    /// A request that must not be met twice.
    pub claim: Option<Claim>,
    /// Whether the answer comes with a summary of the agent as the input left it.
    pub summary: bool,
}

impl Asked {
    #[must_use]
    pub fn new(token: u64, input: Input) -> Asked {
        Asked { token, input, claim: None, summary: false }
    }
}

/// The right to meet a request: recorded with the answer, in the same commit, so that a repeat finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub key: StreamId,
    /// Where the key's stream is: zero, unless the key was used long ago.
    pub expected: Seq,
    /// A digest of the request, to tell another one under the same key.
    pub request: String,
    /// Keeps everybody else from the key until the request is answered, whoever waits for that.
    pub hold: Option<Arc<Holding>>,
}

/// What an input came to, as it is told and, for a claimed request, kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub answer: Answer,
    /// The first fact of it; where there is none, the last one before it.
    pub seq: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Told>,
}

/// What an answer shows besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Told {
    Agent(Box<AgentSummary>),
    Fork(Forked),
    Token { token_id: String },
}

/// An agent that was made of another's past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    pub agent_id: AgentId,
    pub parent: AgentId,
    pub at_seq: Seq,
    pub status: Status,
}

/// A request that was met, as its key's stream keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Met {
    pub request: String,
    pub answered: Answered,
}

impl Met {
    pub const KIND: &'static str = "request.met";
}

/// What a commit released. Everything in here is durable.
#[derive(Debug, Default, PartialEq)]
pub struct Outputs {
    pub answers: Vec<(u64, Result<Answered, Refusal>)>,
    pub effects: Vec<Effect>,
    pub facts: Vec<(Seq, Time, Fact)>,
}

/// Facts since the last snapshot after which another is worth writing; more for a state with much in it.
const SNAPSHOT_EVERY: u64 = 48;

#[derive(Debug)]
pub struct Core {
    stream: StreamId,
    state: AgentState,
    inbox: VecDeque<Asked>,
    /// The head of the stream as the ledger has it.
    durable: Seq,
    snapshot_at: Seq,
    in_flight: Option<Outputs>,
    /// Requests met by what is about to be committed.
    met: Vec<(Claim, Answered)>,
    released: Outputs,
    last_wake: Option<Wake>,
    /// What an agent that is made here hears of the settings, right after its creation.
    newborn: Option<Remains>,
    fresh: Fresh,
}

impl Core {
    /// An agent that does not exist yet; its first input must create it.
    #[must_use]
    pub fn unborn(agent: AgentId) -> Core {
        Core::around(AgentState::empty(agent))
    }

    /// The same, and it hears of the settings as soon as it is created.
    #[must_use]
    pub fn following(self, remains: Remains) -> Core {
        Core { newborn: Some(remains), ..self }
    }

    /// An agent from its records. Whatever was in flight when its process ended is cut by the first input, a boot.
    pub fn recover(ledger: &Ledger, agent: &AgentId, remains: Remains) -> Result<Option<Core>, Damage> {
        let Some(state) = fold(ledger, agent)? else { return Ok(None) };
        let mut core = Core::around(state);
        core.inbox.push_back(Asked::new(0, Input::Boot { remains }));
        Ok(Some(core))
    }

    /// The same agent again after a commit of it was refused: nothing was cut, only what was not kept is forgotten.
    pub fn reread(ledger: &Ledger, agent: &AgentId) -> Result<Core, Damage> {
        Ok(Core::around(fold(ledger, agent)?.unwrap_or_else(|| AgentState::empty(agent.clone()))))
    }

    fn around(state: AgentState) -> Core {
        Core {
            stream: StreamId::agent(state.id()),
            durable: state.seq,
            snapshot_at: state.seq,
            state,
            inbox: VecDeque::new(),
            in_flight: None,
            met: Vec::new(),
            released: Outputs::default(),
            last_wake: None,
            newborn: None,
            fresh: Fresh::new(Time::EPOCH, 0),
        }
    }

    /// The state, including facts of a commit that is still under way.
    #[must_use]
    pub fn state(&self) -> &AgentState {
        &self.state
    }

    /// The last fact that is durable.
    #[must_use]
    pub fn durable(&self) -> Seq {
        self.durable
    }

    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    pub fn ask(&mut self, asked: Asked) {
        let creates = matches!(asked.input, Input::Create { .. } | Input::CreateChild(_));
        self.inbox.push_back(asked);
        // In the same commit: no turn of it begins before it knows the settings.
        if let Some(remains) = self.newborn.take_if(|_| creates) {
            self.inbox.push_back(Asked::new(0, Input::Boot { remains }));
        }
    }

    /// Asks before everything that waits, so that nothing of that comes to pass any more if this ends it. What was in
    /// flight when the process ended is cut before.
    pub fn ask_first(&mut self, asked: Asked) {
        let boots = self.inbox.front().is_some_and(|first| matches!(first.input, Input::Boot { .. }));
        self.inbox.insert(usize::from(boots), asked);
    }

    /// Whether something that waits may dismiss children of the agent.
    #[must_use]
    pub fn may_dismiss_children(&self) -> bool {
        self.state.tasks.children().next().is_some() && self.inbox.iter().any(|asked| may_dismiss(&asked.input))
    }

    /// The next thing to commit, or none when there is nothing to do until something is asked or comes due.
    pub fn poll(&mut self, now: Time, entropy: u64) -> Option<Commit> {
        assert!(self.in_flight.is_none(), "the commit before this one has not been answered");
        self.fresh.renew(now, entropy);
        let mut step = Outputs::default();
        let mut facts = self.admit_all(now, &mut step);
        let decision = decide(&self.state, now);
        facts.extend(self.carry_out(&decision, now, &mut step));
        if facts.is_empty() && self.met.is_empty() {
            self.release(step);
            return None;
        }
        let first = self.state.seq + 1 - facts.len() as Seq;
        step.facts = (first..).zip(facts).map(|(seq, fact)| (seq, now, fact)).collect();
        let commit = self.commit_of(&step.facts, now);
        #[cfg(feature = "planted")]
        if crate::planted::is_on(crate::planted::Bug::AnswersBeforeCommit) {
            self.released.answers.append(&mut step.answers);
        }
        self.in_flight = Some(step);
        Some(commit)
    }

    /// The commit that `poll` handed out is durable.
    pub fn committed(&mut self) {
        if let Some(step) = self.in_flight.take() {
            self.durable = self.state.seq;
            self.release(step);
        }
    }

    /// What may be answered, performed and published.
    pub fn take_outputs(&mut self) -> Outputs {
        std::mem::take(&mut self.released)
    }

    fn release(&mut self, step: Outputs) {
        self.released.answers.extend(step.answers);
        self.released.effects.extend(step.effects);
        self.released.facts.extend(step.facts);
    }

    /// Everything in the inbox becomes facts of one commit, and then whatever has come due. Before that the records follow
    /// a clock that was set back.
    fn admit_all(&mut self, now: Time, step: &mut Outputs) -> Vec<Fact> {
        let mut facts = Vec::new();
        if self.state.seq > 0 && self.state.clock_was_set_back(now) {
            facts.extend(self.admit_own(Input::FollowClock, now, step));
        }
        while let Some(Asked { token, input, claim, summary }) = self.inbox.pop_front() {
            match admit(&mut self.state, input, now, &mut self.fresh) {
                Ok(admitted) => {
                    let seq = match admitted.facts.len() as Seq {
                        0 => self.state.seq,
                        count => self.state.seq + 1 - count,
                    };
                    let summary = summary.then(|| Told::Agent(Box::new(agent_summary(&self.state, now))));
                    let answered = Answered { answer: admitted.answer, seq, summary };
                    self.met.extend(claim.map(|claim| (claim, answered.clone())));
                    facts.extend(admitted.facts);
                    step.effects.extend(admitted.effects);
                    step.answers.push((token, Ok(answered)));
                }
                Err(refusal) => step.answers.push((token, Err(refusal))),
            }
        }
        let due = self.state.seq > 0 && self.state.is_runnable() && self.state.next_due().is_some_and(|due| due <= now);
        if due {
            facts.extend(self.admit_own(Input::FireDue, now, step));
        }
        facts
    }

    /// An input that nobody asked for. An agent that is archived refuses it.
    fn admit_own(&mut self, input: Input, now: Time, step: &mut Outputs) -> Vec<Fact> {
        let Ok(admitted) = admit(&mut self.state, input, now, &mut self.fresh) else { return Vec::new() };
        step.effects.extend(admitted.effects);
        admitted.facts
    }

    fn carry_out(&mut self, decision: &Decision, now: Time, step: &mut Outputs) -> Vec<Fact> {
        if self.state.seq == 0 {
            return Vec::new();
        }
        let (facts, effects) = carry_out(&mut self.state, decision, now, &mut self.fresh);
        step.effects.extend(effects);
        facts
    }

    fn commit_of(&mut self, facts: &[(Seq, Time, Fact)], now: Time) -> Commit {
        let facts: Vec<NewFact> = facts.iter().map(|(seq, at, fact)| stored(*seq, *at, fact)).collect();
        let mut appends: Vec<Append> = self.met.drain(..).map(|(claim, answered)| keep(claim, answered, now)).collect();
        if !facts.is_empty() {
            let stream = self.stream.clone();
            appends.push(Append { stream, expected: self.durable, at: now, facts, fork_of: None });
        }
        let wake = wake::wake(&self.state);
        let mut wakes = Vec::new();
        if self.state.seq > 0 && self.last_wake.as_ref() != Some(&wake) {
            wakes.push((self.stream.clone(), index_entry(&wake)));
            self.last_wake = Some(wake);
        }
        Commit { appends, wakes, snapshots: self.snapshot().into_iter().collect() }
    }

    /// A snapshot when enough has happened since the last one, measured against what the state holds.
    fn snapshot(&mut self) -> Option<Snapshot> {
        let held = (self.state.queue.len() + self.state.waits.open().len() + self.state.work.items().len()) as u64;
        if self.state.seq - self.snapshot_at < SNAPSHOT_EVERY.max(held) {
            return None;
        }
        self.snapshot_at = self.state.seq;
        Some(Snapshot {
            stream: self.stream.clone(),
            seq: self.state.seq,
            fingerprint: AgentState::FINGERPRINT.to_owned(),
            state: self.state.snapshot(),
        })
    }
}

/// Whether it ends the agent or one of its tasks.
#[allow(clippy::wildcard_enum_match_arm, reason = "most inputs end nothing")]
fn may_dismiss(input: &Input) -> bool {
    match input {
        Input::Stop
        | Input::Dismiss { .. }
        | Input::Quarantine { .. }
        | Input::Act { act: Act::StopTask { .. }, .. } => true,
        Input::FinishRound { reply, .. } => {
            reply.calls.iter().any(|call| matches!(call.does, Does::Act(Act::StopTask { .. })))
        }
        _ => false,
    }
}

/// The record of a request that was met.
#[must_use]
pub fn keep(claim: Claim, answered: Answered, at: Time) -> Append {
    let payload = match serde_json::to_vec(&Met { request: claim.request, answered }) {
        Ok(payload) => payload,
        Err(error) => unreachable!("an answer has only string keys and finite numbers: {error}"),
    };
    let facts = vec![NewFact::new(Met::KIND, payload)];
    Append { stream: claim.key, expected: claim.expected, at, facts, fork_of: None }
}

fn index_entry(wake: &Wake) -> Option<abide_ledger::Wake> {
    match wake {
        Wake::Never => None,
        Wake::AtOnce { why } => Some(abide_ledger::Wake { due: None, why: (*why).to_owned() }),
        Wake::At { due, why } => Some(abide_ledger::Wake { due: Some(*due), why: (*why).to_owned() }),
    }
}

/// A fact as the ledger takes it: its bytes, and the rows that lists show.
#[must_use]
pub fn stored(seq: Seq, at: Time, fact: &Fact) -> NewFact {
    NewFact { kind: fact.kind().into(), payload: fact.encode(), rows: row_ops(seq, at, fact) }
}

/// The read rows of a stored fact. One that does not decode has none; verification names it by other means.
#[must_use]
pub fn rows_of_stored(stream: &StreamId, recorded: &Recorded) -> Vec<RowOp> {
    match decode(stream, recorded) {
        Ok(fact) => row_ops(recorded.seq, recorded.at, &fact),
        Err(_) => Vec::new(),
    }
}

/// The read rows of a fact, in the ledger's terms.
#[must_use]
pub fn row_ops(seq: Seq, at: Time, fact: &Fact) -> Vec<RowOp> {
    rows_of(seq, at, fact)
        .into_iter()
        .map(|row| RowOp { plane: row.plane.into(), id: row.id, patch: row.patch })
        .collect()
}
