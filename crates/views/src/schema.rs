//! Schemas of what is written as one string. Answers show ids, times and words as strings without a list of them, because
//! a list in the document could never grow; what a request may say is listed.

use std::borrow::Cow;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::id::{
    AgentId, ApprovalId, BriefId, CallId, ExecId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId,
};
use crate::time::Time;
use crate::vocabulary::{
    AgentKind, ApprovalDefault, ApprovalStatus, Boundary, BriefKind, CatchUp, ClosureOutcome, ContinuationClass,
    DecisionKind, DeliveryMode, Disposition, Maker, MessageKind, OriginKind, Ownership, PlanStatus, Posture, Priority,
    ProviderError, QueueStatus, ReadStatus, Reason, Role, RuntimePosture, Scope, Standing, Status, TaskKind,
    TaskStatus, TimerStatus, TodoState, ToolStatus, TranscriptRole, TriggerKind, TriggerStatus, Trust, Visibility,
    WaitKind, WaitSource, WaitStatus, WaitingReason, WorkItemState, WorkspaceMode, WorkspaceStatus,
};

/// The name under which all plain strings are put into the document. Its generator puts `type: string` in the place of every
/// reference to it.
pub const PLAIN_STRING: &str = "PlainString";

macro_rules! plain_strings {
    ($($name:ident)*) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                PLAIN_STRING.into()
            }
        }
    )*};
}

plain_strings! {
    AgentId ApprovalId BriefId CallId ExecId MessageId TaskId TimerId TriggerId WaitId WorkItemId
    Time
    AgentKind ApprovalDefault ApprovalStatus Boundary BriefKind ClosureOutcome ContinuationClass DecisionKind Disposition Maker
    MessageKind OriginKind Ownership Posture ProviderError QueueStatus ReadStatus Reason RuntimePosture Scope Standing Status TaskKind
    TaskStatus TimerStatus ToolStatus TranscriptRole TriggerKind TriggerStatus Trust Visibility WaitKind WaitSource WaitStatus
    WaitingReason WorkItemState WorkspaceStatus
}

macro_rules! listed_words {
    ($($name:ident)*) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = $name::ALL.iter().map(|word| word.as_str());
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

listed_words! { CatchUp DeliveryMode PlanStatus Priority Role TodoState WorkspaceMode }
