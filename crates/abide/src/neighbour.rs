//! `AgentGet` of another agent: its summary as the ledger has it, read where it holds nobody up. Reading wakes nobody.

use abide_engine::fold::fold;
use abide_kernel::id::{AgentId, CallId, ExecId};
use abide_kernel::input::{Input, Refusal};
use abide_kernel::summary::agent_summary;
use abide_kernel::vocabulary::ToolStatus;
use abide_ledger::Ledger;
use serde_json::{Value, json};

use crate::clock;

pub async fn get(ledger: Ledger, exec_id: ExecId, call_id: CallId, input: Value) -> Vec<Input> {
    let name = input["agent_id"].as_str().unwrap_or_default().to_owned();
    let read = tokio::task::spawn_blocking(move || summary(&ledger, &name)).await;
    let crashed = |error: tokio::task::JoinError| Err(refusal("crashed", format!("reading failed: {error}")));
    let (status, result) = match read.unwrap_or_else(crashed) {
        Ok(summary) => (ToolStatus::Completed, summary),
        Err(Refusal { code, message, hint }) => {
            (ToolStatus::Failed, json!({ "error": { "code": code, "message": message, "hint": hint } }))
        }
    };
    vec![Input::FinishTool { exec_id, call_id, status, result, reads: None }]
}

fn refusal(code: &'static str, message: String) -> Refusal {
    Refusal::new(code, message, "go on without it, or ask the operator")
}

fn summary(ledger: &Ledger, name: &str) -> Result<Value, Refusal> {
    let missing = || refusal("not_found", format!("no agent is called {name}"));
    let id = AgentId::new(name).map_err(|_| missing())?;
    let state = fold(ledger, &id).map_err(|damage| refusal("quarantined", damage.to_string()))?;
    let state = state.filter(|state| !state.archived).ok_or_else(missing)?;
    Ok(agent_summary(&state, clock::now()))
}
