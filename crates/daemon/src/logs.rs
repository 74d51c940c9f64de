//! Logs: to stderr, for people on a terminal and as JSON lines otherwise. They name agents and operations, never what
//! was said.
//!
//! A line that can't be written is dropped and counted. It must never panic the task that logs it, nor keep it waiting:
//! the log may be on the disk that is full. The log of a daemon in the background is `daemon.log` of its home, which is
//! rotated here when it has grown long.

use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use abide_engine::Clock;
use abide_private::{Existing, close_to_others, open_private};
use rustix::fs::{Stat, fstat};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The log is rotated once it has this many bytes.
const ROTATED_AT: u64 = 10 << 20;
/// Rotated logs that are kept: `daemon.log.1` is the newest.
const KEPT: u32 = 3;

static LOST: AtomicU64 = AtomicU64::new(0);

/// Lines that could not be written since this process began.
pub fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Where a daemon in the background logs.
pub fn path(home: &Path) -> PathBuf {
    home.join("daemon.log")
}

/// The `number`th rotated log of one, from the newest on.
pub fn rotated(log: &Path, number: u32) -> PathBuf {
    log.with_extension(format!("log.{number}"))
}

/// Begins logging. Only a daemon logs.
pub fn begin(level: LevelFilter, home: &Path) {
    let json = !io::stderr().is_terminal();
    let log = path(home);
    let rotates = is_stderr(&log).then_some(log);
    let writer = LogWriter { json, rotates, state: Mutex::default() };
    // Its complaint about a line that can't be written is an `eprintln!`, which panics where stderr can't be written.
    let logs = tracing_subscriber::fmt().log_internal_errors(false).with_max_level(level);
    let logs = logs.with_writer(writer).with_target(false);
    let began = if json { logs.json().flatten_event(true).try_init() } else { logs.compact().try_init() };
    // Somebody else may log already: a test, for one.
    drop(began);
}

/// Moves a log away, and puts an empty one in its place. Where there is none, it is made.
pub fn rotate(log: &Path) -> io::Result<File> {
    // Made first: where that fails, the logs are where they were.
    let next = log.with_extension("log.new");
    let file = open_private(&next, Existing::Append)?;
    file.set_len(0)?;
    for number in (1..KEPT).rev() {
        // One that does not exist, or can't be moved, is replaced by the next younger one.
        let _left = fs::rename(rotated(log, number), rotated(log, number + 1));
    }
    let newest = rotated(log, 1);
    match fs::rename(log, &newest).and_then(|()| close_to_others(&newest)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    fs::rename(&next, log)?;
    Ok(file)
}

/// Writes whole lines to stderr, and never fails.
#[derive(Debug)]
struct LogWriter {
    json: bool,
    /// The file that stderr is, if it is ours to rotate.
    rotates: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Lines lost since the last one that was written.
    lost: u64,
    /// The last write ended within a line.
    torn: bool,
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

/// For one line, which comes in one write.
struct Line<'a>(&'a LogWriter);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogWriter {
    fn write_line(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = self.rotates.as_deref().filter(|_| size_of_stderr() >= ROTATED_AT) {
            // Where it can't be rotated, the log goes on in the file that it is in.
            let _same = rotate(log).and_then(write_to);
        }
        let mut text = Vec::new();
        if state.torn {
            text.push(b'\n');
        }
        if state.lost > 0 {
            text.extend(self.gap_line(state.lost));
        }
        text.extend(line);
        match write_all(&text) {
            Ok(()) => *state = State::default(),
            Err(written) => {
                state.torn = if written == 0 { state.torn } else { text[written - 1] != b'\n' };
                state.lost += 1;
                LOST.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Says that lines are missing, in the form of the others.
    fn gap_line(&self, lines: u64) -> Vec<u8> {
        const MESSAGE: &str = "log lines could not be written and were dropped";
        let now = Clock::System.now();
        let text = match self.json {
            true => format!(r#"{{"timestamp":"{now}","level":"WARN","message":"{MESSAGE}","lines":{lines}}}"#),
            false => format!("{now}  WARN {MESSAGE} lines={lines}"),
        };
        format!("{text}\n").into_bytes()
    }
}

/// Or how much of it was written before that failed.
fn write_all(text: &[u8]) -> Result<(), usize> {
    let mut stderr = io::stderr().lock();
    let mut written = 0;
    while written < text.len() {
        match stderr.write(&text[written..]) {
            Ok(0) => return Err(written),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(written),
        }
    }
    Ok(())
}

/// From here on what this process says goes to another file. What the ready line was written to is the log as well, and
/// would keep the old file from being removed.
fn write_to(log: File) -> io::Result<()> {
    let same = |stdout: Stat, stderr: Stat| (stdout.st_dev, stdout.st_ino) == (stderr.st_dev, stderr.st_ino);
    if same(fstat(io::stdout())?, fstat(io::stderr())?) {
        dup2_stdout(&log)?;
    }
    Ok(dup2_stderr(&log)?)
}

fn size_of_stderr() -> u64 {
    fstat(io::stderr()).map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0))
}

fn is_stderr(log: &Path) -> bool {
    match (fs::metadata(log), fstat(io::stderr())) {
        (Ok(log), Ok(stderr)) => log.is_file() && (log.dev(), log.ino()) == (stderr.st_dev, stderr.st_ino),
        (Ok(_) | Err(_), _) => false,
    }
}
