//! Runs the check of a timer's occurrence: a command that is run like any other, and whose output is read. Whether the
//! output is worth a turn is not decided here.

use std::time::Duration;

use abide_kernel::credentials::Credentials;
use abide_kernel::id::{AgentId, TimerId};
use abide_kernel::input::{Checked, Input};
use abide_kernel::limits::{CHECK_TIME_MS, LINE_BYTES};
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::time::Time;
use abide_kernel::tool::Command;

use super::Executor;
use super::command::{StartedCommand, bounded_text};
use crate::process::{Process, ProcessExit};

impl Executor {
    pub(super) async fn run_timer_check(
        &self,
        agent: &AgentId,
        timer_id: TimerId,
        due: Time,
        command: String,
        place: &ToolPlacement,
    ) -> Vec<Input> {
        let command = Command { command, workdir: None, tty: false, accepts_input: false };
        let label = self.new_task_id();
        // Where the folder is held, it has as much patience as for the command: its failure would cost a turn.
        let wait = Duration::from_millis(CHECK_TIME_MS);
        // A check has no credentials: it runs without a turn, and nobody is there to ask.
        let started = match self.lease_folder(agent, place, wait).await {
            Ok(lease) => self.start_command(agent, &label, &command, place, &Credentials::default(), None, lease).await,
            Err(refusal) => Err(refusal),
        };
        let (mut inputs, checked) = match started {
            Ok(StartedCommand { process, lease, .. }) => {
                let checked = wait_for_check(&process).await;
                (lease.record_inputs(), checked)
            }
            Err(refusal) => {
                let why = format!("it could not be started: {}; {}", refusal.message, refusal.hint);
                (Vec::new(), Checked::NotDone { why })
            }
        };
        inputs.push(Input::FinishCheck { timer_id, due, checked });
        inputs
    }
}

async fn wait_for_check(process: &Process) -> Checked {
    match tokio::time::timeout(Duration::from_millis(CHECK_TIME_MS), process.wait()).await {
        Ok(ProcessExit { exit_code: Some(exit_code), .. }) => {
            let (output, _) = bounded_text(&process.output().combined, LINE_BYTES - 256);
            Checked::Exited { exit_code, output }
        }
        Ok(ProcessExit { signal, .. }) => {
            let by =
                signal.map_or_else(|| "before it said anything".to_owned(), |signal| format!("by signal {signal}"));
            Checked::NotDone { why: format!("it was ended {by}") }
        }
        Err(_) => {
            process.stop(true);
            Checked::NotDone { why: format!("it took longer than {} s", CHECK_TIME_MS / 1_000) }
        }
    }
}
