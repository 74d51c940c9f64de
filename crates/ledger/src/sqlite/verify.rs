//! Checking everything against everything.
//!
//! One pass over the log in commit order carries every stream's chain along, so the cost is that of reading it once.
//! What can't be read is named and passed over; the rest is still checked. Nothing here changes anything.

use std::collections::{BTreeSet, HashMap, HashSet};

use abide_kernel::id::Seq;

use super::Sqlite;
use super::connection::{MARK_EVERY, schema_differences};
use super::fact::{RawBody, RawFact, read_error};
use super::history::View;
use super::lineages::Lineages;
use super::outdated::OutdatedStreams;
use super::upgrade_steps::FORMAT;
use crate::RowsOf;
use crate::error::{Damage, ReadError};
use crate::hash::{BlobId, Hash};
use crate::record::Recorded;
use crate::rows::RowTable;
use crate::upkeep::{OnProgress, Progress, VerifyReport};

mod beside;
mod log;

/// Facts between two reports of progress.
const REPORT_EVERY: u64 = 10_000;

impl Sqlite {
    pub(crate) fn verify(&self, rows_of: &RowsOf<'_>, progress: &mut OnProgress<'_>) -> VerifyReport {
        let checked = self.view(|view| {
            let mut check = Verification::new(view, rows_of, progress);
            check.outdated = self.outdated_streams(view);
            check.pages();
            check.all();
            Ok(check.report)
        });
        checked.unwrap_or_else(|error| {
            let mut report = VerifyReport::default();
            report.found(as_damage(error));
            report
        })
    }
}

struct Verification<'a, 'p> {
    view: &'a View<'a>,
    rows_of: &'a RowsOf<'a>,
    progress: &'a mut OnProgress<'p>,
    report: VerifyReport,
    lineages: Lineages,
    chains: HashMap<i64, Chain>,
    /// Rowids that could not be read.
    gaps: Vec<(u64, u64)>,
    /// The hash of each fact that some stream forks from, by its rowid.
    fork_hashes: HashMap<u64, Option<Hash>>,
    redactions: BTreeSet<(i64, Seq)>,
    /// Blobs that were found whole.
    whole: HashSet<Hash>,
    marks: u64,
    outdated: OutdatedStreams,
}

/// One part of the check: an error is a finding, and the next part goes on.
type Part<'a, 'p> = fn(&mut Verification<'a, 'p>) -> Result<(), ReadError>;

/// How far a stream's chain was followed.
#[derive(Debug)]
struct Chain {
    seq: Seq,
    hash: Hash,
    fact: u64,
    rows: RowTable,
    /// False once a fact was passed over: then nobody knows what the rows ought to be.
    rows_known: bool,
}

impl<'a, 'p> Verification<'a, 'p> {
    fn new(view: &'a View<'a>, rows_of: &'a RowsOf<'a>, progress: &'a mut OnProgress<'p>) -> Verification<'a, 'p> {
        Verification {
            view,
            rows_of,
            progress,
            report: VerifyReport::default(),
            lineages: Lineages::default(),
            chains: HashMap::new(),
            gaps: Vec::new(),
            fork_hashes: HashMap::new(),
            redactions: BTreeSet::new(),
            whole: HashSet::new(),
            marks: 0,
            outdated: OutdatedStreams::default(),
        }
    }

    /// SQLite's own check finds what is wrong with pages, and names them.
    fn pages(&mut self) {
        (self.progress)(Progress { what: "checking pages", done: 0, total: 1 });
        let lines = || -> Result<Vec<String>, rusqlite::Error> {
            let mut statement = self.view.conn.prepare("PRAGMA integrity_check(200)")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        match lines() {
            Ok(lines) => {
                for detail in lines.into_iter().filter(|line| line != "ok") {
                    self.report.found(Damage::Database { detail });
                }
            }
            Err(error) => self.report.found(as_damage(read_error(error))),
        }
        match schema_differences(self.view.conn, FORMAT) {
            Ok(differences) => {
                for detail in differences {
                    self.report.found(Damage::Database { detail });
                }
            }
            Err(error) => self.report.found(as_damage(read_error(error))),
        }
    }

    fn all(&mut self) {
        match Lineages::load(self.view) {
            Ok(lineages) => self.lineages = lineages,
            Err(error) => return self.report.found(as_damage(error)),
        }
        for damage in std::mem::take(&mut self.lineages.damage) {
            self.report.found(damage);
        }
        self.report.streams = self.lineages.iter().count() as u64;
        self.fork_hashes = self.lineages.iter().filter_map(|(_, s)| Some((s.fork?.2, None))).collect();
        let parts: [Part<'a, 'p>; 10] = [
            Verification::blobs,
            Verification::load_redactions,
            Verification::log,
            Verification::heads,
            Verification::marks,
            Verification::rows,
            Verification::wakes,
            Verification::snapshots,
            Verification::leftover_redactions,
            Verification::versions,
        ];
        for part in parts {
            if let Err(error) = part(self) {
                self.report.found(as_damage(error));
            }
        }
    }

    /// One fact, in commit order.
    fn fact(&mut self, raw: RawFact) {
        self.report.facts += 1;
        let (id, owner, seq, hash) = (raw.id, raw.stream, raw.seq, raw.hash);
        if let Some(wanted) = self.fork_hashes.get_mut(&id) {
            *wanted = Some(hash);
        }
        let Ok(stream) = self.lineages.name(owner).cloned() else {
            let stream = format!("stream number {owner}");
            return self.report.found(Damage::Stream { stream, what: format!("its fact {seq} has no stream") });
        };
        let damage = |what: &str| Damage::Fact { stream: stream.clone(), seq, what: what.to_owned() };
        let (place, rows_known) = self.place_before(owner);
        let follows = raw.prev == place.2 && seq == place.0 + 1;
        let after_gap = self.in_gap(raw.prev);
        if !follows && !after_gap {
            self.report.found(damage(&format!("it does not follow fact {}", place.0)));
        }
        if seq.is_multiple_of(MARK_EVERY) {
            self.check_mark(owner, seq, id);
        }
        if matches!(raw.body, RawBody::Redacted(_)) {
            self.report.redacted.push((stream.clone(), seq));
            if !self.redactions.remove(&(owner, seq)) {
                self.report.found(damage("its payload is gone, but nobody cut it out"));
            }
        }
        let recorded = if follows {
            self.recorded(&stream, &place.1, raw)
        } else {
            Err(ReadError::damaged(damage("it can't be checked without the one before")))
        };
        let recorded = match recorded {
            Ok(recorded) => Some(recorded),
            Err(error) => {
                if follows {
                    self.report.found(as_damage(error));
                }
                None
            }
        };
        let chain = self.chains.entry(owner).or_insert_with(|| Chain::new(rows_known));
        (chain.seq, chain.hash, chain.fact) = (seq, hash, id);
        self.fold_rows(owner, seq, recorded.as_ref());
    }

    /// Where the chain of a stream stands: sequence, hash, rowid; and whether its rows are known.
    fn place_before(&self, stream: i64) -> ((Seq, Hash, u64), bool) {
        if let Some(chain) = self.chains.get(&stream)
            && chain.fact > 0
        {
            return ((chain.seq, chain.hash, chain.fact), chain.rows_known);
        }
        match self.lineages.get(stream).and_then(|stream| stream.fork) {
            None => ((0, Hash::NONE, 0), true),
            Some((_, seq, fact)) => {
                let hash = self.fork_hashes.get(&fact).copied().flatten();
                ((seq, hash.unwrap_or(Hash::NONE), fact), hash.is_some())
            }
        }
    }

    /// Blobs were read once, before the log: here it is enough that they were whole.
    fn recorded(&self, stream: &crate::StreamId, prev: &Hash, raw: RawFact) -> Result<Recorded, ReadError> {
        if let RawBody::Blob(digest) = raw.body
            && !self.whole.contains(&digest)
        {
            let what = format!("its payload, blob {}, is missing or damaged", BlobId(digest));
            return Err(ReadError::damaged(Damage::Fact { stream: stream.clone(), seq: raw.seq, what }));
        }
        self.view.store.recorded(self.view.conn, stream, prev, raw)
    }

    fn fold_rows(&mut self, owner: i64, seq: Seq, recorded: Option<&Recorded>) {
        let heirs: Vec<i64> = self.lineages.heirs(owner, seq).collect();
        for heir in heirs {
            let chain = self.chains.entry(heir).or_insert_with(|| Chain::new(true));
            match (recorded, self.lineages.name(heir)) {
                (Some(fact), Ok(name)) if chain.rows_known => {
                    for op in (self.rows_of)(name, fact) {
                        chain.rows.apply(seq, &op);
                    }
                }
                (Some(_) | None, _) => chain.rows_known = false,
            }
        }
    }

    fn in_gap(&self, id: u64) -> bool {
        self.gaps.iter().any(|(first, last)| (*first..=*last).contains(&id))
    }
}

impl Chain {
    fn new(rows_known: bool) -> Chain {
        Chain { seq: 0, hash: Hash::NONE, fact: 0, rows: RowTable::default(), rows_known }
    }
}

/// The error that stopped a check, as a finding.
fn as_damage(error: ReadError) -> Damage {
    match error {
        ReadError::Damaged(damage) => (*damage).clone(),
        other
        @ (ReadError::NoBlob(_) | ReadError::CursorAhead { .. } | ReadError::Store { .. } | ReadError::Closed) => {
            Damage::Database { detail: other.to_string() }
        }
    }
}
