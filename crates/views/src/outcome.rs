//! The outcome of a message: what it came to, or what its agent does about it now.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, WaitId};
use crate::message::{BriefView, MessageView};
use crate::time::Time;
use crate::vocabulary::ProviderError;

/// Answered, failed, aborted and given-up messages stay what they are. One that waits for a person, that a budget holds
/// back or whose agent is stopped goes on when a person has acted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum MessageOutcome {
    Answered {
        /// The answer, where no brief has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// The model had more to say than it may write.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    Failed {
        /// The reason, in the words of the runtime or of the provider.
        error: String,
        /// The class of the provider's error, where a provider failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ProviderError>,
        /// The next step for a person.
        hint: String,
    },
    WaitsForPerson {
        /// A question to answer, or a thing to do.
        question: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ProviderError>,
    },
    BudgetSpent {
        /// The budget, and the command that raises it.
        sentence: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ProviderError>,
    },
    Stopped {
        sentence: String,
    },
    /// An operator ended its turn.
    Aborted {},
    UnderWay {
        /// The present activity of the agent, or the thing that it waits for.
        sentence: String,
        /// The message whose turn it joined: the answer is for both.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joined: Option<MessageId>,
        /// The wait that it is parked behind, or that stands before its answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_on: Option<WaitId>,
        /// Why it takes longer than usual.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<MessageDelay>,
    },
}

/// A delay that ends by itself: a provider that is asked again later, or a disk without room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageDelay {
    /// Tells this delay from later ones.
    pub delay_id: String,
    /// When the agent tries again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    pub sentence: String,
}

/// One message, whole, with its outcome and the briefs about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageDetail {
    #[serde(flatten)]
    pub message: MessageView,
    #[serde(flatten)]
    pub outcome: MessageOutcome,
    /// The newest brief of each kind, oldest first. Those of a message that joined another one are that one's.
    #[serde(default)]
    pub briefs: Vec<BriefView>,
}

impl MessageOutcome {
    /// Whether the agent goes on with the message by itself, so that waiting makes sense.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self, MessageOutcome::UnderWay { .. })
    }

    #[must_use]
    pub fn delay(&self) -> Option<&MessageDelay> {
        match self {
            MessageOutcome::UnderWay { delay, .. } => delay.as_ref(),
            MessageOutcome::Answered { .. }
            | MessageOutcome::Failed { .. }
            | MessageOutcome::WaitsForPerson { .. }
            | MessageOutcome::BudgetSpent { .. }
            | MessageOutcome::Stopped { .. }
            | MessageOutcome::Aborted {} => None,
        }
    }
}
