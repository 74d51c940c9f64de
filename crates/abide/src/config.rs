//! Settings: a flag outranks the environment, that outranks `config.toml` in the home, that outranks the default. Every
//! value knows where it came from. A key that nobody knows is an error: a typo must not read as a default.

mod file;
mod key;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use abide_effects::sandbox::Mode;
use anyhow::anyhow;

use crate::cli::UpArgs;
use crate::notify::On;
pub use file::File;
pub use key::{ECHO, Key, Log, Store, Value, mode_name, model};

/// What `up` and `config` work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub listen: Setting<SocketAddr>,
    pub store: Setting<Store>,
    /// `PROVIDER/MODEL`; a script's file is absolute.
    pub model: Setting<String>,
    pub log: Setting<Log>,
    pub sandbox: Setting<Mode>,
    /// How long running turns may take to come to a safe point when the daemon stops.
    pub shutdown_grace_ms: Setting<u64>,
    pub notify_command: Setting<Option<String>>,
    pub notify_webhook: Setting<Option<String>>,
    /// Which variable holds the webhook's secret.
    pub notify_secret_env: Setting<Option<String>>,
    pub notify_on: Setting<Vec<On>>,
    /// Where the outside reaches this daemon; empty where that is its own address.
    pub public_url: Setting<String>,
    /// Deliveries that each trigger takes in a second.
    pub hook_rate: Setting<u32>,
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
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => write!(f, "flag {name}"),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Default => f.write_str("default"),
        }
    }
}

impl Settings {
    pub fn load(home: &Path, flags: &UpArgs) -> anyhow::Result<Settings> {
        let file = File::read(home)?;
        file.check()?;
        let read = |key| setting(key, flags, &file);
        Ok(Settings {
            listen: read(Key::Listen)?.map(|value| value.listen()),
            store: read(Key::Store)?.map(|value| value.store()),
            model: read(Key::Model)?.map(|value| value.model()),
            log: read(Key::Log)?.map(|value| value.log()),
            sandbox: read(Key::Sandbox)?.map(|value| value.sandbox()),
            shutdown_grace_ms: read(Key::ShutdownGraceMs)?.map(|value| value.shutdown_grace_ms()),
            notify_command: read(Key::NotifyCommand)?.map(|value| value.text()),
            notify_webhook: read(Key::NotifyWebhook)?.map(|value| value.text()),
            notify_secret_env: read(Key::NotifySecretEnv)?.map(|value| value.text()),
            notify_on: read(Key::NotifyOn)?.map(|value| value.notify_on()),
            public_url: read(Key::PublicUrl)?.map(|value| value.public_url()),
            hook_rate: read(Key::HookRate)?.map(|value| value.hook_rate()),
        })
    }

    /// Every setting, to be shown.
    pub fn all(&self) -> Vec<(Key, Setting<Value>)> {
        fn as_value<T: Clone>(setting: &Setting<T>, value: impl FnOnce(T) -> Value) -> Setting<Value> {
            Setting { value: value(setting.value.clone()), origin: setting.origin.clone() }
        }
        vec![
            (Key::Listen, as_value(&self.listen, Value::Listen)),
            (Key::Store, as_value(&self.store, Value::Store)),
            (Key::Model, as_value(&self.model, Value::Model)),
            (Key::Log, as_value(&self.log, Value::Log)),
            (Key::Sandbox, as_value(&self.sandbox, Value::Sandbox)),
            (Key::ShutdownGraceMs, as_value(&self.shutdown_grace_ms, Value::ShutdownGraceMs)),
            (Key::NotifyCommand, as_value(&self.notify_command, Value::Text)),
            (Key::NotifyWebhook, as_value(&self.notify_webhook, Value::Text)),
            (Key::NotifySecretEnv, as_value(&self.notify_secret_env, Value::Text)),
            (Key::NotifyOn, as_value(&self.notify_on, Value::NotifyOn)),
            (Key::PublicUrl, as_value(&self.public_url, Value::PublicUrl)),
            (Key::HookRate, as_value(&self.hook_rate, Value::HookRate)),
        ]
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
        Key::Log
        | Key::Sandbox
        | Key::ShutdownGraceMs
        | Key::PublicUrl
        | Key::HookRate
        | Key::NotifyCommand
        | Key::NotifyWebhook
        | Key::NotifySecretEnv
        | Key::NotifyOn => None,
    };
    if let Some((name, text)) = flag {
        let value = key.parse(text).map_err(|problem| wrong(name, problem))?;
        return Ok(Setting { value, origin: Origin::Flag(name) });
    }
    if let Some((name, text)) = key.environment().and_then(|name| Some((name, variable(name)?))) {
        let value = key.parse(&text).map_err(|problem| wrong(&format!("${name}"), problem))?;
        return Ok(Setting { value, origin: Origin::Environment(name) });
    }
    if let Some(value) = file.get(key)? {
        return Ok(Setting { value, origin: Origin::File(file.path().to_owned()) });
    }
    Ok(Setting { value: key.default(), origin: Origin::Default })
}

/// A variable that is set to nothing counts as not set.
pub fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}
