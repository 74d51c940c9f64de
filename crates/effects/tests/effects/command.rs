//! Real commands, in each sandbox this machine has. A mechanism that does not work here is named, and its tests say so.
#![allow(clippy::print_stdout, reason = "a test that fails shows what the command said")]

mod disk;
mod endings;
mod escape;
mod kernel;
mod killed;
mod memory;
mod output;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_effects::process::{Bounds, Launch, Options, Output, Process, ProcessExit, Processes};
use abide_effects::sandbox::{Mechanism, Mode, Sandbox};
use tempfile::TempDir;

/// Each named function as a test in each mechanism, and without any.
macro_rules! with_and_without_sandbox {
    ($($name:ident),* $(,)?) => {
        $crate::command::in_each_sandbox!($($name),*);
        mod bare {
            $(#[tokio::test]
            async fn $name() {
                let world = $crate::command::World::new(abide_effects::sandbox::Mechanism::None);
                super::$name(world.unwrap()).await;
            })*
        }
    };
}
pub(crate) use with_and_without_sandbox;

/// Each named function as a test in each mechanism.
macro_rules! in_each_sandbox {
    ($($name:ident),* $(,)?) => {
        mod bubblewrap {
            $(#[tokio::test]
            async fn $name() {
                if let Some(world) = $crate::command::World::new(abide_effects::sandbox::Mechanism::Bubblewrap) {
                    super::$name(world).await;
                }
            })*
        }
        mod landlock {
            $(#[tokio::test]
            async fn $name() {
                if let Some(world) = $crate::command::World::new(abide_effects::sandbox::Mechanism::Landlock) {
                    super::$name(world).await;
                }
            })*
        }
    };
}
pub(crate) use in_each_sandbox;

/// A home with a token in it, a workspace, a folder beside it, and an owner of commands.
pub(crate) struct World {
    pub dir: TempDir,
    pub mechanism: Mechanism,
    pub processes: Processes,
}

pub(crate) const STAND_IN: &str = env!("CARGO_BIN_EXE_effects-stand-in");

impl World {
    pub(crate) fn new(mechanism: Mechanism) -> Option<World> {
        World::build(mechanism, true)
    }

    pub(crate) fn build(mechanism: Mechanism, control_groups: bool) -> Option<World> {
        World::bounded(mechanism, control_groups, Bounds::default())
    }

    pub(crate) fn bounded(mechanism: Mechanism, control_groups: bool, bounds: Bounds) -> Option<World> {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "root", "outside"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let home = dir.path().join("home");
        fs::write(home.join("token"), "the runtime's token").unwrap();
        fs::write(dir.path().join("outside/file"), "not yours").unwrap();
        let sandbox = probe(mechanism, &home);
        if sandbox.refuses() {
            println!("not tested here: {:?}", sandbox.problems());
            return None;
        }
        assert_eq!(sandbox.mechanism(), mechanism);
        let program = PathBuf::from(STAND_IN);
        let processes = Processes::new(Options { program, home, sandbox, control_groups, bounds }).unwrap();
        Some(World { dir, mechanism, processes })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn launch(&self, command: &str) -> Launch {
        Launch { processes_max: 64, ..Launch::new(command, &self.path("root"), "label") }
    }

    pub(crate) async fn start(&self, command: &str) -> Process {
        self.processes.start(self.launch(command)).await.unwrap()
    }

    pub(crate) async fn run(&self, command: &str) -> (ProcessExit, Output) {
        let process = self.start(command).await;
        let ended = process.wait().await;
        (ended, process.output())
    }

    /// Standard output as text, and the exit code.
    pub(crate) async fn say(&self, command: &str) -> (String, Option<i32>) {
        let (ended, output) = self.run(command).await;
        let text =
            |kept: &abide_effects::process::OutputExcerpt| String::from_utf8_lossy(&kept.whole().unwrap()).into_owned();
        println!("{}", text(&output.stderr));
        (text(&output.stdout), ended.exit_code)
    }

    /// The running processes with this command's marker.
    pub(crate) fn alive(&self, process: &Process) -> Vec<i32> {
        carriers(marker_in(&process.recovery()))
    }
}

pub(crate) fn probe(mechanism: Mechanism, home: &Path) -> Sandbox {
    let mode = if mechanism == Mechanism::None { Mode::Off } else { Mode::Required };
    Sandbox::probe_among(mode, home, &[mechanism])
}

pub(crate) fn marker_in(recovery: &str) -> &str {
    recovery.split_once(" marker ").unwrap().1
}

/// The processes that carry a marker in their environment or arguments, zombies aside.
pub(crate) fn carriers(marker: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let holds = |name: &str| {
                let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
            };
            holds("environ") || holds("cmdline")
        })
        .collect()
}

/// Until it is so; a test that waits in vain fails by its runner's deadline at the latest.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain: {what}");
}
