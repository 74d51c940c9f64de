//! From what went wrong inside to what a caller is told.

use abide_api::problem::{ErrorCode, MEDIA_TYPE, Problem};
use abide_engine::AskError;
use abide_kernel::input::Refusal;
use abide_ledger::{CommitError, ReadError};
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use crate::shares::Holder;

pub(crate) fn response(problem: &Problem) -> Response {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    match problem.status {
        401 => {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        429 | 503 => {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    response
}

pub(crate) fn no_agent(id: &str) -> Problem {
    let id: String = id.chars().take(80).collect();
    Problem::new(ErrorCode::UnknownAgent, format!("no agent is called {id}"))
}

/// An archived agent is none of those there are: nothing can be asked of it any more. Its past can be read for good.
pub(crate) fn deleted(id: &str) -> Problem {
    Problem::new(ErrorCode::UnknownAgent, format!("{id} was deleted; its events and its transcript can still be read"))
}

/// A URL that opens nothing. Whether it ever did, or what is wrong with it, is not said.
pub(crate) fn no_hook() -> Problem {
    Problem::new(ErrorCode::NotFound, "there is nothing at this path")
}

pub(crate) fn not_signed(why: &str) -> Problem {
    Problem::new(ErrorCode::NotSigned, format!("the delivery is not accepted: {why}"))
        .hint("sign it with the trigger's secret, as Standard Webhooks or as GitHub do, and check the sender's clock")
}

pub(crate) fn overloaded(what: &str) -> Problem {
    Problem::new(ErrorCode::Overloaded, what)
}

/// Of this holder, and each of them has a request under way.
pub(crate) fn too_many_connections(holder: &Holder) -> Problem {
    let whose = match holder {
        Holder::Anonymous => "without a token",
        Holder::Webhooks => "of webhooks",
        Holder::Token(_) => "of this token",
    };
    overloaded(&format!("too many connections {whose} have a request or an event stream under way"))
}

pub(crate) fn ask(error: AskError, agent: &str) -> Problem {
    match error {
        AskError::Refused(refusal) => refused(refusal, agent),
        AskError::Busy => overloaded("the agent has more to take in than it can"),
        AskError::Damaged(reason) => damaged(agent, &reason),
        AskError::Store(reason) => not_recorded(&reason),
        AskError::Closing => closing(),
        AskError::Crashed => Problem::new(ErrorCode::Crashed, AskError::Crashed.to_string())
            .hint("read the agent's events before you send it again, or use an Idempotency-Key"),
    }
}

/// The store refused a commit, and nothing of it was kept.
pub(crate) fn not_recorded(reason: &str) -> Problem {
    Problem::new(ErrorCode::Store, format!("nothing was recorded: {reason}"))
}

/// The store takes no commit at this moment.
pub(crate) fn not_written(refusal: &CommitError) -> Problem {
    let why = match refusal {
        CommitError::StoreFull { detail } => format!("the disk is full ({detail})"),
        CommitError::Store { detail } => format!("the store could not write ({detail})"),
        CommitError::Conflict { .. }
        | CommitError::NoForkPoint { .. }
        | CommitError::NoStream { .. }
        | CommitError::Malformed { .. }
        | CommitError::Damaged(_)
        | CommitError::ReadOnly
        | CommitError::Closed => refusal.to_string(),
    };
    Problem::new(ErrorCode::Store, format!("nothing can be recorded: {why}"))
        .hint("see to the disk of the daemon's home; the daemon goes on by itself when it can write again")
}

pub(crate) fn damaged(agent: &str, reason: &str) -> Problem {
    Problem::new(ErrorCode::Quarantined, format!("{agent} is quarantined: {reason}"))
}

/// A bug of ours met this request; others go on.
pub(crate) fn crashed() -> Problem {
    Problem::new(ErrorCode::Crashed, "the request crashed; whether it was recorded can be read")
}

pub(crate) fn closing() -> Problem {
    Problem::new(ErrorCode::Closing, "the daemon is shutting down; nothing was recorded")
}

/// A refusal of the kernel or of the tools, as the answer to a request about this agent.
pub(crate) fn refused(refusal: Refusal, agent: &str) -> Problem {
    if refusal.code == ErrorCode::NoAgent {
        return no_agent(agent);
    }
    if refusal.code == ErrorCode::Archived {
        return deleted(agent);
    }
    of_refusal(refusal)
}

/// A refusal with the status of its code and the hint that was given with it.
pub(crate) fn of_refusal(refusal: Refusal) -> Problem {
    let Refusal { code, message, hint } = refusal;
    let problem = Problem::new(code, message);
    if hint.is_empty() { problem } else { problem.hint(hint) }
}

/// A refusal of the value of a field, which is the fault of the request (422), unless the caller is not allowed to choose it (403).
pub(crate) fn of_field(refusal: Refusal, pointer: &str) -> Problem {
    let status = if refusal.code.status() == 403 { 403 } else { 422 };
    of_refusal(refusal).with_status(status).pointer(pointer)
}

/// An answer, or a row, that is not what it should be.
pub(crate) fn unexpected(error: &serde_json::Error) -> Problem {
    Problem::new(ErrorCode::Crashed, format!("it was answered as something else: {error}"))
}

pub(crate) fn unreadable(error: &ReadError) -> Problem {
    let problem = Problem::new(ErrorCode::Store, error.to_string());
    match error {
        ReadError::CursorAhead { .. } => Problem::new(ErrorCode::BadCursor, error.to_string()),
        ReadError::Damaged(_) => Problem::new(ErrorCode::Damaged, error.to_string()),
        ReadError::NoBlob(_) | ReadError::Store { .. } | ReadError::Closed => problem,
    }
}
