//! Where agents may work: below the roots, beyond them by an admin, in folders of the system by an admin who says so.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::hands::git;
use crate::served::Served;
use crate::wire::{Address, Wire};

fn served() -> (Served, Address) {
    let mut served = Served::down("");
    let below = served.folder("below");
    served.place.write("home/config.toml", format!("log = \"error\"\nworkspace_roots = [\"{}\"]\n", below.display()));
    served.up();
    let made = served.post("/v1/tokens", &json!({ "name": "ci", "scope": "operator" }));
    let address = Address { token: made["token"].as_str().unwrap().to_owned(), ..served.address() };
    (served, address)
}

#[test]
fn an_operators_token_stays_below_the_roots() {
    let (mut served, operator) = served();
    let (below, beside) = (served.folder("below"), served.folder("beside"));
    std::fs::create_dir(below.join("project")).unwrap();
    symlink(&beside, below.join("link")).unwrap();
    let ask = |method: &str, path: &str, body: Value| {
        let answer = Wire::new(operator.clone()).send(method, path, &[], Some(&body)).unwrap();
        (answer.status, answer.body)
    };
    let project = below.join("project");
    assert_eq!(ask("POST", "/v1/agents", json!({ "id": "a", "workspace": project, "start": false })).0, 201);
    for folder in [beside.clone(), below.join("link"), "/etc".into(), "/usr/local/bin".into(), "/nowhere/at/all".into()]
    {
        for (method, path, body) in [
            ("POST", "/v1/agents", json!({ "id": "b", "workspace": folder, "start": false })),
            ("PATCH", "/v1/agents/a", json!({ "workspace": folder })),
            ("POST", "/v1/agents/a/workspaces", json!({ "path": folder })),
            ("POST", "/v1/agents/a/workspaces", json!({ "path": folder, "mode": "worktree" })),
        ] {
            let (status, problem) = ask(method, path, body);
            assert_eq!((status, &problem["code"]), (403, &json!("outside_roots")), "{method} {path}: {problem}");
            assert!(problem["hint"].as_str().unwrap().contains("workspace_roots"), "{problem}");
        }
    }
    let (status, problem) = ask("PATCH", "/v1/agents/a", json!({ "workspace": "/etc", "force": true }));
    assert_eq!((status, &problem["code"]), (403, &json!("scope")));
    assert_eq!(served.call("GET", "/v1/agents/b", &[], None).status, 404, "nothing was made");
    let configured = served.facts("a", "agent.created").pop().unwrap()["config"]["workspace"].clone();
    assert_eq!(configured, json!(project));
    assert!(served.facts("a", "agent.configured").is_empty(), "nothing was changed");
    served.stop_and_verify();
}

/// The command line has the home's own token, which is an admin's: folders anywhere work as before.
#[test]
fn the_command_line_goes_beyond_the_roots_and_into_the_system_only_by_force() {
    let (mut served, _) = served();
    let beside = served.folder("beside");
    served.place.says(&["agent", "create", "a", "--no-start", "--workspace", beside.to_str().unwrap()]);
    for args in [
        &["agent", "create", "b", "--no-start", "--workspace", "/etc"][..],
        &["agent", "set", "a", "--workspace", "/usr/local/bin"],
        &["workspace", "attach", "--agent", "a", "/etc"],
    ] {
        let error = served.place.refused(6, args);
        assert!(error.contains("is a folder of the system"), "{error}");
    }
    // The surroundings of the user's home folder have keys in them; force does not change that. The daemon of these tests
    // has no HOME: it asks the system for its user's.
    let script = "getent passwd $(id -u) | cut -d: -f6";
    let output = std::process::Command::new("/bin/sh").args(["-c", script]).output().unwrap();
    let person = String::from_utf8(output.stdout).unwrap();
    let person = person.trim();
    for force in [&[][..], &["--force"]] {
        let args = [&["workspace", "attach", "--agent", "a", person], force].concat();
        let error = served.place.refused(6, &args);
        assert!(error.contains("whole home folder"), "{error}");
    }
    served.stop_and_verify();
}

/// Workspaces that were recorded before there were roots, or by an admin, stay.
#[test]
fn agents_keep_the_folders_they_have() {
    let (mut served, operator) = served();
    let beside = served.folder("beside");
    let rounds = json!([crate::hands::calls(crate::hands::exec("echo ran > ran", 60_000)), { "text": "Done." }]);
    served.create_in("a", &beside, &rounds);
    let sent = Wire::new(operator).send("POST", "/v1/agents/a/messages", &[], Some(&json!({ "text": "go" }))).unwrap();
    served.until_told("a", sent.body["message_id"].as_str().unwrap());
    assert!(beside.join("ran").exists());
    served.stop_and_verify();
}

/// A repository with one commit that holds a file of this name.
fn repository(folder: &Path, file: &str) {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q"]);
    std::fs::write(folder.join(file), file).unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-q", "-m", file]);
}

/// A repository shows more than the folder that is named: the working tree around it, its records, and the object stores
/// that it takes objects from. Who is bound to the roots gets no agent into a repository that leads beyond them.
#[test]
fn an_operators_token_gets_no_repository_that_leads_beyond_the_roots() {
    let (mut served, operator) = served();
    let (below, beside) = (served.folder("below"), served.folder("beside"));
    let secret = beside.join("secret");
    repository(&secret, "secret.txt");
    let objects = secret.join(".git/objects");
    let lists = |repo: &Path, store: &str| {
        std::fs::write(repo.join(".git/objects/info/alternates"), format!("{store}\n")).unwrap();
    };
    let clone = |name: &str| {
        let folder = below.join(name);
        repository(&folder, name);
        folder
    };
    let (plain, relative, far) = (clone("plain"), clone("relative"), clone("far"));
    lists(&plain, objects.to_str().unwrap());
    lists(&relative, "../../../../beside/secret/.git/objects");
    // Through a store that lies below the root itself.
    lists(&far, plain.join(".git/objects").to_str().unwrap());
    let linked_store = clone("linked-store");
    std::fs::rename(linked_store.join(".git/objects"), beside.join("objects")).unwrap();
    symlink(beside.join("objects"), linked_store.join(".git/objects")).unwrap();
    // A store that is not there yet, by a way that leads outside once somebody makes the folder.
    let to_come = clone("to-come");
    lists(&to_come, &format!("{}/none/../../beside/secret/.git/objects", below.display()));
    let worktree = below.join("worktree");
    git(&secret, &["worktree", "add", "-q", worktree.to_str().unwrap()]);
    let module = below.join("module");
    git(
        &below,
        &[
            "clone",
            "-q",
            "--separate-git-dir",
            beside.join("records").to_str().unwrap(),
            secret.to_str().unwrap(),
            "module",
        ],
    );
    git(&module, &["config", "core.worktree", module.to_str().unwrap()]);
    let ask = |address: &Address, path: &str, body: &Value| {
        let answer = Wire::new(address.clone()).send("POST", path, &[], Some(body)).unwrap();
        (answer.status, answer.body)
    };
    served.post("/v1/agents", &json!({ "id": "a", "start": false }));
    let leads_to = [
        (&plain, objects.clone()),
        (&relative, objects.clone()),
        (&far, objects.clone()),
        (&linked_store, beside.join("objects")),
        (&to_come, below.join("none/../../beside/secret/.git/objects")),
        (&worktree, secret.join(".git")),
        (&module, beside.join("records")),
    ];
    for (folder, place) in &leads_to {
        for (path, body) in [
            ("/v1/agents", json!({ "id": "b", "workspace": folder, "start": false })),
            ("/v1/agents/a/workspaces", json!({ "path": folder })),
            ("/v1/agents/a/workspaces", json!({ "path": folder, "mode": "worktree" })),
        ] {
            let (status, problem) = ask(&operator, path, &body);
            assert_eq!((status, &problem["code"]), (403, &json!("outside_roots")), "{body}: {problem}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(place.to_str().unwrap()), "{body}: {problem}");
            assert!(problem["hint"].as_str().unwrap().contains("workspace_roots"), "{problem}");
        }
    }
    let recorded = |store: &Path| {
        let mirrors = std::fs::read_dir(served.place.home().join("mirrors"));
        let origins = mirrors.into_iter().flatten().flatten().map(|entry| entry.path().join("abide.json"));
        let texts: Vec<String> = origins.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
        texts.iter().any(|text| text.contains(store.to_str().unwrap()))
    };
    assert!(!recorded(&objects), "nothing that was refused is recorded for models to use");
    // The whole repository lies beyond, the daemon's home in it; the folder that is named does not.
    let outer = served.place.path("").canonicalize().unwrap();
    let inside = below.join("inside");
    std::fs::create_dir(&inside).unwrap();
    git(&outer, &["init", "-q"]);
    let (status, problem) = ask(&operator, "/v1/agents/a/workspaces", &json!({ "path": inside }));
    assert_eq!((status, &problem["code"]), (403, &json!("outside_roots")), "{problem}");
    served.post("/v1/agents/a/workspaces", &json!({ "path": inside }));
    // An admin may, and sees in the note which stores take part. From then on a model may, too.
    for mode in ["direct", "worktree"] {
        let attached = served.post("/v1/agents/a/workspaces", &json!({ "path": plain, "mode": mode }));
        assert!(attached["note"].as_str().unwrap().contains(objects.to_str().unwrap()), "{attached}");
    }
    assert!(recorded(&objects));
    served.stop_and_verify();
}

/// Stores that lie below a root, too, are fine.
#[test]
fn an_operators_token_may_use_repositories_that_share_objects_below_the_roots() {
    let (mut served, operator) = served();
    let below = served.folder("below");
    let (first, second) = (below.join("first"), below.join("second"));
    repository(&first, "first");
    git(&below, &["clone", "-q", "--shared", first.to_str().unwrap(), "second"]);
    served.post("/v1/agents", &json!({ "id": "a", "start": false }));
    for mode in ["direct", "worktree"] {
        let body = json!({ "path": second, "mode": mode });
        let answer = Wire::new(operator.clone()).send("POST", "/v1/agents/a/workspaces", &[], Some(&body)).unwrap();
        assert_eq!(answer.status, 201, "{}", answer.body);
        let note = answer.body["note"].as_str().unwrap();
        assert!(note.contains(first.join(".git/objects").to_str().unwrap()), "{note}");
    }
    served.stop_and_verify();
}
