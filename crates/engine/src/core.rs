//! The loop's synchronous core for one stream: inbox → admit all → decide → commit → effects.
//!
//! The driver calls `poll` until it rests. What `poll` hands out must be committed, in that order, one at a time;
//! `committed` then releases what waited for it: answers, effects, and facts for the feed. The state runs ahead of the
//! ledger by at most one commit; if that commit fails, the core is dropped, and the stream is loaded from the ledger.

use std::collections::VecDeque;

use abide_kernel::AgentState;
use abide_kernel::id::{Fresh, Seq};
use abide_kernel::input::Refusal;
use abide_kernel::time::Time;
use abide_kernel::wake::Wake;
use abide_ledger::{Append, Commit, Ledger, NewFact, Snapshot, StreamId};

use crate::fold::{LoadError, fold};
use crate::idempotency::{Claim, Response, record_completed};
use crate::machine::{Admitted, Machine, Signal, stored};

/// An input, and a number by which its asker knows the answer again.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<M: Machine = AgentState> {
    pub token: u64,
    pub input: M::Input,
    /// A request that must not be met twice.
    pub claim: Option<Claim>,
    /// Whether the answer comes with a summary of the stream as the input left it.
    pub summary: bool,
}

impl<M: Machine> Request<M> {
    #[must_use]
    pub fn new(token: u64, input: M::Input) -> Request<M> {
        Request { token, input, claim: None, summary: false }
    }
}

/// The effects, answers and facts that a commit released. Everything in here is durable.
#[derive(Debug, PartialEq)]
pub struct Outputs<M: Machine = AgentState> {
    pub answers: Vec<(u64, Result<Response<M>, Refusal>)>,
    pub effects: Vec<M::Effect>,
    pub facts: Vec<(Seq, Time, M::Fact)>,
}

impl<M: Machine> Default for Outputs<M> {
    fn default() -> Outputs<M> {
        Outputs { answers: Vec::new(), effects: Vec::new(), facts: Vec::new() }
    }
}

/// Facts since the last snapshot after which another is worth writing; more for a state with much in it.
const SNAPSHOT_EVERY: u64 = 48;

#[derive(Debug)]
pub struct Core<M: Machine = AgentState> {
    stream: StreamId,
    state: M,
    inbox: VecDeque<Request<M>>,
    /// The first signal of a stream that was loaded.
    boot: Option<M::Boot>,
    /// The head of the stream as the ledger has it.
    durable: Seq,
    snapshot_at: Seq,
    in_flight: Option<Outputs<M>>,
    /// Requests met by what is about to be committed.
    completed: Vec<(Claim, Response<M>)>,
    released: Outputs<M>,
    last_wake: Option<Wake>,
    /// The settings for a stream that is created here, admitted right after its creation.
    boot_at_creation: Option<M::Boot>,
    fresh: Fresh,
}

impl<M: Machine> Core<M> {
    /// A stream that does not exist yet; its first input must create it.
    #[must_use]
    pub fn new(id: M::Id) -> Core<M> {
        Core::with_state(M::empty(id))
    }

    /// The same, and it hears of the settings as soon as it is created.
    #[must_use]
    pub fn with_boot(self, boot: M::Boot) -> Core<M> {
        Core { boot_at_creation: Some(boot), ..self }
    }

    /// A stream from its records. Whatever was in flight when its process ended is cut first of all.
    pub fn recover(ledger: &Ledger, id: &M::Id, boot: M::Boot) -> Result<Option<Core<M>>, LoadError> {
        Ok(fold(ledger, id)?.map(|state| Core { boot: Some(boot), ..Core::with_state(state) }))
    }

    /// The same stream again after a commit of it was refused: nothing was cut, only what was not kept is forgotten.
    pub fn reload(ledger: &Ledger, id: &M::Id) -> Result<Core<M>, LoadError> {
        Ok(Core::with_state(fold(ledger, id)?.unwrap_or_else(|| M::empty(id.clone()))))
    }

    fn with_state(state: M) -> Core<M> {
        Core {
            stream: M::stream_id(state.id()),
            durable: state.seq(),
            snapshot_at: state.seq(),
            state,
            inbox: VecDeque::new(),
            boot: None,
            in_flight: None,
            completed: Vec::new(),
            released: Outputs::default(),
            last_wake: None,
            boot_at_creation: None,
            fresh: Fresh::new(Time::EPOCH, 0),
        }
    }

    /// The state, including facts of a commit that is still under way.
    #[must_use]
    pub fn state(&self) -> &M {
        &self.state
    }

    /// The last fact that is durable.
    #[must_use]
    pub fn durable(&self) -> Seq {
        self.durable
    }

    /// Whether the stream has a fact, durable or about to be.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.state.seq() > 0
    }

    /// Inputs that are not admitted yet.
    pub fn inbox(&self) -> impl Iterator<Item = &M::Input> {
        self.inbox.iter().map(|request| &request.input)
    }

    pub fn ask(&mut self, request: Request<M>) {
        let creates = M::creates(&request.input);
        self.inbox.push_back(request);
        // In the same commit: it begins nothing before it knows the settings.
        if let Some(boot) = self.boot_at_creation.take_if(|_| creates) {
            self.inbox.push_back(Request::new(0, M::signal(Signal::Boot(boot))));
        }
    }

    /// Asks before everything that waits, so that nothing of that comes to pass any more if this ends it. What was in
    /// flight when the process ended is cut before.
    pub fn ask_first(&mut self, request: Request<M>) {
        self.inbox.push_front(request);
    }

    /// The next thing to commit, or none when there is nothing to do until something is asked or comes due.
    pub fn poll(&mut self, now: Time, entropy: u64) -> Option<Commit> {
        assert!(self.in_flight.is_none(), "the commit before this one has not been response");
        self.fresh.renew(now, entropy);
        let mut step = Outputs::default();
        let mut facts = self.admit_all(now, &mut step);
        facts.extend(self.decide(now, &mut step));
        if facts.is_empty() && self.completed.is_empty() {
            self.release(step);
            return None;
        }
        let first = self.state.seq() + 1 - facts.len() as Seq;
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
            self.durable = self.state.seq();
            self.release(step);
        }
    }

    /// The answers, effects and facts to be released.
    pub fn take_outputs(&mut self) -> Outputs<M> {
        std::mem::take(&mut self.released)
    }

    fn release(&mut self, step: Outputs<M>) {
        self.released.answers.extend(step.answers);
        self.released.effects.extend(step.effects);
        self.released.facts.extend(step.facts);
    }

    /// Everything in the inbox becomes facts of one commit, and then whatever has come due. Before that the records follow
    /// a clock that was set back.
    fn admit_all(&mut self, now: Time, step: &mut Outputs<M>) -> Vec<M::Fact> {
        let mut facts = Vec::new();
        if self.exists() && self.state.clock_was_set_back(now) {
            facts.extend(self.admit_signal(Signal::FollowClock, now, step));
        }
        if let Some(boot) = self.boot.take() {
            facts.extend(self.admit_signal(Signal::Boot(boot), now, step));
        }
        while let Some(Request { token, input, claim, summary }) = self.inbox.pop_front() {
            match self.state.admit(input, now, &mut self.fresh) {
                Ok(Admitted { facts: admitted, effects, answer }) => {
                    let seq = match admitted.len() as Seq {
                        0 => self.state.seq(),
                        count => self.state.seq() + 1 - count,
                    };
                    let summary = summary.then(|| self.state.summary(now));
                    let response = Response { answer, seq, summary };
                    self.completed.extend(claim.map(|claim| (claim, response.clone())));
                    facts.extend(admitted);
                    step.effects.extend(effects);
                    step.answers.push((token, Ok(response)));
                }
                Err(refusal) => step.answers.push((token, Err(refusal))),
            }
        }
        if self.exists() && self.state.next_due().is_some_and(|due| due <= now) {
            facts.extend(self.admit_signal(Signal::FireDue, now, step));
        }
        facts
    }

    /// Admits a signal of the loop. A stream that is over refuses it.
    fn admit_signal(&mut self, signal: Signal<M::Boot>, now: Time, step: &mut Outputs<M>) -> Vec<M::Fact> {
        let Ok(admitted) = self.state.admit(M::signal(signal), now, &mut self.fresh) else { return Vec::new() };
        step.effects.extend(admitted.effects);
        admitted.facts
    }

    fn decide(&mut self, now: Time, step: &mut Outputs<M>) -> Vec<M::Fact> {
        if !self.exists() {
            return Vec::new();
        }
        let (facts, effects) = self.state.decide(now, &mut self.fresh);
        step.effects.extend(effects);
        facts
    }

    fn commit_of(&mut self, facts: &[(Seq, Time, M::Fact)], now: Time) -> Commit {
        let facts: Vec<NewFact> = facts.iter().map(|(seq, at, fact)| stored::<M>(*seq, *at, fact)).collect();
        let mut appends: Vec<Append> =
            self.completed.drain(..).map(|(claim, response)| record_completed(claim, response, now)).collect();
        if !facts.is_empty() {
            let stream = self.stream.clone();
            appends.push(Append { stream, expected: self.durable, at: now, facts, fork_of: None });
        }
        let wake = self.state.wake();
        let mut wakes = Vec::new();
        if self.exists() && self.last_wake.as_ref() != Some(&wake) {
            wakes.push((self.stream.clone(), index_entry(&wake)));
            self.last_wake = Some(wake);
        }
        Commit { appends, wakes, snapshots: self.snapshot().into_iter().collect() }
    }

    /// A snapshot when enough has happened since the last one, measured against what the state holds.
    fn snapshot(&mut self) -> Option<Snapshot> {
        if self.state.seq() - self.snapshot_at < SNAPSHOT_EVERY.max(self.state.records()) {
            return None;
        }
        self.snapshot_at = self.state.seq();
        Some(Snapshot {
            stream: self.stream.clone(),
            seq: self.state.seq(),
            fingerprint: M::FINGERPRINT.to_owned(),
            state: self.state.snapshot(),
        })
    }
}

fn index_entry(wake: &Wake) -> Option<abide_ledger::Wake> {
    match wake {
        Wake::Never => None,
        Wake::AtOnce { why } => Some(abide_ledger::Wake { due: None, why: (*why).to_owned() }),
        Wake::At { due, why } => Some(abide_ledger::Wake { due: Some(*due), why: (*why).to_owned() }),
    }
}
