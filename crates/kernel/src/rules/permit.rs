//! Calls that the operator's policy holds back. A person's yes is for one call, with this very input, made once.

use crate::act_result::{ApprovalAsked, ErrorTold, told};
use crate::fact::ApprovalUsed;
use crate::id::{CallId, ExecId};
use crate::input::Refusal;
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::tool::{ApprovalNeeded, ToolCall};

use super::act::{Actor, ApprovalRequest, Done, request_approval};

/// The call as it may run now. A person's approval of it is used up here.
pub(super) fn permit_call(tx: &mut Transaction<'_>, exec_id: &ExecId, call_id: &CallId, call: ToolCall) -> ToolCall {
    let ToolCall::NeedsApproval(needed) = call else { return call };
    let Some(grant) = tx.state.planes.approvals.permit_for(&needed.digest, tx.now) else {
        return ToolCall::NeedsApproval(needed);
    };
    let approval_id = grant.approval_id.clone();
    tx.emit(ApprovalUsed { approval_id, exec_id: exec_id.clone(), call_id: call_id.clone() });
    needed.call
}

/// Asks a person, unless they have been asked about this call already. The first time, the turn ends with its round: the
/// decision starts the next one. A model that tries again meanwhile is told so, and may do something else.
pub(super) fn ask_approval(
    tx: &mut Transaction<'_>,
    exec_id: &ExecId,
    tool: &str,
    needed: ApprovalNeeded,
) -> Result<Done, Refusal> {
    let ApprovalNeeded { digest, summary, deadline_ms, default, call: _ } = needed;
    if let Some(pending) = tx.state.planes.approvals.pending_call(&digest) {
        let (id, hint) =
            (&pending.approval_id, "its decision comes as a message; until then do something else, or end");
        let message = format!("{id} asks a person about this very call already");
        let error = Some(ErrorTold { code: ErrorCode::NeedsApproval, message, hint: hint.to_owned() });
        let asked = ApprovalAsked { approval_id: id.clone(), waiting_intent_id: None, error };
        return Ok(Done { result: told(&asked), ends_turn: false });
    }
    let asked = ApprovalRequest { summary, tool: Some(tool.to_owned()), deadline_ms, default, call: Some(digest) };
    let mut asked = request_approval(tx, &Actor::Model(exec_id.clone()), asked)?;
    asked.error = Some(ErrorTold {
        code: ErrorCode::NeedsApproval,
        message: "a person has to say yes to this call first; it was not made".to_owned(),
        hint: "the turn ends here, and the decision comes as a message; once granted, make the very same call again"
            .to_owned(),
    });
    Ok(Done { result: told(&asked), ends_turn: true })
}
