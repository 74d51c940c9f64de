//! The effect of a message that is taken now: it resumes a wait, starts something of its own, or stands aside.

use abide_kernel::fact::Resource;
use abide_kernel::id::{MessageId, WaitId};
use abide_kernel::message::Message;
use abide_kernel::vocabulary::{DeliveryMode, MessageKind, QueueStatus, TickKind, WaitKind, WaitSource};

use super::{Entry, Model, Wait, contentful};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// `resume_expected_wait`; these waits end with it, oldest first.
    Resume(Vec<WaitId>),
    /// `resume_override`
    Override,
    /// `local_continuation`
    Local,
    /// A turn had begun for it, and was cut.
    Replay,
    LivenessOnly,
    Parked,
}

impl Verdict {
    #[must_use]
    pub fn reenters(&self) -> bool {
        match self {
            Verdict::Resume(_) | Verdict::Override | Verdict::Local | Verdict::Replay => true,
            Verdict::LivenessOnly | Verdict::Parked => false,
        }
    }
}

impl Model {
    /// How the message would be classified if it were taken now.
    #[must_use]
    pub fn classify(&self, id: &MessageId) -> Option<Verdict> {
        self.entry(id).map(|entry| self.verdict(entry))
    }

    /// Parked messages that nothing holds back any more. Between two commits there are none.
    #[must_use]
    pub fn parked_in_vain(&self) -> Vec<MessageId> {
        let parked = self.messages.iter().filter(|entry| entry.status == QueueStatus::Parked);
        parked
            .filter(|entry| self.verdict(entry) != Verdict::Parked)
            .map(|entry| entry.message.message_id.clone())
            .collect()
    }

    pub(super) fn verdict(&self, entry: &Entry) -> Verdict {
        let message = &*entry.message;
        if entry.taken > 0 {
            return Verdict::Replay;
        }
        if self.is_news_of_an_open_task(message) {
            return Verdict::LivenessOnly;
        }
        let resumed = self.waits_resumed_by(message);
        if !resumed.is_empty() {
            return Verdict::Resume(resumed);
        }
        self.without_a_wait_of_its_own(message)
    }

    /// The table of the specification.
    fn without_a_wait_of_its_own(&self, message: &Message) -> Verdict {
        let awaited = self.open_waits().any(|wait| {
            let counts = match &wait.work_item_id {
                None => true,
                Some(item) => message.work_item_id() == Some(item),
            };
            counts && wait.holds_back_input()
        });
        let overriding = if awaited { Verdict::Override } else { Verdict::Local };
        let yielding = if awaited { Verdict::Parked } else { Verdict::Local };
        match message.kind() {
            MessageKind::OperatorPrompt | MessageKind::TaskResult => overriding,
            MessageKind::ChannelEvent | MessageKind::WebhookEvent | MessageKind::CallbackEvent => {
                if !contentful(message) {
                    Verdict::LivenessOnly
                } else if self.is_delivery_of_a_standing_trigger(message) {
                    overriding
                } else {
                    yielding
                }
            }
            // One that came with a wait (it would have matched it) is late; any other stands on its own.
            MessageKind::TimerTick => {
                if message.waiting_intent_id().is_some() || !contentful(message) {
                    Verdict::LivenessOnly
                } else {
                    overriding
                }
            }
            MessageKind::InternalFollowup => yielding,
            MessageKind::SystemTick => match message.tick() {
                Some(TickKind::ContinueActive | TickKind::QueuedAvailable | TickKind::Recheck) => overriding,
                Some(TickKind::WakeHint) | None => {
                    if contentful(message) {
                        yielding
                    } else {
                        Verdict::LivenessOnly
                    }
                }
            },
            MessageKind::TaskStatus | MessageKind::Control | MessageKind::BriefAck | MessageKind::BriefResult => {
                Verdict::LivenessOnly
            }
        }
    }

    /// Every open wait that the message names or satisfies.
    fn waits_resumed_by(&self, message: &Message) -> Vec<WaitId> {
        let answered = self.operator_wait_answered_by(message);
        self.open_waits()
            .filter(|wait| match &wait.resource {
                _ if names_wait(message, wait) => true,
                Some(resource) => names_resource(message, resource),
                None => match wait.kind {
                    WaitKind::Operator => answered.as_ref() == Some(&wait.id),
                    WaitKind::Task => message.kind() == MessageKind::TaskResult,
                    WaitKind::External => is_external(message) && contentful(message),
                    WaitKind::Timer => message.kind() == MessageKind::TimerTick,
                    WaitKind::Sleep => false,
                },
            })
            .map(|wait| wait.id.clone())
            .collect()
    }

    /// An operator's message answers one question: the current item's, else the newest.
    fn operator_wait_answered_by(&self, message: &Message) -> Option<WaitId> {
        if message.kind() != MessageKind::OperatorPrompt {
            return None;
        }
        let questions = || self.open_waits().filter(|wait| wait.kind == WaitKind::Operator && wait.resource.is_none());
        let of_focus = questions().filter(|wait| wait.work_item_id.is_some() && wait.work_item_id == self.focus).last();
        of_focus.or_else(|| questions().last()).map(|wait| wait.id.clone())
    }

    fn is_news_of_an_open_task(&self, message: &Message) -> bool {
        match message.kind() {
            MessageKind::TaskStatus => true,
            MessageKind::TaskResult => {
                self.tasks.iter().any(|task| Some(&task.id) == message.task_id() && !task.terminal)
            }
            MessageKind::OperatorPrompt
            | MessageKind::ChannelEvent
            | MessageKind::WebhookEvent
            | MessageKind::CallbackEvent
            | MessageKind::TimerTick
            | MessageKind::SystemTick
            | MessageKind::Control
            | MessageKind::InternalFollowup
            | MessageKind::BriefAck
            | MessageKind::BriefResult => false,
        }
    }

    fn is_delivery_of_a_standing_trigger(&self, message: &Message) -> bool {
        self.triggers.iter().any(|trigger| {
            Some(&trigger.id) == message.trigger_id() && trigger.delivery_mode == DeliveryMode::EnqueueMessage
        })
    }
}

impl Wait {
    /// Other input stands back while this is open.
    fn holds_back_input(&self) -> bool {
        let asked_by_runtime = match self.source {
            WaitSource::Runtime => true,
            WaitSource::Model | WaitSource::Operator => false,
        };
        self.kind != WaitKind::Sleep && !asked_by_runtime
    }
}

/// A hint can name any wait, and is something from outside: it ends only a wait for that.
fn names_wait(message: &Message, wait: &Wait) -> bool {
    let may_end = message.kind() == MessageKind::TimerTick
        || (message.kind() == MessageKind::SystemTick && wait.kind == WaitKind::External);
    may_end && message.waiting_intent_id() == Some(&wait.id)
}

fn names_resource(message: &Message, resource: &Resource) -> bool {
    match resource {
        Resource::Task(id) => message.kind() == MessageKind::TaskResult && message.task_id() == Some(id),
        Resource::Trigger(id) => message.trigger_id() == Some(id),
        Resource::Correlation(id) => message.correlation_id() == Some(id),
        Resource::Timer(id) => message.kind() == MessageKind::TimerTick && message.timer_id() == Some(id),
        Resource::Approval(id) => message.approval_id() == Some(id),
    }
}

fn is_external(message: &Message) -> bool {
    matches!(message.kind(), MessageKind::ChannelEvent | MessageKind::WebhookEvent | MessageKind::CallbackEvent)
}
