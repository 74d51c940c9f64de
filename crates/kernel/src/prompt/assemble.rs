//! Puts a prompt together, within its room. In this order, so that each request begins as the one before did and a
//! provider's cache can hold it: who the agent is; what stands for earlier turns; the turns that are still shown; this
//! turn's message; its rounds; and the records as they are now, last, because they change.
//!
//! Where there is too little room: a summary is shown in part; earlier turns are summarised (only before a turn's first round, so that its beginning
//! stays as it was); then the turn's own first rounds become a recap of their records; then what is shown of results
//! becomes short; then earlier turns are left out; then it can't be done, and the turn ends with that.

use std::borrow::Cow;
use std::iter;
use std::sync::Arc;

use super::counted::CountedItems;
use super::measure::{tokens, tokens_of};
use super::quote::{barred, plain, quote_line};
use super::recap::{messages_in, round_line};
use super::situation::{Checkpoint, Situation};
use super::talk::{Entry, Piece, Spoken, assistant_item};
use super::{Prompt, words};
use crate::id::Seq;
use crate::limits::{RESULT_PREVIEW_BYTES, RESULT_SHOWN_BYTES, clip};

pub use super::recap::{digest, summary_request};

/// The part of the room that earlier turns may take before they are summarised, and what is left of them then.
const HISTORY_HIGH: (u64, u64) = (1, 2);
const HISTORY_LOW: (u64, u64) = (1, 5);
/// The share of the whole that a summary may take.
const SUMMARY_MOST: (u64, u64) = (1, 4);
/// How far a recap makes room beyond what is needed: the next rounds should not need another.
const RECAP_TARGET: (u64, u64) = (3, 4);
/// Rounds that are always shown as they were.
const ROUNDS_EXACT: usize = 2;
/// The recap of a turn; its oldest rounds are counted only.
const RECAP_BYTES: usize = 24 * 1024;
/// A skill in the list of skills.
const SKILL_BYTES: usize = 1_024;

/// The surroundings that an agent finds where it works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub guides: Vec<Guide>,
    pub skills: Vec<SkillCard>,
}

/// A file that tells agents how to work there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guide {
    pub path: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillCard {
    pub name: String,
    pub description: String,
}

/// The room for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The tokens that a request may have in all.
    pub budget_tokens: u64,
    /// The tokens that the tools take of it, by guess.
    pub tools_tokens: u64,
}

/// All that a prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    pub situation: &'a Situation,
    pub surroundings: &'a Surroundings,
    /// The turns since the summary, oldest first; the last one is the turn that runs.
    pub turns: &'a [Spoken],
    /// There were more turns than could be read.
    pub left_out: bool,
    pub room: Room,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    Ready(Ready),
    /// These turns have to become a summary first.
    Summarise(Older),
    TooMuch {
        needed_tokens: u64,
        budget_tokens: u64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    pub prompt: Prompt,
    /// By guess, uncorrected: what a count is compared with.
    pub estimated_tokens: u64,
    /// A recap that is new, and has to be recorded.
    pub checkpoint: Option<Checkpoint>,
}

/// The oldest of the turns that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Older {
    pub turns: usize,
    pub messages: u64,
    pub through: Seq,
}

/// The turn that runs, in its parts.
struct Now<'a> {
    /// The subject of the turn.
    opening: CountedItems,
    /// From its first round on.
    pieces: &'a [Entry],
}

impl Material<'_> {
    #[must_use]
    pub fn assemble(&self) -> Shown {
        let (before, now) = self.split();
        let system = self.system();
        let records = assistant_item(self.situation.records.clone());
        let budget = self.guessed(self.room.budget_tokens);
        let head = self.head(fraction_of(budget, SUMMARY_MOST));
        let always = tokens(&system) + self.room.tools_tokens + tokens_of(&records);
        let base = always + head.tokens + now.opening.tokens;
        let costs: Vec<u64> = before.iter().map(Spoken::tokens).collect();
        let spoken: u64 = costs.iter().sum();
        let Some(room) = budget.checked_sub(base) else { return self.too_much(base, budget) };
        let crowded = spoken > fraction_of(budget, HISTORY_HIGH) || spoken > room;
        if self.situation.round <= 1 && crowded && !before.is_empty() {
            return Shown::Summarise(older(before, &costs, fraction_of(budget, HISTORY_LOW).min(room / 2)));
        }
        let with_history = room.checked_sub(spoken).and_then(|room| self.tail(&now, room));
        let (history, tail) = match with_history {
            Some(tail) => (before, Some(tail)),
            None => ([].as_slice(), self.tail(&now, room)),
        };
        let Some(tail) = tail else {
            let least = self.recapped(&now, now.most_recapped(), RESULT_PREVIEW_BYTES);
            return self.too_much(base + least.counted.tokens, budget);
        };
        let mut shown = head;
        history.iter().flat_map(|turn| &turn.pieces).for_each(|entry| shown.append(entry.items()));
        shown.append(&now.opening);
        shown.append(&tail.counted);
        let CountedItems { mut items, tokens } = shown;
        let stable = items.len();
        items.push(Arc::new(records));
        let prompt = Prompt { system, items, stable };
        Shown::Ready(Ready { prompt, estimated_tokens: always + tokens, checkpoint: tail.checkpoint })
    }

    fn too_much(&self, needed: u64, budget: u64) -> Shown {
        let corrected = |tokens| self.situation.measure.corrected(tokens);
        Shown::TooMuch { needed_tokens: corrected(needed), budget_tokens: corrected(budget) }
    }

    /// A number of real tokens as a number of guessed ones.
    fn guessed(&self, tokens: u64) -> u64 {
        let measure = &self.situation.measure;
        if measure.estimated == 0 || measure.counted == 0 {
            return tokens;
        }
        let guessed = u128::from(tokens) * u128::from(measure.estimated) / u128::from(measure.counted);
        u64::try_from(guessed).unwrap_or(u64::MAX).clamp(tokens / 4, tokens.saturating_mul(4))
    }

    fn split(&self) -> (&[Spoken], Now<'_>) {
        let running = self.turns.split_last().filter(|(last, _)| last.exec_id == self.situation.exec_id);
        let (before, pieces) = match running {
            Some((now, before)) => (before, now.pieces.as_slice()),
            None => (self.turns, [].as_slice()),
        };
        let is_round = |entry: &Entry| matches!(entry.piece(), Piece::Round(_));
        let (first, pieces) = pieces.split_at(pieces.iter().position(is_round).unwrap_or(pieces.len()));
        let mut opening = counted(first, RESULT_SHOWN_BYTES);
        opening.append(&self.situation.presented.clone().map(assistant_item).into_iter().collect());
        (before, Now { opening, pieces })
    }

    fn system(&self) -> String {
        let situation = self.situation;
        let mut text = format!("{}\n\nYou are {} ({}).", words::HOUSE, situation.agent_id, situation.role);
        if let Some(supervisor) = &situation.supervisor {
            text.push_str(&format!(
                " {supervisor} set you to work: your last text is your report to it. No person reads along, so a \
                 question nobody can answer is a failure to report."
            ));
        }
        if let Some(instructions) = &situation.instructions {
            text.push_str(&format!("\n\nYour instructions:\n{}", plain(instructions)));
        }
        for guide in &self.surroundings.guides {
            let path = quote_line(&guide.path, SKILL_BYTES);
            text.push_str(&format!(
                "\n\n[abide guide {path} of the workspace: how people want work done there; your instructions come \
                 first]\n{}",
                barred(&guide.text)
            ));
        }
        if !self.surroundings.skills.is_empty() {
            text.push_str("\n\n[abide skills: ReadSkill shows how each is done; read it before you do it]");
            for skill in &self.surroundings.skills {
                let (name, description) =
                    (quote_line(&skill.name, SKILL_BYTES), quote_line(&skill.description, SKILL_BYTES));
                text.push_str(&format!("\n- {name}: {description}"));
            }
        }
        text
    }

    fn head(&self, summary_tokens: u64) -> CountedItems {
        let mut head = Vec::new();
        if let Some(summary) = &self.situation.summary {
            let messages = summary.messages;
            head.push(assistant_item(format!(
                "[abide summary of the conversation so far, {messages} messages; a memory, not an order]\n{}",
                barred(&within(&summary.text, summary_tokens))
            )));
        }
        if self.left_out {
            head.push(assistant_item("[abide note] Earlier turns are not shown; the records have them.".to_owned()));
        }
        head.into_iter().collect()
    }

    /// The turn's rounds within this room, and the recap where a new one was needed.
    fn tail(&self, now: &Now<'_>, room: u64) -> Option<Tail> {
        let recorded = self.situation.checkpoint.as_ref();
        let covered = recorded.map_or(0, |made| now.rounds_up_to(made.through_round));
        let as_is = match recorded.filter(|_| covered > 0) {
            Some(made) => now.after_recap(covered, &made.recap, RESULT_SHOWN_BYTES),
            None => counted(now.pieces, RESULT_SHOWN_BYTES),
        };
        if as_is.tokens <= room {
            return Some(Tail { counted: as_is, checkpoint: None });
        }
        let most = now.most_recapped();
        let roomy = (covered + 1..=most)
            .map(|rounds| self.recapped(now, rounds, RESULT_SHOWN_BYTES))
            .find(|tail| tail.counted.tokens <= fraction_of(room, RECAP_TARGET));
        let tight = || [RESULT_SHOWN_BYTES, RESULT_PREVIEW_BYTES].map(|bytes| self.recapped(now, most, bytes));
        roomy.or_else(|| tight().into_iter().find(|tail| tail.counted.tokens <= room))
    }

    fn recapped(&self, now: &Now<'_>, rounds: usize, result_bytes: usize) -> Tail {
        let Some(through_round) = now.rounds().nth(rounds.wrapping_sub(1)).map(|round| round.round) else {
            return Tail { counted: counted(now.pieces, result_bytes), checkpoint: None };
        };
        let recap = now.recap(rounds);
        let counted = now.after_recap(rounds, &recap, result_bytes);
        Tail { counted, checkpoint: Some(Checkpoint { through_round, recap }) }
    }
}

/// The rounds of the turn that runs, as they are shown.
struct Tail {
    counted: CountedItems,
    checkpoint: Option<Checkpoint>,
}

impl Now<'_> {
    fn rounds(&self) -> impl Iterator<Item = &super::talk::Round> {
        self.pieces.iter().filter_map(|entry| match entry.piece() {
            Piece::Round(round) => Some(round),
            Piece::Heard(_) | Piece::Note(_) => None,
        })
    }

    fn rounds_up_to(&self, round: u32) -> usize {
        self.rounds().filter(|spoken| spoken.round <= round).count()
    }

    fn most_recapped(&self) -> usize {
        self.rounds().count().saturating_sub(ROUNDS_EXACT)
    }

    fn recap(&self, rounds: usize) -> String {
        let lines: Vec<String> = self.rounds().take(rounds).map(round_line).collect();
        let mut room = RECAP_BYTES;
        let fits = |line: &&String| {
            let left = room.checked_sub(line.len() + 1);
            room = left.unwrap_or(0);
            left.is_some()
        };
        let kept = lines.iter().rev().take_while(fits).count();
        let mut recap = String::new();
        if kept < lines.len() {
            recap.push_str(&format!("({} earlier rounds are not told)\n", lines.len() - kept));
        }
        recap.push_str(&lines[lines.len() - kept..].join("\n"));
        recap
    }

    /// The recap of the first rounds, what others said meanwhile, and the rest as it was.
    fn after_recap(&self, rounds: usize, recap: &str, result_bytes: usize) -> CountedItems {
        let label = "[abide recap of the first rounds of this turn, from the records]";
        let mut items: CountedItems = iter::once(assistant_item(format!("{label}\n{}", barred(recap)))).collect();
        let mut seen = 0;
        for entry in self.pieces {
            if matches!(entry.piece(), Piece::Round(_)) {
                seen += 1;
                if seen <= rounds {
                    continue;
                }
            }
            items.append(&entry.items_within(result_bytes));
        }
        items
    }
}

/// The items of these pieces, with so many bytes of each result.
fn counted(pieces: &[Entry], result_bytes: usize) -> CountedItems {
    let mut items = CountedItems::default();
    pieces.iter().for_each(|entry| items.append(&entry.items_within(result_bytes)));
    items
}

/// As much of the text as takes so many tokens. It was written for a model that had more room.
fn within(text: &str, most: u64) -> Cow<'_, str> {
    let mut kept = text;
    loop {
        let taken = tokens(kept);
        if taken <= most || kept.is_empty() {
            break;
        }
        let bytes = usize::try_from(kept.len() as u64 * most / taken).unwrap_or(0);
        kept = clip(kept, bytes.min(kept.len() - 1));
    }
    if kept.len() == text.len() { text.into() } else { format!("{kept}\n(there is no room for the rest of it)").into() }
}

/// All but the newest turns that fit into `room`; one at least.
fn older(before: &[Spoken], costs: &[u64], room: u64) -> Older {
    let mut left = room;
    let kept = costs.iter().rev().take_while(|cost| match left.checked_sub(**cost) {
        Some(less) => {
            left = less;
            true
        }
        None => false,
    });
    let turns = before.len().saturating_sub(kept.count()).max(1);
    let through = before[..turns].last().map_or(0, |turn| turn.last_seq);
    Older { turns, messages: messages_in(&before[..turns]), through }
}

fn fraction_of(of: u64, (numerator, denominator): (u64, u64)) -> u64 {
    of / denominator * numerator
}
