//! Wake hints by source: how many there may be, and how much of what each brings is kept.

use abide_kernel::input::Input;
use abide_kernel::limits;

use crate::story::{Story, check};

fn told(lines: &str) -> Story {
    let mut story = Story::begin();
    lines.lines().for_each(|line| story.tell(line.trim()).unwrap());
    story
}

fn wake(story: &mut Story, source: &str, body: Option<String>) -> Option<&'static str> {
    let before = story.facts.len();
    let input = Input::Wake { reason: "look".to_owned(), source: Some(source.to_owned()), resource: None, body };
    story.input(input);
    story.facts.get(before).map(|(_, fact)| fact.kind())
}

#[test]
fn sources_are_bounded_and_known_ones_go_on() {
    let mut story = told("operator hi");
    for source in 0..limits::HINT_SOURCES_MAX {
        assert_eq!(wake(&mut story, &format!("s{source}"), None), Some("wake_hint.coalesced"));
    }
    assert_eq!(story.state.planes.hints.sources(), limits::HINT_SOURCES_MAX);
    assert_eq!(wake(&mut story, "another", None), None, "it is refused");
    assert_eq!(wake(&mut story, "s7", None), Some("wake_hint.coalesced"));
    assert_eq!(story.state.planes.hints.pending()["s7"].count, 2);
}

/// A hint whose tick is under way is known, and the next of that source waits for it.
#[test]
fn a_source_is_known_while_its_tick_is_under_way() {
    let mut story = told("wake source=door knock\noperator hi");
    assert_eq!(story.state.planes.hints.undelivered().len(), 1);
    assert!(story.state.planes.hints.has_source("door") && !story.state.planes.hints.has_source("bell"));
    assert_eq!((story.state.planes.hints.sources(), story.state.planes.hints.pending().len()), (1, 0));
    wake(&mut story, "door", None);
    assert_eq!((story.state.planes.hints.sources(), story.state.planes.hints.pending().len()), (2, 1));
    assert!(story.state.planes.hints.deliverable().is_none());
}

#[test]
fn so_many_bodies_of_a_hint_are_kept() {
    let mut story = told("operator hi");
    for number in 0..limits::HINT_BODIES_MAX + 2 {
        wake(&mut story, "door", Some(format!("body {number}")));
    }
    let hint = &story.state.planes.hints.pending()["door"];
    let expected: Vec<String> = (0..limits::HINT_BODIES_MAX).map(|number| format!("body {number}")).collect();
    assert_eq!(hint.bodies, expected);
    assert_eq!(hint.count, limits::HINT_BODIES_MAX as u64 + 2);
}

/// When the bytes are used up, a body that is no longer than an excerpt stays, and of a longer one an excerpt does.
#[test]
fn bodies_past_the_bytes_are_excerpts() {
    let mut story = told("operator hi");
    let whole = limits::HINT_BYTES_MAX / limits::TEXT_BYTES;
    for source in 0..whole {
        wake(&mut story, &format!("s{source}"), Some("b".repeat(limits::TEXT_BYTES)));
    }
    let body = |story: &Story, source: &str| story.state.planes.hints.pending()[source].bodies[0].clone();
    assert_eq!(body(&story, "s0").len(), limits::TEXT_BYTES);
    assert_eq!(body(&story, &format!("s{}", whole - 1)).len(), limits::TEXT_BYTES, "what just fits is whole");
    let excerpt = "c".repeat(limits::EXCERPT_BYTES);
    wake(&mut story, "short", Some(excerpt.clone()));
    assert_eq!(body(&story, "short"), excerpt);
    wake(&mut story, "long", Some(format!("  {excerpt}d")));
    let bytes = limits::EXCERPT_BYTES + 3;
    assert_eq!(body(&story, "long"), format!("{excerpt}… ({bytes} bytes in all)"));
}

#[test]
fn a_wake_is_bounded_too() {
    let line = limits::LINE_BYTES;
    let refused = |reason: usize, source: usize, resource: usize, body: usize| {
        let mut story = Story::begin();
        let text = |size: usize| "x".repeat(size);
        story.input(Input::Wake {
            reason: text(reason),
            source: Some(text(source)),
            resource: Some(text(resource)),
            body: Some(text(body)),
        });
        story.state.planes.hints.pending().is_empty() && story.state.planes.hints.undelivered().is_empty()
    };
    assert!(!refused(line, line, line, limits::TEXT_BYTES));
    assert!(refused(line + 1, 1, 1, 1) && refused(1, line + 1, 1, 1) && refused(1, 1, line + 1, 1));
    assert!(refused(1, 1, 1, limits::TEXT_BYTES + 1));
}

#[test]
fn the_oldest_hint_goes_first() {
    check(
        "operator hi
         wake source=b
         wake source=a
         ---
         round done
         hints",
        "end completed
         processed m1
         told result: done
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:b:1
         ReduceMessageOnly liveness_only_message m2
         processed m2: blank
         EmitSystemTick wake_hint
         queued m3 wake_hint as next wake_hint:a:2
         ReduceMessageOnly liveness_only_message m3
         processed m3: blank
         Sleep no_pending_scheduler_facts
         none",
    );
}

#[test]
fn a_hint_that_says_nothing_is_recorded_whole() {
    check(
        "operator hi
         wake source=s
         ---
         round done
         facts",
        r#"end completed
         processed m1
         told result: done
         EmitSystemTick wake_hint
         queued m2 wake_hint as next wake_hint:s:1
         ReduceMessageOnly liveness_only_message m2
         processed m2: blank
         Sleep no_pending_scheduler_facts
         turn.provider_round_completed {"exec_id":"exec1","round":1,"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_micro_usd":0}}
         turn.assistant_round_recorded {"exec_id":"exec1","round":1,"text":"done"}
         turn.terminal {"exec_id":"exec1","turn_index":1,"message_id":"m1","terminal_kind":"completed","rounds":1,"last_assistant_message":"done"}
         message.processed {"message_id":"m1"}
         brief.recorded {"brief_id":"brief1","kind":"result","text":"done","message_id":"m1"}
         scheduler.decision {"kind":"EmitSystemTick","reason":"wake_hint","boundary":"idle","model_reentry":false,"liveness_only":true,"ignored":[],"evidence":["runtime_idle","pending_wake_hint s seq 13","key wake_hint:s:1"]}
         message.queued {"message_id":"m2","kind":"system_tick","origin":{"kind":"system","id":"s"},"trust":"trusted_system","priority":"next","tick":"wake_hint","idempotency_key":"wake_hint:s:1"}
         scheduler.decision {"kind":"ReduceMessageOnly","reason":"liveness_only_message","boundary":"message","model_reentry":false,"liveness_only":true,"message_id":"m2","ignored":[],"evidence":["message_queued m2 seq 20","liveness_only","blank"]}
         message.dequeued {"message_id":"m2"}
         message.processed {"message_id":"m2","ignored":["blank"]}
         scheduler.decision {"kind":"Sleep","reason":"no_pending_scheduler_facts","boundary":"idle","model_reentry":false,"liveness_only":false,"ignored":[],"evidence":["nothing_pending"]}
         posture.changed {"boundary":"lifecycle_sleep","previous_status":"awake_idle","next_status":"asleep","task_ids":[],"evidence":["decision Sleep no_pending_scheduler_facts"]}"#,
    );
}
