//! The operations, one file per group.

mod agents;
mod approvals;
mod config_rules;
mod credentials;
mod health;
mod history;
mod hooks;
mod ledger;
mod lifecycle;
mod messages;
mod models;
mod outcomes;
mod page;
mod planes;
mod secrets;
mod stream;
mod tasks;
mod timers;
mod tokens;
mod triggers;
mod work_items;
mod workspaces;

pub use models::models_in_use;

use std::time::Duration;

use abide_api::{ErrorCode, Problem};
use abide_kernel::id::AgentId;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::answers::Reserved;
use crate::call::Call;
use crate::problems;
pub(crate) use outcomes::WAIT;
pub(crate) use page::MemoryCounted;

pub(crate) type RouteResult = Result<Response, Problem>;

pub(crate) async fn dispatch(call: Call) -> RouteResult {
    match call.operation.id {
        "healthz" => health::healthz(&call),
        "readyz" => health::readyz(call).await,
        "metrics" => health::metrics(&call),
        "openapi" => Ok(json(200, &abide_api::openapi::document())),
        "agent_create" => agents::create(call).await,
        "agent_list" => agents::list(call).await,
        "agent_show" => agents::show(call).await,
        "agent_change" => agents::change(call).await,
        "agent_delete" => agents::delete(call).await,
        "agent_start" => lifecycle::start(call, None).await,
        "agent_stop" => lifecycle::stop(call, None).await,
        "agent_resume" => lifecycle::start(call, Some("use start")).await,
        "agent_pause" => lifecycle::stop(call, Some("use stop")).await,
        "agent_abort" => lifecycle::abort(call).await,
        "agent_wake" => lifecycle::wake(call).await,
        "why" => agents::why(call).await,
        "agent_export" => agents::export(call).await,
        "message_create" => messages::create(call).await,
        "message_list" => planes::list(call, &planes::MESSAGES).await,
        "message_show" => outcomes::show(call).await,
        "brief_list" => planes::list(call, &planes::BRIEFS).await,
        "task_list" => tasks::list(call).await,
        "task_run" => tasks::run(call).await,
        "task_show" => tasks::show(call).await,
        "task_output" => tasks::output(call).await,
        "task_input" => tasks::input(call).await,
        "task_stop" => tasks::stop(call).await,
        "workspace_list" => planes::list(call, &planes::WORKSPACES).await,
        "workspace_attach" => workspaces::attach(call).await,
        "workspace_detach" => workspaces::detach(call).await,
        "workspace_fetch" => workspaces::fetch(call).await,
        "surroundings" => workspaces::surroundings(call).await,
        "patch_list" => workspaces::patches(call).await,
        "child_list" => planes::list(call, &planes::CHILDREN).await,
        "work_item_list" => work_items::list(call).await,
        "work_item_create" => work_items::create(call).await,
        "work_item_show" => work_items::show(call).await,
        "work_item_pick" => work_items::pick(call).await,
        "work_item_update" => work_items::update(call).await,
        "work_item_block" => work_items::block(call).await,
        "work_item_complete" => work_items::complete(call).await,
        "timer_list" => planes::list(call, &planes::TIMERS).await,
        "timer_create" => timers::create(call).await,
        "timer_show" => timers::show(call).await,
        "timer_cancel" => timers::cancel(call).await,
        "wait_list" => planes::list(call, &planes::WAITS).await,
        "wait_cancel" => planes::cancel_wait(call).await,
        "trigger_create" => triggers::create(call).await,
        "trigger_rotate" => triggers::rotate(call).await,
        "trigger_revoke" => triggers::revoke(call).await,
        "hook_deliver" => hooks::deliver(call).await,
        "trigger_list" => planes::list(call, &planes::TRIGGERS).await,
        "approval_list" => planes::list(call, &planes::APPROVALS).await,
        "approval_grant" => approvals::decide(call, true).await,
        "approval_deny" => approvals::decide(call, false).await,
        "transcript" => history::list(call, history::transcript).await,
        "decision_list" => history::list(call, history::decisions).await,
        "event_list" => history::list(call, history::events).await,
        "event_stream" => stream::of_agent(call).await,
        "event_stream_all" => stream::of_all(call).await,
        "sandbox" => Ok(json(200, &call.app.options.services.sandbox(false))),
        "transfer_list" => workspaces::transfers(&call),
        "model_list" => models::list(call).await,
        "model_test" => models::test(call).await,
        "ledger_stats" => ledger::stats(call).await,
        "ledger_verify" => ledger::verify(call).await,
        "ledger_compact" => ledger::compact(call).await,
        "ledger_fork" => ledger::fork(call).await,
        "ledger_export" => ledger::export(call),
        "token_create" => tokens::create(call).await,
        "token_list" => tokens::list(&call),
        "token_revoke" => tokens::revoke(call).await,
        "secret_list" => secrets::list(call).await,
        "secret_set" => secrets::set(call).await,
        "secret_remove" => secrets::remove(call).await,
        // A test holds this list against the table.
        unknown => Err(Problem::new(ErrorCode::NoRoute, format!("nothing does {unknown}"))),
    }
}

pub(crate) fn json(status: u16, value: &impl Serialize) -> Response {
    text(status, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

pub(crate) fn text(status: u16, media: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// The agent in the path. A name that no agent can have is one that no agent has.
pub(crate) fn agent(call: &Call) -> Result<AgentId, Problem> {
    let id = call.param("id");
    AgentId::new(id).map_err(|_| problems::no_agent(id))
}

/// How long a request waits for memory to make its answer in.
const MEMORY_WAIT: Duration = Duration::from_secs(15);

/// Memory to make an answer in. It is not held while an agent is asked something: one that does not answer would keep it
/// from everybody.
pub(crate) async fn reserve(call: &Call, bytes: usize) -> Result<Reserved, Problem> {
    let reserved = call.app.answers.reserve(&call.holder, bytes);
    let waited = tokio::time::timeout(MEMORY_WAIT, reserved).await;
    waited.map_err(|_| problems::overloaded("too much is being answered at once"))
}

/// Runs what reads the disk where it holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Problem::new(ErrorCode::Crashed, format!("reading failed: {error}"))),
    }
}
