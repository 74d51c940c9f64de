//! The OpenAPI 3.1 document: the table of operations, and the schemas of the shapes.

use std::collections::BTreeMap;

use abide_views::schema::PLAIN_STRING;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::schema::{ArrayBuilder, ArrayItems, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};

use crate::operations::{Answer, Body, Method, OPERATIONS, Operation, Param};
use crate::problem::{self, Problem};
use crate::types;

#[derive(OpenApi)]
#[openapi(components(schemas(
    Problem,
    types::AgentCreate,
    types::AgentChange,
    types::AgentItem,
    types::AgentSummary,
    types::Why,
    types::Abort,
    types::Wake,
    types::Woken,
    types::MessageCreate,
    types::Accepted,
    types::Deleted,
    types::MessageView,
    types::MessageOutcome,
    types::MessageDelay,
    types::TaskView,
    types::TaskRun,
    types::TaskRead,
    types::TaskInput,
    types::TaskTaken,
    types::TaskStopped,
    types::WorkspaceView,
    types::WorkspaceAttach,
    types::Detached,
    types::WorkspaceFetch,
    types::Fetched,
    types::FetchedBranch,
    types::Patch,
    types::Surroundings,
    types::Transfer,
    types::WorkItemView,
    types::WorkItemCreate,
    types::WorkItemUpdate,
    types::WorkItemBlock,
    types::WorkItemComplete,
    types::WaitView,
    types::TimerView,
    types::TimerCreate,
    types::TimerCreated,
    types::Ended,
    types::TriggerView,
    types::TriggerCreate,
    types::Received,
    types::ApprovalView,
    types::BriefView,
    types::TranscriptEntry,
    types::Event,
    types::TextDelta,
    types::DecisionEntry,
    types::Health,
    types::ModelList,
    types::ModelTest,
    types::ModelTested,
    types::TokenCreate,
    types::TokenCreated,
    types::TokenItem,
    types::SecretSet,
    types::SecretItem,
    types::Fork,
    types::Compact,
    types::Verify,
)))]
struct Schemas;

#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[method(operation.method)] = described(operation);
    }
    let mut schemas = Schemas::openapi().components.unwrap_or_default().schemas;
    schemas.remove(PLAIN_STRING);
    schemas.values_mut().for_each(spell_out_strings);
    add_outcome(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Abide",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A runtime for AI agents that stay.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{ "token": [] }],
    })
}

/// Puts the type of a plain string in the place of a reference to it. An optional one becomes one type with null, as other
/// optional fields have it.
fn spell_out_strings(schema: &mut RefOr<Schema>) {
    let is_plain = |schema: &RefOr<Schema>| match schema {
        RefOr::Ref(named) => named.ref_location.ends_with(PLAIN_STRING),
        RefOr::T(_) => false,
    };
    match schema {
        RefOr::Ref(named) if named.ref_location.ends_with(PLAIN_STRING) => {
            let description = Some(std::mem::take(&mut named.description)).filter(|text| !text.is_empty());
            *schema = ObjectBuilder::new().schema_type(Type::String).description(description).into();
        }
        RefOr::T(Schema::Object(object)) => object.properties.values_mut().for_each(spell_out_strings),
        RefOr::T(Schema::Array(array)) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                spell_out_strings(items);
            }
        }
        RefOr::T(Schema::OneOf(choice)) if choice.items.iter().any(is_plain) => {
            let described = choice.items.iter().find_map(|item| match item {
                RefOr::Ref(named) if !named.description.is_empty() => Some(named.description.clone()),
                RefOr::Ref(_) | RefOr::T(_) => None,
            });
            let description = choice.description.take().or(described);
            let kinds = SchemaType::Array(vec![Type::String, Type::Null]);
            *schema = ObjectBuilder::new().schema_type(kinds).description(description).into();
        }
        RefOr::T(Schema::OneOf(choice)) => choice.items.iter_mut().for_each(spell_out_strings),
        RefOr::Ref(_) | RefOr::T(_) => {}
    }
}

/// A message that is asked for by itself has its outcome beside its other fields. They are optional in the one schema of a
/// message, which lists use as well.
fn add_outcome(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    let Some(RefOr::T(Schema::OneOf(variants))) = schemas.remove("MessageOutcome") else { return };
    let Some(RefOr::T(Schema::Object(message))) = schemas.get_mut("Message") else { return };
    let mut words = Vec::new();
    for variant in variants.items {
        let RefOr::T(Schema::Object(variant)) = variant else { continue };
        for (name, schema) in variant.properties {
            match schema {
                RefOr::T(Schema::Object(word)) if name == "outcome" => {
                    words.extend(word.enum_values.into_iter().flatten());
                }
                schema @ (RefOr::Ref(_) | RefOr::T(_)) => {
                    message.properties.insert(name, schema);
                }
            }
        }
    }
    let about = "The outcome. Only where the message is asked for by itself";
    let outcome = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).description(Some(about));
    message.properties.insert("outcome".to_owned(), outcome.into());
    let about = "The newest brief of each kind about it, or about the message that it joined, oldest first";
    let briefs = ArrayBuilder::new().items(Ref::from_schema_name("Brief")).description(Some(about));
    message.properties.insert("briefs".to_owned(), briefs.into());
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Patch => "patch",
        Method::Delete => "delete",
    }
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn described(operation: &Operation) -> Value {
    let in_path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(operation.query.iter().map(query));
    if operation.method == Method::Post {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "a repeat with the same key gets the first answer, for 24 hours",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" },
        }));
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": answers(operation),
    });
    match operation.body {
        Body::None => {}
        Body::Empty => {
            let empty = json!({ "type": "object", "additionalProperties": false });
            described["requestBody"] =
                json!({ "required": false, "content": { "application/json": { "schema": empty } } });
        }
        Body::Required(name) => {
            described["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema(name) } } });
        }
        Body::Data(types) => {
            let content: Map<String, Value> = types.iter().map(|media| ((*media).to_owned(), json!({}))).collect();
            described["requestBody"] = json!({ "required": false, "content": content });
        }
        Body::Optional(name) => {
            described["requestBody"] =
                json!({ "required": false, "content": { "application/json": { "schema": schema(name) } } });
        }
    }
    if operation.scope.is_none() {
        described["security"] = json!([]);
    }
    described
}

/// Up to a minute.
const WAIT_PATTERN: &str = "^(([1-5]?[0-9]|60)s|([1-5]?[0-9]{1,4}|60000)ms|[01]m)$";

fn query(param: &Param) -> Value {
    let mut schema = match (param.name, param.number) {
        ("limit" | "last", _) => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        (_, true) => json!({ "type": "integer", "minimum": 0 }),
        (_, false) => json!({ "type": "string" }),
    };
    if param.name == "wait" {
        schema["pattern"] = WAIT_PATTERN.into();
    }
    json!({ "name": param.name, "in": "query", "required": false, "description": param.about, "schema": schema })
}

fn answers(operation: &Operation) -> Value {
    let mut answers = Map::new();
    let (status, content) = match operation.answer {
        Answer::One(status, name) => (status, json!({ "application/json": { "schema": schema(name) } })),
        Answer::Page(name) => {
            let page = json!({
                "type": "object",
                "required": ["items", "next"],
                "properties": {
                    "items": { "type": "array", "items": schema(name) },
                    "next": { "type": ["string", "null"] },
                },
            });
            (200, json!({ "application/json": { "schema": page } }))
        }
        Answer::Object(status) => (status, json!({ "application/json": { "schema": { "type": "object" } } })),
        Answer::Text(media) => (200, json!({ media: { "schema": { "type": "string" } } })),
        Answer::Events => (200, json!({ "text/event-stream": { "schema": { "type": "string" } } })),
    };
    answers.insert(status.to_string(), json!({ "description": operation.summary, "content": content }));
    for status in problems(operation) {
        let content = json!({ problem::MEDIA_TYPE: { "schema": schema("Problem") } });
        let mut answer = json!({ "description": problem::title(status), "content": content });
        if status == 429 || status == 503 {
            answer["headers"] = json!({ "Retry-After": { "schema": { "type": "integer" } } });
        }
        answers.insert(status.to_string(), answer);
    }
    Value::Object(answers)
}

/// Every refusal that an operation may answer with.
#[must_use]
pub fn problems(operation: &Operation) -> Vec<u16> {
    // Every route knows a query that it has no parameter for, overload, a body that is too large or too slow, a method
    // it has not, and a foreign origin.
    let mut statuses = vec![400, 403, 405, 408, 413, 429, 503];
    if operation.scope.is_some() {
        statuses.push(401);
    }
    let takes_body = !matches!(operation.body, Body::None);
    if takes_body {
        statuses.push(422);
    }
    if operation.method == Method::Post {
        statuses.extend([409, 422]);
    }
    // One whose records do not read is quarantined, for whoever looks at it, too.
    if operation.path.contains("{id}") {
        statuses.extend([404, 409]);
    }
    statuses.extend(operation.problems);
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the saved document says something that today's does not say.
    fn missing(pointer: &str, saved: &Value, today: &Value, found: &mut Vec<String>) {
        match (saved, today) {
            (Value::Object(saved), Value::Object(today)) => {
                for (name, value) in saved {
                    let below = format!("{pointer}/{name}");
                    match today.get(name) {
                        Some(today) => missing(&below, value, today, found),
                        None => found.push(format!("{below} is gone")),
                    }
                }
            }
            // A parameter may be added that no client has to send.
            (Value::Array(saved), Value::Array(today)) if pointer.ends_with("/parameters") => {
                let gone = saved.iter().filter(|parameter| !today.contains(parameter));
                found.extend(gone.map(|parameter| format!("{pointer}/{} is gone or changed", parameter["name"])));
                let added = today.iter().filter(|parameter| !saved.contains(parameter));
                let required = added.filter(|parameter| parameter["required"] == true);
                found.extend(required.map(|parameter| format!("{pointer} requires {}", parameter["name"])));
            }
            (saved, today) if saved == today => {}
            (saved, today) => found.push(format!("{pointer} was {saved} and is {today}")),
        }
    }

    /// Clients are generated from the document, so it is only added to. `openapi.json` is the document of the last release;
    /// an addition needs no change there.
    #[test]
    fn the_document_says_what_it_said_before() {
        let saved: Value = serde_json::from_str(include_str!("openapi.json")).unwrap();
        let mut found = Vec::new();
        missing("", &saved, &document(), &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
