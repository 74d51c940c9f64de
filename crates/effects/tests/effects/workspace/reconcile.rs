//! What was recorded against what is there.

use std::fs;

use abide_effects::workspace::{Finding, Worktree, create_worktree, list_patches, reconcile};

use super::{Ground, git, put};

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

#[test]
fn cut_off_between_saving_and_removing() {
    let ground = Ground::new();
    let made = ground.worktree("one");
    put(&made.path.join("work"), "work");
    // The folder is kept from going after the patch was made, as a crash would.
    let path = made.path.to_str().unwrap();
    let removed = ground.remove(&made).unwrap();
    ground.git(&["worktree", "add", "-q", "-b", "abide/one", path]);
    put(&made.path.join("work"), "work");
    assert_eq!(findings(&ground, std::slice::from_ref(&made)), [Finding::Present(made.clone())]);
    assert_eq!(ground.remove(&made).unwrap().patch, removed.patch);
    assert_eq!(list_patches(&ground.patches()).unwrap().len(), 1);
    assert_eq!(findings(&ground, std::slice::from_ref(&made)), [Finding::Gone { worktree: made, listed: false }]);
}
