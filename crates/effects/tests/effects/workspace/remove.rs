//! Removing worktrees without losing work.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use abide_effects::workspace::{PatchHolds, Unsaved, Worktree, list_patches};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::time::Time;

use super::{Ground, contents, git, is_root, put, refused, try_git};

/// Removes it, which has to leave a patch that leads back to what was there.
fn saves_everything(ground: &Ground, worktree: &Worktree) {
    let (was, head) = (contents(&worktree.path), git(&worktree.path, &["rev-parse", "HEAD"]));
    let removed = ground.remove(worktree).unwrap();
    assert!(!worktree.path.exists());
    if !removed.branches_kept.is_empty() {
        ground.fetch_kept();
    }
    let again = ground.put_back(&removed.patch.unwrap(), &head);
    assert_eq!(was, contents(&again));
}

fn nothing_removed(ground: &Ground, worktree: &Worktree, code: &str) {
    let was = contents(&worktree.path);
    assert_eq!(refused(ground.remove(worktree)), code);
    assert_eq!(was, contents(&worktree.path), "{code}");
}

fn commit(worktree: &Worktree, name: &str) {
    put(&worktree.path.join(name), name);
    git(&worktree.path, &["add", "-A"]);
    git(&worktree.path, &["commit", "-q", "-m", name]);
}

fn branches(ground: &Ground) -> String {
    ground.git(&["branch", "--format=%(refname:short)"]).replace('\n', " ")
}

#[test]
fn one_without_work_leaves_nothing() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("ignored/output"), "x");
    let removed = ground.remove(&worktree).unwrap();
    assert_eq!((removed.patch, removed.branches_kept), (None, Vec::new()));
    assert!(removed.evidence.iter().any(|line| line.contains("unsaved: ignored/")), "{:?}", removed.evidence);
    assert!(!worktree.path.exists());
    assert_eq!(branches(&ground), "main");
    assert_eq!(list_patches(&ground.patches()).unwrap(), []);
    assert_eq!(refused(ground.repositories().fetch("ada", &ground.repo, None, None)), "no_branch");
}

#[test]
fn every_kind_of_change_comes_back() {
    let ground = Ground::new();
    ground.write("moved.txt", "to be moved\n".repeat(20));
    ground.write("becomes/folder", "a file first");
    ground.write("run.sh", "#!/bin/sh\n");
    symlink("kept.txt", ground.repo.join("link")).unwrap();
    ground.commit("more");
    let worktree = ground.worktree("one");
    let at = |name: &str| worktree.path.join(name);
    put(&at("kept.txt"), "one\nTWO\nthree, without an end");
    put(&at("untracked/deep/new.txt"), "new\n");
    put(&at("empty"), "");
    put(&at("binary"), (0..=255u8).cycle().take(100_000).collect::<Vec<_>>());
    put(&at("crlf.txt"), "a\r\nb\r\n");
    fs::remove_file(at("folder/inner.txt")).unwrap();
    fs::remove_dir(at("folder")).unwrap();
    fs::rename(at("moved.txt"), at("moved there.txt")).unwrap();
    fs::set_permissions(at("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::remove_file(at("link")).unwrap();
    symlink("binary", at("link")).unwrap();
    symlink("nowhere/at/all", at("dangling")).unwrap();
    fs::remove_file(at("becomes/folder")).unwrap();
    put(&at("becomes/folder/now"), "one");
    git(&worktree.path, &["add", "binary"]);
    saves_everything(&ground, &worktree);
}

#[test]
fn what_is_committed_stays_and_what_is_not_applies_on_top() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    commit(&worktree, "committed");
    put(&worktree.path.join("committed"), "changed since");
    let tip = git(&worktree.path, &["rev-parse", "HEAD"]);
    saves_everything(&ground, &worktree);
    assert_eq!(ground.git(&["rev-parse", "abide/ada/one"]), tip);
    let stories = list_patches(&ground.patches()).unwrap().into_iter().map(|record| record.story.unwrap());
    let [files, commits] = stories.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((commits.holds, files.holds), (PatchHolds::Commits, PatchHolds::Files));
    for story in [commits, files] {
        assert_eq!((story.applies_to.as_ref(), &story.base_commit), (Some(&tip), &worktree.base_commit));
        assert_eq!(story.files, ["committed"]);
    }
}

#[test]
fn what_is_staged_and_nowhere_else_is_saved_too() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("draft"), "only staged\n");
    git(&worktree.path, &["add", "draft"]);
    fs::remove_file(worktree.path.join("draft")).unwrap();
    let removed = ground.remove(&worktree).unwrap();
    assert_eq!(removed.patch, None);
    let saved = list_patches(&ground.patches()).unwrap();
    assert_eq!(saved.iter().map(|record| record.name.as_str()).collect::<Vec<_>>(), ["ada-one.staged"]);
    let again = ground.put_back(&saved[0].patch, "main");
    assert_eq!(fs::read_to_string(again.join("draft")).unwrap(), "only staged\n");
}

#[test]
fn commits_on_no_branch_are_kept_under_a_name_of_their_own() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    git(&worktree.path, &["checkout", "-q", "--detach"]);
    commit(&worktree, "adrift");
    let tip = git(&worktree.path, &["rev-parse", "HEAD"]);
    let removed = ground.remove(&worktree).unwrap();
    assert_eq!(removed.branches_kept, ["abide/ada/one-detached"]);
    // The same once more: neither takes the other's place.
    let worktree = ground.worktree("one");
    git(&worktree.path, &["checkout", "-q", "--detach"]);
    commit(&worktree, "again");
    assert_eq!(ground.remove(&worktree).unwrap().branches_kept, ["abide/ada/one-detached-2"]);
    ground.fetch_kept();
    assert_eq!(ground.git(&["rev-parse", "abide/ada/one-detached"]), tip);
    assert_eq!(branches(&ground), "abide/ada/one-detached abide/ada/one-detached-2 main");
}

#[test]
fn every_branch_and_the_stash_outlive_the_folder() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    commit(&worktree, "first");
    git(&worktree.path, &["switch", "-q", "-c", "topic/two"]);
    commit(&worktree, "second");
    put(&worktree.path.join("first"), "put away");
    git(&worktree.path, &["stash", "-q"]);
    let mut kept = ground.remove(&worktree).unwrap().branches_kept;
    kept.sort();
    assert_eq!(kept, ["abide/ada/one", "abide/ada/stash", "abide/ada/topic/two"]);
    assert_eq!(branches(&ground), "main", "nothing comes into the user's repository by itself");
    let mut fetched: Vec<String> = ground.fetch_kept().into_iter().map(|fetched| fetched.branch).collect();
    fetched.sort();
    assert_eq!(fetched, kept);
    assert_eq!(ground.git(&["show", "abide/ada/topic/two:second"]), "second");
    assert_eq!(ground.git(&["show", "abide/ada/stash:first"]), "put away");
    assert_eq!(refused(ground.repositories().fetch("ada", &ground.repo, None, None)), "no_branch");
}

#[test]
fn a_folder_that_vanished_is_reported_and_forgotten() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    fs::remove_dir_all(&worktree.path).unwrap();
    assert_eq!(refused(ground.remove(&worktree)), "missing");
    assert_eq!(fs::read_dir(ground.worktrees()).unwrap().count(), 0);
    // Asked again, it is still missing.
    assert_eq!(refused(ground.remove(&worktree)), "missing");
}

#[test]
fn a_folder_that_is_not_the_worktree_is_left_alone() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let stranger = Worktree { path: ground.home.join("strange"), ..worktree.clone() };
    put(&stranger.path.join("file"), "work");
    assert_eq!(refused(ground.remove(&stranger)), "not_a_worktree");
    assert!(stranger.path.join("file").exists());
}

#[test]
fn files_are_saved_whatever_became_of_the_worktrees_own_repository() {
    let ground = Ground::new();
    // Deleted by its agent: there are no commits to keep.
    let worktree = ground.worktree("deleted");
    put(&worktree.path.join("work"), "work");
    fs::remove_dir_all(worktree.path.join(".git")).unwrap();
    let removed = ground.remove(&worktree).unwrap();
    let again = ground.put_back(&removed.patch.unwrap(), "main");
    assert_eq!(fs::read_to_string(again.join("work")).unwrap(), "work");
    // Replaced by a link to another repository, or damaged: the folder stays, because commits may be in it.
    let other = Ground::new();
    for (number, damage) in [
        &(|dot: &Path| put(dot, format!("gitdir: {}\n", other.repo.join(".git").display()))) as &dyn Fn(&Path),
        &|dot: &Path| symlink(other.repo.join(".git"), dot).unwrap(),
        &|dot: &Path| put(dot, "garbage"),
        &|dot: &Path| {
            git(dot.parent().unwrap(), &["init", "-q"]);
            put(&dot.join("HEAD"), "garbage");
        },
    ]
    .into_iter()
    .enumerate()
    {
        let worktree = ground.worktree(&format!("number-{number}"));
        put(&worktree.path.join("work"), "work");
        fs::remove_dir_all(worktree.path.join(".git")).unwrap();
        damage(&worktree.path.join(".git"));
        let refusal = ground.remove(&worktree).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DamagedRepository, "{number}: {refusal:?}");
        assert!(worktree.path.join("work").exists());
        let patch = ground.patches().join(format!("ada-number-{number}.patch"));
        assert!(fs::read_to_string(patch).unwrap().contains("+work"), "{number}");
        let discarded =
            ground.repositories().remove_worktree(&worktree, Unsaved::Discard, &ground.patches(), Time::from_ms(1));
        assert!(discarded.unwrap().evidence[0].contains("given up"));
        assert!(!worktree.path.exists());
    }
}

#[test]
fn operations_under_way_are_refused() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "work");
    let records = worktree.path.join(".git");
    for name in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "index.lock"] {
        put(&records.join(name), "");
        let code = if name == "index.lock" { "git_busy" } else { "under_way" };
        nothing_removed(&ground, &worktree, code);
        fs::remove_file(records.join(name)).unwrap();
    }
    fs::create_dir(records.join("rebase-merge")).unwrap();
    nothing_removed(&ground, &worktree, "under_way");
}

#[test]
fn conflicts_are_refused() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("kept.txt"), "theirs");
    git(&worktree.path, &["stash", "-q"]);
    put(&worktree.path.join("kept.txt"), "ours");
    git(&worktree.path, &["commit", "-q", "-am", "ours"]);
    // A stash that does not fit leaves conflicts, and no trace of an operation.
    assert!(!try_git(&worktree.path, &["stash", "pop"]).status.success());
    nothing_removed(&ground, &worktree, "under_way");
}

#[test]
fn repositories_inside_are_refused() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let inside = worktree.path.join("inside");
    fs::create_dir(&inside).unwrap();
    git(&inside, &["init", "-q"]);
    put(&inside.join("file"), "");
    nothing_removed(&ground, &worktree, "nested_repository");
    git(&inside, &["add", "-A"]);
    git(&inside, &["commit", "-q", "-m", "inside"]);
    nothing_removed(&ground, &worktree, "nested_repository");
}

#[test]
fn a_submodule_is_in_the_way_only_when_something_is_in_it() {
    let ground = Ground::new();
    let other = Ground::new();
    let url = other.repo.to_str().unwrap();
    let allow = ["-c", "protocol.file.allow=always", "submodule"];
    ground.git(&[&allow[..], &["-q", "add", url, "sub"]].concat());
    ground.commit("with a submodule");
    let worktree = ground.worktree("filled");
    git(&worktree.path, &[&allow[..], &["-q", "update", "--init"]].concat());
    nothing_removed(&ground, &worktree, "nested_repository");
    let worktree = ground.worktree("bare");
    put(&worktree.path.join("kept.txt"), "changed");
    saves_everything(&ground, &worktree);
}

#[test]
fn a_file_that_can_not_be_read_is_reported() {
    let ground = Ground::new();
    if is_root(&ground) {
        return;
    }
    let worktree = ground.worktree("one");
    let secret = worktree.path.join("secret");
    put(&secret, "work");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o000)).unwrap();
    let refusal = ground.remove(&worktree).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Unreadable);
    assert!(refusal.message.contains("secret"), "{}", refusal.message);
    assert!(secret.exists());
}

#[test]
fn patches_that_can_not_be_written_leave_everything() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "work");
    put(&ground.patches(), "a file where the folder should be");
    nothing_removed(&ground, &worktree, "io");
}

#[test]
fn whatever_was_written_while_it_was_removed_is_there_or_in_the_patch() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let file = worktree.path.join("counter");
    let next = ground.home.join("next");
    put(&file, "0\n");
    let done = AtomicBool::new(false);
    let (removed, last) = std::thread::scope(|scope| {
        // In one piece each, so that it is never half written, and until there is nowhere to write to.
        let writer = scope.spawn(|| {
            let mut written = 0u64;
            while !done.load(Ordering::Relaxed) {
                fs::write(&next, format!("{}\n", written + 1)).unwrap();
                if fs::rename(&next, &file).is_err() {
                    break;
                }
                written += 1;
            }
            written
        });
        let removed = ground.remove(&worktree);
        done.store(true, Ordering::Relaxed);
        (removed, writer.join().unwrap())
    });
    match removed {
        // The writer was slower than we were.
        Ok(removed) => {
            let patch = fs::read_to_string(removed.patch.unwrap()).unwrap();
            assert!(patch.contains(&format!("+{last}\n")), "{last}: {patch}");
        }
        Err(refusal) => {
            // git may notice it before we do.
            assert!(matches!(refusal.code, ErrorCode::StillWritten | ErrorCode::GitFailed), "{refusal:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), format!("{last}\n"));
            saves_everything(&ground, &worktree);
        }
    }
}

#[test]
fn the_users_own_files_and_commits_are_as_they_were() {
    let ground = Ground::new();
    ground.write("kept.txt", "the user's");
    ground.write("new", "the user's");
    let before = (contents(&ground.repo), ground.git(&["status", "--porcelain"]), ground.git(&["log", "--oneline"]));
    let worktree = ground.worktree("one");
    commit(&worktree, "work");
    put(&worktree.path.join("more"), "");
    ground.remove(&worktree).unwrap();
    let after = (contents(&ground.repo), ground.git(&["status", "--porcelain"]), ground.git(&["log", "--oneline"]));
    assert_eq!(before, after);
    assert!(Path::new(&ground.repo).join("new").exists());
}
