//! `config.toml`: read strictly, changed without touching what somebody wrote around it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::key::{Key, Value, Written};
use crate::folder;

#[derive(Debug)]
pub struct File {
    path: PathBuf,
    document: DocumentMut,
}

impl File {
    /// A file that is not there has nothing in it.
    pub fn read(home: &Path) -> anyhow::Result<File> {
        let path = home.join("config.toml");
        let bytes = folder::read_if_there(&path)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8", path.display()))?;
        let document = text.parse().map_err(|error| not_toml(&path, &error))?;
        Ok(File { path, document })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses keys that nobody knows and values that can't be.
    pub fn check(&self) -> anyhow::Result<()> {
        let known = |name: &str| Key::named(name).map_err(|problem| anyhow!("{}: {problem}", self.path.display()));
        let tables: Vec<&str> = Key::ALL.into_iter().filter_map(|key| key.place().0).collect();
        for (name, item) in self.document.iter() {
            match (tables.contains(&name), item.as_table_like()) {
                (true, Some(table)) => {
                    for (inner, _) in table.iter() {
                        self.get(known(&format!("{name}.{inner}"))?)?;
                    }
                }
                (true, None) => bail!("{}: {name} takes a table, not {}", self.path.display(), kind(item)),
                (false, _) => drop(self.get(known(name)?)?),
            }
        }
        Ok(())
    }

    fn item(&self, key: Key) -> Option<&Item> {
        match key.place() {
            (Some(table), name) => self.document.get(table)?.as_table_like()?.get(name),
            (None, name) => self.document.get(name),
        }
    }

    /// The table that holds a key; made where there is none.
    fn table(&mut self, key: Key) -> anyhow::Result<&mut dyn TableLike> {
        let Some(table) = key.place().0 else { return Ok(self.document.as_table_mut()) };
        let item = self.document.entry(table).or_insert_with(|| Item::Table(Table::new()));
        item.as_table_like_mut().ok_or_else(|| anyhow!("{}: {table} is no table", self.path.display()))
    }

    pub fn get(&self, key: Key) -> anyhow::Result<Option<Value>> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let place = format!("{}: {}", self.path.display(), key.name());
        let words = || item.as_array()?.iter().map(|word| word.as_str()).collect::<Option<Vec<_>>>();
        let (found, wanted) = match key.written() {
            Written::Number => (item.as_integer().map(|number| number.to_string()), "a whole number"),
            Written::Text => (item.as_str().map(str::to_owned), "text in quotes"),
            Written::List => (words().map(|words| words.join(",")), "a list of texts in quotes"),
        };
        let Some(text) = found else { bail!("{place} takes {wanted}, not {}", kind(item)) };
        key.parse(&text).map(Some).map_err(|problem| anyhow!("{place}: {problem}"))
    }

    pub fn set(&mut self, key: Key, value: &Value) -> anyhow::Result<()> {
        let mut new = match value {
            Value::ShutdownGraceMs(ms) => toml_edit::Value::from(i64::try_from(*ms).unwrap_or(i64::MAX)),
            Value::NotifyOn(on) => on.iter().map(|on| on.as_str()).collect::<toml_edit::Array>().into(),
            Value::HookRate(rate) => toml_edit::Value::from(i64::from(*rate)),
            Value::Listen(_)
            | Value::Store(_)
            | Value::Model(_)
            | Value::Log(_)
            | Value::Sandbox(_)
            | Value::PublicUrl(_)
            | Value::Text(_) => toml_edit::Value::from(value.to_string()),
        };
        // A comment behind the old value stays behind the new one.
        if let Some(old) = self.item(key).and_then(Item::as_value) {
            *new.decor_mut() = old.decor().clone();
        }
        let (table, name) = (self.table(key)?, key.place().1);
        // What is there keeps the way it is written; inserting would write it anew.
        match table.get_mut(name) {
            Some(item) => *item = Item::Value(new),
            None => drop(table.insert(name, Item::Value(new))),
        }
        self.save()
    }

    /// Whether it was there.
    pub fn unset(&mut self, key: Key) -> anyhow::Result<bool> {
        if self.item(key).is_none() {
            return Ok(false);
        }
        let table = self.table(key)?;
        // Comments above it belong to it as far as TOML knows; they are somebody's words, and stay in the file.
        let above = table.key(key.place().1).and_then(|removed| removed.leaf_decor().prefix()?.as_str());
        let above = above.unwrap_or_default().to_owned();
        table.remove(key.place().1);
        if above.contains('#') {
            self.keep_above(&above);
        }
        self.save()?;
        Ok(true)
    }

    fn keep_above(&mut self, above: &str) {
        let rest = self.document.trailing().as_str().unwrap_or_default().to_owned();
        self.document.set_trailing(format!("{rest}{above}"));
    }

    /// Written beside its place and moved there, so that a reader sees the old file or the new one.
    fn save(&self) -> anyhow::Result<()> {
        self.check()?;
        let home = self.path.parent().unwrap_or(Path::new("."));
        let partial = self.path.with_extension(format!("toml.{}.partial", std::process::id()));
        let written = (|| {
            fs::create_dir_all(home)?;
            let mut file = fs::File::create(&partial)?;
            file.write_all(self.document.to_string().as_bytes())?;
            file.sync_all()?;
            fs::rename(&partial, &self.path)
        })();
        written
            .inspect_err(|_| drop(fs::remove_file(&partial)))
            .with_context(|| format!("can't write {}", self.path.display()))
    }
}

fn kind(item: &Item) -> &'static str {
    match item.type_name() {
        "string" => "text",
        "integer" | "float" => "a number",
        "boolean" => "true or false",
        "array" | "array of tables" => "a list",
        "table" | "inline table" => "a table",
        _ => "this",
    }
}

/// The first line of what the parser says, and where.
fn not_toml(path: &Path, error: &toml_edit::TomlError) -> anyhow::Error {
    anyhow!("{} is not TOML: {}", path.display(), error.to_string().trim_end())
}
