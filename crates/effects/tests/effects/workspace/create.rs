//! Making worktrees.

use std::fs;

use abide_effects::workspace::TransferPhase;
use abide_kernel::refusal::ErrorCode;

use super::{Ground, contents, git, put, refused};

#[test]
fn a_worktree_starts_from_what_is_checked_out() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    assert_eq!(worktree.path, ground.worktrees().join("one"));
    assert_eq!((worktree.branch.as_str(), &worktree.repo), ("abide/ada-one", &ground.repo));
    assert_eq!(worktree.base_commit, ground.git(&["rev-parse", "HEAD"]));
    assert_eq!(worktree.notes, Vec::<String>::new());
    assert_eq!(contents(&worktree.path), contents(&ground.repo));
    assert_eq!(git(&worktree.path, &["symbolic-ref", "--short", "HEAD"]), "abide/ada-one");
    // It is a workspace, with a repository of its own.
    let below = ground.check(&worktree.path).unwrap();
    assert_eq!(below.git.unwrap().common_dir, worktree.path.join(".git"));
}

#[test]
fn changes_that_are_not_committed_are_not_in_it_and_it_says_so() {
    let ground = Ground::new();
    ground.write("kept.txt", "changed");
    ground.write("new", "");
    let worktree = ground.worktree("one");
    assert!(worktree.notes[0].contains("not committed"), "{:?}", worktree.notes);
    assert_eq!(fs::read_to_string(worktree.path.join("kept.txt")).unwrap(), "one\ntwo\nthree\n");
    assert!(!worktree.path.join("new").exists());
    assert_eq!(fs::read_to_string(ground.repo.join("kept.txt")).unwrap(), "changed");
}

#[test]
fn what_can_not_be_made_is_refused_and_leaves_nothing() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    let taken = ground.worktrees().join("taken");
    put(&taken.join("file"), "");
    put(&ground.worktrees().join("file"), "");
    let free = ground.worktrees().join("free");
    let code = |folder: &std::path::Path, branch: &str| refused(ground.create(&workspace, folder, branch));
    assert_eq!(code(&taken, "abide/one"), "folder_exists");
    assert_eq!(code(&ground.worktrees().join("file"), "abide/one"), "folder_exists");
    assert_eq!(code(std::path::Path::new("relative"), "abide/one"), "relative_path");
    assert_eq!(code(&ground.worktrees().join(".going-one"), "abide/one"), "folder_name");
    for name in ["main", "abide/", "abide/a b", "abide/..", "-abide/x", "abide/x.lock"] {
        assert_eq!(code(&free, name), "branch_name", "{name}");
    }
    assert!(!free.exists());
    assert_eq!(ground.git(&["branch", "--format=%(refname:short)"]), "main");
}

#[test]
fn without_git_or_without_a_commit_there_is_nothing_to_start_from() {
    let ground = Ground::empty();
    let refusal = ground.create(&ground.workspace(), &ground.worktrees().join("one"), "abide/one").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::UnbornHead);
    assert!(refusal.hint.contains("commit something first"), "{}", refusal.hint);
    let plain = ground.repo.with_file_name("plain");
    fs::create_dir(&plain).unwrap();
    let plain = ground.check(&plain).unwrap();
    assert_eq!(refused(ground.create(&plain, &ground.worktrees().join("one"), "abide/one")), "no_git");
}

/// The tip of another branch is a pipe in place of an object: the transfer reads it, and nothing before the transfer does,
/// so the two meet in the middle of one.
#[test]
fn a_transfer_is_listed_while_it_is_under_way() {
    let ground = Ground::new();
    let missing = "1".repeat(40);
    put(&ground.repo.join(".git/refs/heads/other"), format!("{missing}\n"));
    let object = ground.repo.join(".git/objects/11").join(&missing[2..]);
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &object, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let repositories = ground.repositories();
    let (workspace, folder) = (ground.workspace(), ground.worktrees().join("one"));
    std::thread::scope(|scope| {
        let made = scope.spawn(|| repositories.create_worktree(&workspace, &folder, "abide/ada-one"));
        // Opened once git has opened the other end.
        let git = fs::File::options().write(true).open(&object).unwrap();
        let under_way = repositories.transfers();
        // git looks for it a second time, and would wait for ever.
        fs::remove_file(&object).unwrap();
        drop(git);
        assert_eq!(under_way.len(), 1);
        assert_eq!((&under_way[0].repository, under_way[0].phase), (&ground.repo, TransferPhase::Counting));
        made.join().unwrap().unwrap();
    });
    assert_eq!(repositories.transfers(), []);
}

#[test]
fn an_empty_folder_may_be_filled() {
    let ground = Ground::new();
    fs::create_dir_all(ground.worktrees().join("one")).unwrap();
    assert_eq!(contents(&ground.worktree("one").path), contents(&ground.repo));
}

#[test]
fn from_a_detached_head_and_from_a_folder_below_the_toplevel() {
    let ground = Ground::new();
    ground.git(&["checkout", "-q", "--detach"]);
    ground.write("second", "");
    ground.commit("second");
    let below = ground.check(&ground.repo.join("folder")).unwrap();
    let worktree = ground.create(&below, &ground.worktrees().join("one"), "abide/one").unwrap();
    assert!(worktree.path.join("second").exists());
}
