//! `script/FILE`: plays a JSON file, one round per model call. For demos, tests and dry runs without a key.
//!
//! The file is read at every call, so it can be edited while it plays. The place is in the carry: see `place`.

mod file;
mod position;
mod substitute;

use std::path::Path;
use std::time::Duration;

use abide_kernel::effect::ModelCall;
use abide_kernel::id::ExecId;
use abide_kernel::input::Reply;
use abide_kernel::tool::Call;
use serde_json::Value;

use super::{PastResults, ProviderFailure, call_id, estimate, input_text};
use crate::tools::ToolSet;
use file::{Round, RoundOutcome, Script};
use position::ScriptPosition;

/// The text of a script after its last round.
const PLAYED_OUT: &str = "Done.";

pub(super) async fn play_call(
    file: &Path,
    call: &ModelCall,
    offered: &ToolSet,
    exec_id: &ExecId,
    round: u32,
    past: &dyn PastResults,
) -> Result<Reply, ProviderFailure> {
    let script = Script::read(file).await?;
    let mut place = ScriptPosition::from_carry(call.carry.as_deref(), file);
    let Some(Round { says, delay_ms }) = place.next_round(&script, call) else {
        return Ok(reply(PLAYED_OUT.to_owned(), Vec::new(), call, place.to_carry()));
    };
    match says {
        RoundOutcome::Reply { text, tools } => {
            // Before the delay: a round that can't be played fails at once.
            let inputs = substitute::fill_inputs(tools, &call.message, past).map_err(|failure| {
                // Without a carry: the place stays before this round, so that mending the file mends the agent.
                ProviderFailure { message: format!("{}: {}", file.display(), failure.message), ..failure }
            })?;
            let calls = tools.iter().zip(inputs).enumerate();
            let calls = calls.map(|(index, (tool, input))| {
                let parsed = offered.parse(&tool.name, &input);
                Call { call_id: call_id(exec_id, round, index), tool: tool.name.clone(), input: input.into(), parsed }
            });
            let reply = reply(text.clone(), calls.collect(), call, place.to_carry());
            sleep_ms(*delay_ms).await;
            Ok(reply)
        }
        RoundOutcome::Error { error, retry_after_ms } => {
            sleep_ms(*delay_ms).await;
            Err(ProviderFailure {
                error: *error,
                retry_after_ms: *retry_after_ms,
                carry: Some(place.to_carry().into()),
                ..ProviderFailure::invalid(format!("{} says so", file.display()))
            })
        }
    }
}

fn reply(text: String, calls: Vec<Call>, call: &ModelCall, carry: Value) -> Reply {
    let usage = estimate(&input_text(call), &text);
    Reply { text, calls, usage, carry: Some(carry.into()), ..Reply::default() }
}

async fn sleep_ms(delay_ms: u64) {
    if delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
    }
}
