//! The ticks that offer runnable work and pending hints to the model, and the keys that keep them from repeating.

use crate::id::{MessageId, TriggerId, WaitId};
use crate::message::{Message, Origin};
use crate::state::AgentState;
use crate::state::hint::Hint;
use crate::state::work::WorkItem;
use crate::vocabulary::{Maker, MessageKind, OriginKind, Priority, TickKind};

/// `work_queue:<kind>:<item>:<revision>`, and from the second tick of a revision on `…:<attempt>`. Never used twice.
#[must_use]
pub fn work_tick_key(kind: TickKind, item: &WorkItem) -> String {
    let base = format!("work_queue:{kind}:{}:{}", item.work_item_id, item.revision);
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
pub fn make_work_tick(message_id: MessageId, kind: TickKind, item: &WorkItem) -> Message {
    let text = match kind {
        TickKind::ContinueActive => format!("Continue the current work item: {}", item.objective),
        TickKind::QueuedAvailable => format!("A queued work item can be worked on: {}", item.objective),
        TickKind::WakeHint | TickKind::Recheck => format!("Look at this work item: {}", item.objective),
    };
    Message {
        text: Some(text),
        tick: Some(kind),
        work_item_id: Some(item.work_item_id.clone()),
        idempotency_key: Some(work_tick_key(kind, item)),
        ..Message::bare(message_id, MessageKind::SystemTick)
    }
}

#[must_use]
pub fn make_recheck_tick(message_id: MessageId, item: &WorkItem) -> Message {
    let blocker = item.blocked_by.as_deref().unwrap_or("nothing");
    Message {
        text: Some(format!("Recheck whether this work item is still blocked by {blocker}: {}", item.objective)),
        tick: Some(TickKind::Recheck),
        work_item_id: Some(item.work_item_id.clone()),
        idempotency_key: Some(format!("recheck:{}:{}:{}", item.work_item_id, item.revision, message_id)),
        self_caused: item.recheck_by == Some(Maker::Model),
        ..Message::bare(message_id, MessageKind::SystemTick)
    }
}

/// A hint becomes contentful only by what was said with it; its reason alone is a liveness signal.
#[must_use]
pub fn make_hint_tick(state: &AgentState, message_id: MessageId, hint: &Hint) -> Message {
    let named = hint.resource.as_deref();
    let wait = named.map(WaitId::new).filter(|id| state.planes.waits.get(id).is_some());
    let trigger = named.map(TriggerId::new).filter(|id| state.planes.triggers.contains_key(id));
    let body: Vec<&str> = hint.bodies.iter().map(String::as_str).filter(|body| !body.trim().is_empty()).collect();
    Message {
        origin: Origin::of(OriginKind::System, Some(&hint.source)),
        priority: Priority::Next,
        text: (!body.is_empty()).then(|| body.join("\n")),
        tick: Some(TickKind::WakeHint),
        waiting_intent_id: wait,
        trigger_id: trigger,
        correlation_id: hint.resource.clone(),
        idempotency_key: Some(hint_tick_key(hint)),
        ..Message::bare(message_id, MessageKind::SystemTick)
    }
}
