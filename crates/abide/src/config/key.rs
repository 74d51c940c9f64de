//! The names of settings: `model`, `notify.on`, `providers.NAME.kind`. A name that is none is answered with the nearest.

use std::fmt;

use abide_effects::model::cards::CardField;

use super::named_tables::{NAMED_TABLES, NamedTable};
use super::setting_type::Type;
use super::table::{ROWS, Row};

/// Further from every name than this many letters, and no name is near.
const NEAR: usize = 3;
/// Where people put keys that must not be in a file.
const SECRETS: [&str; 8] = ["key", "api_key", "apikey", "token", "api_token", "secret", "password", "authorization"];

/// The name of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Row(&'static Row),
    Entry(Entry),
}

/// A field of an entry of a named table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub table: &'static NamedTable,
    pub name: String,
    pub row: &'static Row,
}

impl Key {
    /// The setting of this name, or what to say about a name that is none.
    pub fn parse(name: &str) -> Result<Key, String> {
        if let Some(row) = ROWS.iter().find(|row| row.key == name) {
            return Ok(Key::Row(row));
        }
        for table in &NAMED_TABLES {
            let Some(rest) = name.strip_prefix(table.name) else { continue };
            // Names of models have dots, fields have none.
            match rest.strip_prefix('.').map(|rest| rest.rsplit_once('.')) {
                Some(Some((name, field))) => return table.entry(name.trim_matches('"'), field).map(Key::Entry),
                Some(None) => return Err(table.say_which()),
                None if rest.is_empty() => return Err(table.say_which()),
                None => {}
            }
        }
        let names = ROWS.iter().map(|row| row.key).chain(NAMED_TABLES.iter().map(|table| table.name));
        let names: Vec<&str> = names.collect();
        let instead = match nearest(name, &names) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are {}", names.join(", ")),
        };
        Err(format!("no setting is called {name:?}; {instead}"))
    }

    pub fn row(&self) -> &'static Row {
        match self {
            Key::Row(row) => row,
            Key::Entry(entry) => entry.row,
        }
    }

    pub fn parse_value(&self, text: &str) -> Result<super::Value, String> {
        self.row().takes.parse(text)
    }

    pub fn environment(&self) -> Option<&'static str> {
        match self {
            Key::Row(row) => row.environment,
            Key::Entry(entry) => entry.environment(),
        }
    }

    /// The tables that it is in, outermost first, and its name there.
    pub fn place(&self) -> (Vec<&str>, &'static str) {
        match self {
            Key::Row(row) => {
                let mut names: Vec<&str> = row.key.split('.').collect();
                let name = names.pop().unwrap_or(row.key);
                (names, name)
            }
            Key::Entry(Entry { table, name, row }) => {
                let tables = table.name.split('.').chain([name.as_str()]);
                (tables.collect(), row.key)
            }
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Row(row) => f.write_str(row.key),
            Key::Entry(entry) => write!(f, "{entry}"),
        }
    }
}

impl NamedTable {
    /// The field of an entry, or what to say about a name that is none.
    pub fn entry(&'static self, name: &str, field: &str) -> Result<Entry, String> {
        let shown = format!("{}.{}", self.name, self.quoted(name));
        (self.check_name)(name).map_err(|problem| format!("{shown}: {problem}"))?;
        if let Some(row) = self.rows.iter().find(|row| row.key == field) {
            return Ok(Entry { table: self, name: name.to_owned(), row });
        }
        if SECRETS.contains(&field) && self.rows.iter().any(|row| row.key == super::named_tables::KEY_ENV) {
            return Err(format!(
                "{shown}.{field}: keys are not kept in this file: put it into a variable of the daemon's environment, and \
                 name that one with key_env"
            ));
        }
        let fields: Vec<&str> = self.rows.iter().map(|row| row.key).collect();
        let instead = match nearest(field, &fields) {
            Some(near) => format!("did you mean {shown}.{near}?"),
            None => format!("there are {}", fields.join(", ")),
        };
        Err(format!("no setting is called \"{shown}.{field}\"; {instead}"))
    }

    /// The name of an entry, as TOML has it.
    fn quoted(&self, name: &str) -> String {
        let bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if bare && !self.of.starts_with('"') { name.to_owned() } else { format!("{name:?}") }
    }

    fn say_which(&self) -> String {
        let fields: Vec<&str> = self.rows.iter().map(|row| row.key).collect();
        format!("say which one: {}.{}. and then {}", self.name, self.of, fields.join(", "))
    }
}

impl Entry {
    pub fn environment(&self) -> Option<&'static str> {
        (self.table.environment)(&self.name, self.row)
    }

    /// The field of a model's card, if the key is about a model.
    pub fn card_field(&self) -> Option<CardField> {
        if let Type::Card(field) = self.row.takes { Some(field) } else { None }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.table.name, self.table.quoted(&self.name), self.row.key)
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
    known.iter().copied().min_by_key(distance).filter(|known| distance(known) <= NEAR)
}
