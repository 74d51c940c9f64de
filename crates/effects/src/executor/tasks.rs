//! Commands that are tasks: held from their start until their end is durable.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::fact::TaskEnd;
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::Input;
use abide_kernel::vocabulary::TaskStatus;
use tokio::sync::watch;

use super::task_io::lossy_text;
use crate::limits;
use crate::process::{Process, ProcessExit, ProcessWatch};

#[derive(Debug, Default)]
pub(super) struct Tasks {
    held: Mutex<HashMap<(AgentId, TaskId), HeldTask>>,
    /// Commands that are being started, and whether they are to end as soon as they run.
    starting: Mutex<Starting>,
    /// Every command that was started, in a call or as a task, until nothing of it runs.
    running: Mutex<HashMap<AgentId, Vec<ProcessWatch>>>,
}

type Starting = HashMap<(AgentId, TaskId), watch::Sender<Option<EndRequest>>>;

/// How a command is to end.
#[derive(Debug, Clone, Copy)]
struct EndRequest {
    force: bool,
}

/// A command, and whether its end is in the records.
#[derive(Debug, Clone)]
pub(super) struct HeldTask {
    pub(super) process: Process,
    /// The command line, to recognise a repeated call.
    command: String,
    workdir: Option<String>,
    recorded: watch::Sender<bool>,
}

impl HeldTask {
    /// Waits until the end is durable.
    pub(super) async fn wait_until_recorded(&self) {
        let mut recorded = self.recorded.subscribe();
        // The sender is ours; it can't be gone.
        let _here = recorded.wait_for(|recorded| *recorded).await;
    }
}

impl Tasks {
    fn lock_held(&self) -> MutexGuard<'_, HashMap<(AgentId, TaskId), HeldTask>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_running(&self, agent: &AgentId, running: ProcessWatch) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = all.entry(agent.clone()).or_default();
        of_it.retain(|running| !running.is_over());
        of_it.push(running);
    }

    /// Waits until no command of the agent runs, and the ends of its tasks are durable.
    pub(super) async fn wait_until_over(&self, agent: &AgentId) {
        loop {
            let held: Vec<HeldTask> = self
                .lock_held()
                .iter()
                .filter(|((owner, _), _)| owner == agent)
                .map(|(_, held)| held.clone())
                .collect();
            let running = self.list_running(agent);
            if held.is_empty() && running.is_empty() {
                return;
            }
            for held in held {
                held.wait_until_recorded().await;
            }
            for mut running in running {
                running.wait().await;
            }
        }
    }

    fn list_running(&self, agent: &AgentId) -> Vec<ProcessWatch> {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_it) = all.get_mut(agent) else { return Vec::new() };
        of_it.retain(|running| !running.is_over());
        let running = of_it.clone();
        if running.is_empty() {
            all.remove(agent);
        }
        running
    }

    pub(super) fn count_of(&self, agent: &AgentId) -> usize {
        self.lock_held().keys().filter(|(owner, _)| owner == agent).count()
    }

    /// From here on until `finish_start`, a request to end it is kept for it.
    pub(super) fn begin_start(&self, agent: &AgentId, task: &TaskId) {
        self.lock_starting().insert((agent.clone(), task.clone()), watch::Sender::new(None));
    }

    /// Waits until a command that is being started is asked to end.
    pub(super) async fn wait_for_end_request(&self, agent: &AgentId, task: &TaskId) {
        let wish = self.lock_starting().get(&(agent.clone(), task.clone())).map(watch::Sender::subscribe);
        if let Some(mut wish) = wish
            && wish.wait_for(Option::is_some).await.is_ok()
        {
            return;
        }
        // No request can come any more.
        std::future::pending().await
    }

    /// Ends the start of a command: it is held now, or was not started. If it was asked to end meanwhile, it ends.
    pub(super) fn finish_start(&self, agent: &AgentId, task: &TaskId) {
        let wish = self.lock_starting().remove(&(agent.clone(), task.clone())).and_then(|wish| *wish.borrow());
        if let (Some(EndRequest { force }), Some(held)) = (wish, self.get(agent, task)) {
            held.process.stop(force);
        }
    }

    fn lock_starting(&self) -> MutexGuard<'_, Starting> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, agent: &AgentId, task: &TaskId, process: Process, command: &str, workdir: Option<&str>) {
        let held = HeldTask {
            process,
            command: command.to_owned(),
            workdir: workdir.map(str::to_owned),
            recorded: watch::Sender::new(false),
        };
        self.lock_held().insert((agent.clone(), task.clone()), held);
    }

    /// Which of these are still needed.
    pub(super) fn contains(&self, agent: &AgentId, task: &str) -> bool {
        self.lock_held().contains_key(&(agent.clone(), TaskId::new(task)))
    }

    pub(super) fn get(&self, agent: &AgentId, task: &TaskId) -> Option<HeldTask> {
        self.lock_held().get(&(agent.clone(), task.clone())).cloned()
    }

    /// The task that runs this very command.
    pub(super) fn find_running(&self, agent: &AgentId, command: &str, workdir: Option<&str>) -> Option<TaskId> {
        let all = self.lock_held();
        let mut same = all.iter().filter(|((owner, _), held)| {
            owner == agent
                && held.command == command
                && held.workdir.as_deref() == workdir
                && held.process.exit().is_none()
        });
        same.next().map(|((_, task), _)| task.clone())
    }

    /// Waits for the end of the command, and returns the input that reports it.
    pub(super) async fn wait_for_end(&self, agent: &AgentId, task_id: TaskId) -> Input {
        match self.get(agent, &task_id) {
            Some(held) => {
                let ended = held.process.wait().await;
                end_input(task_id, &held.process, ended)
            }
            None => not_running_input(task_id),
        }
    }

    /// Ends a command; the job that awaits it reports the end. For a command that does not run here, the report is
    /// returned now.
    pub(super) fn request_end(&self, agent: &AgentId, task: &TaskId, force: bool) -> Option<Input> {
        // Checked first: a command that is not being started any more is held by now.
        if let Some(wish) = self.lock_starting().get(&(agent.clone(), task.clone())) {
            wish.send_modify(|wish| *wish = Some(EndRequest { force: force || wish.is_some_and(|wish| wish.force) }));
            return None;
        }
        match self.get(agent, task) {
            Some(held) => {
                held.process.stop(force);
                None
            }
            None => Some(not_running_input(task.clone())),
        }
    }

    /// The end is durable, or the command is given up: nothing of it is left running.
    pub(super) fn close(&self, agent: &AgentId, task: &TaskId) {
        if let Some(held) = self.lock_held().remove(&(agent.clone(), task.clone())) {
            held.process.stop(true);
            held.recorded.send_replace(true);
        }
    }

    /// Ends all commands of an agent, and says of which.
    pub(super) fn drop_all(&self, agent: &AgentId) -> BTreeMap<TaskId, Vec<String>> {
        self.lock_starting().retain(|(owner, _), _| owner != agent);
        let mut all = self.lock_held();
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

fn not_running_input(task_id: TaskId) -> Input {
    let evidence = vec!["nothing of it runs here".to_owned()];
    Input::EndTask { status: TaskStatus::Interrupted, end: TaskEnd { task_id, evidence, ..TaskEnd::default() } }
}

/// How a command ended, as it is recorded.
fn end_input(task_id: TaskId, process: &Process, ended: ProcessExit) -> Input {
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
        output_tail: lossy_text(tail),
        output_bytes: kept.total,
        truncated: kept.dropped > 0,
        evidence: ended.evidence,
        used: None,
    };
    Input::EndTask { status, end }
}
