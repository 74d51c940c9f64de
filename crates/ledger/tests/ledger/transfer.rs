//! Export and import.

use abide_ledger::{Commit, ImportError, Ledger, NewFact, Wake};

use crate::world::{
    append_with_rows, assert_intact, at, commit, export, fork_with_rows, import, on_every_store, said, say, sqlite,
    stream,
};

fn fill(ledger: &Ledger) {
    commit(ledger, vec![append_with_rows("a", 0, &["1", "2"]), append_with_rows("b", 0, &["\u{1f980} \"quoted\"\n"])])
        .unwrap();
    commit(ledger, vec![append_with_rows("b", 1, &[&"z".repeat(9000)])]).unwrap();
    commit(ledger, vec![fork_with_rows(ledger, "f", "a", 1, &["f2"])]).unwrap();
    ledger.put_blob(&[0, 159, 146, 150]).unwrap();
    let wake = |due| Some(Wake { due, why: "why".into() });
    let wakes = vec![(stream("b"), wake(None)), (stream("a"), wake(Some(at(5))))];
    ledger.commit(Commit { wakes, ..Commit::default() }).wait().unwrap();
}

#[test]
fn an_export_comes_back_the_same_in_every_store() {
    on_every_store(|from| {
        fill(&from.ledger);
        from.ledger.redact(&stream("a"), 2).unwrap();
        from.ledger.rebuild_rows(&crate::world::rows_of, &mut |_| {}).unwrap();
        let text = export(&from.ledger);
        on_every_store(|to| {
            let taken = import(&to.ledger, &text).unwrap();
            assert_eq!((taken.facts, taken.streams, taken.blobs), (5, 3, 2));
            assert_eq!(export(&to.ledger), text);
            assert_intact(&to.ledger);
            let rows = |ledger: &Ledger, name| ledger.rows(&stream(name), "said", None, 99).unwrap();
            assert_eq!(rows(&to.ledger, "f"), rows(&from.ledger, "f"));
            assert_eq!(said(&to.ledger, "f"), ["1", "f2"]);
            say(&to.ledger, "f", 2, &["goes on"]);
        });
    });
}

#[test]
fn payloads_that_are_no_text_survive() {
    on_every_store(|from| {
        let facts = vec![NewFact::new("Raw", vec![0xff, 0x00, 0xfe])];
        from.ledger.commit(Commit::append(stream("a"), 0, at(0), facts)).wait().unwrap();
        let to = sqlite();
        let text = export(&from.ledger);
        to.ledger.import_full(&mut text.as_bytes(), &|_, _| Vec::new(), &mut |_| {}).unwrap();
        assert_eq!(to.ledger.read(&stream("a"), 0, 9).unwrap(), from.ledger.read(&stream("a"), 0, 9).unwrap());
    });
}

#[test]
fn an_empty_ledger_is_an_export_too() {
    on_every_store(|store| {
        let text = export(&store.ledger);
        assert_eq!(import(&store.ledger, &text).unwrap().facts, 0);
    });
}

#[test]
fn streams_that_exist_are_not_written_over() {
    on_every_store(|store| {
        fill(&store.ledger);
        let text = export(&store.ledger);
        let refused = import(&store.ledger, &text).unwrap_err();
        assert!(matches!(&refused, ImportError::Exists { stream: s } if *s == stream("a")), "{refused}");
        assert_eq!(export(&store.ledger), text);
        let other = sqlite();
        say(&other.ledger, "elsewhere", 0, &["x"]);
        import(&other.ledger, &text).unwrap();
        assert_eq!(said(&other.ledger, "elsewhere"), ["x"]);
    });
}

/// Each case changes the text of a good export, and names line and field of the refusal.
#[test]
fn whatever_is_wrong_is_named_and_nothing_is_imported() {
    let from = sqlite();
    fill(&from.ledger);
    let text = export(&from.ledger);
    let lines: Vec<&str> = text.lines().collect();
    let with = |at: usize, change: &dyn Fn(&str) -> String| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        lines[at - 1] = change(&lines[at - 1]);
        lines.retain(|line| !line.is_empty());
        lines.join("\n") + "\n"
    };
    let replace = |at: usize, from: &str, to: &str| {
        assert!(lines[at - 1].contains(from), "{} in {}", from, lines[at - 1]);
        with(at, &|line| line.replacen(from, to, 1))
    };
    let cases: Vec<(String, usize, &str)> = vec![
        (replace(1, "1", "3,\"oldest_reader\":1,\"program\":\"\""), 1, "abide_ledger"),
        (replace(1, "1", "2"), 1, "oldest_reader"),
        (with(1, &|_| String::new()), 1, "abide_ledger"),
        (replace(2, "\"blob\":\"", "\"blob\":\"x"), 2, "blob"),
        (replace(2, "text", "test"), 2, "text"),
        (replace(4, "\"seq\":1", "\"seq\":2"), 4, "seq"),
        (replace(4, "\"seq\":1", "\"seq\":\"1\""), 4, "seq"),
        (replace(4, "agent/a", "agent/A"), 4, "stream"),
        (replace(4, "1970-01-01", "1970-13-01"), 4, "at"),
        (replace(4, "1970-01-01", "1971-01-01"), 4, "hash"),
        (replace(4, "Said", "Sold"), 4, "hash"),
        (replace(4, "\"kind\"", "\"kinds\""), 4, "kind"),
        (replace(5, "packed", "packet"), 5, "text"),
        (replace(5, "\"packed\":\"", "\"packed\":\" "), 5, "packed"),
        (with(5, &|line| line[..line.len() - 9].to_owned()), 5, "the whole line"),
        (with(5, &|_| "[]".to_owned()), 5, "the whole line"),
        (with(5, &|_| "{}".to_owned()), 5, "the whole line"),
        (replace(7, "\"blob\":\"", "\"redacted\":\"00\",\"blob\":\""), 7, "redacted"),
        (with(2, &|_| String::new()), 6, "blob"),
        (replace(8, "\"seq\":1", "\"seq\":3"), 8, "seq"),
        (with(8, &|_| String::new()), 8, "seq"),
        (replace(10, "\"wake\":\"agent/b", "\"wake\":\"agent/x"), 10, "wake"),
        (replace(11, "\"due\"", "\"do\""), 11, "due"),
        (replace(12, "\"seq\":2", "\"seq\":1"), 12, "hash"),
        (with(12, &|_| String::new()), 14, "end"),
        (replace(15, "\"facts\":5", "\"facts\":6"), 15, "end"),
        (replace(11, "\"why\":\"why", "\"why\":\"who"), 15, "digest"),
        (text.clone() + "\n", 16, "the whole line"),
        (text[..text.len() - 1].to_owned(), 15, "the whole line"),
        (lines[..9].join("\n") + "\n", 10, "the whole line"),
    ];
    for (changed, line, field) in cases {
        on_every_store(|store| match import(&store.ledger, &changed) {
            Err(ImportError::Line { line: l, field: f, what }) => {
                assert!(l == line && f.contains(field), "wanted line {line} {field}, got line {l} {f}: {what}");
                assert!(store.ledger.streams(None, 9).unwrap().is_empty());
                assert!(store.ledger.blob_ids().unwrap().is_empty());
            }
            other => panic!("line {line} {field}: {other:?}"),
        });
    }
}

/// Lines of an import, with a commit between two of them.
struct Interrupted<'a> {
    ledger: &'a Ledger,
    lines: std::vec::IntoIter<String>,
    line: Vec<u8>,
    read: usize,
    commit: Option<Commit>,
    receipt: Option<abide_ledger::Receipt>,
}

impl std::io::Read for Interrupted<'_> {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        unreachable!("an import reads lines")
    }
}

impl std::io::BufRead for Interrupted<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.read == self.line.len() {
            self.read = 0;
            self.line = self.lines.next().unwrap_or_default().into_bytes();
            if self.line.is_empty() {
                self.receipt = self.commit.take().map(|commit| self.ledger.commit(commit));
            }
        }
        Ok(&self.line[self.read..])
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
    }
}

/// A payload that was found on disk when its commit was handed in may be gone when the commit is written: a refused
/// import takes its blobs away again.
#[test]
fn a_refused_import_takes_no_payload_from_a_commit() {
    let store = sqlite();
    let payload = "x".repeat(9000);
    let name = Ledger::memory().put_blob(payload.as_bytes()).unwrap();
    let lines = vec!["{\"abide_ledger\":1}\n".to_owned(), format!("{{\"blob\":\"{name}\",\"text\":\"{payload}\"}}\n")];
    let commit = Commit::append(stream("a"), 0, at(0), vec![NewFact::new("Raw", payload.clone())]);
    let mut from = Interrupted {
        ledger: &store.ledger,
        lines: lines.into_iter(),
        line: Vec::new(),
        read: 0,
        commit: Some(commit),
        receipt: None,
    };
    let refused = store.ledger.import_full(&mut from, &|_, _| Vec::new(), &mut |_| {});
    assert!(matches!(refused, Err(ImportError::Line { line: 3, .. })), "{refused:?}");
    from.receipt.unwrap().wait().unwrap();
    let facts = store.ledger.read(&stream("a"), 0, 9).unwrap();
    assert_eq!(facts[0].payload.bytes().as_deref(), Some(payload.as_bytes()));
}
