//! An import into memory: into a copy, which takes the place of the state when all went well.

use std::sync::Arc;

use abide_kernel::id::Seq;

use super::{Memory, State};
use crate::commit::Committed;
use crate::error::{CommitError, ImportError, ReadError};
use crate::hash::BlobId;
use crate::prepared::Prepared;
use crate::record::{Bounds, Head, Recorded};
use crate::stream::StreamId;
use crate::transfer::{Sink, Transferred};

struct Copy<'a> {
    memory: &'a Memory,
    state: State,
    blobs: Vec<(BlobId, Arc<[u8]>)>,
}

impl Memory {
    pub(crate) fn import(
        &self,
        import: &mut dyn FnMut(&mut dyn Sink) -> Result<Transferred, ImportError>,
    ) -> Result<Transferred, ImportError> {
        let state = self.with_state(State::clone)?;
        let mut copy = Copy { memory: self, state, blobs: Vec::new() };
        let done = import(&mut copy)?;
        let Copy { state, blobs, .. } = copy;
        self.with_state_mut(|old| *old = state)?;
        for (_, bytes) in blobs {
            self.put_blob(&bytes);
        }
        Ok(done)
    }
}

impl Sink for Copy<'_> {
    fn head(&mut self, stream: &StreamId) -> Result<Option<Head>, CommitError> {
        Ok(self.state.head(stream))
    }

    fn prefix(&mut self, stream: &StreamId, upto: Seq) -> Result<Vec<Recorded>, CommitError> {
        Ok(self.state.read(stream, 0, Bounds::items(usize::try_from(upto).unwrap_or(usize::MAX))))
    }

    fn put_blob(&mut self, id: BlobId, bytes: &[u8]) -> Result<(), CommitError> {
        self.blobs.push((id, Arc::from(bytes)));
        Ok(())
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Vec<u8>, ReadError> {
        match self.blobs.iter().find(|(other, _)| other == id) {
            Some((_, bytes)) => Ok(bytes.to_vec()),
            None => self.memory.get_blob(id),
        }
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Committed, CommitError> {
        self.state.commit(prepared)
    }
}
