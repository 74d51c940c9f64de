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

use super::credentials::without;
use super::desk::{Desk, Surroundings};
use super::output::text;
use super::{Hands, Outcome, ToolRun, blocking};
use crate::limits::{self, FOLDER_WAIT};
use crate::process::{Ended, Kept, Launch, Process, Protection};
use crate::sandbox::Mode;
use crate::workspace;

impl Hands {
    pub(super) async fn exec_command(&self, run: &ToolRun, wanted: ExecCommand) -> Result<Outcome, Refusal> {
        let ToolRun { agent, exec_id, call_id, place, .. } = run;
        let command = &wanted.command;
        let same = self.0.tasks.running(agent, &command.command, command.workdir.as_deref());
        if let Some(task) = same.filter(|_| !wanted.start_new) {
            let handle = json!({ "task_id": task });
            return Ok(Outcome::of(json!({ "disposition": "already_running", "task_handle": handle })));
        }
        let task_id = self.new_task_id();
        let yielded = Duration::from_millis(wanted.yield_time_ms);
        let deadline = Instant::now() + yielded;
        let desk = self.desk(agent, place, yielded).await?;
        let credentials = &place.credentials;
        let started = self.start(agent, &task_id, command, place, credentials, Some(exec_id), desk).await?;
        let Started { process, desk, missing } = started;
        let note = without(&missing);
        let ended = tokio::time::timeout_at(deadline, process.wait()).await;
        let first = desk.record();
        match ended {
            Ok(ended) => {
                let mut result = completed(&process, &ended, wanted.max_output_bytes);
                if let Some(note) = note {
                    result["note"] = json!(note);
                }
                Ok(Outcome::after(result, first))
            }
            Err(_) => {
                let created = TaskCreated {
                    exec_id: Some(exec_id.clone()),
                    call_id: Some(call_id.clone()),
                    ..TaskCreated::of_command(task_id, command.clone())
                };
                let mut outcome = self.promote(agent, created, command, process, first, wanted.max_output_bytes);
                if let Some(note) = note {
                    let more = outcome.result["note"].as_str().map(|more| format!("; {more}")).unwrap_or_default();
                    outcome.result["note"] = json!(format!("{note}{more}"));
                }
                Ok(outcome)
            }
        }
    }

    /// The command goes on as a task, and the turn without it.
    fn promote(
        &self,
        agent: &AgentId,
        created: TaskCreated,
        command: &Command,
        process: Process,
        mut first: Vec<Input>,
        max_output_bytes: usize,
    ) -> Outcome {
        let task_id = created.task_id.clone();
        let mut result = json!({
            "disposition": "promoted_to_task", "task_handle": { "task_id": task_id },
            "output": text(&process.read(0, max_output_bytes).bytes),
        });
        if let Err(error) = process.keep(&self.output_folder(agent, &task_id)) {
            result["note"] = json!(format!("its output is kept in memory only: {error}"));
        }
        let recovery = Some(process.recovery());
        self.0.tasks.hold(agent, &task_id, process, &command.command, command.workdir.as_deref());
        first.push(Input::CreateTask(created));
        first.push(Input::RunTask { task_id, recovery });
        Outcome::after(result, first)
    }

    /// A task that a person started: its record is there already.
    pub(super) async fn start_task(
        &self,
        agent: &AgentId,
        task_id: TaskId,
        command: Command,
        place: &ToolPlacement,
    ) -> Vec<Input> {
        // A person who stops it need not wait for the folder as well.
        let desk = tokio::select! {
            desk = self.desk(agent, place, FOLDER_WAIT) => desk,
            () = self.0.tasks.asked_to_end(agent, &task_id) => {
                let evidence = vec!["not_started: it was stopped before".to_owned()];
                let end = TaskEnd { task_id, evidence, ..TaskEnd::default() };
                return vec![Input::EndTask { status: TaskStatus::Cancelled, end }];
            }
        };
        let started = match desk {
            Ok(desk) => self.start(agent, &task_id, &command, place, &place.credentials, None, desk).await,
            Err(refusal) => Err(refusal),
        };
        match started {
            Ok(Started { process, desk, missing }) => {
                let mut first = desk.record();
                // Where the disk is full, its output is in memory while it runs.
                let unkept = process.keep(&self.output_folder(agent, &task_id)).err();
                let unkept = unkept.map(|error| format!("its output is kept in memory only: {error}"));
                let notes = unkept.into_iter().chain(without(&missing)).map(|note| format!("; {note}"));
                let recovery = Some(process.recovery() + &notes.collect::<String>());
                self.0.tasks.hold(agent, &task_id, process, &command.command, command.workdir.as_deref());
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
    pub(super) async fn start(
        &self,
        agent: &AgentId,
        task_id: &TaskId,
        command: &Command,
        place: &ToolPlacement,
        credentials: &Credentials,
        exec_id: Option<&ExecId>,
        desk: Desk,
    ) -> Result<Started, Refusal> {
        let running = self.0.tasks.of(agent);
        if running >= limits::COMMANDS_MAX {
            let message = format!("{running} commands of this agent run already");
            return Err(Refusal::new(ErrorCode::TooManyCommands, message));
        }
        let (hands, owner, turn) = (self.clone(), agent.clone(), exec_id.cloned());
        let (desk, protection) = blocking(move || {
            hands.forget_old_output(&owner);
            if !desk.surroundings.direct && desk.claim.begins_turn(turn.as_ref()) {
                // A repository that can't be read at this moment keeps no command from running: the worktree has all
                // that it needs, and the user's branches come with the next turn.
                let _later = hands.0.repositories.refresh(&desk.root);
            }
            let protection = hands.protection(&desk)?;
            Ok::<_, Refusal>((desk, protection))
        })
        .await?;
        let launch = launch(agent, &desk, protection, task_id, command, place.network)?;
        let (launch, missing) = self.give(launch, credentials);
        let process = self.0.processes.start(launch).await?;
        self.0.tasks.started(agent, process.running());
        Ok(Started { process, desk, missing })
    }
}

/// A command that runs.
pub(super) struct Started {
    pub(super) process: Process,
    /// Held for as long as the call looks after it.
    pub(super) desk: Desk,
    /// What the agent was given, and is not there.
    pub(super) missing: Vec<String>,
}

impl Hands {
    /// What of the user's repositories an agent that works in their folder must not change.
    fn protection(&self, desk: &Desk) -> Result<Protection, Refusal> {
        if !desk.surroundings.direct || desk.root.starts_with(&self.0.home) {
            return Ok(Protection::default());
        }
        let sandbox = self.sandbox();
        if sandbox.protects_repositories() {
            let mut protection = self.0.repositories.protect(&desk.root)?;
            for records in &desk.surroundings.write {
                protection.extend(workspace::protect_records(records)?);
            }
            return Ok(protection);
        }
        if sandbox.mode() == Mode::Required && workspace::has_repository(&desk.root) {
            let message =
                format!("{} has a repository whose hooks and settings this sandbox can't protect", desk.root.display());
            let hint = "install bubblewrap, use a worktree, or set the sandbox to `auto`";
            return Err(Refusal::new(ErrorCode::Unprotected, message).with_hint(hint));
        }
        Ok(Protection::default())
    }
}

fn launch(
    agent: &AgentId,
    desk: &Desk,
    protection: Protection,
    task_id: &TaskId,
    command: &Command,
    network: bool,
) -> Result<Launch, Refusal> {
    let workdir = command.workdir.as_deref().unwrap_or(".");
    let inside = |cwd: &PathBuf| cwd.is_dir() && cwd.starts_with(&desk.root);
    let Some(cwd) = desk.root.join(workdir).canonicalize().ok().filter(inside) else {
        let message = format!("{workdir} is no folder in the workspace {}", desk.root.display());
        return Err(Refusal::new(ErrorCode::NoWorkdir, message));
    };
    let Surroundings { read, write, git_config, .. } = desk.surroundings.clone();
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
        ..Launch::new(command.command.clone(), &desk.root, task_id.to_string())
    })
}

fn completed(process: &Process, ended: &Ended, max: usize) -> Value {
    let output = process.output();
    let (stdout, cut) = bounded(&output.stdout, max);
    let (stderr, also_cut) = bounded(&output.stderr, max);
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
pub(super) fn bounded(kept: &Kept, max: usize) -> (String, bool) {
    let whole = kept.whole();
    if let Some(all) = whole.as_ref().filter(|all| all.len() <= max) {
        return (text(all), false);
    }
    let half = max / 2;
    let (head, tail) = match &whole {
        Some(all) => (all.as_slice(), all.as_slice()),
        None => (kept.head.as_slice(), kept.tail.as_slice()),
    };
    let head = &head[..head.len().min(half)];
    let tail = &tail[tail.len().saturating_sub(half)..];
    let missing = kept.total.saturating_sub((head.len() + tail.len()) as u64);
    (format!("{}\n[… {missing} bytes left out …]\n{}", text(head), text(tail)), true)
}
