//! Questions to a story: what the state amounts to, without changing it.

use abide_kernel::act_result::told;
use abide_kernel::decide;
use abide_kernel::effect::{
    ChildEffect, CommandEffect, Effect, TimerCheckEffect, TriggerEffect, TurnEffect, WorkspaceEffect,
};
use abide_kernel::explain::why;
use abide_kernel::id::{MessageId, WorkItemId};
use abide_kernel::scheduler::closure::compute_closure;
use abide_kernel::scheduler::posture::compute_posture;
use abide_kernel::summary::agent_summary;
use abide_kernel::vocabulary::WorkItemFilter;
use abide_kernel::wake::{Wake, compute_wake};

use super::Story;
use super::names::span;
use super::show::decision;

/// The answer, if the line is a question.
pub fn ask(story: &Story, line: &str) -> Result<Option<String>, String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let state = &story.state;
    Ok(Some(match word {
        "decide" => decision(&decide(state, story.now)),
        "evidence" => decide(state, story.now).evidence.join(", "),
        "ignored" => decide(state, story.now).ignored.join(", "),
        "why" => why(state, decide(state, story.now)).sentence,
        "wakers" => why(state, decide(state, story.now)).would_wake.join(", "),
        "on" => {
            let on = why(state, decide(state, story.now)).waiting_on;
            let shown = on.into_iter().map(|on| match on.since {
                Some(since) => format!("{}, since {}", on.what, span(since)),
                None => on.what,
            });
            shown.collect::<Vec<_>>().join("\n")
        }
        "notes" => why(state, decide(state, story.now)).notes.join("\n"),
        "status" => state.status().to_string(),
        "outcome" => {
            let id = MessageId::new(story.names.long(rest)?);
            format!("outcome {}", story.outcomes.show(state, story.now, &id))
        }
        "posture" => compute_posture(state).to_string(),
        "closure" => {
            let closure = compute_closure(state);
            let outcome = closure.outcome.map_or("none", |outcome| outcome.as_str());
            let waits = closure.waiting_reason.map(|reason| format!(" {reason}")).unwrap_or_default();
            format!("{outcome}{waits} {}", closure.runtime_posture)
        }
        "closing" => compute_closure(state).evidence.join(", "),
        "list" => {
            let filter = WorkItemFilter::parse(rest).ok_or("no such filter")?;
            let items = state.planes.work.items().values().chain(state.planes.work.recent());
            let fitting = items.filter(|item| state.planes.work.matches_filter(item, filter));
            let names: Vec<String> = fitting.map(|item| story.short(item.work_item_id.as_str())).collect();
            format!("{rest}: {}", names.join(" ")).trim_end().to_owned()
        }
        "item" => {
            let id = WorkItemId::new(story.names.long(rest)?);
            let item = state.planes.work.get(&id).ok_or("no such item")?;
            let standing = state.planes.work.standing(&id).map_or("completed", |standing| standing.as_str());
            let focus = if state.planes.work.current_id() == Some(&id) { " current" } else { "" };
            format!("{standing} revision {}{focus}", item.revision)
        }
        "queue" => {
            let mut entries: Vec<_> = state.planes.queue.entries().collect();
            entries.sort_by_key(|entry| (entry.message.priority, entry.place));
            let shown = entries.iter().map(|entry| format!("{} {}", entry.message.message_id, entry.status));
            shown.collect::<Vec<_>>().join(", ")
        }
        "replay" => format!("{:?}", state.planes.queue.replay_ids()),
        "missed" => {
            let missed = state.planes.queue.entries().map(|entry| entry.missed.to_string());
            missed.collect::<Vec<_>>().join(", ")
        }
        "pending" => format!("pending {} parked {}", state.planes.queue.pending(), state.planes.queue.parked()),
        "owed" => format!("{:?}", state.planes.tasks.owed().keys().collect::<Vec<_>>()),
        "waits" => format!("{:?}", state.planes.waits.open().keys().collect::<Vec<_>>()),
        "timers" => format!("{:?}", state.planes.timers.active().keys().collect::<Vec<_>>()),
        "hints" => {
            let sources: Vec<&str> = state.planes.hints.pending().keys().map(String::as_str).collect();
            if sources.is_empty() { "none".to_owned() } else { sources.join(", ") }
        }
        "wake?" => match compute_wake(state) {
            Wake::Never => "never".to_owned(),
            Wake::AtOnce { why } => format!("at once: {why}"),
            Wake::At { due, why } => format!("{}: {why}", span(due)),
        },
        // Whole: every field of what the last line came to, of its answer, and of the summary.
        "facts" => {
            let facts = story.facts[story.told_from..].iter();
            let lines = facts.map(|(_, fact)| format!("{} {}", fact.kind(), String::from_utf8_lossy(&fact.encode())));
            lines.collect::<Vec<_>>().join("\n")
        }
        "answer" => story.acted.as_ref().ok_or("nothing was asked for")?.to_string(),
        "summary" => told(&agent_summary(state, story.now)).to_string(),
        "kinds" => {
            let kinds: Vec<&str> = story.facts[story.told_from..].iter().map(|(_, fact)| fact.kind()).collect();
            kinds.join(" ")
        }
        "in_use" => state.model_in_use(story.now).to_owned(),
        "config" => state.definition.config.models().collect::<Vec<_>>().join(" "),
        "model" => {
            let called = story.effects.iter().rev().find_map(|effect| {
                if let Effect::Turn(TurnEffect::CallModel { call, .. }) = effect {
                    Some(call.model.clone())
                } else {
                    None
                }
            });
            called.unwrap_or_else(|| "none".to_owned())
        }
        "effects" => {
            let effects: Vec<String> = story.effects.iter().map(effect).collect();
            effects.join(", ")
        }
        _ => return Ok(None),
    }))
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => format!("call model {exec_id} round {round}"),
        Effect::Turn(TurnEffect::RunTool { call_id, tool, .. }) => format!("run {tool} {call_id}"),
        Effect::Turn(TurnEffect::AnswerCall { call_id, .. }) => format!("answer {call_id}"),
        Effect::Turn(TurnEffect::EndExec { exec_id }) => format!("end {exec_id}"),
        Effect::Command(CommandEffect::End { task_id, force }) => {
            format!("end {task_id}{}", if *force { " force" } else { "" })
        }
        Effect::Command(CommandEffect::Start { task_id, command, .. }) => {
            format!("start {task_id} {}", command.command)
        }
        Effect::Command(CommandEffect::Await { task_id }) => format!("await {task_id}"),
        Effect::Command(CommandEffect::Close { task_id }) => format!("close {task_id}"),
        Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }) => format!("remove {}", workspace.root),
        Effect::Workspace(WorkspaceEffect::Release { workspace, .. }) => format!("release {workspace}"),
        Effect::Child(ChildEffect::Spawn { task_id, child }) => format!("spawn {} for {task_id}", child.identity.id),
        Effect::Child(ChildEffect::Dismiss { child_agent_id, .. }) => format!("dismiss {child_agent_id}"),
        Effect::Child(ChildEffect::ReportToSupervisor { supervisor, status, .. }) => {
            format!("report {status} to {supervisor}")
        }
        Effect::TimerCheck(TimerCheckEffect::Run { timer_id, command, .. }) => format!("check {timer_id} {command}"),
        Effect::TimerCheck(TimerCheckEffect::End { timer_id }) => format!("end check {timer_id}"),
        Effect::Trigger(TriggerEffect::ForgetSecret { trigger_id }) => format!("forget the secret of {trigger_id}"),
    }
}
