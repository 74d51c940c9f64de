//! `abide config`: settings and their origins.

use std::collections::BTreeMap;
use std::path::Path;

use abide_daemon::models::{ECHO, room_enough};
use abide_daemon::text::price_command;
use abide_effects::Model;
use abide_effects::model::cards::CardField;
use serde::Serialize;

use crate::cli::{ConfigCommand, PlaceArgs, UpArgs};
use crate::config::{self, Entry, Key, Origin, Setting, Settings, SettingsFile, WorkspaceFile};
use crate::output::{Failed, Output, one_line};
use crate::{connection, home};

/// A setting in JSON.
#[derive(Serialize)]
struct SettingView<'a> {
    key: String,
    value: &'a config::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

/// A setting in the JSON of all settings.
#[derive(Serialize)]
#[serde(untagged)]
enum SettingOfAll<'a> {
    Value(&'a config::Value),
    WithOrigin { value: &'a config::Value, origin: String },
}

/// A setting that was removed from the file, in JSON.
#[derive(Serialize)]
struct RemovedSetting {
    key: String,
    was_set: bool,
}

/// The result of a change of the file.
#[derive(Serialize)]
struct ChangeResult<'a, T> {
    #[serde(flatten)]
    changed: Changed<T>,
    file: &'a str,
    restart_needed: bool,
}

/// One setting is shown by itself, several as a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Changed<T> {
    One(T),
    Several { items: Vec<T> },
}

impl<T> Changed<T> {
    fn new(mut items: Vec<T>) -> Changed<T> {
        match (items.pop(), items.is_empty()) {
            (Some(item), true) => Changed::One(item),
            (last, _) => {
                items.extend(last);
                Changed::Several { items }
            }
        }
    }
}

#[derive(Serialize)]
struct TrustResult<'a> {
    workspace: &'a Path,
    file: &'a str,
    hash: &'a str,
    settings: BTreeMap<String, &'a config::Value>,
}

#[derive(Serialize)]
struct UntrustResult<'a> {
    workspace: &'a Path,
    was_trusted: bool,
}

pub fn run(command: &ConfigCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Show { origin } => show(*origin, place, out),
        ConfigCommand::Get { key } => get(&key_of(key)?, place, out),
        ConfigCommand::Set { pairs } => set(&paired(pairs)?, place, out),
        ConfigCommand::Unset { keys } => {
            unset(&keys.iter().map(|key| key_of(key)).collect::<Result<Vec<_>, _>>()?, place, out)
        }
        ConfigCommand::Trust { workspace } => trust(workspace, place, out),
        ConfigCommand::Untrust { workspace } => untrust(workspace, place, out),
        ConfigCommand::Schema { markdown } => schema(*markdown, out),
    }
}

fn key_of(name: &str) -> anyhow::Result<Key> {
    Key::parse(name).map_err(|problem| Failed::Usage(problem).into())
}

/// The settings of a daemon that is started now, and of an agent that is made in this folder.
fn settings(place: &PlaceArgs, out: &Output) -> anyhow::Result<Settings> {
    let home = home::dir(place)?;
    let settings = Settings::load(&home, &UpArgs::default())?;
    let file = WorkspaceFile::find(&home, Path::new("."))?;
    if let Some(warning) = file.warning() {
        out.warning(&warning);
    }
    match file {
        WorkspaceFile::Trusted(file) => settings.in_workspace(&file),
        WorkspaceFile::Absent | WorkspaceFile::UnusedFile(_) => Ok(settings),
    }
}

fn show(origin: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let all = settings(place, out)?.all();
    let mut views = BTreeMap::new();
    for (key, Setting { value, origin: from }) in &all {
        let view = match origin {
            true => SettingOfAll::WithOrigin { value, origin: from.to_string() },
            false => SettingOfAll::Value(value),
        };
        views.insert(key.to_string(), view);
    }
    out.result(&views, || {
        let row = |(key, setting): &(Key, Setting<_>)| {
            vec![key.to_string().into(), shown_value(setting).into(), setting.origin.to_string().into()]
        };
        out.columns(&["key", "value", "origin"], &all.iter().map(row).collect::<Vec<_>>())
    })
}

/// The value of a setting. A default model is explained, because its agents only repeat their messages.
fn shown_value(setting: &Setting<config::Value>) -> String {
    let value = setting.value.to_string();
    match &setting.origin {
        Origin::Default if value == ECHO => {
            format!("{value} (no model is set: agents answer with what they are told)")
        }
        Origin::Key(name) => format!("{value} (no model is set, and {name} is)"),
        Origin::Default | Origin::Flag(_) | Origin::Environment(_) | Origin::Workspace(_) | Origin::File(_) => value,
    }
}

fn get(key: &Key, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let found = settings(place, out)?.one(key);
    let Setting { value, origin } = found.ok_or_else(|| Failed::NotFound(format!("{key} has no value")))?;
    let view = SettingView { key: key.to_string(), value: &value, origin: Some(origin.to_string()) };
    out.result(&view, || format!("{}\n", one_line(&value.to_string())))
}

/// Keys with their values.
fn paired(words: &[String]) -> anyhow::Result<Vec<(Key, config::Value)>> {
    let pair = |pair: &[String]| match pair {
        [key, text] => {
            let key = key_of(key)?;
            let value = key.parse_value(text).map_err(|problem| Failed::Usage(format!("{key}: {problem}")))?;
            Ok((key, value))
        }
        _ => {
            Err(Failed::Usage(format!("{} has no value: write KEY VALUE, and KEY VALUE again", pair.join(" "))).into())
        }
    };
    words.chunks(2).map(pair).collect()
}

fn set(pairs: &[(Key, config::Value)], place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let mut file = SettingsFile::of_home(&home)?;
    file.check()?;
    for (key, value) in pairs {
        file.put(key, value)?;
    }
    let providers = file.providers(&|_| None).map_err(|error| half_a_price(error, pairs, &file))?;
    for (key, value) in pairs {
        for model in key.row().takes.models(value) {
            providers.model(model).map_err(|problem| Failed::Usage(format!("{key}: {problem}")))?;
        }
    }
    file.save()?;
    let path = file.path().display().to_string();
    let unread = needs_restart(pairs.iter().map(|(key, _)| key), &home)?;
    let views = pairs.iter().map(|(key, value)| SettingView { key: key.to_string(), value, origin: None });
    let changed = Changed::new(views.collect());
    out.result(&ChangeResult { changed, file: &path, restart_needed: unread }, || {
        let line = |(key, value): &(Key, config::Value)| {
            format!("{key} is {} in {path}{}\n", one_line(&value.to_string()), once_read(unread))
        };
        pairs.iter().map(line).collect()
    })?;
    for (key, value) in pairs {
        outranked(key, out);
        too_small(key, value, &file, out)?;
    }
    Ok(())
}

/// Explains how to set a price: neither half of it can be set alone.
fn half_a_price(error: anyhow::Error, pairs: &[(Key, config::Value)], file: &SettingsFile) -> anyhow::Error {
    use CardField::{CacheReadUsd, CacheWriteUsd, InputUsd, OutputUsd};
    let there = |entry: &Entry, field: CardField| {
        let other = entry.table.entry(&entry.name, field.name()).map(Key::Entry);
        other.is_ok_and(|key| matches!(file.get(&key), Ok(Some(_))))
    };
    let half = pairs.iter().find_map(|(key, _)| match key {
        Key::Entry(entry) => {
            let price = matches!(entry.card_field()?, InputUsd | OutputUsd | CacheReadUsd | CacheWriteUsd);
            (price && !(there(entry, InputUsd) && there(entry, OutputUsd))).then_some(&entry.name)
        }
        Key::Row(_) => None,
    });
    match half {
        Some(model) => anyhow::anyhow!("{error:#}: `{}` sets both", price_command(model)),
        None => error,
    }
}

/// Warns of a model whose context window is too small for the prompt of every agent.
fn too_small(key: &Key, value: &config::Value, file: &SettingsFile, out: &Output) -> anyhow::Result<()> {
    let providers = file.providers(&|_| None)?;
    let entry = match key {
        Key::Entry(entry) => entry.card_field().map(|_| &entry.name),
        Key::Row(_) => None,
    };
    for name in key.row().takes.models(value).iter().chain(entry) {
        if let Ok(Model::Remote(remote)) = providers.model(name)
            && let Err(problem) = room_enough(&remote)
        {
            out.note(&problem);
        }
    }
    Ok(())
}

fn unset(keys: &[Key], place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let mut file = SettingsFile::of_home(&home)?;
    let taken = keys.iter().map(|key| Ok((key, file.take(key)?))).collect::<anyhow::Result<Vec<_>>>()?;
    let changed_keys: Vec<&Key> = taken.iter().filter(|(_, was_set)| *was_set).map(|(key, _)| *key).collect();
    if !changed_keys.is_empty() {
        file.save()?;
    }
    let path = file.path().display().to_string();
    let unread = needs_restart(changed_keys, &home)?;
    let removed = taken.iter().map(|(key, was_set)| RemovedSetting { key: key.to_string(), was_set: *was_set });
    let changed = Changed::new(removed.collect());
    out.result(&ChangeResult { changed, file: &path, restart_needed: unread }, || {
        let line = |(key, was_set): &(&Key, bool)| match was_set {
            true => format!("{key} is no longer in {path}{}\n", once_read(unread)),
            false => format!("{key} was not in {path}\n"),
        };
        taken.iter().map(line).collect()
    })
}

fn trust(workspace: &Path, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let settings = Settings::load(&home, &UpArgs::default())?;
    let (record, file) = config::trust(&home, workspace, |file| settings.in_workspace(file).map(drop))?;
    let values = file.values()?;
    let settings = values.iter().map(|(key, value)| (key.to_string(), value)).collect();
    let path = file.path().display().to_string();
    let trusted = TrustResult { workspace: &record.workspace, file: &path, hash: &record.hash, settings };
    out.result(&trusted, || {
        let lines = values.iter().map(|(key, value)| format!("  {key} = {}\n", one_line(&value.to_string())));
        let lines: String = lines.collect();
        format!("{} is trusted as it is now; agents that are made there get:\n{lines}", one_line(&path))
    })
}

fn untrust(workspace: &Path, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let (workspace, was_trusted) = config::untrust(&home::dir(place)?, workspace)?;
    out.result(&UntrustResult { workspace: &workspace, was_trusted }, || {
        let workspace = one_line(&workspace.display().to_string());
        match was_trusted {
            true => format!("abide.toml of {workspace} is no longer trusted\n"),
            false => format!("abide.toml of {workspace} was not trusted\n"),
        }
    })
}

fn outranked(key: &Key, out: &Output) {
    if let Some(name) = key.environment().filter(|name| config::variable(name).is_some()) {
        out.hint(&format!("${name} is set, and outranks it"));
    }
}

/// Whether a daemon runs that goes by the old value of one of these until it is restarted.
fn needs_restart<'a>(keys: impl IntoIterator<Item = &'a Key>, home: &Path) -> anyhow::Result<bool> {
    Ok(keys.into_iter().any(|key| key.row().restart) && connection::serving(home)?.is_some())
}

/// The part of the result that says when the change takes effect.
fn once_read(unread: bool) -> &'static str {
    if unread { "; the daemon that runs reads it when it starts again: `abide daemon restart`" } else { "" }
}

fn schema(markdown: bool, out: &Output) -> anyhow::Result<()> {
    let schema = config::schema();
    // The conversion to a value sorts the fields by name.
    let text = format!("{:#}\n", serde_json::to_value(&schema)?);
    out.result(&schema, || if markdown { config::markdown() } else { text })
}
