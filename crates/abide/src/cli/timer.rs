//! The arguments of `abide timer`.

use std::time::Duration;

use abide_api::types::CatchUp;
use abide_kernel::limits::TIMER_EVERY_MIN_MS;
use abide_kernel::time::Time;
use clap::{Args, Subcommand};

use super::{OfAgent, word};
use crate::span;

#[derive(Debug, Subcommand)]
pub enum TimerCommand {
    /// Create a timer
    Create(TimerArgs),
    /// List timers, newest last
    List(OfAgent),
    /// Show a timer, and the next times at which it fires
    Show {
        #[command(flatten)]
        of: OfAgent,
        /// The timer, or the end of its id
        timer: String,
    },
    /// Cancel a timer
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
    /// The message to the agent when it fires
    pub summary: String,
    /// Once, after this long: 500ms, 30s, 5m, 2h, 1d
    #[arg(long = "in", id = "after", value_name = "DURATION", value_parser = span::duration)]
    pub after: Option<Duration>,
    /// Once, at this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = time)]
    pub at: Option<Time>,
    /// At this interval: 100ms or more
    #[arg(long, value_name = "DURATION", value_parser = every)]
    pub every: Option<Duration>,
    /// A cron schedule: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "FIELDS")]
    pub cron: Option<String>,
    /// The time zone of --cron, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "cron")]
    pub time_zone: Option<String>,
    /// Which missed occurrences to deliver: latest, none or all
    #[arg(long, value_name = "HOW", value_parser = catch_up)]
    pub catch_up: Option<CatchUp>,
    /// Run this command first: exit code 0 wakes the agent, any other skips the occurrence
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
