//! The arguments of the command line; `cli/` has those of each command. Names here are a contract: add to them, do not
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
Exit codes: 0 success, 1 error, 2 usage error, 3 finished but not verified, 4 waiting for a person, 5 budget reached,
6 refused by a policy or the current state, 7 daemon unreachable, 8 not found, 130 and 143 ended by a signal";

#[derive(Debug, Parser)]
#[command(
    name = "abide",
    version,
    about = "A runtime for long-running AI agents",
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
    /// Run in a new session, detached from the terminal: `daemon start` starts `up` with this
    #[arg(long, hide = true)]
    pub detached: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// The home, and the address and token of a daemon.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The home folder, with all data and settings [default: $ABIDE_HOME, else $XDG_DATA_HOME/abide]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Talk to the daemon at this address [default: $ABIDE_URL, else the one that serves the home]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// The token to authenticate with [default: $ABIDE_TOKEN, else the home's token]
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create, list, show, start, stop and delete agents
    #[command(subcommand, arg_required_else_help = true)]
    Agent(AgentCommand),
    /// Send an agent a message
    Send(SendArgs),
    /// Explain what an agent does or waits for, with the facts that say so and what would wake it
    Why(WhyArgs),
    /// Follow events as they are committed
    Watch(WatchArgs),
    /// Show messages, answers and tool calls
    Transcript(LastArgs),
    /// Show answers and notifications of an agent
    Briefs(LastArgs),
    /// Manage work items: the goals that an agent works on
    #[command(subcommand, arg_required_else_help = true)]
    Work(WorkCommand),
    /// Manage tasks: commands and child agents
    #[command(subcommand, arg_required_else_help = true)]
    Task(TaskCommand),
    /// Manage timers, which wake an agent
    #[command(subcommand, arg_required_else_help = true)]
    Timer(TimerCommand),
    /// List and cancel waits
    #[command(subcommand, arg_required_else_help = true)]
    Wait(WaitCommand),
    /// Manage triggers: webhook URLs
    #[command(subcommand, arg_required_else_help = true)]
    Trigger(TriggerCommand),
    /// Manage workspaces: the folders that an agent works in
    #[command(subcommand, arg_required_else_help = true)]
    Workspace(WorkspaceCommand),
    /// List, grant and deny approval requests
    #[command(subcommand, arg_required_else_help = true)]
    Approval(ApprovalCommand),
    /// Run the daemon in the foreground
    Up(UpArgs),
    /// Run the daemon in the background
    #[command(subcommand, arg_required_else_help = true)]
    Daemon(DaemonCommand),
    /// Verify, export, import, fork and compact the ledger
    #[command(subcommand, arg_required_else_help = true)]
    Ledger(LedgerCommand),
    /// Show and change settings
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// List and test models
    #[command(subcommand, arg_required_else_help = true)]
    Model(ModelCommand),
    /// Manage secrets for the commands of agents; values are never shown
    #[command(subcommand, arg_required_else_help = true)]
    Secret(SecretCommand),
    /// Manage tokens for the API
    #[command(subcommand, arg_required_else_help = true)]
    Token(TokenCommand),
    /// Check the installation, and say how to fix each problem
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The agent [default: all agents]
    pub id: Option<AgentId>,
    /// Begin after this fact; without an agent, after this cursor
    #[arg(long, value_name = "SEQ")]
    pub after: Option<String>,
}

#[derive(Debug, Args)]
pub struct LastArgs {
    /// The agent
    pub id: AgentId,
    /// Only the newest N
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
    /// The agent [default: all agents]
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
