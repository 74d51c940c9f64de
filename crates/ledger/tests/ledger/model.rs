//! Random commits, forks, archives, redactions and reopenings, against a model too simple to be wrong.

use std::collections::BTreeMap;

use abide_ledger::{Append, ArchiveBounds, CommitError, Cursor, Ledger, Options};
use proptest::prelude::*;

use crate::world::{
    append_with_rows, assert_intact, commit, export, fork_with_rows, import, rows_of, said, sqlite, stream,
};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Step {
    /// Some facts for some streams, from the sequence that the model has, or one off.
    Commit {
        parts: Vec<(usize, usize)>,
        stale: bool,
    },
    Fork {
        child: usize,
        parent: usize,
        at: usize,
    },
    /// All but about this much.
    Archive {
        keep: u64,
    },
    Redact {
        stream: usize,
        at: usize,
    },
    Reopen,
    Read {
        stream: usize,
        after: usize,
        limit: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES.len();
    let step = prop_oneof![
        6 => (prop::collection::vec((name.clone(), 1..9usize), 1..3), prop::bool::weighted(0.1))
            .prop_map(|(parts, stale)| Step::Commit { parts, stale }),
        1 => (name.clone(), 1..40usize).prop_map(|(stream, count)| Step::Commit { parts: vec![(stream, count * 4)], stale: false }),
        2 => (name.clone(), name.clone(), any::<usize>()).prop_map(|(child, parent, at)| Step::Fork { child, parent, at }),
        1 => (0..4000u64).prop_map(|keep| Step::Archive { keep }),
        1 => (name.clone(), any::<usize>()).prop_map(|(stream, at)| Step::Redact { stream, at }),
        1 => Just(Step::Reopen),
        3 => (name, 0..100usize, 1..80usize).prop_map(|(stream, after, limit)| Step::Read { stream, after, limit }),
    ];
    prop::collection::vec(step, 1..30)
}

/// Each stream is the list of what was said in it. A place is shared by forks, so a redaction is too.
#[derive(Default)]
struct Model {
    streams: BTreeMap<usize, Vec<usize>>,
    texts: Vec<String>,
}

impl Model {
    fn texts(&self, stream: usize) -> Vec<String> {
        self.streams.get(&stream).into_iter().flatten().map(|place| self.texts[*place].clone()).collect()
    }

    fn len(&self, stream: usize) -> usize {
        self.streams.get(&stream).map_or(0, Vec::len)
    }

    fn say(&mut self, stream: usize, text: &str) {
        self.streams.entry(stream).or_default().push(self.texts.len());
        self.texts.push(text.to_owned());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stores_agree_with_the_model(steps in steps()) {
        let mut store = sqlite();
        let memory = Ledger::memory();
        let mut model = Model::default();
        for step in steps {
            if matches!(step, Step::Reopen) {
                // The old one lets go of the home before the new one takes it.
                store.ledger = Ledger::memory();
                store.ledger = Ledger::open(store.home.as_ref().unwrap().path(), Options::default()).unwrap();
            }
            take(&step, [&store.ledger, &memory], &mut model);
        }
        for ledger in [&store.ledger, &memory] {
            for (i, name) in NAMES.iter().enumerate() {
                prop_assert_eq!(said(ledger, name), model.texts(i));
            }
            ledger.rebuild_rows(&rows_of, &mut |_| {}).unwrap();
            assert_intact(ledger);
            prop_assert_eq!(ledger.follow(Cursor::START).next_batch(usize::MAX).unwrap().len(), model.texts.len());
        }
        let text = export(&store.ledger);
        prop_assert_eq!(&text, &export(&memory));
        let copy = Ledger::memory();
        import(&copy, &text).unwrap();
        prop_assert_eq!(text, export(&copy));
    }
}

fn take(step: &Step, ledgers: [&Ledger; 2], model: &mut Model) {
    match step {
        Step::Commit { parts, stale } => {
            let mut parts = parts.clone();
            parts.dedup_by_key(|(stream, _)| *stream);
            let appends: Vec<Append> = parts
                .iter()
                .map(|(s, count)| {
                    let texts: Vec<String> = (0..*count).map(|i| format!("{s}-{}-{i}", model.texts.len())).collect();
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    append_with_rows(NAMES[*s], model.len(*s) as u64 + u64::from(*stale), &texts)
                })
                .collect();
            for ledger in ledgers {
                match commit(ledger, appends.clone()) {
                    Ok(_) => assert!(!stale),
                    Err(CommitError::Conflict { .. }) => assert!(stale),
                    Err(other) => panic!("{other}"),
                }
            }
            if !stale {
                let before = model.texts.len();
                for (s, count) in parts {
                    (0..count).for_each(|i| model.say(s, &format!("{s}-{before}-{i}")));
                }
            }
        }
        Step::Fork { child, parent, at } => {
            if model.len(*child) > 0 || model.len(*parent) == 0 {
                return;
            }
            let seq = at % model.len(*parent) + 1;
            for ledger in ledgers {
                let fork = fork_with_rows(ledger, NAMES[*child], NAMES[*parent], seq as u64, &["fork"]);
                commit(ledger, vec![fork]).unwrap();
            }
            let shared = model.streams[parent][..seq].to_vec();
            model.streams.insert(*child, shared);
            model.say(*child, "fork");
        }
        Step::Archive { keep } => {
            for ledger in ledgers {
                let policy = ArchiveBounds { max_bytes: Some(*keep), ..ArchiveBounds::default() };
                ledger.archive(policy, &mut |_| {}).unwrap();
            }
        }
        Step::Redact { stream: s, at } => {
            if model.len(*s) > 0 {
                let place = at % model.len(*s);
                for ledger in ledgers {
                    ledger.redact(&stream(NAMES[*s]), place as u64 + 1).unwrap();
                }
                let place = model.streams[s][place];
                model.texts[place] = "(redacted)".to_owned();
            }
        }
        Step::Reopen => {}
        Step::Read { stream: s, after, limit } => {
            let texts = model.texts(*s);
            let (from, to) = ((*after).min(texts.len()), (after + limit).min(texts.len()));
            for ledger in ledgers {
                let page = ledger.read(&stream(NAMES[*s]), *after as u64, *limit).unwrap();
                assert_eq!(page.iter().map(crate::world::text).collect::<Vec<_>>(), texts[from..to.max(from)]);
            }
        }
    }
}
