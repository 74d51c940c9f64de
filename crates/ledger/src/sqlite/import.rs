//! An import into the database: one transaction. Blobs go to disk as they come; if the import is refused, those that
//! were not there before are taken away again.

use abide_kernel::id::Seq;

use super::Sqlite;
use super::history::View;
use super::writer::{Stop, Writer};
use crate::commit::Committed;
use crate::error::{CommitError, ImportError, ReadError};
use crate::hash::BlobId;
use crate::prepared::{Body, Prepared};
use crate::record::{Bounds, Head, INLINE_LIMIT, Recorded};
use crate::stream::StreamId;
use crate::transfer::{Sink, Transferred};

struct Transaction<'a> {
    writer: &'a mut Writer,
    new_blobs: &'a mut Vec<BlobId>,
}

impl Sqlite {
    pub(crate) fn import(
        &self,
        import: &mut dyn FnMut(&mut dyn Sink) -> Result<Transferred, ImportError>,
    ) -> Result<Transferred, ImportError> {
        let mut writer = self.borrow_writer()?;
        let mut new_blobs = Vec::new();
        let outcome = writer.transaction(|writer| import(&mut Transaction { writer, new_blobs: &mut new_blobs }));
        match outcome {
            Ok(done) => {
                writer.checkpoint("PASSIVE");
                Ok(done)
            }
            Err(refusal) => {
                for id in new_blobs {
                    // A blob that stays is unused, and harmless.
                    let _ = self.0.store.blobs.remove(&id);
                }
                Err(refusal)
            }
        }
    }
}

impl Sink for Transaction<'_> {
    fn head(&mut self, stream: &StreamId) -> Result<Option<Head>, CommitError> {
        Ok(self.writer.head(stream)?.map(|head| head.head()))
    }

    fn prefix(&mut self, stream: &StreamId, upto: Seq) -> Result<Vec<Recorded>, CommitError> {
        let Some(head) = self.writer.head(stream)? else { return Ok(Vec::new()) };
        let view = View::new(&self.writer.conn, &self.writer.store)?;
        Ok(view.read(stream, &head, 0, Bounds::items(usize::try_from(upto).unwrap_or(usize::MAX)))?)
    }

    fn put_blob(&mut self, id: BlobId, bytes: &[u8]) -> Result<(), CommitError> {
        let blobs = &self.writer.store.blobs;
        if !blobs.exists(&id) {
            self.new_blobs.push(id);
        }
        blobs.put(id.0, bytes)?;
        Ok(())
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Vec<u8>, ReadError> {
        self.writer.store.blobs.get(id).map(|bytes| bytes.to_vec())
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Committed, CommitError> {
        for fact in prepared.appends.iter().flat_map(|append| &append.facts) {
            if let Body::Stored(bytes) = &fact.body
                && bytes.len() > INLINE_LIMIT
            {
                self.put_blob(BlobId(fact.digest), bytes)?;
            }
        }
        self.writer.commit(&prepared).map_err(|stop| match stop {
            Stop::Refused(error) | Stop::Failed(error) => error,
        })
    }
}
