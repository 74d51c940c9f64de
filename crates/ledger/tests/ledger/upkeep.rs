//! Archive, verify, rows made again, payloads cut out.

use abide_ledger::{
    Append, ArchiveBounds, Commit, Cursor, Ledger, NewFact, Options, ReadError, Recorded, RedactError, RowOp, Snapshot,
    StreamId, Wake,
};
use serde_json::json;

use crate::world::{
    append, append_with_rows, archive_before, assert_intact, at, commit, export, fork_with_rows, on_every_store, said,
    say, sqlite, stream, verify,
};

/// Three streams, one a fork, with rows, a wake, a snapshot, a large payload; times 10, 20, 30 …
fn fill(ledger: &Ledger) {
    let large = "y".repeat(10_000);
    for i in 0..100u64 {
        let (text, time) = (format!("a{i}"), at(i64::try_from(i).unwrap() * 10));
        let mut first = append_with_rows("a", i, &[&text]);
        first.at = time;
        first.facts[0].rows[1].patch = json!({ "seq": i + 1, "at": time });
        let mut appends = vec![first];
        if i % 10 == 0 {
            let mut second = append_with_rows("b", i / 10, &[if i == 50 { &large } else { "b" }]);
            second.at = time;
            second.facts[0].rows[1].patch = json!({ "seq": i / 10 + 1, "at": time });
            appends.push(second);
        }
        commit(ledger, appends).unwrap();
    }
    commit(ledger, vec![fork_with_rows(ledger, "c", "a", 40, &["c41"])]).unwrap();
    let wakes = vec![(stream("b"), Some(Wake { due: Some(at(7)), why: "timer".into() }))];
    let snapshots = vec![Snapshot { stream: stream("a"), seq: 90, fingerprint: "f".into(), state: vec![1, 2, 3] }];
    ledger.commit(Commit { wakes, snapshots, ..Commit::default() }).wait().unwrap();
}

/// Everything a reader can see.
fn seen(ledger: &Ledger) -> String {
    let mut text = String::new();
    for (stream, head) in ledger.streams(None, 99).unwrap() {
        text += &format!("{stream} {head:?}\n{:?}\n", ledger.read(&stream, 0, usize::MAX).unwrap());
        text += &format!("{:?}\n", ledger.load(&stream, "f").unwrap());
        text += &format!("{:?}\n", ledger.rows(&stream, "said", None, 999).unwrap());
        for (after, limit) in [(0, 1), (39, 3), (63, 2), (64, 64)] {
            text += &format!("{:?}\n", ledger.read(&stream, after, limit).unwrap());
        }
    }
    text += &format!("{:?}\n", ledger.follow(Cursor::START).next_batch(usize::MAX).unwrap());
    text + &format!("{:?}", ledger.wakes(None, 99).unwrap())
}

#[test]
fn every_store_shows_the_same() {
    let mut shown = std::cell::RefCell::new(Vec::new());
    on_every_store(|store| {
        fill(&store.ledger);
        assert_intact(&store.ledger);
        shown.borrow_mut().push((seen(&store.ledger), export(&store.ledger)));
    });
    let shown = shown.get_mut();
    assert!(shown.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn archived_facts_are_ledger_like_all_others() {
    let store = sqlite();
    fill(&store.ledger);
    let before = (seen(&store.ledger), export(&store.ledger));
    let mut moved = 0;
    for limit in [0, 1, 300, 600, 600, 995] {
        let report = archive_before(&store.ledger, limit);
        moved += report.facts;
        assert_intact(&store.ledger);
        assert_eq!(seen(&store.ledger), before.0, "archived before {limit}");
        assert_eq!(export(&store.ledger), before.1, "archived before {limit}");
    }
    assert_eq!(moved, 110);
    // New facts and forks stand on archived ones.
    say(&store.ledger, "b", 10, &["after"]);
    commit(&store.ledger, vec![fork_with_rows(&store.ledger, "d", "c", 20, &["d21"])]).unwrap();
    assert_eq!(said(&store.ledger, "d")[19..], ["a19", "d21"]);
    // By size: the newest fact alone is over nothing.
    let policy = ArchiveBounds { max_bytes: Some(0), ..ArchiveBounds::default() };
    store.ledger.archive(policy, &mut |_| {}).unwrap();
    assert_eq!(said(&store.ledger, "b")[10], "after");
    assert_eq!(said(&store.ledger, "d")[19..], ["a19", "d21"]);
    let stats = store.ledger.stats().unwrap();
    assert_eq!((stats.streams, stats.facts, stats.segments, stats.blobs), (4, 113, 5, 1));
    assert_eq!(store.ledger.archive(ArchiveBounds::default(), &mut |_| {}).unwrap().facts, 0);
    // And after coming back.
    let home = store.home.unwrap();
    drop(store.ledger);
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    assert_eq!(ledger.head(&stream("a")).unwrap().unwrap().seq, 100);
    say(&ledger, "a", 100, &["again"]);
    assert_eq!(said(&ledger, "a").len(), 101);
}

#[test]
fn a_missing_segment_is_named_and_the_rest_readable() {
    let store = sqlite();
    fill(&store.ledger);
    archive_before(&store.ledger, 300);
    say(&store.ledger, "late", 0, &["fine"]);
    let home = store.home.unwrap();
    drop(store.ledger);
    let segment = std::fs::read_dir(home.path().join("archive")).unwrap().next().unwrap().unwrap();
    std::fs::remove_file(segment.path()).unwrap();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    assert!(matches!(ledger.read(&stream("a"), 0, 10), Err(ReadError::Damaged(_))));
    assert_eq!(ledger.read(&stream("a"), 50, 10).unwrap().len(), 10);
    assert_eq!(said(&ledger, "late"), ["fine"]);
    let report = verify(&ledger);
    let name = segment.file_name().to_string_lossy().into_owned();
    let named = report.damage.iter().any(|damage| damage.to_string().contains(&name));
    assert!(named, "{:#?}", report.damage);
}

#[test]
fn a_flipped_byte_in_a_segment_or_blob_is_named() {
    let store = sqlite();
    fill(&store.ledger);
    archive_before(&store.ledger, 300);
    drop(store.ledger);
    let home = store.home.unwrap();
    for folder in ["archive", "blobs"] {
        let mut file = home.path().join(folder);
        while file.is_dir() {
            file = std::fs::read_dir(&file).unwrap().next().unwrap().unwrap().path();
        }
        let whole = std::fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by(37) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&file, &flipped).unwrap();
            let ledger = Ledger::open(home.path(), Options::read_only()).unwrap();
            let report = verify(&ledger);
            // The magic in front of a segment holds nothing and is not read.
            assert!(!report.is_intact() || (folder == "archive" && at < 8), "{folder} byte {at}");
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert_intact(&Ledger::open(home.path(), Options::read_only()).unwrap());
}

#[test]
fn rows_that_differ_are_named_and_made_again() {
    on_every_store(|store| {
        fill(&store.ledger);
        // Without its rows, what `rows_of` makes of this fact is missing.
        say(&store.ledger, "a", 100, &["no rows"]);
        let report = verify(&store.ledger);
        let named: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
        assert_eq!(named.len(), 2, "{named:#?}");
        assert!(named.iter().any(|damage| damage.starts_with("agent/a row said/0101: ")), "{named:#?}");
        store.ledger.rebuild_rows(&crate::world::rows_of, &mut |_| {}).unwrap();
        assert_intact(&store.ledger);
        assert_eq!(
            store.ledger.rows(&stream("a"), "said", Some("0100"), 1).unwrap()[0].value,
            json!({ "text": "no rows" })
        );
        assert_eq!(
            store.ledger.rows(&stream("c"), "said", Some("0039"), 2).unwrap()[1].value,
            json!({ "text": "c41" })
        );
    });
}

#[test]
fn a_payload_is_cut_out_and_the_chain_holds() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        fill(ledger);
        archive_before(ledger, 300);
        let head = ledger.head(&stream("a")).unwrap();
        // In a segment and shared with a fork; in the table; a blob.
        for (name, seq) in [("c", 10), ("a", 90), ("b", 6)] {
            let before = ledger.clone().redactions();
            ledger.redact(&stream(name), seq).unwrap();
            assert_ne!(ledger.clone().redactions(), before, "whoever keeps what it read must hear of it");
            ledger.redact(&stream(name), seq).unwrap();
        }
        ledger.rebuild_rows(&crate::world::rows_of, &mut |_| {}).unwrap();
        let report = verify(ledger);
        assert!(report.is_intact(), "{:#?}", report.damage);
        let mut redacted = report.redacted;
        redacted.sort();
        assert_eq!(redacted, [(stream("a"), 10), (stream("a"), 90), (stream("b"), 6)]);
        assert_eq!(ledger.head(&stream("a")).unwrap(), head);
        assert_eq!(said(ledger, "a")[8..11], ["a8", "(redacted)", "a10"]);
        assert_eq!(said(ledger, "c")[9], "(redacted)");
        assert_eq!(ledger.load(&stream("a"), "f").unwrap().unwrap().snapshot, None);
        assert!(ledger.blob_ids().unwrap().is_empty());
        assert!(!export(ledger).contains("\\\"a89\\\""));
        assert!(matches!(ledger.redact(&stream("a"), 101), Err(RedactError::NoFact { .. })));
        assert!(matches!(ledger.redact(&stream("x"), 1), Err(RedactError::NoFact { .. })));
    });
}

#[test]
fn nothing_of_a_redacted_payload_stays_in_the_files() {
    let store = sqlite();
    let secret = "hunter2-".repeat(20);
    for i in 0..20 {
        commit(&store.ledger, vec![append("a", i, &[if i == 7 { &secret } else { "x" }])]).unwrap();
    }
    let home = store.home.as_ref().unwrap().path();
    let holds = || {
        let files = ["ledger.db", "ledger.db-wal"].map(|file| std::fs::read(home.join(file)).unwrap_or_default());
        files.iter().any(|bytes| bytes.windows(8).any(|window| window == b"hunter2-"))
    };
    assert!(holds());
    store.ledger.redact(&stream("a"), 8).unwrap();
    assert!(!holds());
    assert_eq!(verify(&store.ledger).redacted.len(), 1);
}

#[test]
fn nothing_of_a_redacted_payload_stays_after_pages_have_split_and_rows_are_made_again() {
    let store = sqlite();
    let text = |i: u64| if i == 200 { "hunter2-".repeat(30) } else { format!("{i:08}").repeat(30) };
    let rows_of = |i: u64| {
        vec![RowOp {
            plane: "messages".into(),
            id: format!("m{:04}", i * 7919 % 400),
            patch: json!({ "text": text(i) }),
        }]
    };
    for i in 0..400 {
        let payload = serde_json::to_vec(&text(i)).unwrap();
        let fact = NewFact { kind: "message.queued".into(), payload, rows: rows_of(i) };
        let append = Append { stream: stream("a"), expected: i, at: at(1), facts: vec![fact], fork_of: None };
        store.ledger.commit(Commit { appends: vec![append], ..Commit::default() }).wait().unwrap();
    }
    store.ledger.redact(&stream("a"), 201).unwrap();
    let again = |_: &StreamId, recorded: &Recorded| match recorded.payload.bytes() {
        Some(_) if recorded.seq > 390 => rows_of(recorded.seq - 1),
        Some(_) | None => Vec::new(),
    };
    store.ledger.rebuild_rows(&again, &mut |_| ()).unwrap();
    drop(store.ledger);
    let home = store.home.as_ref().unwrap().path();
    for file in ["ledger.db", "ledger.db-wal"] {
        let bytes = std::fs::read(home.join(file)).unwrap_or_default();
        assert!(!bytes.windows(8).any(|window| window == b"hunter2-"), "{file} still holds it");
    }
}
