//! Upkeep of mirrors: fewer packs, no object less, and none that is needed is removed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use abide_effects::workspace::UpkeepReport;

use super::{Ground, contents, git, put, refused};

const PACKS: usize = 60;

fn mirror(ground: &Ground) -> PathBuf {
    fs::read_dir(ground.home.join("mirrors")).unwrap().next().unwrap().unwrap().path()
}

fn packs(mirror: &Path) -> usize {
    let entries = fs::read_dir(mirror.join("objects/pack")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "pack")).count()
}

/// Packs of one object each, as transfers leave them. No ref leads to the objects.
fn add_packs(mirror: &Path) -> Vec<String> {
    let script = format!(
        "for n in $(seq {PACKS}); do id=$(echo content $n | git hash-object -w --stdin) && echo $id && \
         echo $id | git pack-objects -q objects/pack/pack > /dev/null || exit 1; done; git prune-packed"
    );
    let made = Command::new("sh").arg("-c").arg(script).env("GIT_DIR", mirror).current_dir(mirror).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn tidy(ground: &Ground, days_from_now: u64) -> UpkeepReport {
    let tidied =
        ground.repositories().tidy_mirrors(SystemTime::now() + Duration::from_secs(days_from_now * 24 * 3_600));
    assert!(tidied.failed.is_empty(), "{tidied:?}");
    tidied
}

#[test]
fn packs_are_put_together_under_a_git_that_reads_them() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let mirror = mirror(&ground);
    assert!(tidy(&ground, 0).repacked.is_empty());
    let ids = add_packs(&mirror);
    assert!(packs(&mirror) > PACKS);
    // It knows all packs by now, and has opened one.
    let mut reader = Command::new("git");
    reader.args(["cat-file", "--batch"]).current_dir(&worktree.path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut reader = reader.spawn().unwrap();
    let (mut requests, mut answers) = (reader.stdin.take().unwrap(), BufReader::new(reader.stdout.take().unwrap()));
    let mut read = |id: &str| {
        writeln!(requests, "{id}").unwrap();
        let mut lines = ["", "", ""].map(str::to_owned);
        for line in &mut lines {
            answers.read_line(line).unwrap();
        }
        lines.concat()
    };
    assert!(read(&ids[0]).contains("content 1\n"));
    assert_eq!(tidy(&ground, 0).repacked, std::slice::from_ref(&mirror));
    assert!(packs(&mirror) < 10, "{}", packs(&mirror));
    for (number, id) in ids.iter().enumerate() {
        assert!(read(id).contains(&format!("content {}\n", number + 1)), "{id}");
    }
    drop(requests);
    assert!(reader.wait().unwrap().success());
    git(&mirror, &["fsck", "--strict"]);
    git(&worktree.path, &["fsck", "--strict"]);
}

#[test]
fn a_mirror_goes_only_when_nothing_needs_it() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let mirror = mirror(&ground);
    let stays = |why: &str| {
        assert!(tidy(&ground, 15).removed.is_empty(), "{why}");
        assert!(mirror.join("HEAD").exists(), "{why}");
    };
    stays("a worktree");
    put(&worktree.path.join("work"), "work");
    git(&worktree.path, &["add", "-A"]);
    git(&worktree.path, &["commit", "-q", "-m", "work"]);
    ground.remove(&worktree).unwrap();
    stays("a kept commit");
    ground.fetch_kept();
    assert!(tidy(&ground, 13).removed.is_empty(), "used lately");
    assert_eq!(tidy(&ground, 15).removed, std::slice::from_ref(&mirror));
    assert!(!mirror.exists());
    assert_eq!(refused(ground.repositories().fetch("ada", &ground.repo, None, None)), "no_branch");
    let again = ground.worktree("two");
    assert_eq!(contents(&again.path), contents(&ground.repo));
}
