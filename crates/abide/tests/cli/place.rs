//! A temporary place with a home in it, and the binary run against it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A folder of its own for each test, gone when the test is over. The home in it is called `home`.
pub struct Place(TempDir);

/// How a command ended and what it said.
#[derive(Debug, PartialEq)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn empty() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// `abide`, in this place and with its home. The environment of the test runner is hidden.
    pub fn command(&self, args: &[&str]) -> Command {
        // Another build of it can be named: a soak is about the one that people run.
        let built = std::env::var_os("ABIDE_TEST_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_abide").into());
        let mut command = Command::new(built);
        command.current_dir(self.0.path()).env_clear().env("ABIDE_HOME", "home").args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Runs what is expected to go well, and returns what it says.
    pub fn says(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        ran.out
    }

    /// The same, as JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        document(&self.says(&[args, &["--json"]].concat()))
    }

    /// Runs what is expected to end with `code` and with nothing on stdout, as text and as JSON; returns the error.
    pub fn refused(&self, code: i32, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{args:?}: {}", ran.err);
        let error = ran.err.strip_prefix("abide: ").and_then(|error| error.strip_suffix('\n'));
        let error = error.unwrap_or_else(|| panic!("{args:?} says {:?}", ran.err)).to_owned();
        let ran = self.run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{args:?}: {}", ran.err);
        assert_eq!(document(&ran.err)["error"], error.as_str());
        error
    }

    /// How much the ledger holds, apart from how it is kept.
    pub fn held(&self) -> Value {
        let stats = self.json(&["ledger", "stats"]);
        let names = ["streams", "facts", "blobs", "blob_bytes"];
        names.iter().map(|name| ((*name).to_owned(), stats[*name].clone())).collect::<serde_json::Map<_, _>>().into()
    }
}

/// A daemon that serves a place's home, killed when the test is over.
pub struct Daemon {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub url: String,
}

impl Daemon {
    /// Starts `abide up` on a free port, and returns when it is ready.
    pub fn start(place: &Place, more: &[&str]) -> Daemon {
        let words = [&["up", "--listen", "127.0.0.1:0", "--json"], more].concat();
        Daemon::of(place.command(&words))
    }

    /// One that finds programs, for commands and for git.
    pub fn start_with_path(place: &Place) -> Daemon {
        let mut command = place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Daemon::of(command)
    }

    /// The daemon of any command, after it is ready.
    pub fn of(mut command: Command) -> Daemon {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready = document(&line);
        assert_eq!(ready["event"], "ready", "{line}");
        assert_eq!(ready["pid"], child.id());
        Daemon { child, stdout, url: ready["url"].as_str().unwrap().to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As `kill -9` would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end, for so long at most; returns the exit code and what else it said on stdout.
    pub fn gone(&mut self, within: Duration) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < within, "it is still there after {within:?}");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A whole PNG of so many bytes, two pixels wide.
pub fn png(bytes: usize) -> Vec<u8> {
    let chunk = |name: &[u8; 4], data: &[u8]| {
        [&u32::try_from(data.len()).unwrap().to_be_bytes()[..], name, data, &[0; 4]].concat()
    };
    let header = chunk(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
    let (drawn, end) = (chunk(b"IDAT", &[7]), chunk(b"IEND", &[]));
    let filler = chunk(b"fiLl", &vec![7; bytes - 70]);
    [b"\x89PNG\r\n\x1a\n", &header[..], &filler, &drawn, &end].concat()
}

/// One JSON document on one line, and nothing else.
pub fn document(text: &str) -> Value {
    let line = text.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {text:?}"));
    assert!(!line.contains('\n'), "more than one line: {text:?}");
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Everything in a folder, by path.
pub fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

pub fn copy(from: &Path, to: &Path) {
    for (path, bytes) in contents(from) {
        let path = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
