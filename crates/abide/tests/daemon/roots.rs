//! Where agents may work: below the roots, beyond them by an admin, in folders of the system by an admin who says so.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

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
    // What lies around the home folder of the user has keys in it; force does not change that.
    // The daemon of these tests has no HOME: it asks the system for its user's.
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

/// What was recorded before there were roots, or by an admin, goes on.
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
