//! Only for the tests of commands. As a supervisor it is what the daemon's own binary is. Otherwise it stands in for
//! the daemon: it starts one command, says what came of that, and stays until it is killed. Inside a command it tries
//! what commands must not do.
#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test stops where it fails, and is told by a line"
)]

#[path = "stand_in/probes.rs"]
mod probes;

use std::path::PathBuf;

use abide_effects::process::{self, Bounds, Launch, Options, Processes};
use abide_effects::sandbox::{Mechanism, Mode, Sandbox};

fn main() {
    if process::is_supervisor() {
        process::supervise();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["__victim"] => return probes::be_victim(),
        ["__probe", victim, key] => {
            let outside = probes::Outside { victim: victim.parse().unwrap(), shared_memory_key: key.parse().unwrap() };
            print!("{}", probes::report(outside));
            return;
        }
        ["__unknown"] => {
            print!("{}", probes::unknown());
            return;
        }
        ["__reserve"] => return probes::reserve(),
        ["__share", mib] => return probes::share(mib.parse().unwrap()),
        ["__mapped_file", path, mib] => return probes::mapped_file(path, mib.parse().unwrap()),
        ["__memory_file", mib] => return probes::memory_file(mib.parse().unwrap()),
        _ => {}
    }
    let [home, root, mechanism, command] = arguments.as_slice() else { panic!("HOME ROOT MECHANISM COMMAND") };
    let (home, root) = (PathBuf::from(home), PathBuf::from(root));
    let sandbox = match mechanism.as_str() {
        "bubblewrap" => Sandbox::probe_among(Mode::Required, &home, &[Mechanism::Bubblewrap]),
        "landlock" => Sandbox::probe_among(Mode::Required, &home, &[Mechanism::Landlock]),
        "none" => Sandbox::probe_among(Mode::Off, &home, &[]),
        other => panic!("no mechanism {other}"),
    };
    let program = std::env::current_exe().unwrap();
    let control_groups = std::env::var_os("NO_CONTROL_GROUPS").is_none();
    let processes =
        Processes::new(Options { program, home, sandbox, control_groups, bounds: Bounds::default() }).unwrap();
    let launch = Launch {
        network: std::env::var_os("NETWORK").is_some(),
        output: std::env::var_os("KEEP").map(PathBuf::from),
        processes_max: 64,
        ..Launch::new(command.clone(), &root, "stand_in")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let process = runtime.block_on(processes.start(launch)).unwrap_or_else(|error| panic!("{error}"));
    println!("{}", process.recovery());
    loop {
        std::thread::park();
    }
}
