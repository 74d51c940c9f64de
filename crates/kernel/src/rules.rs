//! `admit`: an input becomes facts, or a refusal that changes nothing.

mod act;
mod children;
mod clock;
mod control;
mod due;
pub mod execute;
mod given_up;
mod hold;
mod ingress;
mod model;
mod permit;
mod settle;
mod task;
mod timers;
mod transaction;
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
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::state::AgentState;
use crate::time::Time;

pub(crate) use children::leave_if_done;
pub(crate) use due::account_for_waiting_tick;
pub(crate) use settle::settle;
pub(crate) use turn::{end_sleeps, present};
pub(crate) use waits::trigger_wait;

/// The outcome of an admitted input.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    pub facts: Vec<Fact>,
    pub effects: Vec<Effect>,
    pub answer: Answer,
}

/// Admits one input. On a refusal the state is as it was.
pub fn admit(state: &mut AgentState, input: Input, now: Time, fresh: &mut Fresh) -> Result<Admitted, Refusal> {
    if state.seq == 0 && !matches!(input, Input::Create { .. } | Input::CreateChild(_)) {
        return Err(Refusal::new(ErrorCode::NoAgent, "this agent does not exist"));
    }
    if state.lifecycle.archived && !matches!(input, Input::Fork { .. }) {
        return Err(Refusal::new(ErrorCode::Archived, "this agent was deleted"));
    }
    let before = state.status();
    let mut tx = Transaction::new(state, now, fresh);
    let answer = route(&mut tx, input).inspect_err(|refusal| {
        assert!(tx.facts().is_empty(), "a refused input ({}) left facts behind", refusal.code);
    })?;
    if !tx.facts().is_empty() {
        settle(&mut tx, before);
    }
    let (facts, effects) = tx.finish();
    Ok(Admitted { facts, effects, answer })
}

fn route(tx: &mut Transaction<'_>, input: Input) -> Result<Answer, Refusal> {
    match input {
        Input::Create { identity, config, start } => control::create(tx, identity, config, start),
        Input::CreateChild(first) => children::create(tx, *first),
        Input::Dismiss { evidence } => children::dismiss(tx, evidence),
        Input::SupervisorHeard => children::heard(tx),
        Input::Configure { change } => model::configure(tx, *change),
        Input::Fork { agent_id, parent, at_seq } => Ok(control::fork(tx, agent_id, parent, at_seq)),
        Input::Start => control::start(tx),
        Input::Stop => control::stop(tx),
        Input::Abort { exec_id } => control::abort(tx, exec_id),
        Input::Shutdown { at_once, reason } => Ok(control::shutdown(tx, at_once, &reason)),
        Input::Boot { context } => Ok(control::boot(tx, context)),
        Input::Quarantine { reason } => Ok(control::quarantine(tx, reason)),
        Input::Archive => control::archive(tx),
        Input::Queue(message) => ingress::queue(tx, message),
        Input::Deliver { trigger_id, generation, verified, delivery } => {
            trigger::deliver(tx, trigger_id, generation, verified, delivery)
        }
        Input::Wake { reason, source, resource, body } => ingress::wake(tx, reason, source, resource, body),
        Input::FireDue => Ok(due::fire_due(tx)),
        Input::FollowClock => Ok(clock::follow(tx)),
        Input::Act { by, act } => {
            act::carry_out_act(tx, &act::Actor::Person(by), act).map(|done| Answer::Acted(done.result))
        }
        Input::FinishRound { exec_id, round, reply } => Ok(turn::finish_round(tx, &exec_id, round, reply)),
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
            Ok(model::fail_round(tx, failed, jitter, announce))
        }
        Input::CountCutRound { exec_id, round, spent } => Ok(turn::count_cut_round(tx, exec_id, round, spent)),
        Input::OverflowBaseline { exec_id, needed_tokens, budget_tokens } => {
            Ok(turn::overflow_baseline(tx, &exec_id, needed_tokens, budget_tokens))
        }
        Input::FinishTool { exec_id, call_id, status, result, reads } => {
            Ok(turn::finish_tool(tx, &exec_id, call_id, status, result, reads))
        }
        Input::Checkpoint { exec_id, recap, through_round } => Ok(turn::checkpoint(tx, &exec_id, recap, through_round)),
        Input::Compact { compacted_messages, summary, through, usage } => {
            let epoch = tx.state.turns.compaction.as_ref().map_or(1, |last| last.epoch + 1);
            tx.emit(ContextCompacted { compacted_messages, epoch, summary, through, usage });
            Ok(Answer::Done)
        }
        Input::CreateTask(task) => task::create(tx, task),
        Input::RunTask { task_id, recovery } => Ok(task::run(tx, task_id, recovery)),
        Input::EndTask { status, end } => task::end_task(tx, status, end),
        Input::UseWorkspace(attached) => workspace::use_one(tx, attached),
        Input::OccupyWorkspace { workspace } => Ok(workspace::occupy(tx, workspace)),
        Input::HoldForDisk { until, evidence } => Ok(workspace::hold_for_disk(tx, until, evidence)),
        Input::DiskHasRoom => Ok(workspace::disk_has_room(tx)),
        Input::ReleaseTurns { cause, evidence } => Ok(hold::release_cause(tx, cause, &evidence)),
        Input::ReleaseWorkspace { workspace, action, error } => Ok(workspace::release(tx, workspace, action, error)),
        Input::FinishRemoval { root, removal } => Ok(workspace::removed(tx, root, removal)),
        Input::FinishCheck { timer_id, due, checked } => Ok(due::finish_check(tx, &timer_id, due, checked)),
        Input::RecordRuntimeError { error } => {
            tx.emit(RuntimeErrorRecorded { error });
            Ok(Answer::Done)
        }
    }
}
