//! Answers and the memory that they take, from before they are made until their reader has taken them. It is bounded for
//! all of them together, and no token has more than half of it: readers that take nothing keep nobody else waiting.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::shares::{HeldShare, Holder, Shares};

/// Answers up to this size are not counted: connections bound how many of them there are.
pub(crate) const SMALL: usize = 16 << 10;

/// An answer goes out in pieces of this size. A piece that was sent gives its memory back.
const PIECE: usize = 32 << 10;

const KIB: usize = 1024;

/// The memory of answers, counted in KiB.
#[derive(Debug)]
pub(crate) struct AnswerMemory(Shares);

/// A part of the memory. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Reserved(HeldShare);

impl AnswerMemory {
    pub(crate) fn new(bytes: usize) -> AnswerMemory {
        AnswerMemory(Shares::new(bytes / KIB))
    }

    /// Takes a part as soon as there is room. One that is larger than the holder's share is that share.
    pub(crate) async fn reserve(&self, holder: &Holder, bytes: usize) -> Reserved {
        Reserved(self.0.acquire(holder, bytes / KIB + 1).await)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.0.in_use() * KIB
    }
}

impl Reserved {
    /// Gives back all but so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.0.shrink_to(bytes / KIB + 1);
    }
}

/// Bytes in pieces, as they are written.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
}

/// A place in what was written, to go back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    full: usize,
    last: usize,
}

impl Pieces {
    pub(crate) fn len(&self) -> usize {
        self.full.len() * PIECE + self.last.len()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { full: self.full.len(), last: self.last.len() }
    }

    /// Takes back what was written since.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        if let Some(last) = self.full.drain(mark.full..).next() {
            self.last = last;
        }
        self.last.truncate(mark.last);
    }

    /// The answer's body. What is reserved is given back as its reader takes it.
    pub(crate) fn into_body(self, reserved: Option<Reserved>) -> Body {
        let pieces = self.full.into_iter().chain([self.last]).filter(|piece| !piece.is_empty()).map(Bytes::from);
        body(pieces.collect(), reserved)
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PIECE - self.last.len()));
            self.last.extend_from_slice(now);
            rest = later;
            if self.last.len() == PIECE {
                self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(PIECE)));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body of an answer that was made in one.
pub(crate) fn sliced(mut bytes: Bytes, reserved: Reserved) -> Body {
    let mut pieces = VecDeque::with_capacity(bytes.len() / PIECE + 1);
    while !bytes.is_empty() {
        pieces.push_back(bytes.split_to(bytes.len().min(PIECE)));
    }
    body(pieces, Some(reserved))
}

fn body(pieces: VecDeque<Bytes>, reserved: Option<Reserved>) -> Body {
    let left = pieces.iter().map(Bytes::len).sum();
    Body::new(AnswerBody { pieces, left, reserved })
}

/// An answer on its way.
struct AnswerBody {
    pieces: VecDeque<Bytes>,
    left: usize,
    reserved: Option<Reserved>,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let left = self.left;
        // Asked for the next piece, the connection has sent most of those before it.
        if let Some(reserved) = &mut self.reserved {
            reserved.shrink_to(left);
        }
        let piece = self.pieces.pop_front();
        self.left = left - piece.as_ref().map_or(0, Bytes::len);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn what_was_written_comes_out_and_what_was_taken_back_does_not() {
        let text: Vec<u8> = (0..3 * PIECE + 100).map(|number| b'a' + u8::try_from(number % 26).unwrap()).collect();
        for keep in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 99] {
            let mut pieces = Pieces::default();
            pieces.write_all(&text[..keep]).unwrap();
            let mark = pieces.mark();
            pieces.write_all(&text[keep..]).unwrap();
            assert_eq!(pieces.len(), text.len());
            pieces.rewind(mark);
            assert_eq!(pieces.len(), keep);
            pieces.write_all(b"end").unwrap();
            let body = pieces.into_body(None).collect().await.unwrap().to_bytes();
            assert_eq!(body, [&text[..keep], b"end"].concat(), "{keep}");
        }
    }
}
