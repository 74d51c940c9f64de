//! Bodies of messages: the state of an agent holds excerpts, the facts hold the bodies, and a queue is bounded by both.

use std::sync::Arc;

use abide_kernel::fact::MessageQueued;
use abide_kernel::id::{Fresh, MessageId};
use abide_kernel::input::{Input, NewMessage, Refusal};
use abide_kernel::limits::{self, EXCERPT_BYTES, LISTED_BODY_BYTES, QUEUE_BYTES, QUEUE_MIN};
use abide_kernel::message::Message;
use abide_kernel::read_rows::rows_of;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::MessageKind;
use abide_kernel::{Fact, admit};
use serde_json::{Value, json};

use crate::story::Story;

fn text(length: usize) -> NewMessage {
    NewMessage { text: Some("y".repeat(length)), ..NewMessage::default() }
}

fn message(text: Option<&str>, json: Option<Value>) -> Message {
    let bare = Message::new(MessageId::new("msg_1"), MessageKind::WebhookEvent);
    Message { text: text.map(str::to_owned), json: json.map(Into::into), ..bare }
}

/// A message that is queued without a decision: the agent is stopped.
fn queue(story: &mut Story, new: NewMessage) -> Result<(), Refusal> {
    let mut fresh = Fresh::new(story.now, 7 + story.state.seq);
    admit(&mut story.state, Input::Queue(new), story.now, &mut fresh).map(drop)
}

fn stopped() -> Story {
    let mut story = Story::begin();
    story.tell("stop").unwrap();
    story
}

#[test]
fn a_state_holds_little_of_long_messages() {
    let mut story = stopped();
    for _ in 0..50 {
        queue(&mut story, text(limits::MESSAGE_BYTES)).unwrap();
    }
    let held: usize = story.state.planes.queue.entries().map(|entry| entry.message.text.as_ref().unwrap().len()).sum();
    assert_eq!(held, 50 * EXCERPT_BYTES);
    assert_eq!(story.state.planes.queue.body_bytes(), 50 << 20);
    assert!(story.state.snapshot().len() < 200_000, "{}", story.state.snapshot().len());
    assert!(story.state.planes.queue.entries().all(abide_kernel::state::queue::Entry::is_excerpt));
    queue(&mut story, text(EXCERPT_BYTES)).unwrap();
    assert_eq!(
        story.state.planes.queue.entries().filter(|entry| !entry.is_excerpt()).count(),
        1,
        "a short one is whole"
    );
}

#[test]
fn a_long_queue_holds_even_less_of_each() {
    let mut story = stopped();
    for _ in 0..limits::LONG_EXCERPTS_MAX + 10 {
        queue(&mut story, text(1_000)).unwrap();
    }
    let short = |length: usize| {
        let of_length =
            |entry: &&abide_kernel::state::queue::Entry| entry.message.text.as_ref().unwrap().len() == length;
        story.state.planes.queue.entries().filter(of_length).count()
    };
    assert_eq!((short(EXCERPT_BYTES), short(limits::SHORT_EXCERPT_BYTES)), (limits::LONG_EXCERPTS_MAX, 10));
}

#[test]
fn an_excerpt_says_something_exactly_if_its_message_does() {
    let blank = " ".repeat(9_000);
    let long = format!("{blank}say it");
    let null = Some(Value::Null);
    let large = json!({ "n": "x".repeat(9_000) });
    let cases = [
        message(Some(&blank), None),
        message(Some(&long), None),
        message(Some(&blank), null.clone()),
        message(Some(&blank), Some(large.clone())),
        message(None, Some(large)),
        message(Some(&"é".repeat(5_000)), null),
    ];
    for message in cases {
        let excerpt = message.excerpt(EXCERPT_BYTES).unwrap();
        assert_eq!(excerpt.is_contentful(), message.is_contentful(), "{excerpt:?}");
        assert!(excerpt.body_bytes() <= EXCERPT_BYTES as u64 && excerpt.body_bytes() < message.body_bytes());
        assert_eq!(Message { text: None, json: None, ..excerpt }, Message { text: None, json: None, ..message });
    }
    assert_eq!(message(Some("short"), None).excerpt(EXCERPT_BYTES), None);
}

#[test]
fn the_call_to_a_model_says_where_the_whole_messages_are() {
    let mut story = Story::begin();
    story.input(Input::Queue(text(9_000)));
    let queued = |fact: &Fact| matches!(fact, Fact::MessageQueued(_));
    let seq = story.facts.iter().position(|(_, fact)| queued(fact)).unwrap() as u64 + 1;
    assert_eq!(story.model_call().excerpts, [seq]);
    story.tell("round done").unwrap();
    story.tell("operator short").unwrap();
    assert_eq!(story.model_call().excerpts, Vec::<u64>::new());
}

#[test]
fn a_queue_ends_at_its_bytes_but_takes_a_thousand_messages() {
    let mut story = stopped();
    let largest = Arc::new("y".repeat(limits::MESSAGE_BYTES));
    let whole = QUEUE_BYTES / limits::MESSAGE_BYTES as u64;
    for _ in 0..whole {
        let new = NewMessage { text: Some(String::clone(&largest)), ..NewMessage::default() };
        queue(&mut story, new).unwrap();
    }
    assert!(
        story.state.planes.queue.len() >= QUEUE_MIN,
        "the largest messages fill the bytes after the first thousand"
    );
    let seq = story.state.seq;
    let refusal = queue(&mut story, text(1)).unwrap_err();
    assert_eq!((refusal.code.word(), story.state.seq), ("queue_full", seq), "nothing is recorded");
}

#[test]
fn bytes_that_were_worked_off_make_room() {
    let mut story = Story::begin();
    story.input(Input::Queue(text(5_000)));
    story.input(Input::Queue(text(6_000)));
    assert_eq!(story.state.planes.queue.body_bytes(), 11_000);
    story.tell("round done").unwrap();
    assert_eq!(story.state.planes.queue.body_bytes(), 6_000);
    story.tell("crash").unwrap();
    assert_eq!(story.state.planes.queue.body_bytes(), 6_000);
    story.tell("round done").unwrap();
    assert_eq!(story.state.planes.queue.body_bytes(), 0);
}

#[test]
fn a_list_shows_the_beginning_of_a_long_body() {
    let row = |message: Message| {
        let fact = Fact::MessageQueued(MessageQueued { message: Arc::new(message) });
        rows_of(7, Time::EPOCH, &fact).remove(0).patch
    };
    let long = row(message(Some(&"y".repeat(9_000)), None));
    assert_eq!(long["text"].as_str().unwrap().len(), LISTED_BODY_BYTES);
    assert_eq!((&long["bytes"], &long["truncated"]), (&json!(9_000), &json!(true)));
    let data = json!({ "n": "x".repeat(9_000) });
    let large = row(message(None, Some(data.clone())));
    assert_eq!(large["text"], data.to_string()[..LISTED_BODY_BYTES]);
    assert_eq!((large.get("json"), &large["truncated"]), (None, &json!(true)));
    let short = row(message(Some(&"y".repeat(LISTED_BODY_BYTES)), None));
    assert_eq!((short.get("bytes"), short.get("truncated")), (None, None));
}

#[test]
fn the_bodies_of_hints_are_bounded_together() {
    let mut story = stopped();
    story.tell("start").unwrap();
    story.tell("operator hi").unwrap();
    for source in 0..40 {
        for _ in 0..3 {
            let body = Some("b".repeat(limits::TEXT_BYTES));
            let (reason, source) = ("look".to_owned(), Some(format!("s{source}")));
            story.input(Input::Wake { reason, source, resource: None, body });
        }
    }
    let pending = story.state.planes.hints.pending();
    let held: usize = pending.values().flat_map(|hint| &hint.bodies).map(String::len).sum();
    assert_eq!(pending.len(), 40);
    assert!((limits::HINT_BYTES_MAX..limits::HINT_BYTES_MAX + 120 * 300).contains(&held), "{held}");
    assert!(pending["s39"].is_contentful());
    assert!(pending["s39"].bodies[0].ends_with(&format!("… ({} bytes in all)", limits::TEXT_BYTES)));
}
