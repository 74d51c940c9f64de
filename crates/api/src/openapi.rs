//! The OpenAPI 3.1 document: the table of operations, and the schemas of the shapes.

use std::collections::BTreeMap;

use abide_views::schema::PLAIN_STRING;
use utoipa::OpenApi as _;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{
    HttpMethod, Operation as DescribedOperation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, Paths,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ArrayItems, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Content, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder, Responses,
    ResponsesBuilder,
};

use crate::operations::{Answer, Body, Method, OPERATIONS, Operation, Param};
use crate::problem::{self, Problem};
use crate::types;

#[derive(utoipa::OpenApi)]
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
    types::EndConfirmation,
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
pub fn document() -> OpenApi {
    let mut paths = Paths::new();
    for operation in OPERATIONS {
        paths.add_path_operation(operation.path, vec![http_method(operation.method)], describe_operation(operation));
    }
    let mut components = Schemas::openapi().components.unwrap_or_default();
    components.schemas.remove(PLAIN_STRING);
    components.schemas.values_mut().for_each(spell_out_strings);
    add_outcome(&mut components.schemas);
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let license = LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("Abide")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A runtime for AI agents that stay."))
        .license(Some(license))
        .build();
    let token = SecurityRequirement::new("token", std::iter::empty::<String>());
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).security(Some([token])).build()
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

fn http_method(method: Method) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::Get,
        Method::Post => HttpMethod::Post,
        Method::Put => HttpMethod::Put,
        Method::Patch => HttpMethod::Patch,
        Method::Delete => HttpMethod::Delete,
    }
}

const JSON: &str = "application/json";

fn describe_operation(operation: &Operation) -> DescribedOperation {
    let in_path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Parameter> = in_path.map(path_parameter).collect();
    parameters.extend(operation.query.iter().map(query_parameter));
    if operation.method == Method::Post {
        parameters.push(idempotency_key());
    }
    let described = OperationBuilder::new()
        .operation_id(Some(operation.id))
        .summary(Some(operation.summary))
        .parameters(Some(parameters))
        .request_body(request_body(operation.body))
        .responses(responses(operation));
    match operation.scope {
        Some(_) => described.build(),
        None => described.securities(Some([])).build(),
    }
}

fn request_body(body: Body) -> Option<RequestBody> {
    let body_of = |required: Required, schema: RefOr<Schema>| {
        RequestBodyBuilder::new().required(Some(required)).content(JSON, Content::new(Some(schema))).build()
    };
    match body {
        Body::None => None,
        Body::Empty => {
            let empty = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
            Some(body_of(Required::False, empty.into()))
        }
        Body::Required(name) => Some(body_of(Required::True, Ref::from_schema_name(name).into())),
        Body::Optional(name) => Some(body_of(Required::False, Ref::from_schema_name(name).into())),
        Body::Data(media_types) => {
            let body = RequestBodyBuilder::new().required(Some(Required::False));
            Some(media_types.iter().fold(body, |body, media| body.content(*media, Content::default())).build())
        }
    }
}

fn path_parameter(name: &str) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(schema))
        .build()
}

fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("a repeat with the same key gets the first answer, for 24 hours"))
        .schema(Some(schema))
        .build()
}

/// Up to a minute.
const WAIT_PATTERN: &str = "^(([1-5]?[0-9]|60)s|([1-5]?[0-9]{1,4}|60000)ms|[01]m)$";

fn query_parameter(param: &Param) -> Parameter {
    let number = || ObjectBuilder::new().schema_type(Type::Integer);
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let schema = match (param.name, param.number) {
        ("limit" | "last", _) => number().minimum(Some(1)).maximum(Some(1_000)),
        ("wait", _) => text().pattern(Some(WAIT_PATTERN)),
        (_, true) => number().minimum(Some(0)),
        (_, false) => text(),
    };
    ParameterBuilder::new()
        .name(param.name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(param.about))
        .schema(Some(schema))
        .build()
}

fn responses(operation: &Operation) -> Responses {
    let text = || Schema::from(ObjectBuilder::new().schema_type(Type::String).build());
    let (status, media, schema) = match operation.answer {
        Answer::One(status, name) => (status, JSON, Ref::from_schema_name(name).into()),
        Answer::Page(name) => (200, JSON, page_of(name)),
        Answer::Object(status) => (status, JSON, ObjectBuilder::new().into()),
        Answer::Text(media) => (200, media, text().into()),
        Answer::Events => (200, "text/event-stream", text().into()),
    };
    let content = |schema: RefOr<Schema>| Content::new(Some(schema));
    let success = ResponseBuilder::new().description(operation.summary).content(media, content(schema));
    let mut responses = ResponsesBuilder::new().response(status.to_string(), success);
    for status in problems(operation) {
        let problem = content(Ref::from_schema_name("Problem").into());
        let mut response =
            ResponseBuilder::new().description(problem::title(status)).content(problem::MEDIA_TYPE, problem);
        if status == 429 || status == 503 {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).build();
            response = response.header("Retry-After", Header::new(Schema::from(seconds)));
        }
        responses = responses.response(status.to_string(), response);
    }
    responses.build()
}

fn page_of(name: &str) -> RefOr<Schema> {
    let next = SchemaType::Array(vec![Type::String, Type::Null]);
    ObjectBuilder::new()
        .required("items")
        .required("next")
        .property("items", ArrayBuilder::new().items(Ref::from_schema_name(name)))
        .property("next", ObjectBuilder::new().schema_type(next))
        .into()
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
    // An agent whose records can't be decoded is quarantined for every reader.
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
    use serde_json::Value;

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
        let today = serde_json::to_value(document()).unwrap();
        missing("", &saved, &today, &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
