//! A file of settings: `config.toml` of the home, or `abide.toml` of a workspace. Read strictly; changed without touching
//! what somebody wrote around the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use abide_effects::model::cards::{CardChange, format_item};
use abide_effects::model::providers::{Kind, ProviderSettings, Providers};
use abide_ledger::Hash;
use abide_private::write_private;
use anyhow::{Context, anyhow, bail};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::key::{Entry, Key};
use super::named_tables::{BASE_URL, KEY_ENV, KIND, MODELS, NAMED_TABLES, PROVIDERS};
use super::setting_type::{Form, Type};
use super::table::{ROWS, Row};
use super::value::{SettingType, Value};
use crate::folder;

#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    scope: Scope,
    /// Of what was read.
    digest: Hash,
    document: DocumentMut,
}

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `config.toml`: every setting.
    Home,
    /// `abide.toml`: those that a workspace may set.
    Workspace,
}

impl SettingsFile {
    /// `config.toml` of a home. A file that is not there has nothing in it.
    pub fn of_home(home: &Path) -> anyhow::Result<SettingsFile> {
        let path = home.join("config.toml");
        let bytes = folder::read_if_there(&path)?.unwrap_or_default();
        SettingsFile::parse(path, Scope::Home, bytes)
    }

    pub fn parse(path: PathBuf, scope: Scope, bytes: Vec<u8>) -> anyhow::Result<SettingsFile> {
        let digest = Hash::of(&bytes);
        let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8", path.display()))?;
        let document = text.parse().map_err(|error| not_toml(&path, &error))?;
        Ok(SettingsFile { path, scope, digest, document })
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

    /// Refuses unknown keys, values out of range, and keys that do not belong in this file.
    pub fn check(&self) -> anyhow::Result<()> {
        self.check_table(self.document.as_table(), "")?;
        // Whether it all fits together does not depend on the environment.
        self.providers(&|_| None).map(drop)
    }

    /// `prefix` is the name of the table with a dot behind it.
    fn check_table(&self, table: &dyn TableLike, prefix: &str) -> anyhow::Result<()> {
        for (name, item) in table.iter() {
            if name.contains('.') {
                bail!("{}: write {prefix}{name} without quotes around its dots", self.path.display());
            }
            let key = format!("{prefix}{name}");
            let inside = format!("{key}.");
            if let Some(named) = NAMED_TABLES.iter().find(|table| table.name == key) {
                // Its entries are read, and so checked, when the providers are.
                self.require_allowed(&key, named.rows.iter().all(|row| row.workspace))?;
                continue;
            }
            let row = ROWS.iter().find(|row| row.key == key);
            // `sandbox = "auto"` says the same as `mode = "auto"` in a table of that name.
            let alias = ROWS.iter().find(|row| row.in_table == Some(name) && prefix.strip_suffix('.') == Some(row.key));
            let is_table = has_rows_inside(&inside);
            match (item.as_table_like(), row.or(alias)) {
                (Some(table), _) if is_table => self.check_table(table, &inside)?,
                (_, Some(row)) => {
                    self.require_allowed(row.key, row.workspace)?;
                    self.get(&Key::Row(row))?;
                }
                (_, None) if is_table => bail!("{}: {key} takes a table, not {}", self.path.display(), kind(item)),
                (_, None) => {
                    return Err(match Key::parse(&key) {
                        Err(problem) => self.wrong(&problem),
                        Ok(key) => unreachable!("{key} is a row"),
                    });
                }
            }
        }
        Ok(())
    }

    fn require_allowed(&self, key: &str, workspace: bool) -> anyhow::Result<()> {
        match self.scope {
            Scope::Workspace if !workspace => {
                let allowed = ROWS.iter().filter(|row| row.workspace).map(|row| row.key).collect::<Vec<_>>().join(", ");
                Err(self.wrong(&format!(
                    "a workspace may not set {key}: it belongs in config.toml of the home (`abide config set {key} …`); \
                     abide.toml takes {allowed}"
                )))
            }
            Scope::Workspace | Scope::Home => Ok(()),
        }
    }

    fn wrong(&self, problem: &str) -> anyhow::Error {
        anyhow!("{}: {problem}", self.path.display())
    }

    /// The settings that stand in the file, apart from those in named tables.
    pub fn values(&self) -> anyhow::Result<Vec<(Key, Value)>> {
        let values = ROWS.iter().map(|row| Ok((Key::Row(row), self.get(&Key::Row(row))?)));
        let values = values.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
    }

    /// Everything that is said of providers and models, in the order of the file.
    pub fn entries(&self) -> anyhow::Result<Vec<(Entry, Value)>> {
        let mut entries = Vec::new();
        for table in &NAMED_TABLES {
            let Some(item) = self.at(table.name) else { continue };
            for (name, item) in self.tables(table.name, item)?.iter() {
                for (field, _) in self.tables(&format!("{}.{name}", table.name), item)?.iter() {
                    let entry = table.entry(name, field).map_err(|problem| self.wrong(&problem))?;
                    if let Some(value) = self.get(&Key::Entry(entry.clone()))? {
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
        // A table with nothing in it names something, too.
        let mut providers: BTreeMap<_, ProviderSettings> = self.empty_entries(PROVIDERS);
        let mut models: BTreeMap<_, CardChange> = self.empty_entries(MODELS);
        for (Entry { table, name, row }, value) in self.entries()? {
            match (table.name, row.key, row.takes, value) {
                (PROVIDERS, KIND, _, value) => providers.entry(name).or_default().kind = Kind::of(&value),
                (PROVIDERS, BASE_URL, _, Value::Text(url)) => providers.entry(name).or_default().base_url = url,
                (PROVIDERS, KEY_ENV, _, Value::Text(variable)) => providers.entry(name).or_default().key_env = variable,
                (MODELS, _, Type::Card(field), Value::Card(value)) => {
                    models.entry(name).or_default().set_field(field, value)
                }
                // A field of another table.
                (_, _, _, _) => {}
            }
        }
        Providers::new(&providers, &models, variable).map_err(|problem| match problem.place.starts_with('$') {
            true => anyhow!("{problem}"),
            false => self.wrong(&problem.to_string()),
        })
    }

    /// The entries of a named table, before their fields are read.
    fn empty_entries<T: Default>(&self, table: &str) -> BTreeMap<String, T> {
        let entries = self.at(table).and_then(Item::as_table_like);
        let names = entries.into_iter().flat_map(TableLike::iter).map(|(name, _)| name.to_owned());
        names.map(|name| (name, T::default())).collect()
    }

    /// Where a setting stands. That of the sandbox's mode is older than the table that the others are in.
    fn place<'a>(&self, key: &'a Key) -> (Vec<&'a str>, &'static str) {
        match key {
            Key::Row(Row { key, in_table: Some(name), .. }) if self.at(key).is_some_and(Item::is_table_like) => {
                (key.split('.').collect(), name)
            }
            Key::Row(_) | Key::Entry(_) => key.place(),
        }
    }

    /// What stands at a name with dots.
    fn at(&self, name: &str) -> Option<&Item> {
        let (tables, last) = name.rsplit_once('.').map_or(("", name), |split| split);
        let document: &dyn TableLike = self.document.as_table();
        let names = tables.split('.').filter(|name| !name.is_empty());
        names.into_iter().try_fold(document, |table, name| table.get(name)?.as_table_like())?.get(last)
    }

    /// Before anything else is written into a table, a value that stands alone under the table's name goes into it.
    fn make_table_of_word(&mut self, key: &Key) {
        let (tables, _) = key.place();
        let Some(row) = ROWS.iter().find(|row| row.in_table.is_some() && tables == [row.key]) else { return };
        let Some(name) = row.in_table.filter(|_| self.at(row.key).is_some_and(|item| !item.is_table_like())) else {
            return;
        };
        if let Some(word) = self.document.remove(row.key) {
            let mut table = Table::new();
            table.insert(name, word);
            self.document.insert(row.key, Item::Table(table));
        }
    }

    fn item(&self, key: &Key) -> Option<&Item> {
        let (tables, name) = self.place(key);
        let document: &dyn TableLike = self.document.as_table();
        let table = tables.iter().try_fold(document, |table, name| table.get(name)?.as_table_like())?;
        table.get(name)
    }

    /// The table that holds a setting; made where there is none.
    fn table(&mut self, key: &Key) -> anyhow::Result<&mut dyn TableLike> {
        let path = self.path.display().to_string();
        let (tables, _) = self.place(key);
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

    pub fn get(&self, key: &Key) -> anyhow::Result<Option<Value>> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let place = format!("{}: {key}", self.path.display());
        let words = || item.as_array()?.iter().map(|word| word.as_str()).collect::<Option<Vec<_>>>();
        let form = key.row().takes.form();
        let found = match form {
            Form::Number => item.as_integer().map(|number| number.to_string()),
            Form::Decimal => format_item(item).filter(|_| !item.is_bool()),
            Form::Switch => item.as_bool().map(|on| on.to_string()),
            Form::Text => item.as_str().map(str::to_owned),
            Form::List => words().map(|words| words.join(",")),
        };
        if self.scope == Scope::Workspace && names_relative_script(key, item) {
            bail!(
                "{place}: write the whole path of the script: a path that is relative leads elsewhere for the daemon"
            );
        }
        let Some(text) = found else { bail!("{place} takes {}, not {}", form.in_words(), kind(item)) };
        key.parse_value(&text).map(Some).map_err(|problem| anyhow!("{place}: {problem}"))
    }

    /// Several belong together, as the two halves of a price: nothing is written before all are there.
    pub fn put(&mut self, key: &Key, value: &Value) -> anyhow::Result<()> {
        let mut new = value.toml();
        self.make_table_of_word(key);
        // A comment behind the old value stays behind the new one.
        if let Some(old) = self.item(key).and_then(Item::as_value) {
            *new.decor_mut() = old.decor().clone();
        }
        let name = self.place(key).1;
        let table = self.table(key)?;
        // What is there keeps the way it is written; inserting would write it anew.
        match table.get_mut(name) {
            Some(item) => *item = Item::Value(new),
            None => drop(table.insert(name, Item::Value(new))),
        }
        Ok(())
    }

    /// Whether it was there.
    pub fn take(&mut self, key: &Key) -> anyhow::Result<bool> {
        if self.item(key).is_none() {
            return Ok(false);
        }
        let name = self.place(key).1;
        let table = self.table(key)?;
        // Comments above it belong to it as far as TOML knows; they are somebody's words, and stay in the file.
        let above = table.key(name).and_then(|removed| removed.leaf_decor().prefix()?.as_str());
        let above = above.unwrap_or_default().to_owned();
        table.remove(name);
        let empty = table.is_empty();
        if above.contains('#') {
            self.keep_above(&above);
        }
        // A provider or a model of which nothing is said is not there.
        if let (Key::Entry(entry), true) = (key, empty) {
            self.remove_entry(entry);
        }
        Ok(true)
    }

    fn remove_entry(&mut self, entry: &Entry) {
        let document: &mut dyn TableLike = self.document.as_table_mut();
        let mut names = entry.table.name.split('.');
        let table = names.try_fold(document, |table, name| table.get_mut(name)?.as_table_like_mut());
        table.into_iter().for_each(|table| drop(table.remove(&entry.name)));
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

fn names_relative_script(key: &Key, item: &Item) -> bool {
    let texts = item.as_array().into_iter().flatten().filter_map(toml_edit::Value::as_str).chain(item.as_str());
    let relative = |text: &str| {
        let file = text.trim().strip_prefix("script/");
        file.is_some_and(|file| file != "echo" && !Path::new(file).is_absolute())
    };
    matches!(key.row().takes, Type::Model | Type::Models { .. }) && texts.into_iter().any(relative)
}

/// Whether settings stand in a table of this name, which ends with a dot.
fn has_rows_inside(name: &str) -> bool {
    let names = ROWS.iter().map(|row| row.key).chain(NAMED_TABLES.iter().map(|table| table.name));
    names.into_iter().any(|key| key.starts_with(name))
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
