//! An agent's history, read from its records for whoever asks the model: no more than a prompt could hold. While the agent
//! is awake it is kept between calls and told of what is recorded, so that it need not be read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{iter, mem};

use abide_effects::model::remote::WrittenItems;
use abide_effects::model::{PastResults, ProviderFailure};
use abide_engine::fold::{LoadError, decode};
use abide_kernel::AgentState;
use abide_kernel::Fact;
use abide_kernel::effect::ModelCall;
use abide_kernel::id::{AgentId, Seq};
use abide_kernel::prompt::talk::{Talk, Told};
use abide_kernel::time::Time;
use abide_ledger::{Ledger, ReadError, Recorded, StreamId};
use serde_json::Value;

const BATCH: u64 = 256;
/// Facts of the first batch that is read backwards: each may be as large as a message.
const FIRST_BATCH: u64 = 16;
/// Bytes of a batch, as stored, after which the next one is smaller.
const LARGE_BATCH: usize = 1 << 20;
/// Facts that are read for one prompt. Facts before them should have been summarised long ago.
const FACTS_MAX: u64 = 20_000;
/// Bytes of them, as stored.
const BYTES_MAX: usize = 8 << 20;
/// Bytes of the histories of all agents together, with their written forms. Where that is not enough, the history is read anew each
/// time.
const KEPT_BYTES: usize = 64 << 20;

/// The turns since `after`.
#[derive(Debug)]
pub(super) struct History {
    pub talk: Talk,
    /// The items that its last request was written from.
    pub written: WrittenItems,
    /// There was more than is read.
    pub left_out: bool,
    after: Seq,
    /// The last fact that it knows of.
    through: Seq,
    facts: u64,
    bytes: usize,
    /// The ledger's count of redactions before it was read.
    redactions: u64,
}

/// The histories of agents that are awake.
#[derive(Debug, Default)]
pub(super) struct Histories(Mutex<BTreeMap<AgentId, History>>);

impl Histories {
    /// The turns since `after`, until `through` at least. The caller keeps them again when it is done.
    pub(super) fn read(
        &self,
        ledger: &Ledger,
        agent: &AgentId,
        after: Seq,
        through: Seq,
    ) -> Result<History, ProviderFailure> {
        let stream = StreamId::agent(agent);
        let redactions = ledger.redactions();
        let kept = self.kept().remove(agent);
        if let Some(mut history) = kept.filter(|kept| kept.is_of(after, redactions)) {
            if history.through < through {
                history.go_on(ledger, &stream)?;
            }
            if !history.is_too_long() {
                return Ok(history);
            }
        }
        History::anew(ledger, &stream, after, redactions)
    }

    /// The same where nothing has to be read for it.
    pub(super) fn at_hand(&self, ledger: &Ledger, agent: &AgentId, after: Seq, through: Seq) -> Option<History> {
        let redactions = ledger.redactions();
        let mut all = self.kept();
        let kept = all.get(agent)?;
        let whole = kept.is_of(after, redactions) && kept.through >= through && !kept.is_too_long();
        if whole { all.remove(agent) } else { None }
    }

    /// Takes over facts that were recorded. Facts that do not follow on the kept ones will be read.
    pub(super) fn tell(&self, agent: &AgentId, facts: Vec<(Seq, Time, Fact)>) {
        if let Some(history) = self.kept().get_mut(agent) {
            facts.into_iter().for_each(|(seq, at, fact)| history.tell(Told { seq, at, fact }));
        }
    }

    pub(super) fn keep(&self, agent: &AgentId, history: History) {
        let mut kept = self.kept();
        let held: usize = kept.values().map(History::held_bytes).sum();
        if held + history.held_bytes() <= KEPT_BYTES {
            kept.insert(agent.clone(), history);
        }
    }

    /// An agent asleep has nothing in memory.
    pub(super) fn forget(&self, agent: &AgentId) {
        self.kept().remove(agent);
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<AgentId, History>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    fn anew(ledger: &Ledger, stream: &StreamId, after: Seq, redactions: u64) -> Result<History, ProviderFailure> {
        let head = ledger.head(stream).map_err(|error| unread(&error))?.map_or(0, |head| head.seq);
        let (mut batches, mut bytes) = (Vec::new(), 0);
        let mut back = Backwards::from(head);
        while back.end > after && head - back.end < FACTS_MAX && bytes < BYTES_MAX {
            batches.push(told(stream, &back.batch(ledger, stream, after)?, &mut bytes)?);
        }
        let end = back.end;
        batches.reverse();
        let near: Vec<Told> = batches.into_iter().flatten().collect();
        // A turn may be about a message that lies before all of this.
        let far: BTreeSet<Seq> = near.iter().filter_map(message_seq).filter(|seq| *seq <= end).collect();
        let mut facts = Vec::new();
        for seq in far {
            facts.extend(told(stream, &records(ledger, stream, seq - 1, 1)?, &mut bytes)?);
        }
        let talk = facts.into_iter().chain(near).collect();
        let (written, left_out, facts) = (WrittenItems::default(), end > after, head - end);
        Ok(History { talk, written, left_out, after, through: head, facts, bytes, redactions })
    }

    fn is_of(&self, after: Seq, redactions: u64) -> bool {
        (self.after, self.redactions) == (after, redactions)
    }

    /// An item is in memory as it was said, as it is shown, and as it is sent.
    fn held_bytes(&self) -> usize {
        self.bytes + 2 * self.written.bytes()
    }

    fn is_too_long(&self) -> bool {
        self.facts > FACTS_MAX || self.bytes > BYTES_MAX
    }

    fn tell(&mut self, told: Told) {
        if told.seq != self.through + 1 {
            return;
        }
        (self.through, self.facts) = (told.seq, self.facts + 1);
        if Talk::KINDS.contains(&told.fact.kind()) {
            // More than it takes as it is stored; what counts is that it is bounded.
            self.bytes += told.fact.encode().len();
            self.talk.tell(told);
        }
    }

    /// Facts that have been recorded since.
    fn go_on(&mut self, ledger: &Ledger, stream: &StreamId) -> Result<(), ProviderFailure> {
        loop {
            let recorded = records(ledger, stream, self.through, BATCH)?;
            let Some(last) = recorded.last() else { return Ok(()) };
            (self.through, self.facts) = (last.seq, self.facts + recorded.len() as u64);
            told(stream, &recorded, &mut self.bytes)?.into_iter().for_each(|told| self.talk.tell(told));
            if (recorded.len() as u64) < BATCH {
                return Ok(());
            }
        }
    }
}

/// Reads a stream from its end, in batches whose size follows that of the facts.
struct Backwards {
    /// Facts up to this one are still to be read.
    end: Seq,
    size: u64,
}

impl Backwards {
    fn from(end: Seq) -> Backwards {
        Backwards { end, size: FIRST_BATCH }
    }

    fn batch(&mut self, ledger: &Ledger, stream: &StreamId, after: Seq) -> Result<Vec<Recorded>, ProviderFailure> {
        let begin = self.end.saturating_sub(self.size).max(after);
        let batch = records(ledger, stream, begin, self.end - begin)?;
        let bytes: usize = batch.iter().filter_map(|recorded| recorded.payload.stored()).map(<[u8]>::len).sum();
        self.size = if bytes > LARGE_BATCH { self.size.div_ceil(4) } else { (self.size * 4).min(BATCH) };
        self.end = begin;
        Ok(batch)
    }
}

/// Replaces the excerpts among a call's messages by the messages as they were queued.
pub(super) fn complete(ledger: &Ledger, agent: &AgentId, call: &mut ModelCall) -> Result<(), ProviderFailure> {
    let stream = StreamId::agent(agent);
    for seq in mem::take(&mut call.excerpts) {
        for recorded in records(ledger, &stream, seq.saturating_sub(1), 1)? {
            let fact = decode::<AgentState>(&stream, &recorded).map_err(|damage| damaged(&damage))?;
            if let Fact::MessageQueued(queued) = fact {
                let places = iter::once(&mut call.message).chain(&mut call.interjections);
                let of_it = places.filter(|place| place.message_id == queued.message.message_id);
                of_it.for_each(|place| place.clone_from(&queued.message));
            }
        }
    }
    Ok(())
}

#[allow(clippy::wildcard_enum_match_arm, reason = "of all facts, a turn's beginning is meant")]
fn message_seq(told: &Told) -> Option<Seq> {
    match &told.fact {
        Fact::TurnStarted(started) => started.message_seq,
        _ => None,
    }
}

fn records(ledger: &Ledger, stream: &StreamId, after: Seq, count: u64) -> Result<Vec<Recorded>, ProviderFailure> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    ledger.read(stream, after, count).map_err(|error| unread(&error))
}

/// A store that can't be read for the moment, for want of a file descriptor for example, costs no message: the call is
/// retried. Damage stays.
fn unread(error: &ReadError) -> ProviderFailure {
    let message = format!("the records can't be read: {error}");
    match error {
        ReadError::Store { .. } | ReadError::Closed => ProviderFailure::system(message),
        ReadError::Damaged(_) | ReadError::NoBlob(_) | ReadError::CursorAhead { .. } => {
            ProviderFailure::invalid(message)
        }
    }
}

fn damaged(damage: &LoadError) -> ProviderFailure {
    ProviderFailure::invalid(format!("the records can't be read: {damage}"))
}

/// Those that are about what was said. A fact that was cut out of the records is passed over: nobody is to see it.
fn told(stream: &StreamId, records: &[Recorded], bytes: &mut usize) -> Result<Vec<Told>, ProviderFailure> {
    let mut told = Vec::new();
    for recorded in records {
        let Some(payload) = recorded.payload.stored() else { continue };
        *bytes += payload.len();
        let kind = &*recorded.kind;
        // Most are about something else, and to read one costs more than all the rest of this. What is not known by its
        // name is read: it may be one of these in an old spelling, or damage.
        if !Talk::KINDS.contains(&kind) && Fact::KINDS.contains(&kind) {
            continue;
        }
        let fact = decode::<AgentState>(stream, recorded).map_err(|damage| damaged(&damage))?;
        told.push(Told { seq: recorded.seq, at: recorded.at, fact });
    }
    Ok(told)
}

/// Results of its calls, for scripts that ask: a few reads of the disk, and most never ask.
#[derive(Debug)]
pub(super) struct RecordedResults {
    pub ledger: Ledger,
    pub stream: StreamId,
}

/// How far back anybody looks for a result.
const SCANNED_MAX: u64 = 20_000;

impl PastResults for RecordedResults {
    fn tool_results(&self, count: usize) -> Result<Vec<Value>, ProviderFailure> {
        let mut results = Vec::new();
        let head = self.ledger.head(&self.stream).map_err(|error| unread(&error))?;
        let Some(head) = head else { return Ok(results) };
        let mut back = Backwards::from(head.seq);
        while back.end > 0 && results.len() < count && head.seq - back.end < SCANNED_MAX {
            let facts = back.batch(&self.ledger, &self.stream, 0)?;
            let finished =
                facts.iter().rev().filter_map(|recorded| match decode::<AgentState>(&self.stream, recorded) {
                    Ok(Fact::ToolFinished(finished)) => Some(finished.result.0),
                    Ok(_) | Err(_) => None,
                });
            results.extend(finished);
        }
        results.truncate(count);
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use abide_engine::{Core, Request};
    use abide_kernel::config::{Config, Identity};
    use abide_kernel::effect::{Effect, TurnEffect};
    use abide_kernel::input::{Input, NewMessage, Reply};
    use abide_kernel::prompt::talk::Piece;
    use abide_kernel::vocabulary::ProviderError;

    use super::*;

    /// An agent that is asked something in every turn.
    struct Life {
        ledger: Ledger,
        agent: AgentId,
        core: Core,
        draws: u64,
        histories: Histories,
        /// Whether what is kept is told of what is recorded.
        tells: bool,
    }

    impl Life {
        fn new() -> Life {
            let agent = AgentId::new("ada").unwrap();
            let mut core = Core::<AgentState>::new(agent.clone());
            let identity = Identity::named(agent.clone());
            core.ask(Request::new(0, Input::Create { identity, config: Config::default(), start: true }));
            Life { ledger: Ledger::memory(), agent, core, draws: 0, histories: Histories::default(), tells: true }
        }

        /// What there is to do after this, once all is recorded that follows from it.
        fn ask(&mut self, input: Input) -> Vec<Effect> {
            self.core.ask(Request::new(0, input));
            let mut effects = Vec::new();
            while let Some(commit) = self.core.poll(Time::from_ms(1_700_000_000_000), self.draws) {
                self.draws += 1;
                self.ledger.commit(commit).wait().unwrap();
                self.core.committed();
                let outputs = self.core.take_outputs();
                effects.extend(outputs.effects);
                if self.tells {
                    self.histories.tell(&self.agent, outputs.facts);
                }
            }
            effects
        }

        /// A turn until its model is called, and the reply to that.
        #[allow(clippy::wildcard_enum_match_arm, reason = "of all effects, the call of a model is meant")]
        fn turn(&mut self, number: u64) -> Input {
            let message = NewMessage { text: Some(format!("Question {number}")), ..NewMessage::default() };
            let call = self.ask(Input::Queue(message)).into_iter().find_map(|effect| match effect {
                Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => Some((exec_id, round)),
                _ => None,
            });
            let (exec_id, round) = call.expect("the model is called");
            let reply = Reply { text: format!("Answer {number}"), ..Reply::default() };
            Input::FinishRound { exec_id, round, reply }
        }

        /// As a call does that is made now.
        fn history(&self, after: Seq) -> History {
            self.histories.read(&self.ledger, &self.agent, after, self.core.durable()).unwrap()
        }

        fn anew(&self) -> History {
            History::anew(&self.ledger, &StreamId::agent(&self.agent), 0, 0).unwrap()
        }
    }

    fn heard(history: &History) -> Vec<&str> {
        let pieces = history.talk.turns.iter().flat_map(|turn| &turn.pieces);
        pieces
            .map(|entry| match entry.piece() {
                Piece::Heard(message) => message.text.as_deref().unwrap_or_default(),
                Piece::Round(round) => &round.text,
                Piece::Note(note) => note,
            })
            .collect()
    }

    #[test]
    fn what_is_kept_is_what_would_be_read() {
        let mut life = Life::new();
        for number in 1..=4 {
            // Sometimes nobody tells, as while a call has the history with it.
            life.tells = number != 3;
            let reply = life.turn(number);
            let (history, anew) = (life.history(0), life.anew());
            assert_eq!((&history.talk, history.facts, history.through), (&anew.talk, anew.facts, anew.through));
            assert!(history.bytes >= anew.bytes / 2, "{} of {}", history.bytes, anew.bytes);
            life.histories.keep(&life.agent, history);
            life.ask(reply);
        }
        life.turn(5);
        let kept = life.history(0);
        let said: Vec<String> = (1..=5).flat_map(|n| [format!("Question {n}"), format!("Answer {n}")]).collect();
        assert_eq!(heard(&kept), said[..9]);
        // A summary speaks of what was before.
        let after = kept.talk.turns[1].last_seq;
        life.histories.keep(&life.agent, kept);
        assert_eq!(heard(&life.history(after)), said[4..9]);
    }

    #[test]
    fn what_it_was_told_of_is_not_read() {
        let mut life = Life::new();
        life.turn(1);
        let history = life.history(0);
        life.histories.keep(&life.agent, history);
        let message = NewMessage { text: Some("More.".to_owned()), ..NewMessage::default() };
        life.ask(Input::Queue(message));
        let through = life.core.durable();
        let at_hand = |through| life.histories.at_hand(&life.ledger, &life.agent, 0, through);
        assert!(at_hand(through + 1).is_none(), "what was not told of has to be read");
        assert_eq!(at_hand(through).map(|history| history.talk), Some(life.anew().talk));
        assert!(at_hand(through).is_none(), "whoever asks the model has it");
    }

    #[test]
    fn what_is_cut_out_is_not_kept() {
        let mut life = Life::new();
        let reply = life.turn(1);
        life.ask(reply);
        life.turn(2);
        let history = life.history(0);
        assert_eq!(heard(&history), ["Question 1", "Answer 1", "Question 2"]);
        life.histories.keep(&life.agent, history);
        let stream = StreamId::agent(&life.agent);
        let facts = life.ledger.read(&stream, 0, usize::MAX).unwrap();
        let answer = facts.iter().find(|fact| &*fact.kind == "turn.assistant_round_recorded").unwrap();
        life.ledger.redact(&stream, answer.seq).unwrap();
        assert!(life.histories.at_hand(&life.ledger, &life.agent, 0, 0).is_none());
        assert_eq!(heard(&life.history(0)), ["Question 1", "Question 2"]);
    }

    #[test]
    fn records_that_can_t_be_read_now_are_retried_and_damage_is_not() {
        let store = ReadError::Store { detail: "unable to open database file".to_owned() };
        assert_eq!(unread(&store).error, ProviderError::System);
        assert_eq!(unread(&ReadError::Closed).error, ProviderError::System);
        let end = Ledger::memory().end().unwrap();
        assert_eq!(unread(&ReadError::CursorAhead { cursor: end, end }).error, ProviderError::Invalid);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for_and_nothing_of_who_sleeps() {
        let (life, histories) = (Life::new(), Histories::default());
        let history = |bytes| History { bytes, ..life.anew() };
        let agents = ["ada", "bob", "cyd"].map(|name| AgentId::new(name).unwrap());
        histories.keep(&agents[0], history(KEPT_BYTES - 10));
        histories.keep(&agents[1], history(11));
        histories.keep(&agents[2], history(10));
        assert_eq!(histories.kept().keys().collect::<Vec<_>>(), [&agents[0], &agents[2]]);
        histories.forget(&agents[0]);
        assert_eq!(histories.kept().keys().collect::<Vec<_>>(), [&agents[2]]);
    }
}
