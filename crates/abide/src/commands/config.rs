//! `abide config`: settings, and where each came from.

use std::path::Path;

use abide_daemon::models::{ECHO, room_enough};
use abide_daemon::text::price_command;
use abide_effects::Model;
use abide_effects::model::cards::CardField;
use serde_json::{Map, Value, json};

use crate::cli::{ConfigCommand, PlaceArgs, UpArgs};
use crate::config::{self, Entry, Key, Origin, Setting, Settings, SettingsFile, WorkspaceFile};
use crate::output::{Failed, Output, one_line};
use crate::{connection, home};

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

/// What a daemon that is started now would work with, and an agent that is made in this folder.
fn settings(place: &PlaceArgs, out: &Output) -> anyhow::Result<Settings> {
    let home = home::dir(place)?;
    let settings = Settings::load(&home, &UpArgs::default())?;
    let file = WorkspaceFile::find(&home, Path::new("."))?;
    if let Some(warning) = file.warning() {
        out.warning(&warning);
    }
    match file {
        WorkspaceFile::Trusted(file) => settings.in_workspace(&file),
        WorkspaceFile::Absent | WorkspaceFile::Unused(_) => Ok(settings),
    }
}

fn show(origin: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let all = settings(place, out)?.all();
    let value: Map<String, Value> = all
        .iter()
        .map(|(key, setting)| {
            let Setting { value, origin: from } = setting;
            let shown =
                if origin { json!({ "value": value.json(), "origin": from.to_string() }) } else { value.json() };
            (key.to_string(), shown)
        })
        .collect();
    out.result(&Value::Object(value), || {
        let row = |(key, setting): &(Key, Setting<_>)| {
            vec![key.to_string().into(), shown(setting).into(), setting.origin.to_string().into()]
        };
        out.columns(&["key", "value", "origin"], &all.iter().map(row).collect::<Vec<_>>())
    })
}

/// Whoever has set no model should not wonder why agents repeat what they are told.
fn shown(setting: &Setting<config::Value>) -> String {
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
    let shown = json!({ "key": key.to_string(), "value": value.json(), "origin": origin.to_string() });
    out.result(&shown, || format!("{}\n", one_line(&value.to_string())))
}

/// Each name with what follows it.
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
    let item = |(key, value): &(Key, config::Value)| json!({ "key": key.to_string(), "value": value.json() });
    let items: Vec<Value> = pairs.iter().map(item).collect();
    out.result(&changed(items, &path, unread), || {
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

/// What was done to one setting, or to each of several.
fn changed(mut items: Vec<Value>, path: &str, unread: bool) -> Value {
    let mut shown = match items.len() {
        1 => items.remove(0),
        _ => json!({ "items": items }),
    };
    shown["file"] = json!(path);
    shown["restart_needed"] = json!(unread);
    shown
}

/// Neither half of a price can be set first; whoever tries hears how both are.
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

/// A model that has no room for what every agent is shown may be meant for later; whoever sets it hears of it now.
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
    let item = |(key, was_set): &(&Key, bool)| json!({ "key": key.to_string(), "was_set": was_set });
    out.result(&changed(taken.iter().map(item).collect(), &path, unread), || {
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
    let shown: Map<String, Value> = values.iter().map(|(key, value)| (key.to_string(), value.json())).collect();
    let path = file.path().display().to_string();
    let trusted = json!({ "workspace": record.workspace, "file": path, "hash": record.hash, "settings": shown });
    out.result(&trusted, || {
        let lines = values.iter().map(|(key, value)| format!("  {key} = {}\n", one_line(&value.to_string())));
        let lines: String = lines.collect();
        format!("{} is trusted as it is now; agents that are made there get:\n{lines}", one_line(&path))
    })
}

fn untrust(workspace: &Path, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let (workspace, was_trusted) = config::untrust(&home::dir(place)?, workspace)?;
    let shown = json!({ "workspace": workspace, "was_trusted": was_trusted });
    out.result(&shown, || {
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

/// Part of the result: what was changed has no effect before.
fn once_read(unread: bool) -> &'static str {
    if unread { "; the daemon that runs reads it when it starts again: `abide daemon restart`" } else { "" }
}

fn schema(markdown: bool, out: &Output) -> anyhow::Result<()> {
    let schema = config::schema();
    out.result(&schema, || if markdown { config::markdown() } else { format!("{schema:#}\n") })
}
