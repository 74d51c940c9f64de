//! Which folders may be workspaces.

use abide_kernel::refusal::ErrorCode;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{Ground, git, is_root, put, refused};

#[test]
fn a_folder_is_known_by_its_canonical_path_and_its_repository() {
    let ground = Ground::new();
    let link = ground.repo.parent().unwrap().join("link");
    symlink(&ground.repo, &link).unwrap();
    let workspace = ground.check(&link).unwrap();
    assert_eq!(workspace.path, ground.repo);
    let root = workspace.git.unwrap();
    assert_eq!((root.toplevel, root.common_dir), (ground.repo.clone(), ground.repo.join(".git")));
}

#[test]
fn a_folder_below_a_toplevel_is_fine() {
    let ground = Ground::new();
    let workspace = ground.check(&ground.repo.join("folder")).unwrap();
    assert_eq!(workspace.git.unwrap().toplevel, ground.repo);
}

#[test]
fn a_folder_that_the_repository_around_it_ignores_is_outside_git() {
    let ground = Ground::new();
    put(&ground.repo.join("ignored/file"), "");
    assert_eq!(ground.check(&ground.repo.join("ignored")).unwrap().git, None);
}

#[test]
fn outside_git_and_before_the_first_commit() {
    let ground = Ground::empty();
    assert!(ground.workspace().git.is_some());
    let plain = ground.repo.parent().unwrap().join("plain");
    fs::create_dir(&plain).unwrap();
    assert_eq!(ground.check(&plain).unwrap().git, None);
}

#[test]
fn what_can_not_be_a_workspace_is_refused() {
    let ground = Ground::new();
    let code = |path: &Path| refused(ground.check(path));
    assert_eq!(code(&ground.repo.join("nowhere")), "missing");
    assert_eq!(code(&ground.repo.join("kept.txt")), "not_a_folder");
    assert_eq!(code(&ground.repo.join("kept.txt/below")), "not_a_folder");
    assert_eq!(code(Path::new("repo")), "relative_path");
    assert_eq!(code(Path::new("/")), "root_folder");
    assert_eq!(code(&ground.repo.join(".git")), "inside_git");
    assert_eq!(code(Path::new(OsStr::from_bytes(b"/tmp/\xff"))), "not_utf8");
    let named_badly = ground.repo.join(OsStr::from_bytes(b"bad-\xff"));
    fs::create_dir(&named_badly).unwrap();
    symlink(&named_badly, ground.repo.join("good")).unwrap();
    assert_eq!(code(&ground.repo.join("good")), "not_utf8");
}

#[test]
fn the_home_is_apart_from_every_workspace() {
    let ground = Ground::new();
    let code = |path: &Path| refused(ground.check(path));
    fs::create_dir_all(ground.home.join("blobs")).unwrap();
    fs::create_dir_all(ground.worktrees().join("one/below")).unwrap();
    assert_eq!(code(ground.home.parent().unwrap()), "contains_home");
    assert_eq!(code(&ground.home), "inside_home");
    assert_eq!(code(&ground.home.join("blobs")), "inside_home");
    assert_eq!(code(&ground.home.join("worktrees")), "inside_home");
    assert!(ground.check(&ground.worktrees().join("one")).is_ok());
    let mut inside = Ground::new();
    inside.home = inside.repo.join("a/home");
    fs::create_dir_all(&inside.home).unwrap();
    assert_eq!(refused(inside.check(&inside.repo)), "contains_home");
    // A name that only begins alike is another folder.
    let beside = ground.home.with_file_name("home-too");
    fs::create_dir(&beside).unwrap();
    assert!(ground.check(&beside).is_ok());
}

#[test]
fn a_folder_that_can_not_be_written_to_is_refused() {
    let ground = Ground::new();
    if is_root(&ground) {
        return;
    }
    let folder = ground.repo.join("folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(refused(ground.check(&folder)), "not_writable");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_repository_of_somebody_else_is_refused() {
    let ground = Ground::new();
    if !is_root(&ground) {
        return;
    }
    for path in [ground.repo.clone(), ground.repo.join(".git")] {
        std::os::unix::fs::chown(path, Some(54_321), None).unwrap();
    }
    let refusal = ground.check(&ground.repo).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::GitUnsafe);
    assert!(refusal.message.contains("belongs to another user"), "{}", refusal.message);
    assert!(refusal.hint.contains("safe.directory"), "{}", refusal.hint);
}

#[test]
fn a_broken_repository_is_refused_and_not_taken_for_none() {
    let ground = Ground::new();
    let linked = ground.link("one");
    fs::remove_dir_all(ground.repo.join(".git/worktrees")).unwrap();
    assert_eq!(refused(ground.check(&linked)), "git_failed");
}

/// git itself goes on to the folders above, and would use the repository of one of them.
#[test]
fn a_git_folder_without_its_parts_is_refused_and_hides_the_repository_around_it() {
    let ground = Ground::new();
    let inner = ground.repo.join("folder/inner");
    fs::create_dir_all(inner.join("deep")).unwrap();
    git(&inner, &["init", "-q"]);
    assert_eq!(ground.check(&inner).unwrap().git.unwrap().toplevel, inner);
    fs::remove_file(inner.join(".git/HEAD")).unwrap();
    assert_eq!(git(&inner, &["rev-parse", "--show-toplevel"]), ground.repo.to_str().unwrap());
    for folder in [&inner, &inner.join("deep")] {
        let refusal = ground.check(folder).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DamagedRepository);
        assert!(refusal.message.contains(inner.join(".git").to_str().unwrap()), "{refusal:?}");
        assert!(refusal.hint.contains("git itself would use a repository further up"), "{refusal:?}");
    }
    // An agent that works there already goes on, without any repository.
    let again = ground.repositories().check_again(&inner.join("deep")).unwrap();
    assert_eq!((again.path, again.git), (inner.join("deep"), None));
    fs::remove_dir_all(inner.join(".git")).unwrap();
    fs::create_dir(inner.join(".git")).unwrap();
    assert_eq!(refused(ground.check(&inner)), "damaged_repository");
}

#[test]
fn files_that_git_looks_for_elsewhere_are_refused() {
    let ground = Ground::new();
    let elsewhere = ground.repo.with_file_name("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    git(&ground.repo, &["config", "core.worktree", elsewhere.to_str().unwrap()]);
    assert!(ground.check(&ground.repo).is_err());
}

#[test]
fn a_folder_that_names_a_repository_which_does_not_know_it_is_outside_git() {
    let ground = Ground::new();
    let work = ground.repo.parent().unwrap().join("work");
    let (theirs, dot) = (ground.repo.join(".git"), work.join(".git"));
    let is_outside = |how: &str| {
        assert_eq!(ground.check(&work).unwrap().git, None, "{how}");
        fs::remove_dir_all(&work).unwrap();
    };
    put(&dot, format!("gitdir: {}\n", theirs.display()));
    is_outside("a file that names it");
    fs::create_dir(&work).unwrap();
    symlink(&theirs, &dot).unwrap();
    is_outside("a link");
    fs::create_dir(&work).unwrap();
    git(&work, &["init", "-q"]);
    put(&dot.join("commondir"), theirs.to_str().unwrap());
    is_outside("records of its own that name it");
    put(&dot, fs::read(ground.link("theirs").join(".git")).unwrap());
    is_outside("the file of another folder");
}

#[test]
fn a_worktree_is_known_by_its_repository() {
    let ground = Ground::new();
    let linked = ground.link("known");
    let root = || ground.check(&linked).unwrap().git;
    let records = ground.repo.join(".git/worktrees/known");
    assert_eq!(
        root().map(|root| (root.common_dir, root.records)),
        Some((ground.repo.join(".git"), Some(records.clone())))
    );
    // Its own records can be written to where it is worked in; they can't lead to another repository.
    let other = Ground::new();
    put(&records.join("commondir"), other.repo.join(".git").to_str().unwrap());
    assert_eq!(root(), None);
}

#[test]
fn a_module_is_known_by_the_repository_around_it() {
    let (ground, part) = (Ground::new(), Ground::new());
    ground.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", part.repo.to_str().unwrap(), "part"]);
    let root = ground.check(&ground.repo.join("part")).unwrap().git.unwrap();
    assert_eq!((root.toplevel, root.common_dir), (ground.repo.join("part"), ground.repo.join(".git/modules/part")));
    assert_eq!(root.records, None);
}
