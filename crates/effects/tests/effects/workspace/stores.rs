//! Three object stores, each with one writer: the user's, the mirror, the worktree's own.

use std::fs;
use std::path::{Path, PathBuf};

use abide_effects::workspace::{Asker, Worktree};

use super::{Ground, contents, everything, git, put, refused, try_git};

fn commit(at: &Path, name: &str) -> String {
    put(&at.join(name), name);
    git(at, &["add", "-A"]);
    git(at, &["commit", "-q", "-m", name]);
    git(at, &["rev-parse", "HEAD"])
}

fn mirror(ground: &Ground) -> PathBuf {
    let mut mirrors = fs::read_dir(ground.home.join("mirrors")).unwrap().map(|entry| entry.unwrap().path());
    let one = mirrors.next().unwrap();
    assert!(mirrors.next().is_none());
    one
}

/// Its whole history can be read, and work can go on in it.
fn is_whole(worktree: &Worktree) {
    assert_eq!(git(&worktree.path, &["fsck", "--connectivity-only"]), "");
    commit(&worktree.path, "goes on");
    assert_eq!(git(&worktree.path, &["status", "--porcelain"]), "");
}

#[test]
fn making_and_removing_a_worktree_leaves_the_users_repository_byte_for_byte() {
    let ground = Ground::new();
    let before = everything(&ground.repo);
    let worktree = ground.worktree("one");
    commit(&worktree.path, "work");
    git(&worktree.path, &["update-ref", "refs/heads/main", "HEAD"]);
    ground.remove(&worktree).unwrap();
    assert_eq!(before, everything(&ground.repo));
}

#[test]
fn nothing_that_happens_in_the_users_repository_breaks_a_worktree() {
    type Harm = fn(&Ground);
    let harms: [(&str, Harm); 5] = [
        ("collected garbage", |ground| {
            ground.git(&["reflog", "expire", "--expire=now", "--all"]);
            ground.git(&["gc", "-q", "--prune=now"]);
        }),
        ("rewritten history", |ground| {
            ground.git(&["commit", "-q", "--amend", "-m", "another"]);
            ground.git(&["reflog", "expire", "--expire=now", "--all"]);
            ground.git(&["gc", "-q", "--prune=now"]);
        }),
        ("a deleted branch", |ground| {
            ground.git(&["checkout", "-q", "--orphan", "other"]);
            ground.git(&["commit", "-q", "-m", "other"]);
            ground.git(&["branch", "-D", "main"]);
            ground.git(&["reflog", "expire", "--expire=now", "--all"]);
            ground.git(&["gc", "-q", "--prune=now"]);
        }),
        ("a moved repository", |ground| fs::rename(&ground.repo, ground.repo.with_file_name("moved")).unwrap()),
        ("a deleted repository", |ground| fs::remove_dir_all(&ground.repo).unwrap()),
    ];
    for (what, harm) in harms {
        let ground = Ground::new();
        commit(&ground.repo, "second");
        let worktree = ground.worktree("one");
        harm(&ground);
        is_whole(&worktree);
        ground.repositories().refresh(&worktree.path).unwrap();
        let kept = ground.remove(&worktree).unwrap().branches_kept;
        assert_eq!(kept, ["abide/ada/one"], "{what}");
        if !ground.repo.exists() {
            assert_eq!(refused(ground.repositories().fetch("ada", &ground.repo, None, None)), "missing");
        }
    }
}

#[test]
fn an_object_that_does_not_match_its_name_is_not_taken_over() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let forge = |records: &Path, name: &str| {
        let text = git(&ground.repo, &["hash-object", "-w", &ground.repo.join("kept.txt").display().to_string()]);
        let other = ground.repo.with_file_name("other");
        put(&other, "forged\n");
        let forged = git(records.parent().unwrap(), &["hash-object", "-w", other.to_str().unwrap()]);
        let place = |id: &str| records.join("objects").join(&id[..2]).join(&id[2..]);
        fs::create_dir_all(place(&text).parent().unwrap()).unwrap();
        let _before = fs::remove_file(place(&text));
        fs::copy(place(&forged), place(&text)).unwrap();
        assert_eq!(git(records.parent().unwrap(), &["cat-file", "-p", &text]), "forged", "{name}");
    };
    // In the user's repository, by an agent that works in it directly: a loose object under a true name.
    forge(&ground.repo.join(".git"), "the user's");
    fs::remove_dir_all(ground.home.join("mirrors")).unwrap();
    let made = ground.create(&ground.workspace(), &ground.worktrees().join("two"), "abide/ada-two");
    assert_eq!(refused(made), "damaged_objects");
    assert!(!ground.worktrees().join("two").exists());
    drop(worktree);
}

#[test]
fn an_agents_forged_objects_reach_neither_the_mirror_nor_the_user() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    commit(&worktree.path, "work");
    let id = git(&worktree.path, &["rev-parse", "HEAD:work"]);
    put(&ground.home.join("forged"), "forged");
    let forged = git(&worktree.path, &["hash-object", "-w", ground.home.join("forged").to_str().unwrap()]);
    let place = |id: &str| worktree.path.join(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::remove_file(place(&id)).unwrap();
    fs::copy(place(&forged), place(&id)).unwrap();
    assert_eq!(
        refused(ground.repositories().fetch("ada", &ground.repo, Some(&worktree.path), None)),
        "damaged_objects"
    );
    assert_eq!(ground.git(&["branch", "--list", "abide/*"]), "");
    let refusal = ground.remove(&worktree).unwrap_err();
    assert_eq!(refusal.code, "damaged_objects");
    assert!(refusal.hint.contains("--discard"), "{}", refusal.hint);
}

#[test]
fn a_mirror_keeps_what_worktrees_need_and_is_filled_once() {
    let ground = Ground::new();
    let one = ground.worktree("one");
    let mirror = mirror(&ground);
    let packs = || fs::read_dir(mirror.join("objects/pack")).unwrap().count();
    let before = packs();
    let two = ground.worktree("two");
    let bases = git(&mirror, &["for-each-ref", "--format=%(refname)", "refs/abide/base"]);
    assert_eq!(bases, "refs/abide/base/ada/one\nrefs/abide/base/ada/two");
    assert_eq!(packs(), before, "nothing is sent twice");
    ground.remove(&one).unwrap();
    assert_eq!(git(&mirror, &["for-each-ref", "--format=%(refname)", "refs/abide/base"]), "refs/abide/base/ada/two");
    is_whole(&two);
    // No object of it is the same file as one of the user's.
    for (path, _) in everything(&mirror.join("objects")) {
        let found = mirror.join("objects").join(path).metadata().unwrap();
        assert!(found.is_dir() || std::os::unix::fs::MetadataExt::nlink(&found) == 1);
    }
}

#[test]
fn a_worktree_sees_the_users_branches_tags_and_remotes() {
    let ground = Ground::new();
    ground.git(&["branch", "topic"]);
    ground.git(&["tag", "v1"]);
    ground.git(&["remote", "add", "origin", "https://me:secret@example.org/a.git"]);
    let worktree = ground.worktree("one");
    let refs = || git(&worktree.path, &["for-each-ref", "--format=%(refname)", "refs/remotes", "refs/tags"]);
    assert_eq!(refs(), "refs/remotes/user/main\nrefs/remotes/user/topic\nrefs/tags/v1");
    assert_eq!(git(&worktree.path, &["remote", "get-url", "origin"]), "https://example.org/a.git");
    let config = fs::read_to_string(worktree.path.join(".git/config")).unwrap();
    assert!(!config.contains("secret"), "{config}");
    // They follow the user's, and only when those changed.
    let repositories = ground.repositories();
    repositories.refresh(&worktree.path).unwrap();
    ground.git(&["branch", "-D", "topic"]);
    let tip = commit(&ground.repo, "second");
    ground.git(&["tag", "v2"]);
    git(&worktree.path, &["tag", "own"]);
    repositories.refresh(&worktree.path).unwrap();
    assert_eq!(refs(), "refs/remotes/user/main\nrefs/tags/own\nrefs/tags/v1\nrefs/tags/v2");
    assert_eq!(git(&worktree.path, &["rev-parse", "user/main"]), tip);
    git(&worktree.path, &["rebase", "-q", "user/main"]);
    assert_eq!(git(&worktree.path, &["update-ref", "-d", "refs/remotes/user/main"]), "");
    repositories.refresh(&worktree.path).unwrap();
    assert!(!refs().contains("user/main"), "nothing changed for the user, so nothing was looked at");
}

#[test]
fn git_works_in_a_worktree_without_noise() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let at = &worktree.path;
    let quiet = |args: &[&str]| {
        let said = try_git(at, args);
        let err = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success() && err.is_empty(), "{args:?}: {err}");
    };
    commit(at, "one");
    quiet(&["switch", "-q", "-c", "topic"]);
    commit(at, "two");
    put(&at.join("one"), "changed");
    quiet(&["stash", "-q"]);
    quiet(&["stash", "pop", "-q"]);
    quiet(&["reset", "-q", "--hard"]);
    quiet(&["switch", "-q", "abide/ada-one"]);
    commit(at, "three");
    quiet(&["rebase", "-q", "topic"]);
    quiet(&["gc", "-q", "--prune=now"]);
    quiet(&["branch", "-q", "-D", "topic"]);
    quiet(&["fsck", "--no-dangling", "--no-progress"]);
    assert_eq!(git(at, &["log", "--format=%s"]), "three\ntwo\none\nfirst");
}

#[test]
fn fetching_brings_a_branch_and_moves_it_ahead_only() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let repositories = ground.repositories();
    let fetch = |branch: Option<&str>| repositories.fetch("ada", &ground.repo, Some(&worktree.path), branch);
    let tip = commit(&worktree.path, "work");
    let fetched = fetch(None).unwrap();
    assert_eq!((fetched[0].branch.as_str(), &fetched[0].commit, fetched[0].changed), ("abide/ada/one", &tip, true));
    assert_eq!(ground.git(&["rev-parse", "abide/ada/one"]), tip);
    assert_eq!(ground.git(&["show", "abide/ada/one:work"]), "work");
    assert!(!fetch(None).unwrap()[0].changed);
    let tip = commit(&worktree.path, "more");
    assert_eq!(fetch(Some("one")).unwrap()[0].commit, tip);
    // The user's own commit on it is in the way; so is a branch that somebody works on.
    ground.git(&["checkout", "-q", "abide/ada/one"]);
    commit(&worktree.path, "even more");
    assert_eq!(refused(fetch(None)), "checked_out");
    commit(&ground.repo, "the user's");
    ground.git(&["checkout", "-q", "main"]);
    assert_eq!(refused(fetch(None)), "not_fast_forward");
    assert_eq!(refused(fetch(Some("none"))), "no_branch");
    // Everything fetched leaves nothing to keep.
    ground.git(&["branch", "-m", "abide/ada/one", "mine"]);
    fetch(None).unwrap();
    repositories.refresh(&worktree.path).unwrap();
    assert_eq!(ground.remove(&worktree).unwrap().branches_kept, Vec::<String>::new());
}

#[test]
fn a_childs_worktree_takes_the_parents_commits_over() {
    let ground = Ground::new();
    let parent = ground.worktree("parent");
    let tip = commit(&parent.path, "the parent's");
    let of = ground.check(&parent.path).unwrap();
    let folder = ground.home.join("worktrees/child/one");
    let child = ground.repositories().create_worktree(&of, &folder, "abide/child-one", Asker::Model).unwrap();
    assert_eq!((&child.base_commit, &child.repo), (&tip, &ground.repo));
    assert_eq!(contents(&child.path), contents(&parent.path));
    commit(&child.path, "the child's");
    // The parent goes, and the child has all that it needs.
    ground.remove(&parent).unwrap();
    assert_eq!(git(&child.path, &["fsck", "--connectivity-only"]), "");
    let kept = ground.remove(&child).unwrap().branches_kept;
    assert_eq!(kept, ["abide/child/one"]);
    ground.repositories().fetch("child", &ground.repo, None, None).unwrap();
    assert_eq!(ground.git(&["show", "abide/child/one:the child's"]), "the child's");
}

#[test]
fn a_model_gets_no_worktree_of_a_repository_that_takes_objects_from_elsewhere() {
    let ground = Ground::new();
    let private = Ground::new();
    let secret = commit(&private.repo, "secret");
    put(
        &ground.repo.join(".git/objects/info/alternates"),
        format!("{}\n", private.repo.join(".git/objects").display()),
    );
    put(&ground.repo.join(".git/refs/heads/main"), format!("{secret}\n"));
    let repositories = ground.repositories();
    let make =
        |asker| repositories.create_worktree(&ground.workspace(), &ground.worktrees().join("x"), "abide/ada-x", asker);
    assert_eq!(refused(make(Asker::Model)), "borrowed_objects");
    // On a person's word it is recorded, and then a model may, too.
    let made = make(Asker::Person).unwrap();
    assert!(made.path.join("secret").exists());
    ground.remove(&made).unwrap();
    ground.remove(&make(Asker::Model).unwrap()).unwrap();
    // Another one than was recorded.
    let other = Ground::new();
    put(&ground.repo.join(".git/objects/info/alternates"), format!("{}\n", other.repo.join(".git/objects").display()));
    assert_eq!(refused(make(Asker::Model)), "borrowed_objects");
}

#[test]
fn a_partial_clone_is_mirrored_at_its_newest_commit() {
    let mut ground = Ground::new();
    commit(&ground.repo, "second");
    ground.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = ground.repo.with_file_name("clone");
    let url = format!("file://{}", ground.repo.display());
    ground.git(&["clone", "-q", "--filter=blob:none", &url, clone.to_str().unwrap()]);
    fs::rename(&ground.repo, ground.repo.with_file_name("away")).unwrap();
    ground.repo = clone;
    let worktree = ground.worktree("one");
    assert!(worktree.notes.iter().any(|note| note.contains("partial clone")), "{:?}", worktree.notes);
    assert_eq!(contents(&worktree.path), contents(&ground.repo));
    assert_eq!(git(&worktree.path, &["rev-list", "--count", "HEAD"]), "1");
    // One that lacks a file of its newest commit says what to fetch.
    let bare = ground.repo.with_file_name("bare");
    let url = format!("file://{}", ground.repo.with_file_name("away").display());
    ground.git(&["clone", "-q", "--filter=blob:none", "--no-checkout", &url, bare.to_str().unwrap()]);
    ground.repo = bare;
    let refusal = ground.create(&ground.workspace(), &ground.worktrees().join("two"), "abide/ada-two").unwrap_err();
    assert_eq!(refusal.code, "partial_clone");
    assert!(refusal.hint.contains("git -C") && refusal.hint.contains("fetch"), "{}", refusal.hint);
}

#[test]
fn special_repositories() {
    // Sparse: the patterns come along.
    let ground = Ground::new();
    ground.git(&["sparse-checkout", "set", "--no-cone", "/kept.txt"]);
    let worktree = ground.worktree("sparse");
    assert!(worktree.path.join("kept.txt").exists() && !worktree.path.join("folder").exists());
    assert_eq!(git(&worktree.path, &["status", "--porcelain"]), "");
    // Submodules are empty, and it says so.
    let (ground, other) = (Ground::new(), Ground::new());
    ground.git(&["-c", "protocol.file.allow=always", "submodule", "-q", "add", other.repo.to_str().unwrap(), "sub"]);
    ground.commit("with a submodule");
    let worktree = ground.worktree("modules");
    assert!(worktree.notes.iter().any(|note| note.contains("submodules")), "{:?}", worktree.notes);
    assert_eq!(fs::read_dir(worktree.path.join("sub")).unwrap().count(), 0);
    // The user's own linked worktree, with its own commit checked out.
    let ground = Ground::new();
    let linked = ground.link("linked");
    let tip = commit(&linked, "linked");
    let of = ground.check(&linked).unwrap();
    let worktree = ground.create(&of, &ground.worktrees().join("one"), "abide/ada-one").unwrap();
    assert_eq!(worktree.base_commit, tip);
    // Bare: refused.
    let bare = ground.repo.with_file_name("bare");
    ground.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    assert_eq!(refused(ground.check(&bare)), "inside_git");
    // Names that collide by case.
    let ground = Ground::new();
    ground.write("README", "a");
    ground.write("readme", "b");
    ground.commit("case");
    ground.git(&["branch", "Topic"]);
    ground.git(&["branch", "topic"]);
    let worktree = ground.worktree("case");
    assert_eq!(contents(&worktree.path), contents(&ground.repo));
    ground.remove(&worktree).unwrap();
}

#[test]
fn other_ways_to_store_refs() {
    let ground = Ground::new();
    fs::remove_dir_all(ground.repo.join(".git")).unwrap();
    if !try_git(&ground.repo, &["init", "-q", "-b", "main", "--ref-format=reftable"]).status.success() {
        // This git is older than that format.
        return;
    }
    ground.commit("first");
    let worktree = ground.worktree("one");
    let tip = commit(&worktree.path, "work");
    ground.remove(&worktree).unwrap();
    assert_eq!(ground.fetch_kept()[0].commit, tip);
    assert_eq!(ground.git(&["rev-parse", "abide/ada/one"]), tip);
}

#[test]
fn a_worktree_of_an_older_version_gets_a_repository_of_its_own() {
    let ground = Ground::new();
    let folder = ground.worktrees().join("old");
    ground.git(&["worktree", "add", "-q", "-b", "abide/ada-old", folder.to_str().unwrap()]);
    let base_commit = ground.git(&["rev-parse", "main"]);
    let tip = commit(&folder, "committed");
    put(&folder.join("kept.txt"), "changed");
    put(&folder.join("new"), "new");
    let old = Worktree {
        path: folder.clone(),
        branch: "abide/ada-old".into(),
        base_commit,
        repo: ground.repo.clone(),
        notes: Vec::new(),
    };
    let was = contents(&folder);
    let repositories = ground.repositories();
    let evidence =
        repositories.convert_worktree(&old, &ground.patches(), abide_kernel::time::Time::from_ms(1)).unwrap();
    assert!(evidence.iter().any(|line| line.contains("not committed is in")), "{evidence:?}");
    assert!(folder.join(".git").is_dir());
    assert_eq!(was, contents(&folder));
    assert_eq!(git(&folder, &["rev-parse", "HEAD"]), tip);
    assert_eq!(git(&folder, &["symbolic-ref", "--short", "HEAD"]), "abide/ada-old");
    assert_eq!(git(&folder, &["status", "--porcelain"]), " M kept.txt\n?? new");
    assert_eq!(ground.git(&["worktree", "list"]).lines().count(), 1);
    // Once more changes nothing.
    assert_eq!(
        repositories.convert_worktree(&old, &ground.patches(), abide_kernel::time::Time::from_ms(2)).unwrap(),
        Vec::<String>::new()
    );
    let removed = ground.remove(&old).unwrap();
    assert!(removed.patch.is_some());
}
