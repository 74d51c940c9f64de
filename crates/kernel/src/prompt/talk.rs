//! The words and deeds of a conversation, turn by turn, read off the facts. Facts that are about something else are
//! passed over.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::counted::CountedItems;
use super::quote::{barred, plain, quote_line};
use super::{CallResult, Item, Part, SealedReasoning, refused, words};
use crate::fact::{CallRecord, Fact};
use crate::id::{CallId, ExecId, MessageId, Seq};
use crate::limits;
use crate::message::Message;
use crate::open_json::ToolOutput;
use crate::time::Time;
use crate::vocabulary::{MessageKind, OriginKind, ProviderError, TerminalKind, ToolStatus};

/// A fact as it was read from the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub seq: Seq,
    pub at: Time,
    pub fact: Fact,
}

/// One execution of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoken {
    pub exec_id: ExecId,
    pub message_id: MessageId,
    pub turn_index: u64,
    pub at: Time,
    /// Its last fact so far.
    pub last_seq: Seq,
    pub pieces: Vec<Entry>,
    /// A provider refused a request of it as one that makes no sense.
    pub refused: bool,
}

/// A piece of a turn, and the items that it is shown as. They are made when they are first asked for, and forgotten when
/// the piece changes.
#[derive(Debug, Clone)]
pub struct Entry {
    piece: Piece,
    items: OnceLock<CountedItems>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Heard(Arc<Message>),
    Round(Round),
    /// The runtime's own word about what happened.
    Note(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    pub round: u32,
    pub text: String,
    pub calls: Vec<CallRecord>,
    pub outcomes: BTreeMap<CallId, (ToolStatus, ToolOutput)>,
    pub thought: Option<SealedReasoning>,
    /// It had more to say.
    pub cut: bool,
}

impl Spoken {
    pub fn rounds(&self) -> impl DoubleEndedIterator<Item = &Round> {
        self.pieces.iter().filter_map(|entry| match entry.piece() {
            Piece::Round(round) => Some(round),
            Piece::Heard(_) | Piece::Note(_) => None,
        })
    }

    /// The tokens that it is estimated to take in a prompt.
    pub(super) fn tokens(&self) -> u64 {
        self.pieces.iter().map(|entry| entry.items().tokens).sum()
    }
}

impl Entry {
    fn new(piece: Piece) -> Entry {
        Entry { piece, items: OnceLock::new() }
    }

    #[must_use]
    pub fn piece(&self) -> &Piece {
        &self.piece
    }

    pub(super) fn change(&mut self) -> &mut Piece {
        self.items = OnceLock::new();
        &mut self.piece
    }

    /// As a model is shown it.
    #[must_use]
    pub fn items(&self) -> &CountedItems {
        self.items.get_or_init(|| self.piece.items(limits::RESULT_SHOWN_BYTES).into_iter().collect())
    }

    /// The same with at most so many bytes of each result.
    pub(super) fn items_within(&self, result_bytes: usize) -> Cow<'_, CountedItems> {
        match result_bytes {
            limits::RESULT_SHOWN_BYTES => Cow::Borrowed(self.items()),
            fewer => Cow::Owned(self.piece.items(fewer).into_iter().collect()),
        }
    }
}

/// The items follow from the piece.
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.piece == other.piece
    }
}

impl Piece {
    fn items(&self, result_bytes: usize) -> Vec<Item> {
        match self {
            Piece::Heard(message) => vec![heard(message)],
            Piece::Round(round) => round.items(result_bytes),
            Piece::Note(text) => vec![assistant_item(format!("[abide note] {text}"))],
        }
    }
}

pub(super) fn assistant_item(text: String) -> Item {
    Item::User { parts: vec![Part::Text(text)] }
}

/// A message under a label that says who it is from and how far to trust it. Only an operator's stands without bars.
fn heard(message: &Message) -> Item {
    let from = match &message.origin.id {
        Some(id) => format!("{} {}", message.origin.kind, quote_line(id, 200)),
        None => message.origin.kind.to_string(),
    };
    let about = message.work_item_id().map(|id| format!(", about {id}")).unwrap_or_default();
    let label =
        format!("[abide message {} from {from}, {}, {}{about}]", message.message_id, message.trust, message.kind());
    let (images, mut json) = match &message.json {
        Some(json) => super::image::images_in(json),
        None => (Vec::new(), Value::Null),
    };
    let operator = message.origin.kind == OriginKind::Operator;
    let text = message.text.clone().or_else(|| if operator { take_text(&mut json) } else { None });
    let mut parts = match text {
        Some(text) if operator => vec![Part::Text(label), Part::Text(plain(&text))],
        Some(text) => vec![Part::Text(format!("{label}\n{}", barred(&text)))],
        None => vec![Part::Text(label)],
    };
    if message.kind() == MessageKind::SystemTick && message.text.is_none() {
        parts.push(Part::Text("Go on with what is to be done.".to_owned()));
    }
    if !json.is_null() {
        let pretty = serde_json::to_string_pretty(&json).unwrap_or_default();
        parts.push(Part::Text(barred(&pretty)));
    }
    parts.extend(images.into_iter().map(Part::Image));
    Item::User { parts }
}

/// The text that a person wrote beside their images is shown as any text of theirs is.
fn take_text(json: &mut Value) -> Option<String> {
    let fields = json.as_object_mut()?;
    if !fields.contains_key("images") {
        return None;
    }
    let text = fields.get("text")?.as_str()?.to_owned();
    fields.remove("text");
    Some(text)
}

impl Round {
    fn items(&self, result_bytes: usize) -> Vec<Item> {
        let silent = self.text.trim().is_empty() && self.calls.is_empty();
        let text = if silent { "(no answer)".to_owned() } else { self.text.clone() };
        let mut items = vec![Item::Assistant { text, calls: self.calls.clone(), thought: self.thought.clone() }];
        if !self.calls.is_empty() {
            let results = self.calls.iter().map(|call| self.result(&call.call_id, result_bytes)).collect();
            items.push(Item::Results { results });
        }
        items.extend(self.fell_short(silent).map(|note| assistant_item(format!("[abide note] {note}"))));
        items
    }

    /// The shortcoming of its answer that the model has to know of, and can't see in it.
    fn fell_short(&self, silent: bool) -> Option<&'static str> {
        match (silent, self.cut) {
            (false, false) => None,
            (false, true) => Some(words::CUT),
            (true, false) => Some(words::EMPTY),
            (true, true) => Some(words::CUT_EMPTY),
        }
    }

    fn result(&self, call_id: &CallId, bytes: usize) -> CallResult {
        let (status, result) = match self.outcomes.get(call_id) {
            Some((ToolStatus::Unknown, _)) => (ToolStatus::Unknown, unknown()),
            Some((status, result)) => (*status, result.clone()),
            None => (ToolStatus::Failed, not_run()),
        };
        let (images, result) = super::image::images_in(&result);
        let content = shortened(&on_one_line(&result), bytes);
        CallResult { call_id: call_id.clone(), content, failed: status != ToolStatus::Completed, images }
    }
}

fn unknown() -> ToolOutput {
    json!({ "error": {
        "code": "unknown", "message": "the call was cut off; whether it did its work is not known",
        "hint": "look at what it was to change before you do it again",
    } })
    .into()
}

fn not_run() -> ToolOutput {
    json!({ "error": { "code": "not_run", "message": "the turn ended before this call", "hint": "make it again if it is still wanted" } })
    .into()
}

/// JSON may have characters in its texts that some readers take for the end of a line.
fn on_one_line(result: &Value) -> String {
    let json = result.to_string();
    match json.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        false => json,
        true => json.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"),
    }
}

/// Its beginning and its end, where there is no room for all of it.
fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let head = limits::clip(text, max * 3 / 4);
    let mut from = text.len() - max / 4;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let left_out = from - head.len();
    format!("{head} …{left_out} bytes are left out here; the records have them… {}", &text[from..])
}

/// The conversation, as far as it has been told: facts are told in order, and later ones may be added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Talk {
    /// Oldest first.
    pub turns: Vec<Spoken>,
    messages: BTreeMap<MessageId, Arc<Message>>,
    /// The sealed reasoning of the round that comes next.
    thought: Option<SealedReasoning>,
}

impl Talk {
    /// Kinds of facts that it is made of. To tell it of any other changes nothing.
    pub const KINDS: [&'static str; 9] = [
        "message.queued",
        "message.interjected",
        "turn.started",
        "turn.provider_round_completed",
        "turn.provider_round_failed",
        "turn.assistant_round_recorded",
        "tool.finished",
        "exec.aborted",
        "turn.terminal",
    ];

    #[allow(clippy::wildcard_enum_match_arm, reason = "most facts are not about what was said or done")]
    pub fn tell(&mut self, Told { seq, at, fact }: Told) {
        let piece = match fact {
            Fact::MessageQueued(fact) => {
                self.messages.insert(fact.message.message_id.clone(), fact.message);
                return;
            }
            Fact::TurnStarted(fact) => {
                self.forget_vain_tries(&fact.message_id);
                self.turns.push(Spoken {
                    pieces: vec![Entry::new(self.message(&fact.message_id))],
                    exec_id: fact.exec_id,
                    message_id: fact.message_id,
                    turn_index: fact.turn_index,
                    at,
                    last_seq: seq,
                    refused: false,
                });
                return;
            }
            Fact::MessageInterjected(fact) => Some(self.message(&fact.message_id)),
            Fact::ProviderRoundCompleted(fact) => {
                self.thought = fact.model.zip(fact.sealed).map(|(model, sealed)| SealedReasoning { model, sealed });
                return;
            }
            Fact::AssistantRoundRecorded(fact) => Some(Piece::Round(Round {
                round: fact.round,
                text: fact.text,
                calls: fact.calls,
                outcomes: BTreeMap::new(),
                thought: self.thought.take(),
                cut: fact.cut,
            })),
            Fact::ProviderRoundFailed(fact) if fact.error == ProviderError::Invalid => {
                if self.turns.last().is_some_and(|turn| turn.exec_id == fact.exec_id) {
                    refused::without_images(&mut self.turns);
                }
                return;
            }
            Fact::ToolFinished(fact) => {
                let last = self.turns.last_mut().filter(|turn| turn.exec_id == fact.exec_id);
                if let Some(turn) = last {
                    turn.last_seq = seq;
                    finished(turn, fact.call_id, fact.status, fact.result);
                    refused::without_later_images(turn);
                }
                return;
            }
            Fact::TurnAborted(fact) => Some(Piece::Note(format!("The turn was cut short here: {}.", fact.reason))),
            Fact::TurnTerminal(fact) if fact.terminal_kind != TerminalKind::Completed => {
                let error = fact.error.as_deref().map(|error| quote_line(error, 400)).unwrap_or_default();
                Some(Piece::Note(format!("The turn ended here: {} {error}", fact.terminal_kind)))
            }
            Fact::TurnTerminal(_) => None,
            _ => return,
        };
        if let Some(turn) = self.turns.last_mut() {
            turn.last_seq = seq;
            turn.pieces.extend(piece.map(Entry::new));
            refused::without_later_images(turn);
        }
    }

    fn message(&self, id: &MessageId) -> Piece {
        match self.messages.get(id) {
            Some(message) => Piece::Heard(Arc::clone(message)),
            None => Piece::Note(format!("A message, {id}, that lies too far back to be shown.")),
        }
    }

    /// A turn in which nothing was said, and whose message is taken again, would only show the message twice.
    fn forget_vain_tries(&mut self, message_id: &MessageId) {
        self.turns.retain(|turn| turn.message_id != *message_id || turn.rounds().next().is_some());
    }
}

impl FromIterator<Told> for Talk {
    fn from_iter<I: IntoIterator<Item = Told>>(told: I) -> Talk {
        let mut talk = Talk::default();
        told.into_iter().for_each(|told| talk.tell(told));
        talk
    }
}

fn finished(turn: &mut Spoken, call_id: CallId, status: ToolStatus, result: ToolOutput) {
    let last = turn.pieces.iter_mut().rev().find(|entry| matches!(entry.piece(), Piece::Round(_)));
    if let Some(Piece::Round(round)) = last.map(Entry::change) {
        round.outcomes.insert(call_id, (status, result));
    }
}
