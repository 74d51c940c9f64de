//! Limits as people write and read them on the command line.

use abide_api::types::{BudgetView, LimitsView};
use abide_kernel::budget::wall_in_words;
use clap::Args;

use crate::output::counted;

/// A limit, or that there is to be none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit<T> {
    Max(T),
    Unlimited,
}

impl<T> Limit<T> {
    fn max(self) -> Option<T> {
        match self {
            Limit::Max(max) => Some(max),
            Limit::Unlimited => None,
        }
    }
}

/// Limits of the total usage.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct LimitArgs {
    /// Limit of turns in total; none: no limit
    #[arg(long, value_name = "N|none", value_parser = count)]
    pub max_turns: Option<Limit<u64>>,
    /// Limit of input and output tokens in total
    #[arg(long, value_name = "N|none", value_parser = count)]
    pub max_tokens: Option<Limit<u64>>,
    /// Limit of cost in total, in dollars
    #[arg(long, value_name = "X|none", value_parser = parse_usd)]
    pub max_usd: Option<Limit<f64>>,
    /// Limit of hours in turns in total
    #[arg(long, value_name = "H|none", value_parser = hours)]
    pub max_hours: Option<Limit<u64>>,
}

/// Limits of the usage per day, from midnight to midnight UTC.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct DailyArgs {
    /// Limit of turns per day (UTC)
    #[arg(long, value_name = "N|none", value_parser = count)]
    pub daily_turns: Option<Limit<u64>>,
    /// Limit of input and output tokens per day
    #[arg(long, value_name = "N|none", value_parser = count)]
    pub daily_tokens: Option<Limit<u64>>,
    /// Limit of cost per day, in dollars
    #[arg(long, value_name = "X|none", value_parser = parse_usd)]
    pub daily_usd: Option<Limit<f64>>,
    /// Limit of hours in turns per day
    #[arg(long, value_name = "H|none", value_parser = hours)]
    pub daily_hours: Option<Limit<u64>>,
}

#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct BudgetArgs {
    #[command(flatten)]
    pub in_all: LimitArgs,
    #[command(flatten)]
    pub daily: DailyArgs,
}

impl LimitArgs {
    pub fn is_empty(&self) -> bool {
        *self == LimitArgs::default()
    }

    /// The limits with what was said about them.
    pub fn over(&self, limits: &LimitsView) -> LimitsView {
        LimitsView {
            max_turns: self.max_turns.map_or(limits.max_turns, Limit::max),
            max_tokens: self.max_tokens.map_or(limits.max_tokens, Limit::max),
            max_usd: self.max_usd.map_or(limits.max_usd, Limit::max),
            max_wall_ms: self.max_hours.map_or(limits.max_wall_ms, Limit::max),
        }
    }
}

impl BudgetArgs {
    pub fn is_empty(&self) -> bool {
        *self == BudgetArgs::default()
    }

    /// The budget with what was said about it.
    pub fn over(&self, budget: &BudgetView) -> BudgetView {
        let BudgetView { max_turns, max_tokens, max_usd, max_wall_ms, daily } = budget.clone();
        let in_all = self.in_all.over(&LimitsView { max_turns, max_tokens, max_usd, max_wall_ms });
        let DailyArgs { daily_turns, daily_tokens, daily_usd, daily_hours } = self.daily;
        let said =
            LimitArgs { max_turns: daily_turns, max_tokens: daily_tokens, max_usd: daily_usd, max_hours: daily_hours };
        let daily = Some(said.over(&daily.unwrap_or_default())).filter(|limits| *limits != LimitsView::default());
        let LimitsView { max_turns, max_tokens, max_usd, max_wall_ms } = in_all;
        BudgetView { max_turns, max_tokens, max_usd, max_wall_ms, daily }
    }
}

/// A budget in words; none where nothing is limited.
pub fn in_words(budget: &BudgetView) -> Option<String> {
    let BudgetView { max_turns, max_tokens, max_usd, max_wall_ms, daily } = budget.clone();
    let in_all = limits(&LimitsView { max_turns, max_tokens, max_usd, max_wall_ms });
    let daily = daily.as_ref().and_then(limits).map(|limits| format!("{limits} a day"));
    let said: Vec<String> = in_all.into_iter().chain(daily).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// `3 turns, $1.5`.
pub fn limits(limits: &LimitsView) -> Option<String> {
    let turns = limits.max_turns.map(|turns| counted(turns, "turn"));
    let tokens = limits.max_tokens.map(|tokens| counted(tokens, "token"));
    let usd = limits.max_usd.map(|usd| format!("${usd}"));
    let wall = limits.max_wall_ms.map(wall_in_words);
    let said: Vec<String> = [turns, tokens, usd, wall].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Money is counted in millionths of a dollar.
const USD_LEAST: f64 = 0.000_001;
const HOUR_MS: f64 = 3_600_000.0;
/// A hundred years.
const HOURS_MAX: f64 = 876_000.0;

fn is_no_limit(text: &str) -> bool {
    text == "none"
}

fn count(text: &str) -> Result<Limit<u64>, String> {
    match text.parse() {
        Ok(max) => Ok(Limit::Max(max)),
        Err(_) if is_no_limit(text) => Ok(Limit::Unlimited),
        Err(_) => Err("it takes a whole number, or none".to_owned()),
    }
}

fn number(text: &str, most: f64, what: &str) -> Result<Limit<f64>, String> {
    match text.parse::<f64>() {
        Ok(max) if (0.0..=most).contains(&max) => Ok(Limit::Max(max)),
        Err(_) if is_no_limit(text) => Ok(Limit::Unlimited),
        Ok(_) | Err(_) => Err(format!("it takes {what} from 0 to {most}, or none")),
    }
}

fn parse_usd(text: &str) -> Result<Limit<f64>, String> {
    match number(text.strip_prefix('$').unwrap_or(text), 1e9, "dollars")? {
        // It would be rounded to nothing, and hold the agent at once.
        Limit::Max(usd) if usd > 0.0 && usd < USD_LEAST => Err(format!("it takes {USD_LEAST} dollars at least, or 0")),
        limit @ (Limit::Max(_) | Limit::Unlimited) => Ok(limit),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked first")]
fn hours(text: &str) -> Result<Limit<u64>, String> {
    Ok(match number(text, HOURS_MAX, "hours")? {
        Limit::Max(hours) => Limit::Max((hours * HOUR_MS).round() as u64),
        Limit::Unlimited => Limit::Unlimited,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_none() {
        assert_eq!(count("12"), Ok(Limit::Max(12)));
        assert_eq!(count("none"), Ok(Limit::Unlimited));
        assert_eq!(parse_usd("$1.5"), Ok(Limit::Max(1.5)));
        assert_eq!(hours("0.5"), Ok(Limit::Max(1_800_000)));
        assert_eq!(hours("none"), Ok(Limit::Unlimited));
        for wrong in ["-1", "1.5", "many", ""] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert_eq!((parse_usd("0"), parse_usd("0.000001")), (Ok(Limit::Max(0.0)), Ok(Limit::Max(0.000_001))));
        assert!(parse_usd("0.0000001").is_err_and(|hint| hint.contains("0.000001")));
        for wrong in ["-1", "nan", "inf", "1e10", "", "a"] {
            assert!(parse_usd(wrong).is_err() && hours(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_said_stays() {
        let daily = Some(LimitsView { max_turns: Some(3), max_wall_ms: Some(5), ..LimitsView::default() });
        let before = BudgetView { max_turns: Some(1), max_tokens: Some(2), daily, ..BudgetView::default() };
        let said = BudgetArgs {
            in_all: LimitArgs {
                max_turns: Some(Limit::Unlimited),
                max_usd: Some(Limit::Max(0.5)),
                ..LimitArgs::default()
            },
            daily: DailyArgs { daily_turns: Some(Limit::Max(9)), ..DailyArgs::default() },
        };
        let after = said.over(&before);
        assert_eq!((after.max_turns, after.max_tokens, after.max_usd), (None, Some(2), Some(0.5)));
        let daily = after.daily.clone().unwrap();
        assert_eq!((daily.max_turns, daily.max_wall_ms), (Some(9), Some(5)));
        assert_eq!(in_words(&after).as_deref(), Some("2 tokens, $0.5; 9 turns, 5 ms a day"));
        let one = LimitsView { max_turns: Some(1), max_tokens: Some(1), ..LimitsView::default() };
        assert_eq!(limits(&one).as_deref(), Some("1 turn, 1 token"));
    }
}
