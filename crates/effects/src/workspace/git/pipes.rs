//! The pipes of a git that runs: its input, its output within bounds and deadlines, and its messages.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::limits;
use crate::workspace::transfers::Progress;

pub(super) fn open_null() -> io::Result<OwnedFd> {
    Ok(File::open("/dev/null")?.into())
}

/// A standard input with these bytes, and the thread that writes them: git may want to be read before it reads on.
pub(super) fn feed_stdin(input: &[u8]) -> io::Result<(OwnedFd, Option<JoinHandle<()>>)> {
    if input.is_empty() {
        return Ok((open_null()?, None));
    }
    let (reads, writes) = pipe_with(PipeFlags::CLOEXEC)?;
    let bytes = input.to_vec();
    let thread = thread::Builder::new().name("git input".to_owned()).spawn(move || {
        let _reader_gone = File::from(writes).write_all(&bytes);
    })?;
    Ok((reads, Some(thread)))
}

/// The whole output, or none if it is too large or takes too long.
pub(super) fn read_bounded(mut from: File, until: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    let mut buffer = vec![0; limits::TAKEN_BYTES];
    while out.len() as u64 <= limits::GIT_OUTPUT_BYTES {
        if !wait_readable(&from, until)? {
            return Ok(Some(out));
        }
        match from.read(&mut buffer)? {
            0 => return Ok(Some(out)),
            count => out.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(None)
}

/// Copies to the end, or until there is more than `most` or it takes too long. Returns the number of bytes read.
pub(super) fn copy_until(mut from: File, into: &mut File, most: u64, until: Instant) -> io::Result<u64> {
    let mut buffer = vec![0; limits::TAKEN_BYTES];
    let mut copied = 0;
    while copied <= most && wait_readable(&from, until)? {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        into.write_all(&buffer[..count])?;
        copied += count as u64;
    }
    Ok(copied)
}

/// Reads until a deadline.
pub(in crate::workspace) struct TimedRead {
    pub(super) from: File,
    pub(super) until: Instant,
}

impl Read for TimedRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if wait_readable(&self.from, self.until)? {
            self.from.read(buffer)
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// Waits until there is something to read, the end included, and returns whether it came in time.
pub(super) fn wait_readable(from: impl AsFd, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&from, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads to the end, so that the child never blocks on a full pipe, and keeps the beginning of what is not progress.
/// git ends a line of progress with a carriage return, which is followed by the next.
pub(super) fn collect_messages(mut from: impl Read + Send + 'static, progress: Option<Progress>) -> JoinHandle<String> {
    const MOST: usize = limits::GIT_WORDS_BYTES as usize;
    thread::spawn(move || {
        let mut kept = String::new();
        let mut line = Vec::new();
        let mut keep = |line: &mut Vec<u8>| {
            let text = String::from_utf8_lossy(line);
            let is_progress = progress.as_ref().is_some_and(|progress| progress.read_line(&text));
            if !is_progress && kept.len() + text.len() <= MOST {
                kept.push_str(&text);
            }
            line.clear();
        };
        let mut buffer = [0; MOST];
        // An error here shortens a message, nothing else.
        while let Ok(count) = from.read(&mut buffer)
            && count > 0
        {
            for byte in &buffer[..count] {
                line.push(*byte);
                if matches!(byte, b'\r' | b'\n') || line.len() == MOST {
                    keep(&mut line);
                }
            }
        }
        keep(&mut line);
        kept
    })
}
