//! Parses a delivery: the content by its media type, the id and the correlation id from headers. The content becomes data
//! of a message and nothing else; none of its fields is taken for one of ours.

use abide_api::{ErrorCode, Problem};
use abide_kernel::input::Delivery;
use abide_kernel::limits;
use abide_kernel::open_json::JsonBody;
use http::{HeaderMap, header};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

use super::form::{self, Field, Fields};
use super::signature::{GITHUB_EVENT, GITHUB_ID, STANDARD_ID, Scheme, single};

/// A delivery, and the name by which a repeat of it is recognised.
#[derive(Debug, PartialEq)]
pub(crate) struct Incoming {
    pub delivery: Delivery,
    pub known_as: Option<DeliveryKey>,
}

/// The id of a delivery. Ids of different kinds are different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryKey {
    pub kind: &'static str,
    pub id: String,
}

const ID_MAX_BYTES: usize = 512;

/// `key` is the `Idempotency-Key`, for senders that know no id of their own; `scheme` says how it is signed, if it is.
pub(crate) fn parse_delivery(
    headers: &HeaderMap,
    body: &[u8],
    key: Option<&str>,
    scheme: Option<&Scheme>,
) -> Result<Incoming, Problem> {
    let content = read_content(headers, body)?;
    let named = known_as(headers, &content, key)?;
    let correlation_id = match headers.get("x-correlation-id") {
        Some(_) => Some(header_line(headers, "x-correlation-id", limits::LINE_BYTES)?),
        None => content.event().and_then(|event| event.text("subject")).map(str::to_owned),
    };
    let delivery_id = named.as_ref().map(|known| known.id.clone());
    let known_as = match scheme {
        // GitHub does not sign the id: a copy of the delivery could be sent again with another one.
        Some(Scheme::GitHub { digest }) => Some(DeliveryKey { kind: "github-signature", id: digest.to_string() }),
        Some(Scheme::Standard) | None => named,
    };
    let (text, json) = match content {
        Content::Nothing => (None, None),
        Content::Text(text) => (Some(text), None),
        Content::Json(json) => (event_name(headers), Some(json.into())),
        Content::Event(CloudEvent(fields)) => (None, Some(JsonBody(fields.into()))),
    };
    Ok(Incoming { delivery: Delivery { delivery_id, text, json, correlation_id }, known_as })
}

/// GitHub says what happened in a header only.
fn event_name(headers: &HeaderMap) -> Option<String> {
    let event = single(headers, GITHUB_EVENT)?;
    Some(format!("GitHub event: {}", limits::clip(event, ID_MAX_BYTES)))
}

enum Content {
    Nothing,
    Text(String),
    Json(Value),
    Event(CloudEvent),
}

/// The attributes and the data of a CloudEvent, as in its structured form.
struct CloudEvent(Map<String, Value>);

impl CloudEvent {
    fn text(&self, attribute: &str) -> Option<&str> {
        self.0.get(attribute)?.as_str()
    }
}

impl Content {
    fn event(&self) -> Option<&CloudEvent> {
        match self {
            Content::Event(event) => Some(event),
            Content::Nothing | Content::Text(_) | Content::Json(_) => None,
        }
    }
}

fn read_content(headers: &HeaderMap, body: &[u8]) -> Result<Content, Problem> {
    let media = read_media(headers)?;
    if media.essence == "application/cloudevents+json" {
        let Value::Object(fields) = parse_json(body)? else {
            return Err(wrong("a CloudEvent is a JSON object", ""));
        };
        return validate(CloudEvent(fields)).map(Content::Event);
    }
    if headers.contains_key("ce-specversion") {
        return read_binary_event(headers, &media, body).map(Content::Event);
    }
    let kind = media.kind()?;
    if body.is_empty() {
        return Ok(Content::Nothing);
    }
    match kind {
        Kind::Json => parse_json(body).map(Content::Json),
        Kind::Text => parse_text(body).map(Content::Text),
        Kind::Form => {
            let fields = parse_form(body)?;
            match fields.get("payload") {
                // GitHub posts JSON in one field of a form.
                Some(Field::Single(payload)) if headers.contains_key(GITHUB_EVENT) => {
                    parse_json(payload.as_bytes()).map(Content::Json)
                }
                Some(_) | None => Ok(Content::Json(serde_json::to_value(fields).unwrap_or_default())),
            }
        }
    }
}

fn wrong(detail: &str, pointer: &str) -> Problem {
    Problem::new(ErrorCode::WrongFields, detail).pointer(pointer)
}

fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(ErrorCode::NotJson, format!("the body is not JSON: {error}")))
}

fn parse_text(body: &[u8]) -> Result<String, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::new(ErrorCode::BodyNotUtf8, "the body is not UTF-8"))?;
    Ok(text.to_owned())
}

fn parse_form(body: &[u8]) -> Result<Fields, Problem> {
    let refused = |detail: &str| Problem::new(ErrorCode::BadForm, format!("the form does not read: {detail}"));
    // curl posts JSON as a form unless it is given a content type.
    let other = body.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'{' | b'['));
    if other && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
        return Err(refused("it is JSON").hint("send it with Content-Type: application/json"));
    }
    form::parse(body).map_err(refused)
}

/// A content type without its parameters.
struct Media {
    essence: String,
}

enum Kind {
    Json,
    Text,
    Form,
}

fn read_media(headers: &HeaderMap) -> Result<Media, Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(Media { essence: String::new() }) };
    let unreadable = || Problem::new(ErrorCode::BadHeader, "the content type does not read");
    let value = value.to_str().map_err(|_| unreadable())?.to_ascii_lowercase();
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_owned();
    let charset = parts.find_map(|part| part.strip_prefix("charset=")).map(|name| name.trim_matches('"'));
    match charset {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(Media { essence }),
        Some(_) => Err(unsupported("only UTF-8 is read")),
    }
}

fn unsupported(detail: &str) -> Problem {
    Problem::new(ErrorCode::UnsupportedMedia, detail)
}

impl Media {
    fn kind(&self) -> Result<Kind, Problem> {
        match self.essence.as_str() {
            "application/cloudevents-batch+json" => Err(unsupported("events are taken one at a time")),
            "application/x-www-form-urlencoded" => Ok(Kind::Form),
            essence if is_json(essence) => Ok(Kind::Json),
            "" => Ok(Kind::Text),
            essence if essence.starts_with("text/") => Ok(Kind::Text),
            essence => Err(unsupported(&format!("{} is not read", limits::clip(essence, 80)))),
        }
    }
}

fn is_json(essence: &str) -> bool {
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

/// Reads a CloudEvent whose attributes are headers.
fn read_binary_event(headers: &HeaderMap, media: &Media, body: &[u8]) -> Result<CloudEvent, Problem> {
    let mut event = Map::new();
    for (name, _) in headers {
        let Some(attribute) = name.as_str().strip_prefix("ce-") else { continue };
        let value = single(headers, name.as_str()).and_then(percent_decoded);
        let value =
            value.ok_or_else(|| Problem::new(ErrorCode::BadHeader, format!("the header {name} does not read")))?;
        event.insert(attribute.to_owned(), value.into());
    }
    if !media.essence.is_empty() {
        event.insert("datacontenttype".to_owned(), media.essence.as_str().into());
    }
    if !body.is_empty() {
        let data = if is_json(&media.essence) { parse_json(body)? } else { parse_text(body)?.into() };
        event.insert("data".to_owned(), data);
    }
    validate(CloudEvent(event))
}

fn percent_decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let pair = [rest.next()?, rest.next()?];
                let pair =
                    std::str::from_utf8(&pair).ok().filter(|pair| pair.bytes().all(|b| b.is_ascii_hexdigit()))?;
                u8::from_str_radix(pair, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn validate(event: CloudEvent) -> Result<CloudEvent, Problem> {
    if event.text("specversion") != Some("1.0") {
        return Err(wrong("only CloudEvents 1.0 are read: specversion is \"1.0\"", "/specversion"));
    }
    for name in ["id", "source", "type"] {
        let text = event.text(name).filter(|text| !text.is_empty());
        if text.is_none() {
            return Err(wrong(&format!("a CloudEvent has a text in {name}"), &format!("/{name}")));
        }
    }
    let subject = event.0.get("subject").filter(|subject| !subject.is_null());
    if subject
        .is_some_and(|subject| subject.as_str().is_none_or(|text| text.is_empty() || text.len() > limits::LINE_BYTES))
    {
        return Err(wrong("the subject of a CloudEvent is a text, and not a long one", "/subject"));
    }
    Ok(event)
}

/// The id that the sender gave it. The signed id of Standard Webhooks takes precedence over unsigned ones.
fn known_as(headers: &HeaderMap, content: &Content, key: Option<&str>) -> Result<Option<DeliveryKey>, Problem> {
    for (kind, name) in [("webhook", STANDARD_ID), ("github", GITHUB_ID)] {
        if headers.contains_key(name) {
            return Ok(Some(DeliveryKey { kind, id: header_line(headers, name, ID_MAX_BYTES)? }));
        }
    }
    if let Some(event) = content.event() {
        let part = |name: &str| event.text(name).unwrap_or_default();
        // A source is a URI and has no blanks.
        let id = format!("{} {}", part("source"), part("id"));
        if id.len() > ID_MAX_BYTES {
            return Err(wrong(&format!("source and id have {ID_MAX_BYTES} bytes at most"), "/id"));
        }
        return Ok(Some(DeliveryKey { kind: "cloudevent", id }));
    }
    Ok(key.map(|key| DeliveryKey { kind: IDEMPOTENCY_KEY, id: key.to_owned() }))
}

/// The kind of an id that belongs to one body only, as on every other route.
pub(crate) const IDEMPOTENCY_KEY: &str = "key";

fn header_line(headers: &HeaderMap, name: &str, max: usize) -> Result<String, Problem> {
    let value = single(headers, name).filter(|value| !value.is_empty() && value.len() <= max);
    let refused =
        || Problem::new(ErrorCode::BadHeader, format!("{name} is one header of 1 to {max} visible characters"));
    value.map(str::to_owned).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(list: &[(&'static str, &str)], body: impl AsRef<[u8]>, key: Option<&str>) -> Result<Incoming, u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        parse_delivery(&headers, body.as_ref(), key, None).map_err(|problem| problem.status)
    }

    fn delivery(list: &[(&'static str, &str)], body: impl AsRef<[u8]>) -> Delivery {
        taken(list, body, None).unwrap().delivery
    }

    const JSON: (&str, &str) = ("content-type", "application/json");
    const EVENT: (&str, &str) = ("content-type", "application/cloudevents+json; charset=UTF-8");

    #[test]
    fn each_type_is_read_as_what_it_is() {
        assert_eq!(delivery(&[JSON], r#"{"a":[1]}"#).json, Some(json!({ "a": [1] }).into()));
        assert_eq!(delivery(&[("content-type", "application/vnd.x+json")], "7").json, Some(json!(7).into()));
        assert_eq!(delivery(&[("content-type", "text/plain; charset=utf-8")], "hé").text.as_deref(), Some("hé"));
        assert_eq!(delivery(&[], "plain").text.as_deref(), Some("plain"));
        assert_eq!(delivery(&[], ""), Delivery::default());
        let form = [("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(delivery(&form, "a=1&b=2+3").json, Some(json!({ "a": "1", "b": "2 3" }).into()));
    }

    #[test]
    fn what_does_not_read_is_refused() {
        let refused = |list: &[(&'static str, &str)], body: &[u8]| taken(list, body, None).unwrap_err();
        assert_eq!(refused(&[JSON], b"{"), 400);
        assert_eq!(refused(&[JSON], b"\xff"), 400);
        assert_eq!(refused(&[("content-type", "text/plain")], b"\xff"), 400);
        assert_eq!(refused(&[("content-type", "text/plain; charset=latin1")], b"x"), 415);
        assert_eq!(refused(&[("content-type", "image/png")], b"x"), 415);
        assert_eq!(refused(&[("content-type", "application/cloudevents-batch+json")], b"[]"), 415);
        let form = [("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(refused(&form, b"a=%zz"), 400);
        assert_eq!(refused(&form, br#"{"a":"b=c"}"#), 400);
        assert_eq!(refused(&[("webhook-id", "")], b"x"), 400);
        assert_eq!(refused(&[("webhook-id", "a"), ("webhook-id", "b")], b"x"), 400);
        assert_eq!(refused(&[("x-github-delivery", &"x".repeat(513))], b"x"), 400);
        assert_eq!(refused(&[("x-correlation-id", "")], b"x"), 400);
    }

    /// A reader sees no difference between the two forms of an event.
    #[test]
    fn a_cloud_event_reads_alike_in_both_its_forms() {
        let event = json!({
            "specversion": "1.0", "id": "e 1", "source": "/orders", "type": "shipped", "subject": "order-7",
            "datacontenttype": "application/json", "data": { "n": 1 },
        });
        let structured = taken(&[EVENT], event.to_string(), None).unwrap();
        let binary = [
            ("ce-specversion", "1.0"),
            ("ce-id", "e%201"),
            ("ce-source", "/orders"),
            ("ce-type", "shipped"),
            ("ce-subject", "order-7"),
            JSON,
        ];
        assert_eq!(taken(&binary, r#"{"n":1}"#, Some("a key")).unwrap(), structured);
        assert_eq!(structured.delivery.json, Some(event.into()));
        assert_eq!(structured.delivery.correlation_id.as_deref(), Some("order-7"));
        assert_eq!(structured.known_as, Some(DeliveryKey { kind: "cloudevent", id: "/orders e 1".to_owned() }));
    }

    #[test]
    fn an_event_that_is_none_is_refused() {
        let event = json!({ "specversion": "1.0", "id": "1", "source": "s", "type": "t" });
        assert!(taken(&[EVENT], event.to_string(), None).is_ok());
        for (name, value) in [
            ("specversion", json!("0.3")),
            ("id", json!("")),
            ("source", json!(null)),
            ("type", json!(7)),
            ("subject", json!("")),
        ] {
            let mut other = event.clone();
            other[name] = value;
            assert_eq!(taken(&[EVENT], other.to_string(), None), Err(422), "{name}");
        }
        assert_eq!(taken(&[EVENT], "[]", None), Err(422));
        assert_eq!(taken(&[("ce-specversion", "1.0"), ("ce-id", "%zz")], "", None), Err(400));
        assert_eq!(taken(&[("ce-specversion", "1.0"), ("ce-id", "1")], "", None), Err(422));
    }

    #[test]
    fn the_id_that_is_signed_goes_before_the_others() {
        let known = |list: &[(&'static str, &str)]| taken(list, "x", Some("k")).unwrap().known_as.unwrap();
        assert_eq!(known(&[]), DeliveryKey { kind: IDEMPOTENCY_KEY, id: "k".to_owned() });
        assert_eq!(known(&[("x-github-delivery", "g")]), DeliveryKey { kind: "github", id: "g".to_owned() });
        let both = [("x-github-delivery", "g"), ("webhook-id", "w")];
        assert_eq!(known(&both), DeliveryKey { kind: "webhook", id: "w".to_owned() });
    }

    #[test]
    fn githubs_event_is_named_and_its_form_is_read() {
        let headers = [("x-github-event", "push"), ("x-github-delivery", "d"), JSON];
        let read = delivery(&headers, r#"{"ref":"main"}"#);
        assert_eq!(read.text.as_deref(), Some("GitHub event: push"));
        assert_eq!(read.json, Some(json!({ "ref": "main" }).into()));
        let form = [("x-github-event", "push"), ("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(delivery(&form, "payload=%7B%22ref%22%3A%22main%22%7D").json, Some(json!({ "ref": "main" }).into()));
    }
}
