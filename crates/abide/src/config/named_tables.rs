//! Tables of settings whose entries have names that people choose: `[providers.NAME]`, `[models."PROVIDER/MODEL"]`. A
//! field of such an entry is a row, as every other setting is.

use abide_effects::Model;
use abide_effects::model::cards::CardField;
use abide_effects::model::providers::{Kind, Providers, base_url, key_env, provider_name};

use super::key::Entry;
use super::setting_type::{Text, Type, Words};
use super::table::Row;
use super::value::{SettingType, Value};
use crate::model_name::parse_model_name;

/// Tables whose names people choose: `[TABLE.NAME]`, each with the same fields.
#[derive(Debug)]
pub struct NamedTable {
    pub name: &'static str,
    /// The placeholder for NAME; in quotes if such names are always quoted.
    pub of: &'static str,
    pub about: &'static str,
    pub check_name: fn(&str) -> Result<(), String>,
    /// The variable that outranks a field of this entry.
    pub environment: fn(&str, &Row) -> Option<&'static str>,
    /// The value of a field that nobody sets.
    pub default: fn(&Providers, &Entry) -> Option<Value>,
    pub rows: &'static [Row],
}

impl PartialEq for NamedTable {
    fn eq(&self, other: &NamedTable) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for NamedTable {}

pub const PROVIDERS: &str = "providers";
pub const MODELS: &str = "models";

pub const KIND: &str = "kind";
pub const BASE_URL: &str = "base_url";
pub const KEY_ENV: &str = "key_env";

pub static NAMED_TABLES: [NamedTable; 2] = [
    NamedTable {
        name: PROVIDERS,
        of: "NAME",
        about: "Providers of models: anthropic, openai, openai-chat, ollama, or a name of your own",
        check_name: provider_name,
        environment: |name, row| {
            let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == name)?;
            (row.key == BASE_URL).then(|| kind.url_variable())
        },
        default: provider_default,
        rows: &[
            Row {
                key: KIND,
                takes: Type::Word(Words { words: Words::of::<Kind>, not: "no kind of provider" }),
                about: "Kind of the provider; a name that is not built in needs one",
                ..Row::BASE
            },
            Row {
                key: BASE_URL,
                takes: Type::Text(Text {
                    shape: "`https://…` or `http://…`",
                    pattern: Some("^https?://"),
                    check: base_url,
                }),
                about: "Base URL: with /v1 for OpenAI's protocols, without for Anthropic's",
                ..Row::BASE
            },
            Row {
                key: KEY_ENV,
                takes: Type::Text(Text {
                    shape: "the name of a variable",
                    pattern: Some("^[A-Za-z_][A-Za-z0-9_]*$"),
                    check: key_env,
                }),
                about: "Variable of the daemon's environment that contains the API key",
                ..Row::BASE
            },
        ],
    },
    NamedTable {
        name: MODELS,
        of: "\"PROVIDER/MODEL\"",
        about: "Context window, output limit and prices of a model, by PROVIDER/MODEL",
        check_name: |name| parse_model_name(name).map(drop),
        environment: |_, _| None,
        default: card_default,
        rows: &[
            card(CardField::WindowTokens, "Context window: input and output together"),
            card(CardField::MaxOutputTokens, "Output limit of one answer"),
            card(CardField::ContextTokens, "Part of the window that a prompt may fill"),
            card(CardField::Images, "Whether the model accepts images"),
            card(CardField::InputUsd, "Dollars per million input tokens"),
            card(CardField::OutputUsd, "Dollars per million output tokens"),
            card(CardField::CacheReadUsd, "Dollars per million tokens read from the provider's cache"),
            card(CardField::CacheWriteUsd, "Dollars per million tokens written to the provider's cache"),
        ],
    },
];

const fn card(field: CardField, about: &'static str) -> Row {
    Row { key: field.name(), takes: Type::Card(field), about, ..Row::BASE }
}

/// That of a provider that there is.
fn provider_default(providers: &Providers, entry: &Entry) -> Option<Value> {
    let known = providers.get(&entry.name)?;
    match entry.row.key {
        KIND => Some(known.kind.value()),
        BASE_URL => Some(Value::Text(Some(known.provider.base_url.clone()).filter(|url| !url.is_empty()))),
        KEY_ENV => Some(Value::Text(known.key_variable.clone())),
        _ => None,
    }
}

/// The known value of a model of an existing provider.
fn card_default(providers: &Providers, entry: &Entry) -> Option<Value> {
    match (providers.model(&entry.name).ok()?, entry.row.takes) {
        (Model::Remote(remote), Type::Card(field)) => remote.card.value(field).map(Value::Card),
        (Model::Remote(_) | Model::Echo | Model::Script { .. }, _) => None,
    }
}
