//! Values of settings, and the Rust types that settings are read as.

use std::fmt;
use std::net::SocketAddr;

use abide_daemon::notify::NoticeKind;
use abide_daemon::text::dollars;
use abide_effects::model::cards::{CardValue, format_usd};
use abide_effects::model::providers::Kind;
use abide_effects::sandbox::Mode;
use serde_json::json;

use super::setting_type::size;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Address(SocketAddr),
    /// One of the words that its setting takes.
    Word(&'static str),
    Text(Option<String>),
    List(Vec<String>),
    Number(u64),
    /// None: the daemon finds out what fits.
    Bytes(Option<u64>),
    /// Millionths of a dollar; zero is no limit.
    MicroUsd(u64),
    Switch(bool),
    /// Of a model.
    Card(CardValue),
}

impl Value {
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::Number(number) => json!(number),
            Value::Text(text) => json!(text),
            Value::List(texts) => json!(texts),
            Value::Switch(on) | Value::Card(CardValue::Switch(on)) => json!(on),
            Value::Card(CardValue::Tokens(tokens)) => json!(tokens),
            Value::MicroUsd(micro) | Value::Card(CardValue::MicroUsd(micro)) => json!(dollars(*micro)),
            Value::Address(_) | Value::Word(_) | Value::Bytes(_) => json!(self.to_string()),
        }
    }

    /// As a file writes it; a missing text has no form there.
    pub fn toml(&self) -> toml_edit::Value {
        let number = |number: u64| toml_edit::Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        match self {
            Value::List(texts) => texts.iter().collect::<toml_edit::Array>().into(),
            Value::Number(whole) | Value::Card(CardValue::Tokens(whole)) => number(*whole),
            Value::Switch(on) | Value::Card(CardValue::Switch(on)) => toml_edit::Value::from(*on),
            Value::MicroUsd(micro) | Value::Card(CardValue::MicroUsd(micro)) => toml_edit::Value::from(dollars(*micro)),
            Value::Address(_) | Value::Word(_) | Value::Bytes(_) | Value::Text(_) => {
                toml_edit::Value::from(self.to_string())
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Address(address) => write!(f, "{address}"),
            Value::Word(word) => f.write_str(word),
            Value::Bytes(None) => f.write_str("auto"),
            Value::Bytes(Some(bytes)) => f.write_str(&size(*bytes)),
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text.as_deref().unwrap_or("none")),
            Value::List(texts) if texts.is_empty() => f.write_str("none"),
            Value::List(texts) => f.write_str(&texts.join(",")),
            Value::Switch(on) | Value::Card(CardValue::Switch(on)) => write!(f, "{on}"),
            Value::Card(CardValue::Tokens(tokens)) => write!(f, "{tokens}"),
            Value::MicroUsd(0) => f.write_str("0"),
            Value::MicroUsd(micro) | Value::Card(CardValue::MicroUsd(micro)) => f.write_str(&format_usd(*micro)),
        }
    }
}

/// A type that a field of `Settings` may have.
pub trait SettingType: Sized {
    /// None for a value of another type.
    fn of(value: &Value) -> Option<Self>;
    fn value(&self) -> Value;
}

/// A type with a few values, each of which has a word.
pub trait Word: Copy + PartialEq {
    fn all() -> Vec<(&'static str, Self)>;
}

/// Millionths of a dollar; zero is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicroUsd(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// In the home.
    Sqlite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Word for Store {
    fn all() -> Vec<(&'static str, Store)> {
        vec![("sqlite", Store::Sqlite)]
    }
}

impl Word for Log {
    fn all() -> Vec<(&'static str, Log)> {
        let all = [Log::Error, Log::Warn, Log::Info, Log::Debug, Log::Trace];
        ["error", "warn", "info", "debug", "trace"].into_iter().zip(all).collect()
    }
}

impl Word for Mode {
    fn all() -> Vec<(&'static str, Mode)> {
        [Mode::Auto, Mode::Required, Mode::Off].map(|mode| (mode.as_str(), mode)).to_vec()
    }
}

impl Word for NoticeKind {
    fn all() -> Vec<(&'static str, NoticeKind)> {
        NoticeKind::ALL.map(|on| (on.as_str(), on)).to_vec()
    }
}

impl Word for Kind {
    fn all() -> Vec<(&'static str, Kind)> {
        Kind::ALL.map(|kind| (kind.as_str(), kind)).to_vec()
    }
}

fn word_of<T: Word>(typed: T) -> &'static str {
    match T::all().into_iter().find(|(_, known)| *known == typed) {
        Some((word, _)) => word,
        None => unreachable!("every value has a word"),
    }
}

fn typed_of<T: Word>(word: &str) -> Option<T> {
    T::all().into_iter().find(|(known, _)| *known == word).map(|(_, typed)| typed)
}

impl<T: Word> SettingType for T {
    fn of(value: &Value) -> Option<T> {
        if let Value::Word(word) = value { typed_of(word) } else { None }
    }

    fn value(&self) -> Value {
        Value::Word(word_of(*self))
    }
}

impl<T: Word> SettingType for Vec<T> {
    fn of(value: &Value) -> Option<Vec<T>> {
        if let Value::List(words) = value { words.iter().map(|word| typed_of(word)).collect() } else { None }
    }

    fn value(&self) -> Value {
        Value::List(self.iter().map(|typed| word_of(*typed).to_owned()).collect())
    }
}

/// Types that a value holds as they are, or nearly so.
macro_rules! setting_types {
    ($($type:ty: $pattern:pat => $of:expr, $this:ident => $value:expr;)*) => {
        $(impl SettingType for $type {
            fn of(value: &Value) -> Option<$type> {
                if let $pattern = value { $of } else { None }
            }

            fn value(&self) -> Value {
                let $this = self;
                $value
            }
        })*
    };
}

setting_types! {
    SocketAddr: Value::Address(address) => Some(*address), this => Value::Address(*this);
    String: Value::Text(Some(text)) => Some(text.clone()), this => Value::Text(Some(this.clone()));
    Option<String>: Value::Text(text) => Some(text.clone()), this => Value::Text(this.clone());
    Vec<String>: Value::List(texts) => Some(texts.clone()), this => Value::List(this.clone());
    u64: Value::Number(number) => Some(*number), this => Value::Number(*this);
    u32: Value::Number(number) => u32::try_from(*number).ok(), this => Value::Number(u64::from(*this));
    Option<u64>: Value::Bytes(bytes) => Some(*bytes), this => Value::Bytes(*this);
    MicroUsd: Value::MicroUsd(micro) => Some(MicroUsd(*micro)), this => Value::MicroUsd(this.0);
    bool: Value::Switch(on) => Some(*on), this => Value::Switch(*this);
}
