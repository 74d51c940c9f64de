//! What comes in by a trigger's URL. A 202 means that it is on disk and counted.

use abide_api::types::Received;
use abide_api::{ErrorCode, Problem};
use abide_engine::{AskError, Claim, ClaimOutcome, Response};
use abide_kernel::AgentState;
use abide_kernel::input::{Answer, Delivery, Input};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::Delivered;
use abide_ledger::{Hash, StreamId};

use super::{Met, json};
use crate::call::Call;
use crate::hooks::{IDEMPOTENCY_KEY, KnownAs, Opened, Scheme};
use crate::{hooks, problems};

pub(super) async fn deliver(call: Call) -> Met {
    let opened = call.app.options.hooks.opens(call.param("token")).ok_or_else(problems::no_hook)?;
    // Before anything is counted: those who know the URL and not the secret must not use up the rate of those who do.
    let scheme = scheme(&call, &opened)?;
    if !call.app.options.hooks.has_room(&opened.trigger) {
        return Err(problems::overloaded("more comes in by this URL than it takes"));
    }
    let incoming = hooks::read(&call.headers, &call.body, call.key.as_deref(), scheme.as_ref())?;
    let verified = scheme.is_some();
    let Some(known_as) = incoming.known_as else {
        return received(&ask(&call, &opened, verified, incoming.delivery, None).await?, false);
    };
    match claim(&call, &opened, &known_as).await? {
        ClaimOutcome::New(claim) => {
            received(&ask(&call, &opened, verified, incoming.delivery, Some(claim)).await?, false)
        }
        ClaimOutcome::Completed(answered) => {
            still_good(&call, &opened, verified).await?;
            received(&answered, true)
        }
        ClaimOutcome::OtherRequest => {
            Err(Problem::new(ErrorCode::KeyReused, "this Idempotency-Key was used with another body")
                .hint("take a new key for a new delivery"))
        }
        ClaimOutcome::InProgress => {
            Err(Problem::new(ErrorCode::DeliveryUnderWay, "this delivery is being taken in right now"))
        }
    }
}

/// How it is signed, where the trigger has a secret. A signature that is not right is refused here.
fn scheme(call: &Call, opened: &Opened) -> Result<Option<Scheme>, Problem> {
    let hooks = &call.app.options.hooks;
    let Some(secret) = hooks.secret(&opened.agent, &opened.trigger) else { return Ok(None) };
    let now = call.app.host.clock().now();
    hooks::check(&secret, &call.headers, &call.body, now).map(Some).map_err(problems::not_signed)
}

async fn ask(
    call: &Call,
    opened: &Opened,
    verified: bool,
    delivery: Delivery,
    claim: Option<Claim>,
) -> Result<Response, Problem> {
    let (trigger_id, generation) = (opened.trigger.clone(), opened.generation);
    let input = Input::Deliver { trigger_id, generation, verified, delivery };
    let asked = call.app.host.ask_once(&opened.agent, input, claim).await;
    asked.map_err(|error| {
        if let AskError::Refused(refusal) = &error {
            // A URL that opens nothing any more is one that opens nothing.
            if [ErrorCode::NotFound, ErrorCode::NoAgent, ErrorCode::Archived].contains(&refusal.code) {
                return problems::no_hook();
            }
            if refusal.code == ErrorCode::NotSigned {
                return problems::not_signed("it is not signed");
            }
        }
        problems::ask(error, opened.agent.as_str())
    })
}

/// The same id by the same trigger is the same delivery, whatever its URL was at the time.
async fn claim(call: &Call, opened: &Opened, known_as: &KnownAs) -> Result<ClaimOutcome, Problem> {
    let KnownAs { kind, id } = known_as;
    let named = format!("hook\n{}\n{}\n{kind}\n{id}", opened.agent, opened.trigger);
    let stream = StreamId::key(Hash::of(named.as_bytes()));
    let request = if *kind == IDEMPOTENCY_KEY { Hash::of(&call.body).to_string() } else { String::new() };
    call.app.host.claim(stream, request).await.map_err(|error| problems::unreadable(&error))
}

/// A repeat is answered only where it could also be delivered.
async fn still_good(call: &Call, opened: &Opened, verified: bool) -> Result<(), Problem> {
    let (trigger, generation) = (opened.trigger.clone(), opened.generation);
    let look = move |state: &AgentState, _: Time| {
        let trigger = state.planes.triggers.get(&trigger).filter(|trigger| trigger.generation == generation);
        trigger.filter(|_| !state.lifecycle.archived).map(|trigger| trigger.signed)
    };
    let seen = call.app.host.look(&opened.agent, look).await;
    match seen.map_err(|error| problems::ask(error, opened.agent.as_str()))?.flatten() {
        Some(signed) if verified || !signed => Ok(()),
        Some(_) => Err(problems::not_signed("it is not signed")),
        None => Err(problems::no_hook()),
    }
}

fn received(answered: &Response, duplicate: bool) -> Met {
    let (disposition, message_id) = match &answered.answer {
        Answer::Queued { message_id } => (Delivered::Queued.to_string(), Some(message_id.to_string())),
        Answer::Woken { disposition, .. } => (disposition.to_string(), None),
        Answer::Done | Answer::Unchanged | Answer::Acted(_) => {
            return Err(Problem::new(ErrorCode::Crashed, "the delivery was answered as something else"));
        }
    };
    Ok(json(202, &Received { disposition, message_id, seq: answered.seq, duplicate }))
}
