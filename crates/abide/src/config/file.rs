//! `config.toml`: read strictly, changed without touching what somebody wrote around it.

use std::path::{Path, PathBuf};

use std::collections::BTreeMap;

use abide_daemon::text::dollars;
use abide_effects::model::cards::{CardChange, CardValue, written};
use abide_effects::model::providers::{ProviderSettings, Providers};
use abide_ledger::Hash;
use abide_private::write_private;
use anyhow::{Context, anyhow, bail};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::entry::{self, Entry, Field, Named, ProviderField};
use super::key::{Key, Value, Written};
use crate::folder;

/// The sandbox's mode, in the table of the sandbox.
const SANDBOX_MODE: &str = "mode";

#[derive(Debug)]
pub struct File {
    path: PathBuf,
    /// Of what was read.
    digest: Hash,
    document: DocumentMut,
}

impl File {
    /// A file that is not there has nothing in it.
    pub fn read(home: &Path) -> anyhow::Result<File> {
        let path = home.join("config.toml");
        let bytes = folder::read_if_there(&path)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8", path.display()))?;
        let digest = Hash::of(text.as_bytes());
        let document = text.parse().map_err(|error| not_toml(&path, &error))?;
        Ok(File { path, digest, document })
    }

    /// What the file of a home holds now, whether it makes sense or not: what another reader read is told from it.
    pub fn digest_of(home: &Path) -> anyhow::Result<String> {
        let bytes = folder::read_if_there(&home.join("config.toml"))?.unwrap_or_default();
        Ok(Hash::of(&bytes).to_string())
    }

    pub fn digest(&self) -> String {
        self.digest.to_string()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses keys that nobody knows and values that can't be.
    pub fn check(&self) -> anyhow::Result<()> {
        let known = |name: &str| Named::parse(name).map_err(|problem| self.wrong(&problem));
        let tables: Vec<&str> = Key::ALL.into_iter().filter_map(|key| key.place().0).collect();
        for (name, item) in self.document.iter() {
            match (tables.contains(&name), item.as_table_like()) {
                (_, _) if entry::Table::named(name).is_some() => {}
                // `sandbox = "auto"` says the same as `mode = "auto"` in a table of that name.
                (true, None) if name == Key::Sandbox.name() => drop(self.get(&Named::Key(Key::Sandbox))?),
                (true, Some(table)) => {
                    for (inner, _) in table.iter() {
                        match (name, inner) {
                            ("sandbox", SANDBOX_MODE) => self.get(&Named::Key(Key::Sandbox))?,
                            _ => self.get(&known(&format!("{name}.{inner}"))?)?,
                        };
                    }
                }
                (true, None) => bail!("{}: {name} takes a table, not {}", self.path.display(), kind(item)),
                (false, _) => drop(self.get(&known(name)?)?),
            }
        }
        // Whether it all fits together does not depend on the environment.
        self.providers(&|_| None).map(drop)
    }

    fn wrong(&self, problem: &str) -> anyhow::Error {
        anyhow!("{}: {problem}", self.path.display())
    }

    /// Everything that is said of providers and models, in the order of the file.
    pub fn entries(&self) -> anyhow::Result<Vec<(Entry, Value)>> {
        let mut entries = Vec::new();
        for table in entry::Table::ALL {
            let Some(item) = self.document.get(table.name()) else { continue };
            for (name, item) in self.tables(table.name(), item)?.iter() {
                for (field, _) in self.tables(&format!("{}.{name}", table.name()), item)?.iter() {
                    let entry = table.entry(name, field).map_err(|problem| self.wrong(&problem))?;
                    if let Some(value) = self.get(&Named::Entry(entry.clone()))? {
                        entries.push((entry, value));
                    }
                }
            }
        }
        Ok(entries)
    }

    fn tables<'a>(&self, name: &str, item: &'a Item) -> anyhow::Result<&'a dyn TableLike> {
        item.as_table_like().ok_or_else(|| self.wrong(&format!("{name} takes a table, not {}", kind(item))))
    }

    /// Who can be asked, with this environment.
    pub fn providers(&self, variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Providers> {
        let mut providers: BTreeMap<String, ProviderSettings> = BTreeMap::new();
        let mut models: BTreeMap<String, CardChange> = BTreeMap::new();
        for table in entry::Table::ALL {
            // A table with nothing in it names something, too.
            let names = self.document.get(table.name()).and_then(Item::as_table_like);
            for (name, _) in names.into_iter().flat_map(TableLike::iter) {
                match table {
                    entry::Table::Providers => drop(providers.entry(name.to_owned()).or_default()),
                    entry::Table::Models => drop(models.entry(name.to_owned()).or_default()),
                }
            }
        }
        for (Entry { name, field }, value) in self.entries()? {
            match (field, value) {
                (Field::Provider(ProviderField::Kind), Value::Kind(kind)) => {
                    providers.entry(name).or_default().kind = Some(kind);
                }
                (Field::Provider(ProviderField::BaseUrl), value) => {
                    providers.entry(name).or_default().base_url = value.text().flatten();
                }
                (Field::Provider(ProviderField::KeyEnv), value) => {
                    providers.entry(name).or_default().key_env = value.text().flatten();
                }
                (Field::Model(field), Value::Card(value)) => models.entry(name).or_default().set(field, value),
                (Field::Provider(ProviderField::Kind) | Field::Model(_), value) => {
                    unreachable!("{name}: a field reads as its own kind of value, not as {value:?}")
                }
            }
        }
        Providers::new(&providers, &models, variable).map_err(|problem| match problem.place.starts_with('$') {
            true => anyhow!("{problem}"),
            false => self.wrong(&problem.to_string()),
        })
    }

    /// Where a setting stands. That of the sandbox's mode is older than the table that the others are in.
    fn place<'a>(&self, named: &'a Named) -> (Vec<&'a str>, &'static str) {
        let table = self.document.get(Key::Sandbox.name()).is_some_and(Item::is_table_like);
        match named {
            Named::Key(Key::Sandbox) if table => (vec![Key::Sandbox.name()], SANDBOX_MODE),
            Named::Key(_) | Named::Entry(_) => named.place(),
        }
    }

    /// Before anything else of the sandbox is written, a mode that stands alone goes into the table.
    fn make_sandbox_table(&mut self, named: &Named) {
        let inside = matches!(named, Named::Key(Key::SandboxMemory | Key::SandboxScratch));
        let alone = self.document.get(Key::Sandbox.name()).is_some_and(|item| !item.is_table_like());
        if !inside || !alone {
            return;
        }
        if let Some(mode) = self.document.remove(Key::Sandbox.name()) {
            let mut table = Table::new();
            table.insert(SANDBOX_MODE, mode);
            self.document.insert(Key::Sandbox.name(), Item::Table(table));
        }
    }

    fn item(&self, named: &Named) -> Option<&Item> {
        let (tables, name) = self.place(named);
        let document: &dyn TableLike = self.document.as_table();
        let table = tables.iter().try_fold(document, |table, name| table.get(name)?.as_table_like())?;
        table.get(name)
    }

    /// The table that holds a setting; made where there is none.
    fn table(&mut self, named: &Named) -> anyhow::Result<&mut dyn TableLike> {
        let path = self.path.display().to_string();
        let (tables, _) = self.place(named);
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for (depth, name) in tables.iter().enumerate() {
            let item = table.entry(name).or_insert_with(|| {
                let mut made = Table::new();
                // Only the innermost has a line of its own.
                made.set_implicit(depth + 1 < tables.len());
                Item::Table(made)
            });
            table = item.as_table_like_mut().ok_or_else(|| anyhow!("{path}: {name} is no table"))?;
        }
        Ok(table)
    }

    pub fn get(&self, named: &Named) -> anyhow::Result<Option<Value>> {
        let Some(item) = self.item(named) else { return Ok(None) };
        let place = format!("{}: {named}", self.path.display());
        let words = || item.as_array()?.iter().map(|word| word.as_str()).collect::<Option<Vec<_>>>();
        let (found, wanted) = match named.written() {
            Written::Number => (item.as_integer().map(|number| number.to_string()), "a whole number"),
            Written::Decimal => (written(item).filter(|_| !item.is_bool()), "a number"),
            Written::Switch => (item.as_bool().map(|on| on.to_string()), "true or false"),
            Written::Text => (item.as_str().map(str::to_owned), "text in quotes"),
            Written::List => (words().map(|words| words.join(",")), "a list of texts in quotes"),
        };
        let Some(text) = found else { bail!("{place} takes {wanted}, not {}", kind(item)) };
        named.parse_value(&text).map(Some).map_err(|problem| anyhow!("{place}: {problem}"))
    }

    /// Several belong together, as the two halves of a price: nothing is written before all are there.
    pub fn put(&mut self, named: &Named, value: &Value) -> anyhow::Result<()> {
        let number = |number: u64| toml_edit::Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        let mut new = match value {
            Value::ShutdownGraceMs(ms) => number(*ms),
            Value::NotifyOn(on) => on.iter().map(|on| on.as_str()).collect::<toml_edit::Array>().into(),
            Value::Fallback(models) => models.iter().collect::<toml_edit::Array>().into(),
            Value::Folders(words) | Value::Words(words) => words.iter().collect::<toml_edit::Array>().into(),
            Value::Switch(on) => toml_edit::Value::from(*on),
            Value::HookRate(whole) | Value::Limit(whole) => number(u64::from(*whole)),
            Value::Card(CardValue::Tokens(tokens)) => number(*tokens),
            Value::Card(CardValue::Switch(on)) => toml_edit::Value::from(*on),
            Value::MicroUsd(micro) | Value::Card(CardValue::MicroUsd(micro)) => toml_edit::Value::from(dollars(*micro)),
            Value::Listen(_)
            | Value::Store(_)
            | Value::Model(_)
            | Value::Log(_)
            | Value::Sandbox(_)
            | Value::Bytes(_)
            | Value::PublicUrl(_)
            | Value::Kind(_)
            | Value::Text(_) => toml_edit::Value::from(value.to_string()),
        };
        self.make_sandbox_table(named);
        // A comment behind the old value stays behind the new one.
        if let Some(old) = self.item(named).and_then(Item::as_value) {
            *new.decor_mut() = old.decor().clone();
        }
        let name = self.place(named).1;
        let table = self.table(named)?;
        // What is there keeps the way it is written; inserting would write it anew.
        match table.get_mut(name) {
            Some(item) => *item = Item::Value(new),
            None => drop(table.insert(name, Item::Value(new))),
        }
        Ok(())
    }

    /// Whether it was there.
    pub fn take(&mut self, named: &Named) -> anyhow::Result<bool> {
        if self.item(named).is_none() {
            return Ok(false);
        }
        let name = self.place(named).1;
        let table = self.table(named)?;
        // Comments above it belong to it as far as TOML knows; they are somebody's words, and stay in the file.
        let above = table.key(name).and_then(|removed| removed.leaf_decor().prefix()?.as_str());
        let above = above.unwrap_or_default().to_owned();
        table.remove(name);
        let empty = table.is_empty();
        if above.contains('#') {
            self.keep_above(&above);
        }
        // A provider or a model of which nothing is said is not there.
        if let (Named::Entry(entry), true) = (named, empty)
            && let Some(tables) = self.document.get_mut(entry.field.table().name()).and_then(Item::as_table_like_mut)
        {
            tables.remove(&entry.name);
        }
        Ok(true)
    }

    fn keep_above(&mut self, above: &str) {
        let rest = self.document.trailing().as_str().unwrap_or_default().to_owned();
        self.document.set_trailing(format!("{rest}{above}"));
    }

    /// Written beside its place and moved there, so that a reader sees the old file or the new one.
    pub fn save(&self) -> anyhow::Result<()> {
        self.check()?;
        let home = self.path.parent().unwrap_or(Path::new("."));
        let written =
            crate::home::create(home).and_then(|()| write_private(&self.path, self.document.to_string().as_bytes()));
        written.with_context(|| format!("can't write {}", self.path.display()))
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
