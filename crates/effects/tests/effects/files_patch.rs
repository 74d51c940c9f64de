//! ApplyPatch: what a patch may do, all or nothing, and what a model is told when it does not fit.

use abide_kernel::input::Refusal;
use serde_json::{Value, json};

use crate::files_stage::Workspace;

fn apply(workspace: &Workspace, patch: &str) -> Vec<(String, String)> {
    let result = workspace.does("ApplyPatch", json!({ "patch": patch }));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    result["changed"].as_array().unwrap().iter().map(|one| (text(&one["path"]), text(&one["action"]))).collect()
}

fn refuse(workspace: &Workspace, patch: &str, code: &str) -> Refusal {
    workspace.refuses("ApplyPatch", json!({ "patch": patch }), code)
}

fn changed(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(path, action)| ((*path).to_owned(), (*action).to_owned())).collect()
}

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

#[test]
fn one_patch_does_everything_that_git_writes() {
    let workspace = Workspace::new();
    workspace.put("change", LINES);
    workspace.put("old/gone", "bye\n");
    workspace.put("from", "moved\nalong\n");
    workspace.put("run.sh", "echo\n");
    let patch = "\
From 0123 Mon Sep 17 00:00:00 2001
Subject: [PATCH] all of it

 change | 2 +-
diff --git a/change b/change
index 111..222 100644
--- a/change
+++ b/change
@@ -1,4 +1,4 @@ a section
 one
-two
+TWO
 three
 four
@@ -8,3 +8,5 @@
 eight
 nine
 ten
+eleven
+twelve
diff --git a/new/deep b/new/deep
new file mode 100755
index 000..333
--- /dev/null
+++ b/new/deep
@@ -0,0 +1,2 @@
+#!/bin/sh
+exit
\\ No newline at end of file
diff --git a/empty b/empty
new file mode 100644
index 000..e69
diff --git a/old/gone b/old/gone
deleted file mode 100644
--- a/old/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/from b/to there
similarity index 60%
rename from from
rename to to there
--- a/from
+++ b/to there\t
@@ -1,2 +1,2 @@
 moved
-along
+away
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
--\x20
2.47.3
";
    let done = apply(&workspace, patch);
    let expected = [
        ("change", "updated"),
        ("new/deep", "created"),
        ("empty", "created"),
        ("to there", "created"),
        ("run.sh", "updated"),
        ("old/gone", "deleted"),
        ("from", "deleted"),
    ];
    assert_eq!(done, changed(&expected));
    assert_eq!(workspace.text("change"), "one\nTWO\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n");
    assert_eq!((workspace.text("new/deep").as_str(), workspace.mode("new/deep")), ("#!/bin/sh\nexit", 0o755));
    assert_eq!((workspace.text("to there").as_str(), workspace.mode("run.sh")), ("moved\naway\n", 0o755));
    // The folder of a deleted file goes with its last file.
    assert_eq!(workspace.list("."), ["change", "empty", "new", "run.sh", "to there"]);
}

#[test]
fn nothing_is_changed_unless_everything_fits() {
    let workspace = Workspace::new();
    workspace.put("a", LINES);
    workspace.put("b", LINES);
    let fits = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n--- /dev/null\n+++ b/x/y\n@@ -0,0 +1 @@\n+y\n";
    let refusal =
        refuse(&workspace, &format!("{fits}--- a/b\n+++ b/b\n@@ -2,3 +2,3 @@\n two\n-tree\n+3\n four\n"), "no_match");
    assert_eq!(
        refusal.message,
        "hunk 1 of b (@@ -2,3 +2,3 @@) does not fit. Nearest lines:\n2: two\n3: three\n4: four"
    );
    for (patch, code) in [
        ("--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n", "not_found"),
        ("--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+b\n", "already_there"),
        ("--- a/b\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", "no_match"),
        ("diff --git a/b b/a\nrename from b\nrename to a\n", "already_there"),
        ("--- a/b/c\n+++ b/b/c\n@@ -1 +1 @@\n-a\n+b\n", "not_a_folder"),
    ] {
        refuse(&workspace, &format!("{fits}{patch}"), code);
    }
    assert_eq!((workspace.text("a").as_str(), workspace.text("b").as_str()), (LINES, LINES));
    assert_eq!(workspace.list("."), ["a", "b"]);
}

#[test]
fn hunks_may_have_moved() {
    let workspace = Workspace::new();
    let hunk = "@@ -2,3 +2,3 @@\n two\n-three\n+THREE\n four\n@@ -8,2 +8,2 @@\n eight\n-nine\n+NINE\n";
    for (before, after) in [("", ""), ("a\nb\nc\n", ""), ("", "a\nb\nc\n"), (&"x\n".repeat(3_000), "y\n")] {
        workspace.put("f", format!("{before}{LINES}{after}"));
        apply(&workspace, &format!("--- a/f\n+++ b/f\n{hunk}"));
        let lines = LINES.replace("three", "THREE").replace("nine", "NINE");
        assert_eq!(workspace.text("f"), format!("{before}{lines}{after}"));
    }
    // Just as near on both sides, or far away and not the only one: nobody knows which is meant.
    let same = "a\n-\nb\n-\nc\n";
    for (file, at) in [(same.to_owned(), 3), (format!("{}{same}", "x\n".repeat(300)), 1)] {
        workspace.put("f", &file);
        let patch = format!("--- a/f\n+++ b/f\n@@ -{at} +{at} @@\n--\n+!\n");
        refuse(&workspace, &patch, "ambiguous_hunk");
        assert_eq!(workspace.text("f"), file);
    }
    // The second hunk is never before the first.
    workspace.put("f", "a\nb\n");
    refuse(&workspace, "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n@@ -3 +3 @@\n-a\n+A\n", "no_match");
}

#[test]
fn line_ends_are_kept() {
    let workspace = Workspace::new();
    let patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n";
    workspace.put("f", "a\r\nb\r\nc\r\n");
    apply(&workspace, patch);
    assert_eq!(workspace.text("f"), "a\r\nx\r\ny\r\nc\r\n");
    workspace.put("f", "a\r\nb\r\nc\r\n");
    apply(&workspace, &patch.replace('\n', "\r\n"));
    assert_eq!(workspace.text("f"), "a\r\nx\r\ny\r\nc\r\n");
    // A patch that changes the line ends does just that.
    workspace.put("f", "a\r\n");
    apply(&workspace, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+a\n");
    assert_eq!(workspace.text("f"), "a\n");
    workspace.put("f", "a\nb");
    let refusal = refuse(&workspace, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n", "no_match");
    assert!(refusal.hint.contains("\\ No newline at end of file"), "{refusal:?}");
    apply(&workspace, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n");
    assert_eq!(workspace.text("f"), "A\nb");
    // Lines that were trimmed to nothing are empty ones.
    workspace.put("f", "a\n\nb\n");
    apply(&workspace, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c");
    assert_eq!(workspace.text("f"), "a\n\nc\n");
}

#[test]
fn names_are_read_as_they_are_written() {
    let workspace = Workspace::new();
    for (name, header) in [
        ("with space", "--- a/with space\t\n+++ b/with space\t"),
        ("é\"", "--- \"a/\\303\\251\\\"\"\n+++ \"b/\\303\\251\\\"\""),
        ("timed", "--- timed.orig\t2024-01-01 00:00:00.000 +0000\n+++ timed\t2024-01-01 00:00:01.000 +0000"),
        ("a/plain", "--- a/plain\n+++ a/plain"),
        ("d/f", "diff --git i/d/f w/d/f\n--- i/d/f\n+++ w/d/f"),
    ] {
        workspace.put(name, "x\n");
        assert_eq!(apply(&workspace, &format!("{header}\n@@ -1 +1 @@\n-x\n+y\n")), changed(&[(name, "updated")]));
        assert_eq!(workspace.text(name), "y\n");
    }
    let never = "1970-01-01 00:00:00.000000000 +0000";
    apply(&workspace, &format!("--- a/born\t{never}\n+++ b/born\t2024-01-01 00:00:01\n@@ -0,0 +1 @@\n+x\n"));
    assert_eq!(workspace.text("born"), "x\n");
    apply(&workspace, &format!("--- a/born\t2024-01-01 00:00:01\n+++ b/born\t{never}\n@@ -1 +0,0 @@\n-x\n"));
    assert!(!workspace.path("born").exists());
}

#[test]
fn links_are_followed_and_never_moved() {
    let workspace = Workspace::new();
    workspace.put("real", "x\n");
    workspace.link("link", "real");
    apply(&workspace, "--- a/link\n+++ b/link\n@@ -1 +1 @@\n-x\n+y\n");
    assert_eq!(workspace.text("real"), "y\n");
    refuse(&workspace, "--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n", "not_a_file");
    refuse(&workspace, "diff --git a/link b/other\nrename from link\nrename to other\n", "not_a_file");
    assert!(workspace.path("link").is_symlink());
}

#[test]
fn files_may_change_places_and_be_patched_twice() {
    let workspace = Workspace::new();
    workspace.put("a", "A\n");
    workspace.put("b", "B\n");
    let moved = |from: &str, to: &str| format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n");
    apply(&workspace, &(moved("a", "b") + &moved("b", "a")));
    assert_eq!((workspace.text("a").as_str(), workspace.text("b").as_str()), ("B\n", "A\n"));
    let step = |from: &str, to: &str| format!("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-{from}\n+{to}\n");
    apply(&workspace, &(step("B", "C") + &step("C", "D")));
    assert_eq!(workspace.text("a"), "D\n");
    let copy = "diff --git a/a b/c\ncopy from a\ncopy to c\n--- a/a\n+++ b/c\n@@ -1 +1 @@\n-D\n+E\n";
    apply(&workspace, copy);
    assert_eq!((workspace.text("a").as_str(), workspace.text("c").as_str()), ("D\n", "E\n"));
}

#[test]
fn what_was_applied_is_recognised() {
    let workspace = Workspace::new();
    workspace.put("f", LINES);
    let patch = "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n two\n-three\n+THREE\n four\n";
    apply(&workspace, patch);
    assert!(refuse(&workspace, patch, "no_match").hint.contains("applied before"));
}

#[test]
fn what_is_no_patch_is_refused_before_anything_runs() {
    let workspace = Workspace::new();
    workspace.put("f", "x\n");
    let cases = [
        ("", "no file in the patch", "unified diff"),
        ("hello\n", "no file in the patch", "unified diff"),
        ("*** Begin Patch\n*** Update File: f\n", "no unified diff", "unified diff"),
        ("@@ -1 +1 @@\n-x\n+y\n", "of no file", "--- a/PATH"),
        ("--- a/f\n+++ b/f\n", "nothing is changed", "leave the file out"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n", "both names", "name the file"),
        ("--- a/f\n+++ b/f\n@@ bad @@\n-x\n+y\n", "line 3 of the patch", "@@ -LINE,COUNT"),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-x\n+y\n", "says other counts", "1 old lines and 1 new"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n+z\n", "says other counts", "1 old lines and 2 new"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\nx\n+y\n", "says other counts", "begins with a space"),
        ("--- a/f\n+++ b/f\n@@ -99999999999999999999 +1 @@\n-x\n+y\n", "says no lines", "@@ -LINE"),
        ("--- a/f\n+++ b/f\n@@ -0,0 +0,0 @@\n", "says no lines", "@@ -LINE"),
        ("--- \"a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", "quoted name", "git quotes"),
        ("diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 5\n", "binary file", "ExecCommand"),
        ("diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n", "binary file", "ExecCommand"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+f\n", "a link", "ln -s"),
        ("diff --git a/s b/s\nnew file mode 160000\n", "a submodule", "git"),
        ("diff --git a/one b/other\nold mode 100644\nnew mode 100755\n", "which file", "--- a/PATH"),
    ];
    for (patch, says, hints) in cases {
        let refusal = refuse(&workspace, patch, "invalid_input");
        assert!(refusal.message.contains(says) && refusal.hint.contains(hints), "{patch:?}: {refusal:?}");
    }
    let large = "x".repeat(9 << 20);
    assert!(refuse(&workspace, &large, "invalid_input").hint.contains("several parts"));
    let many = (0..1_001).map(|n| format!("--- /dev/null\n+++ b/n{n}\n@@ -0,0 +1 @@\n+x\n")).collect::<String>();
    assert!(refuse(&workspace, &many, "invalid_input").message.contains("1000 files"));
    assert_eq!(workspace.list("."), ["f"]);
}

/// Lines that are all alike and a hunk that fits almost everywhere: it gives up after a bounded search.
#[test]
fn a_search_that_leads_nowhere_ends() {
    let workspace = Workspace::new();
    workspace.put("f", "x\n".repeat(200_000));
    let old = "-x\n".repeat(50_000);
    let patch = format!("--- a/f\n+++ b/f\n@@ -1,50001 +0,0 @@\n{old}-y\n");
    refuse(&workspace, &patch, "no_match");
}

/// Those with setuid and setgid among them.
#[test]
fn modes_that_git_does_not_know_are_refused() {
    let workspace = Workspace::new();
    for mode in ["104755", "102755", "106755", "101777"] {
        let patch = format!("diff --git a/x b/x\nnew file mode {mode}\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n");
        refuse(&workspace, &patch, "invalid_input");
        assert!(!workspace.path("x").exists());
    }
}
