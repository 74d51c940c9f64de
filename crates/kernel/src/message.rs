//! A message: one unit of ingress. An input to scheduling, never by itself proof that a turn should run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ApprovalId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
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
        }
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

    /// Made by the runtime itself because time passed or work is there: what fairness holds back.
    #[must_use]
    pub fn is_self_made_tick(&self) -> bool {
        matches!(self.kind, MessageKind::TimerTick | MessageKind::SystemTick)
    }
}

impl MessageKind {
    #[must_use]
    pub fn usual_origin(self) -> OriginKind {
        match self {
            MessageKind::OperatorPrompt => OriginKind::Operator,
            MessageKind::ChannelEvent => OriginKind::Channel,
            MessageKind::WebhookEvent => OriginKind::Webhook,
            MessageKind::CallbackEvent => OriginKind::Callback,
            MessageKind::TimerTick => OriginKind::Timer,
            MessageKind::TaskResult | MessageKind::TaskStatus => OriginKind::Task,
            MessageKind::SystemTick
            | MessageKind::Control
            | MessageKind::InternalFollowup
            | MessageKind::BriefAck
            | MessageKind::BriefResult => OriginKind::System,
        }
    }

    /// Which senders may send this kind at all.
    #[must_use]
    pub fn admits(self, origin: OriginKind) -> bool {
        origin == self.usual_origin() || (self == MessageKind::ChannelEvent && origin == OriginKind::Agent)
    }

    #[must_use]
    pub fn usual_priority(self) -> Priority {
        match self {
            MessageKind::TimerTick | MessageKind::TaskResult => Priority::Next,
            MessageKind::OperatorPrompt
            | MessageKind::ChannelEvent
            | MessageKind::WebhookEvent
            | MessageKind::CallbackEvent
            | MessageKind::SystemTick
            | MessageKind::TaskStatus
            | MessageKind::Control
            | MessageKind::InternalFollowup
            | MessageKind::BriefAck
            | MessageKind::BriefResult => Priority::Normal,
        }
    }
}

impl OriginKind {
    /// Trust follows from how a message was admitted, never from what it claims.
    #[must_use]
    pub fn trust(self) -> Trust {
        match self {
            OriginKind::Operator => Trust::TrustedOperator,
            OriginKind::System | OriginKind::Task | OriginKind::Timer => Trust::TrustedSystem,
            OriginKind::Webhook | OriginKind::Callback => Trust::TrustedIntegration,
            OriginKind::Channel | OriginKind::Agent => Trust::UntrustedExternal,
        }
    }
}
