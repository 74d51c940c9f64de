//! Server-sent events, taken from bytes that arrive in pieces of any size. Only their data: every protocol spoken here
//! says in the data itself what kind of event it is.

use crate::limits;

/// The events of one stream.
#[derive(Debug, Default)]
pub struct Events {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The data lines of the current event. An event without one is ignored.
    data: Option<Vec<u8>>,
    /// The last byte was a CR: an LF after it belongs to the same line end.
    after_cr: bool,
    /// The first line is over, so that no byte order mark can come any more.
    begun: bool,
}

/// An event, or one line of it, is larger than anybody writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("one event of its stream is larger than {} MiB", limits::EVENT_BYTES >> 20)]
pub struct TooLarge;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether bytes begin a stream of events, whatever their sender calls them. None: there are too few to tell.
pub(super) fn is_stream(bytes: &[u8]) -> Option<bool> {
    const FIELDS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];
    let line = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii_start();
    if FIELDS.iter().any(|field| line.starts_with(field)) {
        return Some(true);
    }
    let may_become_one = BYTE_ORDER_MARK.starts_with(bytes) || FIELDS.iter().any(|field| field.starts_with(line));
    if may_become_one { None } else { Some(false) }
}

impl Events {
    /// The data of every event that ends in `bytes`.
    pub fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut events = Vec::new();
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let second_half = self.after_cr && end == 0 && bytes[end] == b'\n';
            self.after_cr = bytes[end] == b'\r';
            if !second_half {
                self.push_line(&bytes[..end])?;
                events.extend(self.end_line()?);
            }
            bytes = &bytes[end + 1..];
        }
        if !bytes.is_empty() {
            self.after_cr = false;
            self.push_line(bytes)?;
        }
        Ok(events)
    }

    fn push_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() > limits::EVENT_BYTES {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The event that this line ends, if it does.
    fn end_line(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first { self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line) } else { &self.line[..] };
        if line.is_empty() {
            self.line.clear();
            return Ok(self.data.take());
        }
        if let Some(value) = data_of_line(line) {
            match &mut self.data {
                Some(data) if data.len() + value.len() >= limits::EVENT_BYTES => return Err(TooLarge),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        self.line.clear();
        Ok(None)
    }
}

/// The content of a data line. Comments begin with the colon, so that their field has no name.
fn data_of_line(line: &[u8]) -> Option<&[u8]> {
    let (field, value) = match memchr::memchr(b':', line) {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => (line, &[][..]),
    };
    (field == b"data").then(|| value.strip_prefix(b" ").unwrap_or(value))
}
