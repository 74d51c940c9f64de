//! From what went wrong inside to what a caller is told.

use abide_api::problem::{MEDIA_TYPE, Problem};
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
    Problem::new(404, "not_found", format!("no agent is called {id}")).hint("GET /v1/agents lists those there are")
}

/// An archived agent is none of those there are: nothing can be asked of it any more. Its past can be read for good.
pub(crate) fn deleted(id: &str) -> Problem {
    Problem::new(404, "not_found", format!("{id} was deleted; its events and its transcript can still be read"))
        .hint("GET /v1/agents lists those there are")
}

/// A URL that opens nothing. Whether it ever did, or what is wrong with it, is not said.
pub(crate) fn no_hook() -> Problem {
    Problem::new(404, "not_found", "there is nothing at this path")
}

pub(crate) fn not_signed(why: &str) -> Problem {
    Problem::new(401, "not_signed", format!("the delivery is not accepted: {why}"))
        .hint("sign it with the trigger's secret, as Standard Webhooks or as GitHub do, and check the sender's clock")
}

pub(crate) fn overloaded(what: &str) -> Problem {
    Problem::new(429, "overloaded", what).hint("try again after the time in Retry-After; nothing was recorded")
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
        AskError::Crashed => Problem::new(503, "crashed", AskError::Crashed.to_string())
            .hint("read the agent's events before you send it again, or use an Idempotency-Key"),
    }
}

/// The store refused a commit, and nothing of it was kept.
pub(crate) fn not_recorded(reason: &str) -> Problem {
    Problem::new(503, "store", format!("nothing was recorded: {reason}"))
        .hint("see to the disk of the daemon's home, then send it again")
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
    Problem::new(503, "store", format!("nothing can be recorded: {why}"))
        .hint("see to the disk of the daemon's home; the daemon goes on by itself when it can write again")
}

pub(crate) fn damaged(agent: &str, reason: &str) -> Problem {
    Problem::new(409, "quarantined", format!("{agent} is quarantined: {reason}"))
        .hint("`abide ledger verify` names what is damaged; `start` tries it again")
}

/// A bug of ours met this request; others go on.
pub(crate) fn crashed() -> Problem {
    Problem::new(503, "crashed", "the request crashed; whether it was recorded can be read")
        .hint("try again; with an Idempotency-Key a repeat is safe")
}

pub(crate) fn closing() -> Problem {
    Problem::new(503, "closing", "the daemon is shutting down; nothing was recorded").hint("try again when it is back")
}

/// A refusal by the kernel is about the state, unless it says that the request itself makes no sense.
pub(crate) fn refused(refusal: Refusal, agent: &str) -> Problem {
    let status = match refusal.code {
        "no_agent" => return no_agent(agent),
        "archived" => return deleted(agent),
        "not_found" => 404,
        "queue_full" | "too_many_hints" => 429,
        "message_too_large" | "wake_too_large" => 413,
        "kind_origin_mismatch"
        | "only_operators_interject"
        | "empty"
        | "too_long"
        | "too_far_ahead"
        | "in_the_past"
        | "too_often"
        | "todo_too_long"
        | "one_in_progress"
        | "bad_cron"
        | "unknown_time_zone"
        | "never_fires" => 422,
        _ => 409,
    };
    Problem::new(status, refusal.code, refusal.message).hint(refusal.hint)
}

/// An answer, or a row, that is not what it should be.
pub(crate) fn unexpected(error: &serde_json::Error) -> Problem {
    Problem::new(503, "crashed", format!("it was answered as something else: {error}"))
}

pub(crate) fn unreadable(error: &ReadError) -> Problem {
    let problem = Problem::new(503, "store", error.to_string());
    match error {
        ReadError::CursorAhead { .. } => Problem::new(400, "bad_cursor", error.to_string()),
        ReadError::Damaged(_) => Problem::new(409, "damaged", error.to_string()),
        ReadError::NoBlob(_) | ReadError::Store { .. } | ReadError::Closed => problem,
    }
}
