//! A command's output in two files: `head`, which grows as the output comes, and `tail`, which is replaced now and then
//! and opens with a line that says where it belongs. They stay readable while the command runs, after it and after a
//! restart. A disk that refuses harms neither the command nor the daemon: it is noted, and memory goes on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_private::{private_file, private_folder};
use serde::{Deserialize, Serialize};

use super::output::{BoundedOutput, Chunk, count, read_pieces};
use crate::limits;

const HEAD: &str = "head";
const TAIL: &str = "tail";
const TAIL_NEW: &str = "tail.new";

/// The first line of the tail.
#[derive(Debug, Serialize, Deserialize)]
struct TailHeader {
    /// How much was written in all when the tail was.
    total: u64,
    /// Where the tail begins.
    from: u64,
    ended: bool,
}

#[derive(Debug)]
pub(crate) struct OutputFiles {
    folder: PathBuf,
    head: Option<File>,
    head_written: usize,
    tail_total: Option<u64>,
    tail_at: Instant,
    problem: Option<String>,
}

impl OutputFiles {
    /// Begins with everything that came before.
    pub(crate) fn create(folder: &Path, output: &BoundedOutput) -> io::Result<OutputFiles> {
        private_folder(folder)?;
        let head = private_file(&folder.join(HEAD))?;
        let mut files = OutputFiles {
            folder: folder.to_path_buf(),
            head: Some(head),
            head_written: 0,
            tail_total: None,
            tail_at: Instant::now(),
            problem: None,
        };
        files.advance(output);
        files.write_tail(output, false);
        Ok(files)
    }

    /// After more output: the head at once, the tail if it is time.
    pub(crate) fn advance(&mut self, output: &BoundedOutput) {
        let fresh = &output.head()[self.head_written..];
        if let (Some(head), false) = (&mut self.head, fresh.is_empty()) {
            self.head_written += fresh.len();
            if let Err(error) = head.write_all(fresh) {
                self.note_problem(&error);
                self.head = None;
            }
        }
        if self.next_deadline(output).is_some_and(|due| due <= Instant::now()) {
            self.write_tail(output, false);
        }
    }

    /// The time at which the tail is written next, if it is out of date.
    pub(crate) fn next_deadline(&self, output: &BoundedOutput) -> Option<Instant> {
        (self.tail_total != Some(output.total())).then(|| self.tail_at + Duration::from_millis(limits::TAIL_EVERY_MS))
    }

    pub(crate) fn finish(&mut self, output: &BoundedOutput) {
        self.advance(output);
        self.write_tail(output, true);
    }

    /// The first thing that went wrong.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn write_tail(&mut self, output: &BoundedOutput, ended: bool) {
        self.tail_at = Instant::now();
        self.tail_total = Some(output.total());
        let new = self.folder.join(TAIL_NEW);
        let written = write_tail(&new, output, ended).and_then(|()| fs::rename(&new, self.folder.join(TAIL)));
        if let Err(error) = written {
            // Half a file would only take the room that is missing.
            let _gone = fs::remove_file(&new);
            self.note_problem(&error);
        }
    }

    fn note_problem(&mut self, error: &io::Error) {
        if self.problem.is_none() {
            self.problem = Some(error.to_string());
        }
    }
}

fn write_tail(path: &Path, output: &BoundedOutput, ended: bool) -> io::Result<()> {
    let ([first, second], from) = output.tail();
    let mut file = private_file(path)?;
    let mut line = serde_json::to_vec(&TailHeader { total: output.total(), from, ended })?;
    line.push(b'\n');
    file.write_all(&line)?;
    file.write_all(first)?;
    file.write_all(second)
}

/// Reads the output files of a command, whether it runs, has ended, or was cut off with the daemon.
pub fn read_output_files(folder: &Path, offset: u64, max: usize) -> io::Result<Chunk> {
    // The tail first: what is appended to the head meanwhile only closes the gap.
    let (counts, tail) = match fs::read(folder.join(TAIL)) {
        Ok(bytes) => split_tail(bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (TailHeader { total: 0, from: 0, ended: false }, Vec::new())
        }
        Err(error) => return Err(error),
    };
    let head = fs::read(folder.join(HEAD))?;
    let total = counts.total.max(count(head.len()));
    Ok(read_pieces(&[(0, &head), (counts.from, &tail)], total, offset, max))
}

fn split_tail(mut bytes: Vec<u8>) -> io::Result<(TailHeader, Vec<u8>)> {
    let line = bytes.iter().position(|byte| *byte == b'\n').ok_or(io::ErrorKind::InvalidData)?;
    let tail = bytes.split_off(line + 1);
    Ok((serde_json::from_slice(&bytes)?, tail))
}
