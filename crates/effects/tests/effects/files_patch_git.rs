//! ApplyPatch against git and diff: what they write is applied as they mean it, and any part of it is taken or refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use serde_json::json;

use crate::files_stage::Workspace;
use abide_kernel::refusal::ErrorCode;

type Tree = BTreeMap<String, (String, bool)>;

/// Lines from a small choice, so that they come again and again; some end in CRLF, and the last may have no end.
fn any_text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a", "b", "c", "d", "- e", "+ f", "", "\t g", "-- h", "++ i"]);
    let end = prop_oneof![9 => Just("\n"), 1 => Just("\r\n")];
    let lines = prop::collection::vec((line, end), 0..40);
    (lines, any::<bool>()).prop_map(|(lines, cut)| {
        let text: String = lines.into_iter().flat_map(|(line, end)| [line, end]).collect();
        if cut { text.trim_end_matches(['\r', '\n']).to_owned() } else { text }
    })
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let name = prop::sample::select(vec!["f", "g", "d/f", "d/e/g", "with space", "é"]).prop_map(str::to_owned);
    prop::collection::btree_map(name, (any_text(), any::<bool>()), 0..5)
}

fn write(folder: &Path, tree: &Tree) {
    use std::os::unix::fs::PermissionsExt;
    for (name, (text, executable)) in tree {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let mode = if *executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn read(folder: &Path) -> Tree {
    use std::os::unix::fs::PermissionsExt;
    let mut tree = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != ".git") {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let executable = entry.metadata().unwrap().permissions().mode() & 0o111 != 0;
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            tree.insert(name, (std::fs::read_to_string(&path).unwrap(), executable));
        }
    }
    tree
}

fn git(folder: &Path, args: &[&str]) -> (bool, String) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "core.autocrlf=false", "-c", "core.fileMode=true"]).args(args);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

/// What git says leads from one tree to the other.
fn git_diff(before: &Tree, after: &Tree, options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    assert!(git(folder.path(), &["init", "-q"]).0);
    write(folder.path(), before);
    assert!(git(folder.path(), &["add", "-A"]).0);
    let first = git(folder.path(), &["write-tree"]).1;
    for name in before.keys() {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    write(folder.path(), after);
    assert!(git(folder.path(), &["add", "-A"]).0);
    // Text, whatever git thinks of its bytes.
    let mut args = vec!["diff", "--cached", "--text"];
    args.extend(options);
    args.push(first.trim());
    git(folder.path(), &args).1
}

fn diff_u(before: &str, after: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), before).unwrap();
    std::fs::write(folder.path().join("y"), after).unwrap();
    let mut command = Command::new("diff");
    command.current_dir(folder.path()).args(["-u", "--text", "--label", "a/f", "--label", "b/f", "x", "y"]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_git_writes_is_applied(
        before in any_tree(),
        after in any_tree(),
        options in prop::sample::select(vec![vec![], vec!["-M30"], vec!["-C", "-M"], vec!["-U0"], vec!["-U1", "-M10"]]),
    ) {
        let patch = git_diff(&before, &after, &options);
        let workspace = Workspace::new();
        write(&workspace.path("."), &before);
        if patch.is_empty() {
            prop_assert_eq!(&before, &after);
        } else {
            let done = workspace.call("ApplyPatch", &json!({ "patch": patch }));
            prop_assert!(done.is_ok(), "{:?}\n{}", done, patch);
        }
        prop_assert_eq!(read(&workspace.path(".")), after, "{}", patch);
    }

    #[test]
    fn what_diff_writes_is_applied(before in any_text(), after in any_text()) {
        prop_assume!(before != after);
        let workspace = Workspace::new();
        workspace.put("f", &before);
        let patch = diff_u(&before, &after);
        let done = workspace.call("ApplyPatch", &json!({ "patch": patch }));
        prop_assert!(done.is_ok(), "{:?}\n{}", done, patch);
        prop_assert_eq!(workspace.text("f"), after, "{}", patch);
    }

    /// The file has changed meanwhile. Where git finds a place for every hunk, so do we, the same one; or we say that
    /// there are several.
    #[test]
    fn a_patch_that_has_moved_is_applied_as_git_does(
        before in any_text(), after in any_text(), above in "(new [0-9]{3}\n){0,9}", below in "(new [0-9]{3}\n){0,9}",
    ) {
        prop_assume!(before != after && before.ends_with('\n') && after.ends_with('\n'));
        let patch = diff_u(&before, &after);
        let now = format!("{above}{before}{below}");
        let (ours, theirs) = (Workspace::new(), Workspace::new());
        ours.put("f", &now);
        theirs.put("f", &now);
        theirs.put("p.patch", &patch);
        let (taken, _) = git(&theirs.path("."), &["apply", "p.patch"]);
        match ours.call("ApplyPatch", &json!({ "patch": patch })) {
            Ok(_) if taken => prop_assert_eq!(ours.text("f"), theirs.text("f"), "{}", patch),
            Ok(_) => prop_assert_ne!(ours.text("f"), now),
            Err(refusal) => {
                prop_assert!(!taken || refusal.code == ErrorCode::AmbiguousHunk, "{:?}\n{}\n{}", refusal, patch, now);
                prop_assert_eq!(ours.text("f"), now);
            }
        }
    }

    /// Half a patch, or one with a line too many, too few or changed: taken or refused, never half done, no panic.
    #[test]
    fn a_damaged_patch_does_no_harm(
        before in any_tree(), after in any_tree(), cut in any::<prop::sample::Index>(), line in any::<prop::sample::Index>(),
        put in prop::sample::select(vec!["", "@@ -1 +1 @@", "--- a/f", "+++ b/f", "-a", "+a", " a", "\\ No", "diff --git a b", "x"]),
    ) {
        let patch = git_diff(&before, &after, &[]);
        prop_assume!(!patch.is_empty());
        let mut lines: Vec<&str> = patch.split('\n').collect();
        let at = line.index(lines.len());
        let mut replaced = lines.clone();
        replaced[at] = put;
        lines.insert(at, put);
        let boundary = (0..=cut.index(patch.len())).rev().find(|at| patch.is_char_boundary(*at)).unwrap();
        for damaged in [patch[..boundary].to_owned(), lines.join("\n"), replaced.join("\n")] {
            let workspace = Workspace::new();
            write(&workspace.path("."), &before);
            if workspace.call("ApplyPatch", &json!({ "patch": damaged })).is_err() {
                prop_assert_eq!(&read(&workspace.path(".")), &before, "{}", damaged);
            }
        }
    }
}
