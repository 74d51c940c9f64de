//! Everything that an operator chooses for a daemon.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use abide_effects::process::Bounds;
use abide_effects::sandbox::Mode;
use abide_engine::HostOptions;
use abide_kernel::config::AgentLimits;
use abide_kernel::credentials::Credentials;
use abide_server::ReadWorkspaceSettings;

use crate::models::Models;
use crate::notify::NotifyOptions;

#[derive(Debug, Clone)]
pub struct Options {
    pub listen: SocketAddr,
    pub models: Arc<Models>,
    /// Where the default model was set, named in the error if it can't be used.
    pub model_origin: String,
    pub sandbox: Mode,
    /// How much of the machine commands may use.
    pub bounds: Bounds,
    /// The limits of every agent, past which it waits or a person is asked.
    pub limits: AgentLimits,
    /// Credentials for the commands of agents that a person creates.
    pub credentials: Credentials,
    /// Environment variables that no command gets: the keys of models.
    pub hidden_variables: Vec<String>,
    /// The spending limit of all agents together for a day, in millionths of a dollar; zero is no limit.
    pub daily_micro_usd: u64,
    pub host: HostOptions,
    /// How long turns may go on after a shutdown was requested.
    pub shutdown_grace: Duration,
    pub notify: NotifyOptions,
    /// The URL under which the outside reaches triggers, if it is not the listening address.
    pub public_url: Option<String>,
    /// Deliveries that each trigger takes in a second.
    pub hook_rate: u32,
    /// Reads the settings in `abide.toml` of a workspace, for agents that are created there.
    pub workspace_settings: ReadWorkspaceSettings,
    /// The folders below which agents may work, as the setting names them.
    pub workspace_roots: Vec<String>,
    /// A digest of the config.toml that the settings were read from.
    pub config_digest: String,
}
