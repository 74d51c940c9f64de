//! Requests under a key: met once, and answered alike for a day.

use abide_api::{ErrorCode, Problem};
use abide_engine::{Claim, ClaimOutcome, Response};
use abide_ledger::{Hash, StreamId};

use crate::call::Call;
use crate::problems;

/// What to do with a request, as far as its key says.
pub(crate) enum Once {
    /// Meet it.
    Meet(Option<Claim>),
    /// It was met before.
    Again(Box<Response>),
}

pub(crate) async fn once(call: &Call) -> Result<Once, Problem> {
    once_of(call, &call.body).await
}

/// The same where not all of the body may be held on to, be it as a digest.
pub(crate) async fn once_of(call: &Call, request: &[u8]) -> Result<Once, Problem> {
    let Some(key) = &call.key else { return Ok(Once::Meet(None)) };
    // The same key of another caller, or on another route, is another key.
    let named = format!("{}\n{}\n{}\n{key}", call.caller.token_id, call.operation.id, call.path_text);
    let stream = StreamId::key(Hash::of(named.as_bytes()));
    let request = Hash::of(request).to_string();
    match call.app.host.claim(stream, request).await.map_err(|error| problems::unreadable(&error))? {
        ClaimOutcome::New(claim) => Ok(Once::Meet(Some(claim))),
        ClaimOutcome::Completed(answered) => Ok(Once::Again(Box::new(answered))),
        ClaimOutcome::OtherRequest => {
            Err(Problem::new(ErrorCode::KeyReused, "this Idempotency-Key was used with another body"))
        }
        ClaimOutcome::InProgress => {
            Err(Problem::new(ErrorCode::KeyUnderWay, "a request with this key is still being met"))
        }
    }
}
