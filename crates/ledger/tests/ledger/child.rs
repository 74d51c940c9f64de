//! This test binary as a process of its own: some things can be seen only from outside, or die.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HOME: &str = "LEDGER_TEST_HOME";

/// The command that runs one ignored test of this binary on a home, its output piped.
pub fn child(test: &str, home: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    arm(&mut command, test, home);
    command
}

/// The same, below another program that runs its arguments.
pub fn child_under(program: &str, args: &[&str], test: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(args).arg(std::env::current_exe().unwrap());
    arm(&mut command, test, home);
    command
}

fn arm(command: &mut Command, test: &str, home: &Path) {
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env(HOME, home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// In the child: the home it was given. `None` when somebody runs ignored tests by hand.
pub fn home() -> Option<PathBuf> {
    std::env::var_os(HOME).map(PathBuf::from)
}
