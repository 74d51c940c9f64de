//! Budgets, by adding up a list of everything that was ever used.

use std::collections::BTreeSet;

use abide_kernel::agent::budget::Used;
use abide_kernel::budget::Limits;
use abide_kernel::fact::Usage;
use abide_kernel::id::WorkItemId;
use abide_kernel::time::Time;

use super::{Item, Model};

const DAY_MS: i64 = 86_400_000;
/// Days before the last one that are told apart.
const EARLIER_DAYS: usize = 7;

/// Turns, tokens, millionths of a dollar, milliseconds.
type Amounts = [u64; 4];

#[derive(Debug, Clone)]
pub(super) struct Expense {
    day: i64,
    item: Option<WorkItemId>,
    amounts: Amounts,
}

fn amounts_of(usage: &Usage) -> Amounts {
    [0, usage.input_tokens + usage.output_tokens, usage.cost_micro_usd, 0]
}

fn limits_of(limits: &Limits) -> [Option<u64>; 4] {
    [limits.max_turns, limits.max_tokens, limits.max_micro_usd, limits.max_wall_ms]
}

fn reached(limits: &Limits, amounts: Amounts) -> bool {
    limits_of(limits).into_iter().zip(amounts).any(|(max, used)| max.is_some_and(|max| used >= max))
}

fn sum(amounts: impl Iterator<Item = Amounts>) -> Amounts {
    amounts.fold([0; 4], |sum, more| std::array::from_fn(|which| sum[which] + more[which]))
}

impl Model {
    pub(super) fn budget_is_spent(&self) -> bool {
        self.spent_in_all() || self.spent_today()
    }

    fn spent_in_all(&self) -> bool {
        let budget = &self.budget;
        let limits = Limits {
            max_turns: budget.max_turns,
            max_tokens: budget.max_tokens,
            max_micro_usd: budget.max_micro_usd,
            max_wall_ms: budget.max_wall_ms,
        };
        reached(&limits, self.with_grants(self.expenses.iter().map(|expense| expense.amounts)))
    }

    fn spent_today(&self) -> bool {
        let today = self.expenses.iter().filter(|expense| expense.day == self.day);
        reached(&self.budget.daily, self.with_grants(today.map(|expense| expense.amounts)))
    }

    /// The grant of a running child counts as used, on every day.
    fn with_grants(&self, used: impl Iterator<Item = Amounts>) -> Amounts {
        let grants = self.tasks.iter().filter(|task| task.child && !task.terminal);
        sum(used.chain(grants.map(|task| limits_of(&task.grant).map(Option::unwrap_or_default))))
    }

    /// When a budget that is spent for a day begins anew.
    pub(super) fn renewal(&self) -> Option<Time> {
        let only_today = self.spent_today() && !self.spent_in_all();
        only_today.then(|| Time::from_ms((self.day + 1) * DAY_MS))
    }

    pub(super) fn item_budget_is_spent(&self, item: &Item) -> bool {
        let of_it = self.expenses.iter().filter(|expense| expense.item.as_ref() == Some(&item.id));
        let joined = self.joined_turns.iter().filter(|id| **id == item.id).map(|_| [1, 0, 0, 0]);
        reached(&item.budget, sum(of_it.map(|expense| expense.amounts).chain(joined)))
    }

    pub(super) fn begin_day(&mut self, at: Time) {
        let day = at.as_ms().div_euclid(DAY_MS);
        if day <= self.day {
            return;
        }
        self.day = day;
        let used = self.expenses.iter().filter(|expense| expense.amounts != [0; 4]);
        let days: BTreeSet<i64> = used.map(|expense| expense.day).collect();
        let oldest = days.iter().rev().nth(EARLIER_DAYS - 1).copied().unwrap_or(i64::MIN);
        // Older expenses count in all, and no longer by their day.
        self.expenses.iter_mut().filter(|expense| expense.day < oldest).for_each(|expense| expense.day = i64::MIN);
    }

    /// Usage of a day that has not begun, and of the days before it since today, becomes today's.
    pub(super) fn day_set_back(&mut self, to: Time) {
        let today = to.as_ms().div_euclid(DAY_MS);
        if self.day <= today + 1 {
            return;
        }
        self.expenses.iter_mut().for_each(|expense| expense.day = expense.day.min(today));
        self.day = today;
    }

    fn used(&mut self, at: Time, item: Option<WorkItemId>, amounts: Amounts) {
        self.begin_day(at);
        self.expenses.push(Expense { day: self.day, item, amounts });
    }

    fn turns_item(&self) -> Option<WorkItemId> {
        self.turn.as_ref().and_then(|turn| turn.work_item_id.clone())
    }

    pub(super) fn turn_used(&mut self, at: Time) {
        self.used(at, self.turns_item(), [1, 0, 0, 0]);
    }

    /// No model said a word in it.
    pub(super) fn turn_in_vain(&mut self) {
        if let Some(expense) = self.turn.as_ref().and_then(|turn| self.expenses.get_mut(turn.expense)) {
            expense.amounts = [0; 4];
        }
    }

    pub(super) fn round_used(&mut self, at: Time, usage: &Usage) {
        self.used(at, self.turns_item(), amounts_of(usage));
        self.time_used(at);
    }

    pub(super) fn compaction_used(&mut self, at: Time, usage: &Usage) {
        self.used(at, None, amounts_of(usage));
    }

    /// The time of the running turn up to now.
    pub(super) fn time_used(&mut self, at: Time) {
        let Some(turn) = &mut self.turn else { return };
        let ms = at.since_ms(turn.counted_to);
        turn.counted_to = turn.counted_to.max(at);
        self.used(at, self.turns_item(), [0, 0, 0, ms]);
    }

    /// A child that says nothing of what it used has used all that it was granted.
    pub(super) fn child_used(&mut self, at: Time, item: Option<WorkItemId>, used: Option<&Used>, grant: &Limits) {
        let amounts = match used {
            Some(used) => {
                let [_, tokens, money, _] = amounts_of(&used.usage);
                [used.turns, tokens, money, used.wall_ms]
            }
            None => limits_of(grant).map(Option::unwrap_or_default),
        };
        self.used(at, item, amounts);
    }
}
