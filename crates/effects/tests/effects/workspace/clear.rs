//! Clearing away the worktrees that a crash left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abide_effects::workspace::{RemovalReport, find_left};
use abide_kernel::input::Refusal;
use abide_kernel::time::Time;

use super::{Ground, git, put, refused};

fn clear(ground: &Ground, folder: &Path) -> Result<RemovalReport, Refusal> {
    ground.repositories().clear_worktree(folder, &ground.patches(), Time::from_ms(1_000))
}

/// Turns the record of a worktree into the note that is there while it is made.
fn cut_off(ground: &Ground, name: &str) {
    let place = |prefix: &str| ground.worktrees().join(format!("{prefix}{name}"));
    fs::rename(place(".record-"), place(".making-")).unwrap();
}

fn nothing_left(ground: &Ground) {
    assert_eq!(find_left(&ground.worktrees()).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 0);
    let mirrors = fs::read_dir(ground.home.join("mirrors")).unwrap();
    for mirror in mirrors {
        assert_eq!(git(&mirror.unwrap().path(), &["for-each-ref", "refs/abide/base"]), "");
    }
}

#[test]
fn a_worktree_leaves_no_note_once_it_is_made() {
    let ground = Ground::new();
    assert_eq!(find_left(&ground.worktrees()).unwrap(), Vec::<PathBuf>::new());
    let made = ground.worktree("one");
    assert_eq!(find_left(&ground.worktrees()).unwrap(), std::slice::from_ref(&made.path));
    assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 2, "the folder and its record");
    let removed = clear(&ground, &made.path).unwrap();
    assert_eq!(removed.patch, None);
    nothing_left(&ground);
}

#[test]
fn work_is_saved_first() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    put(&made.path.join("work"), "work");
    let patch = clear(&ground, &made.path).unwrap().patch.unwrap();
    nothing_left(&ground);
    assert_eq!(fs::read_to_string(ground.put_back(&patch, "HEAD").join("work")).unwrap(), "work");
}

#[test]
fn a_making_that_was_cut_off_leaves_nothing() {
    let ground = Ground::new();
    // With everything there but the record, half of the files, an empty folder, or no folder.
    for (number, leave) in [
        &(|_: &Path| ()) as &dyn Fn(&Path),
        &|at: &Path| fs::remove_file(at.join("kept.txt")).unwrap(),
        &|at: &Path| fs::remove_dir_all(at).and_then(|()| fs::create_dir(at)).unwrap(),
        &|at: &Path| fs::remove_dir_all(at).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("number-{number}");
        let made = ground.worktree(&name);
        cut_off(&ground, &name);
        leave(&made.path);
        assert_eq!(find_left(&ground.worktrees()).unwrap(), std::slice::from_ref(&made.path));
        clear(&ground, &made.path).unwrap();
        nothing_left(&ground);
    }
}

#[test]
fn a_clearing_that_was_cut_off_is_picked_up() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    put(&made.path.join("work"), "work");
    fs::rename(&made.path, ground.worktrees().join(".going-one")).unwrap();
    assert_eq!(find_left(&ground.worktrees()).unwrap(), std::slice::from_ref(&made.path));
    assert!(clear(&ground, &made.path).unwrap().patch.is_some());
    nothing_left(&ground);
}

#[test]
fn what_is_no_worktree_stays() {
    let ground = Ground::new();
    let foreign = ground.worktrees().join("foreign");
    put(&foreign.join("file"), "somebody's");
    assert_eq!(refused(clear(&ground, &foreign)), "not_a_worktree");
    let copied = ground.worktrees().join("copied");
    git(&ground.home, &["clone", "-q", ground.repo.to_str().unwrap(), copied.to_str().unwrap()]);
    assert_eq!(refused(clear(&ground, &copied)), "not_a_worktree");
    assert!(foreign.join("file").exists() && copied.join("kept.txt").exists());
}

#[test]
fn a_git_that_outlived_its_daemon_is_waited_for() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    cut_off(&ground, "one");
    let held = fs::File::open(ground.worktrees().join(".making-one")).unwrap();
    held.try_lock().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "echo late > \"$0/late\""]).arg(&made.path).stdin(held);
    let mut orphan = command.spawn().unwrap();
    drop(command);
    clear(&ground, &made.path).unwrap();
    assert!(orphan.wait().unwrap().success());
    nothing_left(&ground);
}
