//! What keeps commands where they belong, as the operator sets it.

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, calls, exec, tool};
use crate::served::Served;

/// What a command says, run for an agent that may reach the network or not.
fn said(served: &Served, agent: &str, network: bool, cmd: &str) -> Value {
    let folder = served.folder(&format!("work-{agent}"));
    let model = served.script(agent, &json!({ "rounds": [calls(exec(cmd, LONG_MS)), { "text": "Done." }] }));
    let body = json!({ "id": agent, "model": model, "workspace": folder, "network": network });
    served.post("/v1/agents", &body);
    let message = served.send(agent, "run it");
    served.until_told(agent, &message);
    served.results(agent, "ExecCommand")[0].clone()
}

fn names(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// Speaks to the daemon's own port.
fn knocks(served: &Served) -> String {
    let host = served.address().host;
    let (host, port) = host.split_once(':').unwrap();
    format!(
        "exec 3<>/dev/tcp/{host}/{port} && printf 'GET /healthz HTTP/1.0\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3 && head -1 <&3"
    )
}

#[test]
fn a_required_sandbox_keeps_the_home_and_the_network_away() {
    let mut served = Served::start_with("sandbox = \"required\"\n");
    let home = served.place.home().canonicalize().unwrap();
    let outside = served.place.path("outside");
    let cmd = format!(
        "cat '{home}/token'; cat '{home}/ledger.db'; ls '{home}'; echo x > '{outside}'; ln -s '{home}/token' link; cat link; echo ours > ours; cat ours",
        home = home.display(),
        outside = outside.display(),
    );
    let ran = said(&served, "nosy", false, &cmd);
    assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("ours\n")), "{ran}");
    assert!(!outside.exists());
    let folder = served.folder("work-nosy");
    assert_eq!(fs::read_to_string(folder.join("ours")).unwrap(), "ours\n");
    let token = served.address().token;
    assert!(!served.events("nosy").iter().any(|event| event.to_string().contains(&token)));

    // Files that tools read are kept as far away: by their path, and by a link that a command made.
    let reads = |path: &str| calls(tool("ReadFile", json!({ "path": path })));
    let rounds = json!([
        reads("link"), reads("../home/token"), reads(home.join("token").to_str().unwrap()), reads("ours"), { "text": "Done." }
    ]);
    served.post("/v1/agents/nosy/stop", &json!({}));
    served.create_in("reader", &folder, &rounds);
    let message = served.send("reader", "read");
    served.until_told("reader", &message);
    let results = served.results("reader", "ReadFile");
    assert!(results[..3].iter().all(|result| result["error"]["code"].is_string()), "{results:?}");
    assert_eq!(results[3]["content"], "ours\n");
    assert!(!results.iter().any(|result| result.to_string().contains(&token)));

    let summary = served.get("/v1/agents/nosy");
    let sandbox = &summary["execution"]["sandbox"];
    assert_eq!(sandbox["mode"], "required");
    let enforced = names(&sandbox["enforced"]);
    assert!(enforced.contains(&"filesystem") && enforced.contains(&"network"), "{sandbox}");

    // The network is off until the operator says otherwise.
    let cmd = knocks(&served);
    let ran = said(&served, "offline", false, &cmd);
    assert_ne!(ran["exit_code"], 0, "{ran}");
    let ran = said(&served, "online", true, &cmd);
    assert!(ran["stdout"].as_str().unwrap().contains("200"), "{ran}");
    let summary = served.get("/v1/agents/online");
    assert!(!names(&summary["execution"]["sandbox"]["enforced"]).contains(&"network"));
    served.stop_and_verify();
}

#[test]
fn a_sandbox_that_is_off_is_said_to_be_off() {
    let mut served = Served::start_with("sandbox = \"off\"\n");
    let outside = served.place.path("outside");
    let ran = said(&served, "free", false, &format!("echo x > '{}'", outside.display()));
    assert_eq!(ran["exit_code"], 0, "{ran}");
    assert!(outside.exists());
    let sandbox = &served.get("/v1/agents/free")["execution"]["sandbox"];
    assert_eq!((&sandbox["mode"], &sandbox["mechanism"]), (&json!("off"), &json!("none")));
    assert_eq!(names(&sandbox["enforced"]), ["processes", "memory"]);
    assert!(!sandbox["problems"].as_array().unwrap().is_empty());
    // On the command line, too.
    let shown = served.place.json(&["agent", "show", "free"]);
    assert_eq!(shown["execution"]["sandbox"]["mode"], "off");
    served.stop_and_verify();
}
