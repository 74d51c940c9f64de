//! Tokens: made, listed, revoked.

use std::sync::Arc;

use abide_api::types::{Ended, TokenCreate, TokenCreated};
use abide_api::{ErrorCode, Problem};
use abide_engine::RequestSummary;
use abide_engine::Response;
use abide_engine::idempotency::record_completed;
use abide_kernel::input::Answer;

use super::{Met, blocking, json, page};
use crate::access::{ADMIN, AccessError, fresh_token};
use crate::body;
use crate::call::Call;
use crate::once::{Once, once};

const NAME_MAX: usize = 64;

fn failed(error: AccessError) -> Problem {
    match error {
        AccessError::TooMany => Problem::new(ErrorCode::TooMany, error.to_string()).hint("revoke those nobody uses"),
        AccessError::Read(_) | AccessError::Damaged { .. } | AccessError::Commit(_) => {
            Problem::new(ErrorCode::Store, error.to_string())
        }
    }
}

pub(super) async fn create(call: Call) -> Met {
    let new: TokenCreate = body::json(&call.body)?;
    if new.name.trim().is_empty() || new.name.chars().count() > NAME_MAX || new.name.chars().any(char::is_control) {
        let detail = format!("a name has 1 to {NAME_MAX} characters");
        return Err(Problem::new(ErrorCode::WrongFields, detail).pointer("/name"));
    }
    let claim = match once(&call).await? {
        Once::Meet(claim) => claim,
        Once::Again(_) => {
            return Err(Problem::new(ErrorCode::ShownOnce, "this token was made, and shown to whoever asked first"));
        }
    };
    let app = Arc::clone(&call.app);
    let created = blocking(move || {
        let token = fresh_token().map_err(|error| Problem::new(ErrorCode::NoRandomness, error.to_string()))?;
        let clock = app.host.clock();
        // The key is held until the token is on disk.
        let _hold = claim.as_ref().and_then(|claim| claim.hold.clone());
        let now = clock.now();
        let token_id = format!("tok_{:016x}", clock.entropy());
        // What is kept of the answer is not the token.
        let summary = Some(RequestSummary::Token { token_id: token_id.clone() });
        let answered: Response = Response { answer: Answer::Done, seq: 0, summary };
        let claim = claim.map(|claim| record_completed(claim, answered, now));
        app.access.create(&token_id, &new.name, new.scope, &token, now, claim).map_err(failed)?;
        Ok(TokenCreated { token_id, name: new.name, scope: new.scope, token })
    })
    .await?;
    Ok(json(201, &created))
}

pub(super) fn list(call: &Call) -> Met {
    let limit = call.query.limit()?;
    let after = call.query.text("after").unwrap_or_default();
    let items = call.app.access.list().into_iter().filter(|item| item.token_id.as_str() > after);
    Ok(page::of_items(items, limit, |item| item.token_id.clone()))
}

pub(super) async fn revoke(call: Call) -> Met {
    let item = call.param("item").to_owned();
    if item == ADMIN {
        return Err(Problem::new(ErrorCode::NotFound, "the home's own token can't be revoked")
            .hint("remove the file `token` from the home and start the daemon again: it makes another"));
    }
    let app = Arc::clone(&call.app);
    let there = blocking(move || app.access.revoke(&item, app.host.clock().now()).map_err(failed)).await?;
    if there {
        return Ok(json(200, &Ended { ended: true }));
    }
    Err(Problem::new(ErrorCode::UnknownToken, "there is no such token to revoke"))
}
