//! The gate that every request passes: is there room, does it come from where it says, who is it, is it complete. Only
//! then is a route asked.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use abide_api::operations::{Answer, Body as Wanted, Method, Operation};
use abide_api::{ErrorCode, Problem};
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;

use crate::access::Caller;
use crate::answers::{SMALL, sliced};
use crate::app::App;
use crate::body::Query;
use crate::call::Call;
use crate::connections::{Connection, ShareTaken};
use crate::routes::{Counted, WAIT};
use crate::shares::{Held, Holder};
use crate::{problems, routes, site};

/// The one operation that the outside may call without a token of ours, and under the name it knows us by.
const HOOK: &str = "hook_deliver";

/// The longest key.
const KEY_MAX: usize = 255;

pub(crate) async fn pass(app: Arc<App>, operation: &'static Operation, request: Request<Body>) -> Response {
    let began = Instant::now();
    let (parts, mut body) = request.into_parts();
    let waits_to_send = parts.headers.contains_key(header::EXPECT);
    let answered = AssertUnwindSafe(met(Arc::clone(&app), operation, parts, &mut body)).catch_unwind().await;
    // A panic would close the connection without an answer.
    let answered = answered.unwrap_or_else(|_| Err(problems::crashed()));
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
    let public = if operation.id == HOOK { app.options.hooks.public_site() } else { None };
    site::check(&parts, app.options.loopback, public)?;
    let caller = caller(&app, operation, &parts.headers)?;
    if app.is_closing() && operation.id != "healthz" {
        return Err(problems::closing());
    }
    let params = params(&mut parts).await?;
    let mut holder = match operation.scope {
        Some(_) => Holder::Token(caller.token_id.clone()),
        None => Holder::Anonymous,
    };
    if operation.id == HOOK {
        // Its path is its token: nothing else of it is looked at before that is known to be good.
        let token = params.iter().find(|(name, _)| name == "token").map_or("", |(_, token)| token);
        app.options.hooks.opens(token).ok_or_else(problems::no_hook)?;
        holder = Holder::Webhooks;
    }
    take_place(&parts, &holder)?;
    let known: Vec<&str> = operation.query.iter().map(|param| param.name).collect();
    // Senders of webhooks add what they like to a URL; its path alone says whose it is.
    let query = if operation.id == HOOK { Query::default() } else { Query::read(&parts.uri, &known)? };
    let waits = query.text(WAIT).is_some();
    let (room, full) = match waits {
        true => (&app.waits, "too many requests wait for the outcome of a message"),
        false => (&app.requests, "too many requests at once"),
    };
    let _room = room.try_acquire(&holder, 1).ok_or_else(|| problems::overloaded(full))?;
    let key = key(operation, &parts.headers)?;
    let (body, _bytes) = read(&app, operation, &parts, body, &holder).await?;
    let path_text = parts.uri.path().to_owned();
    let call = Call {
        app: Arc::clone(&app),
        operation,
        caller,
        holder: holder.clone(),
        path_text,
        params,
        query,
        headers: parts.headers,
        body,
        key,
    };
    let patient = matches!(operation.answer, Answer::Events | Answer::Text(_))
        || operation.path.starts_with("/v1/ledger")
        || waits;
    if patient {
        return routes::meet(call).await;
    }
    let answered = async { Ok(counted(&app, operation, &holder, routes::meet(call).await?).await) };
    match tokio::time::timeout(app.options.limits.work, answered).await {
        Ok(answered) => answered,
        Err(_) => Err(Problem::new(ErrorCode::RequestTooSlow, "it took too long; whether it was recorded can be read")),
    }
}

/// Counts the memory of a large answer until its reader has taken it. Answers to those who only read wait for room; what
/// was changed is answered at once, because whoever changed it has to know.
async fn counted(app: &App, operation: &Operation, holder: &Holder, response: Response) -> Response {
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
    if size <= SMALL || operation.method != Method::Get || response.extensions().get::<Counted>().is_some() {
        return response;
    }
    let reserved = app.answers.reserve(holder, size).await;
    let (parts, body) = response.into_parts();
    // It is in memory already, all of it.
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Response::from_parts(parts, sliced(bytes, reserved))
}

/// The connection belongs to whoever showed a good token on it; that a token has too many is its own matter.
fn take_place(parts: &Parts, holder: &Holder) -> Result<(), Problem> {
    let connection = parts.extensions.get::<Arc<Connection>>().filter(|_| *holder != Holder::Anonymous);
    let taken = connection.map_or(Ok(()), |connection| connection.show(holder));
    taken.map_err(|ShareTaken| problems::too_many_connections(holder))
}

fn caller(app: &App, operation: &Operation, headers: &HeaderMap) -> Result<Caller, Problem> {
    let Some(least) = operation.scope else {
        let scope = abide_api::types::Scope::Observer;
        return Ok(Caller { token_id: String::new(), name: String::new(), scope });
    };
    let missing = |detail: &str| Problem::new(ErrorCode::Unauthorized, detail);
    let given = headers.get(header::AUTHORIZATION).ok_or_else(|| missing("there is no token"))?;
    let bearer = given.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let caller = bearer.and_then(|token| app.access.caller(token)).ok_or_else(|| missing("the token is not known"))?;
    if caller.scope < least {
        let detail = format!("this takes the scope {least:?}; the token {} has {:?}", caller.name, caller.scope);
        return Err(Problem::new(ErrorCode::Scope, detail.to_lowercase()));
    }
    Ok(caller)
}

async fn params(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let bad = |_| Problem::new(ErrorCode::BadPath, "the path is not UTF-8");
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
        (Some(_), Some(_)) | (None, _) => Err(Problem::new(
            ErrorCode::BadKey,
            format!("an Idempotency-Key is 1 to {KEY_MAX} visible ASCII characters"),
        )),
    }
}

/// The whole body, within its limits, and the room it takes until it is answered.
async fn read(
    app: &App,
    operation: &Operation,
    parts: &Parts,
    body: &mut Body,
    holder: &Holder,
) -> Result<(Bytes, Option<Held>), Problem> {
    let limit = app.options.limits.body_bytes;
    let too_large = || Problem::new(ErrorCode::BodyTooLarge, format!("a body has at most {limit} bytes"));
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
    let held = app.held.try_acquire(holder, length / 1024 + 1);
    let held = held.ok_or_else(|| problems::overloaded("too much is being taken in at once"))?;
    let read = tokio::time::timeout(app.options.limits.read, Limited::new(body, limit).collect());
    match read.await {
        Ok(Ok(collected)) => Ok((collected.to_bytes(), Some(held))),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::new(ErrorCode::CutOff, format!("the body ended early: {error}"))),
        Err(_) => Err(Problem::new(ErrorCode::BodyTooSlow, "the body took too long to arrive")),
    }
}
