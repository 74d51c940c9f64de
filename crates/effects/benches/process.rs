//! The cost of owning a command, against the same done bare, in the same run.
//!
//! One JSON line per figure: `{"name","value","unit","baseline","ratio","goal"}`; the goal says which way the ratio
//! should go.

#![allow(clippy::disallowed_methods, reason = "measurements make files as users do")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench stops where it fails, and prints its figures")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use abide_effects::process::{Bounds, Launch, Options, Process, Processes};
use abide_effects::sandbox::{Mechanism, Mode, Sandbox};

const STAND_IN: &str = env!("CARGO_BIN_EXE_effects-stand-in");
const ROUNDS: usize = 5;
const STARTS: usize = 40;
const BYTES: u64 = 1 << 30;

fn main() {
    // Cargo hands `--bench` to every bench; anything else is a wish for fewer figures.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wish| name.contains(wish.as_str()));
    let world = World::new();
    if wants("tasks.spawn") {
        let bare = world.bare_arguments();
        let (value, baseline) = paired(|| world.spawns(), || spawns_bare(&bare));
        print("tasks.spawn", value, "us", baseline, "<= 1.5", &serde_json::json!({}));
    }
    if wants("tasks.output") {
        let before = resident_kib();
        let (value, baseline) = paired(|| world.writes(), writes_bare);
        let resident = serde_json::json!({ "rss_kib_before": before, "rss_kib_after": resident_kib() });
        print("tasks.output", value, "ms", baseline, "<= 2", &resident);
    }
}

fn print(name: &str, value: f64, unit: &str, baseline: f64, goal: &str, more: &serde_json::Value) {
    let ratio = value / baseline;
    let mut row = serde_json::json!({ "name": name, "value": value.round(), "unit": unit, "baseline": baseline.round(),
        "ratio": (ratio * 100.0).round() / 100.0, "goal": goal });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    println!("{row}");
}

/// Medians of both, taken in turns so that a slow minute of the machine hits them alike.
fn paired(value: impl Fn() -> f64, baseline: impl Fn() -> f64) -> (f64, f64) {
    let (mut values, mut baselines): (Vec<f64>, Vec<f64>) = (0..ROUNDS).map(|_| (value(), baseline())).unzip();
    let median = |list: &mut Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    };
    (median(&mut values), median(&mut baselines))
}

struct World {
    dir: tempfile::TempDir,
    processes: Processes,
    runtime: tokio::runtime::Runtime,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (home, root) = (dir.path().join("home"), dir.path().join("root"));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&root).unwrap();
        let among: &[Mechanism] = match std::env::var("MECHANISM").as_deref() {
            Ok("landlock") => &[Mechanism::Landlock],
            Ok(_) | Err(_) => &[Mechanism::Bubblewrap, Mechanism::Landlock],
        };
        let sandbox = Sandbox::probe_among(Mode::Required, &home, among);
        let program = PathBuf::from(STAND_IN);
        let processes =
            Processes::new(Options { program, home, sandbox, control_groups: true, bounds: Bounds::default() })
                .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        World { dir, processes, runtime }
    }

    fn start(&self, command: &str) -> Process {
        let root = self.dir.path().canonicalize().unwrap().join("root");
        let launch = Launch { processes_max: 512, ..Launch::new(command, &root, "bench") };
        self.runtime.block_on(self.processes.start(launch)).unwrap()
    }

    /// The wrapper of a start, read from a running one, with the command itself in the supervisor's place.
    fn bare_arguments(&self) -> Vec<String> {
        let process = self.start("sleep 1000");
        let supervisor = process.recovery().split(' ').nth(1).unwrap().to_owned();
        let stat = std::fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap();
        let parent = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().to_owned();
        let wrapping = std::fs::read_to_string(format!("/proc/{parent}/cmdline")).unwrap();
        process.stop(true);
        let command = ["/bin/bash", "-c", "true"].map(str::to_owned);
        match self.processes.sandbox().mechanism() {
            Mechanism::Bubblewrap => wrapping
                .split('\0')
                .take_while(|word| *word != "/proc/self/fd/1")
                .map(str::to_owned)
                .chain(command)
                .collect(),
            Mechanism::Landlock | Mechanism::None => command.to_vec(),
        }
    }

    /// Microseconds per start and wait.
    fn spawns(&self) -> f64 {
        let begin = Instant::now();
        for _ in 0..STARTS {
            let ended = self.runtime.block_on(self.start("true").wait());
            assert_eq!(ended.exit_code, Some(0));
        }
        begin.elapsed().as_secs_f64() * 1e6 / STARTS as f64
    }

    /// Milliseconds for all the bytes.
    fn writes(&self) -> f64 {
        let begin = Instant::now();
        let process = self.start(&format!("head -c {BYTES} /dev/zero"));
        process.keep_output_in(&self.dir.path().join("kept")).unwrap();
        self.runtime.block_on(process.wait());
        assert_eq!(process.output().combined.total, BYTES);
        begin.elapsed().as_secs_f64() * 1e3
    }
}

fn spawns_bare(arguments: &[String]) -> f64 {
    let begin = Instant::now();
    for _ in 0..STARTS {
        let status = Command::new(&arguments[0]).args(&arguments[1..]).stdin(Stdio::null()).status().unwrap();
        assert!(status.success());
    }
    begin.elapsed().as_secs_f64() * 1e6 / STARTS as f64
}

fn writes_bare() -> f64 {
    let begin = Instant::now();
    let command = format!("head -c {BYTES} /dev/zero | cat > /dev/null");
    assert!(Command::new("/bin/bash").args(["-c", &command]).status().unwrap().success());
    begin.elapsed().as_secs_f64() * 1e3
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
