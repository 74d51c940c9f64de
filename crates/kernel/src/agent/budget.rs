//! Budgets: what may be used, what was used, and what of it is handed on to a child.
//!
//! A limit holds without asking anybody else. A child is granted a part of what its supervisor has left, and that part
//! counts as used there until the child has said what it really used.

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::budget::Limits;
use crate::fact::Usage;
use crate::time::Time;
use crate::vocabulary::Measure;

const DAY_MS: i64 = 24 * 3_600_000;
/// Days before the last one of which is known what was used on them, for the case that the clock is set back to one.
const EARLIER_DAYS: usize = 7;

/// What an agent may use in all, and on one day (UTC).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_micro_usd: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub daily: Limits,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    #[serde(default)]
    pub turns: u64,
    #[serde(default)]
    pub wall_ms: u64,
    #[serde(default)]
    pub usage: Usage,
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    pub measure: Measure,
    pub used: u64,
    pub max: u64,
}

/// A budget that is reached: in all, or for a day that ends then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    pub reached: Reached,
    pub until: Option<Time>,
}

/// What was used besides what the state counts elsewhere (turns and usage of its own).
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

impl Limits {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    #[must_use]
    pub fn of(&self, measure: Measure) -> Option<u64> {
        match measure {
            Measure::Turns => self.max_turns,
            Measure::Tokens => self.max_tokens,
            Measure::Money => self.max_micro_usd,
            Measure::Wall => self.max_wall_ms,
        }
    }

    /// Limits as somebody works them out, one by one.
    fn each(mut max: impl FnMut(Measure) -> Option<u64>) -> Limits {
        Limits {
            max_turns: max(Measure::Turns),
            max_tokens: max(Measure::Tokens),
            max_micro_usd: max(Measure::Money),
            max_wall_ms: max(Measure::Wall),
        }
    }

    /// The first limit that is reached.
    #[must_use]
    pub fn reached(&self, used: impl Fn(Measure) -> u64) -> Option<Reached> {
        Measure::ALL.iter().find_map(|&measure| {
            let (max, used) = (self.of(measure)?, used(measure));
            (used >= max).then_some(Reached { measure, used, max })
        })
    }
}

impl Budget {
    #[must_use]
    pub fn in_all(&self) -> Limits {
        let Budget { max_turns, max_tokens, max_micro_usd, max_wall_ms, daily: _ } = *self;
        Limits { max_turns, max_tokens, max_micro_usd, max_wall_ms }
    }

    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Budget::default()
    }

    /// In all, or on one day.
    #[must_use]
    pub fn limits_money(&self) -> bool {
        self.max_micro_usd.or(self.daily.max_micro_usd).is_some()
    }
}

impl From<Limits> for Budget {
    fn from(limits: Limits) -> Budget {
        let Limits { max_turns, max_tokens, max_micro_usd, max_wall_ms } = limits;
        Budget { max_turns, max_tokens, max_micro_usd, max_wall_ms, daily: Limits::default() }
    }
}

impl Used {
    #[must_use]
    pub fn turn() -> Used {
        Used { turns: 1, ..Used::default() }
    }

    #[must_use]
    pub fn wall(ms: u64) -> Used {
        Used { wall_ms: ms, ..Used::default() }
    }

    #[must_use]
    pub fn tokens(usage: Usage) -> Used {
        Used { usage, ..Used::default() }
    }

    pub fn add(&mut self, more: &Used) {
        self.turns = self.turns.saturating_add(more.turns);
        self.wall_ms = self.wall_ms.saturating_add(more.wall_ms);
        self.usage.add(&more.usage);
    }

    #[must_use]
    pub fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Turns => self.turns,
            Measure::Tokens => self.usage.input_tokens.saturating_add(self.usage.output_tokens),
            Measure::Money => self.usage.cost_micro_usd,
            Measure::Wall => self.wall_ms,
        }
    }

    /// As much as a grant allows. Said of a child that is gone without a word of what it used.
    #[must_use]
    pub fn all_of(grant: &Limits) -> Used {
        let max = |measure| grant.of(measure).unwrap_or(0);
        let usage =
            Usage { input_tokens: max(Measure::Tokens), cost_micro_usd: max(Measure::Money), ..Usage::default() };
        Used { turns: max(Measure::Turns), wall_ms: max(Measure::Wall), usage }
    }
}

impl Spent {
    /// As evidence of a decision: of the state alone, whoever reads it and when.
    #[must_use]
    pub fn evidence(&self) -> String {
        match self.until {
            None => self.reached.evidence(),
            Some(until) => format!("daily_{} until {until}", self.reached.evidence()),
        }
    }
}

impl Reached {
    #[must_use]
    pub fn evidence(&self) -> String {
        let Reached { measure, used, max } = self;
        format!("{measure}_spent {used} of {max}")
    }

    /// `3 of 3 turns`, `$1.2 of $1`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Reached { measure, used, max } = *self;
        match measure {
            Measure::Turns => format!("{used} of {max} turns"),
            Measure::Tokens => format!("{used} of {max} tokens"),
            Measure::Money => format!("${} of ${}", usd(used), usd(max)),
            Measure::Wall if in_hours(used) && in_hours(max) => format!("{} of {} hours", hours(used), hours(max)),
            Measure::Wall => format!("{} of {}", wall_in_words(used), wall_in_words(max)),
        }
    }
}

/// Millionths as dollars, exactly.
fn usd(micro: u64) -> String {
    decimal(micro / 1_000_000, micro % 1_000_000, 6)
}

/// Whether hours are the word for it: what is less than a tenth of one would read as none.
fn in_hours(ms: u64) -> bool {
    ms == 0 || ms >= 360_000
}

/// Time spent in turns: `1.5 h`, `2.5 min`, `7 s`, `40 ms`.
#[must_use]
pub fn wall_in_words(ms: u64) -> String {
    match ms {
        ms if in_hours(ms) => format!("{} h", hours(ms)),
        ms if ms >= 60_000 => format!("{} min", decimal(ms / 60_000, ms % 60_000 / 6_000, 1)),
        ms if ms >= 1_000 => format!("{} s", ms / 1_000),
        ms => format!("{ms} ms"),
    }
}

/// Milliseconds as hours, to the hundredth.
fn hours(ms: u64) -> String {
    let hundredths = ms / 36_000;
    decimal(hundredths / 100, hundredths % 100, 2)
}

fn decimal(whole: u64, part: u64, digits: usize) -> String {
    let text = format!("{whole}.{part:0digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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

    /// A day that is not even tomorrow has not begun: the clock was ahead. What was used on it, and before it since today,
    /// counts for today. Says which days today is made of.
    pub(super) fn clock_set_back(&mut self, now: Time) -> Vec<i64> {
        let (today, ahead) = (day_of(now), self.day);
        if ahead <= today.saturating_add(1) {
            return Vec::new();
        }
        self.day = today;
        let since_today: Vec<_> = self.earlier.extract_if(.., |(day, _)| *day >= today).collect();
        since_today.iter().for_each(|(_, used)| self.today.add(used));
        since_today.into_iter().map(|(day, _)| day).chain([ahead]).collect()
    }

    /// What was used on that day, as far back as it is known.
    fn on_day(&mut self, day: i64) -> Option<&mut Used> {
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
    /// What it used itself.
    #[must_use]
    pub fn used(&self) -> Used {
        let turns = self.turn_index.saturating_sub(self.spending.vain_turns);
        Used { turns, wall_ms: self.spending.wall_ms, usage: self.usage }
    }

    /// What it used, and its children that are over.
    #[must_use]
    pub fn used_with_children(&self) -> Used {
        let mut used = self.used();
        used.add(&self.spending.children);
        used
    }

    /// What its children at work may use.
    #[must_use]
    pub fn granted(&self) -> Limits {
        Limits::each(|measure| {
            let grants = self.tasks.children().filter_map(|task| task.granted.of(measure));
            grants.fold(None, |sum: Option<u64>, grant| Some(sum.unwrap_or(0).saturating_add(grant)))
        })
    }

    /// The limit that keeps it from starting a turn.
    #[must_use]
    pub fn spent(&self) -> Option<Spent> {
        self.spent_of(|limits| limits)
    }

    /// The limit that ends a turn between two rounds. The turn itself has been paid for by its start.
    #[must_use]
    pub fn spent_between_rounds(&self) -> Option<Spent> {
        self.spent_of(|limits| Limits { max_turns: None, ..limits })
    }

    fn spent_of(&self, looked_at: impl Fn(Limits) -> Limits) -> Option<Spent> {
        let budget = &self.config.budget;
        if budget.is_none() {
            return None;
        }
        let granted = self.granted();
        let with = |used: Used| move |measure| used.of(measure).saturating_add(granted.of(measure).unwrap_or(0));
        let in_all = looked_at(budget.in_all()).reached(with(self.used_with_children()));
        in_all.map(|reached| Spent { reached, until: None }).or_else(|| {
            let today = looked_at(budget.daily).reached(with(self.spending.today));
            today.map(|reached| Spent { reached, until: Some(self.spending.day_ends()) })
        })
    }

    /// Whether the running turn spends money that is limited: the agent's, or that of the item it is about.
    #[must_use]
    pub fn is_money_limited(&self) -> bool {
        let item = self.turn.as_ref().and_then(|turn| self.work.open(turn.work_item_id.as_ref()?));
        self.config.budget.limits_money() || item.is_some_and(|item| item.budget.max_micro_usd.is_some())
    }

    /// When a day's budget that is spent begins anew.
    #[must_use]
    pub fn renewal(&self) -> Option<Time> {
        self.spent().and_then(|spent| spent.until)
    }

    /// The part that a child made now is granted: half of what is left, of every limit there is. An error says of what
    /// there is too little.
    pub fn grant(&self) -> Result<Limits, Reached> {
        let (budget, granted) = (&self.config.budget, self.granted());
        let pools = [(budget.in_all(), self.used_with_children()), (budget.daily, self.spending.today)];
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
        self.spending.spend(at, used);
        let Some(id) = self.turn.as_ref().and_then(|turn| turn.work_item_id.clone()) else { return };
        // An item that is completed by now has no limit any more.
        let _gone = self.work.edit(&id, |item| item.used.add(used));
        if self.work.open(&id).is_some_and(|item| !item.budget.is_none()) {
            self.restand(&id);
        }
    }

    /// No model could be asked in the running turn, and its message will be taken again: the turn is not counted.
    pub(super) fn turn_in_vain(&mut self) {
        self.spending.vain_turns += 1;
        let Some(turn) = &self.turn else { return };
        if let Some(used) = self.spending.on_day(turn.counted_on) {
            used.turns = used.turns.saturating_sub(1);
        }
        let Some(id) = turn.work_item_id.clone() else { return };
        // As above.
        let _gone = self.work.edit(&id, |item| item.used.turns = item.used.turns.saturating_sub(1));
        if self.work.open(&id).is_some_and(|item| !item.budget.is_none()) {
            self.restand(&id);
        }
    }

    /// Counts the time since it was last counted in the running turn.
    pub(super) fn spend_time(&mut self, at: Time) {
        let Some(turn) = &mut self.turn else { return };
        let ms = at.since_ms(turn.counted_to);
        turn.counted_to = turn.counted_to.max(at);
        self.spending.wall_ms = self.spending.wall_ms.saturating_add(ms);
        self.spend(at, &Used::wall(ms));
    }

    /// A child is over: what it used takes the place of what it was granted.
    pub(super) fn child_used(&mut self, at: Time, used: &Used) {
        self.spending.children.add(used);
        self.spending.spend(at, used);
    }

    /// Once the budget is no longer reached, the operator is told when it is again.
    pub(super) fn forget_told(&mut self) {
        self.spending.told &= self.spent().is_some();
    }
}
