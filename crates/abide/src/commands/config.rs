//! `abide config`: settings, and where each came from.

use abide_daemon::models::{ECHO, room_enough};
use abide_daemon::text::price_command;
use abide_effects::Model;
use serde_json::{Map, Value, json};

use crate::cli::{ConfigCommand, PlaceArgs, UpArgs};
use crate::config::{Entry, Field, File, Key, Named, Origin, Setting, Settings, Table};
use crate::output::{Failed, Output, one_line};
use crate::{connection, home};

pub fn run(command: &ConfigCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Show { origin } => show(*origin, place, out),
        ConfigCommand::Get { key } => get(&named(key)?, place, out),
        ConfigCommand::Set { pairs } => set(&paired(pairs)?, place, out),
        ConfigCommand::Unset { keys } => {
            unset(&keys.iter().map(|key| named(key)).collect::<Result<Vec<_>, _>>()?, place, out)
        }
        ConfigCommand::Schema => schema(out),
    }
}

fn named(name: &str) -> anyhow::Result<Named> {
    Named::parse(name).map_err(|problem| Failed::Usage(problem).into())
}

/// What a daemon that is started now would work with.
fn settings(place: &PlaceArgs) -> anyhow::Result<Settings> {
    Settings::load(&home::dir(place)?, &UpArgs::default())
}

fn show(origin: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let all = settings(place)?.all();
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
        let row = |(key, setting): &(Named, Setting<_>)| {
            vec![key.to_string().into(), shown(setting).into(), setting.origin.to_string().into()]
        };
        out.columns(&["key", "value", "origin"], &all.iter().map(row).collect::<Vec<_>>())
    })
}

/// Whoever has set no model should not wonder why agents repeat what they are told.
fn shown(setting: &Setting<crate::config::Value>) -> String {
    let value = setting.value.to_string();
    match &setting.origin {
        Origin::Default if value == ECHO => {
            format!("{value} (no model is set: agents answer with what they are told)")
        }
        Origin::Key(name) => format!("{value} (no model is set, and {name} is)"),
        Origin::Default | Origin::Flag(_) | Origin::Environment(_) | Origin::File(_) => value,
    }
}

fn get(key: &Named, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let found = settings(place)?.one(key);
    let Setting { value, origin } = found.ok_or_else(|| Failed::NotFound(format!("{key} has no value")))?;
    let shown = json!({ "key": key.to_string(), "value": value.json(), "origin": origin.to_string() });
    out.result(&shown, || format!("{}\n", one_line(&value.to_string())))
}

/// Each name with what follows it.
fn paired(words: &[String]) -> anyhow::Result<Vec<(Named, crate::config::Value)>> {
    let pair = |pair: &[String]| match pair {
        [key, text] => {
            let key = named(key)?;
            let value = key.parse_value(text).map_err(|problem| Failed::Usage(format!("{key}: {problem}")))?;
            Ok((key, value))
        }
        _ => {
            Err(Failed::Usage(format!("{} has no value: write KEY VALUE, and KEY VALUE again", pair.join(" "))).into())
        }
    };
    words.chunks(2).map(pair).collect()
}

fn set(pairs: &[(Named, crate::config::Value)], place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let mut file = File::read(&home)?;
    file.check()?;
    for (key, value) in pairs {
        file.put(key, value)?;
    }
    let providers = file.providers(&|_| None).map_err(|error| half_a_price(error, pairs, &file))?;
    for (key, value) in pairs {
        for model in value.models() {
            providers.model(model).map_err(|problem| Failed::Usage(format!("{key}: {problem}")))?;
        }
    }
    file.save()?;
    let path = file.path().display().to_string();
    let unread = is_served(&home)?;
    let item = |(key, value): &(Named, crate::config::Value)| json!({ "key": key.to_string(), "value": value.json() });
    let items: Vec<Value> = pairs.iter().map(item).collect();
    out.result(&changed(items, &path, unread), || {
        let line = |(key, value): &(Named, crate::config::Value)| {
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
fn half_a_price(error: anyhow::Error, pairs: &[(Named, crate::config::Value)], file: &File) -> anyhow::Error {
    use abide_effects::model::cards::CardField::{CacheReadUsd, CacheWriteUsd, InputUsd, OutputUsd};
    let there = |name: &str, field| {
        let entry = Named::Entry(Entry { name: name.to_owned(), field: Field::Model(field) });
        matches!(file.get(&entry), Ok(Some(_)))
    };
    let half = pairs.iter().find_map(|(key, _)| match key {
        Named::Entry(Entry { name, field: Field::Model(InputUsd | OutputUsd | CacheReadUsd | CacheWriteUsd) }) => {
            (!there(name, InputUsd) || !there(name, OutputUsd)).then_some(name)
        }
        Named::Entry(_) | Named::Key(_) => None,
    });
    match half {
        Some(model) => anyhow::anyhow!("{error:#}: `{}` sets both", price_command(model)),
        None => error,
    }
}

/// A model that has no room for what every agent is shown may be meant for later; whoever sets it hears of it now.
fn too_small(key: &Named, value: &crate::config::Value, file: &File, out: &Output) -> anyhow::Result<()> {
    let providers = file.providers(&|_| None)?;
    let entry = match key {
        Named::Entry(entry) if matches!(entry.field, Field::Model(_)) => Some(&entry.name),
        Named::Entry(_) | Named::Key(_) => None,
    };
    for name in value.models().iter().chain(entry) {
        if let Ok(Model::Remote(remote)) = providers.model(name)
            && let Err(problem) = room_enough(&remote)
        {
            out.note(&problem);
        }
    }
    Ok(())
}

fn unset(keys: &[Named], place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let mut file = File::read(&home)?;
    let taken = keys.iter().map(|key| Ok((key, file.take(key)?))).collect::<anyhow::Result<Vec<_>>>()?;
    let any = taken.iter().any(|(_, was_set)| *was_set);
    if any {
        file.save()?;
    }
    let path = file.path().display().to_string();
    let unread = any && is_served(&home)?;
    let item = |(key, was_set): &(&Named, bool)| json!({ "key": key.to_string(), "was_set": was_set });
    out.result(&changed(taken.iter().map(item).collect(), &path, unread), || {
        let line = |(key, was_set): &(&Named, bool)| match was_set {
            true => format!("{key} is no longer in {path}{}\n", once_read(unread)),
            false => format!("{key} was not in {path}\n"),
        };
        taken.iter().map(line).collect()
    })
}

fn outranked(key: &Named, out: &Output) {
    if let Some(name) = key.environment().filter(|name| crate::config::variable(name).is_some()) {
        out.hint(&format!("${name} is set, and outranks it"));
    }
}

/// Whether a daemon runs that has read its settings already.
fn is_served(home: &std::path::Path) -> anyhow::Result<bool> {
    Ok(connection::serving(home)?.is_some())
}

/// Part of the result: what was changed has no effect before.
fn once_read(unread: bool) -> &'static str {
    if unread { "; the daemon that runs reads it when it starts again: `abide daemon restart`" } else { "" }
}

fn schema(out: &Output) -> anyhow::Result<()> {
    let mut properties = Map::new();
    for key in Key::ALL {
        let (table, name) = key.place();
        let properties = match table {
            None => &mut properties,
            Some(table) => {
                let table = properties
                    .entry(table)
                    .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
                match table["properties"].as_object_mut() {
                    Some(properties) => properties,
                    None => unreachable!("it was made so"),
                }
            }
        };
        let mut schema = key.schema();
        if key == Key::Sandbox {
            // A word, or a table in which that word is the mode.
            let word = schema.clone();
            schema = json!({
                "anyOf": [{ "type": "string", "enum": word["enum"] }, { "type": "object" }],
                "additionalProperties": false, "properties": { "mode": word },
                "default": word["default"], "description": word["description"],
            });
        }
        properties.insert(name.to_owned(), schema);
    }
    properties.extend(Table::ALL.map(|table| (table.name().to_owned(), table.schema())));
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "config.toml of abide",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    out.result(&schema, || format!("{schema:#}\n"))
}
