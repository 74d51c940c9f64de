//! `config.toml`: read strictly, changed without touching what somebody wrote around it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use toml_edit::{DocumentMut, Item};

use super::key::{Key, Value};
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
        for (name, _) in self.document.iter() {
            let key = Key::named(name).map_err(|problem| anyhow!("{}: {problem}", self.path.display()))?;
            self.get(key)?;
        }
        Ok(())
    }

    pub fn get(&self, key: Key) -> anyhow::Result<Option<Value>> {
        let Some(item) = self.document.get(key.name()) else { return Ok(None) };
        let place = format!("{}: {}", self.path.display(), key.name());
        let text = match (key.is_number(), item.as_integer(), item.as_str()) {
            (true, Some(number), _) => number.to_string(),
            (false, _, Some(text)) => text.to_owned(),
            (true, None, _) => bail!("{place} takes a whole number, not {}", kind(item)),
            (false, _, None) => bail!("{place} takes text in quotes, not {}", kind(item)),
        };
        key.parse(&text).map(Some).map_err(|problem| anyhow!("{place}: {problem}"))
    }

    pub fn set(&mut self, key: Key, value: &Value) -> anyhow::Result<()> {
        let mut new = match value {
            Value::ShutdownGraceMs(ms) => toml_edit::Value::from(i64::try_from(*ms).unwrap_or(i64::MAX)),
            Value::HookRate(rate) => toml_edit::Value::from(i64::from(*rate)),
            Value::Listen(_)
            | Value::Store(_)
            | Value::Model(_)
            | Value::Log(_)
            | Value::Sandbox(_)
            | Value::PublicUrl(_) => toml_edit::Value::from(value.to_string()),
        };
        // A comment behind the old value stays behind the new one.
        if let Some(old) = self.document.get(key.name()).and_then(Item::as_value) {
            *new.decor_mut() = old.decor().clone();
        }
        self.document[key.name()] = Item::Value(new);
        self.save()
    }

    /// Whether it was there.
    pub fn unset(&mut self, key: Key) -> anyhow::Result<bool> {
        let Some((removed, _)) = self.document.remove_entry(key.name()) else { return Ok(false) };
        // Comments above it belong to it as far as TOML knows; they are somebody's words, and stay in the file.
        let above = removed.leaf_decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
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
