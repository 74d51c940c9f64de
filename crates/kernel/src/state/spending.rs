//! Budgets: the limits, the usage, and the part that a child gets.
//!
//! A limit holds without asking anybody else. A child is granted a part of what its supervisor has left, and that part
//! counts as used there until the child has said what it really used.

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::budget::{Limits, Reached, Spent, Used};
use crate::time::Time;

const DAY_MS: i64 = 24 * 3_600_000;
/// Days before the last one of which is known what was used on them, for the case that the clock is set back to one.
const EARLIER_DAYS: usize = 7;

/// The usage that the state counts nowhere else: it has the agent's own turns and tokens already.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// Time spent in turns.
    pub wall_ms: u64,
    /// Turns in which no model said a word, and whose message was taken again: they count for nothing.
    #[serde(default)]
    pub vain_turns: u64,
    /// By children that are over.
    pub children: Used,
    /// The day (since 1970) on which something was last used, and what was used on it.
    pub day: i64,
    pub today: Used,
    /// The last days before that on which something was used, oldest first, and what was used on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<(i64, Used)>,
    /// The operator was told that the budget is reached, and it still is.
    pub told: bool,
}

fn day_of(at: Time) -> i64 {
    at.as_ms().div_euclid(DAY_MS)
}

impl Spending {
    /// A day that has begun stays begun when the clock is set back over midnight: nobody gets its budget twice.
    pub(super) fn begin_day(&mut self, at: Time) {
        if day_of(at) > self.day {
            if self.today != Used::default() {
                self.earlier.push((self.day, self.today));
                self.earlier.drain(..self.earlier.len().saturating_sub(EARLIER_DAYS));
            }
            self.day = day_of(at);
            self.today = Used::default();
        }
    }

    /// A day after tomorrow has not begun: the clock was ahead. The usage of that day, and of the days since today, counts
    /// for today. Returns the days that were merged.
    pub(super) fn merge_future_days(&mut self, now: Time) -> Vec<i64> {
        let (today, ahead) = (day_of(now), self.day);
        if ahead <= today.saturating_add(1) {
            return Vec::new();
        }
        self.day = today;
        let since_today: Vec<_> = self.earlier.extract_if(.., |(day, _)| *day >= today).collect();
        since_today.iter().for_each(|(_, used)| self.today.add(used));
        since_today.into_iter().map(|(day, _)| day).chain([ahead]).collect()
    }

    /// The usage of a day, as far back as it is known.
    fn usage_of_day(&mut self, day: i64) -> Option<&mut Used> {
        if day == self.day {
            return Some(&mut self.today);
        }
        self.earlier.iter_mut().find(|(earlier, _)| *earlier == day).map(|(_, used)| used)
    }

    pub(super) fn spend(&mut self, at: Time, used: &Used) {
        self.begin_day(at);
        self.today.add(used);
    }

    /// When the day of this instant began.
    #[must_use]
    pub fn day_begins(at: Time) -> Time {
        Time::from_ms(day_of(at).saturating_mul(DAY_MS))
    }

    /// When the day after that of this instant begins.
    #[must_use]
    pub fn next_day(at: Time) -> Time {
        Time::from_ms(day_of(at).saturating_add(1).saturating_mul(DAY_MS))
    }

    /// When the day ends on which something was last used.
    #[must_use]
    pub fn day_ends(&self) -> Time {
        Time::from_ms(self.day.saturating_add(1).saturating_mul(DAY_MS))
    }
}

impl AgentState {
    /// The usage of the agent itself.
    #[must_use]
    pub fn used(&self) -> Used {
        let turns = self.turns.last_index.saturating_sub(self.accounts.spending.vain_turns);
        Used { turns, wall_ms: self.accounts.spending.wall_ms, usage: self.accounts.usage }
    }

    /// The usage of the agent and of its ended children.
    #[must_use]
    pub fn used_with_children(&self) -> Used {
        let mut used = self.used();
        used.add(&self.accounts.spending.children);
        used
    }

    /// The sum of the budgets of its running children.
    #[must_use]
    pub fn allowed_to_children(&self) -> Limits {
        Limits::each(|measure| {
            let grants = self.planes.tasks.children().filter_map(|task| task.granted.of(measure));
            grants.fold(None, |sum: Option<u64>, grant| Some(sum.unwrap_or(0).saturating_add(grant)))
        })
    }

    /// The limit that keeps it from starting a turn.
    #[must_use]
    pub fn spent_limit(&self) -> Option<Spent> {
        self.find_spent_limit(|limits| limits)
    }

    /// The limit that ends a turn between two rounds. The turn itself has been paid for by its start.
    #[must_use]
    pub fn spent_between_rounds(&self) -> Option<Spent> {
        self.find_spent_limit(|limits| Limits { max_turns: None, ..limits })
    }

    fn find_spent_limit(&self, looked_at: impl Fn(Limits) -> Limits) -> Option<Spent> {
        let budget = &self.definition.config.budget;
        if budget.is_none() {
            return None;
        }
        let granted = self.allowed_to_children();
        let with = |used: Used| move |measure| used.of(measure).saturating_add(granted.of(measure).unwrap_or(0));
        let in_all = looked_at(budget.in_all()).reached(with(self.used_with_children()));
        in_all.map(|reached| Spent { reached, until: None }).or_else(|| {
            let today = looked_at(budget.daily).reached(with(self.accounts.spending.today));
            today.map(|reached| Spent { reached, until: Some(self.accounts.spending.day_ends()) })
        })
    }

    /// Whether the running turn spends money that is limited: the agent's, or that of the item it is about.
    #[must_use]
    pub fn is_money_limited(&self) -> bool {
        let item = self.turns.current.as_ref().and_then(|turn| self.planes.work.open(turn.work_item_id()?));
        self.definition.config.budget.limits_money() || item.is_some_and(|item| item.budget.max_micro_usd.is_some())
    }

    /// When a day's budget that is spent begins anew.
    #[must_use]
    pub fn next_renewal(&self) -> Option<Time> {
        self.spent_limit().and_then(|spent| spent.until)
    }

    /// The budget of a child that is made now: half of the rest of every limit. The error names the limit that has too
    /// little left.
    pub fn allowance_for_child(&self) -> Result<Limits, Reached> {
        let (budget, granted) = (&self.definition.config.budget, self.allowed_to_children());
        let pools = [(budget.in_all(), self.used_with_children()), (budget.daily, self.accounts.spending.today)];
        let mut short = None;
        let grant = Limits::each(|measure| {
            let mut least: Option<u64> = None;
            for (limits, used) in &pools {
                let Some(max) = limits.of(measure) else { continue };
                let used = used.of(measure).saturating_add(granted.of(measure).unwrap_or(0));
                let half = max.saturating_sub(used) / 2;
                if half == 0 {
                    short = short.or(Some(Reached { measure, used, max }));
                }
                least = Some(least.map_or(half, |least| least.min(half)));
            }
            least
        });
        match short {
            Some(short) => Err(short),
            None => Ok(grant),
        }
    }

    /// Counts what was used, also on the item that the turn is about.
    pub(super) fn spend(&mut self, at: Time, used: &Used) {
        self.accounts.spending.spend(at, used);
        let Some(id) = self.turns.current.as_ref().and_then(|turn| turn.work_item_id().cloned()) else { return };
        // An item that is completed by now has no limit any more.
        let _gone = self.planes.work.edit(&id, |item| item.used.add(used));
        if self.planes.work.open(&id).is_some_and(|item| !item.budget.is_none()) {
            self.planes.update_standing(&id);
        }
    }

    /// No model could be asked in the running turn, and its message will be taken again: the turn is not counted.
    pub(super) fn uncount_turn(&mut self) {
        self.accounts.spending.vain_turns += 1;
        let Some(turn) = &self.turns.current else { return };
        if let Some(used) = self.accounts.spending.usage_of_day(turn.counted_on) {
            used.turns = used.turns.saturating_sub(1);
        }
        let Some(id) = turn.work_item_id().cloned() else { return };
        // As above.
        let _gone = self.planes.work.edit(&id, |item| item.used.turns = item.used.turns.saturating_sub(1));
        if self.planes.work.open(&id).is_some_and(|item| !item.budget.is_none()) {
            self.planes.update_standing(&id);
        }
    }

    /// Counts the time since it was last counted in the running turn.
    pub(super) fn spend_time(&mut self, at: Time) {
        let Some(turn) = &mut self.turns.current else { return };
        let ms = at.since_ms(turn.counted_to);
        turn.counted_to = turn.counted_to.max(at);
        self.accounts.spending.wall_ms = self.accounts.spending.wall_ms.saturating_add(ms);
        self.spend(at, &Used::wall(ms));
    }

    /// A child is over: what it used takes the place of what it was granted.
    pub(super) fn count_child_usage(&mut self, at: Time, used: &Used) {
        self.accounts.spending.children.add(used);
        self.accounts.spending.spend(at, used);
    }

    /// Once the budget is no longer reached, the operator is told when it is again.
    pub(super) fn reset_budget_notice(&mut self) {
        self.accounts.spending.told &= self.spent_limit().is_some();
    }
}
