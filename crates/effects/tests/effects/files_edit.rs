//! EditFile: what is replaced, and what a model is told when it is wrong about a file.

use proptest::prelude::*;
use serde_json::json;

use crate::files_stage::Workspace;

fn edit(workspace: &Workspace, old: &str, new: &str) -> serde_json::Value {
    workspace.does("EditFile", json!({ "path": "f", "old": old, "new": new }))
}

#[test]
fn a_text_is_replaced_where_it_is() {
    let workspace = Workspace::new();
    workspace.put("f", "fn a() {\n    1\n}\n");
    workspace.set_mode("f", 0o755);
    assert_eq!(edit(&workspace, "    1\n", "    2\n"), json!({ "changed": [{ "path": "f", "action": "updated" }] }));
    assert_eq!((workspace.text("f"), workspace.mode("f")), ("fn a() {\n    2\n}\n".to_owned(), 0o755));
    edit(&workspace, "fn a() {\n    2\n}\n", "");
    assert_eq!(workspace.text("f"), "");
    // Bytes that are no text stay as they are.
    workspace.put("f", b"caf\xe9 one\0\n");
    edit(&workspace, "one", "two");
    assert_eq!(workspace.get("f"), b"caf\xe9 two\0\n");
}

#[test]
fn several_are_refused_unless_all_are_meant() {
    let workspace = Workspace::new();
    workspace.put("f", "x = 1\ny = 1\nx = 1\nxx = 1 x = 1\n");
    let refusal =
        workspace.refuses("EditFile", json!({ "path": "f", "old": "x = 1", "new": "x = 2" }), "several_matches");
    assert_eq!(refusal.message, "`old` is in f 4 times, in lines 1, 3, 4, 4");
    assert!(refusal.hint.contains("`all`"));
    workspace.does("EditFile", json!({ "path": "f", "old": "x = 1", "new": "x = 2", "all": true }));
    assert_eq!(workspace.text("f"), "x = 2\ny = 1\nx = 2\nxx = 2 x = 2\n");
    workspace.put("f", "aaaaa");
    workspace.does("EditFile", json!({ "path": "f", "old": "aa", "new": "b", "all": true }));
    assert_eq!(workspace.text("f"), "bba");
}

#[test]
fn a_text_that_is_not_there_brings_the_nearest_lines() {
    let workspace = Workspace::new();
    workspace.put("f", "mod a;\n\nfn main() {\n\tlet count = 1;\n\tprint(count);\n}\n");
    let refuse =
        |old: &str| workspace.refuses("EditFile", json!({ "path": "f", "old": old, "new": "-" }), "no_match").message;
    assert_eq!(
        refuse("fn main() {\n    let count = 1;\n    print(count);"),
        "`old` is not in f. Only whitespace differs: line 4 of the file is \"\\tlet count = 1;\", and \"    let count = \
         1;\" was given. Nearest lines:\n3: fn main() {\n4: \tlet count = 1;\n5: \tprint(count);"
    );
    assert_eq!(
        refuse("fn main() {\n\tlet count = 2;\n}"),
        "`old` is not in f. Nearest lines:\n3: fn main() {\n4: \tlet count = 1;\n5: \tprint(count);"
    );
    assert_eq!(refuse("\tlet counts = 1;"), "`old` is not in f. Nearest lines:\n4: \tlet count = 1;");
    assert_eq!(refuse("Quite something else"), "`old` is not in f");
    workspace.put("f", "");
    refuse("anything");
    // A large file and a large text cost no more than a moment, and no more than a few lines.
    workspace.put("f", "some line or other\n".repeat(100_000));
    assert!(refuse(&"some line or another\n".repeat(20_000)).len() < 4_000);
    assert!(refuse(&"some line  or other\n".repeat(20_000)).len() < 4_000);
    assert!(refuse(&"x".repeat(1_000_000)).len() < 4_000);
}

#[test]
fn a_file_that_is_not_there_is_not_made() {
    let workspace = Workspace::new();
    let refusal = workspace.refuses("EditFile", json!({ "path": "a/f", "old": "a", "new": "b" }), "not_found");
    assert!(refusal.hint.contains("Glob"), "{refusal:?}");
    let refusal = workspace.refuses("EditFile", json!({ "path": "f", "old": "a", "new": "b" }), "not_found");
    assert!(refusal.hint.contains("WriteFile"), "{refusal:?}");
    assert!(workspace.list(".").is_empty());
}

#[test]
fn crlf_is_matched_by_lf_and_stays() {
    let workspace = Workspace::new();
    let cases = [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b", "x\ny", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "\nb", "\nx", "a\r\nx\r\nc\r\n"),
        ("a\nb\nc\n", "a\nb", "x\ny", "x\ny\nc\n"),
        // Mixed: what most lines have, unless only the other is there.
        ("a\r\nb\nc\nd\n", "a\nb", "x\ny", "x\r\ny\nc\nd\n"),
        ("a\r\nb\r\nc\nd\r\n", "c\nd", "x\ny", "a\r\nb\r\nx\ny\r\n"),
    ];
    for (file, old, new, after) in cases {
        workspace.put("f", file);
        edit(&workspace, old, new);
        assert_eq!(workspace.text("f"), after, "{file:?} {old:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// For files without CRLF, it is what replacing in a text is.
    #[test]
    fn all_is_what_replacing_is(file in "[ab\n]{0,30}", old in "[ab\n]{1,3}", new in "[abc\n]{0,3}") {
        prop_assume!(old != new);
        let workspace = Workspace::new();
        workspace.put("f", &file);
        let input = json!({ "path": "f", "old": old, "new": new, "all": true });
        let done = workspace.call("EditFile", &input).is_ok();
        prop_assert_eq!(done, file.contains(&old));
        prop_assert_eq!(workspace.text("f"), file.replace(&old, &new));
    }

    /// There and back again, in any bytes, with line ends of either kind.
    #[test]
    fn an_edit_can_be_taken_back(before in "[a-c\r\n]{0,12}", after in "[a-c\r\n]{0,12}", crlf in any::<bool>()) {
        let workspace = Workspace::new();
        let end = if crlf { "\r\n" } else { "\n" };
        let file = format!("{}{end}one{end}OLD{end}two{end}{}", before.replace(['\r', '\n'], end), after.replace(['\r', '\n'], end));
        workspace.put("f", &file);
        edit(&workspace, "\nOLD\n", "\nNEW\nAND MORE\n");
        prop_assert_ne!(workspace.text("f"), file.clone());
        edit(&workspace, "NEW\nAND MORE", "OLD");
        prop_assert_eq!(workspace.text("f"), file);
    }
}
