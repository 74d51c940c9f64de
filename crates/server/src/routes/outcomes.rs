//! One message, whole, and what became of it. A caller may wait for the outcome: the request then follows the agent's
//! facts and looks at the state when there are new ones, so waiting costs no reading.

use std::sync::Arc;
use std::time::Duration;

use abide_api::types::{BriefView, MessageDetail, MessageOutcome};
use abide_api::{ErrorCode, Problem};
use abide_engine::AskError;
use abide_kernel::AgentState;
use abide_kernel::id::{AgentId, BriefId, MessageId};
use abide_kernel::outcome::{LINKS_MAX, MessageRow, Settled, live, with_joined};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::QueueStatus;
use abide_ledger::StreamId;

use super::messages::queued_at;
use super::page::{MemoryCounted, READ_BYTES};
use super::planes;
use super::{RouteResult, agent, blocking, reserve, text};
use crate::answers::Pieces;
use crate::call::Call;
use crate::problems;

/// The parameter that makes a request wait.
pub(crate) const WAIT: &str = "wait";

/// How long one request waits at most. A client that wants to wait longer asks again.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The delay that the caller knows: another one ends the wait, too.
const KNOWN_DELAY: &str = "known_delay";

/// An outcome, and the messages that it was read from: the one that was asked for, and those that it ends with.
struct ReadOutcome {
    outcome: MessageOutcome,
    messages: Vec<MessageId>,
}

pub(super) async fn show(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let message = MessageId::new(call.param("item"));
    let wait = call.query.duration(WAIT, WAIT_MAX)?;
    let found = match wait {
        None => find(&call, &id, &message).await?,
        Some(wait) => wait_for(&call, &id, &message, wait).await?,
    };
    let mut reserved = reserve(&call, READ_BYTES).await?;
    let detail = detail(&call, &id, &message, found).await?;
    let mut page = Pieces::default();
    // Writing into memory can't fail.
    let _ok = serde_json::to_writer(&mut page, &detail);
    reserved.shrink_to(page.len());
    let mut response = text(200, "application/json", page.into_body(Some(reserved)));
    response.extensions_mut().insert(MemoryCounted);
    Ok(response)
}

/// The outcome once the agent no longer works on the message by itself, or as it is when the time is over or the daemon
/// shuts down.
async fn wait_for(call: &Call, id: &AgentId, message: &MessageId, wait: Duration) -> Result<ReadOutcome, Problem> {
    let mut closing = call.app.closing.subscribe();
    // From before the first look on, so that no change falls between two looks.
    let mut heads = call.app.host.follow(id);
    let over = tokio::time::sleep(wait);
    tokio::pin!(over);
    loop {
        let found = find(call, id, message).await?;
        if !found.outcome.is_under_way() || is_news(call, &found.outcome) {
            return Ok(found);
        }
        tokio::select! {
            biased;
            () = heads.moved() => {}
            _ = closing.wait_for(|closing| *closing) => return Ok(found),
            () = &mut over => return Ok(found),
        }
    }
}

/// Whether the message is held up by something that the caller wants to hear of and has not heard.
fn is_news(call: &Call, outcome: &MessageOutcome) -> bool {
    let Some(known) = call.query.text(KNOWN_DELAY) else { return false };
    outcome.delay().is_some_and(|delay| delay.delay_id != known)
}

async fn find(call: &Call, id: &AgentId, message: &MessageId) -> Result<ReadOutcome, Problem> {
    let mut messages = vec![message.clone()];
    loop {
        let last = messages.last().unwrap_or(message);
        let settled = match read_outcome(call, id, last).await? {
            Some(outcome) => Settled::Outcome(outcome),
            None => settled(call, id, last).await?,
        };
        match settled {
            Settled::Outcome(outcome) if messages.len() == 1 => return Ok(ReadOutcome { outcome, messages }),
            Settled::Outcome(outcome) => return Ok(ReadOutcome { outcome: with_joined(outcome, last), messages }),
            Settled::OutcomeOf(other) if messages.len() < LINKS_MAX => messages.push(other),
            Settled::OutcomeOf(_) => {
                return Err(Problem::new(
                    ErrorCode::Damaged,
                    format!("{message} is linked to itself in the rows of {id}"),
                ));
            }
        }
    }
}

/// The outcome as the state has it, while the message lives there.
async fn read_outcome(call: &Call, id: &AgentId, message: &MessageId) -> Result<Option<MessageOutcome>, Problem> {
    let named = message.clone();
    let seen = call.app.host.inspect(id, move |state: &AgentState, now: Time| live(state, now, &named)).await;
    match seen {
        Ok(seen) => seen.ok_or_else(|| problems::no_agent(id.as_str())),
        Err(AskError::Damaged(reason)) => {
            let is_over = match read_row(call, id, message).await?.status {
                QueueStatus::Processed | QueueStatus::Aborted | QueueStatus::Dropped => true,
                QueueStatus::Queued | QueueStatus::Dequeued | QueueStatus::Parked | QueueStatus::Interjected => false,
            };
            let sentence = format!("{id} is quarantined: {reason}; `abide ledger verify` names what is damaged");
            Ok((!is_over).then_some(MessageOutcome::Stopped { sentence }))
        }
        Err(error) => Err(problems::ask(error, id.as_str())),
    }
}

/// The outcome as the row of the message keeps it.
async fn settled(call: &Call, id: &AgentId, message: &MessageId) -> Result<Settled, Problem> {
    let _reserved = reserve(call, READ_BYTES).await?;
    let row = read_row(call, id, message).await?;
    let briefs = read_briefs(call, id, row.briefs()).await?;
    Ok(row.settled(id, &briefs))
}

async fn detail(call: &Call, id: &AgentId, message: &MessageId, found: ReadOutcome) -> Result<MessageDetail, Problem> {
    let shown = planes::find_record(call, id, &planes::MESSAGES, message.as_str()).await?.ok_or_else(|| missing(id))?;
    let mut shown = shown.record().map_err(|_| missing(id))?;
    if shown.truncated {
        let (app, stream, seq) = (Arc::clone(&call.app), StreamId::agent(id), shown.seq);
        let queued = blocking(move || queued_at(app.host.ledger(), &stream, seq)).await?;
        (shown.text, shown.json) = (queued.text.clone(), queued.json.clone().map(|json| json.0));
        (shown.bytes, shown.truncated) = (None, false);
    }
    let mut briefs = Vec::new();
    for message in &found.messages {
        let row = read_row(call, id, message).await?;
        briefs.extend(read_briefs(call, id, row.briefs()).await?);
    }
    briefs.sort_by(|one: &BriefView, other| one.brief_id.cmp(&other.brief_id));
    Ok(MessageDetail { message: shown, outcome: found.outcome, briefs })
}

fn missing(id: &AgentId) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("{id} has no such message")).hint("list its messages")
}

async fn read_row(call: &Call, id: &AgentId, message: &MessageId) -> Result<MessageRow, Problem> {
    planes::find_record(call, id, &planes::MESSAGE_ROWS, message.as_str()).await?.ok_or_else(|| missing(id))?.record()
}

async fn read_briefs(
    call: &Call,
    id: &AgentId,
    ids: impl Iterator<Item = &BriefId>,
) -> Result<Vec<BriefView>, Problem> {
    let mut briefs = Vec::new();
    for brief in ids {
        let row = planes::find_record(call, id, &planes::BRIEFS, brief.as_str()).await?;
        if let Some(row) = row {
            briefs.push(row.record()?);
        }
    }
    Ok(briefs)
}
