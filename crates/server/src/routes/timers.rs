//! Timers: created, shown with their next occurrences, cancelled. Their list is a plane (`planes.rs`).

use abide_api::types::{CatchUp, TimerCreate, TimerCreated};
use abide_api::{ErrorCode, Problem};
use abide_kernel::AgentState;
use abide_kernel::id::TimerId;
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::view::timer_ahead;

use super::lifecycle::asked;
use super::planes::{TIMERS, act_result, end, find_record};
use super::{RouteResult, agent, json};
use crate::body;
use crate::call::Call;
use crate::problems;

pub(super) async fn create(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let new: TimerCreate = body::parse_json(&call.body)?;
    let act = timer_act(new)?;
    let input = Input::Act { by: call.caller.name.clone(), act };
    let created: TimerCreated = act_result(asked(&call, &id, input).await?)?;
    Ok(json(201, &created))
}

fn timer_act(new: TimerCreate) -> Result<RecordCall, Problem> {
    let wrong = |detail: String, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    if new.time_zone.is_some() && new.cron.is_none() {
        return Err(wrong("time_zone says how cron is read, and there is no cron".to_owned(), "/time_zone"));
    }
    let when = match (new.after_ms, new.at, new.every_ms, new.cron) {
        (Some(after), None, None, None) => When::AfterMs(after),
        (None, Some(at), None, None) => When::At(at.parse().map_err(|error| wrong(format!("{error}"), "/at"))?),
        (None, None, Some(every), None) => When::EveryMs(every),
        (None, None, None, Some(cron)) => {
            When::Cron { cron, time_zone: new.time_zone.unwrap_or_else(|| "UTC".to_owned()) }
        }
        _ => return Err(wrong("a timer has exactly one of after_ms, at, every_ms and cron".to_owned(), "")),
    };
    let catch_up = new.catch_up.unwrap_or(CatchUp::Latest);
    Ok(RecordCall::CreateTimer { summary: new.summary, when, catch_up, work_item_id: None, check: new.check })
}

/// One timer: from the state, with its next occurrences; or from its row, if it has ended.
pub(super) async fn show(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let name = call.param("item").to_owned();
    let timer_id = TimerId::new(name.as_str());
    let look = move |state: &AgentState, _: Time| {
        (!state.lifecycle.archived).then(|| state.planes.timers.get(&timer_id).map(timer_ahead))
    };
    let seen = call.app.host.inspect(&id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let seen = seen.ok_or_else(|| problems::no_agent(id.as_str()))?;
    if let Some(open) = seen.ok_or_else(|| problems::deleted(id.as_str()))? {
        return Ok(json(200, &open));
    }
    match find_record(&call, &id, &TIMERS, &name).await? {
        Some(over) => Ok(json(200, &over)),
        None => {
            let problem = Problem::new(ErrorCode::NotFound, format!("{id} has no timer {name}"));
            Err(problem.hint("list its timers: GET /v1/agents/{id}/timers"))
        }
    }
}

pub(super) async fn cancel(call: Call) -> RouteResult {
    let act = RecordCall::CancelTimer { timer_id: TimerId::new(call.param("item")) };
    end(call, act).await
}
