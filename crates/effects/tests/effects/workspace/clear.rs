//! What a crash leaves of worktrees, cleared away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abide_effects::workspace::{Removed, clear_worktree, left_in};
use abide_kernel::input::Refusal;
use abide_kernel::time::Time;
use serde_json::json;

use super::{Ground, git, put, refused};

fn clear(ground: &Ground, folder: &Path) -> Result<Removed, Refusal> {
    clear_worktree(folder, &ground.home, &ground.patches(), Time::from_ms(1_000))
}

/// The note that is there while git makes a worktree.
fn note(ground: &Ground, name: &str) -> PathBuf {
    let base = ground.git(&["rev-parse", "HEAD"]);
    let path = ground.worktrees().join(name);
    let worktree = json!({ "path": path, "branch": format!("abide/{name}"), "base_commit": base, "repo": ground.repo, "left_out": false });
    put(&ground.worktrees().join(format!(".making-{name}")), worktree.to_string());
    path
}

fn nothing_left(ground: &Ground) {
    assert_eq!(left_in(&ground.worktrees()).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(ground.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(ground.git(&["branch", "--list", "abide/*"]), "");
    assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 0);
}

#[test]
fn a_worktree_leaves_no_note_once_it_is_made() {
    let ground = Ground::new();
    assert_eq!(left_in(&ground.worktrees()).unwrap(), Vec::<PathBuf>::new());
    let made = ground.worktree("one");
    assert_eq!(left_in(&ground.worktrees()).unwrap(), std::slice::from_ref(&made.path));
    assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 1);
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
fn only_a_note_or_only_a_branch_or_an_empty_folder_is_left() {
    let ground = Ground::new();
    let path = note(&ground, "one");
    assert_eq!(left_in(&ground.worktrees()).unwrap(), std::slice::from_ref(&path));
    clear(&ground, &path).unwrap();
    nothing_left(&ground);

    let path = note(&ground, "two");
    ground.git(&["branch", "abide/two"]);
    clear(&ground, &path).unwrap();
    nothing_left(&ground);

    let path = note(&ground, "three");
    ground.git(&["branch", "abide/three"]);
    fs::create_dir(&path).unwrap();
    clear(&ground, &path).unwrap();
    nothing_left(&ground);
}

#[test]
fn git_had_registered_it_and_got_no_further() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    put(&ground.repo.join(".git/worktrees/one/locked"), "initializing");
    fs::remove_dir_all(&made.path).unwrap();
    note(&ground, "one");
    clear(&ground, &made.path).unwrap();
    nothing_left(&ground);
}

#[test]
fn a_clearing_that_was_cut_off_is_picked_up() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    put(&made.path.join("work"), "work");
    note(&ground, "one");
    fs::rename(&made.path, ground.worktrees().join(".going-one")).unwrap();
    assert_eq!(left_in(&ground.worktrees()).unwrap(), std::slice::from_ref(&made.path));
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
fn whoever_is_still_making_it_is_waited_for() {
    let ground = Ground::new();
    let path = note(&ground, "one");
    let held = fs::File::open(ground.worktrees().join(".making-one")).unwrap();
    held.try_lock().unwrap();
    // As git does when its daemon was killed: it goes on, and lets go of the note with its last breath.
    let script = "git worktree add -q -b abide/one \"$0\" && echo work > \"$0/work\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&path).current_dir(&ground.repo).stdin(held);
    let mut orphan = command.spawn().unwrap();
    drop(command);
    let removed = clear(&ground, &path).unwrap();
    assert!(orphan.wait().unwrap().success());
    assert!(removed.patch.is_some());
    nothing_left(&ground);
}
