//! Settings: a flag outranks the environment, that outranks `abide.toml` of a trusted workspace, that outranks `config.toml`
//! in the home, that outranks the default. Every value knows where it came from. An unknown key is an error: a typo must not
//! read as a default.

mod checks;
mod documentation;
mod key;
mod named_tables;
mod setting_type;
mod settings_file;
mod table;
mod value;
mod workspace_file;

use std::fmt;
use std::path::{Path, PathBuf};

use abide_daemon::models::ECHO;
use abide_effects::Model;
use abide_effects::model::providers::AddressSource;
use abide_effects::process::Bounds;
use abide_kernel::config::AgentLimits;
use anyhow::anyhow;

use crate::cli::UpArgs;
pub use documentation::{markdown, schema};
pub use key::{Entry, Key};
use named_tables::{BASE_URL, KEY_ENV, NAMED_TABLES};
pub use settings_file::SettingsFile;
use table::Row;
pub use table::Settings;
pub use value::{Log, Store, Value};
pub use workspace_file::{WorkspaceFile, trust, trusted_files, untrust};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// The value, if it is that of the workspace.
    pub fn of_workspace(self) -> Option<T> {
        matches!(self.origin, Origin::Workspace(_)).then_some(self.value)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Environment(&'static str),
    /// The `abide.toml` of a trusted workspace.
    Workspace(PathBuf),
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
            Origin::Workspace(path) => {
                write!(f, "abide.toml of {}", path.parent().unwrap_or(Path::new("/")).display())
            }
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Key(name) => write!(f, "default, because {name} is set"),
            Origin::Default => f.write_str("default"),
        }
    }
}

impl Settings {
    pub fn load(home: &Path, flags: &UpArgs) -> anyhow::Result<Settings> {
        let file = SettingsFile::of_home(home)?;
        file.check()?;
        let providers = file.providers(&|name| variable(name))?;
        let origin = Origin::File(file.path().to_owned());
        let entries = file.entries()?.into_iter();
        let entries = entries.map(|(entry, value)| (entry, Setting { value, origin: origin.clone() }));
        let read = |row| setting(row, flags, &file);
        let settings = Settings::of_rows(read, providers, file.digest(), entries.collect())?;
        settings.named_models_exist()?;
        Ok(settings.with_usual_model())
    }

    /// These settings as agents that are made in a workspace get them: with its trusted `abide.toml`.
    pub fn in_workspace(&self, file: &SettingsFile) -> anyhow::Result<Settings> {
        let mut rows = self.rows().into_iter();
        let read = |row: &'static Row| {
            let Some((_, current)) = rows.next() else { unreachable!("there is a setting for each row") };
            let outranked = matches!(current.origin, Origin::Flag(_) | Origin::Environment(_));
            match file.get(&Key::Row(row))?.filter(|_| row.workspace && !outranked) {
                Some(value) => Ok(Setting { value, origin: Origin::Workspace(file.path().to_owned()) }),
                None => Ok(current),
            }
        };
        let settings = Settings::of_rows(read, self.providers.clone(), self.file_digest.clone(), self.entries.clone())?;
        let of_workspace = |(_, setting): &(_, Setting<Value>)| matches!(setting.origin, Origin::Workspace(_));
        for (row, Setting { value, origin }) in settings.rows().into_iter().filter(of_workspace) {
            for name in row.takes.models(&value) {
                let checked = self.check_model_of_workspace(name);
                checked.map_err(|problem| anyhow!("{}: {problem}", origin.place(row.key)))?;
            }
        }
        Ok(settings)
    }

    /// A workspace chooses among models that the operator has: any model of a provider that is set up here. A script is a
    /// file, which an agent may be able to write, so it counts only where the operator's own settings name it.
    fn check_model_of_workspace(&self, name: &str) -> Result<(), String> {
        let named = || [&self.model.value].into_iter().chain(&self.fallback.value).map(String::as_str);
        match self.providers.model(name).map_err(|problem| problem.to_string())? {
            Model::Script { .. } if !named().chain(self.providers.named()).any(|known| known == name) => Err(format!(
                "a workspace may name a script only if config.toml names it too: an empty table [models.{name:?}] there does"
            )),
            Model::Script { .. } | Model::Echo | Model::Remote(_) => Ok(()),
        }
    }

    /// A provider that nobody knows is a typo, and said where it stands.
    fn named_models_exist(&self) -> anyhow::Result<()> {
        for (row, Setting { value, origin }) in self.rows() {
            for name in row.takes.models(&value) {
                self.providers.model(name).map_err(|problem| anyhow!("{}: {problem}", origin.place(row.key)))?;
            }
        }
        Ok(())
    }

    /// Where the default model stands, for whoever has to mend it.
    pub fn model_place(&self) -> String {
        self.model.origin.place("model")
    }

    /// Where no model is set but a key is, a model of that provider's.
    fn with_usual_model(mut self) -> Settings {
        if self.model.origin == Origin::Default
            && let Some(usual) = self.providers.implied_model()
        {
            self.model = Setting { value: usual.model, origin: Origin::Key(usual.variable) };
        }
        self
    }

    /// Providers that the settings mean to be asked and that have no key in this environment, with its variable.
    pub fn missing_keys(&self) -> Vec<(String, String)> {
        let models = [&self.model.value].into_iter().chain(&self.fallback.value);
        let meant: Vec<&str> = models.filter_map(|model| model.split('/').next()).collect();
        let keyed = |entry: &Entry, name: &str| entry.name == name && entry.row.key == KEY_ENV;
        let meant = |name: &str| meant.contains(&name) || self.entries.iter().any(|(entry, _)| keyed(entry, name));
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
                let ollama =
                    self.providers.get("ollama").is_some_and(|known| known.address_source != AddressSource::Usual);
                let more = "; Ollama is set up, so `abide config set model ollama/MODEL` names one of its models";
                Some(if ollama { note + more } else { note })
            }
            Origin::Flag(_) | Origin::Environment(_) | Origin::Workspace(_) | Origin::File(_) => {
                (model == ECHO).then(|| format!("agents answer with what they are told ({model})"))
            }
        }
    }

    /// Every setting, to be shown.
    pub fn all(&self) -> Vec<(Key, Setting<Value>)> {
        let rows = self.rows().into_iter().map(|(row, setting)| (Key::Row(row), setting));
        rows.chain(self.said_entries().map(|(entry, setting)| (Key::Entry(entry), setting))).collect()
    }

    /// One setting: a provider's, too, where nobody said anything of it.
    pub fn one(&self, key: &Key) -> Option<Setting<Value>> {
        let said = self.all().into_iter().find(|(known, _)| known == key).map(|(_, setting)| setting);
        let Key::Entry(entry) = key else { return said };
        let default = || (entry.table.default)(&self.providers, entry);
        said.or_else(|| Some(Setting { value: default()?, origin: Origin::Default }))
    }

    /// What somebody said of providers and models: the file, where the environment does not outrank it.
    fn said_entries(&self) -> impl Iterator<Item = (Entry, Setting<Value>)> {
        let moved = self.providers.iter().filter_map(|known| match known.address_source {
            AddressSource::Environment(name) => {
                let value = Value::Text(Some(known.provider.base_url.clone()));
                Some((base_url_of(&known.provider.name)?, Setting { value, origin: Origin::Environment(name) }))
            }
            AddressSource::Usual | AddressSource::Settings | AddressSource::Nowhere => None,
        });
        let moved: Vec<_> = moved.collect();
        let outranked = |entry: &Entry| moved.iter().any(|(other, _)| other == entry);
        let said: Vec<_> = self.entries.iter().filter(|(entry, _)| !outranked(entry)).cloned().collect();
        moved.into_iter().chain(said)
    }
}

fn base_url_of(provider: &str) -> Option<Entry> {
    NAMED_TABLES.iter().find_map(|table| table.entry(provider, BASE_URL).ok())
}

impl Origin {
    /// Where a setting of this origin stands, for whoever has to mend it.
    fn place(&self, key: &str) -> String {
        match self {
            Origin::Flag(name) => (*name).to_owned(),
            Origin::Environment(name) => format!("${name}"),
            Origin::Workspace(path) | Origin::File(path) => format!("{}: {key}", path.display()),
            Origin::Key(_) | Origin::Default => key.to_owned(),
        }
    }
}

fn setting(row: &'static Row, flags: &UpArgs, file: &SettingsFile) -> anyhow::Result<Setting<Value>> {
    let parse = |text: &str, from: &str| row.takes.parse(text).map_err(|problem| anyhow!("{from}: {problem}"));
    if let Some((flag, text)) = row.flag.as_ref().and_then(|flag| Some((flag, (flag.value)(flags)?))) {
        return Ok(Setting { value: parse(text, flag.name)?, origin: Origin::Flag(flag.name) });
    }
    if let Some((name, text)) = row.environment.and_then(|name| Some((name, variable(name)?))) {
        return Ok(Setting { value: parse(&text, &format!("${name}"))?, origin: Origin::Environment(name) });
    }
    if let Some(value) = file.get(&Key::Row(row))? {
        return Ok(Setting { value, origin: Origin::File(file.path().to_owned()) });
    }
    match row.default {
        Some(default) => Ok(Setting { value: default(), origin: Origin::Default }),
        None => unreachable!("{} has a default", row.key),
    }
}

/// A variable that is set to nothing counts as not set.
pub fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}
