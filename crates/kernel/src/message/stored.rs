//! The stored form of a message: one flat object, whose members and their order are those of every `message.queued` fact
//! that was ever written. Reading accepts every combination of members; `Subject` says which ones belong together.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::subject::{Labels, Subject, SubjectRecord};
use super::{Message, Origin};
use crate::id::{ApprovalId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use crate::open_json::JsonBody;
use crate::vocabulary::{MessageKind, Priority, TickKind, Trust};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMessage<'a> {
    message_id: MessageId,
    kind: MessageKind,
    origin: Cow<'a, Origin>,
    trust: Trust,
    priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<Cow<'a, JsonBody>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timer_id: Option<TimerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trigger_id: Option<TriggerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval_id: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_intent_id: Option<WaitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tick: Option<TickKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    causation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    self_caused: bool,
}

impl<'a> From<&'a Message> for StoredMessage<'a> {
    fn from(message: &'a Message) -> StoredMessage<'a> {
        let subject = message.subject.to_record();
        StoredMessage {
            message_id: message.message_id.clone(),
            kind: subject.kind,
            origin: Cow::Borrowed(&message.origin),
            trust: message.trust,
            priority: message.priority,
            text: message.text.as_deref().map(Cow::Borrowed),
            json: message.json.as_ref().map(Cow::Borrowed),
            work_item_id: subject.work_item_id,
            task_id: subject.task_id,
            timer_id: subject.timer_id,
            trigger_id: subject.trigger_id,
            approval_id: subject.approval_id,
            waiting_intent_id: subject.waiting_intent_id,
            tick: subject.tick,
            answers: subject.answers,
            correlation_id: subject.labels.correlation_id,
            causation_id: subject.labels.causation_id,
            idempotency_key: subject.labels.idempotency_key,
            self_caused: message.self_caused,
        }
    }
}

impl From<StoredMessage<'_>> for Message {
    fn from(stored: StoredMessage<'_>) -> Message {
        let subject = SubjectRecord {
            kind: stored.kind,
            work_item_id: stored.work_item_id,
            task_id: stored.task_id,
            timer_id: stored.timer_id,
            trigger_id: stored.trigger_id,
            approval_id: stored.approval_id,
            waiting_intent_id: stored.waiting_intent_id,
            tick: stored.tick,
            answers: stored.answers,
            labels: Labels {
                correlation_id: stored.correlation_id,
                causation_id: stored.causation_id,
                idempotency_key: stored.idempotency_key,
            },
        };
        Message {
            message_id: stored.message_id,
            subject: Subject::from(subject),
            origin: stored.origin.into_owned(),
            trust: stored.trust,
            priority: stored.priority,
            text: stored.text.map(Cow::into_owned),
            json: stored.json.map(Cow::into_owned),
            self_caused: stored.self_caused,
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredMessage::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message, D::Error> {
        StoredMessage::deserialize(deserializer).map(Message::from)
    }
}
