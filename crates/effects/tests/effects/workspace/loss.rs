//! Work that is easy to overlook when a worktree is removed: refs besides branches, ignored files, folders that can't be
//! read, and settings that make git see less than there is.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use abide_effects::workspace::{Removed, Worktree};
use abide_kernel::refusal::ErrorCode;

use super::{Ground, contents, git, put, refused, try_git};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn commit(at: &Path, name: &str) -> String {
    put(&at.join(name), name);
    git(at, &["add", "-A"]);
    git(at, &["commit", "-q", "-m", name]);
    git(at, &["rev-parse", "HEAD"])
}

/// Removes it, and gives the files that the patch brings back onto the commit it began with.
fn put_back(ground: &Ground, worktree: &Worktree) -> (Removed, std::path::PathBuf) {
    let removed = ground.remove(worktree).unwrap();
    assert!(!worktree.path.exists());
    let again = ground.put_back(removed.patch.as_ref().unwrap(), &worktree.base_commit);
    (removed, again)
}

fn says(removed: &Removed, words: &str) -> bool {
    removed.evidence.iter().any(|line| line.contains(words))
}

#[test]
fn a_folder_that_git_can_not_read_stays() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let closed = worktree.path.join("closed");
    put(&closed.join("work"), "work");
    // Ignored by the user, it is no work, whatever is in it.
    let generated = worktree.path.join("ignored");
    put(&generated.join("cache/output"), "output");
    mode(&generated.join("cache"), 0o500);
    mode(&generated, 0);
    for hidden in ["", "closed/\n"] {
        put(&worktree.path.join(".git/info/exclude"), hidden);
        mode(&closed, 0);
        let refusal = ground.remove(&worktree).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::Unreadable, "{refusal:?}");
        assert!(refusal.message.contains("closed"), "{}", refusal.message);
        assert!(refusal.hint.contains("chmod") && refusal.hint.contains("--discard"), "{}", refusal.hint);
        mode(&closed, 0o700);
        assert_eq!(fs::read_to_string(closed.join("work")).unwrap(), "work");
    }
    let (removed, again) = put_back(&ground, &worktree);
    assert_eq!(fs::read_to_string(again.join("closed/work")).unwrap(), "work");
    assert!(says(&removed, "1 entries that git ignores go with it, unsaved: ignored/"), "{:?}", removed.evidence);
}

/// git warns of an ignore file that is a link, and nothing is lost by it.
#[test]
fn a_warning_that_means_no_loss_is_no_failure() {
    let ground = Ground::new();
    ground.write("rules", "*.tmp\n");
    fs::create_dir(ground.repo.join("linked")).unwrap();
    symlink("../rules", ground.repo.join("linked/.gitignore")).unwrap();
    ground.write(".gitattributes", "!negative text\n");
    ground.commit("links");
    let worktree = ground.worktree("one");
    put(&worktree.path.join("linked/a.tmp"), "work");
    let (_, again) = put_back(&ground, &worktree);
    assert_eq!(fs::read_to_string(again.join("linked/a.tmp")).unwrap(), "work");
}

#[test]
fn every_ref_and_every_stash_outlives_the_folder() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let at = &worktree.path;
    for text in ["first", "second", "third"] {
        put(&at.join("kept.txt"), text);
        git(at, &["stash", "-q"]);
    }
    git(at, &["notes", "add", "-m", "a note"]);
    git(at, &["tag", "-a", "-m", "a message", "marked"]);
    git(at, &["checkout", "-q", "--detach"]);
    let lone = commit(at, "lone");
    git(at, &["update-ref", "refs/wip/lone", "HEAD"]);
    git(at, &["checkout", "-q", "-"]);
    put(&at.join("blob"), "only an object");
    let blob = git(at, &["hash-object", "-w", "blob"]);
    fs::remove_file(at.join("blob")).unwrap();
    git(at, &["update-ref", "refs/objects/blob", &blob]);
    // A copy of another repository's branch is none of its work; a ref that only looks like one is.
    git(at, &["remote", "add", "origin", "https://example.org/a.git"]);
    git(at, &["update-ref", "refs/remotes/origin/copy", &lone]);
    git(at, &["update-ref", "refs/remotes/none/own", &lone]);
    let removed = ground.remove(&worktree).unwrap();
    let mut kept = removed.branches_kept.clone();
    kept.sort();
    let all = [
        "abide/ada/notes/commits",
        "abide/ada/objects/blob",
        "abide/ada/remotes/none/own",
        "abide/ada/stash",
        "abide/ada/stash@1",
        "abide/ada/stash@2",
        "abide/ada/tags/marked",
        "abide/ada/wip/lone",
    ];
    assert_eq!(kept, all);
    let mut fetched: Vec<String> = ground.fetch_kept().into_iter().map(|fetched| fetched.branch).collect();
    fetched.sort();
    assert_eq!(fetched, all);
    for (name, text) in [("stash", "third"), ("stash@1", "second"), ("stash@2", "first")] {
        assert_eq!(ground.git(&["show", &format!("abide/ada/{name}:kept.txt")]), text);
    }
    ground.git(&["stash", "apply", "-q", "abide/ada/stash@1"]);
    assert_eq!(fs::read_to_string(ground.repo.join("kept.txt")).unwrap(), "second");
    let base = &worktree.base_commit;
    assert_eq!(ground.git(&["show", &format!("abide/ada/notes/commits:{base}")]), "a note");
    assert_eq!(ground.git(&["cat-file", "-p", "refs/tags/abide/ada/objects/blob"]), "only an object");
    assert!(ground.git(&["cat-file", "tag", "refs/tags/abide/ada/tags/marked"]).ends_with("a message"));
    assert_eq!(ground.git(&["rev-parse", "abide/ada/wip/lone"]), lone);
    assert_eq!(refused(ground.repositories().fetch("ada", &ground.repo, None, None)), "no_branch");
}

#[test]
fn commits_that_only_reflogs_name_come_by_name() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let at = &worktree.path;
    git(at, &["checkout", "-q", "--detach"]);
    commit(at, "lost");
    let lost = commit(at, "lost too");
    git(at, &["checkout", "-q", "-"]);
    git(at, &["switch", "-q", "-c", "deleted"]);
    let deleted = commit(at, "deleted");
    git(at, &["switch", "-q", "-"]);
    git(at, &["branch", "-q", "-D", "deleted"]);
    let before = commit(at, "work");
    git(at, &["commit", "-q", "--amend", "-m", "amended"]);
    let tip = git(at, &["rev-parse", "HEAD"]);
    let removed = ground.remove(&worktree).unwrap();
    assert_eq!(removed.branches_kept, ["abide/ada/one"]);
    assert!(says(&removed, "3 commits that only reflogs named"), "{:?}", removed.evidence);
    assert!(says(&removed, "--branch reflog/one"), "{:?}", removed.evidence);
    let fetch = |branch| ground.repositories().fetch("ada", &ground.repo, None, branch);
    // They are nobody's branch, and come only when they are asked for.
    let fetched = fetch(None).unwrap();
    assert_eq!((fetched.len(), &fetched[0].commit), (1, &tip));
    let refusal = fetch(None).unwrap_err();
    assert!(refusal.code == ErrorCode::NoBranch && refusal.hint.contains("reflog/"), "{refusal:?}");
    assert_eq!(fetch(Some("reflog/one")).unwrap()[0].branch, "abide/ada/reflog/one");
    for id in [&lost, &deleted, &before] {
        ground.git(&["merge-base", "--is-ancestor", id, "abide/ada/reflog/one"]);
    }
    assert_eq!(refused(fetch(Some("reflog/one"))), "no_branch");
}

/// A removal that is repeated keeps the same things under the same names.
#[test]
fn a_removal_that_was_cut_off_keeps_nothing_twice() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    commit(&worktree.path, "work");
    git(&worktree.path, &["commit", "-q", "--amend", "-m", "amended"]);
    git(&worktree.path, &["tag", "-a", "-m", "x", "marked"]);
    let in_the_way = ground.worktrees().join(".going-one");
    put(&in_the_way.join("file"), "");
    assert_eq!(refused(ground.remove(&worktree)), "in_the_way");
    let mirror = fs::read_dir(ground.home.join("mirrors")).unwrap().next().unwrap().unwrap().path();
    let refs = || git(&mirror, &["for-each-ref", "refs/abide/kept", "refs/abide/logged"]);
    let before = refs();
    assert_eq!(before.lines().count(), 3, "{before}");
    fs::remove_dir_all(in_the_way).unwrap();
    ground.remove(&worktree).unwrap();
    assert_eq!(refs(), before);
}

#[test]
fn fetching_a_branch_leaves_another_one_of_that_name_kept() {
    let ground = Ground::new();
    let first = ground.worktree("first");
    git(&first.path, &["switch", "-q", "-c", "topic"]);
    let old = commit(&first.path, "old");
    ground.remove(&first).unwrap();
    let second = ground.worktree("second");
    git(&second.path, &["switch", "-q", "-c", "topic"]);
    commit(&second.path, "new");
    ground.repositories().fetch("ada", &ground.repo, Some(&second.path), Some("topic")).unwrap();
    ground.git(&["branch", "-m", "abide/ada/topic", "mine"]);
    let fetched = ground.repositories().fetch("ada", &ground.repo, None, Some("topic")).unwrap();
    assert_eq!(fetched[0].commit, old);
}

#[test]
fn a_ref_that_can_not_be_read_is_reported() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "work");
    // One that leads nowhere is none.
    git(&worktree.path, &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/none"]);
    put(&worktree.path.join(".git/refs/heads/broken"), "");
    let refusal = ground.remove(&worktree).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::DamagedRepository, "{refusal:?}");
    assert!(refusal.message.contains("refs/heads/broken"), "{}", refusal.message);
    fs::remove_file(worktree.path.join(".git/refs/heads/broken")).unwrap();
    ground.remove(&worktree).unwrap();
}

#[test]
fn files_that_only_the_agent_ignores_are_saved() {
    let ground = Ground::new();
    ground.write("folder/.gitignore", "generated\n!kept.log\n");
    ground.commit("rules");
    let worktree = ground.worktree("one");
    let at = |name: &str| worktree.path.join(name);
    // By its own changes of ignore files, by its records, by its settings.
    put(&at(".gitignore"), "ignored/\n*.log\nby-top\n");
    put(&at("folder/.gitignore"), "generated\n!kept.log\nby-folder\n");
    put(&at("new/.gitignore"), "*\n");
    put(&at(".git/info/exclude"), "by-exclude\nclones/\n");
    put(&at(".git/excluded"), "by-settings\n");
    git(&worktree.path, &["config", "core.excludesFile", at(".git/excluded").to_str().unwrap()]);
    let own = ["by-top", "deep/by-top", "folder/by-folder", "new/by-new", "by-exclude", "by-settings"];
    // By the user, who does not ignore the last one.
    let generated = ["ignored/output", "a.log", "deep/b.log", "folder/generated", "folder/deep/generated"];
    for name in own.iter().chain(&generated).chain(&["folder/kept.log"]) {
        put(&at(name), *name);
    }
    assert_eq!(git(&worktree.path, &["status", "--porcelain", "-uall"]).lines().count(), 3, "git sees none of them");
    // A repository of its own that the agent ignores holds work as well.
    git(&worktree.path, &["init", "-q", "clones/one"]);
    assert_eq!(refused(ground.remove(&worktree)), "nested_repository");
    fs::remove_dir_all(at("clones")).unwrap();
    let (removed, again) = put_back(&ground, &worktree);
    for name in own.iter().chain(&["folder/kept.log"]) {
        assert_eq!(fs::read_to_string(again.join(name)).unwrap(), *name);
    }
    assert!(generated.iter().all(|name| !again.join(name).exists()));
    assert!(says(&removed, "5 entries that git ignores go with it, unsaved: a.log, deep/b.log, "), "{removed:?}");
}

#[test]
fn files_that_the_agent_ignores_no_longer_are_saved() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join(".gitignore"), "ignored/\n");
    put(&worktree.path.join("a.log"), "work");
    let (_, again) = put_back(&ground, &worktree);
    assert_eq!(fs::read_to_string(again.join("a.log")).unwrap(), "work");
}

/// The agent took the user's newer ignore file over: then it is not its own.
#[test]
fn files_that_the_user_ignores_by_now_are_generated() {
    for take in
        [&["rebase", "-q", "user/main"][..], &["merge", "-q", "user/main"], &["reset", "-q", "--hard", "user/main"]]
    {
        let ground = Ground::new();
        let worktree = ground.worktree("one");
        if take[0] != "reset" {
            commit(&worktree.path, "work");
        }
        ground.write(".gitignore", "ignored/\n*.log\nbuild/\n");
        ground.commit("rules");
        ground.repositories().refresh(&worktree.path).unwrap();
        git(&worktree.path, take);
        put(&worktree.path.join("build/output"), "output");
        let removed = ground.remove(&worktree).unwrap();
        assert_eq!(removed.patch, None, "{take:?}");
        assert!(says(&removed, "unsaved: build/"), "{take:?}: {:?}", removed.evidence);
    }
}

#[test]
fn a_mass_of_files_that_the_agent_ignores_is_refused_unless_it_is_generated() {
    let big = |path: &Path| {
        put(path, "");
        fs::File::options().write(true).open(path).unwrap().set_len(65 << 20).unwrap();
    };
    let ground = Ground::new();
    for (name, rules) in [("one", ".git/info/exclude"), ("two", "new/.gitignore")] {
        let worktree = ground.worktree(name);
        let at = |name: &str| worktree.path.join("new").join(name);
        put(&worktree.path.join(rules), "node_modules/\ncache/\n");
        put(&at("node_modules/few"), "few");
        put(&at("cache/work"), "work");
        big(&at("cache/big"));
        let refusal = ground.remove(&worktree).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TooMuchIgnored, "{name}: {refusal:?}");
        assert!(refusal.hint.contains("--discard") && refusal.message.contains("cache/big"), "{refusal:?}");
        fs::remove_file(at("cache/big")).unwrap();
        big(&at("node_modules/big"));
        let removed = ground.remove(&worktree).unwrap();
        let patch = fs::read_to_string(removed.patch.as_ref().unwrap()).unwrap();
        assert!(patch.contains("b/new/cache/work") && !patch.contains("node_modules/few"), "{patch}");
        assert!(says(&removed, "unsaved: new/node_modules/"), "{:?}", removed.evidence);
    }
    // Little of it is saved, whatever it is.
    let worktree = ground.worktree("three");
    put(&worktree.path.join(".git/info/exclude"), "node_modules/\n");
    put(&worktree.path.join("node_modules/few"), "few");
    let patch = ground.remove(&worktree).unwrap().patch.unwrap();
    assert!(fs::read_to_string(patch).unwrap().contains("node_modules/few"));
}

#[test]
fn settings_of_the_agents_repository_change_nothing_that_is_saved() {
    let ground = Ground::new();
    ground.write("run.sh", "#!/bin/sh\n");
    ground.write("marked", "marked\n");
    ground.write("skipped", "skipped\n");
    ground.commit("more");
    let worktree = ground.worktree("one");
    let at = |name: &str| worktree.path.join(name);
    for (key, value) in [
        ("core.autocrlf", "true"),
        ("core.eol", "crlf"),
        ("core.fileMode", "false"),
        ("core.symlinks", "false"),
        ("core.ignoreCase", "true"),
        ("core.trustctime", "false"),
        ("core.checkStat", "minimal"),
        ("core.untrackedCache", "true"),
        ("status.showUntrackedFiles", "no"),
    ] {
        git(&worktree.path, &["config", key, value]);
    }
    put(&at(".git/info/attributes"), "* text eol=crlf\n");
    put(&at("kept.txt"), "one\r\ntwo\r\nthree\r\n");
    put(&at("dos.txt"), "a\r\nb\n");
    put(&at("KEPT.txt"), "another\n");
    mode(&at("run.sh"), 0o755);
    symlink("kept.txt", at("link")).unwrap();
    git(&worktree.path, &["update-index", "--assume-unchanged", "marked"]);
    git(&worktree.path, &["update-index", "--skip-worktree", "skipped"]);
    put(&at("marked"), "changed\n");
    put(&at("skipped"), "changed\n");
    let was = contents(&worktree.path);
    let (_, again) = put_back(&ground, &worktree);
    assert_eq!(was, contents(&again));
}

/// A child's worktree is made of its parent's, whose settings the parent may have changed.
#[test]
fn settings_of_a_parent_do_not_pass_to_its_child() {
    let ground = Ground::new();
    ground.git(&["config", "core.symlinks", "true"]);
    let parent = ground.worktree("parent");
    git(&parent.path, &["config", "core.autocrlf", "true"]);
    let of = ground.check(&parent.path).unwrap();
    let child = ground.create(&of, &ground.worktrees().join("child"), "abide/ada-child").unwrap();
    assert!(!try_git(&child.path, &["config", "core.autocrlf"]).status.success());
    assert_eq!(git(&child.path, &["config", "core.symlinks"]), "true");
    put(&child.path.join("dos.txt"), "a\r\n");
    let (_, again) = put_back(&ground, &child);
    assert_eq!(fs::read(again.join("dos.txt")).unwrap(), b"a\r\n");
}

/// A working tree that the agent linked to its repository, and deleted: its commit is on no branch.
#[test]
fn a_commit_of_a_linked_working_tree_is_kept() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    git(&worktree.path, &["worktree", "add", "-q", "--detach", "linked"]);
    let tip = commit(&worktree.path.join("linked"), "work");
    assert_eq!(refused(ground.remove(&worktree)), "nested_repository");
    fs::remove_dir_all(worktree.path.join("linked")).unwrap();
    assert_eq!(ground.remove(&worktree).unwrap().branches_kept, ["abide/ada/worktrees/linked"]);
    assert_eq!(ground.fetch_kept()[0].commit, tip);
}

#[test]
fn a_ref_whose_name_is_not_utf_8_keeps_the_worktree() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let name = OsStr::from_bytes(b"wip-\xff1");
    git(&worktree.path, &["commit", "-q", "--allow-empty", "-m", "work"]);
    git(&worktree.path, &[OsStr::new("branch"), name]);
    git(&worktree.path, &["reset", "-q", "--hard", "HEAD~1"]);
    refused(ground.remove(&worktree));
    git(&worktree.path, &[OsStr::new("branch"), OsStr::new("-m"), name, OsStr::new("wip")]);
    let tip = git(&worktree.path, &["rev-parse", "wip"]);
    ground.remove(&worktree).unwrap();
    assert!(ground.fetch_kept().iter().any(|fetched| fetched.commit == tip));
}

#[test]
fn the_commits_of_any_number_of_linked_worktrees_are_kept() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let mut tips = Vec::new();
    // Two of the names are the same once they are plain.
    let names = (0..12).map(|number| format!("linked-{number}")).chain(["a b".to_owned(), "a+b".to_owned()]);
    for name in names {
        let linked = ground.dir.path().join(&name);
        git(&worktree.path, &["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
        git(&linked, &["commit", "-q", "--allow-empty", "-m", &name]);
        tips.push(git(&linked, &["rev-parse", "HEAD"]));
        std::fs::remove_dir_all(&linked).unwrap();
    }
    ground.remove(&worktree).unwrap();
    let fetched: Vec<String> = ground.fetch_kept().into_iter().map(|fetched| fetched.commit).collect();
    assert!(tips.iter().all(|tip| fetched.contains(tip)), "{fetched:?}");
}

#[test]
fn commits_whose_patches_would_be_too_large_are_kept_without() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let blob = {
        put(&worktree.path.join("large"), "line\n".repeat(1 << 20));
        git(&worktree.path, &["hash-object", "-w", "large"])
    };
    fs::remove_file(worktree.path.join("large")).unwrap();
    // One object under so many names that the patch would have more than 64 MiB.
    for number in 0..16 {
        let entry = format!("100644,{blob},copy-{number}");
        git(&worktree.path, &["update-index", "--add", "--cacheinfo", &entry]);
    }
    git(&worktree.path, &["commit", "-q", "-m", "copies"]);
    let tip = git(&worktree.path, &["rev-parse", "HEAD"]);
    git(&worktree.path, &["reset", "-q", "--hard", "HEAD"]);
    let removed = ground.remove(&worktree).unwrap();
    assert!(says(&removed, "not as patches"), "{:?}", removed.evidence);
    assert!(ground.fetch_kept().iter().any(|fetched| fetched.commit == tip));
    let left: Vec<_> = fs::read_dir(ground.patches()).into_iter().flatten().flatten().map(|e| e.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}
