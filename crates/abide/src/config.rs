//! Settings: a flag outranks the environment, that outranks `config.toml` in the home, that outranks the default. Every
//! value knows where it came from. A key that nobody knows is an error: a typo must not read as a default.

mod entry;
mod file;
mod key;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use abide_daemon::models::ECHO;
use abide_daemon::notify::NoticeKind;
use abide_effects::Model;
use abide_effects::model::providers::{Place, Providers};
use abide_effects::process::Bounds;
use abide_effects::sandbox::Mode;
use abide_kernel::agent::config::AgentLimits;
use anyhow::anyhow;

use crate::cli::UpArgs;
pub use entry::{Entry, Field, Named, ProviderField, Table};
pub use file::File;
pub use key::{Key, Log, Store, Value, model};

/// What `up` and `config` work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub listen: Setting<SocketAddr>,
    pub store: Setting<Store>,
    /// `PROVIDER/MODEL`; a script's file is absolute.
    pub model: Setting<String>,
    /// What is asked instead, in this order, where a model can't answer.
    pub fallback: Setting<Vec<String>>,
    pub log: Setting<Log>,
    pub sandbox: Setting<Mode>,
    /// What all commands of an agent may have of memory; nothing: half of what there is.
    pub sandbox_memory: Setting<Option<u64>>,
    pub sandbox_scratch: Setting<Option<u64>>,
    pub disk_reserve: Setting<Option<u64>>,
    /// How long running turns may take to come to a safe point when the daemon stops.
    pub shutdown_grace_ms: Setting<u64>,
    pub notify_command: Setting<Option<String>>,
    pub notify_webhook: Setting<Option<String>>,
    /// Which variable holds the webhook's secret.
    pub notify_secret_env: Setting<Option<String>>,
    pub notify_on: Setting<Vec<NoticeKind>>,
    /// Where the outside reaches this daemon; empty where that is its own address.
    pub public_url: Setting<String>,
    /// Deliveries that each trigger takes in a second.
    pub hook_rate: Setting<u32>,
    /// The folders below which agents may work.
    pub workspace_roots: Setting<Vec<String>>,
    /// The limits of every agent, past which it waits or a person is asked.
    pub self_turns_per_hour: Setting<u32>,
    pub rounds_per_turn: Setting<u32>,
    /// In millionths of a dollar; zero is no limit.
    pub budget_daily_usd: Setting<u64>,
    pub tree_agents: Setting<u32>,
    /// What the commands of agents are given that a person makes.
    pub agent_env: Setting<Vec<String>>,
    pub agent_secrets: Setting<Vec<String>>,
    pub agent_git_credentials: Setting<Vec<String>>,
    pub agent_ssh_agent: Setting<bool>,
    /// The path of a file.
    pub agent_known_hosts: Setting<Option<String>>,
    pub agent_for_children: Setting<bool>,
    /// Who can be asked, with the keys of this environment.
    pub providers: Providers,
    /// Which config.toml this was read from.
    pub file_digest: String,
    /// What config.toml says of providers and models.
    entries: Vec<(Entry, Setting<Value>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Environment(&'static str),
    File(PathBuf),
    /// A key that is set, by its variable: no model is.
    Key(String),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => write!(f, "flag {name}"),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Key(name) => write!(f, "default, because {name} is set"),
            Origin::Default => f.write_str("default"),
        }
    }
}

impl Settings {
    pub fn load(home: &Path, flags: &UpArgs) -> anyhow::Result<Settings> {
        let file = File::read(home)?;
        file.check()?;
        let read = |key| setting(key, flags, &file);
        let providers = file.providers(&|name| variable(name))?;
        let origin = Origin::File(file.path().to_owned());
        let entries = file.entries()?.into_iter();
        let entries = entries.map(|(entry, value)| (entry, Setting { value, origin: origin.clone() }));
        let settings = Settings {
            listen: read(Key::Listen)?.map(|value| value.listen()),
            store: read(Key::Store)?.map(|value| value.store()),
            model: read(Key::Model)?.map(|value| value.model()),
            fallback: read(Key::Fallback)?.map(|value| value.fallback()),
            log: read(Key::Log)?.map(|value| value.log()),
            sandbox: read(Key::Sandbox)?.map(|value| value.sandbox()),
            sandbox_memory: read(Key::SandboxMemory)?.map(|value| value.bytes()),
            sandbox_scratch: read(Key::SandboxScratch)?.map(|value| value.bytes()),
            disk_reserve: read(Key::DiskReserve)?.map(|value| value.bytes()),
            shutdown_grace_ms: read(Key::ShutdownGraceMs)?.map(|value| value.shutdown_grace_ms()),
            notify_command: read(Key::NotifyCommand)?.map(|value| value.text()),
            notify_webhook: read(Key::NotifyWebhook)?.map(|value| value.text()),
            notify_secret_env: read(Key::NotifySecretEnv)?.map(|value| value.text()),
            notify_on: read(Key::NotifyOn)?.map(|value| value.notify_on()),
            public_url: read(Key::PublicUrl)?.map(|value| value.public_url()),
            hook_rate: read(Key::HookRate)?.map(|value| value.hook_rate()),
            workspace_roots: read(Key::WorkspaceRoots)?.map(|value| value.folders()),
            self_turns_per_hour: read(Key::SelfTurnsPerHour)?.map(|value| value.limit()),
            rounds_per_turn: read(Key::RoundsPerTurn)?.map(|value| value.limit()),
            budget_daily_usd: read(Key::BudgetDailyUsd)?.map(|value| value.micro_usd()),
            tree_agents: read(Key::TreeAgents)?.map(|value| value.limit()),
            agent_env: read(Key::AgentEnv)?.map(|value| value.words()),
            agent_secrets: read(Key::AgentSecrets)?.map(|value| value.words()),
            agent_git_credentials: read(Key::AgentGitCredentials)?.map(|value| value.words()),
            agent_ssh_agent: read(Key::AgentSshAgent)?.map(|value| value.switch()),
            agent_known_hosts: read(Key::AgentKnownHosts)?.map(|value| value.text()),
            agent_for_children: read(Key::AgentForChildren)?.map(|value| value.switch()),
            file_digest: file.digest(),
            entries: entries.collect(),
            providers,
        };
        settings.named_models_exist()?;
        Ok(settings.with_usual_model())
    }

    /// A provider that nobody knows is a typo, and said where it stands.
    fn named_models_exist(&self) -> anyhow::Result<()> {
        let check = |key: Key, origin: &Origin, name: &str| {
            self.providers.model(name).map(drop).map_err(|problem| anyhow!("{}: {problem}", origin.place(key)))
        };
        check(Key::Model, &self.model.origin, &self.model.value)?;
        self.fallback.value.iter().try_for_each(|name| check(Key::Fallback, &self.fallback.origin, name))
    }

    /// Where no model is set but a key is, a model of that provider's.
    fn with_usual_model(mut self) -> Settings {
        if self.model.origin == Origin::Default
            && let Some(usual) = self.providers.usual()
        {
            self.model = Setting { value: usual.model, origin: Origin::Key(usual.variable) };
        }
        self
    }

    /// Providers that the settings mean to be asked and that have no key in this environment, with its variable.
    pub fn missing_keys(&self) -> Vec<(String, String)> {
        let models = [&self.model.value].into_iter().chain(&self.fallback.value);
        let meant: Vec<&str> = models.filter_map(|model| model.split('/').next()).collect();
        let keyed = Field::Provider(ProviderField::KeyEnv);
        let meant = |name: &str| {
            meant.contains(&name) || self.entries.iter().any(|(entry, _)| entry.name == name && entry.field == keyed)
        };
        let missing = self.providers.iter().filter(|known| meant(&known.provider.name));
        let missing = missing.filter(|known| known.provider.key.is_none());
        missing.filter_map(|known| Some((known.provider.name.clone(), known.provider.key_env.clone()?))).collect()
    }

    /// How much of the machine commands may have.
    pub fn bounds(&self) -> Bounds {
        let usual = Bounds::default();
        Bounds {
            memory_bytes: self.sandbox_memory.value.unwrap_or(usual.memory_bytes),
            scratch_bytes: self.sandbox_scratch.value.unwrap_or(usual.scratch_bytes),
            disk_reserve_bytes: self.disk_reserve.value,
            open_files: usual.open_files,
        }
    }

    /// The limits of every agent, past which it waits or a person is asked.
    pub fn agent_limits(&self) -> AgentLimits {
        AgentLimits { self_turns_per_hour: self.self_turns_per_hour.value, rounds_per_turn: self.rounds_per_turn.value }
    }

    /// What a person should know of the model that agents think with, where nobody chose it or it does not think.
    pub fn model_note(&self) -> Option<String> {
        let model = &self.model.value;
        match &self.model.origin {
            Origin::Key(name) => {
                Some(format!("no model is set, and {name} is: agents without a model of their own think with {model}"))
            }
            Origin::Default => {
                let note = format!("no model is set: agents answer with what they are told ({model})");
                let ollama = self.providers.get("ollama").is_some_and(|known| known.place != Place::Usual);
                let more = "; Ollama is set up, so `abide config set model ollama/MODEL` names one of its models";
                Some(if ollama { note + more } else { note })
            }
            Origin::Flag(_) | Origin::Environment(_) | Origin::File(_) => {
                (model == ECHO).then(|| format!("agents answer with what they are told ({model})"))
            }
        }
    }

    /// Every setting, to be shown.
    pub fn all(&self) -> Vec<(Named, Setting<Value>)> {
        fn as_value<T: Clone>(setting: &Setting<T>, value: impl FnOnce(T) -> Value) -> Setting<Value> {
            Setting { value: value(setting.value.clone()), origin: setting.origin.clone() }
        }
        let keys = vec![
            (Key::Listen, as_value(&self.listen, Value::Listen)),
            (Key::Store, as_value(&self.store, Value::Store)),
            (Key::Model, as_value(&self.model, Value::Model)),
            (Key::Fallback, as_value(&self.fallback, Value::Fallback)),
            (Key::Log, as_value(&self.log, Value::Log)),
            (Key::Sandbox, as_value(&self.sandbox, Value::Sandbox)),
            (Key::SandboxMemory, as_value(&self.sandbox_memory, Value::Bytes)),
            (Key::SandboxScratch, as_value(&self.sandbox_scratch, Value::Bytes)),
            (Key::DiskReserve, as_value(&self.disk_reserve, Value::Bytes)),
            (Key::ShutdownGraceMs, as_value(&self.shutdown_grace_ms, Value::ShutdownGraceMs)),
            (Key::NotifyCommand, as_value(&self.notify_command, Value::Text)),
            (Key::NotifyWebhook, as_value(&self.notify_webhook, Value::Text)),
            (Key::NotifySecretEnv, as_value(&self.notify_secret_env, Value::Text)),
            (Key::NotifyOn, as_value(&self.notify_on, Value::NotifyOn)),
            (Key::PublicUrl, as_value(&self.public_url, Value::PublicUrl)),
            (Key::HookRate, as_value(&self.hook_rate, Value::HookRate)),
            (Key::WorkspaceRoots, as_value(&self.workspace_roots, Value::Folders)),
            (Key::SelfTurnsPerHour, as_value(&self.self_turns_per_hour, Value::Limit)),
            (Key::RoundsPerTurn, as_value(&self.rounds_per_turn, Value::Limit)),
            (Key::BudgetDailyUsd, as_value(&self.budget_daily_usd, Value::MicroUsd)),
            (Key::TreeAgents, as_value(&self.tree_agents, Value::Limit)),
            (Key::AgentEnv, as_value(&self.agent_env, Value::Words)),
            (Key::AgentSecrets, as_value(&self.agent_secrets, Value::Words)),
            (Key::AgentGitCredentials, as_value(&self.agent_git_credentials, Value::Words)),
            (Key::AgentSshAgent, as_value(&self.agent_ssh_agent, Value::Switch)),
            (Key::AgentKnownHosts, as_value(&self.agent_known_hosts, Value::Text)),
            (Key::AgentForChildren, as_value(&self.agent_for_children, Value::Switch)),
        ];
        let keys = keys.into_iter().map(|(key, setting)| (Named::Key(key), setting));
        keys.chain(self.said_entries().map(|(entry, setting)| (Named::Entry(entry), setting))).collect()
    }

    /// One setting: a provider's, too, where nobody said anything of it.
    pub fn one(&self, named: &Named) -> Option<Setting<Value>> {
        let said = self.all().into_iter().find(|(known, _)| known == named).map(|(_, setting)| setting);
        let Named::Entry(entry) = named else { return said };
        said.or_else(|| Some(Setting { value: self.usual_value(entry)?, origin: Origin::Default }))
    }

    /// What somebody said of providers and models: the file, where the environment does not outrank it.
    fn said_entries(&self) -> impl Iterator<Item = (Entry, Setting<Value>)> {
        let moved = self.providers.iter().filter_map(|known| match known.place {
            Place::Environment(name) => {
                let entry = Entry { name: known.provider.name.clone(), field: Field::Provider(ProviderField::BaseUrl) };
                let value = Value::Text(Some(known.provider.base_url.clone()));
                Some((entry, Setting { value, origin: Origin::Environment(name) }))
            }
            Place::Usual | Place::Settings | Place::Nowhere => None,
        });
        let moved: Vec<_> = moved.collect();
        let outranked = |entry: &Entry| moved.iter().any(|(other, _)| other == entry);
        let said: Vec<_> = self.entries.iter().filter(|(entry, _)| !outranked(entry)).cloned().collect();
        moved.into_iter().chain(said)
    }

    /// What is so where nobody says anything: of a provider that there is, or of a model of one.
    fn usual_value(&self, entry: &Entry) -> Option<Value> {
        match entry.field {
            Field::Provider(field) => {
                let known = self.providers.get(&entry.name)?;
                Some(match field {
                    ProviderField::Kind => Value::Kind(known.kind),
                    ProviderField::BaseUrl => {
                        Value::Text(Some(known.provider.base_url.clone()).filter(|url| !url.is_empty()))
                    }
                    ProviderField::KeyEnv => Value::Text(known.key_variable.clone()),
                })
            }
            Field::Model(field) => match self.providers.model(&entry.name).ok()? {
                Model::Remote(remote) => remote.card.value(field).map(Value::Card),
                Model::Echo | Model::Script { .. } => None,
            },
        }
    }
}

impl Origin {
    /// Where a setting of this origin stands, for whoever has to mend it.
    pub fn place(&self, key: Key) -> String {
        match self {
            Origin::Flag(name) => (*name).to_owned(),
            Origin::Environment(name) => format!("${name}"),
            Origin::File(path) => format!("{}: {}", path.display(), key.name()),
            Origin::Key(_) | Origin::Default => key.name().to_owned(),
        }
    }
}

impl<T> Setting<T> {
    fn map<U>(self, map: impl FnOnce(T) -> Option<U>) -> Setting<U>
    where
        T: fmt::Debug + Clone,
    {
        let shown = self.value.clone();
        match map(self.value) {
            Some(value) => Setting { value, origin: self.origin },
            None => unreachable!("a key reads as its own kind of value, not as {shown:?}"),
        }
    }
}

fn setting(key: Key, flags: &UpArgs, file: &File) -> anyhow::Result<Setting<Value>> {
    let wrong = |from: &str, problem: String| anyhow!("{from}: {problem}");
    let flag = match key {
        Key::Listen => flags.listen.as_deref().map(|text| ("--listen", text)),
        Key::Store => flags.store.as_deref().map(|text| ("--store", text)),
        Key::Model => flags.model.as_deref().map(|text| ("--model", text)),
        Key::Fallback
        | Key::Log
        | Key::Sandbox
        | Key::SandboxMemory
        | Key::SandboxScratch
        | Key::DiskReserve
        | Key::ShutdownGraceMs
        | Key::PublicUrl
        | Key::HookRate
        | Key::WorkspaceRoots
        | Key::SelfTurnsPerHour
        | Key::RoundsPerTurn
        | Key::BudgetDailyUsd
        | Key::TreeAgents
        | Key::NotifyCommand
        | Key::NotifyWebhook
        | Key::NotifySecretEnv
        | Key::NotifyOn
        | Key::AgentEnv
        | Key::AgentSecrets
        | Key::AgentGitCredentials
        | Key::AgentSshAgent
        | Key::AgentKnownHosts
        | Key::AgentForChildren => None,
    };
    if let Some((name, text)) = flag {
        let value = key.parse(text).map_err(|problem| wrong(name, problem))?;
        return Ok(Setting { value, origin: Origin::Flag(name) });
    }
    if let Some((name, text)) = key.environment().and_then(|name| Some((name, variable(name)?))) {
        let value = key.parse(&text).map_err(|problem| wrong(&format!("${name}"), problem))?;
        return Ok(Setting { value, origin: Origin::Environment(name) });
    }
    if let Some(value) = file.get(&Named::Key(key))? {
        return Ok(Setting { value, origin: Origin::File(file.path().to_owned()) });
    }
    Ok(Setting { value: key.default(), origin: Origin::Default })
}

/// A variable that is set to nothing counts as not set.
pub fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}
