//! Glob: which files are found, and which are left out.

use abide_effects::limits;
use serde_json::{Value, json};

use crate::files_stage::Workspace;

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    for name in [
        "README.md",
        "src/main.rs",
        "src/deep/lib.rs",
        "src/deep/note.txt",
        "target/debug/out.rs",
        "target/keep.me",
        ".github/ci.yml",
        ".env",
        ".git/config",
        ".git/info/exclude",
        "sub/.git/HEAD",
        "sub/x.rs",
        "logs/a.log",
        "logs/important.log",
        "with [brackets]/x y.rs",
    ] {
        workspace.put(name, "");
    }
    workspace.put(".gitignore", "target/\n*.log\n!important.log\n");
    workspace.put(".git/info/exclude", "note.txt\n");
    workspace
}

fn glob(workspace: &Workspace, input: Value) -> Vec<String> {
    let result = workspace.does("Glob", input);
    assert_eq!(result["truncated"], false);
    result["matches"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

#[test]
fn patterns_find_files() {
    let workspace = workspace();
    let all =
        ["README.md", "logs/important.log", "src/deep/lib.rs", "src/main.rs", "sub/x.rs", "with [brackets]/x y.rs"];
    let cases: &[(Value, &[&str])] = &[
        (json!({ "pattern": "**/*" }), &all),
        (json!({ "pattern": "**" }), &all),
        (json!({ "pattern": "*" }), &["README.md"]),
        (json!({ "pattern": "*.rs" }), &[]),
        (json!({ "pattern": "src/**/*.rs" }), &["src/deep/lib.rs", "src/main.rs"]),
        (json!({ "pattern": "./src/*.rs" }), &["src/main.rs"]),
        (json!({ "pattern": "src/main.rs" }), &["src/main.rs"]),
        (json!({ "pattern": "*.rs", "path": "src" }), &["src/main.rs"]),
        (json!({ "pattern": "**/*.rs", "path": "src/" }), &["src/deep/lib.rs", "src/main.rs"]),
        (json!({ "pattern": "**/*.rs", "path": "src/../sub" }), &["src/../sub/x.rs"]),
        (json!({ "pattern": "{src,sub}/*.rs" }), &["src/main.rs", "sub/x.rs"]),
        (json!({ "pattern": "{src/deep,sub}/*.rs" }), &["src/deep/lib.rs", "sub/x.rs"]),
        (json!({ "pattern": "with \\[brackets\\]/*" }), &["with [brackets]/x y.rs"]),
        (json!({ "pattern": "[rR]EADME.??" }), &["README.md"]),
        // Hidden files, when they are named; what is ignored, when its folder is.
        (json!({ "pattern": ".*" }), &[".env", ".gitignore"]),
        (json!({ "pattern": "**/.env" }), &[".env"]),
        (json!({ "pattern": ".github/*" }), &[".github/ci.yml"]),
        (json!({ "pattern": "*", "path": ".github" }), &[".github/ci.yml"]),
        (json!({ "pattern": "target/*" }), &["target/keep.me"]),
        (json!({ "pattern": "**/*.rs", "path": "target" }), &["target/debug/out.rs"]),
        (json!({ "pattern": "**/*.log" }), &["logs/important.log"]),
        (json!({ "pattern": "**/note.txt" }), &[]),
        (json!({ "pattern": "none/**" }), &[]),
        (json!({ "pattern": "README.md/**" }), &[]),
        (json!({ "pattern": "**/.git/**" }), &[]),
    ];
    for (input, paths) in cases {
        assert_eq!(glob(&workspace, input.clone()), *paths, "{input}");
    }
    for input in [json!({ "pattern": ".git/*" }), json!({ "pattern": "*", "path": "sub/.git" })] {
        workspace.refuses("Glob", input, "not_searched");
    }
    assert!(workspace.does("Glob", json!({ "pattern": "*.rs" }))["note"].as_str().unwrap().contains("**/*.rs"));
    let note = workspace.does("Glob", json!({ "pattern": "**/keep.me" }))["note"].clone();
    assert!(note.as_str().unwrap().contains(".gitignore"), "{note}");
    workspace.refuses("Glob", json!({ "pattern": "*", "path": "nowhere" }), "not_found");
    workspace.refuses("Glob", json!({ "pattern": "*", "path": "README.md" }), "not_a_folder");
}

#[test]
fn rules_of_deeper_folders_win() {
    let workspace = Workspace::new();
    workspace.put(".gitignore", "*.gen\n/top\n");
    workspace.put("a/.gitignore", "!keep.gen\nlocal\n");
    workspace.put("a/b/.ignore", "keep.gen\n");
    for name in ["x.gen", "top", "a/top", "a/keep.gen", "a/x.gen", "a/local/f", "a/b/keep.gen", "local"] {
        workspace.put(name, "");
    }
    let all = ["a/keep.gen", "a/top", "local"];
    assert_eq!(glob(&workspace, json!({ "pattern": "**" })), all);
    // The same, whichever folder it begins in.
    assert_eq!(glob(&workspace, json!({ "pattern": "a/**" })), all[..2]);
    assert_eq!(glob(&workspace, json!({ "pattern": "**", "path": "a/b" })), [""; 0]);
}

#[test]
fn what_is_found_is_bounded_and_says_so() {
    let workspace = Workspace::new();
    let most = limits::GLOB_MATCHES;
    for n in 0..most {
        workspace.put(&format!("d/{n:04}"), "");
    }
    workspace.put("d/.abide-write-1-2.tmp", "");
    assert_eq!(glob(&workspace, json!({ "pattern": "d/{*,.*}" })).len(), most);
    workspace.put("d/last", "");
    let result = workspace.does("Glob", json!({ "pattern": "**/*" }));
    assert_eq!((result["matches"].as_array().unwrap().len(), &result["truncated"]), (most, &json!(true)));
    assert_eq!(result["matches"][0], "d/0000");
    // Deeper than anybody builds: cut, and said so.
    let mut deep = workspace.path("deep");
    for _ in 0..limits::WALK_DEPTH {
        deep.push("x");
    }
    std::fs::create_dir_all(&deep).unwrap();
    let result = workspace.does("Glob", json!({ "pattern": "deep/**" }));
    assert_eq!((&result["matches"], &result["truncated"]), (&json!([]), &json!(true)));
    assert!(result["note"].as_str().unwrap().contains("`path`"));
}

#[test]
fn patterns_that_are_none_are_refused() {
    let workspace = Workspace::new();
    let long = "{a,b}".repeat(300);
    for pattern in ["", "[", "{a", "a/../b", "..", "/etc/*", "\\", &long] {
        let refusal = workspace.refuses("Glob", json!({ "pattern": pattern }), "invalid_input");
        assert!(refusal.message.starts_with("`pattern` of Glob is"), "{refusal:?}");
        workspace.refuses("Grep", json!({ "pattern": "x", "glob": pattern }), "invalid_input");
    }
    // As large as they may be, they are matched, not feared.
    let wide = "{a,b}*".repeat(160);
    workspace.does("Glob", json!({ "pattern": wide }));
}
