//! The table of settings for readers: as a JSON schema of `config.toml`, and as the tables of docs/settings.md.

use std::collections::BTreeMap;

use super::json_schema::JsonSchema;
use super::named_tables::{NAMED_TABLES, NamedTable};
use super::setting_type::Form;
use super::table::{ROWS, Row};

/// A JSON schema of `config.toml`.
pub fn schema() -> JsonSchema {
    let mut schema = JsonSchema {
        dialect: Some("https://json-schema.org/draft/2020-12/schema"),
        title: Some("config.toml of abide"),
        ..JsonSchema::object(BTreeMap::new())
    };
    for row in &ROWS {
        schema.put(row.key, row_schema(row));
    }
    for table in &NAMED_TABLES {
        schema.put(table.name, table_schema(table));
    }
    schema
}

fn row_schema(row: &Row) -> JsonSchema {
    let value = describe(row.takes.schema(), row);
    let Some(name) = row.in_table else { return value };
    // A value, or a table in which that value has a name.
    let either = JsonSchema {
        json_type: None,
        any_of: vec![row.takes.schema(), JsonSchema::of_type("object")],
        ..JsonSchema::object(BTreeMap::from([(name.to_owned(), value)]))
    };
    describe(either, row)
}

fn describe(schema: JsonSchema, row: &Row) -> JsonSchema {
    JsonSchema { description: Some(row.about), default: row.default.map(|default| default()), ..schema }
}

fn table_schema(table: &NamedTable) -> JsonSchema {
    let fields = table.rows.iter().map(|row| (row.key.to_owned(), row_schema(row)));
    JsonSchema { description: Some(table.about), ..JsonSchema::map(JsonSchema::object(fields.collect())) }
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
