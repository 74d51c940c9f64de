//! A start that fails explains why, changes nothing, and does not disturb a daemon that runs.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::served::Served;

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

#[test]
fn a_second_daemon_on_the_same_home() {
    let mut served = Served::start();
    let notice = fs::read_to_string(served.place.home().join("daemon.json")).unwrap();
    let pid = serde_json::from_str::<Value>(&notice).unwrap()["pid"].to_string();
    let error = served.place.refused(6, &UP);
    assert!(error.contains(&pid), "{error}");
    assert_eq!(
        fs::read_to_string(served.place.home().join("daemon.json")).unwrap(),
        notice,
        "the first one's notice stays"
    );
    let message = served.send("main", "still there?");
    served.until_told("main", &message);
    // A kill holds nothing.
    served.kill_and_up();
    served.stop_and_verify();
}

#[test]
fn a_port_in_use() {
    let mut served = Served::down("");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = served.place.refused(1, &["up", "--listen", &address]);
    assert!(error.contains(&format!("can't listen on {address}")) && error.contains("in use"), "{error}");
    assert!(!served.place.home().join("daemon.json").exists());
    served.up();
    served.stop_and_verify();
}

#[test]
fn a_token_file_that_is_none() {
    let mut served = Served::down("");
    fs::create_dir(served.place.home().join("token")).unwrap();
    let error = served.place.refused(1, &UP);
    assert!(error.starts_with("can't read home/token"), "{error}");
    fs::remove_dir(served.place.home().join("token")).unwrap();
    served.place.write("home/token", "short\n");
    let error = served.place.refused(1, &UP);
    assert!(error.contains("holds no token; remove it, and a new one is made"), "{error}");
    assert!(!served.place.home().join("daemon.json").exists());
    fs::remove_file(served.place.home().join("token")).unwrap();
    served.up();
    served.stop_and_verify();
}

#[test]
fn a_home_that_can_t_be_written() {
    let served = Served::down("");
    served.place.write("file", "");
    // The superuser may write anywhere, but nobody writes below a file, or makes a folder in /proc.
    for home in ["file", "file/home", "/proc/abide"] {
        let error = served.place.refused(1, &[&["--home", home][..], &UP].concat());
        assert!(error.contains(home), "{home}: {error}");
    }
    if !rustix::process::geteuid().is_root() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(served.place.home(), fs::Permissions::from_mode(0o555)).unwrap();
        let error = served.place.refused(1, &UP);
        fs::set_permissions(served.place.home(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(error.contains("home"), "{error}");
    }
    assert!(!served.place.home().join("ledger.db").exists());
}

/// A script is refused where a person names it, not in the first turn; a repeated request gets the answer of the first one.
#[test]
fn a_script_that_is_not_there_is_refused_and_nothing_changes() {
    let served = Served::start();
    let script = served.script("worker", &json!({ "rounds": [{ "text": "Done." }] }));
    let create = json!({ "id": "worker", "model": script });
    let key = [("idempotency-key", "one")];
    assert_eq!(served.call("POST", "/v1/agents", &key, Some(&create)).status, 201);

    let missing = json!({ "model": "script//nowhere/at/all.json" });
    let change = served.call("PATCH", "/v1/agents/worker", &[], Some(&missing));
    assert_eq!((change.status, &change.body["pointer"]), (422, &json!("/model")), "{}", change.body);
    assert_eq!(
        change.body["detail"],
        "the script /nowhere/at/all.json does not exist; write it first, or name another"
    );
    assert_eq!(served.get("/v1/agents/worker")["model"]["name"], script.as_str());

    std::fs::remove_file(served.place.path("worker.json")).unwrap();
    assert_eq!(served.call("POST", "/v1/agents", &key, Some(&create)).status, 201, "it was made then");
    let other = served.call("POST", "/v1/agents", &[], Some(&json!({ "id": "other", "model": script })));
    assert_eq!(other.status, 422, "{}", other.body);
}
