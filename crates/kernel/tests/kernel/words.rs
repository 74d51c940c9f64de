//! Small facts of the vocabulary that others rely on: whose word a message is, how long a time reads, ids and usage.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use abide_kernel::Fact;
use abide_kernel::budget::Usage;
use abide_kernel::budget::wall_in_words;
use abide_kernel::fact::reader;
use abide_kernel::id::{AgentId, Fresh, MessageId};
use abide_kernel::limits::clip;
use abide_kernel::message::{Message, Origin, SubjectRecord};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{MessageKind, OriginKind, TickKind};

use crate::golden::golden;

fn message(kind: MessageKind) -> Message {
    Message::new(MessageId::new("msg_1"), kind)
}

#[test]
fn a_turn_is_from_outside_unless_an_agent_or_its_work_caused_it() {
    let operator = message(MessageKind::OperatorPrompt);
    assert!(operator.is_from_outside());
    assert!(message(MessageKind::WebhookEvent).is_from_outside());
    assert!(!Message { self_caused: true, ..operator.clone() }.is_from_outside());
    assert!(!Message { origin: Origin::of(OriginKind::Agent, Some("b")), ..operator }.is_from_outside());
    for (tick, expected) in
        [(TickKind::ContinueActive, false), (TickKind::QueuedAvailable, false), (TickKind::WakeHint, true)]
    {
        let subject = SubjectRecord { tick: Some(tick), ..SubjectRecord::of(MessageKind::SystemTick) };
        let tick = Message::new(MessageId::new("msg_1"), subject);
        assert_eq!((tick.is_from_outside(), tick.is_work_tick()), (expected, !expected));
    }
}

#[test]
fn ticks_are_made_by_the_runtime() {
    for kind in MessageKind::ALL {
        let expected = matches!(kind, MessageKind::TimerTick | MessageKind::SystemTick);
        assert_eq!(message(*kind).is_self_made_tick(), expected, "{kind}");
    }
}

#[test]
fn a_span_reads_in_the_unit_that_fits() {
    for (ms, expected) in [
        (0, "0 h"),
        (1, "1 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (150_000, "2.5 min"),
        (359_999, "5.9 min"),
        (360_000, "0.1 h"),
        (3_600_000, "1 h"),
        (5_400_000, "1.5 h"),
        (5_436_000, "1.51 h"),
        (360_000_000, "100 h"),
    ] {
        assert_eq!(wall_in_words(ms), expected, "{ms}");
    }
}

#[test]
fn a_text_is_clipped_at_a_letter() {
    for (max, expected) in [(0, ""), (1, "a"), (2, "a"), (3, "a"), (4, "a日"), (5, "a日b"), (9, "a日b")] {
        assert_eq!(clip("a日b", max), expected, "{max}");
    }
}

/// They are stored: what a seed made, it makes again.
#[test]
fn ids_are_made_of_time_count_and_entropy() {
    let mut fresh = Fresh::new(Time::from_ms(1_767_225_600_000), 7);
    let first = [fresh.message().to_string(), fresh.message().to_string()];
    let of = |text: &str| text.split('-').map(str::to_owned).collect::<Vec<_>>();
    let (one, two) = (of(&first[0]), of(&first[1]));
    assert_eq!((&one[..3], &two[..3]), (&of("msg_019b76da-a800-7000")[..], &of("msg_019b76da-a800-7001")[..]));
    let mut tails = BTreeSet::new();
    for entropy in 0..2_000 {
        let mut fresh = Fresh::new(Time::from_ms(0), entropy);
        for _ in 0..4 {
            let id = fresh.message().to_string();
            let tail = of(&id)[3..].concat();
            assert!(matches!(tail.as_bytes()[0], b'8'..=b'b'), "{id} is no UUID of variant 1");
            tails.insert(tail);
        }
    }
    assert_eq!(tails.len(), 8_000, "no two are the same");
    // Each bit of the tail is set in about half of them.
    let bits = |bit: u32| tails.iter().filter(|tail| u64::from_str_radix(tail, 16).unwrap() >> bit & 1 == 1).count();
    for bit in 0..62 {
        assert!((3_600..4_400).contains(&bits(bit)), "bit {bit} is set in {} of 8000", bits(bit));
    }
}

#[test]
fn the_count_of_ids_goes_on_within_a_millisecond() {
    let counts = |fresh: &mut Fresh| fresh.message().to_string()[18..22].to_owned();
    let (now, later) = (Time::from_ms(5_000), Time::from_ms(5_001));
    let mut fresh = Fresh::new(now, 1);
    assert_eq!(counts(&mut fresh), "7000");
    fresh.renew(now, 2);
    assert_eq!(counts(&mut fresh), "7001");
    fresh.renew(later, 3);
    assert_eq!(counts(&mut fresh), "7000");
}

#[test]
fn an_agents_name_is_found_by_its_text() {
    let names = BTreeSet::from([AgentId::new("lead").unwrap()]);
    assert!(names.contains("lead") && !names.contains("led"));
    let text: &str = names.first().unwrap().borrow();
    assert_eq!(text, "lead");
}

/// The kinds that say what calls used are those that have it.
#[test]
fn usage_is_read_off_the_facts_that_have_it() {
    let used = Usage { input_tokens: 7, ..Usage::default() };
    let mut found = BTreeSet::new();
    for (kind, bytes) in golden() {
        let mut json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        json["usage"] = serde_json::to_value(used).unwrap();
        let Ok(fact) = Fact::decode(&kind, json.to_string().as_bytes()) else { continue };
        if fact.model_usage() == Some(&used) {
            found.insert(fact.kind());
        }
    }
    assert_eq!(found, BTreeSet::from(Fact::USAGE_KINDS));
}

/// A path goes through every element of a list only where it says so.
#[test]
fn a_shape_is_found_by_its_path() {
    use reader::{Part, Shape, reader_among};
    let reads = |part: Part, payload: &str| {
        let shapes = [Shape { kind: "k", part, reader: 5 }];
        assert_eq!(reader_among(&shapes, "other", payload.as_bytes()), 1);
        reader_among(&shapes, "k", payload.as_bytes()) == 5
    };
    assert!(reads(Part::Kind, "{}"));
    assert!(reads(Part::Field("a"), r#"{"a":1}"#) && !reads(Part::Field("a"), r#"{"b":1}"#));
    assert!(reads(Part::Field("a.b"), r#"{"a":{"b":1}}"#) && !reads(Part::Field("a.b"), r#"{"a":{"c":1}}"#));
    assert!(reads(Part::Field("a[].b"), r#"{"a":[{"c":1},{"b":1}]}"#));
    assert!(!reads(Part::Field("a[].b"), r#"{"a":[{"c":1}]}"#) && !reads(Part::Field("a[].b"), r#"{"a":[]}"#));
    assert!(!reads(Part::Field("a.b"), r#"{"a":[{"b":1}]}"#));
    assert!(reads(Part::Word("a", "x"), r#"{"a":"x"}"#) && !reads(Part::Word("a", "x"), r#"{"a":"y"}"#));
    assert!(reads(Part::Word("a[]", "x"), r#"{"a":["y","x"]}"#) && !reads(Part::Word("a[]", "x"), r#"{"a":["y"]}"#));
}

#[test]
fn what_was_reached_reads_in_its_own_unit() {
    use abide_kernel::budget::Reached;
    use abide_kernel::vocabulary::Measure;
    for (measure, used, max, expected) in [
        (Measure::Turns, 3, 3, "3 of 3 turns"),
        (Measure::Tokens, 30, 20, "30 of 20 tokens"),
        (Measure::Money, 1_200_000, 1_000_000, "$1.2 of $1"),
        (Measure::Money, 50, 12_345_678, "$0.00005 of $12.345678"),
        (Measure::Wall, 5_400_000, 3_600_000, "1.5 of 1 hours"),
        (Measure::Wall, 0, 360_000, "0 of 0.1 hours"),
        (Measure::Wall, 3_600_000, 60_000, "1 h of 1 min"),
        (Measure::Wall, 150_000, 7_000, "2.5 min of 7 s"),
    ] {
        assert_eq!(Reached { measure, used, max }.in_words(), expected);
    }
}

/// An id is made of the time, a count and the entropy alone, and the same way each time: what is replayed has the same ids.
#[test]
fn ids_follow_from_what_they_are_made_of() {
    let at = Time::EPOCH.plus_ms(1_767_225_600_000);
    let mut fresh = Fresh::new(at, 1);
    assert_eq!(fresh.message().as_str(), "msg_019b76da-a800-7000-88b4-fda8c892b50e");
    assert_eq!(fresh.work_item().as_str(), "work_019b76da-a800-7001-a9fd-6049d65af21e");
    let other = Fresh::new(at, 0xdead_beef_cafe_f00d).message();
    assert_eq!(other.as_str(), "msg_019b76da-a800-7000-926b-50e1f974acc1");
}
