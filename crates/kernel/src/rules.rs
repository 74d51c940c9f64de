//! `admit`: an input becomes facts, or a refusal that changes nothing.

mod act;
mod clock;
mod control;
mod due;
pub mod execute;
mod given_up;
mod hold;
mod ingress;
mod kin;
mod model;
mod permit;
mod settle;
mod step;
mod task;
mod timers;
mod trigger;
mod turn;
mod waits;
mod work;
mod workspace;

use crate::effect::Effect;
use crate::fact::{ContextCompacted, Fact, ProviderRoundFailed, RuntimeErrorRecorded};
use crate::id::Fresh;
use crate::input::{Answer, Input, Refusal};
use crate::limits;
use crate::rules::step::Step;
use crate::state::AgentState;
use crate::time::Time;

pub(crate) use due::account_for_waiting_tick;
pub(crate) use kin::leave_if_done;
pub(crate) use settle::settle;
pub(crate) use turn::{end_sleeps, present};
pub(crate) use waits::trigger_wait;

/// What an admitted input came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    pub facts: Vec<Fact>,
    pub effects: Vec<Effect>,
    pub answer: Answer,
}

/// Admits one input. On a refusal the state is as it was.
pub fn admit(state: &mut AgentState, input: Input, now: Time, fresh: &mut Fresh) -> Result<Admitted, Refusal> {
    if state.seq == 0 && !matches!(input, Input::Create { .. } | Input::CreateChild(_)) {
        return Err(Refusal::new("no_agent", "this agent does not exist", "create it first"));
    }
    if state.lifecycle.archived && !matches!(input, Input::Fork { .. }) {
        return Err(Refusal::new("archived", "this agent was deleted", "create one under another name"));
    }
    let before = state.status();
    let mut step = Step::new(state, now, fresh);
    let answer = route(&mut step, input).inspect_err(|refusal| {
        assert!(step.facts().is_empty(), "a refused input ({}) left facts behind", refusal.code);
    })?;
    if !step.facts().is_empty() {
        settle(&mut step, before);
    }
    let (facts, effects) = step.finish();
    Ok(Admitted { facts, effects, answer })
}

fn route(step: &mut Step<'_>, input: Input) -> Result<Answer, Refusal> {
    match input {
        Input::Create { identity, config, start } => control::create(step, identity, config, start),
        Input::CreateChild(first) => kin::create(step, *first),
        Input::Dismiss { evidence } => kin::dismiss(step, evidence),
        Input::SupervisorHeard => kin::heard(step),
        Input::Configure { change } => model::configure(step, *change),
        Input::Fork { agent_id, parent, at_seq } => Ok(control::fork(step, agent_id, parent, at_seq)),
        Input::Start => control::start(step),
        Input::Stop => control::stop(step),
        Input::Abort { exec_id } => control::abort(step, exec_id),
        Input::Shutdown { at_once, reason } => Ok(control::shutdown(step, at_once, &reason)),
        Input::Boot { remains } => Ok(control::boot(step, remains)),
        Input::Quarantine { reason } => Ok(control::quarantine(step, reason)),
        Input::Archive => control::archive(step),
        Input::Queue(message) => ingress::queue(step, message),
        Input::Deliver { trigger_id, generation, verified, delivery } => {
            trigger::deliver(step, trigger_id, generation, verified, delivery)
        }
        Input::Wake { reason, source, resource, body } => ingress::wake(step, reason, source, resource, body),
        Input::FireDue => Ok(due::fire_due(step)),
        Input::FollowClock => Ok(clock::follow(step)),
        Input::Act { by, act } => act::act(step, &act::Actor::Person(by), act).map(|done| Answer::Acted(done.result)),
        Input::FinishRound { exec_id, round, reply } => Ok(turn::finish_round(step, &exec_id, round, reply)),
        Input::FailRound { exec_id, round, error, retry_after_ms, message, carry, jitter, spent, announce } => {
            let message = limits::clip(&message, limits::LINE_BYTES).to_owned();
            let (usage, estimated) = (spent.map(|spent| spent.usage), spent.is_some_and(|spent| spent.estimated));
            let failed = ProviderRoundFailed {
                exec_id,
                round,
                error,
                message,
                retry_after_ms,
                carry,
                not_before: None,
                model: None,
                usage,
                estimated,
            };
            Ok(model::fail_round(step, failed, jitter, announce))
        }
        Input::CountCutRound { exec_id, round, spent } => Ok(turn::count_cut_round(step, exec_id, round, spent)),
        Input::OverflowBaseline { exec_id, needed_tokens, budget_tokens } => {
            Ok(turn::overflow_baseline(step, &exec_id, needed_tokens, budget_tokens))
        }
        Input::FinishTool { exec_id, call_id, status, result, reads } => {
            Ok(turn::finish_tool(step, &exec_id, call_id, status, result, reads))
        }
        Input::Checkpoint { exec_id, recap, through_round } => {
            Ok(turn::checkpoint(step, &exec_id, recap, through_round))
        }
        Input::Compact { compacted_messages, summary, through, usage } => {
            let epoch = step.state.turns.compaction.as_ref().map_or(1, |last| last.epoch + 1);
            step.emit(ContextCompacted { compacted_messages, epoch, summary, through, usage });
            Ok(Answer::Done)
        }
        Input::CreateTask(task) => task::create(step, task),
        Input::RunTask { task_id, recovery } => Ok(task::run(step, task_id, recovery)),
        Input::EndTask { status, end } => task::end(step, status, end),
        Input::UseWorkspace(attached) => workspace::use_one(step, attached),
        Input::OccupyWorkspace { workspace } => Ok(workspace::occupy(step, workspace)),
        Input::HoldForDisk { until, evidence } => Ok(workspace::hold_for_disk(step, until, evidence)),
        Input::DiskHasRoom => Ok(workspace::disk_has_room(step)),
        Input::ReleaseTurns { cause, evidence } => Ok(hold::release_cause(step, cause, &evidence)),
        Input::ReleaseWorkspace { workspace, action, error } => Ok(workspace::release(step, workspace, action, error)),
        Input::FinishRemoval { root, removal } => Ok(workspace::removed(step, root, removal)),
        Input::FinishCheck { timer_id, due, checked } => Ok(due::finish_check(step, &timer_id, due, checked)),
        Input::RecordRuntimeError { error } => {
            step.emit(RuntimeErrorRecorded { error });
            Ok(Answer::Done)
        }
    }
}
