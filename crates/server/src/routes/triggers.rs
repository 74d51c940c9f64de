//! Triggers that people make, give another URL, and end. Only the two answers that make a URL say it.

use std::sync::Arc;

use abide_api::types::{DeliveryMode, TriggerCreate, TriggerView};
use abide_api::{ErrorCode, Problem};
use abide_kernel::AgentState;
use abide_kernel::act_result::{TriggerMade, TriggerRotated};
use abide_kernel::id::{AgentId, TriggerId, WorkItemId};
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::tool::{Address, RecordCall};
use abide_kernel::vocabulary::TriggerStatus;

use super::lifecycle::asked;
use super::planes::{acted, end};
use super::{Met, agent, blocking, json};
use crate::body;
use crate::call::Call;
use crate::hooks::{self, Secret};
use crate::once::{Once, once_of};
use crate::problems;

pub(super) async fn create(call: Call) -> Met {
    let id = agent(&call)?;
    let mut new: TriggerCreate = body::json(&call.body)?;
    let secret = match new.secret.take() {
        Some(text) => {
            Some(Secret::new(&text).map_err(|wrong| Problem::new(ErrorCode::WrongFields, wrong).pointer("/secret"))?)
        }
        None => None,
    };
    let (mode, signed) = (new.delivery_mode.unwrap_or(DeliveryMode::EnqueueMessage), secret.is_some());
    // What is kept of the request must not say anything of its secret.
    let request = serde_json::to_vec(&(&new, signed)).unwrap_or_default();
    let answer = match once_of(&call, &request).await? {
        Once::Again(answered) => answered.answer,
        Once::Meet(claim) => {
            let clock = call.app.host.clock();
            let trigger_id = hooks::fresh(clock.now(), clock.entropy());
            if let Some(secret) = secret {
                keep(&call, &id, &trigger_id, secret).await?;
            }
            let act = RecordCall::CreateTrigger {
                name: new.name.clone(),
                delivery_mode: mode,
                work_item_id: new.work_item_id.as_ref().map(WorkItemId::new),
                signed,
                address: Some(Address { trigger_id: trigger_id.clone(), url: None }),
            };
            let asked = call.app.host.ask_once(&id, Input::Act { by: call.caller.name.clone(), act }, claim).await;
            asked
                .map_err(|error| {
                    call.app.options.hooks.forget_secret(&id, &trigger_id);
                    problems::ask(error, id.as_str())
                })?
                .answer
        }
    };
    let TriggerMade { trigger_id, url: _ } = acted(answer)?;
    let url = url(&call, &id, &trigger_id, 0).await?;
    let made = TriggerView {
        trigger_id,
        name: new.name,
        delivery_mode: mode,
        work_item_id: new.work_item_id.map(WorkItemId::new),
        url,
        signed,
        status: TriggerStatus::Active,
        delivery_count: 0,
        last_delivered_at: None,
    };
    Ok(json(201, &made))
}

/// Before the trigger is there: one that must be signed for is never without its secret.
async fn keep(call: &Call, id: &AgentId, trigger: &TriggerId, secret: Secret) -> Result<(), Problem> {
    let (app, id, trigger) = (Arc::clone(&call.app), id.clone(), trigger.clone());
    blocking(move || app.options.hooks.keep_secret(&id, &trigger, secret).map_err(|error| home(&error))).await
}

fn home(error: &std::io::Error) -> Problem {
    Problem::new(ErrorCode::Store, format!("the daemon's home can't be written: {error}"))
}

/// The first URL of a home is made with a key that has to be written.
async fn url(call: &Call, id: &AgentId, trigger: &TriggerId, generation: u32) -> Result<Option<String>, Problem> {
    let (app, id, trigger) = (Arc::clone(&call.app), id.clone(), trigger.clone());
    blocking(move || app.options.hooks.url(&id, &trigger, generation).map_err(|error| home(&error))).await
}

pub(super) async fn rotate(call: Call) -> Met {
    let id = agent(&call)?;
    body::empty(&call.body)?;
    let trigger_id = TriggerId::new(call.param("item"));
    let act = RecordCall::RotateTrigger { trigger_id: trigger_id.clone() };
    let answer = asked(&call, &id, Input::Act { by: call.caller.name.clone(), act }).await?;
    let TriggerRotated { generation, .. } = acted(answer)?;
    let named = trigger_id.clone();
    let look = move |state: &AgentState, _: Time| state.planes.triggers.get(&named).map(TriggerView::from);
    let seen = call.app.host.look(&id, look).await.map_err(|error| problems::ask(error, id.as_str()))?;
    let gone = || Problem::new(ErrorCode::NotFound, format!("{trigger_id} was revoked")).hint("list the triggers");
    let mut rotated = seen.flatten().ok_or_else(gone)?;
    rotated.url = url(&call, &id, &trigger_id, generation).await?;
    Ok(json(200, &rotated))
}

pub(super) async fn revoke(call: Call) -> Met {
    let act = RecordCall::RevokeTrigger { trigger_id: TriggerId::new(call.param("item")) };
    end(call, act).await
}
