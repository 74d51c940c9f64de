//! Crashes of the simulated process, and its next start.

use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::fact::{Fact, TaskEnd};
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;
use abide_kernel::open_json::ToolOutput;
use abide_kernel::vocabulary::{TaskStatus, ToolStatus};
use abide_ledger::{Ledger, StreamId};

use super::{Simulation, shown};
use crate::generators;

impl Simulation {
    /// The process dies: what was not synced is gone, or some of it, and nobody was told.
    pub(super) fn crash(&mut self, keep: usize) -> Result<(), String> {
        self.note(format!("-- crash, keeping {keep} staged commits"));
        self.tally.crashes += 1;
        // The next process may have other settings.
        if self.rng.chance(15) {
            self.limits = generators::limits(&mut self.rng);
        }
        self.memory = self.memory.crash_keeping(keep);
        self.ledger = Ledger::Memory(self.memory.clone());
        let ids: Vec<AgentId> = self.agents.keys().cloned().collect();
        for id in &ids {
            let Some(simulated) = self.agents.get_mut(id) else { continue };
            simulated.core = None;
            simulated.asked.clear();
            let lost = std::mem::take(&mut simulated.effects);
            let processes = std::mem::take(&mut simulated.processes);
            // A report may still be on its way from a process that outlived us.
            for task_id in processes {
                if self.rng.chance(20) {
                    let end = TaskEnd { task_id, ..TaskEnd::default() };
                    self.late.push((id.clone(), Input::EndTask { status: TaskStatus::Completed, end }));
                }
            }
            for effect in lost {
                if let (Effect::Turn(TurnEffect::RunTool { exec_id, call_id, .. }), true) =
                    (effect, self.rng.chance(20))
                {
                    let result = ToolOutput::default();
                    let status = ToolStatus::Completed;
                    self.late.push((id.clone(), Input::FinishTool { exec_id, call_id, status, result, reads: None }));
                }
            }
            self.catch_up(id)?;
            self.agents[id].check_nothing_lost()?;
        }
        self.boot()
    }

    /// Facts that reached the disk although nobody was told.
    fn catch_up(&mut self, id: &AgentId) -> Result<(), String> {
        let stream = StreamId::agent(id);
        let after = self.agents[id].shadow.seq;
        let head = self.ledger.head(&stream).map_err(|error| error.to_string())?.map_or(0, |head| head.seq);
        if head < after {
            return Err(format!("{id} had {after} durable facts, {head} are left"));
        }
        let tail = self.ledger.read(&stream, after, usize::MAX).map_err(|error| error.to_string())?;
        for recorded in tail {
            let payload = recorded.payload.stored().unwrap_or_default();
            let fact = Fact::decode(&recorded.kind, payload).map_err(|error| error.to_string())?;
            self.note(format!("{id}:   {} {} (unacknowledged)", recorded.seq, shown(&fact)));
            let ends = recorded.seq == head;
            if let Some(simulated) = self.agents.get_mut(id) {
                simulated.observe(recorded.seq, recorded.at, &fact, ends)?;
            }
        }
        let shadow = self.agents[id].shadow.clone();
        if shadow.seq > 0 { self.check_replay(id, &shadow) } else { Ok(()) }
    }

    /// Loads what the wake index names as due or cut off; fold_all_agents else sleeps on.
    pub(super) fn boot(&mut self) -> Result<(), String> {
        let wakes = self.ledger.wakes(Some(self.now), usize::MAX).map_err(|error| error.to_string())?;
        let ahead = self.ledger.waits_recorded_after(self.now).map_err(|error| error.to_string())?;
        for stream in wakes.into_iter().map(|(stream, _)| stream).chain(ahead) {
            let Some(id) = stream.agent_name().and_then(|name| AgentId::new(name).ok()) else { continue };
            if self.agents.get(&id).is_some_and(|simulated| simulated.core.is_none()) && self.load_agent(&id)? {
                self.drive(&id)?;
            }
        }
        Ok(())
    }
}
