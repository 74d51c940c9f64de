//! What the commands of an agent are given, as people write it: on a command line, and in the settings.

use std::collections::BTreeMap;
use std::path::Path;

use abide_effects::secrets::{check_name, check_variable};
use abide_kernel::credentials::Credentials;
use abide_private::read_regular_text;
use anyhow::{Context, anyhow};

use crate::config::Settings;

/// `NAME=VALUE`.
pub fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is no variable: write NAME=VALUE"))?;
    check_variable(name)?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The name of a secret.
pub fn secret(text: &str) -> Result<(), String> {
    check_name(text)
}

/// `[USER@]HOST[:PORT]=NAME`. Whether it is a host is for the daemon to say.
pub fn git_credential(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} names no host and secret: write HOST=NAME, such as github.com=GIT_TOKEN");
    let (host, name) = text.split_once('=').filter(|(host, _)| !host.is_empty()).ok_or_else(wrong)?;
    check_name(name)?;
    Ok((host.to_owned(), name.to_owned()))
}

/// Those of the settings, for agents that a person makes.
pub fn of_settings(settings: &Settings) -> anyhow::Result<Credentials> {
    let pairs = |words: &[String], read: fn(&str) -> Result<(String, String), String>| {
        let pairs = words.iter().map(|word| read(word));
        pairs.collect::<Result<BTreeMap<_, _>, _>>().map_err(|problem| anyhow!(problem))
    };
    let known_hosts = settings.agent_known_hosts.value.as_deref().map(|file| {
        let text = read_regular_text(Path::new(file));
        text.with_context(|| format!("agent.known_hosts: can't read {file}"))
    });
    Ok(Credentials {
        env: pairs(&settings.agent_env.value, variable)?,
        secrets: settings.agent_secrets.value.iter().cloned().collect(),
        git_credentials: pairs(&settings.agent_git_credentials.value, git_credential)?,
        ssh_agent: settings.agent_ssh_agent.value,
        known_hosts: known_hosts.transpose()?,
        for_children: settings.agent_for_children.value,
    })
}
