//! Cutting a payload out: of the table or of a segment, and of the blobs when nobody else needs it.

use abide_kernel::id::Seq;

use super::Sqlite;
use super::fact::{RawBody, RawFact};
use super::history::View;
use super::home::write_durably;
use super::segment::{Encoder, SegmentRow, Segments};
use super::writer::{Writer, commit_error};
use crate::error::{CommitError, ReadError, RedactError};
use crate::hash::{BlobId, Hash};
use crate::stream::StreamId;

impl Sqlite {
    pub(crate) fn redact(&self, stream: &StreamId, seq: Seq) -> Result<(), RedactError> {
        let mut writer = self.borrow_writer()?;
        let Some(fact) = find(&writer, stream, seq)? else {
            return Err(RedactError::NoFact { stream: stream.clone(), seq });
        };
        if matches!(fact.body, RawBody::Redacted(_)) {
            return Ok(());
        }
        let archived_in = segment_of(&writer, fact.id)?;
        let rewritten = archived_in.as_ref().map(|row| rewrite(&writer, row, &fact)).transpose()?;
        let done = writer.transaction(|writer| {
            let conn = &writer.conn;
            match (&archived_in, &rewritten) {
                (Some(row), Some((file, digest))) => {
                    let sql = "UPDATE segments SET file = ?, digest = ? WHERE first = ?";
                    conn.execute(sql, (file, &digest.0[..], row.first))
                }
                (_, _) => {
                    let cut = RawFact { body: RawBody::Redacted(fact.body.digest()), ..fact.clone() };
                    let sql = "UPDATE facts SET link = ?, payload = ? WHERE id = ?";
                    conn.execute(sql, (&cut.link().encode()[..], cut.body.stored(), cut.id))
                }
            }
            .and_then(|_| conn.execute("INSERT INTO redactions (stream, seq) VALUES (?, ?)", (fact.stream, fact.seq)))
            // Any state may hold it, a fork's as well.
            .and_then(|_| conn.execute("DELETE FROM snapshots", []))
            .map_err(commit_error)
        });
        done?;
        writer.write_anew()?;
        if let Some(row) = &archived_in {
            self.0.store.segments.forget(&row.file);
            remove(&self.0.store.segments.path(&row.file))?;
        }
        if let RawBody::Blob(digest) = fact.body
            && !is_used(&writer, digest)?
        {
            let gone = self.0.store.blobs.remove(&BlobId(digest));
            gone.map_err(|error| CommitError::Store {
                detail: format!("blob {digest} could not be removed: {error}"),
            })?;
        }
        Ok(())
    }
}

fn find(writer: &Writer, stream: &StreamId, seq: Seq) -> Result<Option<RawFact>, ReadError> {
    let view = View::new(&writer.conn, &writer.store)?;
    let Some(head) = view.head(stream)?.filter(|head| seq > 0 && seq <= head.seq) else { return Ok(None) };
    let (id, _) = view.locate(stream, &head, seq)?;
    view.fact(id)
}

fn segment_of(writer: &Writer, id: u64) -> Result<Option<SegmentRow>, ReadError> {
    Ok(Segments::rows(&writer.conn)?.into_iter().find(|row| row.first <= id && id <= row.last))
}

/// A segment without the payload, under a new name: the old one is good until the transaction says otherwise.
fn rewrite(writer: &Writer, row: &SegmentRow, redacted: &RawFact) -> Result<(String, Hash), RedactError> {
    let segments = &writer.store.segments;
    let io = |error: std::io::Error| CommitError::Store { detail: format!("archive/{}: {error}", row.file) };
    let segment = segments.segment(row)?;
    let mut encoder = Encoder::new();
    for block in &segment.index.blocks {
        for mut fact in segment.decode(block)? {
            if fact.id == redacted.id {
                fact.body = RawBody::Redacted(fact.body.digest());
            }
            encoder.push(&fact).map_err(io)?;
        }
    }
    let (bytes, digest) = encoder.finish().map_err(io)?;
    let file = format!("{:016x}-{:016x}-{}.seg", row.first, row.last, &digest.to_string()[..8]);
    write_durably(&segments.path(&file), &bytes).map_err(io)?;
    Ok((file, digest))
}

fn is_used(writer: &Writer, digest: Hash) -> Result<bool, ReadError> {
    let view = View::new(&writer.conn, &writer.store)?;
    let mut used = false;
    view.scan(1, view.end()?, None, &mut |fact| {
        used = matches!(fact.body, RawBody::Blob(other) if other == digest);
        !used
    })?;
    Ok(used)
}

fn remove(path: &std::path::Path) -> Result<(), CommitError> {
    std::fs::remove_file(path)
        .map_err(|error| CommitError::Store { detail: format!("{} still holds it: {error}", path.display()) })
}
