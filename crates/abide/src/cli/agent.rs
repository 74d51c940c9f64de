//! The words of `abide agent`.

use std::path::PathBuf;

use abide_api::types::Role;
use abide_kernel::id::AgentId;
use clap::{Args, Subcommand};

use super::word;
use crate::budget::BudgetArgs;
use crate::credentials;

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Make an agent, and start it
    Create(CreateArgs),
    /// All agents
    List,
    /// The whole picture of one agent
    Show {
        /// The agent
        id: AgentId,
    },
    /// Change what it thinks with, where it works, what it may reach and use, and what it always knows
    Set(SetArgs),
    /// Start stopped agents: one, several or all
    Start(AgentsArgs),
    /// Stop agents: one, several or all; messages are kept, and each can be started again
    Stop(AgentsArgs),
    /// End what it is doing right now; the agent goes on
    Abort {
        /// The agent
        id: AgentId,
        /// Only this execution; another one that runs by then is left alone
        #[arg(long, value_name = "EXEC")]
        exec: Option<String>,
    },
    /// Archive a stopped agent; its id is not used again
    Delete {
        /// The agent
        id: AgentId,
    },
    /// Deprecated: start
    #[command(hide = true)]
    Resume {
        /// The agent
        id: AgentId,
    },
    /// Deprecated: stop
    #[command(hide = true)]
    Pause {
        /// The agent
        id: AgentId,
    },
}

#[derive(Debug, Args)]
#[group(id = "agents", required = true, multiple = false, args = ["ids", "all"])]
pub struct AgentsArgs {
    /// The agents
    #[arg(value_name = "ID")]
    pub ids: Vec<AgentId>,
    /// Every agent; children go with the agent that made them
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its name: 1 to 64 of a-z, 0-9, '.', '_' and '-'
    pub id: AgentId,
    /// What it thinks with: PROVIDER/MODEL; default: what the settings have, also when they change
    #[arg(long, value_name = "MODEL", value_parser = model_or_default)]
    pub model: Option<String>,
    /// The folder it works in
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let it work in a folder of the system, such as /etc
    #[arg(long, requires = "workspace")]
    pub force: bool,
    /// What it is for
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Option<Role>,
    /// What it should always know, from this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,
    /// Let it reach the network
    #[arg(long)]
    pub network: bool,
    /// What it thinks with when that fails, in this order, divided by commas; none: nothing else; default: those of the
    /// settings
    #[arg(long, value_name = "MODELS|none|default", value_delimiter = ',', value_parser = model_or_none)]
    pub fallback: Option<Vec<String>>,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub credentials: CredentialArgs,
    /// Leave it stopped
    #[arg(long)]
    pub no_start: bool,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// The agent
    pub id: AgentId,
    /// What it thinks with: PROVIDER/MODEL; default: what the settings have, also when they change
    #[arg(long, value_name = "MODEL", value_parser = model_or_default)]
    pub model: Option<String>,
    /// The folder it works in, from its next command on
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let it work in a folder of the system, such as /etc
    #[arg(long, requires = "workspace")]
    pub force: bool,
    /// Whether it may reach the network: on or off
    #[arg(long, value_name = "on|off", value_parser = switch)]
    pub network: Option<bool>,
    /// What it should always know, from this file; - reads stdin, and an empty one takes away what was there
    #[arg(long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,
    /// What it thinks with when its model fails, in this order, divided by commas; none: nothing else; default: those of the
    /// settings
    #[arg(long, value_name = "MODELS|none|default", value_delimiter = ',', value_parser = model_or_none)]
    pub fallback: Option<Vec<String>>,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub credentials: CredentialArgs,
}

/// What the commands of an agent are given.
#[derive(Debug, Default, Args)]
pub struct CredentialArgs {
    /// A variable that its commands get, which is no secret; may be repeated; none: takes away those before it
    #[arg(long, value_name = "NAME=VALUE|none", value_parser = variable_or_none)]
    pub env: Vec<String>,
    /// A secret that its commands find in a variable of the same name; may be repeated; none: takes away those before it
    #[arg(long, value_name = "NAME|none", value_parser = secret_or_none)]
    pub secret: Vec<String>,
    /// The secret that git answers with when this host asks for a password over https; may be repeated; none: takes away
    /// those before it
    #[arg(long, value_name = "HOST=NAME|none", value_parser = git_credential_or_none)]
    pub git_credential: Vec<String>,
    /// Let its ssh sign with the keys of the daemon's ssh agent; needs bubblewrap
    #[arg(long, value_name = "on|off", value_parser = switch, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub ssh_agent: Option<bool>,
    /// The host keys that its ssh accepts, from this file; none: those that the machine knows
    #[arg(long, value_name = "FILE|none")]
    pub known_hosts: Option<PathBuf>,
    /// Give its supervised children the same
    #[arg(long, value_name = "on|off", value_parser = switch, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub for_children: Option<bool>,
}

fn variable_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { credentials::variable(text).map(|_| text.to_owned()) }
}

fn secret_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { credentials::secret(text).map(|()| text.to_owned()) }
}

fn git_credential_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { credentials::git_credential(text).map(|_| text.to_owned()) }
}

fn model_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { model_or_default(text) }
}

fn model_or_default(text: &str) -> Result<String, String> {
    if text == DEFAULT_MODEL { Ok(text.to_owned()) } else { crate::config::model(text) }
}

/// Instead of a model: the settings'.
pub const DEFAULT_MODEL: &str = "default";

/// Instead of a list, or of a file.
pub const NONE: &str = "none";

fn role(text: &str) -> Result<Role, String> {
    word(text, "orchestrator, execution")
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it takes on or off".to_owned()),
    }
}
