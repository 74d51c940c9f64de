//! What a task wrote, for models and for people; and what they write to it.

use std::time::Duration;

use abide_kernel::act_result::told;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Reads, Refusal};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::tool::{TaskInput, TaskOutput};
use abide_kernel::views::task::{OutputRead, TaskTaken};
use abide_kernel::vocabulary::ReadStatus;

use super::{Hands, Outcome, ToolRun, blocking};
use crate::limits;
use crate::process::{Chunk, InputError, read_kept};

/// Bytes as text. What is no text is shown as such, and never lost from the count.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where to read from, of so much that was written.
fn offset(wanted: &TaskOutput, total: u64) -> u64 {
    wanted.offset.unwrap_or_else(|| total.saturating_sub(limits::TASK_OUTPUT_BYTES as u64))
}

impl Hands {
    pub(super) async fn task_output(&self, run: &ToolRun, wanted: TaskOutput) -> Result<Outcome, Refusal> {
        let (result, end) = self.read_output(&run.agent, &wanted).await?;
        let reads = Some(Reads { task_id: wanted.task_id, end });
        Ok(Outcome { reads, ..Outcome::of(told(&result)) })
    }

    /// The output of a task, once it ended or the time is up; and whether its end is durable.
    pub async fn read_output(&self, agent: &AgentId, wanted: &TaskOutput) -> Result<(OutputRead, bool), Refusal> {
        let Some(held) = self.0.tasks.get(agent, &wanted.task_id) else {
            let chunk = self.kept(agent, wanted).await?;
            return Ok((self.shown(ReadStatus::Ready, &chunk), true));
        };
        let ended = async {
            held.process.wait().await;
            held.recorded().await;
        };
        let timeout = if wanted.block { wanted.timeout_ms } else { 0 };
        let done = tokio::time::timeout(Duration::from_millis(timeout), ended).await.is_ok();
        let status = match (done, wanted.block) {
            (true, _) => ReadStatus::Ready,
            (false, true) => ReadStatus::Timeout,
            (false, false) => ReadStatus::NotReady,
        };
        let total = held.process.read(u64::MAX, 0).total;
        Ok((self.shown(status, &held.process.read(offset(wanted, total), limits::TASK_OUTPUT_BYTES)), done))
    }

    async fn kept(&self, agent: &AgentId, wanted: &TaskOutput) -> Result<Chunk, Refusal> {
        let (folder, wanted) = (self.output_folder(agent, &wanted.task_id), wanted.clone());
        blocking(move || {
            let unknown = |error: std::io::Error| {
                let message = format!("there is no output of {}: {error}", wanted.task_id);
                Refusal::new(ErrorCode::NotFound, message).with_hint("list the tasks")
            };
            let total = read_kept(&folder, u64::MAX, 0).map_err(unknown)?.total;
            read_kept(&folder, offset(&wanted, total), limits::TASK_OUTPUT_BYTES).map_err(unknown)
        })
        .await
    }

    pub(super) async fn task_input(&self, run: &ToolRun, wanted: TaskInput) -> Result<Outcome, Refusal> {
        Ok(Outcome::of(told(&self.write_input(&run.agent, &wanted).await?)))
    }

    /// Writes to a task's standard input or terminal, and says how much was taken.
    pub async fn write_input(&self, agent: &AgentId, wanted: &TaskInput) -> Result<TaskTaken, Refusal> {
        let (task, input) = (&wanted.task_id, wanted.input.as_bytes());
        let Some(held) = self.0.tasks.get(agent, task) else {
            return Err(Refusal::new(ErrorCode::NotRunning, format!("{task} is not a running task")));
        };
        let written = match input {
            [] => Ok(0),
            input => held.process.write(input).await,
        };
        match written {
            Ok(bytes) => {
                let accepted = bytes == input.len();
                if accepted && wanted.close {
                    held.process.close_input();
                }
                Ok(TaskTaken { accepted, bytes: bytes as u64 })
            }
            Err(error) => {
                let code = match error {
                    InputError::NotAccepted => ErrorCode::TakesNoInput,
                    InputError::Closed => ErrorCode::InputClosed,
                    InputError::Full => ErrorCode::InputFull,
                };
                Err(Refusal::new(code, format!("{task}: {error}")))
            }
        }
    }
}

impl Hands {
    /// It was masked when it came. A secret that was set since is masked now.
    fn shown(&self, status: ReadStatus, chunk: &Chunk) -> OutputRead {
        let output = text(&chunk.bytes);
        let masked = self.0.secrets.mask().text(&output);
        OutputRead {
            status,
            output: masked.unwrap_or(output),
            skipped: chunk.skipped,
            next_offset: chunk.next_offset,
            total_bytes: chunk.total,
        }
    }
}
