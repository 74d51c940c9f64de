//! The table of versions: the format, the oldest reader, and the fingerprint of the read rows.
//!
//! Programs that are older than the database read this table to say which version to use instead of themselves. Its
//! columns and the names below must stay as they are in every later format.

use rusqlite::Connection;

use super::upgrade_steps;
use crate::hash::Hash;
use crate::program::Program;

/// The number of the last step, and the program version that took it.
pub(crate) const FORMAT: &str = "format";
/// The oldest reader that can read every fact, and the program version that raised it.
pub(crate) const OLDEST_READER: &str = "oldest_reader";
/// As text, the fingerprint of the function that made the read rows of every stream that is not in `outdated_rows`.
pub(crate) const ROWS: &str = "rows";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub number: i64,
    pub text: String,
    /// False where the entry is not what was written.
    pub intact: bool,
}

pub(crate) fn read(conn: &Connection, name: &str) -> rusqlite::Result<Version> {
    let sql = "SELECT number, text, digest FROM versions WHERE name = ?";
    conn.prepare_cached(sql)?.query_row([name], |row| {
        let (number, text, stored): (i64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let intact = digest(name, number, &text).0[..] == stored[..];
        Ok(Version { number, text, intact })
    })
}

pub(crate) fn set(conn: &Connection, name: &str, number: i64, text: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO versions (name, number, text, digest) VALUES (?, ?, ?, ?)
        ON CONFLICT (name) DO UPDATE SET number = excluded.number, text = excluded.text, digest = excluded.digest";
    conn.prepare_cached(sql)?.execute((name, number, text, &digest(name, number, text).0[..])).map(|_| ())
}

/// Writes again the entries that are damaged. Nobody can tell which reader a damaged one named: this program's own reads
/// every fact that it has read so far.
pub(crate) fn repair_versions(conn: &Connection, program: &Program) -> rusqlite::Result<()> {
    for (name, number) in [(FORMAT, upgrade_steps::FORMAT), (OLDEST_READER, i64::from(program.reader))] {
        if !read(conn, name).is_ok_and(|found| found.intact) {
            set(conn, name, number, program.version)?;
        }
    }
    if !read(conn, ROWS).is_ok_and(|found| found.intact) {
        set(conn, ROWS, 0, program.rows.map_or("", |rows| rows.fingerprint))?;
    }
    Ok(())
}

fn digest(name: &str, number: i64, text: &str) -> Hash {
    Hash::of_fields(&[name.as_bytes(), &number.to_le_bytes(), text.as_bytes()])
}
