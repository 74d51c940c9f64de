//! Every answer is compared with the OpenAPI document: its status, its content type, and the schema of every field. A field
//! that the schema lacks is a failure, too: readers of the document would never know of it.

use std::sync::LazyLock;

use abide_api::openapi;
use serde_json::{Value, json};

use crate::http::{Answer, Ask};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| json!(openapi::document()));

/// The operation that a request is for, if there is one.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let parts: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
    let fits = |template: &str| {
        let wanted: Vec<&str> = template.split('/').collect();
        wanted.len() == parts.len()
            && wanted
                .iter()
                .zip(&parts)
                .all(|(wanted, part)| wanted == part || (wanted.starts_with('{') && !part.is_empty()))
    };
    // A fixed path goes before one with a part to be filled in.
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.contains('{'));
    fitting.first()?.1.get(method.to_lowercase())
}

/// Panics unless the document says that this request may be answered so.
#[track_caller]
pub fn check(ask: &Ask, answer: &Answer) {
    let what = format!("{} {}: {}", ask.method, ask.path, answer.status);
    let media = answer.header("content-type").unwrap_or_default();
    let Some(operation) = operation(&ask.method, &ask.path) else {
        // Nothing is there, or not with this method: a problem all the same.
        assert!(matches!(answer.status, 403 | 404 | 405 | 429), "{what} for what is not in the document");
        assert_eq!(media, "application/problem+json", "{what}");
        return conforms("Problem", &answer.json(), &what);
    };
    let documented = operation["responses"].get(answer.status.to_string());
    let documented = documented.unwrap_or_else(|| panic!("{what} is not in the document: {:?}", answer.json()));
    let content = documented["content"].as_object().unwrap();
    let schema = content.get(media).unwrap_or_else(|| panic!("{what} comes as {media:?}"));
    let is_json = matches!(media, "application/json" | "application/problem+json");
    if is_json && let Err(wrong) = validate(&schema["schema"], &answer.json(), "") {
        panic!("{what}: {wrong}\n{:#}", answer.json());
    }
    for (name, _) in documented["headers"].as_object().into_iter().flatten() {
        assert!(answer.header(name).is_some(), "{what} comes without {name}");
    }
}

/// Panics unless a value is what the document calls by this name.
#[track_caller]
pub fn conforms(name: &str, value: &Value, what: &str) {
    if let Err(wrong) = validate(&DOCUMENT["components"]["schemas"][name], value, "") {
        panic!("{what} is no {name}: {wrong}\n{value:#}");
    }
}

/// As much of JSON Schema as our document uses. What it does not know, it refuses, so that nothing goes unchecked.
fn validate(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let schema = schema.as_object().ok_or_else(|| format!("{at}: the schema is no object"))?;
    for (keyword, wanted) in schema {
        match keyword.as_str() {
            "description" | "format" | "title" | "additionalProperties" => {}
            "$ref" => {
                let name = wanted.as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
                let named = &DOCUMENT["components"]["schemas"][name];
                validate(named, value, at)?;
            }
            "type" => {
                let kinds: Vec<&str> = match wanted.as_array() {
                    Some(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                    None => wanted.as_str().into_iter().collect(),
                };
                if !kinds.iter().any(|kind| is_a(kind, value)) {
                    return Err(format!("{at}: {value} is not {wanted}"));
                }
            }
            "enum" => {
                if !wanted.as_array().is_some_and(|values| values.contains(value)) {
                    return Err(format!("{at}: {value} is none of {wanted}"));
                }
            }
            "oneOf" | "anyOf" => {
                let choices = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
                let wrong: Vec<String> =
                    choices.iter().filter_map(|choice| validate(choice, value, at).err()).collect();
                if wrong.len() == choices.len() {
                    return Err(wrong.join("; or "));
                }
            }
            "required" => {
                for name in wanted.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.is_object() && value.get(name).is_none() {
                        return Err(format!("{at}/{name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    let known = wanted.get(name).ok_or_else(|| format!("{at}/{name} is not in the schema"))?;
                    validate(known, value, &format!("{at}/{name}"))?;
                }
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    validate(wanted, value, &format!("{at}/{index}"))?;
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|value| value < wanted.as_f64().unwrap_or_default()) {
                    return Err(format!("{at}: {value} is less than {wanted}"));
                }
            }
            "maximum" => {
                if value.as_f64().is_some_and(|value| value > wanted.as_f64().unwrap_or_default()) {
                    return Err(format!("{at}: {value} is more than {wanted}"));
                }
            }
            unknown => return Err(format!("{at}: this validator does not know {unknown}")),
        }
    }
    Ok(())
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}
