//! Commands that people start, read, write to and end.

use abide_api::types::{TaskInput, TaskRead, TaskRun, TaskStopped, TaskView};
use abide_api::{ErrorCode, Problem};
use abide_kernel::AgentState;
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::Input;
use abide_kernel::limits;
use abide_kernel::time::Time;
use abide_kernel::tool::RecordCall;
use abide_kernel::views::task::OutputRead;
use abide_kernel::vocabulary::{ReadStatus, TaskStatus};

use super::lifecycle::asked;
use super::planes::{self, acted};
use super::{Met, agent, json};
use crate::body;
use crate::call::Call;
use crate::problems;

/// Less than the time that a request may take.
const WAIT_MAX_MS: u64 = 25_000;

/// What is written to a task at a time.
const INPUT_MAX_BYTES: usize = 64 << 10;

/// All tasks, or those of one work item.
pub(super) async fn list(call: Call) -> Met {
    let Some(item) = call.query.text("work_item_id").map(str::to_owned) else {
        return planes::list(call, &planes::TASKS).await;
    };
    if item.is_empty() {
        let problem = Problem::new(ErrorCode::BadQuery, "work_item_id names no work item");
        return Err(problem.hint("list its work items, and take the id of one"));
    }
    planes::list_fitting(call, &planes::TASKS, move |task| task["work_item_id"] == item.as_str()).await
}

pub(super) async fn run(call: Call) -> Met {
    let id = agent(&call)?;
    let run: TaskRun = body::json(&call.body)?;
    let wrong = |detail: &str, pointer: &str| Err(Problem::new(ErrorCode::WrongFields, detail).pointer(pointer));
    if run.cmd.contains('\0') {
        return wrong("a command has no zero bytes", "/cmd");
    }
    if run.cmd.trim().is_empty() {
        return wrong("say what to run in cmd", "/cmd");
    }
    if run.workdir.as_ref().is_some_and(|workdir| workdir.contains('\0') || workdir.len() > limits::LINE_BYTES) {
        return wrong("a workdir is a path below the workspace", "/workdir");
    }
    let TaskRun { cmd: command, workdir, tty, accepts_input } = run;
    let act = RecordCall::RunCommand { command, workdir, tty, accepts_input };
    let task: TaskView = acted(asked(&call, &id, Input::Act { by: call.caller.name.clone(), act }).await?)?;
    Ok(json(201, &task))
}

pub(super) async fn show(call: Call) -> Met {
    let id = agent(&call)?;
    Ok(json(200, &task(&call, &id).await?))
}

/// The task that the path names, as the state has it, or as its row keeps it.
async fn task(call: &Call, id: &AgentId) -> Result<TaskView, Problem> {
    let named = TaskId::new(call.param("item"));
    let look = move |state: &AgentState, _: Time| {
        (!state.lifecycle.archived).then(|| state.planes.tasks.get(&named).map(TaskView::from))
    };
    let seen = call.app.host.look(id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    if let Some(known) = seen.flatten().ok_or_else(|| problems::no_agent(id.as_str()))? {
        return Ok(known);
    }
    let missing = || Problem::new(ErrorCode::NotFound, format!("{id} has no such task")).hint("list its tasks");
    planes::one(call, id, &planes::TASKS, call.param("item")).await?.ok_or_else(missing)?.record()
}

pub(super) async fn output(call: Call) -> Met {
    let id = agent(&call)?;
    let known = task(&call, &id).await?;
    let wait_ms = call.query.number("wait_ms")?.unwrap_or(0);
    if wait_ms > WAIT_MAX_MS {
        let detail = format!("wait_ms goes from 0 to {WAIT_MAX_MS}");
        return Err(Problem::new(ErrorCode::WrongFields, detail).hint("ask again when it is over"));
    }
    let offset = call.query.number("offset")?;
    let task_id = TaskId::new(known.task_id.as_str());
    let read = match call.app.options.services.read_output(&id, task_id, offset, wait_ms).await {
        Ok(read) => read,
        // It is about to begin, and nothing is wrong with asking.
        Err(_) if known.status == TaskStatus::Queued => {
            let at = offset.unwrap_or(0);
            OutputRead {
                status: ReadStatus::NotReady,
                output: String::new(),
                skipped: 0,
                next_offset: at,
                total_bytes: 0,
            }
        }
        Err(refusal) => return Err(problems::refused(refusal, id.as_str())),
    };
    // As it is now: it may have ended while we waited.
    let task = task(&call, &id).await?;
    let OutputRead { status, output, skipped, next_offset, total_bytes } = read;
    Ok(json(200, &TaskRead { status, task, output, skipped, next_offset, total_bytes }))
}

pub(super) async fn input(call: Call) -> Met {
    let id = agent(&call)?;
    let TaskInput { input, close } = body::json(&call.body)?;
    if (input.is_empty() && !close) || input.len() > INPUT_MAX_BYTES {
        let detail = format!("an input has 1 to {INPUT_MAX_BYTES} bytes, and this has {}", input.len());
        return Err(Problem::new(ErrorCode::WrongFields, detail).pointer("/input").hint("send it in parts"));
    }
    let known = task(&call, &id).await?;
    let written = call.app.options.services.write_input(&id, TaskId::new(known.task_id.as_str()), input, close).await;
    let written = written.map_err(|refusal| {
        if known.status == TaskStatus::Queued {
            return Problem::new(ErrorCode::NotStarted, "the task has not begun yet").hint("try again in a moment");
        }
        problems::refused(refusal, id.as_str())
    });
    Ok(json(200, &written?))
}

pub(super) async fn stop(call: Call) -> Met {
    let id = agent(&call)?;
    body::empty(&call.body)?;
    task(&call, &id).await?;
    let act = RecordCall::StopTask { task_id: TaskId::new(call.param("item")) };
    let stopped: TaskStopped = acted(asked(&call, &id, Input::Act { by: call.caller.name.clone(), act }).await?)?;
    Ok(json(200, &stopped))
}
