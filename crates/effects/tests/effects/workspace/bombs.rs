//! Trees and files that stand for more than any disk holds: counted before they are checked out, compared or saved.

use std::fs::{self, File};
use std::path::Path;

use abide_effects::workspace::Worktree;
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;

use super::stores::old_worktree;
use super::{Ground, contents, git, put, refused, try_git};

/// A tree with these entries: mode and type, object, name.
fn make_tree(at: &Path, entries: impl Iterator<Item = (&'static str, String, String)>) -> String {
    let lines: String = entries.map(|(kind, id, name)| format!("{kind} {id}\t{name}\n")).collect();
    let listed = tempfile::NamedTempFile::new().unwrap();
    fs::write(listed.path(), lines).unwrap();
    let script = format!("git mktree <'{}'", listed.path().display());
    let made = std::process::Command::new("sh").arg("-c").arg(script).current_dir(at).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim_end().to_owned()
}

fn blob(at: &Path, content: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), content).unwrap();
    git(at, &["hash-object", "-w", "--no-filters", file.path().to_str().unwrap()])
}

/// Ten folders of ten folders, nine deep, of ten files: 1,111,111,110 entries in ten objects.
fn billions(at: &Path) -> String {
    let file = blob(at, b"x");
    let ten = |kind, id: String| (0..10).map(move |number| (kind, id.clone(), number.to_string()));
    (1..9).fold(make_tree(at, ten("100644 blob", file)), |tree, _| make_tree(at, ten("040000 tree", tree)))
}

/// A folder in a folder in a folder.
fn nested(at: &Path, depth: usize, name: &str) -> String {
    let file = blob(at, b"x");
    let one = |kind, id: String| std::iter::once((kind, id, name.to_owned()));
    (1..depth).fold(make_tree(at, one("100644 blob", file)), |tree, _| make_tree(at, one("040000 tree", tree)))
}

/// 4,096 names of one file: 32 GiB.
fn heavy(at: &Path) -> String {
    let file = blob(at, &vec![0; 8 << 20]);
    make_tree(at, (0..4_096).map(|number| ("100644 blob", file.clone(), number.to_string())))
}

/// A commit of a tree on top of the one that is checked out. The files stay as they are.
fn commit_tree(at: &Path, tree: &str) -> String {
    git(at, &["commit-tree", "-p", "HEAD", "-m", "much", tree])
}

fn put_on_head(at: &Path, tree: &str) {
    let commit = commit_tree(at, tree);
    git(at, &["update-ref", "HEAD", &commit]);
}

fn child(ground: &Ground, parent: &Worktree) -> Result<Worktree, Refusal> {
    let of = ground.check(&parent.path)?;
    ground.create(&of, &ground.worktrees().join("child"), "abide/ada-child")
}

#[test]
fn a_tree_that_is_too_large_is_not_checked_out() {
    type MakeTree = fn(&Path) -> String;
    let trees: [(&str, MakeTree); 4] = [
        ("1111111110 entries", billions),
        ("513 folders", |at| nested(at, 601, "a")),
        ("5019 bytes in its longest path", |at| nested(at, 20, &"n".repeat(250))),
        ("34359738368 bytes", heavy),
    ];
    for (figure, tree) in trees {
        let ground = Ground::new();
        let parent = ground.worktree("parent");
        put_on_head(&parent.path, &tree(&parent.path));
        let refusal = child(&ground, &parent).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TreeTooLarge, "{refusal:?}");
        assert!(refusal.message.contains(figure), "{figure}: {}", refusal.message);
        assert!(!ground.worktrees().join("child").exists());
        let bases = git(&mirror_of(&ground), &["for-each-ref", "refs/abide/base"]);
        assert_eq!(bases.lines().count(), 1, "{bases}");
    }
}

fn mirror_of(ground: &Ground) -> std::path::PathBuf {
    fs::read_dir(ground.home.join("mirrors")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn an_agent_that_works_in_the_users_folder_makes_no_bomb_for_the_next_worktree() {
    let ground = Ground::new();
    put_on_head(&ground.repo, &billions(&ground.repo));
    let made = ground.create(&ground.workspace(), &ground.worktrees().join("one"), "abide/ada-one");
    assert_eq!(refused(made), "tree_too_large");
    // Folders that occur often are no bomb.
    let ground = Ground::new();
    for folder in 0..200 {
        put(&ground.repo.join(format!("{folder}/deep/er/file")), "the same");
    }
    ground.commit("many");
    let worktree = ground.worktree("one");
    assert_eq!(contents(&worktree.path), contents(&ground.repo));
}

#[test]
fn a_sparse_checkout_is_measured_by_its_patterns() {
    let ground = Ground::new();
    let heavy = heavy(&ground.repo);
    let kept = git(&ground.repo, &["rev-parse", "HEAD:kept.txt"]);
    let heavy = make_tree(&ground.repo, (0..256).map(|n| ("040000 tree", heavy.clone(), n.to_string())));
    let both = [("040000 tree", heavy, "heavy".to_owned()), ("100644 blob", kept, "kept.txt".to_owned())];
    let tree = make_tree(&ground.repo, both.into_iter());
    put_on_head(&ground.repo, &tree);
    ground.git(&["config", "core.sparseCheckout", "true"]);
    let patterns = |text: &str| put(&ground.repo.join(".git/info/sparse-checkout"), text);
    // More than any disk has: 8 TiB, of which one file is checked out.
    patterns("/*\n!/*/\n");
    let parent = ground.worktree("parent");
    assert_eq!(fs::read_dir(&parent.path).unwrap().count(), 2);
    patterns("/*\n!/kept.txt\n");
    let made = ground.create(&ground.workspace(), &ground.worktrees().join("two"), "abide/ada-two");
    assert_eq!(refused(made), "disk_full");
    // Whoever takes the patterns away does not get the files either.
    git(&parent.path, &["config", "core.sparseCheckout", "false"]);
    let message = child(&ground, &parent).unwrap_err().message;
    assert!(message.contains("has 8796093022222 bytes"), "{message}");
}

#[test]
fn a_commit_of_a_tree_that_is_too_large_is_kept_and_not_fetched() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    let commit = commit_tree(&worktree.path, &billions(&worktree.path));
    git(&worktree.path, &["branch", "much", &commit]);
    let fetched = ground.repositories().fetch("ada", &ground.repo, Some(&worktree.path), Some("much"));
    assert_eq!(refused(fetched), "tree_too_large");
    let removed = ground.remove(&worktree).unwrap();
    assert_eq!(removed.branches_kept, ["abide/ada/much"]);
    assert!(removed.evidence.iter().any(|line| line.contains("too large")), "{:?}", removed.evidence);
    let refusal = ground.repositories().fetch("ada", &ground.repo, None, None).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::TreeTooLarge);
    assert!(!try_git(&ground.repo, &["cat-file", "-e", &commit]).status.success());
    // The hint is a way to have it all the same.
    let (_, command) = refusal.hint.rsplit_once(": ").unwrap();
    let taken = std::process::Command::new("sh").arg("-c").arg(command).current_dir(&ground.repo).output().unwrap();
    assert!(taken.status.success(), "{command}: {}", String::from_utf8_lossy(&taken.stderr));
    assert_eq!(ground.git(&["rev-parse", "FETCH_HEAD"]), commit);
}

#[test]
fn a_worktree_on_a_tree_that_is_too_large_stays() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put_on_head(&worktree.path, &billions(&worktree.path));
    let before = contents(&worktree.path);
    let refusal = ground.remove(&worktree).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::TreeTooLarge);
    assert!(refusal.hint.contains("--discard"), "{}", refusal.hint);
    assert_eq!(contents(&worktree.path), before);
    assert!(ground.tree(&ground.check(&worktree.path).unwrap()).is_some());
    git(&worktree.path, &["reset", "-q", "--soft", "HEAD^"]);
    ground.remove(&worktree).unwrap();
}

#[test]
fn an_old_worktree_on_a_tree_that_is_too_large_is_not_converted() {
    let ground = Ground::new();
    let worktree = old_worktree(&ground);
    put_on_head(&worktree.path, &billions(&worktree.path));
    git(&worktree.path, &["update-index", "--refresh"]);
    let converted = ground.repositories().convert_worktree(&worktree, &ground.patches(), Time::from_ms(1_000));
    assert_eq!(refused(converted), "tree_too_large");
    assert!(worktree.path.join(".git").is_file());
}

#[test]
fn a_file_with_a_hole_is_neither_compared_nor_saved() {
    for name in ["kept.txt", "new.bin"] {
        let ground = Ground::new();
        let worktree = ground.worktree("one");
        put(&worktree.path.join("work.txt"), "work");
        File::options().create(true).append(true).open(worktree.path.join(name)).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(ground.tree(&ground.check(&worktree.path).unwrap()), None);
        let refusal = ground.remove(&worktree).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TooMuchUncommitted, "{refusal:?}");
        assert!(refusal.message.contains(name) && refusal.message.contains("10995116277"), "{}", refusal.message);
        assert_eq!(fs::read(worktree.path.join("work.txt")).unwrap(), b"work");
        fs::remove_file(worktree.path.join(name)).unwrap();
        let patch = ground.remove(&worktree).unwrap().patch.unwrap();
        assert!(fs::read_to_string(patch).unwrap().contains("work.txt"));
    }
}

#[test]
fn a_tree_that_needs_more_room_than_the_disk_has_is_not_checked_out() {
    let ground = Ground::new();
    let file = blob(&ground.repo, &vec![0; 64 << 20]);
    // The user's own may be any size that there is room for: half a million files of 64 MiB are 32 TiB.
    let folder = make_tree(&ground.repo, (0..1_000).map(|n| ("100644 blob", file.clone(), n.to_string())));
    let tree = make_tree(&ground.repo, (0..500).map(|n| ("040000 tree", folder.clone(), n.to_string())));
    put_on_head(&ground.repo, &tree);
    let made = ground.create(&ground.workspace(), &ground.worktrees().join("one"), "abide/ada-one");
    let refusal = made.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::DiskFull, "{refusal:?}");
    assert!(refusal.message.contains("500500 files"), "{}", refusal.message);
    assert!(!ground.worktrees().join("one").exists());
}
