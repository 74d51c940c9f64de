//! `abide task`: commands and children that an agent runs.

use std::io::Read;

use abide_api::Client;
use abide_api::types::{TaskInput, TaskRead, TaskRun, TaskView};
use abide_kernel::id::AgentId;
use abide_kernel::vocabulary::{ReadStatus, TaskStatus};
use anyhow::Context;

use super::plane::{self, Plane};
use crate::cli::{OneTask, PlaceArgs, RunArgs, TaskCommand};
use crate::connection::{self, block_on};
use crate::output::{Cell, Failed, Output, counted, gist, many_lines, table};

const PLANE: Plane<TaskView> = Plane {
    route: "tasks",
    titles: &["status", "exit", "made", "summary"],
    id: |task| task.task_id.as_str(),
    row: |task, out| {
        let what = if task.summary.is_empty() { task.command.as_deref().unwrap_or("-") } else { &task.summary };
        vec![
            Cell::status(task.status.as_str()),
            exit_text(task).into(),
            out.time(task.created_at).into(),
            gist(what, 80).into(),
        ]
    },
    empty: "has no tasks; `abide task run --agent ID CMD` runs one",
};

/// How long one question for more output waits.
const WAIT_MS: u64 = 20_000;

pub fn run(command: &TaskCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        TaskCommand::List(of) => plane::list(&PLANE, of, place, out),
        TaskCommand::Show(one) => show(one, place, out),
        TaskCommand::Output { task, offset, follow } => output(task, *offset, *follow, place, out),
        TaskCommand::Input { task, text, close } => input(task, text, *close, place, out),
        TaskCommand::Stop(one) => stop(one, place, out),
        TaskCommand::Run(args) => start(args, place, out),
    }
}

fn exit_text(task: &TaskView) -> String {
    match (task.exit_code, task.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "-".to_owned(),
    }
}

fn is_over(task: &TaskView) -> bool {
    task.status.is_terminal()
}

fn show(one: &OneTask, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let task = block_on(async {
        let id = plane::named(&PLANE, &client, &one.of.agent, &one.task).await?;
        Ok(client.task(one.of.agent.as_str(), &id).await?)
    })?;
    out.result(&task, || described(&task, out))
}

fn described(task: &TaskView, out: &Output) -> String {
    let mut rows = vec![
        ("task", task.task_id.to_string()),
        ("kind", task.kind.to_string()),
        ("status", task.status.to_string()),
        ("exit", exit_text(task)),
        ("made", out.time(task.created_at)),
    ];
    rows.extend(task.ended_at.map(|at| ("ended", out.time(at))));
    rows.extend(task.command.clone().map(|command| ("command", command)));
    rows.extend(task.work_item_id.as_ref().map(|item| ("work item", item.to_string())));
    rows.extend(task.child_agent_id.clone().map(|child| ("child", child)));
    if let Some(output) = &task.output {
        let cut = if output.truncated { ", its middle is gone" } else { "" };
        rows.push(("output", format!("{}{cut}", counted(output.bytes, "byte"))));
    }
    rows.extend(task.recovery.clone().map(|recovery| ("found by", recovery)));
    rows.extend(task.evidence.iter().map(|evidence| ("evidence", evidence.clone())));
    table(&rows)
}

fn output(one: &OneTask, offset: Option<u64>, follow: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    block_on(async {
        let agent = &one.of.agent;
        let id = plane::named(&PLANE, &client, agent, &one.task).await?;
        let read = client.read_task(agent.as_str(), &id, offset, 0).await?;
        if !follow {
            return out.result(&read, || shown(&read));
        }
        follow_from(&client, agent, &id, read, out).await.map(drop)
    })
}

/// Output as a person reads it, with what is missing said.
fn shown(read: &TaskRead) -> String {
    let gap = if read.skipped > 0 {
        format!("[… {} left out …]\n", counted(read.skipped, "byte"))
    } else {
        String::new()
    };
    format!("{gap}{}", many_lines(&read.output))
}

/// The same while more is to come: a line that is not over yet goes on with the next piece.
fn flowing(read: &TaskRead, open_line: &mut bool) -> String {
    let mut text = String::new();
    if read.skipped > 0 {
        text.push_str(if *open_line { "\n" } else { "" });
        text.push_str(&format!("[… {} left out …]\n", counted(read.skipped, "byte")));
        *open_line = false;
    }
    for line in read.output.split_inclusive('\n') {
        let shown = many_lines(line);
        *open_line = !line.ends_with('\n');
        text.push_str(if *open_line { shown.trim_end_matches('\n') } else { &shown });
    }
    text
}

/// Prints what comes until the task is over; gives back how it ended.
async fn follow_from(
    client: &Client,
    agent: &AgentId,
    id: &str,
    mut read: TaskRead,
    out: &Output,
) -> anyhow::Result<TaskView> {
    // Short while there is something to print, long while there is nothing: the end is told at once either way.
    const SOON_MS: u64 = 300;
    let mut open_line = false;
    loop {
        let quiet = read.output.is_empty();
        if (!quiet || is_over(&read.task)) && !out.line(&read, || flowing(&read, &mut open_line))? {
            return Ok(read.task);
        }
        if is_over(&read.task) && read.next_offset >= read.total_bytes {
            if open_line && !out.is_json() {
                out.line(&(), || "\n".to_owned())?;
            }
            return Ok(read.task);
        }
        if read.task.status == TaskStatus::Queued {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let wait = if read.next_offset < read.total_bytes {
            0
        } else if quiet {
            SOON_MS * 3
        } else {
            SOON_MS
        };
        read = client.read_task(agent.as_str(), id, Some(read.next_offset), wait.min(WAIT_MS)).await?;
    }
}

fn input(one: &OneTask, text: &str, close: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let input = match text {
        "-" => {
            let mut input = String::new();
            std::io::stdin().read_to_string(&mut input).context("can't read stdin as text")?;
            input
        }
        text => format!("{text}\n"),
    };
    let client = connection::find(place)?;
    let taken = block_on(async {
        let id = plane::named(&PLANE, &client, &one.of.agent, &one.task).await?;
        Ok(client.write_task(one.of.agent.as_str(), &id, &TaskInput { input, close }).await?)
    })?;
    out.result(&taken, || format!("it took {}\n", counted(taken.bytes, "byte")))
}

fn stop(one: &OneTask, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let stopped = block_on(async {
        let id = plane::named(&PLANE, &client, &one.of.agent, &one.task).await?;
        Ok(client.stop_task(one.of.agent.as_str(), &id).await?)
    })?;
    out.result(&stopped, || {
        let how = if stopped.forced { "is made to end" } else { "was asked to end; once more, and it is made to" };
        format!("{} {how}\n", stopped.task.task_id)
    })
}

fn start(args: &RunArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let run = TaskRun {
        cmd: args.command.join(" "),
        workdir: args.workdir.clone(),
        tty: args.tty,
        accepts_input: args.accepts_input,
    };
    let client = connection::find(place)?;
    let agent = &args.of.agent;
    let task = block_on(async { Ok(client.run_task(agent.as_str(), &run).await?) })?;
    if !args.wait {
        return out.result(&task, || {
            format!("{} runs; see it with: abide task output --follow --agent {agent} {}\n", task.task_id, task.task_id)
        });
    }
    let ended = block_on(async {
        let read = first_read(&client, agent, task.task_id.as_str()).await?;
        follow_from(&client, agent, task.task_id.as_str(), read, out).await
    })?;
    if out.is_json() {
        out.result(&ended, String::new)?;
    }
    match ended.status {
        TaskStatus::Completed => Ok(()),
        status @ (TaskStatus::Queued
        | TaskStatus::Running
        | TaskStatus::Cancelling
        | TaskStatus::Failed
        | TaskStatus::Cancelled
        | TaskStatus::Interrupted) => {
            let why = ended.evidence.last().map(|why| format!(" ({why})")).unwrap_or_default();
            Err(Failed::Found(format!("{} is {status}, exit {}{why}", ended.task_id, exit_text(&ended))).into())
        }
    }
}

/// A task that is queued has written nothing yet, and one that could not be started never will.
async fn first_read(client: &Client, agent: &AgentId, id: &str) -> anyhow::Result<TaskRead> {
    loop {
        let task = client.task(agent.as_str(), id).await?;
        if task.status != TaskStatus::Queued {
            let read = client.read_task(agent.as_str(), id, Some(0), 0).await;
            let nothing = |task: TaskView| TaskRead {
                status: ReadStatus::Ready,
                task,
                output: String::new(),
                skipped: 0,
                next_offset: 0,
                total_bytes: 0,
            };
            return match read {
                Err(_) if is_over(&task) => Ok(nothing(task)),
                read => Ok(read?),
            };
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
