//! Packed bytes: what goes in comes back, a value reads the same from both, and the bytes stay what they were.

use abide_kernel::Fact;
use abide_kernel::pack::{from_stored, is_packed, pack, read, to_stored, unpack};
use proptest::prelude::*;
use serde_json::Value;

use crate::golden::golden;

/// A JSON text as facts have it: no blanks.
fn compact(json: &[u8]) -> Vec<u8> {
    serde_json::to_vec(&serde_json::from_slice::<Value>(json).unwrap()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(json: &str, packed: &str) {
    let bytes = pack(json.as_bytes()).unwrap_or_else(|| panic!("{json} has no packed form"));
    assert_eq!(hex(&bytes), packed.replace(' ', ""), "{json}");
    assert_eq!(unpack(&bytes).unwrap(), json.as_bytes(), "{json}");
    assert_eq!(read::<Value>(&bytes).unwrap(), serde_json::from_str::<Value>(json).unwrap(), "{json}");
}

#[test]
fn each_tag_is_written_as_it_was() {
    check("null", "01 01");
    check("[false,true]", "01 05 02 03 00");
    check("{}", "01 04 00");
    check(r#""Hi""#, "01 06 02 4869");
    check(r#""""#, "01 06 00");
    check("[0,300,18446744073709551615]", "01 05 07 00 07 ac02 07 ffffffffffffffffff01 00");
    check("[-1,1.5e3]", "01 05 08 02 2d31 08 05 312e356533 00");
    check(r#""2026-01-31T12:00:00.000Z""#, "01 09 80f8e4be8267");
    check(r#""1969-12-31T23:59:59.999Z""#, "01 09 01");
    check(r#""msg_019b76da-a800-7000-8000-0000000000ff""#, "01 10 019b76daa80070008000 0000000000ff");
    check(r#""call_019b76da-a800-7000-8000-000000000001""#, "01 1a 019b76daa80070008000 000000000001");
    check(r#"{"kind":"abort"}"#, "01 04 20 0a0a 00");
    check(r#""a \"quoted\" \\ line\n\u0001""#, "01 06 13 61202271756f74656422205c206c696e650a01");
}

/// The two ways in which JSON has a word of an enum.
#[test]
fn a_variant_without_content_reads_in_both_spellings() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    enum Answer {
        Yes,
        No,
    }
    let packed = pack(br#"[{"Yes":null},"No",{"No":null},"Yes"]"#).unwrap();
    assert_eq!(read::<Vec<Answer>>(&packed).unwrap(), [Answer::Yes, Answer::No, Answer::No, Answer::Yes]);
}

/// The list of version 1, as it was when the first ledger was packed with it.
#[test]
fn no_word_ever_moves() {
    let list = compact(include_bytes!("../packed/words-1.json"));
    let near = (0x20..=0xff).map(|tag| vec![tag]);
    let far = (0..=0xff).map(|number| vec![0x0a, number]);
    let count = serde_json::from_slice::<Vec<String>>(&list).unwrap().len();
    let tags: Vec<u8> = near.chain(far).take(count).flatten().collect();
    assert_eq!(pack(&list).unwrap(), [&[1, 5][..], &tags, &[0]].concat());
}

#[test]
fn every_golden_fact_comes_back_and_reads_the_same() {
    let (mut before, mut after) = (0, 0);
    for (kind, json) in golden() {
        let json = compact(&json);
        let packed = pack(&json).unwrap_or_else(|| panic!("{kind} has no packed form"));
        assert_eq!(unpack(&packed).unwrap(), json, "{kind}");
        assert_eq!(Fact::decode(&kind, &packed), Fact::decode(&kind, &json), "{kind}");
        (before, after) = (before + json.len(), after + packed.len());
    }
    assert!(after * 2 < before, "{after} bytes are more than half of {before}");
}

#[test]
fn an_unknown_field_is_an_error_there_too() {
    for (kind, json) in golden() {
        let mut wrong = serde_json::from_slice::<Value>(&json).unwrap();
        wrong["surprise"] = Value::from(1);
        let packed = pack(wrong.to_string().as_bytes()).unwrap();
        assert!(kind == "runtime_error" || Fact::decode(&kind, &packed).is_err(), "{kind}");
    }
}

/// Each is JSON or nearly so, and would come back as another text.
#[test]
fn what_would_not_come_back_has_no_packed_form() {
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    for text in [
        "",
        " 1",
        "1 ",
        "{ }",
        "[1, 2]",
        "007",
        "{\"a\":1,}",
        "[1",
        "\"a",
        "\"\\",
        "\"\\u0041\"",
        "\"\\/\"",
        "tru",
        "nul",
        "1 2",
        "\u{1}\u{1}",
        deep.as_str(),
    ] {
        assert_eq!(pack(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(pack(&[b'"', 0xff, b'"']), None);
    // Nearly an id, nearly a time: they are text, and come back.
    for text in [
        "\"msg_019B76DA-a800-7000-8000-000000000001\"",
        "\"mug_019b76da-a800-7000-8000-000000000001\"",
        "\"msg_019b76daaa800-7000-8000-000000000001\"",
        "\"2026-02-30T12:00:00.000Z\"",
        "\"2026-01-31T12:00:60.000Z\"",
        "\"2026-01-31T12:00:00.000z\"",
        "-0",
        "1e400",
        "18446744073709551616",
    ] {
        assert_eq!(unpack(&pack(text.as_bytes()).unwrap()).unwrap(), text.as_bytes(), "{text}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("kind".to_owned()),
        Just("message_id".to_owned()),
        Just("nothing_pending".to_owned()),
        Just("msg_019b76da-a800-7000-8000-000000000001".to_owned()),
        any::<u128>().prop_map(|bits| {
            let digits = format!("{bits:032x}");
            let (a, b, c, d, e) = (&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
            format!("exec_{a}-{b}-{c}-{d}-{e}")
        }),
        (-62_167_219_200_000i64..253_402_300_799_999).prop_map(|ms| abide_kernel::time::Time::from_ms(ms).to_string()),
        any::<String>(),
        "[a-z_]{1,12}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |number| serde_json::Number::from_f64(number).map(Value::Number)),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_comes_back_and_reads_the_same(value in any_json()) {
        let json = value.to_string();
        let packed = pack(json.as_bytes()).unwrap();
        prop_assert_eq!(unpack(&packed).unwrap(), json.as_bytes());
        prop_assert_eq!(read::<Value>(&packed).unwrap(), serde_json::from_str::<Value>(&json).unwrap());
    }

    #[test]
    fn any_bytes_come_back_from_what_is_stored(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        text in r#"[\[\]{}",:\\0-9a-e. ]{0,24}"#,
        first in 0u8..3,
    ) {
        let begun = [&[first][..], &bytes].concat();
        for bytes in [bytes, text.into_bytes(), begun] {
            let stored = to_stored(bytes.clone(), usize::MAX);
            prop_assert_eq!(&from_stored(&stored).unwrap()[..], &bytes[..]);
            prop_assert_eq!(is_packed(&stored), pack(&bytes).is_some());
        }
    }

    /// For any input it ends, and says so.
    #[test]
    fn bytes_that_nobody_packed_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        bytes.insert(0, 1);
        let _ = unpack(&bytes);
        let _ = read::<Value>(&bytes);
        let _ = from_stored(&bytes);
        let _ = Fact::decode("message.queued", &bytes);
    }
}

/// Lists and objects count while they are open, so there may be any number of them side by side.
#[test]
fn only_what_is_open_counts_as_depth() {
    for inner in ["[]", "{}", r#"{"a":[1]}"#] {
        let json = format!("[{}]", vec![inner; 300].join(","));
        let packed = pack(json.as_bytes()).unwrap_or_else(|| panic!("{inner} has no packed form"));
        assert_eq!(unpack(&packed).unwrap(), json.as_bytes(), "{inner}");
        assert_eq!(read::<Value>(&packed).unwrap(), serde_json::from_str::<Value>(&json).unwrap(), "{inner}");
    }
}

#[test]
fn a_string_of_nothing_but_escapes_comes_back() {
    for text in ["\"", "\"\"", "\\", "\\\\", "\u{1}", "\u{1f}\n"] {
        let json = Value::from(text).to_string();
        assert_eq!(unpack(&pack(json.as_bytes()).unwrap()).unwrap(), json.as_bytes(), "{json}");
    }
    assert_eq!(pack(b"\"\x01\""), None, "a control character stands behind a backslash");
    assert_eq!(pack(b"\" \x1f\""), None, "a control character stands behind a backslash");
}

#[test]
fn bytes_over_the_limit_are_stored_as_they_are() {
    let json = b"[null,null]".to_vec();
    assert_eq!(
        &from_stored(&to_stored(b"+5".to_vec(), 99)).unwrap()[..],
        b"+5",
        "it is no JSON, and comes back all the same"
    );
    assert!(is_packed(&to_stored(json.clone(), json.len())));
    assert_eq!(to_stored(json.clone(), json.len() - 1), json);
}
