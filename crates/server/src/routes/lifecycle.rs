//! Start, stop, abort, wake.

use abide_api::types::{Abort, Wake, Woken};
use abide_api::{ErrorCode, Problem};
use abide_kernel::id::{AgentId, ExecId};
use abide_kernel::input::{Answer, Input};
use abide_kernel::views::WithNulls;

use super::agents::summary;
use super::{Met, agent, json};
use crate::body;
use crate::call::Call;
use crate::once::{Once, once};
use crate::problems;

pub(super) async fn start(call: Call, deprecated: Option<&str>) -> Met {
    body::empty(&call.body)?;
    control(call, Input::Start, deprecated).await
}

pub(super) async fn stop(call: Call, deprecated: Option<&str>) -> Met {
    body::empty(&call.body)?;
    control(call, Input::Stop, deprecated).await
}

pub(super) async fn abort(call: Call) -> Met {
    let abort: Abort = body::json_or_default(&call.body)?;
    control(call, Input::Abort { exec_id: abort.exec_id.map(ExecId::new) }, None).await
}

async fn control(call: Call, input: Input, deprecated: Option<&str>) -> Met {
    let id = agent(&call)?;
    let answered = match once(&call).await? {
        Once::Again(answered) => *answered,
        Once::Meet(claim) => {
            let asked = call.app.host.ask_for_summary(&id, input, claim).await;
            asked.map_err(|error| problems::ask(error, id.as_str()))?
        }
    };
    let mut summary = summary(&call.app, answered).await?;
    if let Some(deprecated) = deprecated {
        summary.deprecated = Some(deprecated.to_owned());
    }
    Ok(json(200, &WithNulls(&summary)))
}

pub(super) async fn wake(call: Call) -> Met {
    let id = agent(&call)?;
    let wake: Wake = body::json(&call.body)?;
    let Wake { reason, source, resource, body } = wake;
    if reason.trim().is_empty() {
        return Err(Problem::new(ErrorCode::WrongFields, "say why in reason").pointer("/reason"));
    }
    let answer = asked(&call, &id, Input::Wake { reason, source, resource, body }).await?;
    match answer {
        Answer::Woken { disposition, reason } => Ok(json(200, &Woken { disposition: disposition.to_string(), reason })),
        Answer::Done | Answer::Unchanged | Answer::Queued { .. } | Answer::Acted(_) => {
            Err(Problem::new(ErrorCode::Crashed, "the wake was answered as something else"))
        }
    }
}

/// Asks once, and gives the kernel's own answer.
pub(super) async fn asked(call: &Call, id: &AgentId, input: Input) -> Result<Answer, Problem> {
    match once(call).await? {
        Once::Again(answered) => Ok(answered.answer),
        Once::Meet(claim) => match call.app.host.ask_once(id, input, claim).await {
            Ok(answered) => Ok(answered.answer),
            Err(error) => Err(problems::ask(error, id.as_str())),
        },
    }
}
