//! The contract of every store.

use abide_kernel::time::Time;
use abide_ledger::{
    Append, Bounds, Commit, CommitError, Cursor, ForkPoint, Hash, ReadError, Row, RowOp, Snapshot, StreamId, Wake,
};
use serde_json::json;

use crate::world::{append, at, commit, fact, on_every_store, said, say, stream};

#[test]
fn what_is_committed_is_read_back_in_order() {
    on_every_store(|store| {
        let committed = commit(&store.ledger, vec![append("a", 0, &["one", "two"])]).unwrap();
        assert_eq!(committed.heads[0].seq, 2);
        say(&store.ledger, "a", 2, &["three"]);
        assert_eq!(said(&store.ledger, "a"), ["one", "two", "three"]);
        let page = store.ledger.read(&stream("a"), 1, 1).unwrap();
        assert_eq!((page.len(), page[0].seq, &*page[0].kind, page[0].at), (1, 2, "Said", at(1000)));
        assert_eq!(store.ledger.head(&stream("a")).unwrap().unwrap().seq, 3);
        assert_eq!(store.ledger.head(&stream("b")).unwrap(), None);
        assert!(store.ledger.read(&stream("b"), 0, 10).unwrap().is_empty());
        assert!(store.ledger.read(&stream("a"), 3, 10).unwrap().is_empty());
    });
}

#[test]
fn the_chain_covers_every_field() {
    on_every_store(|store| {
        say(&store.ledger, "a", 0, &["one", "two"]);
        let facts = store.ledger.read(&stream("a"), 0, 9).unwrap();
        let first = Hash::NONE.then(1, at(1000), "Said", &facts[0].payload.digest());
        assert_eq!(facts[0].hash, first);
        assert_eq!(facts[1].hash, first.then(2, at(1000), "Said", &facts[1].payload.digest()));
        assert_eq!(store.ledger.head(&stream("a")).unwrap().unwrap().hash, facts[1].hash);
    });
}

#[test]
fn a_commit_over_streams_is_refused_whole_when_one_is_elsewhere() {
    on_every_store(|store| {
        say(&store.ledger, "a", 0, &["one"]);
        let refused = commit(&store.ledger, vec![append("b", 0, &["x"]), append("a", 0, &["y"])]).unwrap_err();
        assert!(matches!(&refused, CommitError::Conflict { stream: s, expected: 0, actual: 1 } if *s == stream("a")));
        assert!(refused.to_string().contains("agent/a is at 1, not at 0"), "{refused}");
        assert_eq!(store.ledger.head(&stream("b")).unwrap(), None);
        assert_eq!(said(&store.ledger, "a"), ["one"]);
        assert!(matches!(
            commit(&store.ledger, vec![append("c", 4, &["x"])]),
            Err(CommitError::Conflict { actual: 0, .. })
        ));
        commit(&store.ledger, vec![append("b", 0, &["x"]), append("a", 1, &["y"])]).unwrap();
        assert_eq!(said(&store.ledger, "b"), ["x"]);
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        say(ledger, "a", 0, &["one"]);
        let malformed = |appends| assert!(matches!(commit(ledger, appends), Err(CommitError::Malformed { .. })));
        malformed(vec![append("a", 1, &[])]);
        malformed(vec![append("a", 1, &["x"]), append("a", 2, &["y"])]);
        let fork_of = Some(ForkPoint::new(stream("a"), 1));
        malformed(vec![Append { fork_of, ..append("b", 1, &["x"]) }]);
        for seq in [0, 2] {
            let fork_of = Some(ForkPoint::new(stream("a"), seq));
            let refused = commit(ledger, vec![Append { fork_of, ..append("b", 0, &["x"]) }]);
            assert!(matches!(refused, Err(CommitError::NoForkPoint { last: 1, .. })), "{refused:?}");
        }
        let wake = Wake { due: None, why: String::new() };
        let refused = ledger.commit(Commit { wakes: vec![(stream("b"), Some(wake))], ..Commit::default() }).wait();
        assert!(matches!(refused, Err(CommitError::NoStream { .. })));
        let snapshot = |name, seq| Snapshot { stream: stream(name), seq, fingerprint: "f".into(), state: vec![] };
        for (name, seq) in [("a", 0), ("a", 2), ("b", 1)] {
            let commit = Commit { snapshots: vec![snapshot(name, seq)], ..Commit::default() };
            assert!(ledger.commit(commit).wait().is_err());
        }
        assert_eq!(said(ledger, "a"), ["one"]);
    });
}

#[test]
fn long_histories_are_found_from_any_place() {
    on_every_store(|store| {
        // Two streams side by side, one dense and one thin: both ways of finding history are taken.
        for i in 0..200u64 {
            let texts: Vec<String> = (0..10).map(|j| format!("{}", i * 10 + j)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            commit(&store.ledger, vec![append("dense", i * 10, &texts), append("thin", i, &[texts[0]])]).unwrap();
        }
        for (name, last) in [("dense", 2000), ("thin", 200)] {
            let all = store.ledger.read(&stream(name), 0, usize::MAX).unwrap();
            assert_eq!(all.len(), last);
            for (after, limit) in [(0, 1), (1, 1), (62, 5), (63, 1), (64, 64), (127, 3), (150, 200)] {
                let to = last.min(after + limit);
                let page = store.ledger.read(&stream(name), after as u64, limit).unwrap();
                assert_eq!(page, all[after..to], "{name} after {after} limit {limit}");
            }
        }
    });
}

#[test]
fn streams_are_listed_by_name() {
    on_every_store(|store| {
        for name in ["c", "a", "b"] {
            say(&store.ledger, name, 0, &["x"]);
        }
        let page = store.ledger.streams(None, 2).unwrap();
        assert_eq!(page.iter().map(|(s, _)| s.as_str()).collect::<Vec<_>>(), ["agent/a", "agent/b"]);
        let rest = store.ledger.streams(Some(&page[1].0), 9).unwrap();
        assert_eq!(rest.len(), 1);
        assert_eq!((rest[0].0.agent_name(), rest[0].1.seq), (Some("c"), 1));
    });
}

#[test]
fn streams_of_every_kind_are_kept_and_agents_come_first() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        let run = StreamId::of_kind("run", "a").unwrap();
        let mut listed = fact("x");
        listed.rows.push(RowOp { plane: "said".into(), id: "run".to_owned(), patch: json!({ "text": "x" }) });
        let wake = Wake { due: None, why: "open".to_owned() };
        let wakes = vec![(run.clone(), Some(wake.clone()))];
        let appends =
            vec![Append { stream: run.clone(), expected: 0, at: at(1000), facts: vec![listed], fork_of: None }];
        ledger.commit(Commit { appends, wakes, ..Commit::default() }).wait().unwrap();
        say(ledger, "a", 0, &["y", "z"]);
        let streams = ledger.streams(None, 9).unwrap();
        assert_eq!(streams.iter().map(|(s, _)| s.as_str()).collect::<Vec<_>>(), ["agent/a", "run/a"]);
        assert_eq!(ledger.read(&run, 0, 9).unwrap().len(), 1);
        assert_eq!(ledger.wakes(None, 9).unwrap(), [(run.clone(), wake)]);
        assert_eq!(ledger.rows(&run, "said", None, 9).unwrap().len(), 1);
        assert!(ledger.row_ids("said").unwrap().is_empty(), "these are the rows of agents");
        assert_eq!((run.name_in("run"), run.agent_name(), run.name_in("ru")), (Some("a"), None, None));
    });
    for bad in ["", "a", "agent", "agent/", "agent/A", "Run/a", "run/", "run/A", "run/a/b", "ab/a", "key/a", "home/"] {
        assert!(bad.parse::<StreamId>().is_err(), "{bad}");
    }
}

#[test]
fn a_fork_shares_its_parents_history() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        say(ledger, "a", 0, &["1", "2", "3"]);
        let fork = |name: &str, parent: &str, seq, text| {
            let fork_of = Some(ForkPoint::new(stream(parent), seq));
            commit(ledger, vec![Append { fork_of, ..append(name, 0, &[text]) }]).unwrap().heads[0].seq
        };
        assert_eq!(fork("b", "a", 2, "b3"), 3);
        say(ledger, "a", 3, &["4"]);
        say(ledger, "b", 3, &["b4", "b5"]);
        // Of a fork: from its own part, from its last shared fact, and from before that.
        fork("c", "b", 4, "c5");
        fork("d", "b", 2, "d3");
        fork("e", "d", 1, "e2");
        assert_eq!(said(ledger, "a"), ["1", "2", "3", "4"]);
        assert_eq!(said(ledger, "b"), ["1", "2", "b3", "b4", "b5"]);
        assert_eq!(said(ledger, "c"), ["1", "2", "b3", "b4", "c5"]);
        assert_eq!(said(ledger, "d"), ["1", "2", "d3"]);
        assert_eq!(said(ledger, "e"), ["1", "e2"]);
        assert_eq!(ledger.read(&stream("c"), 1, 2).unwrap()[1], ledger.read(&stream("b"), 2, 1).unwrap()[0]);
        assert_eq!(ledger.origin(&stream("c")).unwrap(), Some((stream("b"), 4)));
        assert_eq!(ledger.origin(&stream("a")).unwrap(), None);
    });
}

#[test]
fn rows_are_patched_paged_and_removed() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        let put = |expected, id: &str, patch| {
            let mut append = append("a", expected, &["x"]);
            append.facts[0].rows = vec![RowOp { plane: "tasks".into(), id: id.to_owned(), patch }];
            commit(ledger, vec![append]).unwrap();
        };
        put(0, "t1", json!({ "status": "queued", "note": "n", "deep": { "a": 1, "b": null } }));
        put(1, "t2", json!({ "status": "queued" }));
        put(2, "t1", json!({ "status": "done", "note": null, "deep": { "c": [1, null] } }));
        put(3, "", json!("plain"));
        let rows = ledger.rows(&stream("a"), "tasks", None, 9).unwrap();
        assert_eq!(
            rows.iter().map(|row| (row.id.as_str(), row.seq)).collect::<Vec<_>>(),
            [("", 4), ("t1", 3), ("t2", 2)]
        );
        assert_eq!(rows[1].value, json!({ "status": "done", "deep": { "a": 1, "c": [1, null] } }));
        assert_eq!(ledger.rows(&stream("a"), "tasks", Some(""), 1).unwrap()[0].id, "t1");
        assert_eq!(ledger.rows(&stream("a"), "tasks", Some("t1"), 9).unwrap()[0].id, "t2");
        put(4, "t2", json!(null));
        assert_eq!(ledger.rows(&stream("a"), "tasks", Some("t1"), 9).unwrap(), []);
        assert_eq!(ledger.rows(&stream("a"), "other", None, 9).unwrap(), []);
        assert_eq!(ledger.rows(&stream("b"), "tasks", None, 9).unwrap(), []);
    });
}

#[test]
fn wakes_come_by_due_time() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        for name in ["a", "b", "c", "d"] {
            say(ledger, name, 0, &["x"]);
        }
        let wake = |name: &str, due: Option<i64>| {
            let wake = Wake { due: due.map(at), why: format!("{name} {due:?}") };
            let wakes = vec![(stream(name), Some(wake))];
            ledger.commit(Commit { wakes, ..Commit::default() }).wait().unwrap();
        };
        let names = |due_by: Option<Time>, limit| {
            let wakes = ledger.wakes(due_by, limit).unwrap();
            wakes.iter().map(|(stream, _)| stream.agent_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        wake("a", Some(50));
        wake("b", Some(10));
        wake("c", None);
        wake("d", Some(50));
        assert_eq!(names(None, 9), ["c", "b", "a", "d"]);
        assert_eq!(names(None, 2), ["c", "b"]);
        assert_eq!(names(Some(at(49)), 9), ["c", "b"]);
        assert_eq!(names(Some(at(50)), 9), ["c", "b", "a", "d"]);
        wake("c", Some(99));
        ledger.commit(Commit { wakes: vec![(stream("b"), None)], ..Commit::default() }).wait().unwrap();
        assert_eq!(names(None, 9), ["a", "d", "c"]);
        assert_eq!(ledger.wakes(None, 1).unwrap()[0].1, Wake { due: Some(at(50)), why: "a Some(50)".into() });
    });
}

#[test]
fn wakes_are_found_by_their_reason() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        for (name, due, why) in
            [("a", Some(50), "held"), ("b", Some(10), "due"), ("c", None, "held"), ("d", Some(9), "held")]
        {
            say(ledger, name, 0, &["x"]);
            let wakes = vec![(stream(name), Some(Wake { due: due.map(at), why: why.into() }))];
            ledger.commit(Commit { wakes, ..Commit::default() }).wait().unwrap();
        }
        assert_eq!(ledger.wakes_because("held").unwrap(), [stream("c"), stream("d"), stream("a")]);
        assert_eq!(ledger.wakes_because("hel").unwrap(), []);
        ledger.commit(Commit { wakes: vec![(stream("c"), None)], ..Commit::default() }).wait().unwrap();
        assert_eq!(ledger.wakes_because("held").unwrap(), [stream("d"), stream("a")]);
    });
}

/// The last fact counts, not the time that is waited for, nor facts before the last.
#[test]
fn waits_that_were_recorded_in_the_future_are_found() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        for (name, last_at, due) in [
            ("a", 900, Some(50)),
            ("b", 100, Some(5_000)),
            ("c", 900, None),
            ("d", 900, Some(5_000)),
            ("e", 300, Some(9)),
        ] {
            say(ledger, name, 0, &["x"]);
            let last = Append { at: at(last_at), ..append(name, 1, &["y"]) };
            let wakes = vec![(stream(name), Some(Wake { due: due.map(at), why: "due".into() }))];
            ledger.commit(Commit { appends: vec![last], wakes, ..Commit::default() }).wait().unwrap();
        }
        assert_eq!(ledger.waits_recorded_after(at(500)).unwrap(), [stream("a"), stream("d")]);
        assert_eq!(ledger.waits_recorded_after(at(900)).unwrap(), []);
        commit(ledger, vec![Append { at: at(400), ..append("d", 2, &["z"]) }]).unwrap();
        ledger.commit(Commit { wakes: vec![(stream("e"), None)], ..Commit::default() }).wait().unwrap();
        assert_eq!(ledger.waits_recorded_after(at(200)).unwrap(), [stream("a"), stream("d")]);
    });
}

#[test]
fn load_starts_from_the_newest_snapshot_of_its_fingerprint() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        let snapshot = |seq, fingerprint: &str| Snapshot {
            stream: stream("a"),
            seq,
            fingerprint: fingerprint.to_owned(),
            state: format!("{fingerprint}@{seq}").into_bytes(),
        };
        assert_eq!(ledger.load(&stream("a"), "f").unwrap(), None);
        let appends = vec![append("a", 0, &["1", "2", "3"])];
        ledger
            .commit(Commit { appends, snapshots: vec![snapshot(1, "f"), snapshot(2, "g")], ..Commit::default() })
            .wait()
            .unwrap();
        let load = |fingerprint| {
            let loaded = ledger.load(&stream("a"), fingerprint).unwrap().unwrap();
            assert_eq!(loaded.head.seq, 3);
            (loaded.snapshot, loaded.tail.iter().map(|fact| fact.seq).collect::<Vec<_>>())
        };
        assert_eq!(load("f"), (Some(snapshot(1, "f")), vec![2, 3]));
        assert_eq!(load("g"), (Some(snapshot(2, "g")), vec![3]));
        assert_eq!(load("h"), (None, vec![1, 2, 3]));
        // Only the newest are kept.
        ledger.commit(Commit { snapshots: vec![snapshot(3, "g")], ..Commit::default() }).wait().unwrap();
        assert_eq!(load("g"), (Some(snapshot(3, "g")), vec![]));
        assert_eq!(load("f"), (None, vec![1, 2, 3]));
    });
}

#[test]
fn a_tail_of_large_facts_is_handed_out_in_parts() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        // Random enough that no store makes it smaller.
        let large: Vec<String> = (0..6)
            .map(|number| (0..20_000).map(|at| blake3::hash(format!("{number} {at}").as_bytes()).to_string()).collect())
            .collect();
        for (seq, text) in large.iter().enumerate() {
            say(ledger, "a", seq as u64, &[text]);
        }
        let loaded = ledger.load(&stream("a"), "f").unwrap().unwrap();
        let part = loaded.tail.len() as u64;
        assert!((2..6).contains(&part), "{part} of six facts");
        let rest = ledger.read_within(&stream("a"), part, Bounds::TAIL).unwrap();
        let seqs: Vec<u64> = loaded.tail.iter().chain(&rest).map(|fact| fact.seq).collect();
        assert_eq!((loaded.head.seq, seqs), (6, vec![1, 2, 3, 4, 5, 6]));
    });
}

#[test]
fn a_follower_sees_all_streams_in_commit_order() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        say(ledger, "a", 0, &["1"]);
        let committed = commit(ledger, vec![append("b", 0, &["2", "3"]), append("a", 1, &["4"])]).unwrap();
        let mut follow = ledger.follow(Cursor::START);
        let first = follow.next_batch(3).unwrap();
        let seen: Vec<_> = first.iter().map(|(_, stream, fact)| (stream.agent_name().unwrap(), fact.seq)).collect();
        assert_eq!(seen, [("a", 1), ("b", 1), ("b", 2)]);
        assert!(follow.is_behind());
        let second = follow.next_batch(3).unwrap();
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].0, committed.cursor);
        assert_eq!(ledger.end().unwrap(), committed.cursor);
        assert!(!follow.is_behind());
        assert!(follow.next_batch(3).unwrap().is_empty());
        assert!(!follow.wait(std::time::Duration::ZERO));
        say(ledger, "a", 2, &["5"]);
        assert!(follow.wait(std::time::Duration::MAX));
        assert_eq!(follow.next_batch(3).unwrap()[0].2.seq, 3);
        // A cursor can be kept as text; one from elsewhere is refused.
        let kept: Cursor = first[0].0.to_string().parse().unwrap();
        assert_eq!(ledger.follow(kept).next_batch(9).unwrap().len(), 4);
        let ahead: Cursor = "cff".parse().unwrap();
        assert!(matches!(ledger.follow(ahead).next_batch(9), Err(ReadError::CursorAhead { .. })));
        assert!("elsewhere".parse::<Cursor>().is_err());
    });
}

#[test]
fn a_follower_waits_for_what_another_thread_commits() {
    on_every_store(|store| {
        let mut follow = store.ledger.follow(Cursor::START);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                assert!(follow.wait(std::time::Duration::MAX));
                follow.next_batch(9).unwrap().len()
            });
            say(&store.ledger, "a", 0, &["1"]);
            assert_eq!(waiting.join().unwrap(), 1);
        });
    });
}

#[test]
fn blobs_and_large_payloads_come_back() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        let id = ledger.put_blob(b"hello").unwrap();
        assert_eq!(ledger.put_blob(b"hello").unwrap(), id);
        assert_eq!(ledger.get_blob(&id).unwrap(), b"hello");
        let absent = "00".repeat(32).parse().unwrap();
        assert!(matches!(ledger.get_blob(&absent), Err(ReadError::NoBlob(_))));
        let long = "x".repeat(100_000);
        say(ledger, "a", 0, &["short", &long, "short again"]);
        assert_eq!(said(ledger, "a"), ["short", long.as_str(), "short again"]);
    });
}

#[test]
fn committers_of_one_stream_win_one_at_a_time() {
    on_every_store(|store| {
        let wins = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut wins = 0;
                        while wins < 25 {
                            let seq = store.ledger.head(&stream("a")).unwrap().map_or(0, |head| head.seq);
                            match commit(&store.ledger, vec![append("a", seq, &["x"])]) {
                                Ok(_) => wins += 1,
                                Err(CommitError::Conflict { .. }) => {}
                                Err(other) => panic!("{other}"),
                            }
                        }
                        wins
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).sum::<u64>()
        });
        assert_eq!(store.ledger.head(&stream("a")).unwrap().unwrap().seq, wins);
        assert_eq!(said(&store.ledger, "a").len() as u64, wins);
    });
}

#[test]
fn a_receipt_is_a_future_too() {
    on_every_store(|store| {
        let facts = vec![fact("x")];
        let receipt = store.ledger.commit(Commit::append(stream("a"), 0, at(0), facts));
        // Waiting is polling with a waker that wakes this thread.
        assert_eq!(receipt.wait().unwrap().heads[0].seq, 1);
    });
}

#[test]
fn a_read_ends_with_the_item_that_reaches_its_bytes() {
    on_every_store(|store| {
        let ledger = &store.ledger;
        // Large ones lie beside the database, small ones in it.
        let (large, small) = ("x".repeat(10_000), "y".repeat(100));
        say(ledger, "a", 0, &[&large, &small, &small, &large, &large, &small]);
        let within = |after, items, bytes| {
            let facts = ledger.read_within(&stream("a"), after, Bounds { items, bytes }).unwrap();
            facts.iter().map(|fact| fact.seq).collect::<Vec<_>>()
        };
        assert_eq!(within(0, 9, 0), [1], "one fact at least");
        assert_eq!(within(0, 9, 5_000), [1]);
        assert_eq!(within(0, 9, 10_500), [1, 2, 3, 4]);
        assert_eq!(within(1, 9, 5_000), [2, 3, 4]);
        assert_eq!(within(0, 2, usize::MAX), [1, 2]);
        assert_eq!(within(4, 9, usize::MAX), [5, 6]);
        assert_eq!(within(6, 9, 0), Vec::<u64>::new());
        let mut follow = ledger.follow(Cursor::START);
        let mut sizes = Vec::new();
        loop {
            let facts = follow.next_within(Bounds { items: 9, bytes: 10_500 }).unwrap();
            match facts.len() {
                0 => break,
                some => sizes.push(some),
            }
        }
        assert_eq!(sizes, [4, 2], "each fact once");
    });
}

#[test]
fn rows_are_visited_until_the_visitor_has_enough() {
    on_every_store(|store| {
        let rows = ["1", "2", "3"].map(|id| RowOp { plane: "p".into(), id: id.to_owned(), patch: json!({ "id": id }) });
        let mut first = append("a", 0, &["x"]);
        first.facts[0].rows = rows.to_vec();
        commit(&store.ledger, vec![first]).unwrap();
        let visited = |after: Option<&str>, most: usize| {
            let mut seen = Vec::new();
            let visit = &mut |row: Row| {
                seen.push(row.id);
                seen.len() < most
            };
            store.ledger.visit_rows(&stream("a"), "p", after, visit).unwrap();
            seen
        };
        assert_eq!(visited(None, 9), ["1", "2", "3"]);
        assert_eq!(visited(None, 2), ["1", "2"]);
        assert_eq!(visited(Some("1"), 1), ["2"]);
        assert_eq!(visited(Some("3"), 9), Vec::<String>::new());
        assert!(store.ledger.rows(&stream("a"), "p", None, 0).unwrap().is_empty());
    });
}

#[test]
fn ids_of_rows_are_found_over_all_agents() {
    on_every_store(|store| {
        for (name, plane, id) in [("a", "p", "1"), ("b", "p", "2"), ("c", "p", "1"), ("d", "q", "3")] {
            let mut first = append(name, 0, &["x"]);
            first.facts[0].rows = vec![RowOp { plane: plane.into(), id: id.to_owned(), patch: json!({}) }];
            commit(&store.ledger, vec![first]).unwrap();
        }
        let found = |plane| store.ledger.row_ids(plane).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(found("p"), ["1", "2"]);
        assert_eq!(found("none"), Vec::<String>::new());
    });
}
