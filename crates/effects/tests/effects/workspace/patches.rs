//! Saved patches on disk.

use std::fs;

use abide_effects::workspace::{PatchHolds, list_patches};
use abide_kernel::time::Time;

use super::{Ground, git, put, refused};

#[test]
fn a_patch_has_its_story_beside_it() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("b"), "b");
    put(&worktree.path.join("a"), "a");
    let patch = ground.remove(&worktree).unwrap().patch.unwrap();
    assert_eq!(patch, ground.patches().join("ada-one.patch"));
    let record = list_patches(&ground.patches()).unwrap().remove(0);
    assert_eq!((record.name.as_str(), &record.patch), ("ada-one", &patch));
    assert_eq!(record.bytes, fs::metadata(&patch).unwrap().len());
    let story = record.story.unwrap();
    assert_eq!((story.holds, story.saved_at), (PatchHolds::Files, Time::from_ms(1_000)));
    assert_eq!((story.worktree, story.branch), (worktree.path, "abide/ada-one".into()));
    assert_eq!((story.files, story.files_total), (vec!["a".into(), "b".into()], 2));
    assert_eq!(story.bytes, record.bytes);
    // Nothing half written is left.
    assert_eq!(fs::read_dir(ground.patches()).unwrap().count(), 2);
}

#[test]
fn no_patch_is_written_over_another() {
    let ground = Ground::new();
    for text in ["first", "second", "third"] {
        let worktree = ground.worktree("one");
        put(&worktree.path.join("work"), text);
        ground.remove(&worktree).unwrap();
    }
    let names: Vec<_> = list_patches(&ground.patches()).unwrap().into_iter().map(|record| record.name).collect();
    assert_eq!(names, ["ada-one", "ada-one-2", "ada-one-3"]);
    assert!(fs::read_to_string(ground.patches().join("ada-one.patch")).unwrap().contains("+first"));
}

#[test]
fn a_removal_that_was_cut_off_after_saving_does_not_save_twice() {
    let ground = Ground::new();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "work");
    // The patch is saved, and then the folder can't be taken away.
    let in_the_way = ground.worktrees().join(".going-one");
    put(&in_the_way.join("file"), "");
    assert_eq!(refused(ground.remove(&worktree)), "in_the_way");
    assert_eq!(fs::read_to_string(worktree.path.join("work")).unwrap(), "work");
    let saved = list_patches(&ground.patches()).unwrap();
    fs::remove_dir_all(in_the_way).unwrap();
    let patch = ground.remove(&worktree).unwrap().patch.unwrap();
    assert_eq!(patch, saved[0].patch);
    assert_eq!(list_patches(&ground.patches()).unwrap(), saved);
    // A patch that was damaged since proves nothing and is not taken for a saved one.
    fs::write(&patch, "damaged").unwrap();
    let worktree = ground.worktree("one");
    put(&worktree.path.join("work"), "work");
    assert_eq!(ground.remove(&worktree).unwrap().patch.unwrap(), ground.patches().join("ada-one-2.patch"));
}

#[test]
fn a_patch_without_a_story_is_listed_and_what_is_half_written_is_not() {
    let ground = Ground::new();
    assert_eq!(list_patches(&ground.patches()).unwrap(), []);
    put(&ground.patches().join("lonely.patch"), "text");
    put(&ground.patches().join("torn.patch"), "text");
    put(&ground.patches().join("torn.json"), "{");
    put(&ground.patches().join(".partial-x"), "te");
    let found = list_patches(&ground.patches()).unwrap();
    assert_eq!(found.iter().map(|record| record.name.as_str()).collect::<Vec<_>>(), ["lonely", "torn"]);
    assert!(found.iter().all(|record| record.story.is_none() && record.bytes == 4));
}

#[test]
fn settings_for_diffs_change_nothing() {
    let ground = Ground::new();
    for (key, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.context", "0"),
        ("diff.external", "/bin/false"),
        ("diff.renames", "copies"),
        ("diff.suppressBlankEmpty", "true"),
        ("color.ui", "always"),
        ("core.quotePath", "false"),
        ("apply.whitespace", "error-all"),
        ("core.whitespace", "trailing-space,tab-in-indent"),
        ("format.attach", "true"),
        ("diff.upper.textconv", "tr a-z A-Z"),
    ] {
        ground.git(&["config", key, value]);
    }
    let worktree = ground.worktree("one");
    put(&worktree.path.join("kept.txt"), "one  \n\t\n\ntwo\nthree\n");
    put(&worktree.path.join(".gitattributes"), "*.txt diff=upper\n");
    let patch = ground.remove(&worktree).unwrap().patch.unwrap();
    ground.git(&["config", "--unset", "apply.whitespace"]);
    let again = ground.put_back(&patch, "main");
    assert_eq!(fs::read_to_string(again.join("kept.txt")).unwrap(), "one  \n\t\n\ntwo\nthree\n");
    assert_eq!(git(&again, &["status", "--porcelain"]), "");
}
