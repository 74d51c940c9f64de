//! Fixtures: scenarios of the scheduler's contract that a projection alone can't settle, so that the folder is loaded and
//! goes on; and the records that an export holds.

use std::path::Path;

use abide_kernel::fact::Fact;
use abide_kernel::fixture::{self, Files, Fixture, History, differences};
use abide_kernel::id::Fresh;
use abide_kernel::input::{Input, NewMessage};
use abide_kernel::message::Message;
use abide_kernel::vocabulary::{MessageKind, TickKind};
use abide_kernel::{admit, carry_out, decide};
use serde_json::{Value, json};

use crate::story::Story;

fn loaded(name: &str) -> Fixture {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/scheduler").join(name);
    let ledger = std::fs::read_dir(folder.join("ledger")).unwrap().map(|file| file.unwrap().path());
    let files: Files = std::iter::once(folder.join("agent.json"))
        .chain(ledger)
        .map(|path| (path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap()))
        .collect();
    fixture::load(&files).unwrap()
}

fn carried_out(fixture: &mut Fixture) -> Vec<Fact> {
    let decision = decide(&fixture.state, fixture.now);
    carry_out(&mut fixture.state, &decision, fixture.now, &mut Fresh::new(fixture.now, 7)).0
}

fn queued(facts: &[Fact]) -> Vec<&Message> {
    let queued = facts.iter().filter_map(|fact| {
        let Fact::MessageQueued(queued) = fact else { return None };
        Some(&*queued.message)
    });
    queued.collect()
}

#[test]
fn a_result_that_was_not_queued_before_the_cut_is_queued_by_the_next_step() {
    let mut fixture = loaded("terminal_task_before_result_enqueue");
    let hello = Input::Queue(NewMessage { text: Some("hello".to_owned()), ..NewMessage::default() });
    let admitted = admit(&mut fixture.state, hello, fixture.now, &mut Fresh::new(fixture.now, 7)).unwrap();
    let carrier = queued(&admitted.facts).into_iter().find(|message| message.kind() == MessageKind::TaskResult);
    let carrier = carrier.expect("nothing carries the result");
    assert_eq!(carrier.task_id().map(|id| id.as_str()), Some("t1"));
    assert_eq!(carrier.work_item_id().map(|id| id.as_str()), Some("w1"));
}

#[test]
fn a_result_after_a_summary_is_shown_in_a_turn_about_its_own_work() {
    let facts = carried_out(&mut loaded("task_result_rejoins_after_compaction"));
    let turn = facts.iter().find_map(|fact| {
        let Fact::TurnStarted(turn) = fact else { return None };
        Some(turn)
    });
    let turn = turn.expect("no turn started");
    assert_eq!((turn.message_id.as_str(), turn.presents.len()), ("m2", 1));
    assert_eq!(turn.work_item_id.as_ref().map(|id| id.as_str()), Some("w1"));
}

#[test]
fn a_wake_tick_after_a_summary_says_where_it_came_from() {
    let facts = carried_out(&mut loaded("wake_hint_after_compaction"));
    let [tick] = queued(&facts)[..] else { panic!("{facts:?}") };
    assert_eq!(tick.tick(), Some(TickKind::WakeHint));
    let key = tick.idempotency_key().unwrap();
    assert!(key.starts_with("wake_hint:ci: build 42 finished:"), "{key}");
}

fn exported(story: &Story) -> Files {
    let mut history = History::default();
    for (seq, (at, fact)) in (1..).zip(&story.facts) {
        history.add(seq, *at, fact);
    }
    fixture::files(&story.state, story.now, history)
}

fn told(lines: &str) -> Story {
    let mut story = Story::begin();
    for line in lines.lines().map(str::trim) {
        story.tell(line).unwrap();
    }
    story
}

fn records(files: &Files, name: &str) -> Vec<Value> {
    let text = std::str::from_utf8(&files[&format!("ledger/{name}.jsonl")]).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_export_says_what_became_of_every_call() {
    let files = exported(&told(
        "operator hi
         round CreateWorkItem build
         round Tool make
         crash
         round Tool make",
    ));
    let tools = records(&files, "tools");
    let statuses: Vec<(&Value, &Value)> = tools.iter().map(|tool| (&tool["tool_name"], &tool["status"])).collect();
    let [create, cut, running] = [("CreateWorkItem", "completed"), ("Tool", "unknown"), ("Tool", "running")]
        .map(|(tool, status)| (json!(tool), json!(status)));
    assert_eq!(statuses, [(&create.0, &create.1), (&cut.0, &cut.1), (&running.0, &running.1)]);
}

#[test]
fn an_export_has_every_message_and_where_it_ended() {
    let story = told(
        "operator one
         interject two
         round done
         round done
         operator three
         abort
         operator four
         operator five",
    );
    let files = exported(&story);
    let texts: Vec<Value> = records(&files, "messages").iter().map(|message| message["text"].clone()).collect();
    assert_eq!(json!(texts[0..3]), json!(["one", "two", "three"]));
    let statuses: Vec<Value> = records(&files, "queue_entries").iter().map(|entry| entry["status"].clone()).collect();
    let ended = ["processed", "interjected", "aborted", "dequeued", "queued"];
    assert_eq!(json!(statuses), json!(ended), "{texts:?}");
    let read = fixture::load(&files).unwrap();
    assert_eq!(read.state.planes.queue.len(), story.state.planes.queue.len(), "those that are over stay over");
}

#[test]
fn an_export_says_what_a_replay_of_it_comes_to() {
    let files = exported(&told("person CreateWorkItem build\nround WaitFor external c1\noperator hi"));
    let expected: Value = serde_json::from_slice(&files["expected.json"]).unwrap();
    let printed = fixture::load(&files).unwrap().projection();
    assert_eq!(differences(&expected, &printed), Vec::<String>::new());
    assert_eq!(expected, printed, "every key of it");
}
