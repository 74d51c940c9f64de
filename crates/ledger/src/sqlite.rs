//! The ledger on disk: one SQLite database, its archive and its blobs in one home.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use abide_kernel::id::Seq;
use abide_kernel::time::Time;
use rusqlite::Connection;
use tokio::sync::watch;

use crate::commit::{Commit, Wake};
use crate::error::{CommitError, Damage, OpenError, ReadError};
use crate::hash::{BlobId, Hash};
use crate::prepared::{Body, Prepared};
use crate::program::{OldestReader, Program, Upgraded};
use crate::receipt::Receipt;
use crate::record::{Bounds, Cursor, Head, INLINE_LIMIT, Loaded, Recorded, Snapshot};
use crate::stream::StreamId;
use crate::{Mode, Options};

mod archive;
mod blobs;
mod connection;
mod fact;
mod follow;
mod heads;
mod history;
mod home;
mod import;
mod lineages;
mod outdated;
mod queue;
mod read_rows;
mod rebuild;
mod redact;
mod row;
mod segment;
mod status;
mod upgrade_steps;
mod verify;
mod versions;
mod write_failure;
mod writer;

use connection::ReadMode;
use fact::{Link, Store, read_error};
use history::View;
use home::Home;
use queue::{Job, Queue};
use status::Status;
use writer::Writer;

/// ReadMode connections kept open between reads. More are opened when more threads read at once.
const READERS_KEPT: usize = 4;

/// A cheap handle; clones share one ledger. When the last is dropped, what was queued is committed and all is closed.
#[derive(Debug, Clone)]
pub struct Sqlite(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    readers: Mutex<Vec<Connection>>,
    reading: ReadMode,
    status: Arc<Status>,
    writing: Option<WriterHandle>,
    redactions: AtomicU64,
    program: Program,
    upgraded: Option<Upgraded>,
}

#[derive(Debug)]
struct WriterHandle {
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
        connection::require_sqlite()?;
        let home = Home::new(root);
        let file = home.database();
        let status = Arc::new(Status::default());
        let store = Arc::new(Store::new(home));
        let program = options.program;
        let mut upgraded = None;
        let (writing, reading) = match options.mode {
            Mode::ReadWrite => {
                let made = store.home.create()?;
                let lock = store.home.lock()?;
                // A link whose target is not there now is no reason to begin anew.
                let new = std::fs::symlink_metadata(&file).is_err_and(|error| error.kind() == ErrorKind::NotFound);
                if new {
                    connection::create(&file, options.page_size, &program)?;
                }
                connection::require_content(&file)?;
                let conn;
                (conn, upgraded) = connection::open_writer(&file, &program)?;
                let unusable =
                    |error: CommitError| OpenError::NotALedger { file: file.clone(), detail: error.to_string() };
                let mut writer =
                    Writer::new(conn, Arc::clone(&store), Arc::clone(&status), program).map_err(unusable)?;
                outdated::mark(&mut writer)
                    .map_err(|error| OpenError::Store { file: file.clone(), detail: error.to_string() })?;
                let started = WriterHandle::start(writer, lock, new.then_some(made));
                let writing = started.map_err(|source| OpenError::Io { path: root.to_owned(), source })?;
                (Some(writing), ReadMode::Beside)
            }
            Mode::ReadOnly if !file.exists() => return Err(OpenError::Missing { home: root.to_owned() }),
            Mode::ReadOnly => {
                connection::require_content(&file)?;
                (None, ReadMode::of(&file))
            }
        };
        let reader = connection::open_reader(&file, reading).map_err(|error| connection::open_error(&file, error))?;
        connection::require_ours(&reader, &file, &program)?;
        let (readers, redactions) = (Mutex::new(vec![reader]), AtomicU64::new(0));
        let shared = Shared { store, readers, reading, status, writing, redactions, program, upgraded };
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
        let prepared = match Prepared::new(commit, &self.0.program) {
            Ok(prepared) => prepared,
            Err(refusal) => return Receipt::ready(Err(refusal)),
        };
        if let Err(refusal) = self.put_payloads(&prepared) {
            self.0.status.write_failure.note(&refusal);
            return Receipt::ready(Err(refusal));
        }
        let (answer, receipt) = Receipt::waiting();
        writing.queue.push(Job::Commit { prepared, answer });
        receipt
    }

    fn put_payloads(&self, prepared: &Prepared) -> Result<(), CommitError> {
        for fact in prepared.appends.iter().flat_map(|append| &append.facts) {
            if let Body::Stored(bytes) = &fact.body
                && bytes.len() > INLINE_LIMIT
            {
                self.0.store.blobs.put(fact.digest, bytes)?;
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
            None => connection::open_reader(&self.0.store.home.database(), self.0.reading).map_err(read_error)?,
        };
        // Prepared once per connection, as all else a read asks. A connection that leaves here early is dropped, and its
        // transaction with it.
        let execute = |sql: &str| conn.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        execute("BEGIN").map_err(read_error)?;
        let result = View::new(&conn, &self.0.store).and_then(|view| read(&view));
        let result = result.map_err(|error| error.of_database(&self.0.store.home.database()));
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

    pub(crate) fn read(&self, stream: &StreamId, after: Seq, bounds: Bounds) -> Result<Vec<Recorded>, ReadError> {
        self.view(|view| match view.head(stream)? {
            Some(head) => view.read(stream, &head, after, bounds),
            None => Ok(Vec::new()),
        })
    }

    pub(crate) fn load(&self, stream: &StreamId, fingerprint: &str) -> Result<Option<Loaded>, ReadError> {
        self.view(|view| {
            let Some(head) = view.head(stream)? else { return Ok(None) };
            let snapshot =
                intact_snapshot(view, stream, head.id, fingerprint).filter(|snapshot| snapshot.seq <= head.seq);
            let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
            let tail = view.read(stream, &head, after, Bounds::TAIL)?;
            Ok(Some(Loaded { head: head.head(), snapshot, tail }))
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

    pub(crate) fn wakes_because(&self, why: &str) -> Result<Vec<StreamId>, ReadError> {
        const BECAUSE: &str = "SELECT s.name FROM wakes w CROSS JOIN streams s ON s.id = w.stream
            WHERE w.why = ?1 ORDER BY w.due, w.stream";
        self.view(|view| {
            let mut statement = view.conn.prepare_cached(BECAUSE).map_err(read_error)?;
            let mut rows = statement.query([why]).map_err(read_error)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(read_error)? {
                found.push(stream_name(row, 0)?);
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

    pub(crate) fn waits_recorded_after(&self, now: Time) -> Result<Vec<StreamId>, ReadError> {
        const LAST_FACTS: &str = "SELECT s.name, f.link FROM wakes w CROSS JOIN streams s ON s.id = w.stream
            CROSS JOIN heads h ON h.stream = w.stream CROSS JOIN facts f ON f.id = h.fact
            WHERE w.due IS NOT NULL ORDER BY w.stream";
        self.view(|view| {
            let mut statement = view.conn.prepare_cached(LAST_FACTS).map_err(read_error)?;
            let mut rows = statement.query([]).map_err(read_error)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(read_error)? {
                // An invalid link is found when the stream is read.
                let link = row.get_ref(1).map_err(read_error)?.as_blob().ok().and_then(Link::decode);
                if link.is_some_and(|link| link.at > now) {
                    found.push(stream_name(row, 0)?);
                }
            }
            Ok(found)
        })
    }

    pub(crate) fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, CommitError> {
        if self.0.writing.is_none() {
            return Err(CommitError::ReadOnly);
        }
        let put = self.0.store.blobs.put(Hash::of(bytes), bytes);
        put.inspect_err(|refusal| self.0.status.write_failure.note(refusal))
    }

    pub(crate) fn get_blob(&self, id: &BlobId) -> Result<Vec<u8>, ReadError> {
        self.0.store.blobs.get(id).map(|bytes| bytes.to_vec())
    }

    pub(crate) fn blob_ids(&self) -> Result<Vec<BlobId>, ReadError> {
        let list = self.0.store.blobs.list().map_err(|error| ReadError::Store { detail: error.to_string() })?;
        Ok(list.into_iter().map(|(id, _)| id).collect())
    }

    pub(crate) fn end(&self) -> watch::Receiver<u64> {
        self.0.status.end.subscribe()
    }

    pub(crate) fn damaged_rows(&self) -> u64 {
        self.0.status.damaged_rows.load(Ordering::Relaxed)
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

impl WriterHandle {
    fn start(writer: Writer, lock: File, made: Option<Vec<PathBuf>>) -> std::io::Result<WriterHandle> {
        let queue = Arc::new(Queue::default());
        let theirs = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("ledger".to_owned()).spawn(move || {
            let gone = AbandonOnDrop(theirs);
            writer::run(writer, &gone.0);
        })?;
        Ok(WriterHandle { queue, thread: Some(thread), lock, made, discard: AtomicBool::new(false) })
    }
}

/// However the writer ends, nobody waits for it in vain.
struct AbandonOnDrop(Arc<Queue>);

impl Drop for AbandonOnDrop {
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
                // A writer that panicked has said so on its own; its commits were answered by `AbandonOnDrop`.
                let _ = thread.join();
            }
            if let Some(made) = &writing.made
                && *writing.discard.get_mut()
                && *self.status.end.borrow() == 0
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
    // If a snapshot is damaged in any way, the facts are still there: an error here means starting from further back.
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

fn stream_name(row: &rusqlite::Row<'_>, column: usize) -> Result<StreamId, ReadError> {
    let name: String = row.get(column).map_err(read_error)?;
    name.parse()
        .map_err(|_| ReadError::damaged(Damage::Stream { stream: name, what: "its name is not a stream's".to_owned() }))
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
