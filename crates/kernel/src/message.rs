//! A message: one unit of ingress. An input to scheduling, never by itself proof that a turn should run.

mod stored;
mod subject;

use serde::{Deserialize, Serialize};

pub use subject::{EventSource, HintResource, Labels, OfferedItem, Subject, SubjectRecord};

use crate::id::{ApprovalId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use crate::limits;
use crate::open_json::JsonBody;
use crate::vocabulary::{MessageKind, OriginKind, Priority, TickKind, Trust};

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub message_id: MessageId,
    pub subject: Subject,
    pub origin: Origin,
    pub trust: Trust,
    pub priority: Priority,
    pub text: Option<String>,
    pub json: Option<JsonBody>,
    /// The agent caused it itself, by a timer or a task of its own for example, or another agent sent it in a turn that
    /// nothing from outside had started. Turns about such messages are paced.
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
    /// A message about a subject, without a body; the usual origin, trust and priority follow from its kind.
    #[must_use]
    pub fn new(message_id: MessageId, subject: impl Into<Subject>) -> Message {
        let subject = subject.into();
        let kind = subject.kind();
        let origin = kind.usual_origin();
        Message {
            message_id,
            subject,
            origin: Origin::of(origin, None),
            trust: origin.trust(),
            priority: kind.usual_priority(),
            text: None,
            json: None,
            self_caused: false,
        }
    }

    /// The same without its body. The members are named one by one, so that a long body is never copied.
    fn without_body(&self) -> Message {
        Message {
            message_id: self.message_id.clone(),
            subject: self.subject.clone(),
            origin: self.origin.clone(),
            trust: self.trust,
            priority: self.priority,
            text: None,
            json: None,
            self_caused: self.self_caused,
        }
    }

    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.subject.kind()
    }

    #[must_use]
    pub fn tick(&self) -> Option<TickKind> {
        self.subject.tick()
    }

    #[must_use]
    pub fn work_item_id(&self) -> Option<&WorkItemId> {
        self.subject.work_item_id()
    }

    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        self.subject.task_id()
    }

    #[must_use]
    pub fn timer_id(&self) -> Option<&TimerId> {
        self.subject.timer_id()
    }

    #[must_use]
    pub fn trigger_id(&self) -> Option<&TriggerId> {
        self.subject.trigger_id()
    }

    #[must_use]
    pub fn approval_id(&self) -> Option<&ApprovalId> {
        self.subject.approval_id()
    }

    #[must_use]
    pub fn waiting_intent_id(&self) -> Option<&WaitId> {
        self.subject.waiting_intent_id()
    }

    #[must_use]
    pub fn answers(&self) -> Option<&MessageId> {
        self.subject.answers()
    }

    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.subject.correlation_id()
    }

    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.subject.idempotency_key()
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
        matches!(self.tick(), Some(TickKind::ContinueActive | TickKind::QueuedAvailable))
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
        matches!(self.kind(), MessageKind::TimerTick | MessageKind::SystemTick)
    }
}

/// The length of a text and of JSON as it is written.
pub(crate) fn body_bytes(text: Option<&str>, json: Option<&JsonBody>) -> u64 {
    let json = json.map_or(0, |json| serde_json::to_string(json).map_or(0, |text| text.len()));
    (text.map_or(0, str::len) + json) as u64
}
