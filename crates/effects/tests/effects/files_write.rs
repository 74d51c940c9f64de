//! WriteFile: whole files, their modes, links, and what a crash left behind.

use std::os::unix::fs::MetadataExt;

use abide_effects::limits;
use serde_json::json;

use crate::files_stage::Workspace;

fn changed(path: &str, action: &str) -> serde_json::Value {
    json!({ "changed": [{ "path": path, "action": action }] })
}

#[test]
fn a_file_is_created_updated_or_left_as_it_is() {
    let workspace = Workspace::new();
    let write = |content: &str| workspace.does("WriteFile", json!({ "path": "a/b//c.txt", "content": content }));
    assert_eq!(write("one"), changed("a/b/c.txt", "created"));
    assert_eq!((workspace.text("a/b/c.txt"), workspace.mode("a/b/c.txt")), ("one".to_owned(), 0o644));
    assert_eq!(write("two"), changed("a/b/c.txt", "updated"));
    let inode = std::fs::metadata(workspace.path("a/b/c.txt")).unwrap().ino();
    assert_eq!(write("two"), changed("a/b/c.txt", "unchanged"));
    assert_eq!(std::fs::metadata(workspace.path("a/b/c.txt")).unwrap().ino(), inode);
    assert_eq!(write(""), changed("a/b/c.txt", "updated"));
    assert_eq!(workspace.list("a/b"), ["c.txt"]);
}

#[test]
fn the_mode_stays() {
    let workspace = Workspace::new();
    for mode in [0o755, 0o600, 0o640, 0o444] {
        workspace.put("run.sh", "#!/bin/sh\n");
        workspace.set_mode("run.sh", mode);
        workspace.does("WriteFile", json!({ "path": "run.sh", "content": "#!/bin/sh\necho\n" }));
        assert_eq!(workspace.mode("run.sh"), mode);
        std::fs::remove_file(workspace.path("run.sh")).unwrap();
    }
}

/// The daemon may keep these bits when it writes, unlike a command: with other content it would be another program.
#[test]
fn a_file_that_is_written_runs_as_no_other_user() {
    let workspace = Workspace::new();
    let calls = [
        ("WriteFile", json!({ "path": "run", "content": "new" })),
        ("EditFile", json!({ "path": "run", "old": "old", "new": "new" })),
        ("ApplyPatch", json!({ "patch": "--- a/run\n+++ b/run\n@@ -1 +1 @@\n-old\n+new\n" })),
    ];
    for (tool, input) in calls {
        workspace.put("run", "old\n");
        workspace.set_mode("run", 0o6755);
        assert_eq!(workspace.mode("run"), 0o6755);
        workspace.does(tool, input);
        assert_eq!(workspace.mode("run"), 0o755, "{tool}");
    }
}

#[test]
fn a_link_inside_is_followed_and_stays_a_link() {
    let workspace = Workspace::new();
    workspace.put("real/file", "old");
    workspace.put("real/deep/x", "");
    workspace.link("to_file", "real/file");
    workspace.link("to_folder", "real/deep");
    workspace.link("to_link", "to_file");
    workspace.link("to_new", "real/made/new");
    for path in ["to_file", "to_link", "to_folder/../file"] {
        workspace.does("WriteFile", json!({ "path": path, "content": path }));
        assert_eq!(workspace.text("real/file"), path);
    }
    workspace.does("WriteFile", json!({ "path": "to_new", "content": "made" }));
    assert_eq!(workspace.text("real/made/new"), "made");
    assert!(workspace.path("to_file").is_symlink() && workspace.path("to_link").is_symlink());
    workspace.link("round", "round");
    workspace.refuses("WriteFile", json!({ "path": "round", "content": "" }), "too_many_links");
}

#[test]
fn what_a_crash_left_behind_goes_with_the_next_write_there() {
    let workspace = Workspace::new();
    workspace.put("d/.abide-write-17-0.tmp", "half");
    workspace.put("d/.abide-write-notes.tmp", "somebody's own");
    workspace.put("d/.abide-write-18-0.tmp", "being written");
    let live = std::fs::File::open(workspace.path("d/.abide-write-18-0.tmp")).unwrap();
    live.lock().unwrap();
    workspace.does("WriteFile", json!({ "path": "d/a", "content": "x" }));
    assert_eq!(workspace.list("d"), [".abide-write-18-0.tmp", ".abide-write-notes.tmp", "a"]);
    drop(live);
    workspace.does("EditFile", json!({ "path": "d/a", "old": "x", "new": "y" }));
    assert_eq!(workspace.list("d"), [".abide-write-notes.tmp", "a"]);
}

#[test]
fn writers_at_the_same_time_leave_one_whole_file_and_nothing_else() {
    let workspace = Workspace::new();
    let contents: Vec<String> = (0..4).map(|n| n.to_string().repeat(50_000)).collect();
    std::thread::scope(|scope| {
        let workspace = &workspace;
        for content in &contents {
            scope.spawn(move || {
                for _ in 0..20 {
                    workspace.does("WriteFile", json!({ "path": "a", "content": content }));
                }
            });
        }
    });
    assert!(contents.contains(&workspace.text("a")));
    assert_eq!(workspace.list("."), ["a"]);
}

#[test]
fn too_much_is_refused_and_something_too_large_may_be_replaced() {
    let workspace = Workspace::new();
    let most = usize::try_from(limits::FILE_BYTES).unwrap();
    let refusal =
        workspace.refuses("WriteFile", json!({ "path": "a", "content": "x".repeat(most + 1) }), "invalid_input");
    assert!(refusal.message.contains("8388609 bytes") && refusal.message.len() < 200);
    workspace.does("WriteFile", json!({ "path": "a", "content": "x".repeat(most) }));
    workspace.put("large", vec![b'x'; most + 1]);
    workspace.refuses("EditFile", json!({ "path": "large", "old": "x", "new": "y" }), "too_large");
    let result = workspace.does("WriteFile", json!({ "path": "large", "content": "" }));
    assert_eq!((result, workspace.text("large")), (changed("large", "updated"), String::new()));
}

#[test]
fn folders_made_for_a_file_that_is_not_written_go_again() {
    let workspace = Workspace::new();
    workspace.put("file", "");
    workspace.refuses(
        "WriteFile",
        json!({ "path": format!("a/b/{}", "n".repeat(300)), "content": "" }),
        "invalid_input",
    );
    workspace.refuses("WriteFile", json!({ "path": "file/b", "content": "" }), "not_a_folder");
    assert_eq!(workspace.list("."), ["file"]);
}

#[test]
fn nonsense_is_refused_before_anything_runs() {
    let workspace = Workspace::new();
    for (tool, input) in [
        ("WriteFile", json!({ "path": "", "content": "" })),
        ("WriteFile", json!({ "path": "a/", "content": "" })),
        ("WriteFile", json!({ "path": "a\0b", "content": "" })),
        ("WriteFile", json!({ "path": "a".repeat(5_000), "content": "" })),
        ("WriteFile", json!({ "path": "a", "content": 5 })),
        ("WriteFile", json!({ "path": "a", "content": "", "mode": "0755" })),
        ("ReadFile", json!({ "path": "a", "offset": -1 })),
        ("ReadFile", json!({ "path": "a", "limit": 0 })),
        ("ReadFile", json!({ "path": "a", "limit": 20_001 })),
        ("EditFile", json!({ "path": "a", "old": "", "new": "x" })),
        ("EditFile", json!({ "path": "a", "old": "x", "new": "x" })),
        ("EditFile", json!({ "path": "a", "old": "x", "new": "y", "all": "yes" })),
    ] {
        let refusal = workspace.refuses(tool, input, "invalid_input");
        assert!(refusal.message.len() < 300, "{refusal:?}");
    }
    assert!(workspace.list(".").is_empty());
}
