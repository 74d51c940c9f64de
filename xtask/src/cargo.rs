//! Commands as data: the command that is printed is the one that runs, and it runs at the root of the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The build that nextest runs: the same packages, features and profile, so that nothing is compiled for it but what
/// changed since.
const TEST_BUILD: [&str; 6] =
    ["test", "--no-run", "--workspace", "--all-features", "--quiet", "--message-format=json-render-diagnostics"];

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where builds go, and tools that are ours alone.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A command at the workspace's root. The variables that `cargo run` sets for us describe xtask; a build script that
/// watched one of them would rebuild whenever it ran through xtask and again when it did not.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let described = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_PRIMARY_PACKAGE"
        });
        if described {
            command.env_remove(name);
        }
    }
    command
}

/// Runs to the end with everything it says let through.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<()> {
    let status = command(program, args).status().with_context(|| format!("`{program}` does not start"))?;
    ensure!(status.success(), "`{}` failed ({status})", line(program, args));
    Ok(())
}

/// Runs to the end and hands back what it said on stdout, which is shown only if it failed.
pub(crate) fn read(program: &str, args: &[&str]) -> Result<String> {
    let output = command(program, args)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{program}` does not start"))?;
    if !output.status.success() {
        print!("{}", String::from_utf8_lossy(&output.stdout));
        bail!("`{}` failed ({})", line(program, args), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` did not print UTF-8", line(program, args)))
}

/// The path of one of our programs as the tests were built with it.
pub(crate) fn test_program(name: &str) -> Result<PathBuf> {
    let messages = read("cargo", &TEST_BUILD)?;
    program_in(&messages, name).with_context(|| format!("the build of the tests has no program `{name}`"))
}

/// The program of that name in cargo's messages; the unit tests of a program are another executable.
fn program_in(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: &Value| {
        let target = &message["target"];
        let ours = target["name"] == name && target["kind"][0] == "bin" && message["profile"]["test"] == false;
        ours.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
    };
    messages.filter(|message| message["reason"] == "compiler-artifact").find_map(|message| program(&message))
}

/// Whether it starts and succeeds, silently: the way to ask for a tool is to ask the tool.
pub(crate) fn answers(program: &str, args: &[&str]) -> bool {
    command(program, args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as a person would type it.
pub(crate) fn line(program: &str, args: &[&str]) -> String {
    let mut line = program.to_owned();
    for arg in args {
        line.push(' ');
        line.push_str(arg);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::program_in;

    #[test]
    fn a_program_is_found_and_its_unit_tests_are_not() {
        let artifact = |name: &str, kind: &str, test: bool, path: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"name":"{name}","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"{path}"}}"#
            )
        };
        let messages = [
            artifact("abide", "bin", true, "/t/deps/abide-1"),
            artifact("abide", "lib", false, "/t/libabide.rlib"),
            "no json".to_owned(),
            artifact("abide", "bin", false, "/t/abide"),
        ];
        let found = program_in(&messages.join("\n"), "abide");
        assert_eq!(found.as_deref(), Some(std::path::Path::new("/t/abide")));
        assert!(program_in(&messages[..3].join("\n"), "abide").is_none());
    }
}
