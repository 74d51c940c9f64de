//! How a life holds to the fence: it looks there before it decides anything, before it begins an effect, and before the
//! agent comes to be. A child that was dismissed, itself or with somebody above it, leaves at once.

use abide_kernel::agent::config::Identity;
use abide_kernel::effect::Effect;
use abide_kernel::fact::Fact;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, Refusal};

use super::{Life, Reply, What};
use crate::core::{Asked, Outputs};
use crate::host::AskError;
use crate::host::fence::Passage;
use crate::host::kin::SUPERVISOR_ENDED;

/// The making of this agent by another one.
pub(super) struct Birth {
    pub asked: Box<Asked>,
    pub reply: Reply,
    /// Who has it made, and that one's supervisors.
    pub under: Vec<AgentId>,
}

impl Life {
    /// A stop that is about to be admitted holds everybody below from now on. To be called before the time is read.
    pub(super) fn raise_fence(&mut self) {
        if self.stopping.is_none() && self.core.may_dismiss_children() {
            self.stopping = Some(self.shared.fence.stopping(&self.agent));
        }
    }

    /// Looks at the fence, and acts on it. False while somebody above is being stopped: nothing may be decided before it
    /// is known what comes of that. To be called after the time is read.
    pub(super) fn pass_fence(&mut self) -> bool {
        match self.passage() {
            Passage::Waits => return false,
            Passage::Open => {
                for effect in std::mem::take(&mut self.withheld) {
                    self.perform(effect);
                }
            }
            Passage::Closed(dismissed) => {
                // Their turn and their tasks are ended by the dismissal.
                self.withheld.clear();
                if self.core.state().is_working_child() {
                    let evidence = vec![format!("dismissed_with {dismissed}")];
                    self.core.ask_first(Asked::new(0, Input::Dismiss { evidence }));
                }
            }
        }
        self.take_births()
    }

    /// False while one of them has to wait.
    fn take_births(&mut self) -> bool {
        for birth in std::mem::take(&mut self.births) {
            match self.shared.fence.look(&self.agent, &birth.under) {
                Passage::Waits => self.births.push(birth),
                Passage::Open => self.admit(birth.asked, birth.reply),
                Passage::Closed(dismissed) => {
                    let detail = format!("{dismissed}, which it was to work for, was stopped");
                    let refusal = Refusal::new(SUPERVISOR_ENDED, detail, "make no more agents");
                    // The asker may have gone.
                    let _unheard = birth.reply.send(Err(AskError::Refused(refusal)));
                }
            }
        }
        self.births.is_empty()
    }

    fn passage(&mut self) -> Passage {
        if self.supervisors.is_none() && self.core.state().seq > 0 {
            self.supervisors = Some(self.core.state().identity.supervisors());
        }
        self.shared.fence.look(&self.agent, self.supervisors.as_deref().unwrap_or_default())
    }

    pub(super) fn is_supervised(&self) -> bool {
        self.supervisors.as_ref().is_some_and(|supervisors| !supervisors.is_empty())
    }

    /// Keeps the fence, the roster and the trees in step with what is durable, before anybody is answered.
    pub(super) fn mark(&mut self, outputs: &Outputs) {
        self.shared.fence.dismiss(dismissed(&outputs.effects));
        self.stopping = None;
        let answers =
            self.core.waiting() > 0 || self.running.values().any(|job| matches!(job.what, What::Round { .. }));
        let mut children = children_of(&outputs.effects).peekable();
        if !answers || children.peek().is_some() {
            self.shared.trees.redeem(&self.agent, children);
        }
        for (_, _, fact) in &outputs.facts {
            self.mark_fact(fact);
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "only the beginning and the end of an agent are of interest")]
    fn mark_fact(&self, fact: &Fact) {
        let end = match fact {
            Fact::AgentCreated(_) | Fact::AgentForked(_) => return self.shared.roster.join(&self.agent),
            Fact::AgentArchived(_) => {
                self.shared.roster.leave(&self.agent);
                return self.shared.trees.leave(&self.agent);
            }
            // A child that has ended has nobody below it. Of one that was interrupted that is not known.
            Fact::TaskCompleted(fact) => &fact.end,
            Fact::TaskFailed(fact) => &fact.end,
            Fact::TaskCancelled(fact) => &fact.end,
            _ => return,
        };
        let task = self.core.state().tasks.get(&end.task_id);
        if let Some(Ok(child)) = task.and_then(|task| task.child_agent_id.as_deref()).map(AgentId::new) {
            self.shared.fence.forget(&child);
        }
    }

    /// Begins an effect, unless it would begin something new while the fence is not open.
    pub(super) fn begin(&mut self, effect: Effect) {
        if begins_something(&effect) && self.passage() != Passage::Open {
            self.withheld.push(effect);
        } else {
            self.perform(effect);
        }
    }
}

/// The children that these effects dismiss.
pub(super) fn dismissed(effects: &[Effect]) -> impl Iterator<Item = AgentId> {
    effects.iter().filter_map(|effect| {
        let Effect::DismissChild { child_agent_id, .. } = effect else { return None };
        AgentId::new(child_agent_id).ok()
    })
}

/// The children that these effects make.
fn children_of(effects: &[Effect]) -> impl Iterator<Item = &Identity> {
    effects.iter().filter_map(|effect| {
        let Effect::SpawnChild { child, .. } = effect else { return None };
        Some(&child.identity)
    })
}

/// Whether it begins work; the others end something, or tell of it.
fn begins_something(effect: &Effect) -> bool {
    match effect {
        Effect::CallModel { .. }
        | Effect::RunTool { .. }
        | Effect::AnswerCall { .. }
        | Effect::StartTask { .. }
        | Effect::SpawnChild { .. }
        | Effect::RunCheck { .. } => true,
        Effect::EndExec { .. }
        | Effect::AwaitTask { .. }
        | Effect::EndTask { .. }
        | Effect::CloseTask { .. }
        | Effect::ReleaseWorkspace { .. }
        | Effect::RemoveWorktree { .. }
        | Effect::DismissChild { .. }
        | Effect::ReportToSupervisor { .. }
        | Effect::EndCheck { .. }
        | Effect::ForgetSecret { .. } => false,
    }
}
