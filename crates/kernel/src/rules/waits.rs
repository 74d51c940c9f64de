//! How waits end, and what ends with them.

use crate::fact::{
    ApprovalDecided, MessageDropped, MessageRequeued, Resource, TimerCancelled, WaitingIntentCancelled,
    WaitingIntentTriggered,
};
use crate::id::{MessageId, TimerId, WaitId};
use crate::rules::transaction::Transaction;
use crate::vocabulary::{ApprovalStatus, Maker, MissedReason, QueueStatus, RequeueReason};

use super::due;
use super::settle::tell_agent;

/// A wait got what it waited for.
pub(crate) fn trigger_wait(tx: &mut Transaction<'_>, id: &WaitId, message: Option<&MessageId>, evidence: Vec<String>) {
    let Some(wait) = tx.state.planes.waits.get(id) else { return };
    let trigger_count = wait.trigger_count + 1;
    let resource = wait.resource.clone();
    tx.emit(WaitingIntentTriggered {
        waiting_intent_id: id.clone(),
        trigger_count,
        message_id: message.cloned(),
        evidence,
    });
    end_owned(tx, id, resource, message);
}

/// A wait ended without that.
pub(super) fn cancel_wait(tx: &mut Transaction<'_>, id: &WaitId, evidence: &str) {
    let Some(wait) = tx.state.planes.waits.get(id) else { return };
    let resource = wait.resource.clone();
    tx.emit(WaitingIntentCancelled { waiting_intent_id: id.clone(), evidence: vec![evidence.to_owned()] });
    end_owned(tx, id, resource, None);
}

/// Records that existed only for a wait end with it: its own timer, the approval it stood for.
fn end_owned(tx: &mut Transaction<'_>, wait: &WaitId, resource: Option<Resource>, by: Option<&MessageId>) {
    match resource {
        Some(Resource::Timer(timer)) => {
            let owned =
                tx.state.planes.timers.get(&timer).filter(|timer| timer.waiting_intent_id.as_ref() == Some(wait));
            // The tick that ends the wait is itself the last of its timer; that one completes by being taken.
            let by_own_tick =
                owned.is_some_and(|timer| timer.undelivered.is_some() && timer.undelivered.as_ref() == by);
            if owned.is_some() && !by_own_tick {
                cancel_timer(tx, &timer, "wait_ended");
                for other in naming(tx, &Resource::Timer(timer)) {
                    tell_agent(tx, &other, "its timer was cancelled", Maker::Model);
                    cancel_wait(tx, &other, "its timer was cancelled");
                }
            }
        }
        Some(Resource::Approval(approval)) => {
            if tx.state.planes.approvals.pending().contains_key(&approval) {
                tx.emit(ApprovalDecided {
                    approval_id: approval,
                    status: ApprovalStatus::Expired,
                    decided_by: "wait_ended".to_owned(),
                    lets_call: false,
                });
            }
        }
        Some(Resource::Task(_) | Resource::Trigger(_) | Resource::Correlation(_)) | None => {}
    }
}

/// Cancels a timer and drops its undelivered tick. Waits that name it are the caller's to end.
pub(super) fn cancel_timer(tx: &mut Transaction<'_>, id: &TimerId, evidence: &str) {
    due::end_check(tx, id, MissedReason::Cancelled, None);
    let tick = tx.state.planes.timers.get(id).and_then(|timer| timer.undelivered.clone());
    tx.emit(TimerCancelled { timer_id: id.clone(), evidence: vec![evidence.to_owned()] });
    if let Some(tick) = tick {
        drop_if_waiting(tx, &tick, "timer_cancelled");
    }
}

/// Drops a message that nobody has taken yet.
pub(super) fn drop_if_waiting(tx: &mut Transaction<'_>, id: &MessageId, evidence: &str) {
    let status = tx.state.planes.queue.get(id).map(|entry| entry.status);
    if matches!(status, Some(QueueStatus::Queued | QueueStatus::Parked)) {
        tx.emit(MessageDropped { message_id: id.clone(), evidence: vec![evidence.to_owned()] });
        return_interjections(tx, id);
    }
}

/// Interjections whose message will not be taken again are messages of their own again.
pub(super) fn return_interjections(tx: &mut Transaction<'_>, message_id: &MessageId) {
    for joined in tx.state.planes.queue.joined_to(message_id) {
        let reason = RequeueReason::InterjectionReturned;
        tx.emit(MessageRequeued { message_id: joined, reason, not_before: None });
    }
}

pub(super) fn naming(tx: &Transaction<'_>, resource: &Resource) -> Vec<WaitId> {
    tx.state.planes.waits.waits_naming(resource).map(|wait| wait.waiting_intent_id.clone()).collect()
}
