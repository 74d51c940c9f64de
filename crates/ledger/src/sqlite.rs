//! The ledger on disk: one SQLite database, its archive and its blobs in one home.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use abide_kernel::id::Seq;
use abide_kernel::pack;
use abide_kernel::time::Time;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tokio::sync::watch;

use crate::commit::{Commit, Snapshot, Wake};
use crate::error::{CommitError, Damage, OpenError, ReadError};
use crate::hash::{BlobId, Hash};
use crate::prepared::{Body, INLINE_LIMIT, Prepared};
use crate::program::{OldestReader, Program, Upgraded};
use crate::receipt::Receipt;
use crate::record::{Cursor, Head, Loaded, Recorded, Row};
use crate::stream::StreamId;
use crate::{Mode, Options};

mod archive;
mod blobs;
mod fact;
mod follow;
mod heads;
mod history;
mod home;
mod import;
mod lineages;
mod outdated;
mod queue;
mod rebuild;
mod redact;
mod schema;
mod segment;
mod steps;
mod verify;
mod versions;
mod writer;

use fact::{Store, read_error};
use history::View;
use home::Home;
use queue::{Job, Queue};
use schema::Reading;
use writer::Writer;

/// Reading connections kept open between reads. More are opened when more threads read at once.
const READERS_KEPT: usize = 4;

/// A cheap handle; clones share one ledger. When the last is dropped, what was queued is committed and all is closed.
#[derive(Debug, Clone)]
pub struct Sqlite(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    readers: Mutex<Vec<Connection>>,
    reading: Reading,
    end: watch::Sender<u64>,
    writing: Option<Writing>,
    redactions: AtomicU64,
    program: Program,
    upgraded: Option<Upgraded>,
    /// False once no stream's rows can be another version's. Only whoever writes can know that.
    may_be_outdated: AtomicBool,
}

#[derive(Debug)]
struct Writing {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    /// Held until the writer has gone.
    lock: File,
    /// The folders that were made for a new ledger; none where there was a ledger before.
    made: Option<Vec<PathBuf>>,
    /// Take the new ledger away when it is closed.
    discard: AtomicBool,
}

impl Sqlite {
    pub(crate) fn open(root: &Path, options: &Options) -> Result<Sqlite, OpenError> {
        schema::require_sqlite()?;
        let home = Home::new(root);
        let file = home.database();
        let end = watch::Sender::new(0);
        let store = Arc::new(Store::new(home));
        let program = options.program;
        let (mut upgraded, mut may_be_outdated) = (None, true);
        let (writing, reading) = match options.mode {
            Mode::ReadWrite => {
                let made = store.home.create()?;
                let lock = store.home.lock()?;
                // A link whose target is not there now is no reason to begin anew.
                let new = std::fs::symlink_metadata(&file).is_err_and(|error| error.kind() == ErrorKind::NotFound);
                if new {
                    schema::create(&file, options.page_size, &program)?;
                }
                schema::require_content(&file)?;
                let conn;
                (conn, upgraded) = schema::open_writer(&file, &program)?;
                let unusable =
                    |error: CommitError| OpenError::NotALedger { file: file.clone(), detail: error.to_string() };
                let mut writer = Writer::new(conn, Arc::clone(&store), end.clone(), program).map_err(unusable)?;
                may_be_outdated = outdated::mark(&mut writer)
                    .map_err(|error| OpenError::Store { file: file.clone(), detail: error.to_string() })?;
                let started = Writing::start(writer, lock, new.then_some(made));
                let writing = started.map_err(|source| OpenError::Io { path: root.to_owned(), source })?;
                (Some(writing), Reading::Beside)
            }
            Mode::ReadOnly if !file.exists() => return Err(OpenError::Missing { home: root.to_owned() }),
            Mode::ReadOnly => {
                schema::require_content(&file)?;
                (None, Reading::of(&file))
            }
        };
        let reader = schema::open_reader(&file, reading).map_err(|error| schema::open_error(&file, error))?;
        schema::require_ours(&reader, &file, &program)?;
        let (readers, redactions) = (Mutex::new(vec![reader]), AtomicU64::new(0));
        let may_be_outdated = AtomicBool::new(may_be_outdated);
        let shared = Shared { store, readers, reading, end, writing, redactions, program, upgraded, may_be_outdated };
        Ok(Sqlite(Arc::new(shared)))
    }

    pub(crate) fn program(&self) -> Program {
        self.0.program
    }

    pub(crate) fn upgraded(&self) -> Option<Upgraded> {
        self.0.upgraded
    }

    /// Of a damaged entry nobody knows what it said: then it is this program's own reader, and nothing is held up.
    pub(crate) fn oldest_reader(&self) -> Result<OldestReader, ReadError> {
        let oldest = self.view(|view| Ok(versions::read(view.conn, versions::OLDEST_READER).ok()))?;
        let intact = oldest.filter(|oldest| oldest.intact);
        let known = intact.and_then(|oldest| Some((u32::try_from(oldest.number).ok()?, oldest.text)));
        let Program { reader, version, .. } = self.0.program;
        let (reader, program) = known.unwrap_or_else(|| (reader, version.to_owned()));
        Ok(OldestReader { reader, program })
    }

    pub(crate) fn redactions(&self) -> &AtomicU64 {
        &self.0.redactions
    }

    pub(crate) fn discard_if_new(self) {
        if let Some(writing) = &self.0.writing {
            writing.discard.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn commit(&self, commit: Commit) -> Receipt {
        let Some(writing) = &self.0.writing else { return Receipt::ready(Err(CommitError::ReadOnly)) };
        let prepared =
            Prepared::new(commit, &self.0.program).and_then(|prepared| self.put_payloads(&prepared).map(|()| prepared));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => return Receipt::ready(Err(refusal)),
        };
        let (answer, receipt) = Receipt::waiting();
        writing.queue.push(Job::Commit { prepared, answer });
        receipt
    }

    fn put_payloads(&self, prepared: &Prepared) -> Result<(), CommitError> {
        for fact in prepared.appends.iter().flat_map(|append| &append.facts) {
            if let Body::Stored(bytes) = &fact.body
                && bytes.len() > INLINE_LIMIT
            {
                self.0.store.blobs.put(fact.digest, bytes).map_err(io_refusal)?;
            }
        }
        Ok(())
    }

    /// Takes the writer over for maintenance; it goes back when the guard is dropped.
    fn borrow_writer(&self) -> Result<Borrowed, CommitError> {
        let writing = self.0.writing.as_ref().ok_or(CommitError::ReadOnly)?;
        let (to, lent) = mpsc::channel();
        let (give, back) = mpsc::channel();
        writing.queue.push(Job::Lend { to, back });
        let writer = lent.recv().map_err(|_| CommitError::Closed)?;
        Ok(Borrowed { writer: Some(writer), give })
    }

    /// Runs `read` in one read transaction.
    fn view<T>(&self, read: impl FnOnce(&View<'_>) -> Result<T, ReadError>) -> Result<T, ReadError> {
        let pooled = self.0.readers.lock().expect("the pool is never held across a panic").pop();
        let conn = match pooled {
            Some(conn) => conn,
            None => schema::open_reader(&self.0.store.home.database(), self.0.reading).map_err(read_error)?,
        };
        // Prepared once per connection, as all else a read asks. A connection that leaves here early is dropped, and its
        // transaction with it.
        let execute = |sql: &str| conn.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        execute("BEGIN").map_err(read_error)?;
        let result = View::new(&conn, &self.0.store).and_then(|view| read(&view));
        execute("ROLLBACK").map_err(read_error)?;
        let mut readers = self.0.readers.lock().expect("the pool is never held across a panic");
        if readers.len() < READERS_KEPT {
            readers.push(conn);
        }
        result
    }

    pub(crate) fn head(&self, stream: &StreamId) -> Result<Option<Head>, ReadError> {
        self.view(|view| Ok(view.head(stream)?.map(|head| head.head())))
    }

    pub(crate) fn origin(&self, stream: &StreamId) -> Result<Option<(StreamId, Seq)>, ReadError> {
        self.view(|view| {
            let sql = "SELECT p.name, s.fork_seq FROM streams s JOIN streams p ON p.id = s.parent WHERE s.name = ?";
            let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
            let mut rows = statement.query([stream.as_str()]).map_err(read_error)?;
            match rows.next().map_err(read_error)? {
                Some(row) => Ok(Some((stream_name(row, 0)?, row.get(1).map_err(read_error)?))),
                None => Ok(None),
            }
        })
    }

    pub(crate) fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<(StreamId, Head)>, ReadError> {
        self.view(|view| {
            let sql = "SELECT s.name, h.seq, h.hash FROM streams s JOIN heads h ON h.stream = s.id
                WHERE s.name > ? ORDER BY s.name LIMIT ?";
            let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
            let after = after.map_or("", StreamId::as_str);
            let mut rows = statement.query((after, sql_limit(limit))).map_err(read_error)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(read_error)? {
                let stream = stream_name(row, 0)?;
                let hash: Vec<u8> = row.get(2).map_err(read_error)?;
                let Some(hash) = Hash::from_slice(&hash) else {
                    let what = "its head is damaged".to_owned();
                    return Err(ReadError::damaged(Damage::Stream { stream: stream.to_string(), what }));
                };
                found.push((stream, Head { seq: row.get(1).map_err(read_error)?, hash }));
            }
            Ok(found)
        })
    }

    pub(crate) fn read(&self, stream: &StreamId, after: Seq, limit: usize) -> Result<Vec<Recorded>, ReadError> {
        self.view(|view| match view.head(stream)? {
            Some(head) => view.read(stream, &head, after, limit),
            None => Ok(Vec::new()),
        })
    }

    pub(crate) fn load(&self, stream: &StreamId, fingerprint: &str) -> Result<Option<Loaded>, ReadError> {
        self.view(|view| {
            let Some(head) = view.head(stream)? else { return Ok(None) };
            let snapshot =
                intact_snapshot(view, stream, head.id, fingerprint).filter(|snapshot| snapshot.seq <= head.seq);
            let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
            let tail = view.read(stream, &head, after, usize::MAX)?;
            Ok(Some(Loaded { head: head.head(), snapshot, tail }))
        })
    }

    pub(crate) fn rows(
        &self,
        stream: &StreamId,
        plane: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        if let Some(rebuilt) = self.rebuilt_if_outdated(stream)? {
            return Ok(rebuilt.page(plane, after, limit));
        }
        self.view(|view| {
            let Some(head) = view.head(stream)? else { return Ok(Vec::new()) };
            // An id may be empty, so "after nothing" can't be "after the empty id".
            let sql = if after.is_some() {
                "SELECT id, seq, value FROM rows WHERE stream = ?1 AND plane = ?2 AND id > ?3 ORDER BY id LIMIT ?4"
            } else {
                "SELECT id, seq, value FROM rows WHERE stream = ?1 AND plane = ?2 AND ?3 = '' ORDER BY id LIMIT ?4"
            };
            let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
            let key = (head.id, plane, after.unwrap_or(""), sql_limit(limit));
            let mut rows = statement.query(key).map_err(read_error)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(read_error)? {
                let id: String = row.get(0).map_err(read_error)?;
                let Some(value) = row.get_ref(2).ok().and_then(row_value) else {
                    let (stream, plane) = (stream.to_string(), plane.to_owned());
                    let what =
                        "its value is not JSON: `abide ledger verify --rebuild-rows` makes the rows again".to_owned();
                    return Err(ReadError::damaged(Damage::Row { stream, plane, id, what }));
                };
                found.push(Row { id, seq: row.get(1).map_err(read_error)?, value });
            }
            Ok(found)
        })
    }

    pub(crate) fn wakes(&self, due_by: Option<Time>, limit: usize) -> Result<Vec<(StreamId, Wake)>, ReadError> {
        // Two walks along the index, which is by due and then by stream: neither passes over what is not due.
        const AT_ONCE: &str = "SELECT s.name, w.due, w.why FROM wakes w CROSS JOIN streams s ON s.id = w.stream
            WHERE w.due IS NULL AND ?1 = ?1 ORDER BY w.stream LIMIT ?2";
        const BY_TIME: &str = "SELECT s.name, w.due, w.why FROM wakes w CROSS JOIN streams s ON s.id = w.stream
            WHERE w.due <= ?1 ORDER BY w.due, w.stream LIMIT ?2";
        self.view(|view| {
            let mut found = Vec::new();
            for sql in [AT_ONCE, BY_TIME] {
                let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
                let key = (due_by.unwrap_or(Time::MAX).as_ms(), sql_limit(limit - found.len()));
                let mut rows = statement.query(key).map_err(read_error)?;
                while let Some(row) = rows.next().map_err(read_error)? {
                    let due = row.get::<_, Option<i64>>(1).map_err(read_error)?.map(Time::from_ms);
                    found.push((stream_name(row, 0)?, Wake { due, why: row.get(2).map_err(read_error)? }));
                }
            }
            Ok(found)
        })
    }

    pub(crate) fn due(&self, after: Time, until: Time, limit: usize) -> Result<Vec<(StreamId, Time)>, ReadError> {
        const BETWEEN: &str = "SELECT s.name, w.due FROM wakes w CROSS JOIN streams s ON s.id = w.stream
            WHERE w.due > ?1 AND w.due <= ?2 ORDER BY w.due, w.stream LIMIT ?3";
        self.view(|view| {
            let mut statement = view.conn.prepare_cached(BETWEEN).map_err(read_error)?;
            let mut rows = statement.query((after.as_ms(), until.as_ms(), sql_limit(limit))).map_err(read_error)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(read_error)? {
                found.push((stream_name(row, 0)?, Time::from_ms(row.get(1).map_err(read_error)?)));
            }
            Ok(found)
        })
    }

    pub(crate) fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, CommitError> {
        if self.0.writing.is_none() {
            return Err(CommitError::ReadOnly);
        }
        self.0.store.blobs.put(Hash::of(bytes), bytes).map_err(io_refusal)
    }

    pub(crate) fn get_blob(&self, id: &BlobId) -> Result<Vec<u8>, ReadError> {
        self.0.store.blobs.get(id).map(|bytes| bytes.to_vec())
    }

    pub(crate) fn blob_ids(&self) -> Result<Vec<BlobId>, ReadError> {
        let list = self.0.store.blobs.list().map_err(|error| ReadError::Store { detail: error.to_string() })?;
        Ok(list.into_iter().map(|(id, _)| id).collect())
    }

    pub(crate) fn end(&self) -> watch::Receiver<u64> {
        self.0.end.subscribe()
    }

    /// False when opened to be read only.
    pub(crate) fn writes(&self) -> bool {
        self.0.writing.is_some()
    }

    /// Where the ledger ends now, also when another process writes it.
    pub(crate) fn cursor(&self) -> Result<Cursor, ReadError> {
        self.view(|view| view.end().map(Cursor))
    }
}

impl Writing {
    fn start(writer: Writer, lock: File, made: Option<Vec<PathBuf>>) -> std::io::Result<Writing> {
        let queue = Arc::new(Queue::default());
        let theirs = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("ledger".to_owned()).spawn(move || {
            let gone = Abandon(theirs);
            writer::run(writer, &gone.0);
        })?;
        Ok(Writing { queue, thread: Some(thread), lock, made, discard: AtomicBool::new(false) })
    }
}

/// However the writer ends, nobody waits for it in vain.
struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Readers first: the last connection to close puts the log away, and it should be the writer's.
        self.readers.get_mut().expect("the pool is never held across a panic").clear();
        if let Some(writing) = &mut self.writing {
            writing.queue.close();
            if let Some(thread) = writing.thread.take() {
                // A writer that panicked has said so on its own; its commits were answered by `Abandon`.
                let _ = thread.join();
            }
            if let Some(made) = &writing.made
                && *writing.discard.get_mut()
                && *self.end.borrow() == 0
            {
                self.store.home.remove(made);
            }
            // Not left to closing the file: a process that is being started right now still shares it for an instant.
            let _ = writing.lock.unlock();
        }
    }
}

/// The writer, on loan.
#[derive(Debug)]
struct Borrowed {
    writer: Option<Writer>,
    give: mpsc::Sender<Writer>,
}

impl std::ops::Deref for Borrowed {
    type Target = Writer;
    fn deref(&self) -> &Writer {
        self.writer.as_ref().expect("it is given back only when this is dropped")
    }
}

impl std::ops::DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("it is given back only when this is dropped")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // The writer's thread waits for exactly this, so it is there to take it.
            let _ = self.give.send(writer);
        }
    }
}

fn intact_snapshot(view: &View<'_>, stream: &StreamId, id: i64, fingerprint: &str) -> Option<Snapshot> {
    let sql = "SELECT seq, digest, state FROM snapshots WHERE stream = ? AND fingerprint = ? ORDER BY seq DESC";
    let mut statement = view.conn.prepare_cached(sql).ok()?;
    let mut rows = statement.query((id, fingerprint)).ok()?;
    // Whatever is wrong with a snapshot, the facts are still there: an error here means starting from further back.
    while let Ok(Some(row)) = rows.next() {
        let found = (row.get::<_, Seq>(0), row.get::<_, Vec<u8>>(1), row.get::<_, Vec<u8>>(2));
        if let (Ok(seq), Ok(digest), Ok(state)) = found
            && writer::snapshot_digest(id, seq, fingerprint, &state).0[..] == digest[..]
        {
            let fingerprint = fingerprint.to_owned();
            return Some(Snapshot { stream: stream.clone(), seq, fingerprint, state });
        }
    }
    None
}

/// A read row's value, as `set_row` stores it.
fn row_value(stored: ValueRef<'_>) -> Option<serde_json::Value> {
    pack::read_stored(stored.as_blob().ok()?).ok()
}

fn stream_name(row: &rusqlite::Row<'_>, column: usize) -> Result<StreamId, ReadError> {
    let name: String = row.get(column).map_err(read_error)?;
    name.parse()
        .map_err(|_| ReadError::damaged(Damage::Stream { stream: name, what: "its name is not a stream's".to_owned() }))
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn io_refusal(error: std::io::Error) -> CommitError {
    let detail = format!("blob: {error}");
    if matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
        CommitError::StoreFull { detail }
    } else {
        CommitError::Store { detail }
    }
}
