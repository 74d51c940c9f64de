//! Repositories and names as they also come.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Ground, contents, everything, git, put, refused};

/// Changes a worktree, removes it and puts it back.
fn there_and_back(ground: &Ground, change: impl Fn(&Path)) {
    let before = everything(&ground.repo.join(".git"));
    assert!(ground.tree(&ground.workspace()).is_some());
    assert_eq!(before, everything(&ground.repo.join(".git")));
    let worktree = ground.worktree("one");
    change(&worktree.path);
    let was = contents(&worktree.path);
    let removed = ground.remove(&worktree).unwrap();
    assert!(!worktree.path.exists());
    let again = ground.put_back(&removed.patch.unwrap(), &worktree.base_commit);
    assert_eq!(was, contents(&again));
}

/// A program that leaves a trace when it is run, and fails.
fn trap(ground: &Ground, path: &Path) -> std::path::PathBuf {
    let trace = ground.home.join("trace");
    put(path, format!("#!/bin/sh\necho \"$0\" >> '{}'\nexit 1\n", trace.display()));
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    trace
}

#[test]
fn weird_names() {
    let names: [&[u8]; 10] = [
        b"with space",
        b" leading and trailing ",
        b"line\nend",
        "grüße 世界".as_bytes(),
        b"-dash",
        b"--force",
        b"quote\"back\\slash",
        b":(glob)*",
        b"*.?[a]",
        b"not utf8 \xff\xfe",
    ];
    let ground = Ground::new();
    for name in names {
        put(&ground.repo.join(OsStr::from_bytes(name)), "old\n");
    }
    ground.commit("names");
    there_and_back(&ground, |at| {
        for (number, name) in names.iter().enumerate() {
            let path = at.join(OsStr::from_bytes(name));
            match number % 2 {
                0 => fs::write(path, "new\n").unwrap(),
                _ => fs::remove_file(path).unwrap(),
            }
            put(&at.join("below").join(OsStr::from_bytes(name)), "added");
        }
    });
}

#[test]
fn a_home_and_a_repository_with_weird_paths() {
    let ground = Ground::new();
    let odd = ground.repo.with_file_name("a : \"b\" \\ ü\n- c");
    fs::rename(&ground.repo, &odd).unwrap();
    let home = ground.home.join("-h: \"\n");
    let mut ground = ground;
    (ground.repo, ground.home) = (odd, home);
    fs::create_dir(&ground.home).unwrap();
    there_and_back(&ground, |at| put(&at.join("kept.txt"), "changed"));
}

#[test]
fn a_big_binary_file() {
    let ground = Ground::new();
    // Not compressible, and the same every time.
    let mut bytes = vec![0; 24 << 20];
    let mut state = 1u64;
    for chunk in bytes.chunks_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        chunk.copy_from_slice(&state.to_le_bytes());
    }
    there_and_back(&ground, |at| put(&at.join("big"), &bytes));
}

#[test]
fn hooks_that_fail_are_not_run() {
    let ground = Ground::new();
    let hooks = ground.repo.join(".git/hooks");
    for hook in ["post-checkout", "pre-commit", "reference-transaction", "post-index-change", "applypatch-msg"] {
        trap(&ground, &hooks.join(hook));
    }
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "work");
    assert!(ground.remove(&worktree).unwrap().patch.is_some());
    assert!(!ground.home.join("trace").exists());
}

#[test]
fn programs_of_the_repositorys_own_configuration_are_not_run() {
    let ground = Ground::new();
    ground.write(".gitattributes", "*.txt filter=evil diff=evil\n");
    ground.commit("attributes");
    let program = ground.home.join("program");
    let trace = trap(&ground, &program);
    let program = program.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "gpg.program",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "credential.helper",
    ] {
        ground.git(&["config", key, program]);
    }
    ground.git(&["config", "filter.evil.required", "true"]);
    ground.git(&["config", "commit.gpgsign", "true"]);
    ground.write("kept.txt", "changed");
    assert!(ground.tree(&ground.workspace()).is_some());
    let worktree = ground.worktree("one");
    put(&worktree.path.join("kept.txt"), "changed");
    assert!(ground.remove(&worktree).unwrap().patch.is_some());
    assert!(!trace.exists(), "{:?}", fs::read_to_string(trace));
}

#[test]
fn a_git_that_lies_in_the_workspace_is_not_run() {
    let ground = Ground::new();
    let trace = trap(&ground, &ground.repo.join("git"));
    assert!(ground.tree(&ground.workspace()).is_some());
    assert!(!trace.exists());
}

#[test]
fn signed_commits_are_no_matter() {
    let ground = Ground::new();
    ground.git(&["config", "commit.gpgsign", "true"]);
    ground.git(&["config", "gpg.program", "/bin/false"]);
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "work");
    assert!(ground.remove(&worktree).unwrap().patch.is_some());
}

#[test]
fn line_ends_that_git_converts() {
    let ground = Ground::new();
    ground.git(&["config", "core.autocrlf", "true"]);
    ground.git(&["config", "core.safecrlf", "true"]);
    ground.write("dos.txt", "a\r\nb\r\n");
    let seen = ground.tree(&ground.workspace()).unwrap();
    ground.git(&["-c", "core.safecrlf=false", "add", "-A"]);
    assert_eq!(seen, ground.git(&["write-tree"]));
    let worktree = ground.worktree("one");
    // As a checkout has it, and mixed, which can't be told from either.
    put(&worktree.path.join("kept.txt"), "one\r\n2\r\nthree\r\n");
    put(&worktree.path.join("mixed.txt"), "a\r\nb\nc\r\n");
    let removed = ground.remove(&worktree).unwrap();
    let again = ground.put_back(&removed.patch.unwrap(), "main");
    assert_eq!(fs::read(again.join("kept.txt")).unwrap(), b"one\r\n2\r\nthree\r\n");
    assert_eq!(fs::read(again.join("mixed.txt")).unwrap(), b"a\r\nb\r\nc\r\n");
}

#[test]
fn a_shallow_clone() {
    let mut ground = Ground::new();
    for number in 0..3 {
        ground.write("kept.txt", format!("{number}\n"));
        ground.commit("more");
    }
    let clone = ground.repo.with_file_name("clone");
    let url = format!("file://{}", ground.repo.display());
    ground.git(&["clone", "-q", "--depth", "1", &url, clone.to_str().unwrap()]);
    ground.repo = clone;
    there_and_back(&ground, |at| put(&at.join("kept.txt"), "changed"));
}

#[test]
fn a_detached_head() {
    let ground = Ground::new();
    ground.git(&["checkout", "-q", "--detach"]);
    there_and_back(&ground, |at| put(&at.join("kept.txt"), "changed"));
}

#[test]
fn a_split_index_and_a_repository_with_other_hashes() {
    let ground = Ground::new();
    ground.git(&["update-index", "--split-index"]);
    there_and_back(&ground, |at| put(&at.join("kept.txt"), "changed"));

    let ground = Ground::new();
    fs::remove_dir_all(ground.repo.join(".git")).unwrap();
    ground.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    ground.commit("first");
    there_and_back(&ground, |at| put(&at.join("kept.txt"), "changed"));
}

#[test]
fn a_worktree_without_any_commit() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    git(&worktree.path, &["checkout", "-q", "--orphan", "lonely"]);
    put(&worktree.path.join("work"), "work\n");
    let removed = ground.remove(&worktree).unwrap();
    let text = fs::read_to_string(removed.patch.unwrap()).unwrap();
    assert!(text.contains("onto no commit") && text.contains("+work"), "{text}");
}

#[test]
fn a_worktree_of_a_worktree_and_a_repository_whose_folder_is_linked() {
    let ground = Ground::new();
    let outer = ground.worktree("outer");
    let workspace = ground.check(&outer.path).unwrap();
    let folder = ground.worktrees().join("inner");
    let inner = ground.create(&workspace, &folder, "abide/inner").unwrap();
    put(&inner.path.join("work"), "work");
    assert!(ground.remove(&inner).unwrap().patch.is_some());
    ground.remove(&outer).unwrap();
}

/// git opens the pipe and waits for somebody to write to it.
#[test]
fn a_pipe_in_place_of_a_list_of_ignored_files_holds_nobody_up() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "x");
    assert!(
        std::process::Command::new("mkfifo").arg(worktree.path.join("folder/.gitignore")).status().unwrap().success()
    );
    assert_eq!(refused(ground.remove(&worktree)), "git_stuck");
    assert!(worktree.path.join("work").exists());
    fs::remove_file(worktree.path.join("folder/.gitignore")).unwrap();
    assert!(ground.remove(&worktree).unwrap().patch.is_some());
}
