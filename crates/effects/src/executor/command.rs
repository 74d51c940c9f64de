//! `ExecCommand`, and the commands that people start.

use std::path::PathBuf;
use std::time::Duration;

use abide_kernel::credentials::Credentials;
use abide_kernel::fact::{TaskCreated, TaskEnd};
use abide_kernel::id::{AgentId, ExecId, TaskId};
use abide_kernel::input::{Input, Refusal};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::{Command, ExecCommand};
use abide_kernel::vocabulary::TaskStatus;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::credentials::missing_note;
use super::folder_lease::{FolderLease, GitAccess};
use super::task_io::lossy_text;
use super::{Executor, ToolOutcome, ToolRun, run_blocking};
use crate::limits::{self, FOLDER_WAIT};
use crate::process::{Launch, OutputExcerpt, Process, ProcessExit, Protection};
use crate::sandbox::Mode;
use crate::workspace;

impl Executor {
    pub(super) async fn exec_command(&self, run: &ToolRun, wanted: ExecCommand) -> Result<ToolOutcome, Refusal> {
        let ToolRun { agent, exec_id, call_id, place, .. } = run;
        let command = &wanted.command;
        let same = self.0.tasks.find_running(agent, &command.command, command.workdir.as_deref());
        if let Some(task) = same.filter(|_| !wanted.start_new) {
            let handle = json!({ "task_id": task });
            return Ok(ToolOutcome::new(json!({ "disposition": "already_running", "task_handle": handle })));
        }
        let task_id = self.new_task_id();
        let yielded = Duration::from_millis(wanted.yield_time_ms);
        let deadline = Instant::now() + yielded;
        let lease = self.lease_folder(agent, place, yielded).await?;
        let credentials = &place.credentials;
        let started = self.start_command(agent, &task_id, command, place, credentials, Some(exec_id), lease).await?;
        let StartedCommand { process, lease, missing } = started;
        let note = missing_note(&missing);
        let ended = tokio::time::timeout_at(deadline, process.wait()).await;
        let first = lease.record_inputs();
        match ended {
            Ok(ended) => {
                let mut result = completed_result(&process, &ended, wanted.max_output_bytes);
                if let Some(note) = note {
                    result["note"] = json!(note);
                }
                Ok(ToolOutcome::with_inputs(result, first))
            }
            Err(_) => {
                let created = TaskCreated {
                    exec_id: Some(exec_id.clone()),
                    call_id: Some(call_id.clone()),
                    ..TaskCreated::of_command(task_id, command.clone())
                };
                let mut outcome =
                    self.promote_to_task(agent, created, command, process, first, wanted.max_output_bytes);
                if let Some(note) = note {
                    let more = outcome.result["note"].as_str().map(|more| format!("; {more}")).unwrap_or_default();
                    outcome.result["note"] = json!(format!("{note}{more}"));
                }
                Ok(outcome)
            }
        }
    }

    /// Turns a running command into a task; the turn goes on without it.
    fn promote_to_task(
        &self,
        agent: &AgentId,
        created: TaskCreated,
        command: &Command,
        process: Process,
        mut first: Vec<Input>,
        max_output_bytes: usize,
    ) -> ToolOutcome {
        let task_id = created.task_id.clone();
        let mut result = json!({
            "disposition": "promoted_to_task", "task_handle": { "task_id": task_id },
            "output": lossy_text(&process.read(0, max_output_bytes).bytes),
        });
        if let Err(error) = process.keep_output_in(&self.output_folder(agent, &task_id)) {
            result["note"] = json!(format!("its output is kept in memory only: {error}"));
        }
        let recovery = Some(process.recovery());
        self.0.tasks.add(agent, &task_id, process, &command.command, command.workdir.as_deref());
        first.push(Input::CreateTask(created));
        first.push(Input::RunTask { task_id, recovery });
        ToolOutcome::with_inputs(result, first)
    }

    /// Starts the command of a task that a person started: its record exists already.
    pub(super) async fn start_task(
        &self,
        agent: &AgentId,
        task_id: TaskId,
        command: Command,
        place: &ToolPlacement,
    ) -> Vec<Input> {
        // A person who stops it need not wait for the folder as well.
        let lease = tokio::select! {
            lease = self.lease_folder(agent, place, FOLDER_WAIT) => lease,
            () = self.0.tasks.wait_for_end_request(agent, &task_id) => {
                let evidence = vec!["not_started: it was stopped before".to_owned()];
                let end = TaskEnd { task_id, evidence, ..TaskEnd::default() };
                return vec![Input::EndTask { status: TaskStatus::Cancelled, end }];
            }
        };
        let started = match lease {
            Ok(lease) => self.start_command(agent, &task_id, &command, place, &place.credentials, None, lease).await,
            Err(refusal) => Err(refusal),
        };
        match started {
            Ok(StartedCommand { process, lease, missing }) => {
                let mut first = lease.record_inputs();
                // Where the disk is full, its output is in memory while it runs.
                let unkept = process.keep_output_in(&self.output_folder(agent, &task_id)).err();
                let unkept = unkept.map(|error| format!("its output is kept in memory only: {error}"));
                let notes = unkept.into_iter().chain(missing_note(&missing)).map(|note| format!("; {note}"));
                let recovery = Some(process.recovery() + &notes.collect::<String>());
                self.0.tasks.add(agent, &task_id, process, &command.command, command.workdir.as_deref());
                first.push(Input::RunTask { task_id, recovery });
                first
            }
            Err(Refusal { code, message, hint }) => {
                let output_tail = format!("{message}; {hint}");
                // It has no output that could be asked for.
                let evidence = vec![format!("not_started {code}: {output_tail}")];
                let end = TaskEnd { task_id, output_tail, evidence, ..TaskEnd::default() };
                vec![Input::EndTask { status: TaskStatus::Failed, end }]
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a check and a task differ from a call in each of them")]
    pub(super) async fn start_command(
        &self,
        agent: &AgentId,
        task_id: &TaskId,
        command: &Command,
        place: &ToolPlacement,
        credentials: &Credentials,
        exec_id: Option<&ExecId>,
        lease: FolderLease,
    ) -> Result<StartedCommand, Refusal> {
        let running = self.0.tasks.count_of(agent);
        if running >= limits::COMMANDS_MAX {
            let message = format!("{running} commands of this agent run already");
            return Err(Refusal::new(ErrorCode::TooManyCommands, message));
        }
        let (executor, owner, turn) = (self.clone(), agent.clone(), exec_id.cloned());
        let (lease, protection) = run_blocking(move || {
            executor.forget_old_output(&owner);
            if !lease.git_access.direct && lease.claim.begins_turn(turn.as_ref()) {
                // A repository that can't be read at this moment keeps no command from running: the worktree has all
                // that it needs, and the user's branches come with the next turn.
                let _later = executor.0.repositories.refresh_user_refs(&lease.root);
            }
            let protection = executor.find_protection(&lease)?;
            Ok::<_, Refusal>((lease, protection))
        })
        .await?;
        let launch = make_launch(agent, &lease, protection, task_id, command, place.network)?;
        let (launch, missing) = self.with_credentials(launch, credentials);
        let process = self.0.processes.start(launch).await?;
        self.0.tasks.add_running(agent, process.watch());
        Ok(StartedCommand { process, lease, missing })
    }
}

/// A command that runs.
pub(super) struct StartedCommand {
    pub(super) process: Process,
    /// Held for as long as the call looks after it.
    pub(super) lease: FolderLease,
    /// The credentials that the agent was given and that are missing.
    pub(super) missing: Vec<String>,
}

impl Executor {
    /// The parts of the user's repositories that an agent which works in their folder must not change.
    fn find_protection(&self, lease: &FolderLease) -> Result<Protection, Refusal> {
        if !lease.git_access.direct || lease.root.starts_with(&self.0.home) {
            return Ok(Protection::default());
        }
        let sandbox = self.sandbox();
        if sandbox.protects_repositories() {
            let mut protection = self.0.repositories.protect(&lease.root)?;
            for records in &lease.git_access.write {
                protection.extend(workspace::protect_records(records)?);
            }
            return Ok(protection);
        }
        if sandbox.mode() == Mode::Required && workspace::has_repository(&lease.root) {
            let message = format!(
                "{} has a repository whose hooks and settings this sandbox can't protect",
                lease.root.display()
            );
            let hint = "install bubblewrap, use a worktree, or set the sandbox to `auto`";
            return Err(Refusal::new(ErrorCode::Unprotected, message).with_hint(hint));
        }
        Ok(Protection::default())
    }
}

fn make_launch(
    agent: &AgentId,
    lease: &FolderLease,
    protection: Protection,
    task_id: &TaskId,
    command: &Command,
    network: bool,
) -> Result<Launch, Refusal> {
    let workdir = command.workdir.as_deref().unwrap_or(".");
    let inside = |cwd: &PathBuf| cwd.is_dir() && cwd.starts_with(&lease.root);
    let Some(cwd) = lease.root.join(workdir).canonicalize().ok().filter(inside) else {
        let message = format!("{workdir} is no folder in the workspace {}", lease.root.display());
        return Err(Refusal::new(ErrorCode::NoWorkdir, message));
    };
    let GitAccess { read, write, git_config, .. } = lease.git_access.clone();
    Ok(Launch {
        agent: agent.to_string(),
        cwd,
        network,
        tty: command.tty,
        accepts_input: command.accepts_input,
        extra_read: read,
        extra_write: write,
        protection,
        home_files: vec![(workspace::GIT_CONFIG.to_owned(), git_config)],
        ..Launch::new(command.command.clone(), &lease.root, task_id.to_string())
    })
}

fn completed_result(process: &Process, ended: &ProcessExit, max: usize) -> Value {
    let output = process.output();
    let (stdout, cut) = bounded_text(&output.stdout, max);
    let (stderr, also_cut) = bounded_text(&output.stderr, max);
    let mut result = json!({
        "disposition": "completed", "exit_code": ended.exit_code, "stdout": stdout, "stderr": stderr,
        "truncated": cut || also_cut,
    });
    if let Some(signal) = ended.signal {
        result["signal"] = json!(signal);
    }
    if !ended.evidence.is_empty() {
        result["evidence"] = json!(ended.evidence);
    }
    result
}

/// The start and the end of a stream, with what is missing between counted.
pub(super) fn bounded_text(kept: &OutputExcerpt, max: usize) -> (String, bool) {
    let whole = kept.whole();
    if let Some(all) = whole.as_ref().filter(|all| all.len() <= max) {
        return (lossy_text(all), false);
    }
    let half = max / 2;
    let (head, tail) = match &whole {
        Some(all) => (all.as_slice(), all.as_slice()),
        None => (kept.head.as_slice(), kept.tail.as_slice()),
    };
    let head = &head[..head.len().min(half)];
    let tail = &tail[tail.len().saturating_sub(half)..];
    let missing = kept.total.saturating_sub((head.len() + tail.len()) as u64);
    (format!("{}\n[… {missing} bytes left out …]\n{}", lossy_text(head), lossy_text(tail)), true)
}
