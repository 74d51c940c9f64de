//! Settings of things that have names of their own: `providers.NAME.FIELD` and `models."PROVIDER/MODEL".FIELD`. And every
//! setting by its name, whichever kind it is of.

use std::fmt;

use abide_effects::model::cards::CardField;
use abide_effects::model::providers::{Kind, base_url, key_env, provider_name};
use serde_json::{Value as Json, json};

use super::key::{Key, Value, Written, model};

/// What a person names: a setting, or one field of a table with a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    Key(Key),
    Entry(Entry),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub field: Field,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Provider(ProviderField),
    Model(CardField),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderField {
    Kind,
    BaseUrl,
    KeyEnv,
}

/// The tables that have tables in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Providers,
    Models,
}

/// Where people put keys that must not be in a file.
const SECRETS: [&str; 8] = ["key", "api_key", "apikey", "token", "api_token", "secret", "password", "authorization"];

impl Table {
    pub const ALL: [Table; 2] = [Table::Providers, Table::Models];

    pub fn name(self) -> &'static str {
        match self {
            Table::Providers => "providers",
            Table::Models => "models",
        }
    }

    pub fn named(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    pub fn fields(self) -> Vec<Field> {
        match self {
            Table::Providers => ProviderField::ALL.map(Field::Provider).to_vec(),
            Table::Models => CardField::ALL.map(Field::Model).to_vec(),
        }
    }

    /// The field of an entry, or what to say about a name that is none.
    pub fn entry(self, name: &str, field: &str) -> Result<Entry, String> {
        let table = self.name();
        match self {
            Table::Providers => provider_name(name).map_err(|problem| format!("{table}.{name}: {problem}"))?,
            Table::Models => drop(model(name).map_err(|problem| format!("{table}.{name:?}: {problem}"))?),
        }
        let fields = self.fields();
        if let Some(field) = fields.iter().find(|known| known.name() == field) {
            return Ok(Entry { name: name.to_owned(), field: *field });
        }
        let shown = format!("{table}.{}", quoted(name));
        if self == Table::Providers && SECRETS.contains(&field) {
            return Err(format!(
                "{shown}.{field}: keys are not kept in this file: put it into a variable of the daemon's environment, and \
                 name that one with key_env"
            ));
        }
        let distance = |known: &&Field| strsim::damerau_levenshtein(field, known.name());
        let instead = match fields.iter().min_by_key(distance).filter(|known| distance(known) <= 3) {
            Some(near) => format!("did you mean {shown}.{}?", near.name()),
            None => format!("there are {}", fields.iter().map(|known| known.name()).collect::<Vec<_>>().join(", ")),
        };
        Err(format!("no setting is called \"{shown}.{field}\"; {instead}"))
    }

    pub fn schema(self) -> Json {
        let fields = self.fields();
        let properties: serde_json::Map<_, _> =
            fields.iter().map(|field| (field.name().to_owned(), field.schema())).collect();
        let about = match self {
            Table::Providers => {
                "Who answers model calls: anthropic, openai, openai-chat, ollama, or a name of your own"
            }
            Table::Models => "What is known of a model, by PROVIDER/MODEL",
        };
        let each = json!({ "type": "object", "additionalProperties": false, "properties": properties });
        json!({ "type": "object", "description": about, "additionalProperties": each })
    }
}

impl ProviderField {
    pub const ALL: [ProviderField; 3] = [ProviderField::Kind, ProviderField::BaseUrl, ProviderField::KeyEnv];
}

impl Field {
    pub fn table(self) -> Table {
        match self {
            Field::Provider(_) => Table::Providers,
            Field::Model(_) => Table::Models,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Field::Provider(ProviderField::Kind) => "kind",
            Field::Provider(ProviderField::BaseUrl) => "base_url",
            Field::Provider(ProviderField::KeyEnv) => "key_env",
            Field::Model(field) => field.name(),
        }
    }

    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Field::Provider(ProviderField::Kind) => Kind::parse(text).map(Value::Kind),
            Field::Provider(ProviderField::BaseUrl) => base_url(text).map(|url| Value::Text(Some(url))),
            Field::Provider(ProviderField::KeyEnv) => key_env(text).map(|name| Value::Text(Some(name))),
            Field::Model(field) => field.parse(text).map(Value::Card),
        }
    }

    pub fn written(self) -> Written {
        match self {
            Field::Provider(_) => Written::Text,
            Field::Model(CardField::WindowTokens | CardField::MaxOutputTokens | CardField::ContextTokens) => {
                Written::Number
            }
            Field::Model(CardField::Images) => Written::Switch,
            Field::Model(
                CardField::InputUsd | CardField::OutputUsd | CardField::CacheReadUsd | CardField::CacheWriteUsd,
            ) => Written::Decimal,
        }
    }

    fn schema(self) -> Json {
        let tokens = |about: &str| json!({ "type": "integer", "minimum": 1, "description": about });
        let price = |about: &str| json!({ "type": "number", "minimum": 0, "description": about });
        match self {
            Field::Provider(ProviderField::Kind) => json!({
                "type": "string", "enum": Kind::ALL.map(Kind::as_str),
                "description": "What it is like; a name that is not built in needs one",
            }),
            Field::Provider(ProviderField::BaseUrl) => json!({
                "type": "string", "pattern": "^https?://",
                "description": "Where it is: with /v1 for OpenAI's protocols, without for Anthropic's",
            }),
            Field::Provider(ProviderField::KeyEnv) => json!({
                "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
                "description": "The variable of the daemon's environment that holds its key",
            }),
            Field::Model(field) => match field {
                CardField::WindowTokens => tokens("What it takes in all: what it reads and what it writes"),
                CardField::MaxOutputTokens => tokens("What it writes in one answer, at most"),
                CardField::ContextTokens => tokens("How much of the window a prompt may fill"),
                CardField::Images => json!({ "type": "boolean", "description": "It can look at pictures" }),
                CardField::InputUsd => price("Dollars for a million tokens that it reads"),
                CardField::OutputUsd => price("Dollars for a million tokens that it writes"),
                CardField::CacheReadUsd => price("Dollars for a million tokens that come from its provider's cache"),
                CardField::CacheWriteUsd => price("Dollars for a million tokens that go into its provider's cache"),
            },
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.field.table().name(), quoted(&self.name), self.field.name())
    }
}

/// As TOML would have it.
fn quoted(name: &str) -> String {
    let bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if bare { name.to_owned() } else { format!("{name:?}") }
}

impl Named {
    /// The setting of this name, or what to say about a name that is none.
    pub fn parse(name: &str) -> Result<Named, String> {
        if let Some(key) = Key::ALL.into_iter().find(|key| key.name() == name) {
            return Ok(Named::Key(key));
        }
        let split = name.split_once('.').and_then(|(table, rest)| Some((Table::named(table)?, rest)));
        if let Some((table, rest)) = split {
            // Names of models have dots, fields have none.
            let entry = rest.rsplit_once('.').map(|(name, field)| table.entry(name.trim_matches('"'), field));
            return entry.unwrap_or_else(|| Err(which(table))).map(Named::Entry);
        }
        if let Some(table) = Table::named(name) {
            return Err(which(table));
        }
        let names = || Key::ALL.map(Key::name).into_iter().chain(Table::ALL.map(Table::name));
        let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
        let nearest = names().min_by_key(distance).filter(|known| distance(known) <= 3);
        let instead = match nearest {
            Some(known) => format!("did you mean {known}?"),
            None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        };
        Err(format!("no setting is called {name:?}; {instead}"))
    }

    pub fn parse_value(&self, text: &str) -> Result<Value, String> {
        match self {
            Named::Key(key) => key.parse(text),
            Named::Entry(entry) => entry.field.parse(text),
        }
    }

    pub fn written(&self) -> Written {
        match self {
            Named::Key(key) => key.written(),
            Named::Entry(entry) => entry.field.written(),
        }
    }

    pub fn environment(&self) -> Option<&'static str> {
        match self {
            Named::Key(key) => key.environment(),
            Named::Entry(Entry { name, field: Field::Provider(ProviderField::BaseUrl) }) => {
                Kind::ALL.into_iter().find(|kind| kind.as_str() == name).map(Kind::url_variable)
            }
            Named::Entry(_) => None,
        }
    }

    /// The tables that it is in, outermost first, and its name there.
    pub fn place(&self) -> (Vec<&str>, &'static str) {
        match self {
            Named::Key(key) => {
                let (table, name) = key.place();
                (table.into_iter().collect(), name)
            }
            Named::Entry(Entry { name, field }) => (vec![field.table().name(), name], field.name()),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Key(key) => f.write_str(key.name()),
            Named::Entry(entry) => write!(f, "{entry}"),
        }
    }
}

fn which(table: Table) -> String {
    let (of, fields) = match table {
        Table::Providers => ("NAME", table.fields()),
        Table::Models => ("PROVIDER/MODEL", table.fields()),
    };
    let fields: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    format!("say which one: {}.{of}. and then {}", table.name(), fields.join(", "))
}
