//! The arguments of `abide work`.

use std::path::PathBuf;
use std::time::Duration;

use abide_api::types::PlanStatus;
use abide_kernel::vocabulary::WorkItemFilter;
use clap::{Args, Subcommand};

use super::{OfAgent, word};
use crate::budget::LimitArgs;
use crate::span;

#[derive(Debug, Subcommand)]
pub enum WorkCommand {
    /// List work items, newest last
    List {
        #[command(flatten)]
        of: OfAgent,
        /// Only these: open, completed, current, queued, blocked or waiting
        #[arg(long, value_name = "WHICH", value_parser = work_filter)]
        filter: Option<WorkItemFilter>,
    },
    /// Show a work item, with its plan, todo list and report
    Show(OneItem),
    /// Create a work item
    Create(WorkCreateArgs),
    /// Make a work item the current one
    Pick(OneItem),
    /// Change a work item; fields that are left out stay
    Update(WorkUpdateArgs),
    /// Mark a work item as blocked
    Block {
        #[command(flatten)]
        one: OneItem,
        /// The blocker
        #[arg(long, value_name = "TEXT")]
        by: String,
        /// Remind the agent of it after this long: 30s, 5m, 2h, 1d
        #[arg(long, value_name = "DURATION", value_parser = span::duration)]
        recheck: Option<Duration>,
    },
    /// Complete a work item; it cannot be reopened
    Complete {
        #[command(flatten)]
        one: OneItem,
        /// The result, and how it was verified; - reads stdin
        #[arg(long, value_name = "TEXT")]
        report: String,
    },
}

#[derive(Debug, Args)]
pub struct OneItem {
    #[command(flatten)]
    pub of: OfAgent,
    /// The work item, or the end of its id
    pub item: String,
}

#[derive(Debug, Args)]
pub struct WorkCreateArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// The goal, in one line
    pub objective: String,
    /// The plan, from this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// draft, ready, or needs_input (a person has to answer first)
    #[arg(long, value_name = "STATUS", value_parser = plan_status)]
    pub plan_status: Option<PlanStatus>,
    /// An entry of its todo list; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub todo: Vec<String>,
    #[command(flatten)]
    pub budget: LimitArgs,
}

#[derive(Debug, Args)]
pub struct WorkUpdateArgs {
    #[command(flatten)]
    pub one: OneItem,
    /// The goal, in one line
    #[arg(long, value_name = "TEXT")]
    pub objective: Option<String>,
    /// The plan, from this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// draft, ready, or needs_input (a person has to answer first)
    #[arg(long, value_name = "STATUS", value_parser = plan_status)]
    pub plan_status: Option<PlanStatus>,
    /// Add an entry to its todo list; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub todo: Vec<String>,
    /// This entry of its todo list is done, counted from 1; may be repeated
    #[arg(long, value_name = "N")]
    pub done: Vec<usize>,
    /// This entry is in progress
    #[arg(long, value_name = "N")]
    pub doing: Option<usize>,
    /// Remove the blocker
    #[arg(long)]
    pub unblock: bool,
    #[command(flatten)]
    pub budget: LimitArgs,
}

fn plan_status(text: &str) -> Result<PlanStatus, String> {
    word(text, "draft, ready, needs_input")
}

fn work_filter(text: &str) -> Result<WorkItemFilter, String> {
    word(text, "all, open, completed, current, queued, blocked, waiting")
}
