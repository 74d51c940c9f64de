//! Approvals: what a person decides, once.

use abide_api::types::ApprovalView;
use abide_api::{ErrorCode, Problem};
use abide_kernel::id::{AgentId, ApprovalId};
use abide_kernel::input::Input;
use abide_kernel::tool::RecordCall;

use super::lifecycle::asked;
use super::planes;
use super::{Met, agent, json};
use crate::body;
use crate::call::Call;

pub(super) async fn decide(call: Call, grant: bool) -> Met {
    let id = agent(&call)?;
    body::empty(&call.body)?;
    let act = RecordCall::DecideApproval { approval_id: ApprovalId::new(call.param("item")), grant };
    let asked = asked(&call, &id, Input::Act { by: call.caller.name.clone(), act }).await;
    if let Err(problem) = asked {
        return Err(if problem.is(ErrorCode::NotPending) { decided(&call, &id).await? } else { problem });
    }
    // Its row was written with the decision, and nothing changes it any more.
    Ok(json(200, &approval(&call, &id).await?))
}

/// Who was first.
async fn decided(call: &Call, id: &AgentId) -> Result<Problem, Problem> {
    let known = approval(call, id).await?;
    let who = known.decided_by.as_deref().unwrap_or("somebody");
    let when = known.decided_at.map(|at| format!(" at {at}")).unwrap_or_default();
    let detail = format!("{} is {} already: decided by {who}{when}", known.approval_id, known.status);
    Ok(Problem::new(ErrorCode::AlreadyDecided, detail))
}

async fn approval(call: &Call, id: &AgentId) -> Result<ApprovalView, Problem> {
    let missing = || Problem::new(ErrorCode::NotFound, format!("{id} has no such approval")).hint("list its approvals");
    planes::one(call, id, &planes::APPROVALS, call.param("item")).await?.ok_or_else(missing)?.record()
}
