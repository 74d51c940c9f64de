//! `abide up`: reads the settings, opens the home and serves it.

use std::sync::Arc;
use std::time::Duration;

use abide_engine::HostOptions;
use tracing::level_filters::LevelFilter;

use crate::cli::{PlaceArgs, UpArgs};
use crate::config::{Log, Settings, Store};
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
        workspace_roots: settings.workspace_roots.value,
        config_digest: settings.file_digest,
    };
    up::run(&home, ledger, &daemon, out)
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
