//! Messages come in here, and can be read back whole. A 202 means that the message is on disk.

use std::sync::Arc;

use abide_api::types::{Accepted, MessageCreate, PostKind};
use abide_api::{ErrorCode, Problem};
use abide_engine::fold::decode;
use abide_kernel::AgentState;
use abide_kernel::Fact;
use abide_kernel::id::{AgentId, Seq};
use abide_kernel::input::{Answer, Input, NewMessage};
use abide_kernel::limits;
use abide_kernel::open_json::JsonBody;
use abide_kernel::prompt::image::{first_fault, images_in};
use abide_kernel::vocabulary;
use abide_ledger::{Ledger, StreamId};

use super::{RouteResult, agent, json};
use crate::body;
use crate::call::Call;
use crate::idempotency::{KeyedRequest, claim_key};
use crate::problems;

pub(super) async fn create(call: Call) -> RouteResult {
    let id = agent(&call)?;
    let new: MessageCreate = body::parse_json(&call.body)?;
    let message = message(new, call.key.clone())?;
    let pictures = message.json.as_ref().is_some_and(|json| !images_in(json).0.is_empty());
    let answered = match claim_key(&call).await? {
        KeyedRequest::Repeated(answered) => *answered,
        KeyedRequest::New(claim) => {
            let asked = call.app.host.ask_once(&id, Input::Queue(message), claim).await;
            asked.map_err(|error| problems::ask(error, id.as_str()))?
        }
    };
    match answered.answer {
        Answer::Queued { message_id } => {
            let warning = if pictures { unseen(&call, &id).await } else { None };
            Ok(json(202, &Accepted { message_id: message_id.to_string(), seq: answered.seq, warning }))
        }
        Answer::Done | Answer::Unchanged | Answer::Woken { .. } | Answer::Acted(_) => {
            Err(Problem::new(ErrorCode::Crashed, "the message was answered as something else"))
        }
    }
}

/// The message as the fact at `seq` has it.
pub(super) fn queued_at(
    ledger: &Ledger,
    stream: &StreamId,
    seq: Seq,
) -> Result<Arc<abide_kernel::message::Message>, Problem> {
    let read = ledger.read(stream, seq.saturating_sub(1), 1).map_err(|error| problems::unreadable(&error))?;
    match read.first().map(|recorded| decode::<AgentState>(stream, recorded)) {
        Some(Ok(Fact::MessageQueued(queued))) => Ok(queued.message),
        Some(Ok(_)) | None => Err(Problem::new(ErrorCode::Damaged, format!("{stream} has no message at seq {seq}"))),
        Some(Err(damage)) => Err(Problem::new(ErrorCode::Damaged, damage.to_string())),
    }
}

/// A warning for the sender of images to a model that takes none: else only the model would be told.
async fn unseen(call: &Call, id: &AgentId) -> Option<String> {
    let model = call.app.host.inspect(id, |state, now| state.model_in_use(now).to_owned()).await.ok()??;
    let blind = call.app.options.services.sees_images(&model) == Some(false);
    blind.then(|| {
        format!(
            "{model} can't look at pictures, so {id} is told only that there are some; `abide agent set {id} --model M` \
             gives it another, or models.{model:?}.images = true says that it can"
        )
    })
}

fn message(new: MessageCreate, key: Option<String>) -> Result<NewMessage, Problem> {
    let wrong = |detail: &str, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    if new.text.is_some() == new.json.is_some() {
        return Err(wrong("a message has either text or json", "/text"));
    }
    for (name, line) in
        [("/origin", &new.origin), ("/correlation_id", &new.correlation_id), ("/causation_id", &new.causation_id)]
    {
        if line.as_ref().is_some_and(|line| line.len() > limits::LINE_BYTES || line.is_empty()) {
            return Err(wrong(&format!("it has 1 to {} bytes", limits::LINE_BYTES), name));
        }
    }
    if new.text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(wrong("the text is empty", "/text"));
    }
    if let Some(fault) = new.json.as_ref().and_then(first_fault) {
        let hint = "send a whole PNG, JPEG, GIF or WebP, or leave it out";
        return Err(wrong(&fault, "/json").hint(hint));
    }
    Ok(NewMessage {
        kind: new.kind.map(kind),
        text: new.text,
        json: new.json.map(JsonBody),
        priority: new.priority,
        origin_id: new.origin,
        correlation_id: new.correlation_id,
        causation_id: new.causation_id,
        idempotency_key: key,
        ..NewMessage::default()
    })
}

fn kind(kind: PostKind) -> vocabulary::MessageKind {
    match kind {
        PostKind::OperatorPrompt => vocabulary::MessageKind::OperatorPrompt,
        PostKind::ChannelEvent => vocabulary::MessageKind::ChannelEvent,
        PostKind::WebhookEvent => vocabulary::MessageKind::WebhookEvent,
        PostKind::CallbackEvent => vocabulary::MessageKind::CallbackEvent,
    }
}
