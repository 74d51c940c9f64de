//! The end of a world: people help, every outcome arrives, and nothing may be left over.

use abide_kernel::budget::Budget;
use abide_kernel::config::ConfigChange;
use abide_kernel::effect::{ChildEffect, CommandEffect, Effect, TimerCheckEffect, TurnEffect, WorkspaceEffect};
use abide_kernel::fact::TaskEnd;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Checked, Input, Removal, Reply};
use abide_kernel::open_json::ToolOutput;
use abide_kernel::state::lifecycle::Control;
use abide_kernel::tool::RecordCall;
use abide_kernel::vocabulary::{ContinuationClass, TaskStatus, ToolStatus};

use super::Simulation;
use crate::simulated_agent::SimulatedAgent;

impl Simulation {
    /// Lets all agents finish: nothing crashes, every outcome arrives, questions are answered. In the end nothing may
    /// be left over.
    pub(super) fn run_to_completion(&mut self) -> Result<(), String> {
        self.note("-- coming to an end".to_owned());
        self.crash_percent = 0;
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        for (id, input) in std::mem::take(&mut self.late) {
            self.ask(&id, input)?;
        }
        for id in &ids {
            self.load_agent(id)?;
            self.drive(id)?;
            if self.agents[id].shadow.seq > 0 {
                self.settle_agent(id)?;
            }
        }
        for id in &ids {
            let simulated = &self.agents[id];
            if simulated.shadow.seq > 0 {
                self.check_replay(id, &simulated.shadow.clone())?;
                check_nothing_left(simulated)?;
            }
        }
        Ok(())
    }

    pub(super) fn settle_agent(&mut self, id: &AgentId) -> Result<(), String> {
        if matches!(self.agents[id].shadow.lifecycle.control, Control::Stopped | Control::Quarantined { .. }) {
            self.ask(id, Input::Start)?;
        }
        let change = ConfigChange { budget: Some(Budget::default()), ..ConfigChange::default() };
        self.ask(id, Input::Configure { change: Box::new(change) })?;
        for _ in 0..3_000 {
            let simulated = &self.agents[id];
            let state = &simulated.shadow;
            if let Some(timer_id) = state.planes.timers.active().keys().next().cloned() {
                self.ask(id, Input::Act { by: "operator".to_owned(), act: RecordCall::CancelTimer { timer_id } })?;
            } else if let Some(held) = &state.lifecycle.turns_held {
                let (cause, evidence) = (held.cause, "mended".to_owned());
                self.ask(id, Input::ReleaseTurns { cause, evidence })?;
            } else if !simulated.effects.is_empty() {
                self.complete_effect(id)?;
            } else if let Some(task) = state.planes.tasks.open().keys().next().cloned() {
                let end = TaskEnd { task_id: task, ..TaskEnd::default() };
                self.ask(id, Input::EndTask { status: TaskStatus::Completed, end })?;
            } else if let Some(wait) = state.planes.waits.open().keys().next().cloned() {
                let act = RecordCall::CancelWait { waiting_intent_id: wait };
                self.ask(id, Input::Act { by: "operator".to_owned(), act })?;
            } else if let Some(item) = state.planes.work.items().keys().next().cloned() {
                let act = RecordCall::CompleteWorkItem { work_item_id: item, report: "closed".to_owned() };
                self.ask(id, Input::Act { by: "operator".to_owned(), act })?;
            } else if let Some(due) =
                state.planes.queue.next_not_before().or(state.pace_ends()).filter(|due| *due > self.now)
            {
                self.now = due;
                self.drive(id)?;
            } else if state.planes.tasks.owed().values().any(|task| task.held) {
                let message = abide_kernel::input::NewMessage { text: Some("and?".to_owned()), ..Default::default() };
                self.ask(id, Input::Queue(message))?;
            } else {
                return Ok(());
            }
        }
        Err(format!("{id} does not come to an end"))
    }

    pub(super) fn complete_effect(&mut self, id: &AgentId) -> Result<(), String> {
        let Some(simulated) = self.agents.get_mut(id) else { return Ok(()) };
        let effect = simulated.effects.remove(0);
        let input = match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => {
                let reply = Reply { text: "Done.".to_owned(), ..Reply::default() };
                Input::FinishRound { exec_id, round, reply }
            }
            Effect::Turn(
                TurnEffect::RunTool { exec_id, call_id, .. } | TurnEffect::AnswerCall { exec_id, call_id, .. },
            ) => {
                let (status, result) = (ToolStatus::Completed, ToolOutput::default());
                Input::FinishTool { exec_id, call_id, status, result, reads: None }
            }
            Effect::Command(CommandEffect::End { task_id, .. })
            | Effect::Child(ChildEffect::Dismiss { task_id, .. }) => {
                let end = TaskEnd { task_id, ..TaskEnd::default() };
                Input::EndTask { status: TaskStatus::Cancelled, end }
            }
            Effect::Workspace(WorkspaceEffect::Release { workspace, action }) => {
                Input::ReleaseWorkspace { workspace, action, error: None }
            }
            Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }) => {
                Input::FinishRemoval { root: workspace.root, removal: Ok(Removal::default()) }
            }
            Effect::TimerCheck(TimerCheckEffect::Run { timer_id, due, .. }) => {
                let checked = Checked::Exited { exit_code: 0, output: String::new() };
                Input::FinishCheck { timer_id, due, checked }
            }
            Effect::Turn(TurnEffect::EndExec { .. })
            | Effect::TimerCheck(TimerCheckEffect::End { .. })
            | Effect::Command(
                CommandEffect::Start { .. } | CommandEffect::Await { .. } | CommandEffect::Close { .. },
            )
            | Effect::Child(ChildEffect::Spawn { .. } | ChildEffect::ReportToSupervisor { .. })
            | Effect::Trigger(_) => return Ok(()),
        };
        self.ask(id, input)
    }
}

/// An agent that has finished has no message, no result and no turn left.
pub(crate) fn check_nothing_left(simulated: &SimulatedAgent) -> Result<(), String> {
    let state = &simulated.shadow;
    let left = state.planes.queue.entries().next();
    if let Some(entry) = left {
        return Err(format!("{} is left over: {entry:?}", entry.message.message_id));
    }
    if !state.planes.tasks.owed().is_empty() || state.turns.current.is_some() {
        return Err(format!(
            "{} results are left owed, turn {:?}",
            state.planes.tasks.owed().len(),
            state.turns.current
        ));
    }
    let override_class = state.turns.last_continuation.as_ref().map(|last| last.class);
    if override_class == Some(ContinuationClass::LivenessOnly) {
        return Err("a liveness-only message started a turn".to_owned());
    }
    simulated.check_nothing_lost()
}
