//! Three object stores, each with one writer: the user's, the mirror, the worktree's own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use abide_effects::sandbox::Mechanism;
use abide_effects::workspace::{Workspace, Worktree};
use abide_kernel::input::Refusal;
use abide_kernel::refusal::ErrorCode;

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
    assert_eq!(refusal.code, ErrorCode::DamagedObjects);
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

/// An agent that works in the user's folder can write refs there: one of them may stand for another.
#[test]
fn fetching_moves_no_other_branch_than_its_own() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let fetch =
        |branch: &str| ground.repositories().fetch("ada", &ground.repo, Some(&worktree.path), Some(branch)).map(drop);
    git(&worktree.path, &["switch", "-q", "-c", "topic"]);
    let tip = commit(&worktree.path, "work");
    git(&worktree.path, &["branch", "main"]);
    let before = ground.git(&["rev-parse", "main"]);
    let records = ground.repo.join(".git");
    let own = records.join("refs/heads/abide/ada");
    // Names for the branch that is checked out, for another one, and for none.
    ground.git(&["branch", "other"]);
    for target in ["main", "other", "none"] {
        put(&own.join("topic"), format!("ref: refs/heads/{target}\n"));
        let refusal = fetch("topic").unwrap_err();
        assert_eq!(refusal.code, ErrorCode::SymbolicRef, "{target}: {refusal:?}");
        assert!(refusal.hint.contains("git symbolic-ref -d refs/heads/abide/ada/topic"), "{}", refusal.hint);
    }
    fs::remove_dir_all(&own).unwrap();
    // A folder of refs, or of their logs, that is a link.
    for folder in ["refs/heads/abide", "logs/refs/heads/abide"] {
        let link = records.join(folder).join("ada");
        let _there = fs::remove_dir_all(&link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(records.join(folder).parent().unwrap(), &link).unwrap();
        let refusal = fetch("main").unwrap_err();
        assert_eq!(refusal.code, ErrorCode::SymbolicRef, "{folder}: {refusal:?}");
        assert!(refusal.message.contains(link.to_str().unwrap()), "{}", refusal.message);
        fs::remove_file(link).unwrap();
    }
    assert_eq!(ground.git(&["for-each-ref", "--format=%(objectname)", "refs/heads"]), format!("{before}\n{before}"));
    // The user's own branch that stands for the fetched one, checked out; and one that is being rebased.
    fetch("topic").unwrap();
    commit(&worktree.path, "more");
    ground.git(&["symbolic-ref", "refs/heads/mine", "refs/heads/abide/ada/topic"]);
    ground.git(&["checkout", "-q", "mine"]);
    assert_eq!(refused(fetch("topic")), "checked_out");
    ground.git(&["checkout", "-q", "main"]);
    put(&records.join("rebase-merge/head-name"), "refs/heads/abide/ada/topic\n");
    assert_eq!(refused(fetch("topic")), "checked_out");
    fs::remove_dir_all(records.join("rebase-merge")).unwrap();
    assert_eq!(ground.git(&["rev-parse", "abide/ada/topic", "main"]), format!("{tip}\n{before}"));
    fetch("topic").unwrap();
}

/// An agent may turn the refs that the runtime keeps up to date in its repository into names for its own branches.
#[test]
fn the_users_branches_in_a_worktree_are_refs_of_their_own() {
    let ground = Ground::new();
    ground.git(&["branch", "gone"]);
    let worktree = ground.worktree("one");
    let own = commit(&worktree.path, "own");
    for name in ["main", "gone"] {
        git(&worktree.path, &["branch", name]);
        git(&worktree.path, &["symbolic-ref", &format!("refs/remotes/user/{name}"), &format!("refs/heads/{name}")]);
    }
    let tip = commit(&ground.repo, "second");
    ground.git(&["branch", "-D", "gone"]);
    ground.repositories().refresh(&worktree.path).unwrap();
    assert_eq!(git(&worktree.path, &["rev-parse", "main", "gone", "user/main"]), format!("{own}\n{own}\n{tip}"));
}

#[test]
fn a_childs_worktree_takes_the_parents_commits_over() {
    let ground = Ground::new();
    let parent = ground.worktree("parent");
    let tip = commit(&parent.path, "the parent's");
    let of = ground.check(&parent.path).unwrap();
    let folder = ground.home.join("worktrees/child/one");
    let child = ground.repositories().create_worktree(&of, &folder, "abide/child-one").unwrap();
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
    let make = || repositories.create_worktree(&ground.workspace(), &ground.worktrees().join("x"), "abide/ada-x");
    assert_eq!(refused(make()), "borrowed_objects");
    // The word of a person who may not use that store changes nothing.
    let no = || Err(Refusal::new(ErrorCode::OutsideRoots, "no").with_hint("no"));
    assert_eq!(refused(repositories.agree(&ground.workspace(), |_, _| no())), "outside_roots");
    assert_eq!(refused(make()), "borrowed_objects");
    // The stores that are judged are those that are recorded, and then a model may, too.
    let judged = |_: &Workspace, stores: &[PathBuf]| {
        assert_eq!(stores, [private.repo.join(".git/objects")]);
        Ok(())
    };
    repositories.agree(&ground.workspace(), judged).unwrap();
    let made = make().unwrap();
    assert!(made.path.join("secret").exists());
    assert!(made.notes.iter().any(|note| note.contains(private.repo.to_str().unwrap())), "{:?}", made.notes);
    ground.remove(&made).unwrap();
    // Another one than was recorded.
    let other = Ground::new();
    put(&ground.repo.join(".git/objects/info/alternates"), format!("{}\n", other.repo.join(".git/objects").display()));
    assert_eq!(refused(make()), "borrowed_objects");
}

/// The runtime reads some files of a repository's records itself, outside of the sandbox. Where an agent put a link in
/// their place, nothing of the file it leads to comes into a place that agents can read, or into an answer.
#[test]
fn links_in_the_records_of_a_repository_lead_to_no_other_file() {
    let ground = Ground::new();
    let secret = ground.dir.path().join("secret");
    put(&secret, "/secret-of-the-user\n");
    let worktree = ground.worktree("one");
    commit(&worktree.path, "work");
    let inner = ground.repo.join("inner");
    git(&ground.repo, &["clone", "-q", ".", "inner"]);
    for records in [worktree.path.join(".git"), ground.repo.join(".git"), inner.join(".git")] {
        git(&records, &["config", "core.sparseCheckout", "true"]);
        for name in ["shallow", "info/sparse-checkout", "info/exclude"] {
            let _there = fs::remove_file(records.join(name));
            fs::create_dir_all(records.join(name).parent().unwrap()).unwrap();
            symlink(&secret, records.join(name)).unwrap();
        }
    }
    symlink(&secret, inner.join(".git/objects/info/alternates")).unwrap();
    let repositories = ground.repositories();
    let mut answers = Vec::new();
    for (number, of) in [&worktree.path, &ground.repo, &inner].into_iter().enumerate() {
        let of = ground.check(of).unwrap();
        for asker in ["Model", "Person"] {
            if asker == "Person" {
                answers.push(format!("{:?}", repositories.agree(&of, |_, _| Ok(()))));
            }
            let folder = ground.worktrees().join(format!("{asker}-{number}"));
            answers.push(format!("{:?}", repositories.create_worktree(&of, &folder, "abide/ada-x")));
        }
    }
    // Settings of another repository, whose remotes a worktree would have.
    let config = ground.dir.path().join("config");
    put(&config, "[remote \"origin\"]\n\turl = https://example.org/secret-of-the-user\n");
    let own = worktree.path.join(".git/config");
    let before = fs::read(&own).unwrap();
    fs::remove_file(&own).unwrap();
    symlink(&config, &own).unwrap();
    let of = ground.check(&worktree.path);
    assert_eq!(of.clone().unwrap_err().code, ErrorCode::DamagedRepository);
    // Its agent can go on there, and repair it.
    assert_eq!(repositories.check_again(&worktree.path).unwrap().git, None);
    let made = of.and_then(|of| repositories.create_worktree(&of, &ground.worktrees().join("linked"), "abide/ada-x"));
    answers.push(format!("{made:?}"));
    fs::remove_file(&own).unwrap();
    put(&own, before);
    answers.push(format!("{:?}", repositories.fetch("ada", &ground.repo, Some(&worktree.path), None)));
    answers.push(format!("{:?}", repositories.refresh(&worktree.path)));
    answers.push(format!("{:?}", ground.remove(&worktree)));
    for answer in &answers {
        assert!(!answer.contains("secret-of-the-user"), "{answer}");
    }
    assert!(answers[0].starts_with("Ok") && answers[3].starts_with("Ok"), "{answers:?}");
    for (path, (_, content)) in everything(&ground.home) {
        let leaked = String::from_utf8_lossy(&content).contains("secret-of-the-user");
        assert!(!leaked, "{}", path.display());
    }
}

/// A list of commits at which history begins is the user's to make: from an agent's repository it would cut the history
/// that others see, or pass a branch with missing commits to the user.
#[test]
fn an_agent_cuts_no_history_but_its_own() {
    let ground = Ground::new();
    commit(&ground.repo, "second");
    let worktree = ground.worktree("one");
    commit(&worktree.path, "work");
    let base = ground.git(&["rev-parse", "main"]);
    put(&worktree.path.join(".git/shallow"), format!("{base}\n"));
    let fetch = || ground.repositories().fetch("ada", &ground.repo, Some(&worktree.path), None);
    fetch().unwrap();
    assert!(!mirror(&ground).join("shallow").exists());
    assert_eq!(git(&ground.worktree("two").path, &["rev-list", "--count", "HEAD"]), "2");
    // A commit that the list hides, and that is gone.
    let hidden = commit(&worktree.path, "hidden");
    let tip = commit(&worktree.path, "tip");
    put(&worktree.path.join(".git/shallow"), format!("{tip}\n"));
    git(&worktree.path, &["reflog", "expire", "--expire=now", "--all"]);
    git(&worktree.path, &["gc", "-q", "--prune=now"]);
    assert!(!try_git(&worktree.path, &["cat-file", "-e", &hidden]).status.success());
    assert_eq!(refused(fetch()), "damaged_objects");
    assert_eq!(refused(ground.remove(&worktree)), "damaged_objects");
    assert_eq!(ground.git(&["fsck", "--no-progress", "--no-dangling"]), "");
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
    assert_eq!(refusal.code, ErrorCode::PartialClone);
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

#[test]
fn settings_behind_a_link_are_shown_to_nobody() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let private = ground.dir.path().join("private");
    put(&private, "[remote \"origin\"]\n\turl = https://example.org/a.git\n");
    for of in [&worktree.path, &ground.repo] {
        let link = of.join(".git/config.worktree");
        symlink(&private, &link).unwrap();
        assert_eq!(refused(ground.check(of)), "damaged_repository");
        fs::remove_file(link).unwrap();
        ground.check(of).unwrap();
    }
}

#[test]
fn refreshing_a_worktree_writes_into_no_repository_but_its_own() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let (dot, outside) = (worktree.path.join(".git"), ground.dir.path().join("outside"));
    let private = ground.dir.path().join("private");
    git(ground.dir.path(), &["clone", "-q", ground.repo.to_str().unwrap(), private.to_str().unwrap()]);
    let before = everything(&private);
    commit(&ground.repo, "more");
    let repositories = ground.repositories();
    let _none = fs::remove_dir_all(dot.join("logs"));
    symlink(&outside, dot.join("logs")).unwrap();
    assert!(repositories.refresh(&worktree.path).is_err());
    assert!(!outside.exists());
    fs::rename(&dot, ground.dir.path().join("real")).unwrap();
    symlink(private.join(".git"), &dot).unwrap();
    assert_eq!(refused(repositories.refresh(&worktree.path)), "not_a_worktree");
    assert_eq!(before, everything(&private));
}

pub(super) fn old_worktree(ground: &Ground) -> Worktree {
    let path = ground.worktrees().join("old");
    ground.git(&["worktree", "add", "-q", "-b", "abide/ada-old", path.to_str().unwrap()]);
    let (branch, base_commit) = ("abide/ada-old".to_owned(), ground.git(&["rev-parse", "main"]));
    Worktree { path, branch, base_commit, repo: ground.repo.clone(), notes: Vec::new() }
}

fn convert(ground: &Ground, worktree: &Worktree) -> Result<Vec<String>, Refusal> {
    let now = abide_kernel::time::Time::from_ms(1);
    ground.repositories().convert_worktree(worktree, &ground.patches(), now)
}

/// Records that know the worktree as a linked one, in `at`, and the file that leads to them.
fn make_look_old(worktree: &Worktree, at: &Path, head: &str) {
    let linked = at.join("worktrees/n");
    fs::create_dir_all(&linked).unwrap();
    put(&linked.join("commondir"), "../..\n");
    put(&linked.join("gitdir"), format!("{}\n", worktree.path.join(".git").display()));
    put(&linked.join("HEAD"), format!("{head}\n"));
    put(&worktree.path.join(".git"), format!("gitdir: {}\n", linked.display()));
}

#[test]
fn a_worktree_that_its_agent_made_to_look_old_is_not_converted() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let evil = commit(&worktree.path, "evil");
    let refs = || git(&mirror(&ground), &["for-each-ref"]);
    let before = refs();
    let fake = worktree.path.join("fake");
    fs::rename(worktree.path.join(".git"), &fake).unwrap();
    git(&fake, &["update-ref", "refs/heads/main", &evil]);
    make_look_old(&worktree, &fake, &evil);
    assert_eq!(convert(&ground, &worktree).unwrap(), Vec::<String>::new());
    assert_eq!(refs(), before);
    assert!(worktree.path.join(".git").is_file());
    // Nor are those records taken for the worktree's own.
    assert_eq!(refused(ground.remove(&worktree)), "damaged_repository");
    let of = ground.check(&worktree.path).unwrap();
    let again = ground.repositories().create_worktree(&of, &ground.worktrees().join("two"), "abide/ada-two");
    assert_eq!(refused(again), "not_a_worktree");
    assert_eq!(refs(), before);
}

#[test]
fn an_old_worktree_that_leads_to_another_repository_is_not_converted() {
    let ground = Ground::new();
    let old = old_worktree(&ground);
    let (private, fake) = (ground.dir.path().join("private"), ground.repo.join("fake"));
    git(ground.dir.path(), &["clone", "-q", ground.repo.to_str().unwrap(), private.to_str().unwrap()]);
    git(&ground.repo, &["init", "-q", "--bare", "fake"]);
    put(&fake.join("config"), "[core]\n\trepositoryformatversion = 0\n");
    put(&fake.join("objects/info/alternates"), format!("{}\n", private.join(".git/objects").display()));
    make_look_old(&old, &fake, &old.base_commit);
    assert_eq!(refused(convert(&ground, &old)), "not_a_worktree");
    assert!(!ground.home.join("mirrors").exists());
}

#[test]
fn converting_a_worktree_agrees_to_no_object_store() {
    let ground = Ground::new();
    let lender = ground.dir.path().join("lender");
    git(ground.dir.path(), &["clone", "-q", ground.repo.to_str().unwrap(), lender.to_str().unwrap()]);
    let old = old_worktree(&ground);
    let list = ground.repo.join(".git/objects/info/alternates");
    put(&list, format!("{}\n", lender.join(".git/objects").canonicalize().unwrap().display()));
    assert_eq!(refused(convert(&ground, &old)), "borrowed_objects");
    assert!(old.path.join(".git").is_file());
    // A person does.
    ground.agree(&ground.workspace());
    convert(&ground, &old).unwrap();
    assert!(old.path.join(".git").is_dir());
}

#[test]
fn a_conversion_that_was_cut_off_is_finished() {
    let ground = Ground::new();
    let old = old_worktree(&ground);
    let record = ground.worktrees().join(".record-old");
    convert(&ground, &old).unwrap();
    let done = fs::read_to_string(&record).unwrap();
    let cut_off = done.replacen('{', "{ \"converting\": true,", 1);
    // After the new repository was put in place.
    put(&record, &cut_off);
    convert(&ground, &old).unwrap();
    assert_eq!(fs::read_to_string(&record).unwrap(), done);
    // Before it was.
    fs::remove_dir_all(&old.path).unwrap();
    ground.git(&["worktree", "add", "-q", old.path.to_str().unwrap(), "abide/ada-old"]);
    put(&record, &cut_off);
    convert(&ground, &old).unwrap();
    assert_eq!(fs::read_to_string(&record).unwrap(), done);
    assert!(old.path.join(".git").is_dir());
}

/// Exchanges two names until it is dropped, as a command that still runs would.
struct Swapping {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    fn of(a: PathBuf, b: PathBuf) -> Swapping {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let until = std::sync::Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !until.load(std::sync::atomic::Ordering::Relaxed) {
                for pause in [2_000, 4_000] {
                    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                    std::thread::sleep(std::time::Duration::from_micros(pause));
                }
            }
        });
        Swapping { stop, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// While a command swaps the records of its repository for a link, a model has worktrees made of it: none is of the
/// repository that the link leads to.
#[test]
fn records_that_are_swapped_for_a_link_lead_to_no_other_repository() {
    for mechanism in [Mechanism::Bubblewrap, Mechanism::Landlock] {
        let ground = Ground { mechanism, ..Ground::new() };
        let other = Ground::new();
        other.write("secret.txt", "TOP-SECRET");
        other.commit("secret");
        let workspace = ground.workspace();
        ground.agree(&workspace);
        let link = ground.repo.join("link");
        std::os::unix::fs::symlink(other.repo.join(".git"), &link).unwrap();
        let swapping = Swapping::of(ground.repo.join(".git"), link);
        let repositories = ground.repositories();
        for number in 0..40 {
            let folder = ground.worktrees().join(number.to_string());
            let branch = format!("abide/ada-{number}");
            if repositories.create_worktree(&workspace, &folder, &branch).is_ok() {
                assert!(!folder.join("secret.txt").exists(), "{mechanism:?} {number}");
            }
        }
        drop(swapping);
        let secret = other.git(&["rev-parse", "HEAD:secret.txt"]);
        let mirrored = try_git(&mirror(&ground), &["cat-file", "-e", &secret]);
        assert!(!mirrored.status.success(), "{mechanism:?}: the mirror holds what was never shown to anybody");
    }
}
