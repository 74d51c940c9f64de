//! The words of `abide timer`.

use std::time::Duration;

use abide_api::types::CatchUp;
use abide_kernel::limits::TIMER_EVERY_MIN_MS;
use abide_kernel::time::Time;
use clap::{Args, Subcommand};

use super::{OfAgent, word};
use crate::span;

#[derive(Debug, Subcommand)]
pub enum TimerCommand {
    /// Make a timer
    Create(TimerArgs),
    /// All of them, newest last
    List(OfAgent),
    /// One of them, and when it fires next
    Show {
        #[command(flatten)]
        of: OfAgent,
        /// The timer, or the end of its id
        timer: String,
    },
    /// End one
    Cancel {
        #[command(flatten)]
        of: OfAgent,
        /// The timer, or the end of its id
        timer: String,
    },
}

#[derive(Debug, Args)]
#[group(id = "when", required = true, multiple = false, args = ["after", "at", "every", "cron"])]
pub struct TimerArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// What the agent is told when it fires
    pub summary: String,
    /// Once, after this long: 500ms, 30s, 5m, 2h, 1d
    #[arg(long = "in", id = "after", value_name = "DURATION", value_parser = span::duration)]
    pub after: Option<Duration>,
    /// Once, at this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = time)]
    pub at: Option<Time>,
    /// Again and again, this far apart: 100ms or more
    #[arg(long, value_name = "DURATION", value_parser = every)]
    pub every: Option<Duration>,
    /// By the calendar: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "FIELDS")]
    pub cron: Option<String>,
    /// Whose clocks --cron is read off, such as Europe/Berlin; UTC where it is left out
    #[arg(long, value_name = "ZONE", requires = "cron")]
    pub time_zone: Option<String>,
    /// What becomes of occurrences that were missed: latest, none or all
    #[arg(long, value_name = "HOW", value_parser = catch_up)]
    pub catch_up: Option<CatchUp>,
    /// A command that says whether it is worth a turn: 0 wakes the agent, any other exit code skips that time
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,
}

fn time(text: &str) -> Result<Time, String> {
    text.parse().map_err(|error: abide_kernel::time::BadTime| error.to_string())
}

fn every(text: &str) -> Result<Duration, String> {
    let every = span::duration(text)?;
    if span::as_ms(every) < TIMER_EVERY_MIN_MS {
        return Err(format!("it takes {TIMER_EVERY_MIN_MS}ms or more"));
    }
    Ok(every)
}

fn catch_up(text: &str) -> Result<CatchUp, String> {
    word(text, "latest, none, all")
}
