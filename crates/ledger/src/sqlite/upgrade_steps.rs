//! The numbered steps that make a database what it is today.
//!
//! A new database takes all of them, an older one those that it lacks, in one transaction: there is no other path to a
//! table, so an upgraded home cannot differ from a new one. `user_version` is the number of the last step.
//!
//! To change the tables, add a step at the end. A step that was released is never edited or removed, and the first one is
//! the oldest format that can still be opened. Add a home written by the version before to `tests/fixtures/homes`.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::versions::{self, Version};
use crate::program::{Program, Upgraded};

pub(crate) struct UpgradeStep {
    pub number: i64,
    /// Runs inside the upgrade's transaction, and must not commit.
    pub run: fn(&Connection) -> rusqlite::Result<()>,
}

pub(crate) const STEPS: &[UpgradeStep] = &[
    UpgradeStep { number: 2, run: tables_of_format_2 },
    UpgradeStep { number: 3, run: versions_and_outdated_rows },
    UpgradeStep { number: 4, run: row_checksums },
];

/// The number of the last step.
pub(crate) const FORMAT: i64 = STEPS[STEPS.len() - 1].number;
/// Databases of this format and later can be upgraded.
pub(crate) const OLDEST_FORMAT: i64 = STEPS[0].number;

fn tables_of_format_2(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        // `born` is the rowid of the stream's own first fact; `fork_fact` that of the parent's fact at `fork_seq`.
        // `facts.link` is all that is looked at only when the whole fact is (see `fact::Link`): a column costs as much
        // to write and to read as fifty bytes do. Facts `first` to `last` of a segment, by rowid, are in its file. The
        // table of redactions says a second time that a payload was cut out, so that damage can't pass for it.
        "CREATE TABLE kinds (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
         CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, born INTEGER NOT NULL, parent INTEGER, fork_seq INTEGER NOT NULL, fork_fact INTEGER NOT NULL, digest BLOB NOT NULL);
         CREATE TABLE heads (stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL, fact INTEGER NOT NULL);
         CREATE TABLE facts (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, link BLOB NOT NULL, payload BLOB NOT NULL);
         CREATE TABLE marks (stream INTEGER NOT NULL, seq INTEGER NOT NULL, fact INTEGER NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
         CREATE TABLE rows (stream INTEGER NOT NULL, plane TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (stream, plane, id)) WITHOUT ROWID;
         CREATE TABLE wakes (stream INTEGER PRIMARY KEY, due INTEGER, why TEXT NOT NULL, digest BLOB NOT NULL);
         CREATE INDEX wakes_by_due ON wakes (due);
         CREATE TABLE snapshots (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, fingerprint TEXT NOT NULL, digest BLOB NOT NULL, state BLOB NOT NULL);
         CREATE INDEX snapshots_by_stream ON snapshots (stream, seq);
         CREATE TABLE segments (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, file TEXT NOT NULL, digest BLOB NOT NULL);
         CREATE TABLE redactions (stream INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;",
    )
}

/// Until here nothing recorded which version of the program made the read rows: the fingerprint stays empty, so they are
/// rebuilt.
fn versions_and_outdated_rows(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        // `error` says why the rows of a stream could not be rebuilt.
        "CREATE TABLE versions (name TEXT PRIMARY KEY, number INTEGER NOT NULL, text TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
         CREATE TABLE outdated_rows (stream INTEGER PRIMARY KEY, error TEXT);",
    )
}

/// Until here nothing vouched for what a read row says. Rows that have no checksum are rebuilt, so that every row that is
/// served has one.
fn row_checksums(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "ALTER TABLE rows ADD COLUMN checksum INTEGER;
         INSERT OR IGNORE INTO outdated_rows (stream) SELECT id FROM streams;",
    )
}

/// Takes the steps that the database lacks, all or none. `None` where it lacks none.
pub(crate) fn upgrade(
    conn: &mut Connection,
    steps: &[UpgradeStep],
    program: &Program,
) -> Result<Option<Upgraded>, rusqlite::Error> {
    let upgrade = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = user_version(&upgrade)?;
    let missing = || steps.iter().filter(|step| step.number > from);
    let Some(to) = missing().next_back().map(|step| step.number) else { return Ok(None) };
    for step in missing() {
        (step.run)(&upgrade)?;
    }
    versions::set(&upgrade, versions::FORMAT, to, program.version)?;
    let known: Option<Version> = versions::read(&upgrade, versions::OLDEST_READER).optional()?;
    if known.is_none() {
        versions::set(&upgrade, versions::OLDEST_READER, 1, program.version)?;
        // A new database has no row that another version made.
        let fingerprint = program.rows.filter(|_| from == 0).map_or("", |rows| rows.fingerprint);
        versions::set(&upgrade, versions::ROWS, 0, fingerprint)?;
    }
    upgrade.pragma_update(None, "user_version", to)?;
    upgrade.commit()?;
    Ok(Some(Upgraded { from, to }))
}

pub(crate) fn user_version(conn: &Connection) -> Result<i64, rusqlite::Error> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops where it fails")]
mod tests {
    use std::cell::RefCell;
    use std::path::{Path, PathBuf};

    use super::*;

    thread_local! {
        /// The home that is being upgraded, and where to copy it in the middle.
        static CUT_OFF: RefCell<Option<(PathBuf, PathBuf)>> = const { RefCell::new(None) };
    }

    fn old_database(folder: &Path) -> Connection {
        let conn = Connection::open(folder.join("ledger.db")).unwrap();
        conn.execute_batch("PRAGMA journal_mode = WAL").unwrap();
        tables_of_format_2(&conn).unwrap();
        conn.execute_batch("INSERT INTO kinds (name) VALUES ('Said'); PRAGMA user_version = 2").unwrap();
        conn
    }

    /// The format, the tables, and the kinds.
    fn found(conn: &Connection) -> (i64, Vec<String>, Vec<String>) {
        let texts = |sql: &str| -> Vec<String> {
            conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
        };
        let tables = texts("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
        (user_version(conn).unwrap(), tables, texts("SELECT name FROM kinds"))
    }

    /// More than the cache holds, so that pages of the unfinished upgrade are in the log.
    fn large(conn: &Connection) -> rusqlite::Result<()> {
        conn.execute_batch(
            "PRAGMA cache_size = 10; CREATE TABLE large (id INTEGER PRIMARY KEY, bytes BLOB);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             INSERT INTO large SELECT i, zeroblob(4000) FROM n; DELETE FROM kinds",
        )
    }

    fn fails(conn: &Connection) -> rusqlite::Result<()> {
        conn.execute_batch("CREATE TABLE kinds (id)")
    }

    /// Copies the home, as a process that is killed here would leave it on disk.
    fn copies_the_home(conn: &Connection) -> rusqlite::Result<()> {
        assert!(!conn.is_autocommit());
        CUT_OFF.with_borrow(|folders| {
            let (from, to) = folders.as_ref().unwrap();
            for file in ["ledger.db", "ledger.db-wal"] {
                std::fs::copy(from.join(file), to.join(file)).unwrap();
            }
        });
        Ok(())
    }

    #[test]
    fn steps_are_in_order() {
        assert!(STEPS.is_sorted_by(|one, next| one.number + 1 == next.number));
    }

    #[test]
    fn a_step_that_fails_undoes_those_before_it() {
        let home = tempfile::tempdir().unwrap();
        let mut conn = old_database(home.path());
        let before = found(&conn);
        let versions = UpgradeStep { number: 3, run: versions_and_outdated_rows };
        let steps = [versions, UpgradeStep { number: 4, run: large }, UpgradeStep { number: 5, run: fails }];
        upgrade(&mut conn, &steps, &Program::default()).unwrap_err();
        assert_eq!(found(&conn), before);
        let upgraded = upgrade(&mut conn, &steps[..2], &Program::default()).unwrap();
        assert_eq!(upgraded, Some(Upgraded { from: 2, to: 4 }));
        assert_eq!(upgrade(&mut conn, &steps[..2], &Program::default()).unwrap(), None);
    }

    #[test]
    fn a_process_killed_between_two_steps_leaves_the_old_home() {
        let (home, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut conn = old_database(home.path());
        let before = found(&conn);
        CUT_OFF.set(Some((home.path().to_owned(), copy.path().to_owned())));
        let versions = UpgradeStep { number: 3, run: versions_and_outdated_rows };
        let steps = [versions, UpgradeStep { number: 4, run: large }, UpgradeStep { number: 5, run: copies_the_home }];
        upgrade(&mut conn, &steps, &Program::default()).unwrap();
        assert_eq!(found(&conn).0, 5);
        let written = std::fs::metadata(copy.path().join("ledger.db-wal")).unwrap().len();
        assert!(written > 1_000_000, "only {written} bytes of the unfinished upgrade were on disk");
        let left = Connection::open(copy.path().join("ledger.db")).unwrap();
        assert_eq!(found(&left), before);
    }
}
