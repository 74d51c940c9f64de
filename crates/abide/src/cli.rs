//! The words of the command line, and in `cli/` those of each command. Names here are a contract: add to them, do not
//! rename.

mod agent;
mod approval;
mod config;
mod daemon;
mod ledger;
mod model;
#[cfg(test)]
mod reference;
mod secret;
mod send;
mod task;
mod timer;
mod token;
mod trigger;
mod wait;
mod why;
mod work;
mod workspace;

use std::path::PathBuf;

use abide_kernel::id::{AgentId, Seq};
use clap::{Args, Parser, Subcommand};

pub use agent::{AgentCommand, AgentsArgs, CreateArgs, CredentialArgs, NONE, SetArgs};
pub use approval::{ApprovalCommand, OneApproval};
pub use config::ConfigCommand;
pub use daemon::{DaemonCommand, UpArgs};
pub use ledger::{ExportArgs, LedgerCommand};
pub use model::ModelCommand;
pub use secret::SecretCommand;
pub use send::SendArgs;
pub use task::{OneTask, RunArgs, TaskCommand};
pub use timer::{TimerArgs, TimerCommand};
pub use token::TokenCommand;
pub use trigger::{TriggerArgs, TriggerCommand};
pub use wait::WaitCommand;
pub use why::WhyArgs;
pub use work::{OneItem, WorkCommand, WorkCreateArgs, WorkUpdateArgs};
pub use workspace::WorkspaceCommand;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 error, 2 usage, 3 finished but not verified, 4 waiting for a person, 5 a budget reached,
6 refused by policy or state, 7 no daemon reachable, 8 not found, 130 and 143 signals";

#[derive(Debug, Parser)]
#[command(
    name = "abide",
    version,
    about = "A runtime for AI agents that stay",
    propagate_version = true,
    after_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print one JSON document on stdout (streams: one a line), and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    /// In a session of its own, so that no terminal ends it: how `daemon start` starts `up`
    #[arg(long, hide = true)]
    pub detached: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// Where things are: a home, and the daemon that serves it or another one.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The folder that holds everything [default: $ABIDE_HOME, else $XDG_DATA_HOME/abide]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Talk to the daemon at this address [default: $ABIDE_URL, else the one that serves the home]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// What it knows us by [default: $ABIDE_TOKEN, else the home's token]
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make, see, start, stop and delete agents
    #[command(subcommand, arg_required_else_help = true)]
    Agent(AgentCommand),
    /// Send an agent a message
    Send(SendArgs),
    /// What an agent does or waits for, which facts say so, what would wake it
    Why(WhyArgs),
    /// What happens, as it happens
    Watch(WatchArgs),
    /// What was said and done
    Transcript(LastArgs),
    /// What an agent told you
    Briefs(LastArgs),
    /// Goals that an agent works on
    #[command(subcommand, arg_required_else_help = true)]
    Work(WorkCommand),
    /// Commands and children that an agent runs
    #[command(subcommand, arg_required_else_help = true)]
    Task(TaskCommand),
    /// Schedules that wake an agent
    #[command(subcommand, arg_required_else_help = true)]
    Timer(TimerCommand),
    /// What an agent waits for
    #[command(subcommand, arg_required_else_help = true)]
    Wait(WaitCommand),
    /// Ways in from outside
    #[command(subcommand, arg_required_else_help = true)]
    Trigger(TriggerCommand),
    /// Folders that an agent works in
    #[command(subcommand, arg_required_else_help = true)]
    Workspace(WorkspaceCommand),
    /// Questions that an agent asked
    #[command(subcommand, arg_required_else_help = true)]
    Approval(ApprovalCommand),
    /// The daemon in the foreground, with everything in the home
    Up(UpArgs),
    /// The daemon in the background
    #[command(subcommand, arg_required_else_help = true)]
    Daemon(DaemonCommand),
    /// Look after the ledger: the one place where everything is
    #[command(subcommand, arg_required_else_help = true)]
    Ledger(LedgerCommand),
    /// Settings, and where each came from
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// What agents can think with
    #[command(subcommand, arg_required_else_help = true)]
    Model(ModelCommand),
    /// Values that the commands of agents are given, and nobody is shown
    #[command(subcommand, arg_required_else_help = true)]
    Secret(SecretCommand),
    /// Who may talk to the daemon
    #[command(subcommand, arg_required_else_help = true)]
    Token(TokenCommand),
    /// Check that everything is in order, and say what to do where it is not
    Doctor,
    /// Print a script that completes these words in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The agent; all of them where none is named
    pub id: Option<AgentId>,
    /// Begin after this fact; where no agent is named, after this cursor
    #[arg(long, value_name = "SEQ")]
    pub after: Option<String>,
}

#[derive(Debug, Args)]
pub struct LastArgs {
    /// The agent
    pub id: AgentId,
    /// Only the newest so many
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
}

/// The plane of one agent.
#[derive(Debug, Args)]
pub struct OfAgent {
    /// The agent
    #[arg(long, value_name = "ID")]
    pub agent: AgentId,
}

/// The plane of one agent, or of all of them.
#[derive(Debug, Args)]
pub struct OfAgents {
    /// The agent; all of them where none is named
    #[arg(long, value_name = "ID")]
    pub agent: Option<AgentId>,
}

fn seq(text: &str) -> Result<Seq, String> {
    text.parse().map_err(|_| "it takes a whole number, the seq of a fact".to_owned())
}

/// A word as it goes over the wire, so that the shapes alone say what it may be.
fn word<T: serde::de::DeserializeOwned>(text: &str, known: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("it takes one of {known}"))
}
