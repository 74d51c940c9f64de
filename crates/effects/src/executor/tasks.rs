//! Commands that are tasks: held from their start until their end is durable.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::fact::TaskEnd;
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::Input;
use abide_kernel::vocabulary::TaskStatus;
use tokio::sync::watch;

use super::output::text;
use crate::limits;
use crate::process::{Process, ProcessExit, ProcessWatch};

#[derive(Debug, Default)]
pub(super) struct Tasks {
    held: Mutex<HashMap<(AgentId, TaskId), Held>>,
    /// Commands that are being started, and whether they are to end as soon as they run.
    starting: Mutex<Starting>,
    /// Every command that was started, in a call or as a task, until nothing of it runs.
    running: Mutex<HashMap<AgentId, Vec<ProcessWatch>>>,
}

type Starting = HashMap<(AgentId, TaskId), watch::Sender<Option<End>>>;

/// How a command is to end.
#[derive(Debug, Clone, Copy)]
struct End {
    force: bool,
}

/// A command, and whether its end is in the records.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) process: Process,
    /// What was asked for, to know the same again.
    command: String,
    workdir: Option<String>,
    recorded: watch::Sender<bool>,
}

impl Held {
    /// Comes back when the end is durable.
    pub(super) async fn recorded(&self) {
        let mut recorded = self.recorded.subscribe();
        // The sender is ours; it can't be gone.
        let _here = recorded.wait_for(|recorded| *recorded).await;
    }
}

impl Tasks {
    fn all(&self) -> MutexGuard<'_, HashMap<(AgentId, TaskId), Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn started(&self, agent: &AgentId, running: ProcessWatch) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = all.entry(agent.clone()).or_default();
        of_it.retain(|running| !running.is_over());
        of_it.push(running);
    }

    /// Comes back when nothing runs of what the agent has started, and the ends of its tasks are durable.
    pub(super) async fn all_over(&self, agent: &AgentId) {
        loop {
            let held: Vec<Held> =
                self.all().iter().filter(|((owner, _), _)| owner == agent).map(|(_, held)| held.clone()).collect();
            let running = self.still_running(agent);
            if held.is_empty() && running.is_empty() {
                return;
            }
            for held in held {
                held.recorded().await;
            }
            for mut running in running {
                running.wait().await;
            }
        }
    }

    fn still_running(&self, agent: &AgentId) -> Vec<ProcessWatch> {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_it) = all.get_mut(agent) else { return Vec::new() };
        of_it.retain(|running| !running.is_over());
        let running = of_it.clone();
        if running.is_empty() {
            all.remove(agent);
        }
        running
    }

    pub(super) fn of(&self, agent: &AgentId) -> usize {
        self.all().keys().filter(|(owner, _)| owner == agent).count()
    }

    /// From here on until `is_started`, a wish to end it is kept for it.
    pub(super) fn starts(&self, agent: &AgentId, task: &TaskId) {
        self.all_starting().insert((agent.clone(), task.clone()), watch::Sender::new(None));
    }

    /// Comes back when a command that is being started is to end.
    pub(super) async fn asked_to_end(&self, agent: &AgentId, task: &TaskId) {
        let wish = self.all_starting().get(&(agent.clone(), task.clone())).map(watch::Sender::subscribe);
        if let Some(mut wish) = wish
            && wish.wait_for(Option::is_some).await.is_ok()
        {
            return;
        }
        // Nobody can ask any more.
        std::future::pending().await
    }

    /// It is held now, or never will be. One that was asked to end meanwhile ends.
    pub(super) fn is_started(&self, agent: &AgentId, task: &TaskId) {
        let wish = self.all_starting().remove(&(agent.clone(), task.clone())).and_then(|wish| *wish.borrow());
        if let (Some(End { force }), Some(held)) = (wish, self.get(agent, task)) {
            held.process.stop(force);
        }
    }

    fn all_starting(&self) -> MutexGuard<'_, Starting> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold(&self, agent: &AgentId, task: &TaskId, process: Process, command: &str, workdir: Option<&str>) {
        let held = Held {
            process,
            command: command.to_owned(),
            workdir: workdir.map(str::to_owned),
            recorded: watch::Sender::new(false),
        };
        self.all().insert((agent.clone(), task.clone()), held);
    }

    /// Which of these are still needed.
    pub(super) fn holds(&self, agent: &AgentId, task: &str) -> bool {
        self.all().contains_key(&(agent.clone(), TaskId::new(task)))
    }

    pub(super) fn get(&self, agent: &AgentId, task: &TaskId) -> Option<Held> {
        self.all().get(&(agent.clone(), task.clone())).cloned()
    }

    /// The task that runs this very command.
    pub(super) fn running(&self, agent: &AgentId, command: &str, workdir: Option<&str>) -> Option<TaskId> {
        let all = self.all();
        let mut same = all.iter().filter(|((owner, _), held)| {
            owner == agent
                && held.command == command
                && held.workdir.as_deref() == workdir
                && held.process.exit().is_none()
        });
        same.next().map(|((_, task), _)| task.clone())
    }

    /// What to report when the command has ended.
    pub(super) async fn ended(&self, agent: &AgentId, task_id: TaskId) -> Input {
        match self.get(agent, &task_id) {
            Some(held) => {
                let ended = held.process.wait().await;
                end_of(task_id, &held.process, ended)
            }
            None => nothing_runs(task_id),
        }
    }

    /// Ends a command; its end is reported by whoever awaits it. Of one that does not run here, it is reported now.
    pub(super) fn end(&self, agent: &AgentId, task: &TaskId, force: bool) -> Option<Input> {
        // Looked at first: what is not being started any more is held by now.
        if let Some(wish) = self.all_starting().get(&(agent.clone(), task.clone())) {
            wish.send_modify(|wish| *wish = Some(End { force: force || wish.is_some_and(|wish| wish.force) }));
            return None;
        }
        match self.get(agent, task) {
            Some(held) => {
                held.process.stop(force);
                None
            }
            None => Some(nothing_runs(task.clone())),
        }
    }

    /// The end is durable, or the command is given up: nothing of it is left running.
    pub(super) fn close(&self, agent: &AgentId, task: &TaskId) {
        if let Some(held) = self.all().remove(&(agent.clone(), task.clone())) {
            held.process.stop(true);
            held.recorded.send_replace(true);
        }
    }

    /// Ends all commands of an agent, and says of which.
    pub(super) fn drop_all(&self, agent: &AgentId) -> BTreeMap<TaskId, Vec<String>> {
        self.all_starting().retain(|(owner, _), _| owner != agent);
        let mut all = self.all();
        let left: Vec<_> = all.keys().filter(|(owner, _)| owner == agent).cloned().collect();
        let ended = left.into_iter().filter_map(|key| {
            let held = all.remove(&key)?;
            held.process.stop(true);
            held.recorded.send_replace(true);
            Some((key.1, vec![format!("ended {}", held.process.recovery())]))
        });
        ended.collect()
    }
}

fn nothing_runs(task_id: TaskId) -> Input {
    let evidence = vec!["nothing of it runs here".to_owned()];
    Input::EndTask { status: TaskStatus::Interrupted, end: TaskEnd { task_id, evidence, ..TaskEnd::default() } }
}

/// How a command ended, as it is recorded.
fn end_of(task_id: TaskId, process: &Process, ended: ProcessExit) -> Input {
    let kept = process.output().combined;
    let status = match (ended.stopped, ended.exit_code, ended.signal) {
        (true, ..) => TaskStatus::Cancelled,
        (false, Some(0), _) => TaskStatus::Completed,
        (false, None, None) => TaskStatus::Interrupted,
        (false, ..) => TaskStatus::Failed,
    };
    let all = [kept.head.as_slice(), &kept.tail].concat();
    let tail = &all[all.len().saturating_sub(limits::RESULT_TAIL_BYTES)..];
    let end = TaskEnd {
        task_id,
        exit_code: ended.exit_code,
        signal: ended.signal,
        output_tail: text(tail),
        output_bytes: kept.total,
        truncated: kept.dropped > 0,
        evidence: ended.evidence,
        used: None,
    };
    Input::EndTask { status, end }
}
