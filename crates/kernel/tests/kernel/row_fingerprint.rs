//! The fingerprint of `rows_of` follows what it makes of a fixed set of facts: the golden files, each also without each of
//! its members and with every other word where it has one.

use abide_kernel::Fact;
use abide_kernel::read_rows::{FINGERPRINT, rows_of};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::WORDS;
use serde_json::{Value, json};

use crate::golden::golden;

/// The value, and every value that differs from it in one place.
fn variants(value: &Value) -> Vec<Value> {
    let mut made = vec![value.clone()];
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let mut without = members.clone();
                without.remove(name);
                made.push(Value::Object(without));
                for other in variants(member).into_iter().skip(1) {
                    let mut changed = members.clone();
                    changed.insert(name.clone(), other);
                    made.push(Value::Object(changed));
                }
            }
        }
        Value::Array(elements) => {
            for (place, element) in elements.iter().enumerate() {
                for other in variants(element).into_iter().skip(1) {
                    let mut changed = elements.clone();
                    changed[place] = other;
                    made.push(Value::Array(changed));
                }
            }
        }
        Value::String(text) => {
            let sets = WORDS.iter().filter(|(_, words)| words.contains(&text.as_str()));
            let others = sets.flat_map(|(_, words)| *words).filter(|word| *word != text);
            made.extend(others.map(|word| json!(word)));
            // Rows show less than all of a long text.
            made.push(json!("long ".repeat(4_000)));
        }
        Value::Bool(is) => made.push(json!(!is)),
        Value::Null | Value::Number(_) => {}
    }
    made
}

#[test]
fn the_fingerprint_is_that_of_the_rows_that_are_made() {
    let mut hasher = blake3::Hasher::new();
    let mut facts = 0;
    for (kind, bytes) in golden() {
        for variant in variants(&serde_json::from_slice(&bytes).unwrap()) {
            let Ok(fact) = Fact::decode(&kind, variant.to_string().as_bytes()) else { continue };
            facts += 1;
            for row in rows_of(7, Time::from_ms(1_700_000_000_000), &fact) {
                hasher.update(format!("{kind} {} {} {}\n", row.plane, row.id, row.patch).as_bytes());
            }
        }
    }
    assert!(facts > 500, "only {facts} facts");
    let made = format!("rows-{}", &hasher.finalize().to_hex()[..16]);
    assert_eq!(made, FINGERPRINT, "rows_of makes other rows than before: set rows::FINGERPRINT to the left one");
}
