//! A transaction: the facts that one input or decision becomes, and the effects that follow from them. A rule emits facts
//! here, and each is applied at once, so that the next rule sees it. The state runs ahead of the ledger by exactly these
//! facts; if they can't be committed, the state is thrown away and read again.

use crate::effect::{ChildEffect, CommandEffect, Effect, TimerCheckEffect, TurnEffect, effects_of};
use crate::fact::Fact;
use crate::id::{ExecId, Fresh};
use crate::state::AgentState;
#[cfg(feature = "planted")]
use crate::state::planted;
use crate::state::turn::Phase;
use crate::time::Time;
use crate::vocabulary::TaskStatus;

#[derive(Debug)]
pub struct Transaction<'a> {
    pub state: &'a mut AgentState,
    pub now: Time,
    pub fresh: &'a mut Fresh,
    facts: Vec<Fact>,
    effects: Vec<Effect>,
}

impl<'a> Transaction<'a> {
    pub fn new(state: &'a mut AgentState, now: Time, fresh: &'a mut Fresh) -> Transaction<'a> {
        Transaction { state, now, fresh, facts: Vec::new(), effects: Vec::new() }
    }

    /// Records a fact. One that the state refuses is a bug of ours, not of the input: inputs are refused before.
    pub fn emit(&mut self, fact: impl Into<Fact>) {
        let fact = fact.into();
        #[cfg(feature = "planted")]
        let Some(fact) = planted::alter_fact(self.state, fact) else { return };
        if let Err(illegal) = self.state.apply(self.now, &fact) {
            panic!("the kernel made an illegal fact for {}: {illegal}", self.state.id());
        }
        self.effects.extend(effects_of(&fact, self.state));
        self.facts.push(fact);
    }

    /// Asks for what follows from a fact of this transaction, where the fact alone does not say all of it.
    pub fn ask(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Asks once more for what follows from a fact that is durable already: after a cut nobody else does it.
    pub fn ask_again(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    #[must_use]
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// The recorded facts and the effects that they ask for. Effects that the same transaction made void are left out.
    #[must_use]
    pub fn finish(self) -> (Vec<Fact>, Vec<Effect>) {
        let state = self.state;
        let mut effects = self.effects;
        effects.retain(|effect| is_still_wanted(state, effect));
        (self.facts, effects)
    }
}

/// Whether the state that a transaction ends with still wants an effect that the transaction asked for.
fn is_still_wanted(state: &AgentState, effect: &Effect) -> bool {
    match effect {
        Effect::Turn(effect) => is_call_running(state, effect),
        // A task that ended within the transaction that started it has nothing to start or to wait for.
        Effect::Command(CommandEffect::Start { task_id, .. } | CommandEffect::Await { task_id }) => {
            state.planes.tasks.open().contains_key(task_id)
        }
        Effect::Child(ChildEffect::Spawn { task_id, .. }) => {
            state.planes.tasks.open().get(task_id).is_some_and(|task| task.status == TaskStatus::Queued)
        }
        Effect::TimerCheck(TimerCheckEffect::Run { timer_id, due, .. }) => {
            let checking = state.planes.timers.get(timer_id).and_then(|timer| timer.checking);
            checking.is_some_and(|checking| checking.due == *due)
        }
        Effect::Command(CommandEffect::End { .. } | CommandEffect::Close { .. })
        | Effect::Child(ChildEffect::Dismiss { .. } | ChildEffect::ReportToSupervisor { .. })
        | Effect::TimerCheck(TimerCheckEffect::End { .. })
        | Effect::Workspace(_)
        | Effect::Trigger(_) => true,
    }
}

/// A call that was begun and finished within one transaction has nothing left to do in the world.
fn is_call_running(state: &AgentState, effect: &TurnEffect) -> bool {
    let running = |exec_id: &ExecId| state.turns.current.as_ref().filter(|turn| turn.exec_id == *exec_id);
    match effect {
        TurnEffect::CallModel { exec_id, round, .. } => {
            running(exec_id).is_some_and(|turn| turn.phase == Phase::Model && turn.round == *round)
        }
        TurnEffect::RunTool { exec_id, call_id, .. } | TurnEffect::AnswerCall { exec_id, call_id, .. } => {
            running(exec_id).is_some_and(|turn| match &turn.phase {
                Phase::Tools { running, .. } => running.contains_key(call_id),
                Phase::Model | Phase::Safe { .. } => false,
            })
        }
        TurnEffect::EndExec { .. } => true,
    }
}
