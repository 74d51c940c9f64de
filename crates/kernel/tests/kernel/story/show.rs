//! The look of a fact in a story. Facts that only ever go along with others are left out.

use abide_kernel::decision::Decision;
use abide_kernel::fact::{Fact, Resource, Schedule, TaskEnd, ToolFinished};
use abide_kernel::message::Message;
use abide_kernel::vocabulary::{TickKind, ToolStatus};

use super::names::span;

#[allow(clippy::wildcard_enum_match_arm, reason = "what is not shown goes along with what is")]
pub fn show(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::AgentArchived(_) => "archived".to_owned(),
        Fact::AgentQuarantined(fact) => format!("quarantined {}", fact.reason),
        Fact::AgentForked(fact) => format!("forked {}", fact.agent_id),
        Fact::ControlApplied(fact) => format!("control {} {}", fact.action, fact.next_status),
        Fact::SchedulerDecided(fact) => decision(&fact.decision),
        Fact::StaleOutcomeIgnored(_) => "stale".to_owned(),
        Fact::ClockSetBack(fact) => format!("clock set back from {} to {}", span(fact.from), span(fact.to)),
        Fact::SelfTurnsPaced(fact) => format!("paced to {} until {}", fact.per_hour, span(fact.not_before)),
        Fact::WorkTicksSpent(fact) => format!("{} work ticks spent with {} items open", fact.ticks, fact.open_items),
        Fact::DiskShort(fact) => format!("disk short: {}", fact.evidence),
        Fact::DiskHasRoom(_) => "disk has room".to_owned(),
        Fact::TurnsHeld(fact) => format!("held by {} until {}", fact.cause, fact.until),
        Fact::TurnsReleased(fact) => format!("released by {}", fact.evidence),
        Fact::WorkspaceReleased(fact) => format!("released {}{}", fact.workspace, about(" error", fact.error.as_ref())),
        Fact::MessageQueued(fact) => queued(&fact.message),
        Fact::MessageProcessed(fact) => format!("processed {}{}", fact.message_id, all(": ", &fact.ignored)),
        Fact::MessageInterjected(fact) => format!("interjected {} into {}", fact.message_id, fact.joined),
        Fact::MessageParked(fact) => format!("parked {}{}", fact.message_id, all(" behind ", &fact.behind)),
        Fact::MessageRequeued(fact) => {
            let until = fact.not_before.map(span);
            format!("requeued {} {}{}", fact.message_id, fact.reason, about(" until", until.as_ref()))
        }
        Fact::MessageAborted(fact) => {
            format!("aborted {}{}", fact.message_id, if fact.given_up { " given_up" } else { "" })
        }
        Fact::MessageDropped(fact) => format!("dropped {}{}", fact.message_id, all(": ", &fact.evidence)),
        Fact::TurnStarted(fact) => {
            let item = about(" of", fact.work_item_id.as_ref());
            format!("turn {}{item}{}", fact.continuation.class, all(" shows ", &fact.presents))
        }
        // A turn that was about no item is about the one it made or picked; only a change is worth a line.
        Fact::TurnBound(fact) => format!("turn leaves {} for {}", fact.previous.as_ref()?, fact.work_item_id),
        Fact::ToolStarted(_) => return None,
        Fact::ToolFinished(fact) => return tool(fact),
        Fact::TurnAborted(fact) => format!("cut {}", fact.reason),
        Fact::TurnTerminal(fact) => {
            format!("end {}{}", fact.terminal_kind, if fact.checkpoint { " checkpoint" } else { "" })
        }
        Fact::TaskCreated(fact) => format!("{} created{}", fact.task_id, about(" of", fact.work_item_id.as_ref())),
        Fact::TaskRunning(fact) => format!("{} running", fact.task_id),
        Fact::TaskCancelling(fact) => format!("{} cancelling{}", fact.task_id, if fact.force { " force" } else { "" }),
        Fact::TaskCompleted(fact) => ended("completed", &fact.end),
        Fact::TaskFailed(fact) => ended("failed", &fact.end),
        Fact::TaskCancelled(fact) => ended("cancelled", &fact.end),
        Fact::TaskInterrupted(fact) => ended("interrupted", &fact.end),
        Fact::TaskUpdateIgnored(fact) => {
            format!("{} ignored {}{}", fact.task_id, fact.reported, all(": ", &fact.evidence))
        }
        Fact::TaskResultQueued(fact) => format!("result of {} in {}", fact.task_id, fact.message_id),
        Fact::TaskResultDelivered(fact) => format!("read {}{}", fact.task_id, all(": ", &fact.evidence)),
        Fact::WorkItemCreated(fact) => format!("{} created", fact.work_item_id),
        Fact::WorkItemPicked(fact) => format!("{} picked", fact.work_item_id),
        Fact::WorkItemUpdated(fact) => format!("{} updated to {}", fact.work_item_id, fact.revision),
        Fact::WorkItemBlocked(fact) => format!("{} blocked", fact.work_item_id),
        Fact::WorkItemUnblocked(fact) => format!("{} unblocked", fact.work_item_id),
        Fact::WorkItemCompleted(fact) => format!("{} completed", fact.work_item_id),
        Fact::WorkItemDelegated(fact) => format!("{} delegated to {}", fact.work_item_id, fact.child_agent_id),
        Fact::WorkItemDelegationCompleted(fact) => {
            format!("{} delegation {} {}", fact.work_item_id, fact.task_id, fact.task_status)
        }
        Fact::RecheckMoved(fact) => {
            format!("{} recheck moved from {} to {}", fact.work_item_id, span(fact.from), span(fact.to))
        }
        Fact::RecheckFired(fact) => format!("{} recheck", fact.work_item_id),
        Fact::WaitingIntentCreated(fact) => {
            let on = about(" on", fact.resource.as_ref().map(Resource::as_str).as_ref());
            format!("{} {}{on}{}", fact.waiting_intent_id, fact.kind, about(" of", fact.work_item_id.as_ref()))
        }
        Fact::WaitingIntentTriggered(fact) => {
            format!("{} triggered{}", fact.waiting_intent_id, about(" by", fact.message_id.as_ref()))
        }
        Fact::WaitingIntentCancelled(fact) => {
            format!("{} cancelled{}", fact.waiting_intent_id, all(": ", &fact.evidence))
        }
        Fact::TimerCreated(fact) => {
            let every = match &fact.schedule {
                Schedule::Once { .. } => String::new(),
                Schedule::Every { every_ms, .. } => format!(" every {}s", every_ms / 1000),
                Schedule::Cron { cron, time_zone } => format!(" by {cron} in {time_zone}"),
            };
            // The timer of a wait belongs where the wait does.
            let item = fact.work_item_id.as_ref().filter(|_| fact.waiting_intent_id.is_none());
            format!("{} at {}{every}{}", fact.timer_id, span(fact.next_fire_at), about(" of", item))
        }
        Fact::TimerCheckStarted(fact) => format!("{} check of {}", fact.timer_id, span(fact.due)),
        Fact::TimerFired(fact) => format!("{} fired in {}", fact.timer_id, fact.message_id),
        Fact::TimerMissed(fact) => {
            let (first, last) = (span(fact.first), span(fact.last));
            let note = fact.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            format!("{} missed {} ({first} to {last}) {}{note}", fact.timer_id, fact.count, fact.reason)
        }
        Fact::TimerRescheduled(fact) => {
            format!("{} rescheduled from {} to {}", fact.timer_id, span(fact.from), span(fact.to))
        }
        Fact::TimerCompleted(fact) => format!("{} completed", fact.timer_id),
        Fact::TimerCancelled(fact) => format!("{} cancelled{}", fact.timer_id, all(": ", &fact.evidence)),
        Fact::WakeHintSubmitted(fact) => format!("hint {} triggered", fact.source),
        Fact::WakeHintCoalesced(fact) => format!("hint {} coalesced", fact.source),
        Fact::WakeHintIgnored(fact) => format!("hint {} ignored", fact.source),
        Fact::TriggerCreated(fact) => format!("{} created", fact.trigger_id),
        Fact::TriggerRotated(fact) => format!("{} rotated to {}", fact.trigger_id, fact.generation),
        Fact::TriggerDelivered(fact) => {
            let message = about(" as", fact.message_id.as_ref());
            format!("{} delivered {}{message}", fact.trigger_id, fact.disposition)
        }
        Fact::TriggerRevoked(fact) => format!("{} revoked", fact.trigger_id),
        Fact::ApprovalRequested(fact) => {
            format!("{} asked{}", fact.approval_id, about(" of", fact.work_item_id.as_ref()))
        }
        Fact::ApprovalDeadlineMoved(fact) => {
            format!("{} deadline moved from {} to {}", fact.approval_id, span(fact.from), span(fact.to))
        }
        Fact::ApprovalDecided(fact) => format!("{} {} by {}", fact.approval_id, fact.status, fact.decided_by),
        Fact::ApprovalUsed(fact) => format!("{} used for {}", fact.approval_id, fact.call_id),
        Fact::BudgetReached(fact) => {
            let (item, until) = (about(" of", fact.work_item_id.as_ref()), fact.until.map(span));
            format!("reached {}{item} {}/{}{}", fact.measure, fact.used, fact.max, about(" until", until.as_ref()))
        }
        Fact::BudgetRenewed(fact) => format!("renewed {}", span(fact.since)),
        Fact::BriefRecorded(fact) => {
            format!("told {}: {}{}", fact.kind, fact.text, if fact.cut { " (cut)" } else { "" })
        }
        Fact::CutRoundCounted(fact) => format!("counted {}", fact.usage.input_tokens),
        _ => return None,
    })
}

pub fn decision(decision: &Decision) -> String {
    let mut line = format!("{} {}", decision.kind, decision.reason);
    let ids = [
        decision.message_id.as_ref().map(ToString::to_string),
        decision.work_item_id.as_ref().map(ToString::to_string),
        decision.task_id.as_ref().map(ToString::to_string),
    ];
    for id in ids.into_iter().flatten() {
        line.push(' ');
        line.push_str(&id);
    }
    line + &all(" ignoring ", &decision.ignored)
}

fn queued(message: &Message) -> String {
    let kind = match message.tick() {
        Some(TickKind::WakeHint) => "wake_hint".to_owned(),
        Some(TickKind::Recheck) => "recheck".to_owned(),
        Some(TickKind::ContinueActive | TickKind::QueuedAvailable) | None => message.kind().to_string(),
    };
    let key = message.idempotency_key().filter(|_| message.tick() != Some(TickKind::Recheck));
    let at = if message.priority == message.kind().usual_priority() { None } else { Some(message.priority) };
    format!("queued {} {kind}{}{}", message.message_id, about(" as", at.as_ref()), about("", key.as_ref()))
}

fn tool(fact: &ToolFinished) -> Option<String> {
    match fact.status {
        ToolStatus::Unknown => Some(format!("{} unknown", fact.call_id)),
        ToolStatus::Failed => {
            let code = fact.result.pointer("/error/code").and_then(|code| code.as_str());
            Some(format!("{} refused {}", fact.tool, code.unwrap_or("failed")))
        }
        ToolStatus::Completed => {
            let task = fact.result.pointer("/delivered/task_id").and_then(|task| task.as_str());
            task.map(|task| format!("delivered {task}"))
        }
        ToolStatus::Running => None,
    }
}

fn ended(word: &str, end: &TaskEnd) -> String {
    format!("{} {word}{}", end.task_id, all(": ", &end.evidence))
}

fn about(word: &str, what: Option<&impl ToString>) -> String {
    what.map(|what| format!("{word} {}", what.to_string())).unwrap_or_default()
}

fn all(before: &str, what: &[impl ToString]) -> String {
    if what.is_empty() {
        return String::new();
    }
    let words: Vec<String> = what.iter().map(ToString::to_string).collect();
    format!("{before}{}", words.join(", "))
}
