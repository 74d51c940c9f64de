//! Calls that the operator's policy holds back. A person's yes is for one call, with this very input, made once.

use crate::act_result::{ApprovalAsked, ErrorTold, told};
use crate::fact::ApprovalUsed;
use crate::id::{CallId, ExecId};
use crate::input::{Ask, Does, Refusal};
use crate::step::Step;

use super::act::{Actor, Asked, Done, request_approval};

/// What a call may do now: a person's yes for it is used up here.
pub(super) fn pass(step: &mut Step<'_>, exec_id: &ExecId, call_id: &CallId, does: Does) -> Does {
    let Does::Ask(ask) = does else { return does };
    let Some(grant) = step.state.approvals.grant_of(&ask.digest, step.now) else { return Does::Ask(ask) };
    let approval_id = grant.approval_id.clone();
    step.emit(ApprovalUsed { approval_id, exec_id: exec_id.clone(), call_id: call_id.clone() });
    ask.then
}

/// Asks a person, unless they have been asked about this call already. The first time, the turn ends with its round: the
/// decision starts the next one. A model that tries again meanwhile is told so, and may do something else.
pub(super) fn ask(step: &mut Step<'_>, exec_id: &ExecId, tool: &str, ask: Ask) -> Result<Done, Refusal> {
    let Ask { digest, summary, deadline_ms, default, then: _ } = ask;
    if let Some(pending) = step.state.approvals.pending_call(&digest) {
        let (id, hint) =
            (&pending.approval_id, "its decision comes as a message; until then do something else, or end");
        let message = format!("{id} asks a person about this very call already");
        let error = Some(ErrorTold { code: "needs_approval", message, hint: hint.to_owned() });
        let asked = ApprovalAsked { approval_id: id.clone(), waiting_intent_id: None, error };
        return Ok(Done { result: told(&asked), ends_turn: false });
    }
    let asked = Asked { summary, tool: Some(tool.to_owned()), deadline_ms, default, call: Some(digest) };
    let mut asked = request_approval(step, &Actor::Model(exec_id.clone()), asked)?;
    asked.error = Some(ErrorTold {
        code: "needs_approval",
        message: "a person has to say yes to this call first; it was not made".to_owned(),
        hint: "the turn ends here, and the decision comes as a message; once granted, make the very same call again"
            .to_owned(),
    });
    Ok(Done { result: told(&asked), ends_turn: true })
}
