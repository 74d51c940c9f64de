//! Who shares whose facts: for work that goes through the whole log once and must know, at each fact, every stream
//! whose history it is part of.

use std::collections::BTreeMap;

use abide_kernel::id::Seq;

use super::fact::read_error;
use super::history::View;
use super::writer::stream_digest;
use crate::error::{Damage, ReadError};
use crate::stream::StreamId;

#[derive(Debug, Default)]
pub(crate) struct Lineages {
    streams: BTreeMap<i64, Stream>,
    /// Damage of rows of the table.
    pub damage: Vec<Damage>,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub name: StreamId,
    pub born: u64,
    /// Parent, sequence and rowid of the fact it forks from.
    pub fork: Option<(i64, Seq, u64)>,
    /// Streams that share its facts, and up to which.
    heirs: Vec<(i64, Seq)>,
}

impl Lineages {
    pub(crate) fn load(view: &View<'_>) -> Result<Lineages, ReadError> {
        let mut lineages = Lineages::default();
        let sql = "SELECT id, name, born, parent, fork_seq, fork_fact, digest FROM streams ORDER BY id";
        let mut statement = view.conn.prepare_cached(sql).map_err(read_error)?;
        let mut rows = statement.query([]).map_err(read_error)?;
        while let Some(row) = rows.next().map_err(read_error)? {
            let id: i64 = row.get(0).map_err(read_error)?;
            match parse(row, id) {
                Ok(stream) => lineages.add(id, stream),
                Err(damage) => lineages.damage.push(damage),
            }
        }
        Ok(lineages)
    }

    fn add(&mut self, id: i64, stream: Stream) {
        // Up the line, the part that is shared only gets shorter.
        let (mut above, mut upto) = (stream.fork, Seq::MAX);
        while let Some((parent, seq, _)) = above {
            upto = upto.min(seq);
            let Some(ancestor) = self.streams.get_mut(&parent) else {
                let what = "the stream it forks from is missing".to_owned();
                self.damage.push(Damage::Stream { stream: stream.name.to_string(), what });
                break;
            };
            ancestor.heirs.push((id, upto));
            above = ancestor.fork;
        }
        self.streams.insert(id, stream);
    }

    pub(crate) fn name(&self, id: i64) -> Result<&StreamId, ReadError> {
        self.streams.get(&id).map(|stream| &stream.name).ok_or_else(|| {
            let what = "it has facts but no name".to_owned();
            ReadError::damaged(Damage::Stream { stream: format!("stream number {id}"), what })
        })
    }

    pub(crate) fn get(&self, id: i64) -> Option<&Stream> {
        self.streams.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Stream)> {
        self.streams.iter().map(|(id, stream)| (*id, stream))
    }

    /// The streams that have fact `seq` of stream `id` in their history, itself first.
    pub(crate) fn heirs(&self, id: i64, seq: Seq) -> impl Iterator<Item = i64> {
        let heirs = self.streams.get(&id).map_or(&[][..], |stream| &stream.heirs);
        std::iter::once(id).chain(heirs.iter().filter(move |(_, upto)| seq <= *upto).map(|(heir, _)| *heir))
    }
}

fn parse(row: &rusqlite::Row<'_>, id: i64) -> Result<Stream, Damage> {
    let damaged = |name: &str, what: &str| Damage::Stream {
        stream: if name.is_empty() { format!("stream number {id}") } else { name.to_owned() },
        what: what.to_owned(),
    };
    let name: String = row.get(1).map_err(|error| damaged("", &error.to_string()))?;
    let numbers = || -> Result<(u64, Option<i64>, u64, u64), rusqlite::Error> {
        Ok((row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    };
    let (born, parent, seq, fact) = numbers().map_err(|error| damaged(&name, &error.to_string()))?;
    let digest: Vec<u8> = row.get(6).map_err(|error| damaged(&name, &error.to_string()))?;
    if stream_digest(id, &name, born, parent, seq, fact).0[..] != digest[..] {
        return Err(damaged(&name, "its row is not what was written"));
    }
    let Ok(name) = name.parse() else { return Err(damaged(&name, "its name is not a stream's")) };
    Ok(Stream { name, born, fork: parent.map(|parent| (parent, seq, fact)), heirs: Vec::new() })
}
