//! Connections: how the database file is created, opened and recognised, with the settings (PRAGMAs) of the writer and the
//! readers. Its tables are made in `upgrade_steps.rs`.
//!
//! Facts are appended by rowid, in commit order, and carry no index entry each: an index on (stream, seq) halves the
//! speed of appending, clustering by it takes four fifths. Instead a fact points back to the one before it in its
//! stream, every 64th fact of a stream has a mark, and a stream's head says where it ends. Nothing reuses or skips a
//! rowid, so a rowid is also the cursor of `follow` and the number of facts so far.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use abide_private::{Existing, open_private};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::home::sync_folder;
use super::upgrade_steps::{self, FORMAT, OLDEST_FORMAT, STEPS, user_version};
use super::versions;
use crate::error::OpenError;
use crate::program::{Program, Upgraded};

/// "abid" in ASCII: tells our files from any other SQLite database.
pub(crate) const APPLICATION_ID: i64 = 0x6162_6964;
/// Earlier ones can corrupt a write-ahead log when a reset meets a checkpoint.
const OLDEST_SQLITE: (i32, &str) = (3_051_003, "3.51.3");

/// How far apart the marks of one stream are.
pub(crate) const MARK_EVERY: u64 = 64;

pub(crate) fn require_sqlite() -> Result<(), OpenError> {
    let (oldest, needed) = OLDEST_SQLITE;
    if rusqlite::version_number() < oldest {
        return Err(OpenError::OldSqlite { found: rusqlite::version(), needed });
    }
    Ok(())
}

/// Makes an empty ledger, under another name until it is whole: so a file that is there is a ledger or was one, and
/// never one that was interrupted in the making.
pub(crate) fn create(file: &Path, page_size: u32, program: &Program) -> Result<(), OpenError> {
    let unfinished = file.with_extension("db-new");
    let fail = |error| open_error(&unfinished, error);
    let io = |source| OpenError::Io { path: file.to_owned(), source };
    remove_database(&unfinished).map_err(io)?;
    // A log whose database is gone would be taken for one of the new database.
    remove(file, &["-wal", "-shm"]).map_err(io)?;
    // SQLite would make it with the mask's mode. Its log takes the mode that it finds here.
    open_private(&unfinished, Existing::Refuse).map_err(io)?;
    let mut conn = connect(&unfinished, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
    conn.execute_batch(&format!(
        "PRAGMA page_size = {page_size}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA application_id = {APPLICATION_ID};"
    ))
    .map_err(fail)?;
    upgrade_steps::upgrade(&mut conn, STEPS, program).map_err(fail)?;
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").map_err(fail)?;
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

/// The writing connection, to a database that has every table of today's: an older one is upgraded first.
pub(crate) fn open_writer(file: &Path, program: &Program) -> Result<(Connection, Option<Upgraded>), OpenError> {
    let fail = |error| open_error(file, error);
    let mut conn = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA foreign_keys = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -65536;",
    )
    .map_err(fail)?;
    let format = require_known(&conn, file, program)?;
    let upgraded = upgrade_steps::upgrade(&mut conn, STEPS, program).map_err(|error| {
        let (file, detail) = (file.to_owned(), error.to_string());
        OpenError::NotUpgraded { file, from: format, to: FORMAT, detail }
    })?;
    Ok((conn, upgraded))
}

/// How a ledger is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Somebody writes it, or did and was cut off: the log is not ours to touch.
    Beside,
    /// There was no log. ReadMode makes one, and only a connection that could write takes it away again when it closes.
    Alone,
}

impl ReadMode {
    pub(crate) fn of(file: &Path) -> ReadMode {
        if file.with_extension("db-wal").exists() { ReadMode::Beside } else { ReadMode::Alone }
    }
}

pub(crate) fn open_reader(file: &Path, reading: ReadMode) -> Result<Connection, rusqlite::Error> {
    let conn = connect(
        file,
        match reading {
            ReadMode::Beside => OpenFlags::SQLITE_OPEN_READ_ONLY,
            ReadMode::Alone => OpenFlags::SQLITE_OPEN_READ_WRITE,
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

/// Refuses a database that does not have today's tables, before anything is read from it.
pub(crate) fn require_ours(conn: &Connection, file: &Path, program: &Program) -> Result<(), OpenError> {
    match require_known(conn, file, program)? {
        FORMAT => Ok(()),
        found => Err(OpenError::Outdated { file: file.to_owned(), found, known: FORMAT }),
    }
}

/// Refuses a database that this program can neither read nor upgrade, and says its format.
fn require_known(conn: &Connection, file: &Path, program: &Program) -> Result<i64, OpenError> {
    let fail = |error| open_error(file, error);
    let id: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(fail)?;
    if id != APPLICATION_ID {
        let detail = format!("its application id is {id:#x}");
        return Err(OpenError::NotALedger { file: file.to_owned(), detail });
    }
    let found = user_version(conn).map_err(fail)?;
    if found > FORMAT {
        // A later format still has this entry. Without it there is no version to name.
        let wrote = versions::read(conn, versions::FORMAT).ok().filter(|wrote| wrote.intact).map(|wrote| wrote.text);
        let (file, version) = (file.to_owned(), program.version);
        return Err(OpenError::Newer { file, found, known: FORMAT, version, wrote });
    }
    if found < OLDEST_FORMAT {
        return Err(OpenError::TooOld { file: file.to_owned(), found, oldest: OLDEST_FORMAT });
    }
    let differs = schema_differences(conn, found).map_err(fail)?;
    if let Some(detail) = differs.into_iter().next() {
        return Err(OpenError::NotALedger { file: file.to_owned(), detail });
    }
    require_reader(conn, file, program)?;
    Ok(found)
}

/// Refuses a database that holds a fact which this program can't decode. A damaged entry refuses nothing: `verify` names
/// it, and an unknown fact is never skipped when it is read.
fn require_reader(conn: &Connection, file: &Path, program: &Program) -> Result<(), OpenError> {
    match versions::read(conn, versions::OLDEST_READER) {
        Ok(oldest) if oldest.intact && oldest.number > i64::from(program.reader) => Err(OpenError::NewerFacts {
            file: file.to_owned(),
            needs: oldest.number,
            knows: program.reader,
            version: program.version,
            wrote: oldest.text,
        }),
        // A format before the one that brought the table has facts of the first reader only.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// One entry of `sqlite_schema`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kind: String,
    name: String,
    table: String,
    sql: String,
}

/// The entries that the steps up to `format` lack or have in another form, and those that could change what our
/// statements do: a trigger or an index on a table of ours. A table that somebody else added is left alone.
pub(crate) fn schema_differences(conn: &Connection, format: i64) -> Result<Vec<String>, rusqlite::Error> {
    let found = entries(conn)?;
    let ours = expected_entries(format)?;
    let missing = ours.iter().filter(|ours| !found.contains(ours));
    let mut differs: Vec<String> = missing.map(|ours| format!("the schema lacks: {}", ours.sql)).collect();
    let is_ours = |table: &str| ours.iter().any(|ours| ours.table.eq_ignore_ascii_case(table));
    for Entry { kind, name, table, .. } in found.iter().filter(|found| is_ours(&found.table) && !ours.contains(found)) {
        differs.push(format!("the schema has the {kind} {name} on {table}, which is not ours"));
    }
    Ok(differs)
}

fn entries(conn: &Connection) -> Result<Vec<Entry>, rusqlite::Error> {
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
    let mut statement = conn.prepare(sql)?;
    let entry = |row: &rusqlite::Row<'_>| {
        Ok(Entry { kind: row.get(0)?, name: row.get(1)?, table: row.get(2)?, sql: row.get(3)? })
    };
    statement.query_map([], entry)?.collect()
}

/// The schema as SQLite itself repeats it after the steps up to `format`.
fn expected_entries(format: i64) -> Result<Vec<Entry>, rusqlite::Error> {
    static TODAY: OnceLock<Vec<Entry>> = OnceLock::new();
    if let Some(today) = TODAY.get().filter(|_| format == FORMAT) {
        return Ok(today.clone());
    }
    let conn = Connection::open_in_memory()?;
    for step in STEPS.iter().filter(|step| step.number <= format) {
        (step.run)(&conn)?;
    }
    let expected = entries(&conn)?;
    if format == FORMAT {
        return Ok(TODAY.get_or_init(|| expected).clone());
    }
    Ok(expected)
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
