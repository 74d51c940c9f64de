//! A disk that is full: the old file stays whole, and nothing is left behind.

use std::path::Path;
use std::process::{Command, Stdio};

use abide_effects::files::{self, Root};
use serde_json::{Value, json};

use crate::calls::file_call;
use abide_kernel::refusal::ErrorCode;

const FOLDER: &str = "EFFECTS_TEST_FOLDER";

/// A real disk of one MiB, in a namespace of its own; where the system does not allow that, a limit on the size of
/// files stands in. One of the two always runs.
#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let namespace = Command::new("unshare").args(["-Urm", "true"]).output().is_ok_and(|done| done.status.success());
    let mut command = if namespace {
        let mut command = Command::new("unshare");
        command.arg("-Urm");
        command
    } else {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -S -f 1500; exec \"$@\"", "sh"]);
        command
    };
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "files_disk::child_on_a_small_disk", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder.path()).env("EFFECTS_TEST_MOUNT", if namespace { "yes" } else { "no" });
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("the old files are whole"), "{said}");
}

fn call(root: &Root, tool: &str, input: Value) -> Result<Value, abide_kernel::input::Refusal> {
    files::run(&file_call(tool, &input).unwrap(), root)
}

/// A small change to one file and a large new one.
fn patch(old: &str, large: &str) -> String {
    let no_end = "\\ No newline at end of file";
    format!(
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-{old}\n{no_end}\n+small\n{no_end}\n--- /dev/null\n+++ b/n/b\n@@ -0,0 +1 @@\n\
         +{large}\n"
    )
}

#[test]
#[ignore = "runs as a child process"]
fn child_on_a_small_disk() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let mounted = std::env::var("EFFECTS_TEST_MOUNT").is_ok_and(|value| value == "yes");
    if mounted {
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder).status().unwrap();
        assert!(status.success());
    }
    let root = Root::open(folder).unwrap();
    let old = "o".repeat(400_000);
    call(&root, "WriteFile", json!({ "path": "a", "content": old })).unwrap();
    for (tool, input) in [
        ("WriteFile", json!({ "path": "a", "content": "x".repeat(2_000_000) })),
        ("WriteFile", json!({ "path": "new/folder/b", "content": "x".repeat(2_000_000) })),
        ("EditFile", json!({ "path": "a", "old": "o", "new": "xxxxx", "all": true })),
        // The first file is written, the second has no room, and the first is put back.
        ("ApplyPatch", json!({ "patch": patch(&old, &"x".repeat(2_000_000)) })),
    ] {
        let refusal = call(&root, tool, input).unwrap_err();
        assert!(!mounted || refusal.code == ErrorCode::DiskFull, "{refusal:?}");
        assert_eq!(std::fs::read_to_string(folder.join("a")).unwrap(), old);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
    }
    call(&root, "WriteFile", json!({ "path": "a", "content": "less" })).unwrap();
    println!("the old files are whole");
}
