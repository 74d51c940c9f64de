//! Outcomes of effects: in any order, twice, late, or never.

use abide_kernel::budget::Used;
use abide_kernel::effect::{ChildEffect, CommandEffect, Effect, TimerCheckEffect, TurnEffect, WorkspaceEffect};
use abide_kernel::fact::{TaskCreated, TaskEnd};
use abide_kernel::id::{AgentId, CallId, ExecId, TaskId};
use abide_kernel::input::{Checked, Input, Removal};
use abide_kernel::open_json::ToolOutput;
use abide_kernel::vocabulary::{ProviderError, TaskKind, TaskStatus, ToolStatus, WaitPolicy};

use super::Simulation;
use crate::generators;

impl Simulation {
    /// Reports on one effect: in any order, sometimes twice, sometimes only later.
    pub(super) fn report_effect(&mut self, id: &AgentId) -> Result<(), String> {
        let Some(simulated) = self.agents.get_mut(id) else { return Ok(()) };
        if simulated.effects.is_empty() {
            return Ok(());
        }
        let index = usize::try_from(self.rng.below(simulated.effects.len() as u64)).unwrap_or(0);
        let effect = simulated.effects.remove(index);
        let inputs = self.outcome(id, effect);
        for input in inputs {
            if self.rng.chance(5) {
                self.late.push((id.clone(), input.clone()));
            }
            if self.rng.chance(4) {
                self.late.push((id.clone(), input));
            } else {
                self.ask(id, input)?;
            }
        }
        Ok(())
    }

    pub(super) fn outcome(&mut self, id: &AgentId, effect: Effect) -> Vec<Input> {
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => self.model_call_outcome(id, exec_id, round),
            Effect::Turn(
                TurnEffect::RunTool { exec_id, call_id, .. } | TurnEffect::AnswerCall { exec_id, call_id, .. },
            ) => self.tool_call_outcome(id, exec_id, call_id),
            Effect::Command(CommandEffect::End { task_id, .. })
            | Effect::Child(ChildEffect::Dismiss { task_id, .. }) => {
                if let Some(simulated) = self.agents.get_mut(id) {
                    simulated.processes.remove(&task_id);
                }
                let status = if self.rng.chance(70) { TaskStatus::Cancelled } else { TaskStatus::Interrupted };
                vec![Input::EndTask { status, end: TaskEnd { task_id, ..TaskEnd::default() } }]
            }
            Effect::Workspace(WorkspaceEffect::Release { workspace, action }) => {
                let error = self.rng.chance(20).then(|| "busy".to_owned());
                vec![Input::ReleaseWorkspace { workspace, action, error }]
            }
            Effect::Turn(TurnEffect::EndExec { exec_id }) => {
                // Effects of the execution may or may not be cancelled in time. A call to a model is paid for all the
                // same.
                let mut counted = Vec::new();
                if let Some(simulated) = self.agents.get_mut(id).filter(|_| self.rng.chance(70)) {
                    let ended = simulated.effects.extract_if(.., |effect| is_of(effect, &exec_id));
                    counted.extend(ended.filter_map(|effect| cut_off(&effect)));
                }
                counted
            }
            Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }) => {
                vec![Input::FinishRemoval { root: workspace.root, removal: Ok(Removal::default()) }]
            }
            Effect::TimerCheck(TimerCheckEffect::Run { timer_id, due, .. }) => {
                let checked = match self.rng.below(3) {
                    0 => Checked::Exited { exit_code: 0, output: "there is something".to_owned() },
                    1 => Checked::Exited { exit_code: 1, output: String::new() },
                    _ => Checked::NotDone { why: "no shell".to_owned() },
                };
                vec![Input::FinishCheck { timer_id, due, checked }]
            }
            Effect::TimerCheck(TimerCheckEffect::End { timer_id }) => {
                if let Some(simulated) = self.agents.get_mut(id).filter(|_| self.rng.chance(70)) {
                    simulated.effects.retain(
                        |effect| !matches!(effect, Effect::TimerCheck(TimerCheckEffect::Run { timer_id: other, .. }) if *other == timer_id),
                    );
                }
                Vec::new()
            }
            // Tasks end by themselves, or when they are told to.
            Effect::Command(
                CommandEffect::Start { .. } | CommandEffect::Await { .. } | CommandEffect::Close { .. },
            )
            | Effect::Child(ChildEffect::Spawn { .. } | ChildEffect::ReportToSupervisor { .. })
            | Effect::Trigger(_) => Vec::new(),
        }
    }

    fn model_call_outcome(&mut self, id: &AgentId, exec_id: ExecId, round: u32) -> Vec<Input> {
        if self.rng.chance(12) {
            let error = *self.rng.pick(ProviderError::ALL).unwrap_or(&ProviderError::Timeout);
            let retry_after_ms = self.rng.chance(50).then(|| self.rng.below(100_000));
            let (message, jitter) = ("no".to_owned(), generators::jitter(&mut self.rng));
            let (carry, spent, announce) = (None, generators::spent(jitter), jitter % 2 == 0);
            return vec![Input::FailRound {
                exec_id,
                round,
                error,
                retry_after_ms,
                message,
                carry,
                jitter,
                spent,
                announce,
            }];
        }
        if self.rng.chance(2) {
            return vec![Input::OverflowBaseline { exec_id, needed_tokens: 10, budget_tokens: 5 }];
        }
        let reply = generators::reply(&mut self.rng, &self.agents[id].shadow, &mut self.calls);
        vec![Input::FinishRound { exec_id, round, reply }]
    }

    fn tool_call_outcome(&mut self, id: &AgentId, exec_id: ExecId, call_id: CallId) -> Vec<Input> {
        let reads = generators::reads(&mut self.rng, &self.agents[id].shadow);
        let finish = |status| Input::FinishTool {
            exec_id: exec_id.clone(),
            call_id: call_id.clone(),
            status,
            result: ToolOutput::default(),
            reads: reads.clone(),
        };
        if self.rng.chance(50) {
            return vec![finish(if self.rng.chance(80) { ToolStatus::Completed } else { ToolStatus::Failed })];
        }
        let task_id = self.new_process(id);
        let task_kind = if self.rng.chance(80) { TaskKind::Command } else { TaskKind::ChildAgent };
        let granted = task_kind == TaskKind::ChildAgent && self.rng.chance(40);
        let created = TaskCreated {
            task_id: task_id.clone(),
            task_kind,
            wait_policy: WaitPolicy::Background,
            summary: "build".to_owned(),
            command: None,
            workdir: None,
            tty: false,
            accepts_input: false,
            work_item_id: None,
            child_agent_id: Some("child".to_owned()),
            child: granted.then(|| Box::new(generators::child(&mut self.rng))),
            recovery: None,
            exec_id: Some(exec_id.clone()),
            call_id: Some(call_id.clone()),
        };
        let running = Input::RunTask { task_id, recovery: None };
        vec![Input::CreateTask(created), running, finish(ToolStatus::Completed)]
    }

    pub(super) fn new_process(&mut self, id: &AgentId) -> TaskId {
        self.tasks += 1;
        let task_id = TaskId::new(format!("task_{}", self.tasks));
        if let Some(simulated) = self.agents.get_mut(id) {
            simulated.processes.insert(task_id.clone());
        }
        task_id
    }

    pub(super) fn end_some_process(&mut self, id: &AgentId) -> Result<(), String> {
        let processes: Vec<TaskId> = self.agents[id].processes.iter().cloned().collect();
        let Some(task_id) = self.rng.pick(&processes).cloned() else { return Ok(()) };
        if let Some(simulated) = self.agents.get_mut(id) {
            simulated.processes.remove(&task_id);
        }
        let status = if self.rng.chance(75) { TaskStatus::Completed } else { TaskStatus::Failed };
        let used = self.rng.chance(50).then(|| Used { turns: self.rng.below(3), ..Used::default() });
        let end = TaskEnd { task_id: task_id.clone(), exit_code: Some(0), used, ..TaskEnd::default() };
        if self.rng.chance(10) {
            self.late.push((id.clone(), Input::RunTask { task_id, recovery: None }));
        }
        self.ask(id, Input::EndTask { status, end })
    }
}

/// The usage of a model call that was cancelled.
#[allow(clippy::wildcard_enum_match_arm, reason = "only models are paid")]
fn cut_off(effect: &Effect) -> Option<Input> {
    match effect {
        Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => {
            let spent = generators::spent(0)?;
            Some(Input::CountCutRound { exec_id: exec_id.clone(), round: *round, spent })
        }
        _ => None,
    }
}

fn is_of(effect: &Effect, exec: &abide_kernel::id::ExecId) -> bool {
    match effect {
        Effect::Turn(
            TurnEffect::CallModel { exec_id, .. }
            | TurnEffect::RunTool { exec_id, .. }
            | TurnEffect::AnswerCall { exec_id, .. },
        ) => exec_id == exec,
        Effect::Turn(TurnEffect::EndExec { .. })
        | Effect::Command(_)
        | Effect::Workspace(_)
        | Effect::Child(_)
        | Effect::TimerCheck(_)
        | Effect::Trigger(_) => false,
    }
}
