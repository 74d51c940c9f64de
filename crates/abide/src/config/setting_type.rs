//! The types of settings: how each is read from a text, written in a file, described by a JSON schema and in the
//! documentation. The range of a value belongs to its type.

use std::net::SocketAddr;

use abide_effects::model::cards::{CardField, TOKENS_MAX, USD_MAX, micro_usd};

use super::json_schema::JsonSchema;
use super::value::{Value, Word};
use crate::model_name::parse_model_name;

#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// IP:PORT.
    Address {
        example: SocketAddr,
    },
    Word(Words),
    /// A list of words.
    Words(Words),
    Text(Text),
    /// A list of texts, none of which has a comma.
    Texts(Text),
    /// PROVIDER/MODEL.
    Model,
    Models {
        most: usize,
    },
    Number {
        least: u64,
        most: u64,
        /// The unit, as it follows "no number".
        of: &'static str,
        zero_is_no_limit: bool,
    },
    /// With a unit, or `auto`, which stands for this number or leaves it to the daemon.
    Bytes {
        least: u64,
        auto: Option<u64>,
    },
    /// An amount of which zero is no limit.
    Dollars,
    Switch,
    /// Something that is known of a model.
    Card(CardField),
}

#[derive(Debug, Clone, Copy)]
pub struct Words {
    pub words: fn() -> Vec<&'static str>,
    /// The kind of word, as in "no level".
    pub not: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// For the documentation.
    pub shape: &'static str,
    /// For the schema: a regular expression.
    pub pattern: Option<&'static str>,
    /// The text as it is kept, or what is wrong with it.
    pub check: fn(&str) -> Result<String, String>,
}

/// How a value is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Number,
    Decimal,
    Switch,
    Text,
    List,
}

const MODEL_PATTERN: &str = "^[^/]+/.+$";
const BYTES_PATTERN: &str = "^(auto|[0-9]+ *([KMGT]i?B|B)?)$";
/// From the largest to the smallest; those that count by thousands are understood and not written.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

impl Type {
    /// A value as it is written on a command line; the texts of a list are divided by commas. Refuses with what it takes.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Type::Address { example } => {
                let wrong = |_| format!("{text:?} is no address to listen on: write IP:PORT, such as {example}");
                text.parse().map(Value::Address).map_err(wrong)
            }
            Type::Word(words) => words.parse(text).map(Value::Word),
            Type::Words(words) => list(text, |word| words.parse(word).map(str::to_owned)).map(Value::List),
            Type::Text(kind) => (kind.check)(text).map(|text| Value::Text(Some(text))),
            Type::Texts(kind) => list(text, kind.check).map(Value::List),
            Type::Model => parse_model_name(text).map(|name| Value::Text(Some(name))),
            Type::Models { most } => {
                let models = list(text, parse_model_name)?;
                match models.len() {
                    count if count > most => Err(format!("{count} models are too many: name {most} at most")),
                    _ => Ok(Value::List(models)),
                }
            }
            Type::Number { least, most, of, zero_is_no_limit } => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number)).map(Value::Number);
                let least = if zero_is_no_limit { format!("{least}, which is no limit,") } else { least.to_string() };
                number.ok_or_else(|| format!("{text:?} is no number{of} from {least} to {most}"))
            }
            Type::Bytes { auto, .. } if text == "auto" => Ok(Value::Bytes(auto)),
            Type::Bytes { least, .. } => bytes(text, least).map(|bytes| Value::Bytes(Some(bytes))),
            Type::Dollars => {
                let amount = micro_usd(text.strip_prefix('$').unwrap_or(text)).map(Value::MicroUsd);
                amount.ok_or_else(|| {
                    format!("{text:?} is no amount in dollars: write one such as 20 or 7.50; 0 is no limit")
                })
            }
            Type::Switch => text.parse().map(Value::Switch).map_err(|_| format!("{text:?} is neither true nor false")),
            Type::Card(field) => field.parse(text).map(Value::Card),
        }
    }

    pub fn form(self) -> Form {
        match self {
            Type::Number { .. } => Form::Number,
            Type::Dollars => Form::Decimal,
            Type::Switch => Form::Switch,
            Type::Words(_) | Type::Texts(_) | Type::Models { .. } => Form::List,
            Type::Address { .. } | Type::Word(_) | Type::Text(_) | Type::Model | Type::Bytes { .. } => Form::Text,
            Type::Card(field) => match field {
                CardField::WindowTokens | CardField::MaxOutputTokens | CardField::ContextTokens => Form::Number,
                CardField::Images => Form::Switch,
                CardField::InputUsd | CardField::OutputUsd | CardField::CacheReadUsd | CardField::CacheWriteUsd => {
                    Form::Decimal
                }
            },
        }
    }

    /// The models that a value of this type names.
    pub fn models(self, value: &Value) -> &[String] {
        match (self, value) {
            (Type::Model, Value::Text(Some(name))) => std::slice::from_ref(name),
            (Type::Models { .. }, Value::List(names)) => names,
            (_, _) => &[],
        }
    }

    /// The values that it takes, in Markdown.
    pub fn range(self) -> String {
        match self {
            Type::Address { .. } => "`IP:PORT`".to_owned(),
            Type::Word(words) => one_of(&words.marked()),
            Type::Words(words) => format!("any of {}", words.marked().join(", ")),
            Type::Text(kind) => kind.shape.to_owned(),
            Type::Texts(kind) => format!("each {}", kind.shape),
            Type::Model => "`PROVIDER/MODEL`".to_owned(),
            Type::Models { most } => format!("at most {most}, each `PROVIDER/MODEL`"),
            Type::Number { least, most, zero_is_no_limit, .. } => {
                format!("{least}{} to {most}", if zero_is_no_limit { " (no limit)" } else { "" })
            }
            Type::Bytes { least: 0, .. } => "`auto`, or bytes with a unit".to_owned(),
            Type::Bytes { least, .. } => format!("`auto`, or {} and more", size(least)),
            Type::Dollars => format!("0 (no limit) to {USD_MAX}, to the millionth"),
            Type::Switch | Type::Card(CardField::Images) => "`true` or `false`".to_owned(),
            Type::Card(CardField::WindowTokens | CardField::MaxOutputTokens | CardField::ContextTokens) => {
                format!("1 to {TOKENS_MAX}")
            }
            Type::Card(
                CardField::InputUsd | CardField::OutputUsd | CardField::CacheReadUsd | CardField::CacheWriteUsd,
            ) => format!("0 to {USD_MAX}, to the millionth"),
        }
    }

    /// The JSON schema of such a value.
    pub fn schema(self) -> JsonSchema {
        match self {
            Type::Address { .. } => JsonSchema::text(None),
            Type::Word(words) => JsonSchema::word((words.words)()),
            Type::Words(words) => JsonSchema::list(JsonSchema::word((words.words)())),
            Type::Text(kind) => JsonSchema::text(kind.pattern),
            Type::Texts(kind) => JsonSchema::list(JsonSchema::text(kind.pattern)),
            Type::Model => JsonSchema::text(Some(MODEL_PATTERN)),
            Type::Models { most } => JsonSchema { max_items: Some(most), ..JsonSchema::list(Type::Model.schema()) },
            Type::Number { least, most, .. } => JsonSchema::number("integer", least, most),
            Type::Bytes { .. } => JsonSchema::text(Some(BYTES_PATTERN)),
            Type::Dollars => JsonSchema::number("number", 0, USD_MAX),
            Type::Switch => JsonSchema::of_type("boolean"),
            Type::Card(_) => match self.form() {
                Form::Number => JsonSchema::number("integer", 1, TOKENS_MAX),
                Form::Switch => Type::Switch.schema(),
                Form::Decimal | Form::Text | Form::List => Type::Dollars.schema(),
            },
        }
    }
}

impl Words {
    /// For a table's row: the words of a type.
    pub fn of<T: Word>() -> Vec<&'static str> {
        T::all().into_iter().map(|(word, _)| word).collect()
    }

    fn parse(self, text: &str) -> Result<&'static str, String> {
        let words = (self.words)();
        let known = words.iter().find(|word| **word == text).copied();
        known.ok_or_else(|| format!("{text:?} is {}: it takes {}", self.not, one_of(&words)))
    }

    /// For Markdown.
    fn marked(self) -> Vec<String> {
        (self.words)().iter().map(|word| format!("`{word}`")).collect()
    }
}

impl Form {
    /// As an error names it: "takes text in quotes, not a number".
    pub fn in_words(self) -> &'static str {
        match self {
            Form::Number => "a whole number",
            Form::Decimal => "a number",
            Form::Switch => "true or false",
            Form::Text => "text in quotes",
            Form::List => "a list of texts in quotes",
        }
    }
}

fn one_of<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Divided by commas; nothing at all is a list, too.
fn list(text: &str, item: impl Fn(&str) -> Result<String, String>) -> Result<Vec<String>, String> {
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(item).collect()
}

/// A number of bytes, with or without a unit.
fn bytes(text: &str, least: u64) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "" => Some(1),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes),
    };
    let bytes = number.parse().ok().zip(unit).and_then(|(number, unit): (u64, u64)| number.checked_mul(unit));
    match bytes {
        Some(bytes) if (least..=i64::MAX.unsigned_abs()).contains(&bytes) => Ok(bytes),
        Some(_) => Err(format!("{text:?} is too little or too much: it takes {} or more", size(least))),
        None => Err(format!("{text:?} is no number of bytes: write one such as 512MiB or 4GiB, or auto")),
    }
}

/// In the largest unit that says it exactly.
pub fn size(bytes: u64) -> String {
    let binary = UNITS.iter().filter(|(name, _)| name.ends_with("iB"));
    let unit = binary.into_iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}
