//! One line of an import, taken apart: every refusal names the line and the field.

use std::str::FromStr;

use abide_kernel::id::Seq;
use abide_kernel::pack;
use abide_kernel::time::Time;
use serde_json::{Map, Value};

use super::{NAMES_ITS_READER, Transferred};
use crate::error::ImportError;
use crate::hash::{BlobId, Hash, from_hex};
use crate::program::OldestReader;
use crate::stream::StreamId;

#[derive(Debug)]
pub(super) enum Line {
    First { format: u64, oldest_reader: OldestReader },
    Blob { id: BlobId, bytes: Vec<u8> },
    Fork { stream: StreamId, parent: StreamId, seq: Seq },
    Fact { stream: StreamId, seq: Seq, at: Time, kind: String, payload: Content, hash: Hash },
    Wake { stream: StreamId, due: Option<Time>, why: String },
    Head { stream: StreamId, seq: Seq, hash: Hash },
    End { counts: Transferred, digest: Hash },
}

#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// A text that is stored packed: its packed form.
    Packed(Vec<u8>),
    Blob(Hash),
    Redacted(Hash),
}

/// A line's members, each asked for by name.
struct Members {
    line: usize,
    members: Map<String, Value>,
}

impl Line {
    pub(super) fn parse(text: &[u8], line: usize) -> Result<Line, ImportError> {
        let whole = |what: String| ImportError::Line { line, field: "the whole line".to_owned(), what };
        let value: Value = serde_json::from_slice(text).map_err(|error| whole(format!("it is not JSON ({error})")))?;
        let Value::Object(members) = value else { return Err(whole("it is not a JSON object".to_owned())) };
        let from = Members { line, members };
        let has = |name: &str| from.members.contains_key(name);
        if has("abide_ledger") {
            Ok(Line::First { format: from.number("abide_ledger")?, oldest_reader: from.oldest_reader()? })
        } else if has("stream") {
            Ok(Line::Fact {
                stream: from.parsed("stream")?,
                seq: from.number("seq")?,
                at: from.parsed("at")?,
                kind: from.text("kind")?.to_owned(),
                payload: from.content()?,
                hash: from.parsed("hash")?,
            })
        } else if has("fork") {
            Ok(Line::Fork { stream: from.parsed("fork")?, parent: from.parsed("of")?, seq: from.number("seq")? })
        } else if has("wake") {
            let due = if from.get("due")?.is_null() { None } else { Some(from.parsed("due")?) };
            Ok(Line::Wake { stream: from.parsed("wake")?, due, why: from.text("why")?.to_owned() })
        } else if has("head") {
            Ok(Line::Head { stream: from.parsed("head")?, seq: from.number("seq")?, hash: from.parsed("hash")? })
        } else if has("end") {
            Ok(Line::End { counts: from.counts()?, digest: from.parsed("digest")? })
        } else if has("blob") {
            let id: BlobId = from.parsed("blob")?;
            match from.content_but("blob")? {
                Content::Bytes(bytes) if Hash::of(&bytes) == id.0 => Ok(Line::Blob { id, bytes }),
                Content::Bytes(_) => Err(from.bad("blob", "the bytes have another hash")),
                Content::Packed(_) | Content::Blob(_) | Content::Redacted(_) => {
                    Err(from.bad("text", "a blob is its bytes"))
                }
            }
        } else {
            Err(whole("it is none of the lines that an export has".to_owned()))
        }
    }
}

impl Members {
    fn bad(&self, field: &str, what: impl ToString) -> ImportError {
        ImportError::Line { line: self.line, field: format!("field {field:?}"), what: what.to_string() }
    }

    fn get(&self, field: &str) -> Result<&Value, ImportError> {
        self.members.get(field).ok_or_else(|| self.bad(field, "it is missing"))
    }

    fn text(&self, field: &str) -> Result<&str, ImportError> {
        self.get(field)?.as_str().ok_or_else(|| self.bad(field, "it takes a string"))
    }

    fn number(&self, field: &str) -> Result<u64, ImportError> {
        self.get(field)?.as_u64().ok_or_else(|| self.bad(field, "it takes a whole number"))
    }

    fn parsed<T: FromStr<Err: ToString>>(&self, field: &str) -> Result<T, ImportError> {
        self.text(field)?.parse().map_err(|error: T::Err| self.bad(field, error.to_string()))
    }

    fn content(&self) -> Result<Content, ImportError> {
        self.content_but("")
    }

    /// The one member that carries bytes. `key` has another meaning on this line.
    fn content_but(&self, key: &str) -> Result<Content, ImportError> {
        let mut found = ["text", "packed", "hex", "blob", "redacted"]
            .into_iter()
            .filter(|name| *name != key && self.members.contains_key(*name));
        match (found.next(), found.next()) {
            (Some("text"), None) => Ok(Content::Bytes(self.text("text")?.as_bytes().to_vec())),
            (Some("packed"), None) => {
                let packed = pack::pack(self.text("packed")?.as_bytes());
                packed.map(Content::Packed).ok_or_else(|| self.bad("packed", "it takes JSON without blanks"))
            }
            (Some("hex"), None) => {
                let bytes = from_hex(self.text("hex")?);
                bytes.map(Content::Bytes).ok_or_else(|| self.bad("hex", "it takes pairs of 0-9 and a-f"))
            }
            (Some("blob"), None) => Ok(Content::Blob(self.parsed("blob")?)),
            (Some(_), None) => Ok(Content::Redacted(self.parsed("redacted")?)),
            (Some(_), Some(second)) => Err(self.bad(second, "one of text, packed, hex, blob and redacted, not two")),
            (None, _) => Err(self.bad("text", "it is missing, and so are packed, hex, blob and redacted")),
        }
    }

    /// Named from the second format on; before it, every reader reads every fact.
    fn oldest_reader(&self) -> Result<OldestReader, ImportError> {
        if self.number("abide_ledger")? < NAMES_ITS_READER {
            return Ok(OldestReader { reader: 1, program: String::new() });
        }
        let reader = u32::try_from(self.number("oldest_reader")?);
        let reader = reader.map_err(|_| self.bad("oldest_reader", "it is no version of a reader"))?;
        Ok(OldestReader { reader, program: self.text("program")?.to_owned() })
    }

    fn counts(&self) -> Result<Transferred, ImportError> {
        let Value::Object(members) = self.get("end")?.clone() else {
            return Err(self.bad("end", "it takes an object"));
        };
        let counts = Members { line: self.line, members };
        Ok(Transferred {
            facts: counts.number("facts")?,
            streams: counts.number("streams")?,
            blobs: counts.number("blobs")?,
        })
    }
}
