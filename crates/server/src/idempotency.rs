//! Requests with an `Idempotency-Key`: executed once. Repeats get the same answer for a day.

use abide_api::{ErrorCode, Problem};
use abide_engine::{Claim, ClaimOutcome, Response};
use abide_ledger::{Hash, StreamId};

use crate::call::Call;
use crate::problems;

/// A request, by whether one with its key was executed before.
pub(crate) enum KeyedRequest {
    /// To be executed. A request with a key has a claim on it.
    New(Option<Claim>),
    /// The answer of the first request.
    Repeated(Box<Response>),
}

pub(crate) async fn claim_key(call: &Call) -> Result<KeyedRequest, Problem> {
    claim_key_for(call, &call.body).await
}

/// The same for a body of which not everything may be stored, even as a digest.
pub(crate) async fn claim_key_for(call: &Call, request: &[u8]) -> Result<KeyedRequest, Problem> {
    let Some(key) = &call.key else { return Ok(KeyedRequest::New(None)) };
    // Keys belong to one caller and one route.
    let named = format!("{}\n{}\n{}\n{key}", call.caller.token_id, call.operation.id, call.path_text);
    let stream = StreamId::key(Hash::of(named.as_bytes()));
    let request = Hash::of(request).to_string();
    match call.app.host.claim(stream, request).await.map_err(|error| problems::unreadable(&error))? {
        ClaimOutcome::New(claim) => Ok(KeyedRequest::New(Some(claim))),
        ClaimOutcome::Completed(answered) => Ok(KeyedRequest::Repeated(Box::new(answered))),
        ClaimOutcome::OtherRequest => {
            Err(Problem::new(ErrorCode::KeyReused, "this Idempotency-Key was used with another body"))
        }
        ClaimOutcome::InProgress => {
            Err(Problem::new(ErrorCode::KeyUnderWay, "a request with this key is still being met"))
        }
    }
}
