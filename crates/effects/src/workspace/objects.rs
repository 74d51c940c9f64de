//! Reading objects of a repository one after the other, with one git for all of them. A sandbox costs more than git, and
//! git more than an object.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Instant;

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::git::{Args, Git, Running, TimedRead};
use crate::limits;

/// Requests that are sent before the answers are read. They have to fit into a pipe, or both sides would wait.
const AT_ONCE: usize = 500;

pub(super) struct Objects<'a> {
    git: &'a Git,
    running: Running,
    requests: File,
    answers: BufReader<TimedRead>,
    until: Instant,
}

/// An object with its content.
pub(super) struct Object {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) bytes: Vec<u8>,
}

impl Objects<'_> {
    pub(super) fn of(git: &Git) -> Result<Objects<'_>, Refusal> {
        let args: Args<'_> = &[&"cat-file", &"--batch-command=%(objectname) %(objecttype) %(objectsize)", &"--buffer"];
        let (running, requests, answers, until) = git.converse(args)?;
        Ok(Objects { git, running, requests, answers: BufReader::new(answers), until })
    }

    /// The content of an object. None where it is missing.
    pub(super) fn content(&mut self, name: &str) -> Result<Option<Object>, Refusal> {
        self.ask(&format!("contents {name}\nflush\n"))?;
        let Some(Header { id, kind, size }) = self.header()? else { return Ok(None) };
        if size > limits::GIT_OUTPUT_BYTES {
            let message = format!("the object {name} has {size} bytes, the limit is {}", limits::GIT_OUTPUT_BYTES);
            return Err(Refusal::new(ErrorCode::TreeTooLarge, message)
                .with_hint("commit a tree with fewer entries in one folder"));
        }
        let mut bytes = Vec::new();
        // A line end follows the content.
        let read = (&mut self.answers).take(size + 1).read_to_end(&mut bytes);
        match read {
            Ok(_) if bytes.pop() == Some(b'\n') && bytes.len() as u64 == size => Ok(Some(Object { id, kind, bytes })),
            Ok(_) => Err(self.broken(&io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// The sizes of objects together. One that is missing has none.
    pub(super) fn sizes(&mut self, names: &[String]) -> Result<u64, Refusal> {
        let mut sum = 0_u64;
        for some in names.chunks(AT_ONCE) {
            let lines: String = some.iter().map(|name| format!("info {name}\n")).collect();
            self.ask(&format!("{lines}flush\n"))?;
            for _ in some {
                sum = sum.saturating_add(self.header()?.map_or(0, |header| header.size));
            }
        }
        Ok(sum)
    }

    /// Ends git, which has to have succeeded.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        let Objects { git, running, requests, answers, until } = self;
        drop((requests, answers));
        let (ok, err) = running.finish(git, "cat-file", until)?;
        if ok { Ok(()) } else { Err(git.failed("cat-file", &err)) }
    }

    fn ask(&mut self, lines: &str) -> Result<(), Refusal> {
        let asked = self.requests.write_all(lines.as_bytes());
        asked.map_err(|error| self.broken(&error))
    }

    /// None where the object is missing.
    fn header(&mut self) -> Result<Option<Header>, Refusal> {
        let mut line = String::new();
        // Where an object is missing the name comes back that was asked for, which is short.
        let read = (&mut self.answers).take(limits::GIT_WORDS_BYTES).read_line(&mut line);
        match read {
            Ok(0) => return Err(self.broken(&io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(self.broken(&error)),
        }
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let &[id, kind, size] = words.as_slice() else { return Ok(None) };
        Ok(size.parse().ok().map(|size| Header { id: id.to_owned(), kind: kind.to_owned(), size }))
    }

    fn broken(&self, error: &io::Error) -> Refusal {
        self.running.kill();
        self.git.unreadable(error)
    }
}

/// A line of git's about one object.
struct Header {
    id: String,
    kind: String,
    size: u64,
}
