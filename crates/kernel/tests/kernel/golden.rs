//! Golden files: the stored shape of every kind of fact, with every field. A file is never edited once facts of its
//! shape are in ledgers; a changed shape gets a new spelling, and the old file stays and must still read.

use std::collections::{BTreeMap, BTreeSet};

use abide_kernel::Fact;
use abide_kernel::decision::Decision;
use abide_kernel::fact::{DecodeError, RuntimeErrorRecorded, SchedulerDecided, upcast};
use abide_kernel::id::WorkItemId;
use abide_kernel::vocabulary::{DecisionKind, Reason};
use serde_json::{Value, json};

/// The golden files by their kind.
pub fn golden() -> BTreeMap<String, Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .map(|path| {
            let kind = path.file_name().unwrap().to_str().unwrap().strip_suffix(".json").unwrap().to_owned();
            (kind, std::fs::read(path).unwrap())
        })
        .collect()
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn every_kind_has_a_file_and_every_file_a_kind() {
    let files: BTreeSet<String> = golden().into_keys().collect();
    let kinds: BTreeSet<String> = Fact::KINDS.iter().copied().chain(upcast::old_kinds()).map(str::to_owned).collect();
    assert_eq!(files, kinds);
}

#[test]
fn every_file_reads_and_is_written_as_it_was() {
    let files = golden();
    for kind in Fact::KINDS {
        let fact = Fact::decode(kind, &files[*kind]).unwrap();
        assert_eq!(fact.kind(), *kind);
        assert_eq!(value(&fact.encode()), value(&files[*kind]), "{kind}");
        assert_eq!(Fact::decode(kind, &fact.encode()).unwrap(), fact, "{kind}");
    }
}

#[test]
fn old_spellings_read_as_what_they_are_today() {
    let files = golden();
    let old: Vec<(&str, Fact)> =
        upcast::old_kinds().map(|kind| (kind, Fact::decode(kind, &files[kind]).unwrap())).collect();
    let decision = Decision {
        work_item_id: Some(WorkItemId::new("work_019b76da-a800-7000-8000-000000000001")),
        ..Decision::new(DecisionKind::EmitSystemTick, Reason::ContinueActive)
            .because("runtime_idle")
            .because("current_work_item_runnable")
            .because("no_duplicate_tick_for_generation")
    };
    let expected = [
        ("scheduler_decision", Fact::from(SchedulerDecided { decision })),
        ("runtime_error", RuntimeErrorRecorded { error: "the disk is full".to_owned() }.into()),
    ];
    assert_eq!(old, expected);
}

/// The free text of an old error stood under several names, or for itself.
#[test]
fn an_old_error_reads_under_any_of_its_names() {
    let full = [json!({ "error": "full" }), json!({ "message": "full" }), json!({ "reason": "full" }), json!("full")];
    for old in full {
        let fact = Fact::decode("runtime_error", old.to_string().as_bytes()).unwrap();
        assert_eq!(fact, Fact::from(RuntimeErrorRecorded { error: "full".to_owned() }), "{old}");
    }
}

#[test]
fn an_unknown_kind_is_an_error() {
    let error = Fact::decode("message.evaporated", b"{}").unwrap_err();
    assert_eq!(error, DecodeError::UnknownKind { kind: "message.evaporated".to_owned() });
}

#[test]
fn an_unknown_field_is_an_error() {
    for (kind, bytes) in golden() {
        let mut wrong = value(&bytes);
        wrong["surprise"] = json!(1);
        let read = Fact::decode(&kind, wrong.to_string().as_bytes());
        let free_text = kind == "runtime_error";
        assert!(free_text || matches!(read, Err(DecodeError::BadPayload { .. })), "{kind}: {read:?}");
    }
}

#[test]
fn an_unknown_word_is_an_error_that_lists_the_known_ones() {
    let error = Fact::decode("message.requeued", br#"{"message_id":"m","reason":"mood"}"#).unwrap_err().to_string();
    assert!(error.contains("unknown variant `mood`") && error.contains("provider_backoff"), "{error}");
}

/// Fields that are left out when they are empty read as empty.
#[test]
fn a_fact_without_its_optional_fields_reads() {
    let short = br#"{"message_id":"m"}"#;
    for kind in ["message.dequeued", "message.processed"] {
        let fact = Fact::decode(kind, short).unwrap();
        assert_eq!(fact.encode(), short, "{kind}");
    }
}
