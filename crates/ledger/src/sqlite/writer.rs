//! The one writer. It takes whatever queued up during the last sync, checks, chains and writes each commit in order,
//! refuses losers one by one, commits one transaction, and answers everyone.
//!
//! Within a transaction there are no savepoints: a commit is checked whole before its first write, so what is refused
//! has written nothing. If the transaction itself fails, every commit in it failed, and what the writer remembered of
//! the streams it touched is forgotten; the tables still say what holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OptionalExtension};

use super::fact::Store;
use super::heads::Heads;
use super::queue::{Job, Queue};
use super::status::Status;
use super::versions;
use crate::error::{CommitError, Damage};
use crate::prepared::Prepared;
use crate::program::Program;
use crate::receipt::Answer;

mod write;

pub(crate) use write::{snapshot_digest, stream_digest, wake_digest};

/// The log is copied into the database when it has this many pages, 16 MiB of the usual size. A longer log writes a
/// page that changes often fewer times; this one is read back in well under a second after a crash.
const CHECKPOINT_PAGES: i32 = 4096;

#[derive(Debug)]
pub(crate) struct Writer {
    pub conn: Connection,
    pub store: Arc<Store>,
    pub heads: Heads,
    /// Kinds by name. All of them: there are as many as the program has variants of facts.
    kinds: HashMap<String, i64>,
    /// The rowid of the last fact, and the id of the last stream.
    pub last_fact: u64,
    last_stream: i64,
    pub program: Program,
    /// The oldest reader that can read everything so far.
    oldest_reader: u32,
    /// Pages in the log, as of the last transaction.
    log_pages: Arc<AtomicI32>,
    pub status: Arc<Status>,
    /// A transaction failed: what is remembered must be read again before the next.
    stale: bool,
}

/// Why a commit stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// This one only; nothing was written.
    Refused(CommitError),
    /// The transaction can't go on.
    Failed(CommitError),
}

/// The thread's whole life.
pub(crate) fn run(mut writer: Writer, queue: &Queue) {
    let mut spare = Vec::new();
    // The larger of the last two batches is about everyone who commits: they are likely to come back together.
    let mut sizes = (0, 0);
    while let Some(jobs) = queue.take(std::mem::take(&mut spare), sizes.0.max(sizes.1)) {
        sizes = (sizes.1, jobs.len());
        let mut commits: Vec<(Prepared, Answer)> = Vec::with_capacity(jobs.len());
        let mut jobs = jobs;
        for job in jobs.drain(..) {
            match job {
                Job::Commit { prepared, answer } => commits.push((prepared, answer)),
                Job::Lend { to, back } => {
                    writer.batch(std::mem::take(&mut commits));
                    writer = match to.send(writer) {
                        // Maintenance gives the writer back even when it panics; if not, nobody can write any more.
                        Ok(()) => match back.recv() {
                            Ok(writer) => writer,
                            Err(mpsc_closed) => panic!("the writer was not given back: {mpsc_closed}"),
                        },
                        // No caller waits for it any more.
                        Err(std::sync::mpsc::SendError(writer)) => writer,
                    };
                }
            }
        }
        writer.batch(commits);
        writer.checkpoint_if_due();
        spare = jobs;
    }
}

impl Writer {
    pub(crate) fn new(
        mut conn: Connection,
        store: Arc<Store>,
        status: Arc<Status>,
        program: Program,
    ) -> Result<Writer, CommitError> {
        let log_pages = Arc::new(AtomicI32::new(0));
        let noted = Arc::clone(&log_pages);
        let note = move |_: &mut Wal, pages| {
            noted.store(pages, Ordering::Relaxed);
            Ok(())
        };
        conn.wal_hook(Some(note)).map_err(commit_error)?;
        let mut writer = Writer {
            conn,
            store,
            heads: Heads::default(),
            kinds: HashMap::new(),
            last_fact: 0,
            last_stream: 0,
            program,
            oldest_reader: 0,
            log_pages,
            status,
            stale: true,
        };
        writer.reload()?;
        Ok(writer)
    }

    /// Reads the heads from the tables, in place of the cached ones.
    fn reload(&mut self) -> Result<(), CommitError> {
        self.heads.clear();
        self.kinds.clear();
        let view = super::history::View::new(&self.conn, &self.store)?;
        self.last_fact = view.end()?;
        self.last_stream = self
            .conn
            .query_row("SELECT max(id) FROM streams", [], |row| row.get::<_, Option<i64>>(0))
            .map_err(commit_error)?
            .unwrap_or(0);
        // An entry that is damaged counts as none, so that the next fact that needs a later reader writes it again.
        let oldest = versions::read(&self.conn, versions::OLDEST_READER).optional().map_err(commit_error)?;
        let oldest = oldest.filter(|oldest| oldest.intact).and_then(|oldest| u32::try_from(oldest.number).ok());
        self.oldest_reader = oldest.unwrap_or(1);
        self.status.end.send_replace(self.last_fact);
        self.stale = false;
        Ok(())
    }

    fn batch(&mut self, commits: Vec<(Prepared, Answer)>) {
        if commits.is_empty() {
            return;
        }
        let mut answers = Vec::with_capacity(commits.len());
        let outcome = self.transaction(|writer| {
            for (prepared, _) in &commits {
                match writer.commit(prepared) {
                    Ok(committed) => answers.push(Ok(committed)),
                    Err(Stop::Refused(refusal)) => answers.push(Err(refusal)),
                    Err(Stop::Failed(failure)) => return Err(failure),
                }
            }
            Ok(())
        });
        match outcome {
            Ok(()) => {
                // The last first: who has several under way waits for the oldest, and is woken once, to find them all.
                for ((spent, answer), result) in commits.into_iter().zip(answers).rev() {
                    answer.send(result, Some(spent));
                }
            }
            // Also those that were refused: they lost against a commit that is no more.
            Err(failure) => {
                let failure = failure.of_database(&self.store.home.database());
                self.status.write_failure.note(&failure);
                for (spent, answer) in commits {
                    answer.send(Err(failure.clone()), Some(spent));
                }
            }
        }
    }

    /// Runs `work` as one transaction: durable when this returns, or undone, in the tables and in memory.
    pub(crate) fn transaction<T, E: From<CommitError>>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.stale {
            self.reload()?;
        }
        let outcome = self
            .execute("BEGIN IMMEDIATE")
            .map_err(E::from)
            .and_then(|()| work(self))
            .and_then(|result| Ok(self.write_heads().map(|()| result)?))
            .and_then(|result| Ok(self.execute("COMMIT").map(|()| result)?));
        match outcome {
            Ok(result) => {
                self.heads.settle();
                self.status.end.send_replace(self.last_fact);
                Ok(result)
            }
            Err(failure) => {
                self.stale = true;
                if !self.conn.is_autocommit() {
                    // SQLite undoes by itself what it can't go on with; the rest is undone here.
                    let _ = self.execute("ROLLBACK");
                }
                Err(failure)
            }
        }
    }

    fn execute(&self, sql: &str) -> Result<(), CommitError> {
        self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map(|_| ()).map_err(commit_error)
    }

    /// After everyone was answered: nobody waits for it but the commits that are queueing up now.
    fn checkpoint_if_due(&mut self) {
        if self.log_pages.load(Ordering::Relaxed) >= CHECKPOINT_PAGES {
            // Where a reader holds it up, the next try comes after the next transaction.
            self.checkpoint("PASSIVE");
        }
    }

    /// Copies the log into the database. That it could not is no harm: the log is still there, and grows.
    pub(crate) fn checkpoint(&self, mode: &str) {
        let _ = self.conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
    }

    /// Writes the whole database anew, so that no page keeps a copy of what it once held. For rare upkeep: a page that
    /// split long ago has such copies, and overwriting what is freed now does not reach them.
    pub(crate) fn write_anew(&self) -> Result<(), CommitError> {
        self.conn.execute_batch("VACUUM").map_err(commit_error)?;
        self.checkpoint("TRUNCATE");
        Ok(())
    }

    fn kind(&mut self, name: &str) -> Result<i64, CommitError> {
        if let Some(&id) = self.kinds.get(name) {
            return Ok(id);
        }
        let mut find = self.conn.prepare_cached("SELECT id FROM kinds WHERE name = ?").map_err(commit_error)?;
        let id = match find.query_row([name], |row| row.get(0)).optional().map_err(commit_error)? {
            Some(id) => id,
            None => {
                let mut add = self.conn.prepare_cached("INSERT INTO kinds (name) VALUES (?)").map_err(commit_error)?;
                add.insert([name]).map_err(commit_error)?
            }
        };
        self.kinds.insert(name.to_owned(), id);
        Ok(id)
    }
}

/// The error for a committer, from an error of SQLite.
pub(crate) fn commit_error(error: rusqlite::Error) -> CommitError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly};
    let detail = error.to_string();
    match error.sqlite_error_code() {
        Some(DiskFull) => CommitError::StoreFull { detail },
        Some(DatabaseCorrupt | NotADatabase) => CommitError::Damaged(Arc::new(Damage::Database { detail })),
        Some(ReadOnly) => CommitError::Store { detail: format!("{detail}: is the folder writable?") },
        Some(_) | None => CommitError::Store { detail },
    }
}
