//! Models of agents, seen through a daemon: keys that stay where they are, and models that are changed while everything
//! runs. Models that answer over the network are tested in `models`.

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, calls, exec};
use crate::odd_answers::Provider;
use crate::place::Daemon;
use crate::served::{Served, until};

const KEYS: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "sk-ant-4711-secret"),
    ("OPENAI_API_KEY", "sk-4712-secret"),
    ("WORK_KEY", "work-4713-secret"),
];

/// With keys in its environment, one of them under a name of the operator's.
fn with_keys(settings: &str) -> Served {
    let work = "[providers.work]\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:9\"\nkey_env = \"WORK_KEY\"\n";
    let mut served = Served::down(&format!("model = \"script/echo\"\n{settings}{work}"));
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.envs(KEYS).stderr(fs::File::create(served.place.path("stderr")).unwrap());
    served.daemon = Some(Daemon::of(command));
    served
}

fn has_key(text: &str) -> bool {
    KEYS.iter().any(|(_, key)| text.contains(key))
}

#[test]
fn no_program_that_is_started_sees_a_key() {
    let notify = "[notify]\ncommand = \"env > told; mv told notified\"\non = [\"result\"]\n";
    let mut served = with_keys(&format!("sandbox = \"required\"\n{notify}"));
    let folder = served.folder("work");
    // Not by looking at the daemon itself, either.
    let seen = "env; for file in /proc/[0-9]*/environ; do cat $file; done 2>/dev/null; true";
    served.create_in("nosy", &folder, &json!([calls(exec(seen, LONG_MS)), { "text": "Looked." }]));
    let message = served.send("nosy", "look");
    served.until_told("nosy", &message);
    let ran = &served.results("nosy", "ExecCommand")[0];
    let said = ran["stdout"].as_str().unwrap();
    assert!(said.contains("PATH="), "it saw an environment: {ran}");
    assert!(!has_key(said) && !KEYS.iter().any(|(name, _)| said.contains(name)), "{said}");
    let told = until("a notification", || fs::read_to_string(served.place.path("home/notified")).ok());
    assert!(told.contains("ABIDE_TEXT") && !has_key(&told), "{told}");

    // Nor does anybody who asks about models.
    for (method, path) in [("GET", "/v1/models"), ("GET", "/v1/agents/nosy"), ("GET", "/v1/agents/nosy/export")] {
        assert!(!has_key(&served.call(method, path, &[], None).body.to_string()), "{path}");
    }
    let list = served.get("/v1/models");
    let work = list["providers"].as_array().unwrap().iter().find(|provider| provider["name"] == "work").unwrap();
    assert_eq!((&work["key_env"], &work["key"]), (&json!("WORK_KEY"), &json!("set")));
    let nosy = list["items"].as_array().unwrap().iter().find(|item| item["agents"] == json!(["nosy"])).unwrap();
    assert_eq!((&nosy["agents_total"], &nosy["problem"]), (&json!(1), &Value::Null));
    served.stop_and_verify();
    assert!(!has_key(&fs::read_to_string(served.place.path("stderr")).unwrap()));
    for (path, bytes) in crate::place::contents(&served.place.home()) {
        assert!(!has_key(&String::from_utf8_lossy(&bytes)), "{}", path.display());
    }
}

#[test]
fn a_model_is_changed_while_the_agent_runs_and_the_next_turn_thinks_with_it() {
    let mut served = Served::start();
    let first = served.script("first", &json!({ "rounds": [{ "text": "The first." }], "loop": true }));
    let second = served.script("second", &json!({ "rounds": [{ "text": "The second." }], "loop": true }));
    served.create("a", &first);
    let message = served.send("a", "who are you?");
    assert_eq!(served.until_told("a", &message)["text"], "The first.");
    let shown = served.place.json(&["agent", "set", "a", "--model", &second]);
    assert_eq!(shown["model"]["name"], second.as_str());
    let message = served.send("a", "and now?");
    assert_eq!(served.until_told("a", &message)["text"], "The second.");
    // One that can't be called here is refused, and changes nothing.
    for (model, says) in
        [("acme/x", "no provider \"acme\""), ("anthropic/x", "set ANTHROPIC_API_KEY in the environment of the daemon")]
    {
        let error = served.place.refused(1, &["agent", "set", "a", "--model", model]);
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(served.get("/v1/agents/a")["model"]["name"], second.as_str());
    served.kill_and_up();
    let message = served.send("a", "after a crash?");
    assert_eq!(served.until_told("a", &message)["text"], "The second.");
    served.stop_and_verify();
}

#[test]
fn a_test_and_the_status_go_through_the_daemon() {
    let mut served = with_keys("");
    let tested = served.place.json(&["model", "test"]);
    assert_eq!((&tested["model"], &tested["ok"]), (&json!("script/echo"), &json!(true)));
    // Its environment counts, not the caller's; nobody answers at that port.
    let ran = served.place.run(&["model", "test", "work/x", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let tested = crate::place::document(&ran.out);
    assert!(tested["error"]["class"].is_string() && !has_key(&ran.out) && !has_key(&ran.err), "{tested}");
    assert!(served.place.refused(1, &["model", "test", "acme/x"]).contains("no provider \"acme\""));
    let status = served.place.json(&["daemon", "status"]);
    assert_eq!(status["model"], "script/echo");
    assert!(served.place.says(&["daemon", "status"]).contains("agents answer with what they are told (script/echo)"));
    served.stop_and_verify();
}

/// Servers that somebody runs by themselves say what they have; nobody is waited for who says nothing.
#[test]
fn a_list_of_models_has_what_a_server_says_that_it_has() {
    let provider = Provider::start(|body, _| {
        assert_eq!(body, "", "it is only asked for a list");
        let list =
            json!({ "object": "list", "data": [{ "id": "qwen3:8b" }, { "id": "said" }, { "id": "a\u{7}b" }, {}] });
        let list = list.to_string();
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{list}", list.len())
    });
    let silent = Provider::start(|_, _| Provider::HOLD.to_owned());
    let of = |name: &str, url: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai-chat\"\nbase_url = \"{url}\"\n[models.\"{name}/said\"]\nimages = true\n"
        )
    };
    let gone = "[providers.ollama]\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let settings = of("home", &provider.url) + &of("mute", &silent.url) + gone;
    let mut served = Served::start_with(&settings);
    let check = |list: &Value| {
        let found = |name: &str| list["items"].as_array().unwrap().iter().find(|item| item["name"] == name).cloned();
        let item = found("home/qwen3:8b").unwrap();
        assert_eq!((&item["found"], &item["problem"], &item["provider"]), (&json!(true), &Value::Null, &json!("home")));
        assert_eq!(found("home/said").unwrap()["found"], true);
        assert_eq!(found("mute/said").unwrap()["found"], Value::Null);
        let of = |name: &str| {
            list["providers"].as_array().unwrap().iter().find(|provider| provider["name"] == name).cloned().unwrap()
        };
        assert_eq!((&of("home")["found"], &of("home")["unheard"]), (&json!(2), &Value::Null));
        assert_eq!((&of("mute")["found"], &of("mute")["unheard"]), (&Value::Null, &json!("no answer within 2 s")));
        assert!(of("ollama")["unheard"].as_str().unwrap().contains("it could not be reached"), "{}", of("ollama"));
        assert_eq!(of("anthropic")["unheard"], Value::Null, "nobody asks it");
    };
    check(&served.get("/v1/models"));
    served.stop();
    // Without a daemon, too.
    check(&served.place.json(&["model", "list"]));
    let said = served.place.says(&["model", "list"]);
    assert!(said.contains("home/qwen3:8b") && said.contains("no key; it has 2 models\n"), "{said}");
    assert!(said.contains("it does not say what it has (no answer within 2 s)"), "{said}");
}

#[test]
fn an_agent_without_a_model_of_its_own_thinks_with_the_settings() {
    let mut served = Served::down("");
    let first = served.script("first", &json!({ "rounds": [{ "text": "The first." }], "loop": true }));
    let second = served.script("second", &json!({ "rounds": [{ "text": "The second." }], "loop": true }));
    let set = |model: &str| served.place.write("home/config.toml", format!("log = \"error\"\nmodel = {model:?}\n"));
    set(&first);
    served.daemon = Some(Daemon::start(&served.place, &[]));
    served.post("/v1/agents", &json!({ "id": "follower" }));
    served.create("owner", &first);
    let message = served.send("follower", "who are you?");
    assert_eq!(served.until_told("follower", &message)["text"], "The first.");
    served.stop();

    // Shown before it is awake again, and thought with as soon as it is.
    let set = |model: &str| served.place.write("home/config.toml", format!("log = \"error\"\nmodel = {model:?}\n"));
    set(&second);
    served.up();
    let listed = served.get("/v1/agents");
    let models: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["model"]).collect();
    assert_eq!(models, [&json!(second), &json!(second), &json!(first)], "the follower and the first agent follow");
    let used = served.get("/v1/models");
    let item = used["items"].as_array().unwrap().iter().find(|item| item["name"] == second.as_str()).unwrap();
    assert_eq!(item["agents"], json!(["follower", "main"]));
    let shown = served.get("/v1/agents/follower");
    assert_eq!((&shown["model"]["name"], &shown["model"]["default"]), (&json!(second), &json!(true)));
    let message = served.send("follower", "and now?");
    assert_eq!(served.until_told("follower", &message)["text"], "The second.");
    let message = served.send("owner", "and you?");
    assert_eq!(served.until_told("owner", &message)["text"], "The first.");

    // One of its own, and back.
    let said = served.place.says(&["agent", "set", "follower", "--model", &first]);
    assert_eq!(said, format!("follower thinks with {first}\n"));
    let said = served.place.says(&["agent", "set", "owner", "--model", "default", "--fallback", "default"]);
    assert_eq!(said, format!("owner thinks with {second}, the default, has no other model when that fails\n"));
    let message = served.send("owner", "and you?");
    assert_eq!(served.until_told("owner", &message)["text"], "The second.");
    served.stop();

    // Where nobody names a model, nobody becomes an echo.
    served.place.write("home/config.toml", "log = \"error\"\n");
    served.up();
    assert_eq!(served.get("/v1/agents/owner")["model"]["name"], second.as_str());
    let message = served.send("owner", "still?");
    assert_eq!(served.until_told("owner", &message)["text"], "The second.");
    served.stop_and_verify();
}

/// The limit was the other model's: what waited for that one does not wait for this one.
#[test]
fn what_waits_for_a_model_goes_on_with_another() {
    let mut served = Served::start();
    let limited = json!({ "rounds": [{ "error": "rate_limited", "retry_after_ms": 3_600_000 }] });
    served.create("a", &served.script("limited", &limited));
    let free = served.script("free", &json!({ "rounds": [{ "text": "Here." }], "loop": true }));
    let message = served.send("a", "hello?");
    until("a wait", || (served.get("/v1/agents/a")["decision"]["reason"] == "provider_backoff").then_some(()));
    let why = served.place.says(&["why", "a"]);
    assert!(why.contains("and asks again then") && why.contains("rate_limited"), "{why}");
    served.kill_and_up();
    served.place.says(&["agent", "set", "a", "--model", &free]);
    assert_eq!(served.until_told("a", &message)["text"], "Here.");
    served.stop_and_verify();
}
