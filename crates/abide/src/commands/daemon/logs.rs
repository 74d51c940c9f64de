//! `abide daemon logs`: the log of the daemon.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use abide_daemon::logs::{path as log_path, rotated};
use anyhow::Context;
use serde::Serialize;

use crate::output::{Failed, Output, many_lines};

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The part at the end of a log that is searched for lines.
const TAIL_BYTES: u64 = 1 << 20;

#[derive(Serialize)]
struct LogLine<'a> {
    line: &'a str,
}

pub fn run(follow: bool, last: usize, home: &Path, out: &Output) -> anyhow::Result<()> {
    let path = log_path(home);
    let mut log = Log::open(&path)?.ok_or_else(|| {
        let place = path.display();
        Failed::NotFound(format!(
            "{place} does not exist; `abide daemon start` makes it, `abide up` writes to its terminal"
        ))
    })?;
    let end = log.skip()?;
    let mut lines = tail_until(&path, end, last)?;
    if lines.len() < last {
        // A log that was just rotated says little. The one before it may be missing, or gone by now.
        let earlier = tail(&rotated(&path, 1), last - lines.len()).unwrap_or_default();
        lines.splice(0..0, earlier);
    }
    for line in lines {
        if !show(&line, out)? {
            return Ok(());
        }
    }
    if follow { go_on(log, &path, out) } else { Ok(()) }
}

/// Shows what is written from here on, until nobody reads it.
fn go_on(mut log: Log, path: &Path, out: &Output) -> anyhow::Result<()> {
    loop {
        if let Some(line) = log.line()? {
            if !show(&line, out)? {
                return Ok(());
            }
            continue;
        }
        // A daemon that is started anew has a new log, and so has one whose log was rotated.
        match Log::open(path)?.filter(|new| new.inode != log.inode) {
            Some(new) => {
                // From here on nothing is added to the old one.
                while let Some(line) = log.line()? {
                    if !show(&line, out)? {
                        return Ok(());
                    }
                }
                log = new;
            }
            None => sleep(LOOK_EVERY),
        }
    }
}

fn show(line: &str, out: &Output) -> anyhow::Result<bool> {
    out.line(&LogLine { line }, || many_lines(if line.is_empty() { "\n" } else { line }))
}

/// The last lines of a log.
pub fn tail(path: &Path, lines: usize) -> anyhow::Result<Vec<String>> {
    tail_until(path, std::fs::metadata(path)?.len(), lines)
}

/// The last lines before a position. A caller that continues from the position shows no line twice.
fn tail_until(path: &Path, end: u64, lines: usize) -> anyhow::Result<Vec<String>> {
    let context = || format!("can't read {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    let from = end.saturating_sub(TAIL_BYTES);
    file.seek(std::io::SeekFrom::Start(from)).with_context(context)?;
    let mut bytes = Vec::new();
    file.take(end - from).read_to_end(&mut bytes).with_context(context)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    if from > 0 && !all.is_empty() {
        // Cut off at its beginning.
        all.remove(0);
    }
    let first = all.len().saturating_sub(lines);
    Ok(all.split_off(first))
}

/// A log that is still written to.
struct Log {
    reader: BufReader<File>,
    inode: u64,
    /// A line whose end is not written yet.
    begun: Vec<u8>,
}

impl Log {
    fn open(path: &Path) -> anyhow::Result<Option<Log>> {
        match File::open(path) {
            Ok(file) => {
                let inode = file.metadata().map(|found| found.ino()).unwrap_or(0);
                Ok(Some(Log { reader: BufReader::new(file), inode, begun: Vec::new() }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
        }
    }

    /// To the end, which is where what is there already ends.
    fn skip(&mut self) -> anyhow::Result<u64> {
        self.reader.seek(std::io::SeekFrom::End(0)).context("can't read the log")
    }

    fn line(&mut self) -> anyhow::Result<Option<String>> {
        self.reader.read_until(b'\n', &mut self.begun).context("can't read the log")?;
        if self.begun.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.begun.pop();
        let line = std::mem::take(&mut self.begun);
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}
