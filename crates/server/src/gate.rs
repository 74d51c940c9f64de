//! The gate that every request passes: is there room, does it come from where it says, who is it, is it complete. Only
//! then is a route asked.

use std::sync::Arc;
use std::time::Instant;

use abide_api::Problem;
use abide_api::operations::{Answer, Body as Wanted, Method, Operation};
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;

use crate::access::Caller;
use crate::app::App;
use crate::body::Query;
use crate::{problems, routes};

/// A request that may be met.
pub(crate) struct Call {
    pub app: Arc<App>,
    pub operation: &'static Operation,
    pub caller: Caller,
    pub path_text: String,
    params: Vec<(String, String)>,
    pub query: Query,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The `Idempotency-Key`.
    pub key: Option<String>,
}

impl Call {
    /// A part of the path that the operation names.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// The one operation that the outside may call without a token of ours, and under the name it knows us by.
const HOOK: &str = "hook_deliver";

/// The longest key.
const KEY_MAX: usize = 255;

pub(crate) async fn pass(app: Arc<App>, operation: &'static Operation, request: Request<Body>) -> Response {
    let began = Instant::now();
    let (parts, mut body) = request.into_parts();
    let waits_to_send = parts.headers.contains_key(header::EXPECT);
    let answered = met(Arc::clone(&app), operation, parts, &mut body).await;
    if answered.is_err() && !waits_to_send && !body.is_end_stream() {
        // It ends with the client's last byte, or with its own limits.
        tokio::spawn(drain(Arc::clone(&app), body));
    }
    let response = answered.unwrap_or_else(|problem| {
        if problem.status >= 500 {
            tracing::warn!(operation = operation.id, code = problem.code, detail = problem.detail, "refused");
        }
        problems::response(&problem)
    });
    let took = began.elapsed();
    app.metrics.count(operation.id, response.status().as_u16(), took);
    tracing::debug!(operation = operation.id, status = response.status().as_u16(), ?took, "answered");
    response
}

/// What is drained of a body that nobody wants.
const DRAINED_MAX: usize = 16 << 20;

/// Takes in what a refused client still sends. A connection that is closed on unread bytes is reset, and then the client
/// may never see why it was refused.
async fn drain(app: Arc<App>, mut body: Body) {
    let drained = async {
        let mut left = DRAINED_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // Whoever sends for longer than this is cut off after all.
    let _cut = tokio::time::timeout(app.options.limits.read, drained).await;
}

async fn met(
    app: Arc<App>,
    operation: &'static Operation,
    mut parts: Parts,
    body: &mut Body,
) -> Result<Response, Problem> {
    let _room = app.requests.try_acquire().map_err(|_| problems::overloaded("too many requests at once"))?;
    same_site(&app, operation, &parts.headers)?;
    let caller = caller(&app, operation, &parts.headers)?;
    if app.is_closing() && operation.id != "healthz" {
        return Err(problems::closing());
    }
    let params = params(&mut parts).await?;
    if operation.id == HOOK {
        // Its path is its token: nothing else of it is looked at before that is known to be good.
        let token = params.iter().find(|(name, _)| name == "token").map_or("", |(_, token)| token);
        app.options.hooks.opens(token).ok_or_else(problems::no_hook)?;
    }
    let known: Vec<&str> = operation.query.iter().map(|param| param.name).collect();
    // Senders of webhooks add what they like to a URL; its path alone says whose it is.
    let query = if operation.id == HOOK { Query::default() } else { Query::read(&parts.uri, &known)? };
    let key = key(operation, &parts.headers)?;
    let held = app.options.limits.held_bytes / 1024;
    let (body, _bytes) = read(&app, operation, &parts, body, held).await?;
    let path_text = parts.uri.path().to_owned();
    let call =
        Call { app: Arc::clone(&app), operation, caller, path_text, params, query, headers: parts.headers, body, key };
    let patient =
        matches!(operation.answer, Answer::Events | Answer::Text(_)) || operation.path.starts_with("/v1/ledger");
    if patient {
        return routes::meet(call).await;
    }
    match tokio::time::timeout(app.options.limits.work, routes::meet(call)).await {
        Ok(answered) => answered,
        Err(_) => Err(Problem::new(503, "too_slow", "it took too long; whether it was recorded can be read")
            .hint("try again later; with an Idempotency-Key a repeat is safe")),
    }
}

/// A page in somebody's browser must not speak to a daemon on their machine, whatever name it found for it.
fn same_site(app: &App, operation: &Operation, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or("?").to_owned());
    let host = text(header::HOST).unwrap_or_default();
    let public = operation.id == HOOK && app.options.hooks.public_host() == Some(host.as_str());
    if app.options.loopback && !public && !is_loopback(&host) {
        return Err(Problem::new(403, "foreign_host", format!("{host:?} is not a name of this machine"))
            .hint("use localhost or 127.0.0.1"));
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, rest)| rest) != Some(host.as_str()) => {
            Err(Problem::new(403, "foreign_origin", "requests of other sites are not taken"))
        }
        Some(_) | None => Ok(()),
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn caller(app: &App, operation: &Operation, headers: &HeaderMap) -> Result<Caller, Problem> {
    let Some(least) = operation.scope else {
        let scope = abide_api::types::Scope::Observer;
        return Ok(Caller { token_id: String::new(), name: String::new(), scope });
    };
    let missing = |detail: &str| {
        Problem::new(401, "unauthorized", detail)
            .hint("send Authorization: Bearer TOKEN; the home's own token is in its file `token`")
    };
    let given = headers.get(header::AUTHORIZATION).ok_or_else(|| missing("there is no token"))?;
    let bearer = given.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let caller = bearer.and_then(|token| app.access.caller(token)).ok_or_else(|| missing("the token is not known"))?;
    if caller.scope < least {
        let detail = format!("this takes the scope {least:?}; the token {} has {:?}", caller.name, caller.scope);
        return Err(Problem::new(403, "scope", detail.to_lowercase()).hint("ask for a token with that scope"));
    }
    Ok(caller)
}

async fn params(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let bad = |_| Problem::new(400, "bad_path", "the path is not UTF-8");
    let raw = RawPathParams::from_request_parts(parts, &()).await.map_err(bad)?;
    Ok(raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn key(operation: &Operation, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all("idempotency-key").iter();
    let (Some(key), Method::Post) = (given.next(), operation.method) else { return Ok(None) };
    let text = key
        .to_str()
        .ok()
        .filter(|text| !text.is_empty() && text.len() <= KEY_MAX && text.bytes().all(|byte| byte.is_ascii_graphic()));
    match (text, given.next()) {
        (Some(text), None) => Ok(Some(text.to_owned())),
        (Some(_), Some(_)) | (None, _) => {
            Err(Problem::new(400, "bad_key", format!("an Idempotency-Key is 1 to {KEY_MAX} visible ASCII characters")))
        }
    }
}

/// The whole body, within its limits, and the room it takes until it is answered.
async fn read(
    app: &App,
    operation: &Operation,
    parts: &Parts,
    body: &mut Body,
    held: usize,
) -> Result<(Bytes, Option<tokio::sync::OwnedSemaphorePermit>), Problem> {
    let limit = app.options.limits.body_bytes;
    let too_large = || {
        Problem::new(413, "too_large", format!("a body has at most {limit} bytes"))
            .hint("put the content into a file and send its path")
    };
    let announced =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
    let length = match (announced, chunked) {
        (Some(length), _) if length > limit => return Err(too_large()),
        (Some(length), _) => length,
        (None, true) => limit,
        (None, false) => 0,
    };
    if matches!(operation.body, Wanted::None) && length == 0 {
        return Ok((Bytes::new(), None));
    }
    let room = u32::try_from((length / 1024 + 1).min(held)).unwrap_or(u32::MAX);
    let permit = Arc::clone(&app.held).try_acquire_many_owned(room);
    let permit = permit.map_err(|_| problems::overloaded("too much is being taken in at once"))?;
    let read = tokio::time::timeout(app.options.limits.read, Limited::new(body, limit).collect());
    match read.await {
        Ok(Ok(collected)) => Ok((collected.to_bytes(), Some(permit))),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::new(400, "cut_off", format!("the body ended early: {error}"))),
        Err(_) => Err(Problem::new(408, "too_slow", "the body took too long to arrive")),
    }
}
