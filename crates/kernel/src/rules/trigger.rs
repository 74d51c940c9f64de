//! Triggers: made, given another URL, ended; and what comes in by them.
//!
//! The content of a delivery is never looked at here. It is a webhook's event or a hint, with that origin and that
//! trust, whatever is in it.

use crate::act_result::{self, TriggerEnded, TriggerMade};
use crate::fact::{Resource, TriggerCreated, TriggerDelivered, TriggerRevoked, TriggerRotated};
use crate::id::{TriggerId, WorkItemId};
use crate::input::{Answer, Delivery, NewMessage, Refusal};
use crate::limits;
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::state::hint::Trigger;
use crate::tool::Address;
use crate::vocabulary::{Delivered, DeliveryMode, Disposition, MessageKind};

use super::act::{Acted, Actor, answer_with, end_waits_naming, require_room, require_text};
use super::{ingress, work};

pub(super) fn create(
    tx: &mut Transaction<'_>,
    name: String,
    delivery_mode: DeliveryMode,
    work_item_id: Option<WorkItemId>,
    signed: bool,
    address: Option<Address>,
) -> Acted {
    let name = require_text(name, limits::LINE_BYTES, "name")?;
    require_room(tx.state.planes.triggers.len(), "triggers")?;
    if let Some(item) = &work_item_id {
        work::require_open(tx, item)?;
    }
    let (trigger_id, url) = match address {
        Some(Address { trigger_id, url }) => (trigger_id, url),
        None => (tx.fresh.trigger(), None),
    };
    if tx.state.planes.triggers.contains_key(&trigger_id) {
        return Err(Refusal::new(ErrorCode::TriggerExists, format!("{trigger_id} is here already")));
    }
    tx.emit(TriggerCreated { trigger_id: trigger_id.clone(), name, delivery_mode, work_item_id, signed });
    answer_with(&TriggerMade { trigger_id, url })
}

pub(super) fn rotate(tx: &mut Transaction<'_>, actor: &Actor, id: &TriggerId) -> Acted {
    let generation = match tx.state.planes.triggers.get(id) {
        Some(trigger) => trigger.generation.saturating_add(1),
        None => return Err(unknown(id)),
    };
    let evidence = vec![format!("rotated_by {}", actor.name())];
    tx.emit(TriggerRotated { trigger_id: id.clone(), generation, evidence });
    answer_with(&act_result::TriggerRotated { trigger_id: id.clone(), generation })
}

pub(super) fn revoke(tx: &mut Transaction<'_>, actor: &Actor, id: &TriggerId) -> Acted {
    let Some(trigger) = tx.state.planes.triggers.get(id).cloned() else { return Err(unknown(id)) };
    end_trigger(tx, &trigger, format!("revoked_by {}", actor.name()));
    let ended = end_waits_naming(tx, actor, &Resource::Trigger(id.clone()), "its trigger was revoked");
    answer_with(&TriggerEnded { trigger_id: id.clone(), ended_waits: ended })
}

pub(super) fn end_trigger(tx: &mut Transaction<'_>, trigger: &Trigger, why: String) {
    tx.emit(TriggerRevoked {
        trigger_id: trigger.trigger_id.clone(),
        evidence: vec![why],
        delivery_count: trigger.delivery_count,
        last_delivered_at: trigger.last_delivered_at,
    });
}

fn unknown(id: &TriggerId) -> Refusal {
    Refusal::new(ErrorCode::NotFound, format!("{id} is not an active trigger")).with_hint("list the triggers")
}

pub(super) fn deliver(
    tx: &mut Transaction<'_>,
    trigger_id: TriggerId,
    generation: u32,
    verified: bool,
    delivery: Delivery,
) -> Result<Answer, Refusal> {
    let trigger = tx.state.planes.triggers.get(&trigger_id).filter(|trigger| trigger.generation == generation);
    let Some(trigger) = trigger else { return Err(unknown(&trigger_id)) };
    if trigger.signed && !verified {
        return Err(Refusal::new(ErrorCode::NotSigned, format!("{trigger_id} takes signed deliveries only")));
    }
    let delivery_id = delivery.delivery_id.clone();
    let (answer, message_id, disposition) = match trigger.delivery_mode {
        DeliveryMode::EnqueueMessage => {
            let answer = ingress::queue(tx, message(&trigger_id, delivery))?;
            let message_id = match &answer {
                Answer::Queued { message_id } => Some(message_id.clone()),
                Answer::Done | Answer::Unchanged | Answer::Woken { .. } | Answer::Acted(_) => None,
            };
            (answer, message_id, Delivered::Queued)
        }
        DeliveryMode::WakeHint => {
            let reason = format!("the trigger {}", trigger.name);
            let resource = Some(trigger_id.to_string());
            let answer = ingress::wake(tx, clipped(reason, limits::LINE_BYTES), None, resource, hint_body(delivery))?;
            let disposition = match &answer {
                Answer::Woken { disposition: Disposition::Triggered | Disposition::Parked, .. } => Delivered::Triggered,
                Answer::Woken { disposition: Disposition::Coalesced, .. } => Delivered::Coalesced,
                Answer::Woken { disposition: Disposition::Ignored, .. }
                | Answer::Done
                | Answer::Unchanged
                | Answer::Queued { .. }
                | Answer::Acted(_) => Delivered::Ignored,
            };
            (answer, None, disposition)
        }
    };
    tx.emit(TriggerDelivered { trigger_id, delivery_id, message_id, disposition });
    Ok(answer)
}

fn message(trigger_id: &TriggerId, delivery: Delivery) -> NewMessage {
    NewMessage {
        kind: Some(MessageKind::WebhookEvent),
        text: delivery.text,
        json: delivery.json,
        origin_id: Some(trigger_id.to_string()),
        trigger_id: Some(trigger_id.clone()),
        correlation_id: delivery.correlation_id,
        idempotency_key: delivery.delivery_id,
        ..NewMessage::default()
    }
}

/// The text of a hint is there to be looked at, not to be kept: one that is too long is cut.
fn hint_body(delivery: Delivery) -> Option<String> {
    let text = delivery.text.or_else(|| delivery.json.map(|json| json.to_string()))?;
    Some(clipped(text, limits::TEXT_BYTES))
}

fn clipped(text: String, max: usize) -> String {
    if text.len() <= max { text } else { limits::clip(&text, max).to_owned() }
}
