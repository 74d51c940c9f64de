//! Input from outside: messages and wake hints.

use std::sync::Arc;

use crate::fact::{MessageQueued, WakeHintCoalesced, WakeHintIgnored, WakeHintSubmitted};
use crate::id::WaitId;
use crate::input::{Answer, NewMessage, Refusal};
use crate::limits;
use crate::message::{Labels, Message, Origin, Subject, SubjectRecord, body_bytes};
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::scheduler::continuation::{Classification, classify};
use crate::scheduler::ticks::make_hint_tick;
use crate::vocabulary::{DeliveryMode, Disposition, MessageKind, OriginKind, Priority, Status, Trust};

pub(super) fn queue(tx: &mut Transaction<'_>, new: NewMessage) -> Result<Answer, Refusal> {
    let message = shape(tx, new)?;
    require_room(tx, &message)?;
    let message_id = message.message_id.clone();
    tx.emit(MessageQueued { message: Arc::new(message) });
    Ok(Answer::Queued { message_id })
}

fn require_room(tx: &Transaction<'_>, message: &Message) -> Result<(), Refusal> {
    let (messages, bytes) = (tx.state.planes.queue.len(), tx.state.planes.queue.body_bytes());
    let too_large = bytes.saturating_add(message.body_bytes()) > limits::QUEUE_BYTES;
    if messages < limits::QUEUE_MIN || (messages < limits::QUEUE_MAX && !too_large) {
        return Ok(());
    }
    let detail = format!("{messages} messages with {bytes} bytes wait already");
    Err(Refusal::new(ErrorCode::QueueFull, detail))
}

pub(super) fn shape(tx: &mut Transaction<'_>, new: NewMessage) -> Result<Message, Refusal> {
    let kind = new.kind.unwrap_or(MessageKind::OperatorPrompt);
    let origin = if new.from_agent.is_some() { OriginKind::Agent } else { kind.usual_origin() };
    if !kind.admits(origin) {
        return Err(Refusal::new(ErrorCode::KindOriginMismatch, format!("a {kind} can't come from {origin}")));
    }
    if let Some(supervisor) =
        tx.state.definition.identity.supervisor.as_ref().filter(|_| kind == MessageKind::OperatorPrompt)
    {
        return Err(Refusal::new(
            ErrorCode::Supervised,
            format!("{} works for {}, and takes no operator's messages", tx.state.id(), supervisor.agent_id),
        )
        .fill("agent", &supervisor.agent_id));
    }
    let priority = new.priority.unwrap_or(kind.usual_priority());
    if priority == Priority::Interject && kind != MessageKind::OperatorPrompt {
        return Err(Refusal::new(ErrorCode::OnlyOperatorsInterject, format!("a {kind} can't interject")));
    }
    let size = body_bytes(new.text.as_deref(), new.json.as_ref());
    if size > limits::MESSAGE_BYTES as u64 {
        return Err(Refusal::new(
            ErrorCode::MessageTooLarge,
            format!("the message has {size} bytes, the limit is {}", limits::MESSAGE_BYTES),
        ));
    }
    if let Some(id) = &new.trigger_id {
        match tx.state.planes.triggers.get(id).map(|trigger| trigger.delivery_mode) {
            Some(DeliveryMode::EnqueueMessage) => {}
            Some(DeliveryMode::WakeHint) => {
                return Err(Refusal::new(ErrorCode::TriggerOnlyWakes, format!("{id} only wakes the agent")));
            }
            None => {
                return Err(Refusal::new(ErrorCode::NotFound, format!("{id} is not a trigger of this agent"))
                    .with_hint("create it"));
            }
        }
    }
    let message_id = new.message_id.unwrap_or_else(|| tx.fresh.message());
    if tx.state.planes.queue.get(&message_id).is_some() {
        return Err(Refusal::new(ErrorCode::DuplicateMessage, format!("{message_id} is here already")));
    }
    let origin_id = new.from_agent.as_ref().map(|agent| agent.as_str().to_owned()).or(new.origin_id);
    let trigger_item = new.trigger_id.as_ref().and_then(|id| tx.state.planes.triggers.get(id)?.work_item_id.clone());
    let trust = if new.same_tree && origin == OriginKind::Agent { Trust::TrustedIntegration } else { origin.trust() };
    let labels = Labels {
        correlation_id: new.correlation_id,
        causation_id: new.causation_id,
        idempotency_key: new.idempotency_key,
    };
    let work_item_id = new.work_item_id.or(trigger_item);
    // Surfaces may send a kind that is usually the runtime's own: then it names no more than this.
    let subject = SubjectRecord { work_item_id, trigger_id: new.trigger_id, labels, ..SubjectRecord::of(kind) };
    Ok(Message {
        message_id,
        subject: Subject::from(subject),
        origin: Origin { kind: origin, id: origin_id },
        trust,
        priority,
        text: new.text,
        json: new.json,
        self_caused: origin == OriginKind::Agent && !new.from_outside,
    })
}

pub(super) fn wake(
    tx: &mut Transaction<'_>,
    reason: String,
    source: Option<String>,
    resource: Option<String>,
    body: Option<String>,
) -> Result<Answer, Refusal> {
    let long =
        [Some(&reason), source.as_ref(), resource.as_ref()].into_iter().flatten().any(|t| t.len() > limits::LINE_BYTES);
    if long || body.as_ref().is_some_and(|body| body.len() > limits::TEXT_BYTES) {
        return Err(Refusal::new(ErrorCode::WakeTooLarge, "the wake hint is too large"));
    }
    let source = resource.clone().or(source).unwrap_or_else(|| "operator".to_owned());
    let generation = tx.state.planes.hints.next_generation();
    let status = tx.state.status();
    let (disposition, why) = if status == Status::Stopped {
        (Disposition::Ignored, "the agent is stopped; start it first")
    } else if tx.state.planes.hints.sources() >= limits::HINT_SOURCES_MAX && !tx.state.planes.hints.has_source(&source)
    {
        return Err(Refusal::new(ErrorCode::TooManyHints, "too many sources have hints pending"));
    } else if status == Status::AwakeRunning {
        (Disposition::Coalesced, "a turn is running; the hint follows it")
    } else if tx.state.planes.queue.queued() > 0 {
        (Disposition::Coalesced, "messages are queued; the hint follows them")
    } else if tx.state.planes.hints.pending().contains_key(&source) {
        (Disposition::Coalesced, "a hint of this source is pending already")
    } else {
        (Disposition::Triggered, "the agent will look")
    };
    let evidence = vec![format!("status {status}")];
    match disposition {
        Disposition::Triggered | Disposition::Parked => {
            tx.emit(WakeHintSubmitted { source: source.clone(), generation, reason, resource, body, evidence });
            let (disposition, reason) = outlook(tx, &source).unwrap_or((disposition, why.to_owned()));
            return Ok(Answer::Woken { disposition, reason });
        }
        Disposition::Coalesced => {
            tx.emit(WakeHintCoalesced { source, generation, reason, resource, body, evidence });
        }
        Disposition::Ignored => tx.emit(WakeHintIgnored { source, generation, reason, resource, body, evidence }),
    }
    Ok(Answer::Woken { disposition, reason: why.to_owned() })
}

/// The fate of a hint that was just submitted, where the agent does not simply look: the tick that it becomes is
/// classified by the rules that will be applied to it.
fn outlook(tx: &mut Transaction<'_>, source: &str) -> Option<(Disposition, String)> {
    let message_id = tx.fresh.message();
    let hint = tx.state.planes.hints.deliverable().filter(|hint| hint.source == source)?;
    match classify(tx.state, &make_hint_tick(tx.state, message_id, hint)) {
        Classification::Reenter { .. } => None,
        Classification::Reduce { .. } => Some((
            Disposition::Triggered,
            "the agent takes note of it without a turn; work in backoff is due now".to_owned(),
        )),
        Classification::Park { behind, .. } => {
            let waits: Vec<&str> = behind.iter().map(WaitId::as_str).collect();
            let waits = waits.join(", ");
            Some((Disposition::Parked, format!("it is parked behind {waits}, and taken when that ends")))
        }
    }
}
