//! Whether a workspace changed.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use abide_effects::workspace::Workspace;

use super::{Ground, everything, put};

fn seen(ground: &Ground, workspace: &Workspace) -> String {
    ground.tree(workspace).unwrap()
}

type Change<'a> = &'a dyn Fn(&Path);

/// Each change is seen, and undoing it leads back.
fn sees_changes(ground: &Ground, workspace: &Workspace, changes: &[(Change<'_>, Change<'_>)], comes_back: bool) {
    let at = workspace.path.as_path();
    for (number, (change, undo)) in changes.iter().enumerate() {
        let before = seen(ground, workspace);
        assert_eq!(before, seen(ground, workspace), "{number}: looking changes nothing");
        change(at);
        assert_ne!(before, seen(ground, workspace), "{number}");
        undo(at);
        assert!(!comes_back || before == seen(ground, workspace), "{number}: undone");
    }
}

#[test]
fn in_git_it_is_the_tree_that_a_commit_would_have() {
    let ground = Ground::new();
    ground.write("new file", "new");
    fs::remove_file(ground.repo.join("folder/inner.txt")).unwrap();
    let seen = seen(&ground, &ground.workspace());
    ground.commit("second");
    assert_eq!(seen, ground.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn every_kind_of_change_is_seen_in_git() {
    let ground = Ground::new();
    let mode =
        |mode| move |at: &Path| fs::set_permissions(at.join("kept.txt"), PermissionsExt::from_mode(mode)).unwrap();
    sees_changes(
        &ground,
        &ground.workspace(),
        &[
            (&|at| put(&at.join("kept.txt"), "one\ntwo\nTHREE\n"), &|at| {
                put(&at.join("kept.txt"), "one\ntwo\nthree\n")
            }),
            (&|at| put(&at.join("new"), ""), &|at| fs::remove_file(at.join("new")).unwrap()),
            (&|at| fs::remove_file(at.join("kept.txt")).unwrap(), &|at| put(&at.join("kept.txt"), "one\ntwo\nthree\n")),
            (&mode(0o755), &mode(0o644)),
            (&|at| symlink("nowhere", at.join("link")).unwrap(), &|at| fs::remove_file(at.join("link")).unwrap()),
        ],
        true,
    );
    let before = seen(&ground, &ground.workspace());
    put(&ground.repo.join("ignored/output"), "x");
    assert_eq!(before, seen(&ground, &ground.workspace()));
}

#[test]
fn the_repository_is_left_untouched_byte_for_byte() {
    let ground = Ground::new();
    ground.write("staged.txt", "staged");
    ground.git(&["add", "staged.txt"]);
    ground.write("staged.txt", "and changed since");
    ground.write("kept.txt", "changed");
    ground.write("big", vec![7; 3 << 20]);
    let before = everything(&ground.repo);
    let first = seen(&ground, &ground.workspace());
    assert_eq!(first, seen(&ground, &ground.workspace()));
    assert_eq!(before, everything(&ground.repo));
}

#[test]
fn a_change_within_the_tick_of_the_index_is_seen() {
    let ground = Ground::new();
    let file = ground.repo.join("kept.txt");
    let index = ground.repo.join(".git/index");
    // The same size and the same time as when it was added: only the age of the index tells that it has to be read.
    let time = file.metadata().unwrap().modified().unwrap();
    let set = |path: &Path| File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    ground.git(&["config", "core.trustctime", "false"]);
    set(&index);
    let before = seen(&ground, &ground.workspace());
    fs::write(&file, "one\ntwo\nTHREE\n").unwrap();
    set(&file);
    set(&index);
    assert_ne!(before, seen(&ground, &ground.workspace()));
}

#[test]
fn files_that_git_was_told_not_to_look_at_are_looked_at() {
    for option in ["--assume-unchanged", "--skip-worktree"] {
        let ground = Ground::new();
        let before = seen(&ground, &ground.workspace());
        ground.git(&["update-index", option, "kept.txt"]);
        assert_eq!(before, seen(&ground, &ground.workspace()));
        ground.write("kept.txt", "changed");
        assert_ne!(before, seen(&ground, &ground.workspace()), "{option}");
    }
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_gone() {
    let ground = Ground::new();
    let before = seen(&ground, &ground.workspace());
    ground.git(&["sparse-checkout", "set", "--no-cone", "/kept.txt"]);
    assert!(!ground.repo.join("folder/inner.txt").exists());
    assert_eq!(before, seen(&ground, &ground.workspace()));
}

#[test]
fn a_folder_below_the_toplevel_sees_itself_only() {
    let ground = Ground::new();
    let workspace = ground.check(&ground.repo.join("folder")).unwrap();
    let before = seen(&ground, &workspace);
    ground.write("kept.txt", "changed outside");
    assert_eq!(before, seen(&ground, &workspace));
    ground.write("folder/inner.txt", "changed inside");
    assert_ne!(before, seen(&ground, &workspace));
    fs::remove_file(ground.repo.join("folder/inner.txt")).unwrap();
    let empty = seen(&ground, &workspace);
    assert_ne!(before, empty);
    assert_eq!(empty, ground.git(&["hash-object", "-t", "tree", "/dev/null"]));
}

#[test]
fn outside_git_names_sizes_and_times_tell() {
    let ground = Ground::empty();
    let plain = ground.repo.with_file_name("plain");
    put(&plain.join("a/file"), "text");
    let workspace = ground.check(&plain).unwrap();
    sees_changes(
        &ground,
        &workspace,
        &[
            (&|at| put(&at.join("a/file"), "longer text"), &|at| put(&at.join("a/file"), "text")),
            (&|at| put(&at.join("b"), ""), &|at| fs::remove_file(at.join("b")).unwrap()),
            (&|at| fs::create_dir(at.join("d")).unwrap(), &|at| fs::remove_dir(at.join("d")).unwrap()),
            (&|at| fs::rename(at.join("a"), at.join("c")).unwrap(), &|at| {
                fs::rename(at.join("c"), at.join("a")).unwrap()
            }),
        ],
        false,
    );
}

#[test]
fn before_the_first_commit_there_is_a_tree_too() {
    let ground = Ground::empty();
    let before = seen(&ground, &ground.workspace());
    ground.write("first", "1");
    assert_ne!(before, seen(&ground, &ground.workspace()));
}

#[test]
fn what_is_not_there_any_more_can_not_be_told() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    fs::remove_dir_all(&ground.repo).unwrap();
    assert_eq!(ground.tree(&workspace), None);
}
