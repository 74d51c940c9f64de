//! A message: one unit of ingress. An input to scheduling, never by itself proof that a turn should run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ApprovalId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use crate::limits;
use crate::vocabulary::{MessageKind, OriginKind, Priority, TickKind, Trust};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub message_id: MessageId,
    pub kind: MessageKind,
    pub origin: Origin,
    pub trust: Trust,
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_id: Option<TimerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<TriggerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_intent_id: Option<WaitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<TickKind>,
    /// The operator's message that is still unanswered because of what this one is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The agent caused it itself, by a timer or a task of its own for example, or another agent sent it in a turn that
    /// nothing from outside had started. Turns about such messages are paced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_caused: bool,
}

/// Who a message came from: the kind of sender, and which one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    pub kind: OriginKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Origin {
    #[must_use]
    pub fn of(kind: OriginKind, id: Option<&str>) -> Origin {
        Origin { kind, id: id.map(str::to_owned) }
    }
}

impl Message {
    /// A message with nothing but its kind; trust and the usual origin and priority follow from that.
    #[must_use]
    pub fn bare(message_id: MessageId, kind: MessageKind) -> Message {
        let origin = kind.usual_origin();
        Message {
            message_id,
            kind,
            origin: Origin::of(origin, None),
            trust: origin.trust(),
            priority: kind.usual_priority(),
            text: None,
            json: None,
            work_item_id: None,
            task_id: None,
            timer_id: None,
            trigger_id: None,
            approval_id: None,
            waiting_intent_id: None,
            tick: None,
            answers: None,
            correlation_id: None,
            causation_id: None,
            idempotency_key: None,
            self_caused: false,
        }
    }

    fn without_body(&self) -> Message {
        // Named one by one, so that a long body is never copied.
        Message {
            message_id: self.message_id.clone(),
            kind: self.kind,
            origin: self.origin.clone(),
            trust: self.trust,
            priority: self.priority,
            text: None,
            json: None,
            work_item_id: self.work_item_id.clone(),
            task_id: self.task_id.clone(),
            timer_id: self.timer_id.clone(),
            trigger_id: self.trigger_id.clone(),
            approval_id: self.approval_id.clone(),
            waiting_intent_id: self.waiting_intent_id.clone(),
            tick: self.tick,
            answers: self.answers.clone(),
            correlation_id: self.correlation_id.clone(),
            causation_id: self.causation_id.clone(),
            idempotency_key: self.idempotency_key.clone(),
            self_caused: self.self_caused,
        }
    }

    /// The length of the body: of the text and of the JSON as it is written.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        body_bytes(self.text.as_deref(), self.json.as_ref())
    }

    /// The same message with the beginning of its body, `max` bytes of text, where the body is longer than that. An excerpt
    /// has something to read exactly if the message has.
    #[must_use]
    pub fn excerpt(&self, max: usize) -> Option<Message> {
        if self.body_bytes() <= max as u64 {
            return None;
        }
        let text = self.text.as_deref().map(str::trim_start).filter(|text| !text.is_empty());
        let json = self.json.as_ref().filter(|json| !json.is_null());
        let text = match (text, json) {
            (Some(text), _) => Some(limits::clip(text, max).to_owned()),
            (None, Some(json)) => Some(limits::clip(&json.to_string(), max).to_owned()),
            (None, None) => None,
        };
        Some(Message { text, ..self.without_body() })
    }

    /// Whether there is anything in it for a model to read.
    #[must_use]
    pub fn is_contentful(&self) -> bool {
        self.text.as_deref().is_some_and(|text| !text.trim().is_empty())
            || self.json.as_ref().is_some_and(|json| !json.is_null())
    }

    /// A tick that offers runnable work to the model.
    #[must_use]
    pub fn is_work_tick(&self) -> bool {
        matches!(self.tick, Some(TickKind::ContinueActive | TickKind::QueuedAvailable))
    }

    /// Whether a turn about it comes straight from outside: from a person, a trigger or a person's timer, through no other
    /// agent and no work that is offered.
    #[must_use]
    pub fn is_from_outside(&self) -> bool {
        !self.self_caused && !self.is_work_tick() && self.origin.kind != OriginKind::Agent
    }

    /// Made by the runtime itself because time passed or work is there: what fairness holds back.
    #[must_use]
    pub fn is_self_made_tick(&self) -> bool {
        matches!(self.kind, MessageKind::TimerTick | MessageKind::SystemTick)
    }
}

/// The length of a text and of JSON as it is written.
pub(crate) fn body_bytes(text: Option<&str>, json: Option<&Value>) -> u64 {
    let json = json.map_or(0, |json| serde_json::to_string(json).map_or(0, |text| text.len()));
    (text.map_or(0, str::len) + json) as u64
}
