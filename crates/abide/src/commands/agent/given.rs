//! Credentials of an agent on a command line.

use std::collections::BTreeMap;
use std::path::Path;

use abide_api::types::{AgentChange, AgentCredentials, AgentSummary};

use super::{on_or_off, read};
use crate::cli::{CredentialArgs, NONE};
use crate::credentials::{parse_git_credential, parse_variable};
use crate::output::{Output, one_line};

impl CredentialArgs {
    pub fn is_empty(&self) -> bool {
        let CredentialArgs { env, secret, git_credential, ssh_agent, known_hosts, for_children } = self;
        let lists = env.is_empty() && secret.is_empty() && git_credential.is_empty();
        lists && ssh_agent.is_none() && known_hosts.is_none() && for_children.is_none()
    }
}

/// Named credentials are added to the existing ones. `none` removes the existing ones and those that were named before it.
pub fn change(args: &CredentialArgs, now: &AgentCredentials) -> anyhow::Result<AgentChange> {
    let known_hosts = match args.known_hosts.as_deref() {
        Some(file) if file == Path::new(NONE) => Some(String::new()),
        Some(file) => Some(read(file)?),
        None => None,
    };
    Ok(AgentChange {
        env: pairs(&args.env, &now.env, parse_variable),
        secrets: named(&args.secret, now.secrets.clone(), Vec::clear, |secrets, name| {
            if !secrets.iter().any(|known| known == name) {
                secrets.push(name.to_owned());
            }
        }),
        git_credentials: pairs(&args.git_credential, &now.git_credentials, parse_git_credential),
        ssh_agent: args.ssh_agent,
        known_hosts,
        for_children: args.for_children,
        ..AgentChange::default()
    })
}

fn pairs(
    words: &[String],
    now: &BTreeMap<String, String>,
    parse: fn(&str) -> Result<(String, String), String>,
) -> Option<BTreeMap<String, String>> {
    // They were parsed before, as words of the command line.
    named(words, now.clone(), BTreeMap::clear, |pairs, word| pairs.extend(parse(word)))
}

fn named<T>(words: &[String], now: T, clear: fn(&mut T), mut add: impl FnMut(&mut T, &str)) -> Option<T> {
    let mut all = now;
    for word in words {
        match word.as_str() {
            NONE => clear(&mut all),
            word => add(&mut all, word),
        }
    }
    (!words.is_empty()).then_some(all)
}

/// Puts these among the other changes.
pub fn add(change: &mut AgentChange, given: AgentChange) {
    let AgentChange { env, secrets, git_credentials, ssh_agent, known_hosts, for_children, .. } = given;
    *change = AgentChange { env, secrets, git_credentials, ssh_agent, known_hosts, for_children, ..change.clone() };
}

/// Without network nothing of it reaches a host; the two may be set in any order.
pub fn note_network(summary: &AgentSummary, out: &Output) {
    let Some(given) = &summary.execution.credentials else { return };
    let wants = given.ssh_agent || !given.git_credentials.is_empty();
    if wants && !summary.execution.network {
        let id = &summary.identity.id;
        out.note(&format!("{id} has no network, so its git reaches no host: abide agent set {id} --network on"));
    }
    if given.ssh_agent && given.known_hosts.is_none() {
        out.note("its ssh trusts the hosts of /etc/ssh/ssh_known_hosts only; --known-hosts FILE names others");
    }
}

pub fn in_words(change: &AgentChange, summary: &AgentSummary) -> Option<String> {
    let AgentChange { env, secrets, git_credentials, ssh_agent, known_hosts, for_children, .. } = change;
    let lists = env.is_none() && secrets.is_none() && git_credentials.is_none();
    if lists && ssh_agent.is_none() && known_hosts.is_none() && for_children.is_none() {
        return None;
    }
    let rows: Vec<String> = rows(summary.execution.credentials.as_ref())
        .into_iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    Some(if rows.is_empty() { "is given nothing".to_owned() } else { format!("is given {}", rows.join("; ")) })
}

/// For the whole picture of an agent.
pub fn rows(given: Option<&AgentCredentials>) -> Vec<(&'static str, String)> {
    let Some(given) = given else { return Vec::new() };
    let AgentCredentials { env, secrets, git_credentials, ssh_agent, known_hosts, for_children, missing } = given;
    let listed = |all: Vec<String>| (!all.is_empty()).then(|| one_line(&all.join(", ")));
    let pairs = |all: &BTreeMap<String, String>| all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let hosts = known_hosts.as_ref().map_or("", |_| ", with host keys of its own");
    let rows = [
        ("variables", listed(pairs(env))),
        ("secrets", listed(secrets.clone())),
        ("git credentials", listed(pairs(git_credentials))),
        ("ssh agent", ssh_agent.then(|| format!("{}{hosts}", on_or_off(true)))),
        (
            "not set",
            listed(missing.clone().unwrap_or_default()).map(|names| format!("{names}: its commands start without")),
        ),
        ("children", for_children.then(|| "are given the same".to_owned())),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
