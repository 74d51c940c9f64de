//! How the effects of an agent are performed: as jobs about other agents, or by `Perform`.

use std::sync::Arc;

use abide_kernel::effect::{CommandEffect, Effect, TimerCheckEffect, TurnEffect};
use abide_kernel::fact::TaskEnd;
use abide_kernel::id::{CallId, ExecId, TaskId, TimerId};
use abide_kernel::input::{Checked, Input};
use abide_kernel::provider::NO_JITTER;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{ProviderError, TaskStatus, ToolStatus};
use serde_json::json;

use super::peers::{self, Caller};
use super::tree_quota::Maker;
use super::{Agents, supervision};
use crate::streams::Actor;

/// A job of an agent, and what has to be said if it is lost.
#[derive(Debug)]
pub enum Job {
    Round { exec_id: ExecId, round: u32 },
    Call { exec_id: ExecId, call_id: CallId },
    Task { task_id: TaskId },
    Check { timer_id: TimerId, due: Time },
    Other,
}

impl Actor<Agents> {
    pub(super) fn perform(&mut self, effect: Effect) {
        let effect = match supervision::job(&self.streams, &self.id, effect, &mut self.local.spawns) {
            Ok(work) => return self.start(Job::Other, work),
            Err(effect) => effect,
        };
        let state = self.core.state();
        let effect = match peers::job(&self.streams, || Caller::of(state), effect, &mut self.local.peer_calls) {
            Ok((exec_id, call_id, work)) => return self.start(Job::Call { exec_id, call_id }, work),
            Err(effect) => effect,
        };
        let job = match &effect {
            Effect::Turn(TurnEffect::EndExec { exec_id }) => {
                return self.end_jobs(|job| match job {
                    Job::Round { exec_id: of, .. } | Job::Call { exec_id: of, .. } => of == exec_id,
                    Job::Task { .. } | Job::Check { .. } | Job::Other => false,
                });
            }
            Effect::TimerCheck(TimerCheckEffect::End { timer_id }) => {
                return self.end_jobs(|job| match job {
                    Job::Check { timer_id: of, .. } => of == timer_id,
                    Job::Round { .. } | Job::Call { .. } | Job::Task { .. } | Job::Other => false,
                });
            }
            Effect::TimerCheck(TimerCheckEffect::Run { timer_id, due, .. }) => {
                Job::Check { timer_id: timer_id.clone(), due: *due }
            }
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => {
                Job::Round { exec_id: exec_id.clone(), round: *round }
            }
            Effect::Turn(
                TurnEffect::RunTool { exec_id, call_id, .. } | TurnEffect::AnswerCall { exec_id, call_id, .. },
            ) => Job::Call { exec_id: exec_id.clone(), call_id: call_id.clone() },
            Effect::Command(CommandEffect::Start { task_id, .. } | CommandEffect::Await { task_id }) => {
                Job::Task { task_id: task_id.clone() }
            }
            Effect::Command(CommandEffect::End { .. } | CommandEffect::Close { .. })
            | Effect::Workspace(_)
            | Effect::Child(_)
            | Effect::Trigger(_) => Job::Other,
        };
        match self.streams.kind.perform.perform(&self.id, effect) {
            Some(work) if matches!(job, Job::Round { .. }) => {
                let (agents, state) = (Arc::clone(&self.streams), self.core.state());
                let founder = state.definition.identity.founder();
                let maker = Maker { id: self.id.clone(), founder, room: state.room_for_children() };
                let answered = async move {
                    let mut inputs = work.await;
                    agents.kind.tree_quota.promise(&agents, &maker, &mut inputs).await;
                    inputs
                };
                self.start(job, Box::pin(answered));
            }
            Some(work) => self.start(job, work),
            None => self.report(lost(job, "nothing here does that")),
        }
    }
}

/// The inputs for a job that ended without a report.
pub(super) fn lost(job: Job, why: &str) -> Vec<Input> {
    match job {
        Job::Round { exec_id, round } => {
            let message = format!("the model was called, and {why}");
            vec![Input::FailRound {
                exec_id,
                round,
                error: ProviderError::Invalid,
                retry_after_ms: None,
                message,
                carry: None,
                jitter: NO_JITTER,
                spent: None,
                announce: true,
            }]
        }
        Job::Call { exec_id, call_id } => {
            let result = json!({ "error": { "code": "crashed", "message": format!("the tool was called, and {why}"),
                "hint": "what it did is not known; look before you call it again" } })
            .into();
            vec![Input::FinishTool { exec_id, call_id, status: ToolStatus::Unknown, result, reads: None }]
        }
        Job::Task { task_id } => {
            let evidence = vec![format!("it was being run, and {why}")];
            let end = TaskEnd { task_id, evidence, ..TaskEnd::default() };
            vec![Input::EndTask { status: TaskStatus::Interrupted, end }]
        }
        Job::Check { timer_id, due } => {
            let checked = Checked::NotDone { why: format!("it was being run, and {why}") };
            vec![Input::FinishCheck { timer_id, due, checked }]
        }
        Job::Other => Vec::new(),
    }
}
