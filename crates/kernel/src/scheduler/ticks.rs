//! The ticks that offer runnable work and pending hints to the model, and the keys that keep them from repeating.

use crate::id::{MessageId, TriggerId, WaitId};
use crate::message::{HintResource, Message, OfferedItem, Origin, Subject};
use crate::state::AgentState;
use crate::state::hint::Hint;
use crate::state::work::WorkItem;
use crate::vocabulary::{Maker, OriginKind, Priority};

/// `work_queue:<kind>:<item>:<revision>`, and from the second tick of a revision on `…:<attempt>`. Never used twice.
#[must_use]
pub fn work_tick_key(offer: OfferedItem, item: &WorkItem) -> String {
    let base = format!("work_queue:{}:{}:{}", offer.tick(), item.work_item_id, item.revision);
    match item.ticks.attempts {
        0 => base,
        attempt => format!("{base}:{attempt}"),
    }
}

/// `wake_hint:<wait or source>:<generation>`.
#[must_use]
pub fn hint_tick_key(hint: &Hint) -> String {
    format!("wake_hint:{}:{}", hint.source, hint.generation)
}

#[must_use]
pub fn make_work_tick(message_id: MessageId, offer: OfferedItem, item: &WorkItem) -> Message {
    let text = match offer {
        OfferedItem::Current => format!("Continue the current work item: {}", item.objective),
        OfferedItem::Queued => format!("A queued work item can be worked on: {}", item.objective),
    };
    let (work_item_id, idempotency_key) = (item.work_item_id.clone(), work_tick_key(offer, item));
    let subject = Subject::WorkTick { offer, work_item_id, idempotency_key };
    Message { text: Some(text), ..Message::new(message_id, subject) }
}

#[must_use]
pub fn make_recheck_tick(message_id: MessageId, item: &WorkItem) -> Message {
    let blocker = item.blocked_by.as_deref().unwrap_or("nothing");
    let work_item_id = item.work_item_id.clone();
    let idempotency_key = format!("recheck:{work_item_id}:{}:{message_id}", item.revision);
    Message {
        text: Some(format!("Recheck whether this work item is still blocked by {blocker}: {}", item.objective)),
        self_caused: item.recheck_by == Some(Maker::Model),
        ..Message::new(message_id, Subject::Recheck { work_item_id, idempotency_key })
    }
}

/// A hint becomes contentful only by what was said with it; its reason alone is a liveness signal.
#[must_use]
pub fn make_hint_tick(state: &AgentState, message_id: MessageId, hint: &Hint) -> Message {
    let resource = hint.resource.as_deref().map(|name| resource_of_hint(state, name));
    let body: Vec<&str> = hint.bodies.iter().map(String::as_str).filter(|body| !body.trim().is_empty()).collect();
    Message {
        origin: Origin::of(OriginKind::System, Some(&hint.source)),
        priority: Priority::Next,
        text: (!body.is_empty()).then(|| body.join("\n")),
        ..Message::new(message_id, Subject::WakeHint { resource, idempotency_key: hint_tick_key(hint) })
    }
}

/// The record of the agent that the resource of a hint names. Ids of waits and triggers have prefixes of their own, so that
/// no name is both.
fn resource_of_hint(state: &AgentState, name: &str) -> HintResource {
    let (wait, trigger) = (WaitId::new(name), TriggerId::new(name));
    if state.planes.waits.get(&wait).is_some() {
        HintResource::Wait(wait)
    } else if state.planes.triggers.contains_key(&trigger) {
        HintResource::Trigger(trigger)
    } else {
        HintResource::Correlation(name.to_owned())
    }
}
