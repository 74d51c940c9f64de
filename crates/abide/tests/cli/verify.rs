//! `abide ledger stats` and `abide ledger verify`.

use std::fs;

use abide_ledger::{Ledger, Options, StreamId};
use serde_json::json;

use crate::home::{id, seeded};
use crate::place::{Place, document};

/// Changes one byte of every copy of this text in the database. Pages keep remains of what was moved, so there are
/// more copies than facts.
fn damage(place: &Place, text: &str) {
    let path = place.home().join("ledger.db");
    let mut bytes = fs::read(&path).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text.as_bytes())).collect();
    assert!(!places.is_empty(), "{text:?} is nowhere");
    for at in places {
        bytes[at] ^= 1;
    }
    fs::write(path, bytes).unwrap();
}

/// The first fact of an agent with this text in it.
fn seq_of(place: &Place, agent: &str, text: &str) -> u64 {
    let ledger = Ledger::open(&place.home(), Options::read_only().by(abide_engine::PROGRAM)).unwrap();
    let facts = ledger.read(&StreamId::agent(&id(agent)), 0, usize::MAX).unwrap();
    let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
    facts.iter().find(|fact| fact.payload.bytes().is_some_and(|bytes| has(&bytes))).unwrap().seq
}

#[test]
fn an_intact_ledger() {
    let place = Place::seeded();
    let facts = seeded().facts_for_people();
    let said = place.says(&["ledger", "verify"]);
    assert_eq!(said, format!("checked {facts} facts of 8 streams\neverything is intact\n"));
    let report = place.json(&["ledger", "verify"]);
    assert_eq!((&report["intact"], &report["damage"]), (&json!(true), &json!([])));
    assert_eq!(
        (&report["facts"], &report["streams"], &report["blobs"]),
        (&json!(seeded().facts), &json!(8), &json!(1))
    );
}

#[test]
fn damage_is_named_and_stays_where_it_is() {
    let place = Place::seeded();
    let seq = seq_of(&place, "idle", "Good morning.");
    damage(&place, "Good morning.");
    let ran = place.run(&["ledger", "verify"]);
    assert_eq!(ran.code, Some(1));
    let damaged: Vec<&str> = ran.out.lines().filter_map(|line| line.strip_prefix("damaged: ")).collect();
    let fact = format!("agent/idle fact {seq}");
    let what = format!("{fact}: its hash does not follow from its content and the fact before it");
    assert!(damaged.contains(&what.as_str()), "{}", ran.out);
    assert!(damaged.iter().all(|line| line.starts_with("agent/idle ")), "{}", ran.out);
    assert!(!ran.out.contains("intact"), "{}", ran.out);
    let ran = place.run(&["ledger", "verify", "--json"]);
    assert_eq!(ran.code, Some(1));
    let report = document(&ran.out);
    assert_eq!((&report["intact"], &report["damage"]), (&json!(false), &json!(damaged)));
    let places = if damaged.len() == 1 { "1 place".to_owned() } else { format!("{} places", damaged.len()) };
    let message = format!("the ledger is damaged in {places}; what is not named can still be read and exported");
    assert_eq!(document(&ran.err), json!({ "error": message }));

    let error = place.refused(1, &["ledger", "export", "idle", "idle"]);
    assert!(error.contains(&fact) && error.contains("abide ledger verify"), "{error}");
    assert!(!place.path("idle").exists());
    let error = place.refused(1, &["ledger", "export", "--full", "file"]);
    assert!(error.contains(&fact), "{error}");
    assert!(!place.path("file").exists());
    let error = place.refused(1, &["ledger", "fork", "idle", "--at", &seq.to_string(), "--as", "other"]);
    assert!(error.contains(&fact), "{error}");
    place.says(&["ledger", "export", "builder", "builder"]);
    place.says(&["ledger", "replay", "builder"]);
}

#[test]
fn a_blob_that_is_gone_is_named() {
    let place = Place::seeded();
    let seq = seq_of(&place, "builder", "source source");
    fs::remove_dir_all(place.home().join("blobs")).unwrap();
    fs::create_dir(place.home().join("blobs")).unwrap();
    let ran = place.run(&["ledger", "verify"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(&format!("damaged: agent/builder fact {seq}: its payload, blob ")), "{}", ran.out);
}

#[test]
fn a_database_that_is_none_is_refused() {
    let place = Place::seeded();
    place.write("home/ledger.db", "Dear diary,\nthis is not a database, and longer than its first page would be.");
    for command in ["stats", "verify", "compact"] {
        assert_eq!(
            place.refused(1, &["ledger", command]),
            "home/ledger.db is no ledger of ours, or its first page is damaged (file is not a database); \
             where there is an export of it, `abide --home NEW ledger import FILE` makes a new home of that"
        );
    }
}

#[test]
fn how_much_there_is() {
    let place = Place::seeded();
    let stats = place.json(&["ledger", "stats"]);
    assert_eq!((&stats["streams"], &stats["facts"], &stats["blobs"]), (&json!(8), &json!(1196), &json!(1)));
    assert_eq!(stats["bytes"], stats["database_bytes"].as_u64().unwrap() + stats["blob_bytes"].as_u64().unwrap());
    let said = place.says(&["ledger", "stats"]);
    let names: Vec<&str> = said.lines().filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(names, ["streams", "facts", "snapshots", "database", "segments", "blobs", "on disk"]);
    assert!(said.starts_with(&format!("streams    8\nfacts      {}\n", seeded().facts_for_people())), "{said}");
}

#[test]
fn a_database_that_lost_its_end_is_said_to_be_short() {
    let place = Place::seeded();
    let path = place.home().join("ledger.db");
    let whole = fs::read(&path).unwrap();
    let short = &whole[..whole.len() / 2];
    fs::write(&path, short).unwrap();
    for command in ["stats", "verify", "compact"] {
        assert_eq!(
            place.refused(1, &["ledger", command]),
            format!(
                "home/ledger.db has {} bytes, and says that it has {}: its end is missing; where there is an export of \
                 it, `abide --home NEW ledger import FILE` makes a new home of that",
                short.len(),
                whole.len()
            )
        );
    }
    assert_eq!(fs::read(&path).unwrap(), short);
}

/// It held everything once: to begin anew would be to say that there never was anything.
#[test]
fn a_database_without_content_is_refused_by_readers_and_writers() {
    let place = Place::seeded();
    place.says(&["ledger", "export", "--full", "file"]);
    let path = place.write("home/ledger.db", "");
    for words in
        [&["ledger", "stats"][..], &["ledger", "verify"], &["ledger", "compact"], &["ledger", "import", "file"]]
    {
        let error = place.refused(1, words);
        assert!(error.starts_with("home/ledger.db is empty, which no ledger ever is: "), "{error}");
        assert!(error.contains("ledger import FILE"), "{error}");
    }
    assert_eq!(fs::read(path).unwrap(), b"");
}

#[test]
fn looking_leaves_nothing_behind() {
    let place = Place::seeded();
    let names = || {
        let names = fs::read_dir(place.home()).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = (names(), fs::read(place.home().join("ledger.db")).unwrap());
    for words in [&["ledger", "stats"][..], &["ledger", "verify"], &["ledger", "export", "idle", "idle"]] {
        place.says(words);
        assert_eq!((names(), fs::read(place.home().join("ledger.db")).unwrap()), before, "{words:?}");
    }
}
