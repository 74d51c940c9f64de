//! What was recorded against what is there.

use std::fs;
use std::path::PathBuf;

use abide_effects::workspace::{Finding, Removed, Worktree, create_worktree, reconcile};

use super::{Ground, git, put, refused};

fn findings(ground: &Ground, recorded: &[Worktree]) -> Vec<Finding> {
    reconcile(&ground.workspace(), recorded, &ground.worktrees()).unwrap()
}

#[test]
fn recorded_and_there_recorded_and_gone_and_put_in_its_place() {
    let ground = Ground::new();
    let [there, gone, forgotten, replaced] = ["a", "b", "c", "d"].map(|name| ground.worktree(name));
    fs::remove_dir_all(&gone.path).unwrap();
    for lost in [&forgotten, &replaced] {
        ground.git(&["worktree", "remove", lost.path.to_str().unwrap()]);
    }
    put(&replaced.path.join("file"), "");
    let recorded = [there.clone(), gone.clone(), forgotten.clone(), replaced.clone()];
    assert_eq!(
        findings(&ground, &recorded),
        [
            Finding::Present(there),
            Finding::Gone { worktree: gone, listed: true },
            Finding::Gone { worktree: forgotten, listed: false },
            Finding::Unlinked(replaced),
        ]
    );
}

#[test]
fn one_made_just_before_a_crash_is_found_and_can_be_saved_and_removed() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    put(&made.path.join("committed"), "");
    git(&made.path, &["add", "-A"]);
    git(&made.path, &["commit", "-q", "-m", "work"]);
    put(&made.path.join("work"), "work");
    let found = findings(&ground, &[]);
    assert_eq!(found, [Finding::Unrecorded { worktree: made.clone(), finished: true }]);
    let removed = ground.remove(&made).unwrap();
    assert!(removed.patch.is_some());
    assert_eq!(removed.branches_kept, ["abide/one"]);
    assert_eq!(findings(&ground, &[]), []);
}

#[test]
fn one_that_git_was_still_making_is_found_and_removed_without_a_patch() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    let records = ground.repo.join(".git/worktrees/one");
    put(&records.join("locked"), "initializing");
    fs::remove_file(records.join("index")).unwrap();
    fs::remove_file(made.path.join("kept.txt")).unwrap();
    assert_eq!(findings(&ground, &[]), [Finding::Unrecorded { worktree: made.clone(), finished: false }]);
    let removed = ground.remove(&made).unwrap();
    assert_eq!((removed.patch, removed.branches_kept), (None, Vec::new()));
    assert_eq!(findings(&ground, &[]), []);
    // But if there is anything in it that is not committed, that is work.
    let made = ground.worktree("two");
    put(&ground.repo.join(".git/worktrees/two/locked"), "initializing");
    put(&made.path.join("kept.txt"), "changed");
    assert!(ground.remove(&made).unwrap().patch.is_some());
}

#[test]
fn one_without_a_branch_keeps_its_commits() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    git(&made.path, &["checkout", "-q", "--detach"]);
    put(&made.path.join("adrift"), "");
    git(&made.path, &["add", "-A"]);
    git(&made.path, &["commit", "-q", "-m", "adrift"]);
    ground.git(&["branch", "-D", "abide/one"]);
    let [Finding::Unrecorded { worktree, finished: true }] = &findings(&ground, &[])[..] else { panic!() };
    assert_eq!(ground.remove(worktree).unwrap().branches_kept, ["abide/one-detached"]);
}

#[test]
fn the_users_own_worktrees_and_other_repositories_are_not_ours() {
    let (ground, other) = (Ground::new(), Ground::new());
    let users = ground.repo.with_file_name("users");
    ground.git(&["worktree", "add", "-q", users.to_str().unwrap()]);
    let elsewhere = create_worktree(&other.workspace(), &ground.worktrees().join("x"), "abide/x").unwrap();
    assert_eq!(findings(&ground, &[elsewhere]), []);
}

/// Where a removal moves the folder before it is gone for good.
fn going(ground: &Ground) -> PathBuf {
    ground.worktrees().join(".going-one")
}

#[test]
fn cut_off_when_the_folder_was_moved_and_not_yet_compared() {
    for git_noticed in [false, true] {
        let ground = Ground::new();
        let made = ground.worktree("one");
        put(&made.path.join("work"), "work");
        fs::rename(&made.path, going(&ground)).unwrap();
        if git_noticed {
            ground.git(&["worktree", "repair", going(&ground).to_str().unwrap()]);
        }
        let gone = Finding::Gone { worktree: made.clone(), listed: true };
        assert_eq!(findings(&ground, std::slice::from_ref(&made)), [gone]);
        assert_eq!(findings(&ground, &[]), [Finding::Unrecorded { worktree: made.clone(), finished: true }]);
        // Nobody knows whether it was saved as it is now, so it is saved again.
        let patch = ground.remove(&made).unwrap().patch.unwrap();
        assert!(fs::read_to_string(patch).unwrap().contains("+work"));
        assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 0);
        assert_eq!(findings(&ground, &[]), []);
    }
}

#[test]
fn cut_off_while_the_folder_was_deleted() {
    // With everything still there, with half of it, and with nothing but git's record.
    for left in [3, 2, 1] {
        let ground = Ground::new();
        let made = ground.worktree("one");
        let patch = Some(ground.patches().join("one.patch"));
        let was = Removed { patch: patch.clone(), branches_kept: Vec::new(), evidence: vec!["saved".into()] };
        put(&ground.worktrees().join(".going-one.json"), serde_json::to_string(&was).unwrap());
        fs::rename(&made.path, going(&ground)).unwrap();
        if left < 3 {
            fs::remove_file(going(&ground).join(".git")).unwrap();
        }
        if left < 2 {
            fs::remove_dir_all(going(&ground)).unwrap();
        }
        let removed = ground.remove(&made).unwrap();
        assert_eq!(removed.patch, patch);
        assert!(removed.evidence.iter().any(|line| line.contains("cut off was finished")), "{:?}", removed.evidence);
        assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 0);
        assert_eq!(findings(&ground, &[]), []);
        assert_eq!(ground.git(&["branch", "--format=%(refname:short)"]), "main");
        // Done is done.
        assert_eq!(refused(ground.remove(&made)), "missing");
    }
}

#[test]
fn cut_off_and_its_place_taken_again() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    let was = Removed { patch: None, branches_kept: Vec::new(), evidence: Vec::new() };
    put(&ground.worktrees().join(".going-one.json"), serde_json::to_string(&was).unwrap());
    put(&going(&ground).join("rest"), "saved long ago");
    put(&made.path.join("work"), "new");
    let removed = ground.remove(&made).unwrap();
    assert!(fs::read_to_string(removed.patch.unwrap()).unwrap().contains("+new"));
    assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 0);
}
