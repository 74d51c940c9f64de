//! `ExecCommand`: the only way to start a process.

use abide_kernel::input::Refusal;
use abide_kernel::limits::COMMAND_BYTES;
use abide_kernel::tool::{Command, ExecCommand, ExecutorCall, ToolCall};
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{CallSubject, RulesOn, Tool, object};
use crate::limits::{COMMAND_OUTPUT_BYTES, COMMAND_OUTPUT_MAX_BYTES, YIELD_MAX_MS, YIELD_MS};

pub(super) const TOOL: Tool = Tool {
    name: "ExecCommand",
    description: "Run a shell command in the workspace. One that outlives yield_time_ms goes on as a task, and its result comes to you when it ends.",
    schema,
    instead: &[
        ("command", "say `cmd`."),
        ("cwd", "say `workdir`."),
        ("timeout_ms", "a command has no time limit: say `yield_time_ms`, and stop it with TaskStop."),
        ("timeout", "a command has no time limit: say `yield_time_ms`, and stop it with TaskStop."),
    ],
    rules: RulesOn::Command,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::ExecCommand(call))),
};

fn schema() -> Value {
    object(
        &["cmd"],
        json!({
            "cmd": { "type": "string", "description": "For the shell." },
            "workdir": { "type": "string", "description": "Relative to the workspace. Left out: the workspace." },
            "yield_time_ms": {
                "type": "integer", "minimum": 0, "maximum": YIELD_MAX_MS,
                "description": format!("How long to wait before it becomes a task. Left out: {YIELD_MS}."),
            },
            "tty": { "type": "boolean", "description": "On a terminal of its own." },
            "accepts_input": { "type": "boolean", "description": "TaskInput may write to it. Left out: its input is empty." },
            "start_new": {
                "type": "boolean",
                "description": "Start it even though the same command still runs. Left out: that one is returned.",
            },
            "max_output_bytes": {
                "type": "integer", "minimum": 1, "maximum": COMMAND_OUTPUT_MAX_BYTES,
                "description": format!("Of each stream; its start and its end are kept. Left out: {COMMAND_OUTPUT_BYTES}."),
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ExecCommand, Refusal> {
    let command = fields.get_text("cmd")?;
    if command.trim().is_empty() || command.contains('\0') || command.len() > COMMAND_BYTES {
        let hint = format!("say what to run, in at most {COMMAND_BYTES} bytes and without zero bytes");
        return Err(invalid("`cmd` of ExecCommand is no command", hint));
    }
    let max = fields.number("max_output_bytes", 1..=COMMAND_OUTPUT_MAX_BYTES)?.unwrap_or(COMMAND_OUTPUT_BYTES);
    Ok(ExecCommand {
        command: Command {
            command,
            workdir: fields.optional_text("workdir")?,
            tty: fields.get_flag("tty")?.unwrap_or(false),
            accepts_input: fields.get_flag("accepts_input")?.unwrap_or(false),
        },
        yield_time_ms: fields.duration_ms("yield_time_ms", 0..=YIELD_MAX_MS)?.unwrap_or(YIELD_MS),
        start_new: fields.get_flag("start_new")?.unwrap_or(false),
        max_output_bytes: usize::try_from(max).unwrap_or(usize::MAX),
    })
}

pub(super) fn subject(call: &ExecCommand) -> CallSubject {
    let whereto = call.command.workdir.as_ref().map(|folder| format!(" (in {folder})"));
    CallSubject { command: Some(call.command.command.clone()), whereto, ..CallSubject::default() }
}
