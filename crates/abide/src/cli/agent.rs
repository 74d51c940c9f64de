//! The arguments of `abide agent`.

use std::path::PathBuf;

use abide_api::types::Role;
use abide_kernel::id::AgentId;
use clap::{Args, Subcommand};

use super::word;
use crate::budget::BudgetArgs;
use crate::credentials;
use crate::model_name::parse_model_name;

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Create an agent, and start it
    Create(CreateArgs),
    /// List all agents
    List,
    /// Show an agent: settings, status, usage, problems
    Show {
        /// The agent
        id: AgentId,
    },
    /// Change the model, workspace, network access, budget, credentials or instructions of an agent
    Set(SetArgs),
    /// Start stopped agents: one, several or all
    Start(AgentsArgs),
    /// Stop agents: one, several or all; their messages are kept
    Stop(AgentsArgs),
    /// Abort the running turn; the agent goes on
    Abort {
        /// The agent
        id: AgentId,
        /// Abort only this execution, not a later one
        #[arg(long, value_name = "EXEC")]
        exec: Option<String>,
    },
    /// Archive a stopped agent; its id cannot be reused
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
    /// Every agent; child agents follow their supervisor
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its name: 1 to 64 of a-z, 0-9, '.', '_' and '-'
    pub id: AgentId,
    /// Its model: PROVIDER/MODEL; default: the model of the settings, also when that changes
    #[arg(long, value_name = "MODEL", value_parser = model_or_default)]
    pub model: Option<String>,
    /// The folder it works in
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Allow a system folder, such as /etc
    #[arg(long, requires = "workspace")]
    pub force: bool,
    /// orchestrator or execution
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Option<Role>,
    /// Instructions for every prompt, from this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,
    /// Allow network access
    #[arg(long)]
    pub network: bool,
    /// Fallback models, in order, separated by commas; none: no fallback; default: the fallbacks of the settings
    #[arg(long, value_name = "MODELS|none|default", value_delimiter = ',', value_parser = model_or_none)]
    pub fallback: Option<Vec<String>>,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub credentials: CredentialArgs,
    /// Do not start it
    #[arg(long)]
    pub no_start: bool,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// The agent
    pub id: AgentId,
    /// Its model: PROVIDER/MODEL; default: the model of the settings, also when that changes
    #[arg(long, value_name = "MODEL", value_parser = model_or_default)]
    pub model: Option<String>,
    /// The folder it works in, from its next command
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Allow a system folder, such as /etc
    #[arg(long, requires = "workspace")]
    pub force: bool,
    /// Network access: on or off
    #[arg(long, value_name = "on|off", value_parser = switch)]
    pub network: Option<bool>,
    /// Instructions for every prompt, from this file; - reads stdin; an empty file removes them
    #[arg(long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,
    /// Fallback models, in order, separated by commas; none: no fallback; default: the fallbacks of the settings
    #[arg(long, value_name = "MODELS|none|default", value_delimiter = ',', value_parser = model_or_none)]
    pub fallback: Option<Vec<String>>,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub credentials: CredentialArgs,
}

/// The credentials of an agent's commands.
#[derive(Debug, Default, Args)]
pub struct CredentialArgs {
    /// An environment variable of its commands, not secret; repeatable; none: removes earlier ones
    #[arg(long, value_name = "NAME=VALUE|none", value_parser = variable_or_none)]
    pub env: Vec<String>,
    /// A secret that its commands get in a variable of the same name; repeatable; none: removes earlier ones
    #[arg(long, value_name = "NAME|none", value_parser = secret_or_none)]
    pub secret: Vec<String>,
    /// The secret that git uses as its password for this host over https; repeatable; none: removes earlier ones
    #[arg(long, value_name = "HOST=NAME|none", value_parser = git_credential_or_none)]
    pub git_credential: Vec<String>,
    /// Give its commands the daemon's ssh agent; needs bubblewrap
    #[arg(long, value_name = "on|off", value_parser = switch, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub ssh_agent: Option<bool>,
    /// The host keys that its ssh accepts, from this file; none: those of the machine
    #[arg(long, value_name = "FILE|none")]
    pub known_hosts: Option<PathBuf>,
    /// Give its supervised children the same credentials
    #[arg(long, value_name = "on|off", value_parser = switch, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub for_children: Option<bool>,
}

fn variable_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { credentials::parse_variable(text).map(|_| text.to_owned()) }
}

fn secret_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { credentials::check_secret_name(text).map(|()| text.to_owned()) }
}

fn git_credential_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { credentials::parse_git_credential(text).map(|_| text.to_owned()) }
}

fn model_or_none(text: &str) -> Result<String, String> {
    if text == NONE { Ok(text.to_owned()) } else { model_or_default(text) }
}

fn model_or_default(text: &str) -> Result<String, String> {
    if text == DEFAULT_MODEL { Ok(text.to_owned()) } else { parse_model_name(text) }
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
