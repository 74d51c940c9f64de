//! How an agent holds to the fence: it looks there before it decides anything, before it begins an effect, and before the
//! agent comes to be. A child that was dismissed, itself or with somebody above it, leaves at once.

use abide_kernel::AgentState;
use abide_kernel::config::Identity;
use abide_kernel::effect::{ChildEffect, CommandEffect, Effect, TimerCheckEffect, TurnEffect};
use abide_kernel::fact::Fact;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, Refusal};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::tool::{RecordCall, ToolCall};

use super::fence::FenceState;
use super::performing::Job;
use super::{Agents, Local};
use crate::core::{Outputs, Request};
use crate::streams::{Actor, AskError};

impl Local {
    pub(super) fn looks_at_fence(&self) -> bool {
        let supervised = self.supervisors.as_ref().is_some_and(|supervisors| !supervisors.is_empty());
        supervised || !self.creations.is_empty()
    }
}

impl Actor<Agents> {
    /// A stop that is about to be admitted holds everybody below from now on. To be called before the time is read.
    pub(super) fn raise_fence(&mut self) {
        if self.local.stopping.is_none() && self.may_dismiss_children() {
            self.local.stopping = Some(self.streams.kind.fence.stopping(&self.id));
        }
    }

    /// Looks at the fence, and acts on it. False while somebody above is being stopped: nothing may be decided before it
    /// is known what comes of that. To be called after the time is read.
    pub(super) fn pass_fence(&mut self) -> bool {
        match self.fence_state() {
            FenceState::Pending => return false,
            FenceState::Open => {
                for effect in std::mem::take(&mut self.local.withheld) {
                    self.perform(effect);
                }
            }
            FenceState::Closed(dismissed) => {
                // Their turn and their tasks are ended by the dismissal.
                self.local.withheld.clear();
                if self.core.state().is_working_child() {
                    let evidence = vec![format!("dismissed_with {dismissed}")];
                    self.core.ask_first(Request::new(0, Input::Dismiss { evidence }));
                }
            }
        }
        self.admit_creations()
    }

    /// False while one of them has to wait.
    fn admit_creations(&mut self) -> bool {
        for creation in std::mem::take(&mut self.local.creations) {
            match self.streams.kind.fence.check(&self.id, &creation.condition) {
                FenceState::Pending => self.local.creations.push(creation),
                FenceState::Open => self.admit(creation),
                FenceState::Closed(dismissed) => {
                    let detail = format!("{dismissed}, which it was to work for, was stopped");
                    let refusal = Refusal::new(ErrorCode::SupervisorEnded, detail);
                    creation.refuse(AskError::Refused(refusal));
                }
            }
        }
        self.local.creations.is_empty()
    }

    fn fence_state(&mut self) -> FenceState {
        if self.local.supervisors.is_none() && self.core.exists() {
            self.local.supervisors = Some(self.core.state().definition.identity.supervisors());
        }
        self.streams.kind.fence.check(&self.id, self.local.supervisors.as_deref().unwrap_or_default())
    }

    /// Whether something that waits may dismiss children of the agent.
    fn may_dismiss_children(&self) -> bool {
        self.core.state().planes.tasks.children().next().is_some() && self.core.inbox().any(may_dismiss)
    }

    /// Keeps the fence, the roster and the trees in step with what is durable, before anybody is answered.
    pub(super) fn keep_in_step(&mut self, outputs: &Outputs<AgentState>) {
        self.streams.kind.fence.dismiss(dismissed(&outputs.effects));
        self.local.stopping = None;
        let answers = self.core.inbox().next().is_some() || self.running().any(|job| matches!(job, Job::Round { .. }));
        let mut children = children_of(&outputs.effects).peekable();
        if !answers || children.peek().is_some() {
            self.streams.kind.tree_quota.redeem(&self.id, children);
        }
        for (_, _, fact) in &outputs.facts {
            self.keep_in_step_with(fact);
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "only the beginning and the end of an agent are of interest")]
    fn keep_in_step_with(&self, fact: &Fact) {
        let end = match fact {
            Fact::AgentCreated(_) | Fact::AgentForked(_) => return self.streams.kind.index.add(&self.id),
            Fact::AgentArchived(_) => {
                self.streams.kind.index.remove(&self.id);
                return self.streams.kind.tree_quota.remove(&self.id);
            }
            // A child that has ended has nobody below it. Of one that was interrupted that is not known.
            Fact::TaskCompleted(fact) => &fact.end,
            Fact::TaskFailed(fact) => &fact.end,
            Fact::TaskCancelled(fact) => &fact.end,
            _ => return,
        };
        let task = self.core.state().planes.tasks.get(&end.task_id);
        if let Some(Ok(child)) = task.and_then(|task| task.child_agent_id.as_deref()).map(AgentId::new) {
            self.streams.kind.fence.forget(&child);
        }
    }

    /// Begins an effect, unless it would begin something new while the fence is not open.
    pub(super) fn begin_effect(&mut self, effect: Effect) {
        if begins_something(&effect) && self.fence_state() != FenceState::Open {
            self.local.withheld.push(effect);
        } else {
            self.perform(effect);
        }
    }
}

/// Whether it ends the agent or one of its tasks.
#[allow(clippy::wildcard_enum_match_arm, reason = "most inputs end nothing")]
fn may_dismiss(input: &Input) -> bool {
    match input {
        Input::Stop
        | Input::Dismiss { .. }
        | Input::Quarantine { .. }
        | Input::Act { act: RecordCall::StopTask { .. }, .. } => true,
        Input::FinishRound { reply, .. } => {
            reply.calls.iter().any(|call| matches!(call.parsed, ToolCall::Record(RecordCall::StopTask { .. })))
        }
        _ => false,
    }
}

/// The children that these effects dismiss.
pub(super) fn dismissed(effects: &[Effect]) -> impl Iterator<Item = AgentId> {
    effects.iter().filter_map(|effect| {
        let Effect::Child(ChildEffect::Dismiss { child_agent_id, .. }) = effect else { return None };
        AgentId::new(child_agent_id).ok()
    })
}

/// The children that these effects make.
fn children_of(effects: &[Effect]) -> impl Iterator<Item = &Identity> {
    effects.iter().filter_map(|effect| {
        let Effect::Child(ChildEffect::Spawn { child, .. }) = effect else { return None };
        Some(&child.identity)
    })
}

/// Whether it begins work; the others end something, or tell of it.
fn begins_something(effect: &Effect) -> bool {
    match effect {
        Effect::Turn(TurnEffect::CallModel { .. } | TurnEffect::RunTool { .. } | TurnEffect::AnswerCall { .. })
        | Effect::Command(CommandEffect::Start { .. })
        | Effect::Child(ChildEffect::Spawn { .. })
        | Effect::TimerCheck(TimerCheckEffect::Run { .. }) => true,
        Effect::Turn(TurnEffect::EndExec { .. })
        | Effect::Command(CommandEffect::Await { .. } | CommandEffect::End { .. } | CommandEffect::Close { .. })
        | Effect::Workspace(_)
        | Effect::Child(ChildEffect::Dismiss { .. } | ChildEffect::ReportToSupervisor { .. })
        | Effect::TimerCheck(TimerCheckEffect::End { .. })
        | Effect::Trigger(_) => false,
    }
}
