//! Commands that do not behave: each is bounded, can be stopped, is told of in its record, and costs the daemon nothing.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::served::{Served, until};

/// The resident memory of the daemon.
fn resident_bytes(served: &Served) -> u64 {
    let notice: Value =
        serde_json::from_str(&fs::read_to_string(served.place.home().join("daemon.json")).unwrap()).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", notice["pid"])).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}

fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { size_of(&path) } else { path.metadata().unwrap().len() }).sum()
}

const MB: u64 = 1 << 20;

#[test]
fn failure_08_commands_that_do_not_behave_are_bounded() {
    let mut served = Served::start();
    let folder = served.folder("work");
    let model = "script/echo";
    served.post("/v1/agents", &json!({ "id": "worker", "model": model, "workspace": folder }));
    let warm = served.run_task("worker", "echo warm");
    served.until_task("worker", &warm, "completed");
    let before = resident_bytes(&served);

    // A bomb with an end: every shell starts two more, seven deep.
    let bomb =
        served.run_task("worker", "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 600; }; f 6");
    until("a hundred processes", || (served.processes().len() > 100).then_some(()));
    served.stop_task("worker", &bomb);
    served.until_task("worker", &bomb, "cancelled");
    served.until_no_process();

    // More output than anybody keeps.
    let writer = served.run_task("worker", "head -c 300000000 /dev/zero | tr '\\0' x");
    let ended = served.until_task("worker", &writer, "completed");
    assert_eq!(ended["output"], json!({ "bytes": 300_000_000, "truncated": true }));
    let kept = served.place.home().join("agents/worker/tasks").join(&writer);
    assert!(size_of(&kept) < 4 * MB, "{}", size_of(&kept));
    let newest = served.get(&format!("/v1/agents/worker/tasks/{writer}/output"));
    assert!(newest["output"].as_str().unwrap().len() <= 64 << 10);

    // A line without an end, and bytes that are no text.
    let line = served.run_task("worker", "head -c 1000000 /dev/zero | tr '\\0' y");
    let ended = served.until_task("worker", &line, "completed");
    assert_eq!(ended["output"]["bytes"], 1_000_000);
    let binary = served.run_task("worker", "head -c 100000 /dev/urandom; printf '\\000\\377'");
    let ended = served.until_task("worker", &binary, "completed");
    assert_eq!(ended["output"]["bytes"], 100_002);
    for task in [&line, &binary] {
        let carrier = served.until_fact("worker", "message.queued", |message| message["task_id"] == task.as_str());
        assert!(carrier["text"].as_str().unwrap().len() < 32 << 10);
    }

    // One that closes its output is still there, and can be stopped.
    let silent = served.run_task("worker", "exec >&- 2>&-; echo on > silent; sleep 600");
    until("a silent command", || folder.join("silent").exists().then_some(()));
    served.until_task("worker", &silent, "running");
    served.stop_task("worker", &silent);
    served.until_task("worker", &silent, "cancelled");

    // One that goes away from its parent, its session and its terminal does not get away.
    let away = "(setsid sh -c 'echo on > away; while :; do sleep 0.05; done' >/dev/null 2>&1 &) ; until [ -e away ]; do sleep 0.02; done; exit 0";
    let away = served.run_task("worker", away);
    let ended = served.until_task("worker", &away, "completed");
    assert!(!ended["evidence"].as_array().unwrap().is_empty(), "{ended}");
    served.until_no_process();

    // One that does not listen ends without being asked twice.
    let deaf = served.run_task("worker", "trap '' TERM; echo on > deaf; while :; do sleep 0.05; done");
    until("a deaf command", || folder.join("deaf").exists().then_some(()));
    served.stop_task("worker", &deaf);
    let ended = served.until_task("worker", &deaf, "cancelled");
    assert_eq!(ended["signal"], 9, "{ended}");
    served.until_no_process();

    served.until_asleep("worker");
    let after = resident_bytes(&served);
    assert!(after < before + 48 * MB, "{before} bytes before, {after} after");
    served.stop_and_verify();
}
