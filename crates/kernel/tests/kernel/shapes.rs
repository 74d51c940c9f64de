//! Every shape of a stored fact that a program of some reader can write is recorded in `tests/shapes/READER.txt`: the
//! members of the golden files, and the words. A shape that is in none of them is new, and older programs can't read it.

use std::collections::{BTreeMap, BTreeSet};

use abide_kernel::Fact;
use abide_kernel::fact::reader::{Part, READER, READERS, Shape, reader_among, reader_of};
use abide_kernel::vocabulary::WORDS;
use serde_json::{Value, json};

use crate::golden::golden;

/// A line per kind, per member of a kind, and per word.
fn shapes() -> BTreeSet<String> {
    let mut shapes = BTreeSet::new();
    for (kind, bytes) in golden() {
        shapes.insert(kind.clone());
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        members(&kind, "", &value, &mut shapes);
        shapes.extend(known_members(&kind, &value).into_iter().map(|member| format!("{kind} {member}")));
    }
    shapes.extend(WORDS.iter().flat_map(|(set, words)| words.iter().map(move |word| format!("word {set} {word}"))));
    shapes
}

/// Members of the fact itself that its file may lack: the decoder lists them when it meets one that it does not know.
fn known_members(kind: &str, value: &Value) -> Vec<String> {
    let mut wrong = value.clone();
    wrong["surprise"] = json!(1);
    let Err(error) = Fact::decode(kind, wrong.to_string().as_bytes()) else { return Vec::new() };
    let error = error.to_string();
    let listed = error.split_once("expected ").map_or("", |(_, listed)| listed);
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn members(kind: &str, path: &str, value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, member) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                into.insert(format!("{kind} {path}"));
                members(kind, &path, member, into);
            }
        }
        Value::Array(elements) => {
            elements.iter().for_each(|element| members(kind, &format!("{path}[]"), element, into))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The recorded shapes, by the reader that they came with.
fn recorded() -> BTreeMap<u32, BTreeSet<String>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shapes");
    let read = |reader: u32| {
        let text = std::fs::read_to_string(format!("{folder}/{reader}.txt")).unwrap();
        (reader, text.lines().map(str::to_owned).collect())
    };
    (1..=READER).map(read).collect()
}

#[test]
fn every_shape_has_a_reader() {
    let bare = |line: String| line.trim_end_matches(" never stored").to_owned();
    let known: BTreeSet<String> = recorded().into_values().flatten().map(bare).collect();
    let new: Vec<String> = shapes().into_iter().filter(|shape| !known.contains(shape)).collect();
    let all: String = new.iter().map(|line| format!("{line}\n")).collect();
    assert!(
        new.is_empty(),
        "older programs can't read these: raise READER (src/fact/reader.rs), give each a row in SHAPES, and write them \
         into tests/shapes/{}.txt, with \" never stored\" behind a word that no fact holds:\n{all}",
        READER + 1
    );
}

/// A later shape is found in a fact that has it, so that the ledger hears of it.
#[test]
fn every_later_shape_raises_the_oldest_reader() {
    let files = golden();
    for (reader, lines) in recorded().into_iter().filter(|(reader, _)| *reader > 1) {
        for line in lines.iter().filter(|line| !line.starts_with("word ")) {
            let kind = line.split(' ').next().unwrap();
            assert!(
                reader_of(kind, &files[kind]) >= reader,
                "{line} came with reader {reader}, and SHAPES has no such row"
            );
        }
    }
}

#[test]
fn a_reader_comes_with_a_version_of_its_own() {
    let number = |version: &&str| -> Vec<u32> { version.split('.').map(|part| part.parse().unwrap()).collect() };
    let versions: Vec<Vec<u32>> = READERS.iter().map(number).collect();
    assert!(versions.is_sorted_by(|one, next| one < next), "two readers of one version can't be told apart");
    assert!(*versions.last().unwrap() <= number(&env!("CARGO_PKG_VERSION")), "the program is older than its reader");
}

#[test]
fn a_shape_is_found_wherever_it_is() {
    let shapes = [
        Shape { reader: 2, kind: "sky.clouded", part: Part::Kind },
        Shape { reader: 3, kind: "message.queued", part: Part::Field("origin.phone") },
        Shape { reader: 4, kind: "message.queued", part: Part::Word("status", "mislaid") },
        Shape { reader: 5, kind: "message.queued", part: Part::Field("parts[].voice") },
    ];
    let reader = |kind: &str, payload: Value| reader_among(&shapes, kind, payload.to_string().as_bytes());
    assert_eq!(reader("sky.clouded", json!({})), 2);
    assert_eq!(reader("sky.cleared", json!({ "status": "mislaid" })), 1);
    assert_eq!(reader("message.queued", json!({ "origin": { "id": 1 }, "status": "queued" })), 1);
    assert_eq!(reader("message.queued", json!({ "origin": { "phone": null } })), 3);
    assert_eq!(reader("message.queued", json!({ "origin": { "phone": 1 }, "status": "mislaid" })), 4);
    assert_eq!(reader("message.queued", json!({ "parts": [{ "text": 1 }, { "voice": 1 }] })), 5);
    assert_eq!(reader_among(&shapes, "message.queued", b""), 1, "a payload that was redacted");
    let packed = abide_kernel::pack::pack(br#"{"status":"mislaid"}"#).unwrap();
    assert_eq!(reader_among(&shapes, "message.queued", &packed), 4);
}
