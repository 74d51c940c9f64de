//! Budgets: limits, amounts used, and limits that are reached. `state/spending.rs` compares them.

use serde::{Deserialize, Serialize};

use crate::time::Time;
use crate::vocabulary::Measure;

/// Hard limits. What is left out is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_micro_usd: Option<u64>,
    /// Time spent in turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
}

/// Limits of an agent's use: in all, and on one day (UTC).
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

/// Amounts that were used.
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default)]
    pub cached_tokens: u64,
    /// Of the input: what the provider put into its cache, where it charges for that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Millionths of a dollar: sums stay exact.
    #[serde(default)]
    pub cost_micro_usd: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    pub fn add(&mut self, more: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(more.cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(more.cache_write_tokens);
        self.cost_micro_usd = self.cost_micro_usd.saturating_add(more.cost_micro_usd);
    }
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
    pub(crate) fn each(mut max: impl FnMut(Measure) -> Option<u64>) -> Limits {
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
    /// As evidence of a decision: of the state alone, the same for every reader at any time.
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
