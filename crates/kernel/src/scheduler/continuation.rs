//! Continuation: whether and how a message re-enters the model.
//!
//! A message is classified when it is taken. It is matched against every open wait first; only then do the other open waits
//! count. A message that can't re-enter yet is parked, never consumed.

use crate::continuation::Continuation;
use crate::fact::Resource;
use crate::id::WaitId;
use crate::message::Message;
use crate::state::AgentState;
use crate::state::queue::Entry;
use crate::vocabulary::{ContinuationClass, MessageKind, Scope, TickKind, TriggerKind, WaitKind};

/// The treatment of a message that would be taken now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classification {
    /// It starts a turn, and ends these waits.
    Reenter { continuation: Continuation, matched: Vec<WaitId> },
    /// It is reduced without a turn.
    Reduce { continuation: Continuation },
    /// It keeps its place behind what is awaited.
    Park { continuation: Continuation, behind: Vec<WaitId> },
}

impl Classification {
    #[must_use]
    pub fn continuation(&self) -> &Continuation {
        match self {
            Classification::Reenter { continuation, .. }
            | Classification::Reduce { continuation }
            | Classification::Park { continuation, .. } => continuation,
        }
    }
}

/// Classifies a queued message. A message that was taken before is the same delivery again.
#[must_use]
pub fn classify_entry(state: &AgentState, entry: &Entry) -> Classification {
    match &entry.continuation {
        Some(continuation) => {
            let mut continuation = continuation.clone();
            continuation.evidence.push("replayed".to_owned());
            Classification::Reenter { continuation, matched: matching_waits(state, &entry.message) }
        }
        None => classify(state, &entry.message),
    }
}

#[must_use]
pub fn classify(state: &AgentState, message: &Message) -> Classification {
    let matched = matching_waits(state, message);
    if !matched.is_empty() {
        let evidence = matched.iter().map(|id| format!("matched {id}")).collect();
        let continuation = make_continuation(message, ContinuationClass::ResumeExpectedWait, evidence);
        return Classification::Reenter { continuation, matched };
    }
    if let Some(why) = liveness_reason(state, message) {
        let continuation = make_continuation(message, ContinuationClass::LivenessOnly, vec![why.to_owned()]);
        return Classification::Reduce { continuation };
    }
    let parking = state.planes.waits.parking_count(message.work_item_id());
    if parking == 0 || stands_on_its_own(message) {
        let why = if parking == 0 { "no_wait_open" } else { "stands_on_its_own" };
        let continuation = make_continuation(message, ContinuationClass::LocalContinuation, vec![why.to_owned()]);
        return Classification::Reenter { continuation, matched };
    }
    let evidence = vec![format!("waits_open {parking}")];
    if may_override(message.kind()) {
        let continuation = make_continuation(message, ContinuationClass::ResumeOverride, evidence);
        return Classification::Reenter { continuation, matched };
    }
    let behind = state.planes.waits.parking_waits(message.work_item_id()).take(8);
    let behind = behind.map(|wait| wait.waiting_intent_id.clone()).collect();
    Classification::Park { continuation: make_continuation(message, ContinuationClass::LivenessOnly, evidence), behind }
}

fn make_continuation(message: &Message, class: ContinuationClass, evidence: Vec<String>) -> Continuation {
    Continuation {
        trigger_kind: TriggerKind::of(message.kind()),
        class,
        model_reentry: class != ContinuationClass::LivenessOnly,
        matched_waiting_reason: class == ContinuationClass::ResumeExpectedWait,
        evidence,
    }
}

/// The open waits that a message ends: those that name what it is about, and those of its kind that name nothing.
#[must_use]
pub fn matching_waits(state: &AgentState, message: &Message) -> Vec<WaitId> {
    let waits = &state.planes.waits;
    let id = |wait: &crate::state::waiting::Wait| wait.waiting_intent_id.clone();
    let mut matched: Vec<WaitId> = Vec::new();
    match message.kind() {
        MessageKind::OperatorPrompt => matched.extend(find_operator_wait(state)),
        MessageKind::TaskResult => {
            if let Some(task) = message.task_id() {
                if state.planes.tasks.open().contains_key(task) {
                    return matched;
                }
                matched.extend(waits.waits_naming(&Resource::Task(task.clone())).map(id));
            }
            matched.extend(waits.unnamed_waits(WaitKind::Task).map(id));
        }
        MessageKind::ChannelEvent | MessageKind::WebhookEvent | MessageKind::CallbackEvent => {
            matched.extend(named_external_waits(state, message));
            if message.is_contentful() {
                matched.extend(waits.unnamed_waits(WaitKind::External).map(id));
            }
        }
        MessageKind::TimerTick => {
            if let Some(timer) = message.timer_id() {
                matched.extend(waits.waits_naming(&Resource::Timer(timer.clone())).map(id));
            }
            matched.extend(waits.unnamed_waits(WaitKind::Timer).map(id));
        }
        MessageKind::SystemTick if message.tick() == Some(TickKind::WakeHint) => {
            matched.extend(named_external_waits(state, message));
        }
        MessageKind::InternalFollowup => {
            if let Some(approval) = message.approval_id() {
                matched.extend(waits.waits_naming(&Resource::Approval(approval.clone())).map(id));
            }
            matched.extend(named_external_waits(state, message));
        }
        MessageKind::SystemTick
        | MessageKind::TaskStatus
        | MessageKind::Control
        | MessageKind::BriefAck
        | MessageKind::BriefResult => {}
    }
    matched.sort();
    matched.dedup();
    matched
}

/// An operator's message ends the question of the item in focus, else the newest one.
fn find_operator_wait(state: &AgentState) -> Option<WaitId> {
    let is_question = |wait: &&crate::state::waiting::Wait| wait.kind == WaitKind::Operator && wait.resource.is_none();
    let of_current = state
        .planes
        .work
        .current_id()
        .and_then(|item| state.planes.waits.of_item(item).filter(is_question).max_by_key(|wait| wait.seq));
    let newest = || {
        let of = |scope| state.planes.waits.of_kind(scope, WaitKind::Operator).rev().find(is_question);
        [of(Scope::Agent), of(Scope::WorkItem)].into_iter().flatten().max_by_key(|wait| wait.seq)
    };
    of_current.or_else(newest).map(|wait| wait.waiting_intent_id.clone())
}

/// External waits that name the trigger, the correlation or the wait itself that the message speaks of.
fn named_external_waits(state: &AgentState, message: &Message) -> Vec<WaitId> {
    let mut found = Vec::new();
    let mut of = |resource: Resource| {
        found.extend(state.planes.waits.waits_naming(&resource).map(|wait| wait.waiting_intent_id.clone()));
    };
    if let Some(trigger) = message.trigger_id() {
        of(Resource::Trigger(trigger.clone()));
    }
    if let Some(correlation) = message.correlation_id() {
        of(Resource::Correlation(correlation.to_owned()));
    }
    let external = |id: &&WaitId| state.planes.waits.get(id).is_some_and(|wait| wait.kind == WaitKind::External);
    found.extend(message.waiting_intent_id().into_iter().filter(external).cloned());
    found
}

/// The reason for which a message that matches no wait starts no turn, if there is one.
fn liveness_reason(state: &AgentState, message: &Message) -> Option<&'static str> {
    match message.kind() {
        MessageKind::TaskStatus => Some("non_terminal_task_status"),
        MessageKind::Control | MessageKind::BriefAck | MessageKind::BriefResult => Some("control_plane_update"),
        MessageKind::TaskResult => {
            let running = message.task_id().is_some_and(|id| state.planes.tasks.open().contains_key(id));
            running.then_some("task_not_terminal")
        }
        MessageKind::TimerTick if message.waiting_intent_id().is_some() => Some("mismatched_timer"),
        MessageKind::SystemTick if matches!(message.tick(), Some(tick) if tick != TickKind::WakeHint) => None,
        MessageKind::TimerTick
        | MessageKind::SystemTick
        | MessageKind::ChannelEvent
        | MessageKind::WebhookEvent
        | MessageKind::CallbackEvent => (!message.is_contentful()).then_some("blank"),
        MessageKind::OperatorPrompt | MessageKind::InternalFollowup => None,
    }
}

/// Whether the message re-enters despite open waits: a schedule, a trigger that enqueues, and the runtime's own offers do.
fn stands_on_its_own(message: &Message) -> bool {
    match message.kind() {
        MessageKind::TimerTick => true,
        MessageKind::SystemTick => matches!(message.tick(), Some(tick) if tick != TickKind::WakeHint),
        MessageKind::ChannelEvent | MessageKind::WebhookEvent | MessageKind::CallbackEvent => {
            // Only a trigger that enqueues makes messages; that it was revoked since takes nothing back.
            message.trigger_id().is_some()
        }
        MessageKind::OperatorPrompt
        | MessageKind::TaskResult
        | MessageKind::TaskStatus
        | MessageKind::Control
        | MessageKind::InternalFollowup
        | MessageKind::BriefAck
        | MessageKind::BriefResult => false,
    }
}

/// Input that re-enters although something else is awaited, without satisfying it.
fn may_override(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::OperatorPrompt | MessageKind::TaskResult)
}
