//! The settings as the daemon takes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use abide_api::types::DefaultModel;
use abide_daemon::Options;
use abide_daemon::models::Models;
use abide_daemon::notify::{HiddenVariables, NotifyOptions};
use abide_effects::web::Url;
use abide_effects::webhook::Secret;
use abide_engine::HostOptions;
use abide_kernel::credentials::Credentials;
use abide_private::read_regular_text;
use abide_server::{ReadWorkspaceSettings, WorkspaceSettings};
use anyhow::Context;

use crate::config::{self, Origin, Settings, WorkspaceFile};
use crate::credentials::{parse_git_credential, parse_variable};

pub fn daemon(home: &Path, settings: &Settings) -> anyhow::Result<Options> {
    let keys = settings.providers.key_variables().into_iter();
    Ok(Options {
        listen: settings.listen.value,
        models: Arc::new(models(settings)),
        model_origin: settings.model_place(),
        sandbox: settings.sandbox.value,
        bounds: settings.bounds(),
        limits: settings.agent_limits(),
        credentials: credentials(settings)?,
        hidden_variables: keys.chain(settings.notify_secret_env.value.clone()).collect(),
        daily_micro_usd: settings.budget_daily_usd.value.0,
        host: HostOptions { tree_agents: settings.tree_agents.value },
        shutdown_grace: Duration::from_millis(settings.shutdown_grace_ms.value),
        notify: notify(settings)?,
        public_url: Some(settings.public_url.value.clone()).filter(|url| !url.is_empty()),
        hook_rate: settings.hook_rate.value,
        workspace_settings: workspace_settings(home, settings.clone()),
        workspace_roots: settings.workspace_roots.value.clone(),
        config_digest: settings.file_digest.clone(),
    })
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

pub fn models(settings: &Settings) -> Models {
    let default = DefaultModel {
        name: settings.model.value.clone(),
        origin: settings.model.origin.to_string(),
        note: settings.model_note(),
        fallback: settings.fallback.value.clone(),
    };
    let is_chosen = settings.model.origin != Origin::Default;
    Models { providers: Arc::new(settings.providers.clone()), default, is_chosen }
}

pub fn notify(settings: &Settings) -> anyhow::Result<NotifyOptions> {
    let webhook = match &settings.notify_webhook.value {
        None => None,
        Some(text) => {
            let url = Url::parse(text).map_err(|hint| anyhow::anyhow!("notify.webhook: {hint}"))?;
            let secret = settings.notify_secret_env.value.as_deref().map(webhook_secret).transpose()?;
            Some((url, secret))
        }
    };
    Ok(NotifyOptions {
        command: settings.notify_command.value.clone(),
        webhook,
        on: settings.notify_on.value.clone(),
        hidden: HiddenVariables { keys: settings.providers.key_variables(), secrets: None },
    })
}

/// The secret that notifications are signed with, from the variable that the setting names.
fn webhook_secret(variable: &str) -> anyhow::Result<Secret> {
    let text = config::variable(variable)
        .with_context(|| format!("notify.secret_env: ${variable} is not set; set it to the webhook's secret"))?;
    Secret::parse(&text).map_err(|problem| anyhow::anyhow!("notify.secret_env: ${variable}: {problem}"))
}

/// The credentials of the settings, for agents that a person makes.
fn credentials(settings: &Settings) -> anyhow::Result<Credentials> {
    let pairs = |words: &[String], read: fn(&str) -> Result<(String, String), String>| {
        let pairs = words.iter().map(|word| read(word));
        pairs.collect::<Result<BTreeMap<_, _>, _>>().map_err(|problem| anyhow::anyhow!(problem))
    };
    let known_hosts = settings.agent_known_hosts.value.as_deref().map(|file| {
        let text = read_regular_text(Path::new(file));
        text.with_context(|| format!("agent.known_hosts: can't read {file}"))
    });
    Ok(Credentials {
        env: pairs(&settings.agent_env.value, parse_variable)?,
        secrets: settings.agent_secrets.value.iter().cloned().collect(),
        git_credentials: pairs(&settings.agent_git_credentials.value, parse_git_credential)?,
        ssh_agent: settings.agent_ssh_agent.value,
        known_hosts: known_hosts.transpose()?,
        for_children: settings.agent_for_children.value,
    })
}
