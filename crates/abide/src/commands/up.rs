//! `abide up`: reads the settings, opens the home and serves it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use abide_engine::HostOptions;
use abide_server::{ReadWorkspaceSettings, WorkspaceSettings};
use tracing::level_filters::LevelFilter;

use crate::cli::{PlaceArgs, UpArgs};
use crate::config::{Log, Settings, Store, WorkspaceFile};
use crate::models::Models;
use crate::notify::Chosen;
use crate::output::Output;
use crate::up::Daemon;
use crate::{credentials, home, logs, up};

pub fn run(args: &UpArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let settings = Settings::load(&home, args)?;
    let notify = Chosen::from(&settings)?;
    let credentials = credentials::of_settings(&settings)?;
    let hidden = settings.providers.key_variables().into_iter().chain(settings.notify_secret_env.value.clone());
    let hidden = hidden.collect();
    let (models, model_place) = (Arc::new(Models::of(&settings)), settings.model_place());
    let ledger = match settings.store.value {
        Store::Sqlite => home::open_or_create(place)?,
    };
    logs::begin(level(settings.log.value), &home);
    let workspace_settings = workspace_settings(&home, settings.clone());
    let daemon = Daemon {
        listen: settings.listen.value,
        models,
        model_place,
        sandbox: settings.sandbox.value,
        bounds: settings.bounds(),
        limits: settings.agent_limits(),
        credentials,
        hidden,
        daily_micro_usd: settings.budget_daily_usd.value.0,
        host: HostOptions { tree_agents: settings.tree_agents.value },
        grace: Duration::from_millis(settings.shutdown_grace_ms.value),
        notify,
        public_url: Some(settings.public_url.value).filter(|url| !url.is_empty()),
        hook_rate: settings.hook_rate.value,
        workspace_settings,
        workspace_roots: settings.workspace_roots.value,
        config_digest: settings.file_digest,
    };
    up::run(&home, ledger, &daemon, out)
}

/// Reads `abide.toml` anew for each agent that is made: it counts as it is trusted at that moment.
fn workspace_settings(home: &Path, settings: Settings) -> ReadWorkspaceSettings {
    let home = home.to_owned();
    ReadWorkspaceSettings::new(move |workspace| {
        let wrong = |error: anyhow::Error| format!("{error:#}");
        let file = WorkspaceFile::find(&home, Path::new(workspace)).map_err(wrong)?;
        let warning = file.warning();
        let WorkspaceFile::Trusted(file) = file else { return Ok(WorkspaceSettings { warning, ..Default::default() }) };
        let settings = settings.in_workspace(&file).map_err(wrong)?;
        Ok(WorkspaceSettings {
            model: settings.model.of_workspace(),
            fallback: settings.fallback.of_workspace(),
            file: file.path().display().to_string(),
            warning,
        })
    })
}

fn level(log: Log) -> LevelFilter {
    match log {
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
        Log::Trace => LevelFilter::TRACE,
    }
}
