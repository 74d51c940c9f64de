//! The table of settings for readers: as a JSON schema of `config.toml`, and as the tables of docs/settings.md.

use serde_json::{Value as Json, json};

use super::named_tables::{NAMED_TABLES, NamedTable};
use super::setting_type::Form;
use super::table::{ROWS, Row};

/// A JSON schema of `config.toml`.
pub fn schema() -> Json {
    let mut schema = object();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("config.toml of abide");
    for row in &ROWS {
        put(&mut schema, row.key, row_schema(row));
    }
    for table in &NAMED_TABLES {
        put(&mut schema, table.name, table_schema(table));
    }
    schema
}

fn row_schema(row: &Row) -> Json {
    let value = described(row.takes.schema(), row);
    let Some(name) = row.in_table else { return value };
    // A value, or a table in which that value has a name.
    let either = json!({
        "anyOf": [row.takes.schema(), { "type": "object" }],
        "additionalProperties": false,
        "properties": { name: value },
    });
    described(either, row)
}

fn described(mut schema: Json, row: &Row) -> Json {
    schema["description"] = json!(row.about);
    if let Some(default) = row.default {
        schema["default"] = json!(default());
    }
    schema
}

fn table_schema(table: &NamedTable) -> Json {
    let mut each = object();
    for row in table.rows {
        put(&mut each, row.key, row_schema(row));
    }
    json!({ "type": "object", "description": table.about, "additionalProperties": each })
}

fn object() -> Json {
    json!({ "type": "object", "additionalProperties": false, "properties": {} })
}

/// Puts a schema where the setting of this name stands. Tables on the way are made; a value that may stand in the place of a
/// table comes before the settings in that table.
fn put(table: &mut Json, key: &str, schema: Json) {
    match key.split_once('.') {
        None => table["properties"][key] = schema,
        Some((name, rest)) => {
            let inner = &mut table["properties"][name];
            if inner.is_null() {
                *inner = object();
            }
            put(inner, rest, schema);
        }
    }
}

/// The tables of docs/settings.md.
pub fn markdown() -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.push("| key | type | values | default | variable | restart | abide.toml |".to_owned());
    lines.push("|---|---|---|---|---|---|---|".to_owned());
    lines.extend(ROWS.iter().map(|row| {
        let default = row.default.map(|default| default().to_string());
        let (default, variable) = (marked(default.as_deref()), marked(row.environment));
        let (restart, workspace) = (yes_or_no(row.restart), yes_or_no(row.workspace));
        let (kind, range) = (type_name(row), row.takes.range());
        format!("| `{}` | {kind} | {range} | {default} | {variable} | {restart} | {workspace} |", row.key)
    }));
    lines.push(String::new());
    lines.extend(ROWS.iter().map(|row| {
        let flag = row.flag.as_ref().map(|flag| format!(" (`abide up {}`)", flag.name)).unwrap_or_default();
        format!("- `{}`: {}{flag}.", row.key, row.about)
    }));
    for table in &NAMED_TABLES {
        lines.push(format!("\n### `[{}.{}]`\n\n{}.\n", table.name, table.of, table.about));
        lines.push("| field | type | values | restart | abide.toml | |\n|---|---|---|---|---|---|".to_owned());
        lines.extend(table.rows.iter().map(|row| {
            let (restart, workspace) = (yes_or_no(row.restart), yes_or_no(row.workspace));
            let (kind, range) = (type_name(row), row.takes.range());
            format!("| `{}` | {kind} | {range} | {restart} | {workspace} | {} |", row.key, row.about)
        }));
    }
    lines.join("\n") + "\n"
}

/// As code; nothing for what is missing or empty.
fn marked(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map(|text| format!("`{text}`")).unwrap_or_default()
}

fn type_name(row: &Row) -> &'static str {
    match row.takes.form() {
        Form::Number => "whole number",
        Form::Decimal => "number",
        Form::Switch => "switch",
        Form::Text => "text",
        Form::List => "list",
    }
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
