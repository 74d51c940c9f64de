//! JSON schemas of settings: the part of the vocabulary that they need.

use std::collections::BTreeMap;

use serde::Serialize;

use super::value::Value;

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JsonSchema {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub dialect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'static str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub json_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<JsonSchema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<JsonSchema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<AdditionalProperties>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, JsonSchema>>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum AdditionalProperties {
    Allowed(bool),
    Of(Box<JsonSchema>),
}

impl JsonSchema {
    pub fn of_type(json_type: &'static str) -> JsonSchema {
        JsonSchema { json_type: Some(json_type), ..JsonSchema::default() }
    }

    pub fn text(pattern: Option<&'static str>) -> JsonSchema {
        JsonSchema { pattern, ..JsonSchema::of_type("string") }
    }

    pub fn word(words: Vec<&'static str>) -> JsonSchema {
        JsonSchema { words: Some(words), ..JsonSchema::of_type("string") }
    }

    pub fn number(json_type: &'static str, minimum: u64, maximum: u64) -> JsonSchema {
        JsonSchema { minimum: Some(minimum), maximum: Some(maximum), ..JsonSchema::of_type(json_type) }
    }

    pub fn list(items: JsonSchema) -> JsonSchema {
        JsonSchema { items: Some(Box::new(items)), ..JsonSchema::of_type("array") }
    }

    /// An object that has these properties and no others.
    pub fn object(properties: BTreeMap<String, JsonSchema>) -> JsonSchema {
        JsonSchema {
            additional_properties: Some(AdditionalProperties::Allowed(false)),
            properties: Some(properties),
            ..JsonSchema::of_type("object")
        }
    }

    /// An object with any names, whose values have this schema.
    pub fn map(values: JsonSchema) -> JsonSchema {
        JsonSchema {
            additional_properties: Some(AdditionalProperties::Of(Box::new(values))),
            ..JsonSchema::of_type("object")
        }
    }

    /// Puts a schema at a name with dots. Tables on the way are made. A value that may stand in the place of a table comes
    /// before the settings in that table.
    pub fn put(&mut self, key: &str, schema: JsonSchema) {
        let properties = self.properties.get_or_insert_default();
        match key.split_once('.') {
            None => {
                properties.insert(key.to_owned(), schema);
            }
            Some((name, rest)) => {
                let table = properties.entry(name.to_owned());
                table.or_insert_with(|| JsonSchema::object(BTreeMap::new())).put(rest, schema);
            }
        }
    }
}
