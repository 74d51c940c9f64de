//! The output of a command, within bounds: its start, its end, and the number of bytes between. It knows no files and
//! no processes.

use std::collections::VecDeque;

use crate::limits;

/// A stream of which only the start and the end are kept.
#[derive(Debug)]
pub(crate) struct BoundedOutput {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    total: u64,
}

/// A piece of a command's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub bytes: Vec<u8>,
    /// How many bytes from the offset that was asked for are not kept any more.
    pub skipped: u64,
    /// Where to go on.
    pub next_offset: u64,
    /// How much was written so far.
    pub total: u64,
}

/// One stream at a moment: its start and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputExcerpt {
    pub head: Vec<u8>,
    /// How many bytes lie between head and tail and were dropped.
    pub dropped: u64,
    pub tail: Vec<u8>,
    pub total: u64,
}

impl OutputExcerpt {
    /// All of it, if nothing was dropped.
    #[must_use]
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.dropped == 0).then(|| [self.head.as_slice(), &self.tail].concat())
    }
}

/// A command's output at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub combined: OutputExcerpt,
    /// Of a terminal this is everything.
    pub stdout: OutputExcerpt,
    pub stderr: OutputExcerpt,
}

impl BoundedOutput {
    pub(crate) fn new(head_max: usize, tail_max: usize) -> BoundedOutput {
        BoundedOutput { head: Vec::new(), head_max, tail: VecDeque::new(), tail_max, total: 0 }
    }

    pub(crate) fn combined() -> BoundedOutput {
        BoundedOutput::new(limits::OUTPUT_HEAD_BYTES, limits::OUTPUT_TAIL_BYTES)
    }

    pub(crate) fn stream() -> BoundedOutput {
        BoundedOutput::new(limits::STREAM_HEAD_BYTES, limits::STREAM_TAIL_BYTES)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += count(bytes.len());
        let room = self.head_max - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        // Bytes beyond the size of the tail are not copied.
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The end, in two pieces, and the offset at which it begins.
    pub(crate) fn tail(&self) -> ([&[u8]; 2], u64) {
        let (first, second) = self.tail.as_slices();
        ([first, second], self.total - count(self.tail.len()))
    }

    pub(crate) fn excerpt(&self) -> OutputExcerpt {
        let ([first, second], from) = self.tail();
        OutputExcerpt {
            head: self.head.clone(),
            dropped: from - count(self.head.len()),
            tail: [first, second].concat(),
            total: self.total,
        }
    }

    pub(crate) fn read(&self, offset: u64, max: usize) -> Chunk {
        let ([first, second], from) = self.tail();
        let in_second = from + count(first.len());
        read_pieces(&[(0, &self.head), (from, first), (in_second, second)], self.total, offset, max)
    }
}

/// Reads at `offset`, from pieces in order, each with its own offset.
pub(crate) fn read_pieces(pieces: &[(u64, &[u8])], total: u64, offset: u64, max: usize) -> Chunk {
    let offset = offset.min(total);
    let mut chunk = Chunk { bytes: Vec::new(), skipped: 0, next_offset: offset, total };
    for (from, piece) in pieces {
        let end = from + count(piece.len());
        if chunk.next_offset >= end || chunk.bytes.len() == max {
            continue;
        }
        if *from > chunk.next_offset {
            // A gap ends what can be said in one go: what follows it is the next piece's to say.
            if !chunk.bytes.is_empty() {
                break;
            }
            chunk.skipped = from - chunk.next_offset;
            chunk.next_offset = *from;
        }
        let begin = usize::try_from(chunk.next_offset - from).unwrap_or(usize::MAX);
        let take = (piece.len() - begin).min(max - chunk.bytes.len());
        chunk.bytes.extend_from_slice(&piece[begin..begin + take]);
        chunk.next_offset += count(take);
    }
    chunk
}

pub(crate) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
