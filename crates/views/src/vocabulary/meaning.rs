//! Properties of a word alone, whatever the state.

use super::{
    DecisionKind, MessageKind, OriginKind, Priority, QueueStatus, TaskStatus, TerminalKind, TodoState, TriggerKind,
    Trust, WorkspaceMode,
};

impl TaskStatus {
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            TaskStatus::Queued | TaskStatus::Running | TaskStatus::Cancelling => false,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled | TaskStatus::Interrupted => true,
        }
    }
}

impl TerminalKind {
    /// All but a completed turn are failures for closure.
    #[must_use]
    pub fn is_failure(self) -> bool {
        self != TerminalKind::Completed
    }
}

impl QueueStatus {
    /// Whether a message in this status is an input again after a restart.
    #[must_use]
    pub fn replays(self) -> bool {
        match self {
            QueueStatus::Queued | QueueStatus::Dequeued => true,
            QueueStatus::Processed
            | QueueStatus::Interjected
            | QueueStatus::Aborted
            | QueueStatus::Dropped
            | QueueStatus::Parked => false,
        }
    }
}

impl DecisionKind {
    /// Decisions that leave the agent asleep until something new is admitted or comes due.
    #[must_use]
    pub fn is_rest(self) -> bool {
        match self {
            DecisionKind::WaitForTask
            | DecisionKind::WaitForExternalChange
            | DecisionKind::WaitForTimer
            | DecisionKind::WaitForOperator
            | DecisionKind::Sleep
            | DecisionKind::StayIdle => true,
            DecisionKind::StartModelTurn
            | DecisionKind::ReduceMessageOnly
            | DecisionKind::EmitSystemTick
            | DecisionKind::Stop
            | DecisionKind::Noop => false,
        }
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

impl TriggerKind {
    #[must_use]
    pub fn of(kind: MessageKind) -> TriggerKind {
        match kind {
            MessageKind::OperatorPrompt => TriggerKind::OperatorInput,
            MessageKind::TaskResult | MessageKind::TaskStatus => TriggerKind::TaskResult,
            MessageKind::ChannelEvent | MessageKind::WebhookEvent | MessageKind::CallbackEvent => {
                TriggerKind::ExternalEvent
            }
            MessageKind::TimerTick => TriggerKind::TimerFire,
            MessageKind::InternalFollowup => TriggerKind::InternalFollowup,
            MessageKind::SystemTick | MessageKind::Control | MessageKind::BriefAck | MessageKind::BriefResult => {
                TriggerKind::SystemTick
            }
        }
    }
}

#[allow(clippy::derivable_impls, reason = "words are declared by a macro")]
impl Default for TodoState {
    fn default() -> Self {
        TodoState::Pending
    }
}

#[allow(clippy::derivable_impls, reason = "words are declared by a macro")]
impl Default for WorkspaceMode {
    fn default() -> Self {
        WorkspaceMode::Direct
    }
}
