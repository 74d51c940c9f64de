//! The tables, and how a connection to them is set up.
//!
//! Facts are appended by rowid, in commit order, and carry no index entry each: an index on (stream, seq) halves the
//! speed of appending, clustering by it takes four fifths. Instead a fact points back to the one before it in its
//! stream, every 64th fact of a stream has a mark, and a stream's head says where it ends. Nothing reuses or skips a
//! rowid, so a rowid is also the cursor of `follow` and the number of facts so far.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use abide_private::{Existing, open_private};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::home::sync_folder;
use crate::error::OpenError;

/// "abid" in ASCII: tells our files from any other SQLite database.
pub(crate) const APPLICATION_ID: i64 = 0x6162_6964;
pub(crate) const FORMAT: i64 = 2;
/// Earlier ones can corrupt a write-ahead log when a reset meets a checkpoint.
const OLDEST_SQLITE: (i32, &str) = (3_051_003, "3.51.3");

/// How far apart the marks of one stream are.
pub(crate) const MARK_EVERY: u64 = 64;

/// Each as `sqlite_schema` repeats it, so that a damaged schema shows by comparison.
pub(crate) const TABLES: &[&str] = &[
    "CREATE TABLE kinds (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    // `born` is the rowid of the stream's own first fact; `fork_fact` that of the parent's fact at `fork_seq`.
    "CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, born INTEGER NOT NULL, parent INTEGER, fork_seq INTEGER NOT NULL, fork_fact INTEGER NOT NULL, digest BLOB NOT NULL)",
    "CREATE TABLE heads (stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL, fact INTEGER NOT NULL)",
    // `link` is all that is looked at only when the whole fact is (see `fact::Link`): a column costs as much to write
    // and to read as fifty bytes do.
    "CREATE TABLE facts (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, link BLOB NOT NULL, payload BLOB NOT NULL)",
    "CREATE TABLE marks (stream INTEGER NOT NULL, seq INTEGER NOT NULL, fact INTEGER NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID",
    "CREATE TABLE rows (stream INTEGER NOT NULL, plane TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (stream, plane, id)) WITHOUT ROWID",
    "CREATE TABLE wakes (stream INTEGER PRIMARY KEY, due INTEGER, why TEXT NOT NULL, digest BLOB NOT NULL)",
    "CREATE INDEX wakes_by_due ON wakes (due)",
    "CREATE TABLE snapshots (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, fingerprint TEXT NOT NULL, digest BLOB NOT NULL, state BLOB NOT NULL)",
    "CREATE INDEX snapshots_by_stream ON snapshots (stream, seq)",
    // Facts `first` to `last`, by rowid, are in the file.
    "CREATE TABLE segments (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, file TEXT NOT NULL, digest BLOB NOT NULL)",
    // Says twice that a payload was cut out, so that damage can't pass for it.
    "CREATE TABLE redactions (stream INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID",
];

pub(crate) fn require_sqlite() -> Result<(), OpenError> {
    let (oldest, needed) = OLDEST_SQLITE;
    if rusqlite::version_number() < oldest {
        return Err(OpenError::OldSqlite { found: rusqlite::version(), needed });
    }
    Ok(())
}

/// Makes an empty ledger, under another name until it is whole: so a file that is there is a ledger or was one, and
/// never one that was interrupted in the making.
pub(crate) fn create(file: &Path, page_size: u32) -> Result<(), OpenError> {
    let unfinished = file.with_extension("db-new");
    let fail = |error| open_error(&unfinished, error);
    let io = |source| OpenError::Io { path: file.to_owned(), source };
    remove_database(&unfinished).map_err(io)?;
    // A log whose database is gone would be taken for one of the new database.
    remove(file, &["-wal", "-shm"]).map_err(io)?;
    // SQLite would make it with the mask's mode. Its log takes the mode that it finds here.
    open_private(&unfinished, Existing::Refuse).map_err(io)?;
    let conn = connect(&unfinished, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
    let tables = TABLES.join(";");
    conn.execute_batch(&format!(
        "PRAGMA page_size = {page_size}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; {tables}; COMMIT;
         PRAGMA wal_checkpoint(TRUNCATE);"
    ))
    .map_err(fail)?;
    // The last connection to close puts the log away.
    conn.close().map_err(|(_, error)| fail(error))?;
    File::open(&unfinished).and_then(|new| new.sync_all()).map_err(io)?;
    fs::rename(&unfinished, file).map_err(io)?;
    sync_folder(file.parent().unwrap_or(Path::new("."))).map_err(io)
}

/// Takes away a database and its log, whatever of them is there.
pub(crate) fn remove_database(file: &Path) -> io::Result<()> {
    remove(file, &["", "-wal", "-shm"])
}

fn remove(file: &Path, suffixes: &[&str]) -> io::Result<()> {
    for suffix in suffixes {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Something has to be in it: what is empty lost its content, and must not begin anew as if nothing had been there.
pub(crate) fn require_content(file: &Path) -> Result<(), OpenError> {
    match fs::metadata(file) {
        Ok(found) if found.len() == 0 => Err(OpenError::Empty { file: file.to_owned() }),
        Ok(_) => Ok(()),
        Err(source) => Err(OpenError::Io { path: file.to_owned(), source }),
    }
}

/// The writing connection.
pub(crate) fn open_writer(file: &Path) -> Result<Connection, OpenError> {
    let fail = |error| open_error(file, error);
    let conn = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA foreign_keys = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -65536;",
    )
    .map_err(fail)?;
    require_ours(&conn, file)?;
    Ok(conn)
}

/// How a ledger is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Somebody writes it, or did and was cut off: the log is not ours to touch.
    Beside,
    /// There was no log. Reading makes one, and only a connection that could write takes it away again when it closes.
    Alone,
}

impl Reading {
    pub(crate) fn of(file: &Path) -> Reading {
        if file.with_extension("db-wal").exists() { Reading::Beside } else { Reading::Alone }
    }
}

pub(crate) fn open_reader(file: &Path, reading: Reading) -> Result<Connection, rusqlite::Error> {
    let conn = connect(
        file,
        match reading {
            Reading::Beside => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Reading::Alone => OpenFlags::SQLITE_OPEN_READ_WRITE,
        },
    )?;
    conn.execute_batch("PRAGMA cache_size = -16384; PRAGMA query_only = ON")?;
    Ok(conn)
}

fn connect(file: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let conn = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // Only a checkpoint that empties the log ever waits, for readers to finish, or holds them off for an instant.
    conn.busy_timeout(std::time::Duration::from_secs(10))?;
    keep_plans(&conn)?;
    Ok(conn)
}

/// Prepares a statement once: without the guarantee SQLite plans anew when a bound value changes, for plans that here
/// are always the same.
fn keep_plans(conn: &Connection) -> Result<(), rusqlite::Error> {
    conn.set_prepared_statement_cache_capacity(64);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

/// Refuses what is not a ledger of this format, before anything is read from it.
pub(crate) fn require_ours(conn: &Connection, file: &Path) -> Result<(), OpenError> {
    let fail = |error| open_error(file, error);
    let id: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(fail)?;
    if id != APPLICATION_ID {
        let detail = format!("its application id is {id:#x}");
        return Err(OpenError::NotALedger { file: file.to_owned(), detail });
    }
    let found: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fail)?;
    if found != FORMAT {
        return Err(OpenError::Format { file: file.to_owned(), found, known: FORMAT });
    }
    let differs = schema_differences(conn).map_err(fail)?;
    match differs.into_iter().next() {
        Some(detail) => Err(OpenError::NotALedger { file: file.to_owned(), detail }),
        None => Ok(()),
    }
}

pub(crate) fn schema_differences(conn: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = conn.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
    let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let missing = TABLES.iter().filter(|table| !found.iter().any(|other| other == *table));
    let mut differs: Vec<String> = missing.map(|table| format!("the schema lacks: {table}")).collect();
    if found.len() > TABLES.len() {
        differs.push("the schema has tables that are not ours".to_owned());
    }
    Ok(differs)
}

pub(crate) fn open_error(file: &Path, error: rusqlite::Error) -> OpenError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let detail = error.to_string();
    let file = file.to_owned();
    match (error.sqlite_error_code(), cut_short(&file)) {
        (Some(DatabaseCorrupt | NotADatabase), Some((found, wanted))) => OpenError::Short { file, found, wanted },
        (Some(DatabaseCorrupt | NotADatabase), None) => OpenError::NotALedger { file, detail },
        (Some(_) | None, _) => OpenError::Store { file, detail },
    }
}

/// How long a database is and how long its first page says it is, where that is more. Asked only when it could not be
/// read: after a checkpoint that was cut off the log makes up for what is missing.
fn cut_short(file: &Path) -> Option<(u64, u64)> {
    let mut file = File::open(file).ok()?;
    let mut header = [0; 32];
    file.read_exact(&mut header).ok()?;
    let [.., a, b, c, d] = header;
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let (found, wanted) = (file.metadata().ok()?.len(), page_size * u64::from(u32::from_be_bytes([a, b, c, d])));
    (header.starts_with(b"SQLite format 3\0") && found < wanted).then_some((found, wanted))
}
