//! The limits against endless loops, read off lists of everything that happened: the turns that an agent caused itself,
//! and the row of work ticks.

use abide_kernel::limits::WORK_TICKS_MAX;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{Priority, Standing};

use super::{Entry, Model};

const HOUR_MS: u64 = 3_600_000;
/// Turns that are counted together.
const TOGETHER_MS: u64 = 60_000;

/// Work ticks in a row, with no turn of another cause between them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    ticks: u32,
    fewest: Option<usize>,
    pub spent: bool,
}

impl Model {
    /// Until when the agent's own messages wait: an hour after the turn that fills the hour.
    pub(super) fn paced_until(&self) -> Option<Time> {
        let allowed = self.limits.self_turns_per_hour as usize;
        let newest = *self.own_turns.last().filter(|_| allowed > 0)?;
        // From the first of some that are counted together to the last of them.
        let mut together: Vec<(Time, Time, usize)> = Vec::new();
        for at in &self.own_turns {
            match together.last_mut() {
                Some((first, last, count)) if at.since_ms(*first) < TOGETHER_MS => {
                    *last = *at;
                    *count += 1;
                }
                Some(_) | None => together.push((*at, *at, 1)),
            }
        }
        together.retain(|(_, last, _)| newest.since_ms(*last) < HOUR_MS);
        let counted = |from: usize| together[from..].iter().map(|(.., count)| count).sum::<usize>();
        let full = (0..together.len()).rev().find(|from| counted(*from) >= allowed)?;
        Some(together[full].1.plus_ms(HOUR_MS))
    }

    pub(super) fn is_paced(&self, now: Time) -> bool {
        self.paced_until().is_some_and(|until| until > now)
    }

    /// When the first of the agent's own messages is taken that waits for nothing else.
    pub(super) fn pace_ends(&self) -> Option<Time> {
        let waits = Priority::ALL.iter().any(|priority| self.untimed(*priority).into_iter().any(Entry::is_own));
        self.paced_until().filter(|_| waits)
    }

    /// The beginning of a lane, up to the first message with a time of its own.
    pub(super) fn untimed(&self, priority: Priority) -> Vec<&Entry> {
        self.lane(priority).into_iter().take_while(|entry| entry.not_before.is_none()).collect()
    }

    pub(super) fn row_starts(&mut self, by_tick: bool) {
        if by_tick {
            let open = self.open_items().count();
            self.row.fewest.get_or_insert(open);
        } else {
            self.row = Row { spent: self.row.spent, ..Row::default() };
        }
    }

    pub(super) fn tick_ended(&mut self) {
        let open = self.open_items().count();
        if self.row.fewest.is_none_or(|fewest| open < fewest) {
            self.row.fewest = Some(open);
            self.row.ticks = 0;
        } else {
            self.row.ticks += 1;
        }
        self.row.spent |= self.row.ticks >= WORK_TICKS_MAX;
    }

    /// Whether work that could go on waits for the operator.
    pub(super) fn work_is_held(&self) -> bool {
        self.row.spent && self.oldest(Standing::Runnable).is_some()
    }

    /// Whether there is work that can go on.
    pub(super) fn has_work(&self) -> bool {
        !self.row.spent && self.oldest(Standing::Runnable).is_some()
    }
}

impl Entry {
    /// Caused by the agent itself, and no turn was started for it.
    pub(super) fn is_own(&self) -> bool {
        self.message.self_caused && self.taken == 0
    }
}
