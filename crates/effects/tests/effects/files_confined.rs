//! No path leads out of the workspace: not by name, not by links, and not while somebody swaps them.

use std::sync::atomic::{AtomicBool, Ordering};

use abide_effects::files::{self, Root};
use serde_json::{Value, json};

use crate::calls::file_call;
use crate::files_stage::Workspace;
use abide_kernel::refusal::ErrorCode;

/// Every way to name one path.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("ReadFile", json!({ "path": path })),
        ("WriteFile", json!({ "path": path, "content": "changed" })),
        ("EditFile", json!({ "path": path, "old": "secret", "new": "changed" })),
        ("ApplyPatch", json!({ "patch": format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-secret\n+changed\n") })),
        ("ApplyPatch", json!({ "patch": format!("--- {path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-secret\n") })),
    ]
}

#[test]
fn what_leads_out_is_refused_by_every_tool() {
    let workspace = Workspace::new();
    let secret = workspace.outside("secret");
    std::fs::write(&secret, "secret").unwrap();
    std::fs::create_dir(workspace.path("d")).unwrap();
    workspace.link("up", "..");
    workspace.link("file", "../secret");
    workspace.link("d/deep", "../../secret");
    workspace.link("absolute", &secret);
    workspace.link("chain", "file");
    workspace.link("made", "../made");
    workspace.link("proc", "/proc/self/root");
    let absolute = secret.to_str().unwrap().to_owned();
    for path in [
        "../secret",
        "d/../../secret",
        "up/secret",
        "up/w/up/secret",
        "file",
        "d/deep",
        "absolute",
        "chain",
        &absolute,
        "/etc/passwd",
        "..",
        "up",
        "proc/etc/passwd",
        "no/../../secret",
    ] {
        for (tool, input) in calls(path) {
            let refusal = workspace.call(tool, &input).unwrap_err();
            // Where a folder on the way is missing, that may be what is said.
            let missing = path.starts_with("no/") && refusal.code == ErrorCode::NotFound;
            assert!(refusal.code == ErrorCode::OutsideWorkspace || missing, "{tool} {path}: {refusal:?}");
            assert!(refusal.message.contains(path) && refusal.hint.contains("relative to the workspace") || missing);
        }
    }
    for path in ["..", "up", "proc/etc", "d/../..", "/etc", "up/w/up"] {
        workspace.refuses("Glob", json!({ "pattern": "**/*", "path": path }), "outside_workspace");
        workspace.refuses("Grep", json!({ "pattern": ".", "path": path }), "outside_workspace");
    }
    workspace.refuses("Glob", json!({ "pattern": "up/*" }), "outside_workspace");
    workspace.refuses("Grep", json!({ "pattern": ".", "path": "file" }), "outside_workspace");
    assert_eq!(workspace.does("Grep", json!({ "pattern": "secret" }))["matches"], json!([]));
    let listed = workspace.does("Glob", json!({ "pattern": "**/*" }));
    assert_eq!(listed["matches"], json!(["absolute", "chain", "d/deep", "file", "made", "proc", "up"]));
    workspace.refuses("WriteFile", json!({ "path": "made", "content": "x" }), "outside_workspace");
    let patch = "diff --git a/d/f b/d/f\nrename from d/f\nrename to up/f\n";
    workspace.put("d/f", "");
    workspace.refuses("ApplyPatch", json!({ "patch": patch }), "outside_workspace");
    workspace.refuses("WriteFile", json!({ "path": "up/new/file", "content": "x" }), "outside_workspace");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    let mut beside: Vec<_> =
        std::fs::read_dir(workspace.outside("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["secret", "w"]);
}

#[test]
fn what_stays_inside_works() {
    let workspace = Workspace::new();
    workspace.put("a/b/file", "inside");
    workspace.link("a/up", "..");
    workspace.link("a/self", "b/file");
    let absolute = workspace.path("a/b/file").to_str().unwrap().to_owned();
    for path in ["a/b/file", "a/../a/b/file", "a/up/a/b/file", "a/self", "./a//b/./file", &absolute] {
        assert_eq!(workspace.does("ReadFile", json!({ "path": path }))["content"], "inside", "{path}");
        let result = workspace.does("WriteFile", json!({ "path": path, "content": "inside" }));
        assert_eq!(result["changed"][0]["action"], "unchanged", "{path}");
    }
}

/// A folder becomes a link to the outside and a folder again, all the time. Nothing outside is read or written, and
/// whatever comes of a call is what could come of it at one moment or another.
#[test]
fn a_folder_that_is_swapped_for_a_link_leads_nowhere() {
    let workspace = Workspace::new();
    workspace.put("real/file", "inside");
    std::fs::create_dir(workspace.outside("out")).unwrap();
    std::fs::write(workspace.outside("out/file"), "secret").unwrap();
    std::fs::write(workspace.outside("out/beside"), "secret").unwrap();
    workspace.link("link", "../out");
    std::fs::rename(workspace.path("real"), workspace.path("d")).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let exchange = || {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let (a, b) = (workspace.path("d"), workspace.path("link"));
                rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, flags).unwrap();
            };
            while !over.load(Ordering::Relaxed) {
                exchange();
            }
        });
        let mut seen = (0, 0);
        for round in 0..1_500 {
            let root = if round % 2 == 0 { &workspace.root } else { &Root::open(&workspace.path(".")).unwrap() };
            let (tool, input) = match round % 5 {
                0 => ("ReadFile", json!({ "path": "d/file" })),
                1 => ("WriteFile", json!({ "path": "d/made/file", "content": "inside" })),
                2 => ("Grep", json!({ "pattern": "secret" })),
                3 => ("Glob", json!({ "pattern": "d/**/beside" })),
                _ => ("WriteFile", json!({ "path": "d/file", "content": format!("inside {round}") })),
            };
            match files::run(&file_call(tool, &input).unwrap(), root) {
                Ok(result) => {
                    seen.0 += 1;
                    let said = result.to_string();
                    assert!(!said.contains("secret") && !said.contains("beside"), "{result}");
                }
                Err(refusal) => {
                    seen.1 += 1;
                    let known = ["outside_workspace", "not_found", "busy", "not_a_folder"];
                    assert!(known.contains(&refusal.code.word()), "{refusal:?}");
                }
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(seen.0 > 0, "{seen:?}");
    });
    assert_eq!(std::fs::read_to_string(workspace.outside("out/file")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(workspace.outside("out")).unwrap().count(), 2);
}

#[test]
fn what_is_closed_is_refused_by_every_tool_however_it_is_named() {
    let workspace = Workspace::new();
    workspace.put(".keys/id", "secret");
    workspace.put(".file", "secret");
    workspace.put("d/plain", "secret");
    workspace.link("folder", ".keys");
    workspace.link("id", "d/../.keys/id");
    workspace.link("file", ".file");
    workspace.link("new", ".keys/new");
    let closed = [workspace.path(".keys"), workspace.path(".file"), workspace.path("not there")];
    let root = Root::open(&workspace.path("")).unwrap().without(closed);
    let run = |tool: &str, input: &Value| files::run(&file_call(tool, input).unwrap(), &root);
    let absolute = workspace.path(".keys/id").canonicalize().unwrap();
    for path in [".keys/id", "d/../.keys/id", "folder/id", "id", ".file", "file", absolute.to_str().unwrap()] {
        for (tool, input) in calls(path) {
            let refused = run(tool, &input).unwrap_err();
            assert_eq!(refused.code, ErrorCode::PermissionDenied, "{tool} {path}");
        }
    }
    for path in [".keys/new", "new", "folder/deep/new", "not there", "not there/new"] {
        assert!(run("WriteFile", &json!({ "path": path, "content": "x" })).is_err(), "{path}");
    }
    for path in [".keys", "folder", ".file"] {
        assert!(run("Grep", &json!({ "pattern": "secret", "path": path })).is_err(), "{path}");
    }
    let found = run("Grep", &json!({ "pattern": "secret", "glob": "**/.*" })).unwrap();
    assert!(!found.to_string().contains("secret"), "{found}");
    let found = run("Glob", &json!({ "pattern": ".*/**" })).unwrap();
    assert!(!found.to_string().contains("id"), "{found}");
    assert_eq!((workspace.text(".keys/id"), workspace.text(".file")), ("secret".to_owned(), "secret".to_owned()));
    assert_eq!(workspace.list(".keys"), ["id"]);
    assert_eq!(run("ReadFile", &json!({ "path": "d/plain" })).unwrap()["content"], "secret");
}
