//! Providers and models: what settings say of them, what is shown of them, and what is never shown: a key.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::place::{Place, Ran, document};

const KEY: &str = "sk-test-4711-secret";

/// Runs with these variables, and returns how it ended.
fn ran(place: &Place, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    Ran::of(place.command(args).envs(variables.iter().copied()).output().unwrap())
}

fn json_of(place: &Place, variables: &[(&str, &str)], args: &[&str]) -> Value {
    let ran = ran(place, variables, &[args, &["--json"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
    document(&ran.out)
}

fn item<'a>(list: &'a Value, name: &str) -> &'a Value {
    let items = list["items"].as_array().unwrap();
    items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}"))
}

fn named<'a>(list: &'a Value, what: &str, name: &str) -> Vec<&'a Value> {
    list[what].as_array().unwrap().iter().filter(|item| item["name"] == name).collect()
}

#[test]
fn tables_of_providers_and_models_are_read_strictly() {
    let place = Place::empty();
    let cases = [
        ("providers = 5", "providers takes a table, not a number"),
        ("[providers]\nmine = 5", "providers.mine takes a table, not a number"),
        (
            "[providers.mine]\n",
            "providers.mine: it is not built in, so say its kind: anthropic, openai, openai-chat, ollama",
        ),
        ("[providers.mine]\nkind = \"gpt\"", "providers.mine.kind: \"gpt\" is no kind of provider: it takes anthropic"),
        (
            "[providers.openai]\nbase_ulr = \"x\"",
            "no setting is called \"providers.openai.base_ulr\"; did you mean providers.openai.base_url?",
        ),
        (
            "[providers.openai]\nbase_url = \"example.com\"",
            "providers.openai.base_url: begin the address with https://",
        ),
        ("[providers.My]\nkind = \"ollama\"", "providers.My: a provider's name has 1 to 64 of a-z"),
        ("[providers.script]\nkind = \"ollama\"", "providers.script: script is what files are played by"),
        ("[providers.openai]\nkey_env = \"LC_KEY\"", "providers.openai.key_env: agents' commands are given LC_KEY"),
        ("[models.x]\nimages = true", "models.\"x\": \"x\" is no model: write PROVIDER/MODEL"),
        ("[models.\"acme/x\"]\nimages = true", "models.\"acme/x\": there is no provider \"acme\""),
        (
            "[models.\"ollama/x\"]\nwindow = 1",
            "no setting is called \"models.\"ollama/x\".window\"; there are window_tokens",
        ),
        (
            "[models.\"ollama/x\"]\nwindow_tokens = \"1\"",
            "models.\"ollama/x\".window_tokens takes a whole number, not text",
        ),
        ("[models.\"ollama/x\"]\nimages = 1", "models.\"ollama/x\".images takes true or false, not a number"),
        ("[models.\"ollama/x\"]\ninput_usd = 0.0000001", "models.\"ollama/x\".input_usd: \"0.0000001\" is no price"),
        ("[models.\"ollama/x\"]\ninput_usd = 1", "models.\"ollama/x\": a price needs both input_usd and output_usd"),
        ("fallback = [\"x\"]", "fallback: \"x\" is no model: write PROVIDER/MODEL"),
    ];
    for (content, wanted) in cases {
        place.write("home/config.toml", content);
        for command in [&["config", "show"][..], &["config", "set", "log", "info"]] {
            let error = place.refused(1, command);
            assert!(error.starts_with(&format!("home/config.toml: {wanted}")), "{content}: {error}");
        }
        assert_eq!(fs::read_to_string(place.path("home/config.toml")).unwrap(), content, "it is left as it was");
    }
    // A model of a provider that nobody knows is a typo, wherever it stands.
    place.write("home/config.toml", "model = \"antropic/x\"\n");
    let error = place.refused(1, &["config", "show"]);
    assert!(
        error.starts_with("home/config.toml: model: there is no provider \"antropic\"; did you mean \"anthropic\"?"),
        "{error}"
    );
    place.write("home/config.toml", "fallback = [\"ollama/x\", \"acme/y\"]\n");
    let error = place.refused(1, &["config", "show"]);
    assert!(error.starts_with("home/config.toml: fallback: there is no provider \"acme\""), "{error}");
}

#[test]
fn a_key_in_a_file_is_refused_and_not_repeated() {
    let place = Place::empty();
    for field in ["key", "api_key", "token"] {
        place.write("home/config.toml", format!("[providers.openai]\n{field} = \"{KEY}\"\n"));
        let error = place.refused(1, &["config", "show"]);
        assert!(error.contains("keys are not kept in this file") && error.contains("key_env"), "{error}");
        assert!(!error.contains(KEY), "{error}");
    }
    fs::remove_file(place.path("home/config.toml")).unwrap();
    for words in [
        ["providers.openai.api_key", KEY],
        ["providers.openai.key_env", KEY],
        ["providers.openai.base_url", "https://me:sk-test-4711-secret@x"],
    ] {
        let error = place.refused(2, &[&["config", "set"], &words[..]].concat());
        assert!(!error.contains(KEY), "{error}");
    }
    assert!(!place.path("home/config.toml").exists());
}

#[test]
fn entries_stand_in_tables_of_their_own() {
    let place = Place::empty();
    let now = || fs::read_to_string(place.path("home/config.toml")).unwrap();
    place.write("home/config.toml", "log = \"warn\" # ours\n");
    place.says(&["config", "set", "providers.mine.kind", "openai-chat"]);
    place.says(&["config", "set", "providers.mine.base_url", "http://127.0.0.1:8000/v1/"]);
    place.says(&["config", "set", "models.mine/qwen3.5.window_tokens", "65536"]);
    place.says(&["config", "set", "models.\"mine/qwen3.5\".images", "true"]);
    place.says(&["config", "set", "model", "mine/qwen3.5"]);
    place.says(&["config", "set", "fallback", "ollama/small, script/echo"]);
    assert_eq!(
        now(),
        "log = \"warn\" # ours\nmodel = \"mine/qwen3.5\"\nfallback = [\"ollama/small\", \"script/echo\"]\n\n\
         [providers.mine]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:8000/v1\"\n\n\
         [models.\"mine/qwen3.5\"]\nwindow_tokens = 65536\nimages = true\n"
    );
    let shown = place.json(&["config", "show", "--origin"]);
    let of = |name: &str| (shown[name]["value"].clone(), shown[name]["origin"].as_str().unwrap_or_default().to_owned());
    assert_eq!(of("models.\"mine/qwen3.5\".window_tokens"), (json!(65_536), "file home/config.toml".into()));
    assert_eq!(of("providers.mine.kind"), (json!("openai-chat"), "file home/config.toml".into()));
    assert_eq!(of("fallback").0, json!(["ollama/small", "script/echo"]));
    // Settings that were never set have values, too.
    let get = |key: &str| place.json(&["config", "get", key]);
    assert_eq!(get("models.mine/qwen3.5.max_output_tokens")["value"], 4_096);
    assert_eq!(
        get("providers.anthropic.key_env"),
        json!({ "key": "providers.anthropic.key_env", "value": "ANTHROPIC_API_KEY", "origin": "default" })
    );
    place.refused(8, &["config", "get", "models.mine/qwen3.5.input_usd"]);
    // The environment outranks the file, and says so.
    let variables = [("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), ("ABIDE_FALLBACK", "ollama/other")];
    let shown = json_of(&place, &variables, &["config", "show", "--origin"]);
    assert_eq!(
        shown["providers.openai.base_url"],
        json!({ "value": "http://127.0.0.1:9/v1", "origin": "environment OPENAI_BASE_URL" })
    );
    assert_eq!(shown["fallback"], json!({ "value": ["ollama/other"], "origin": "environment ABIDE_FALLBACK" }));

    let error = place.refused(2, &["config", "set", "model", "acme/x"]);
    assert!(error.starts_with("model: there is no provider \"acme\""), "{error}");
    assert_eq!(
        place.refused(2, &["config", "get", "providers"]),
        "say which one: providers.NAME. and then kind, base_url, key_env"
    );
    assert!(place.refused(2, &["config", "get", "models.x.images"]).contains("write PROVIDER/MODEL"));
    // A provider that a model needs can't go, and the last field takes its table along.
    assert!(place.refused(1, &["config", "unset", "providers.mine.kind"]).contains("say its kind"));
    for field in ["window_tokens", "images"] {
        assert_eq!(place.json(&["config", "unset", &format!("models.mine/qwen3.5.{field}")])["was_set"], true);
    }
    assert!(!now().contains("qwen3.5\"]"), "{}", now());
}

#[test]
fn a_key_in_the_environment_chooses_a_model_and_every_surface_says_so() {
    let place = Place::empty();
    let variables = [("ANTHROPIC_API_KEY", KEY), ("OPENAI_API_KEY", "other")];
    let shown = json_of(&place, &variables, &["config", "show", "--origin"]);
    let model = shown["model"]["value"].as_str().unwrap().to_owned();
    assert!(model.starts_with("anthropic/claude-"), "{model}");
    assert_eq!(shown["model"]["origin"], "default, because ANTHROPIC_API_KEY is set");
    let note =
        format!("no model is set, and ANTHROPIC_API_KEY is: agents without a model of their own think with {model}");
    let list = json_of(&place, &variables, &["model", "list"]);
    assert_eq!(
        list["default"],
        json!({
            "name": model, "origin": "default, because ANTHROPIC_API_KEY is set", "note": note, "fallback": [],
        })
    );
    let said = ran(&place, &variables, &["model", "list"]).out;
    assert!(said.ends_with(&format!("{note}\n")), "{said}");
    assert!(!said.contains(KEY) && !list.to_string().contains(KEY));
    // Somebody's choice outranks it.
    let chosen = [("ANTHROPIC_API_KEY", KEY), ("ABIDE_MODEL", "script/echo")];
    assert_eq!(json_of(&place, &chosen, &["model", "list"])["default"]["name"], "script/echo");
    // Ollama has whatever was pulled: somebody has to say which.
    let list = json_of(&place, &[("OLLAMA_HOST", "127.0.0.1:9")], &["model", "list"]);
    assert_eq!(list["default"]["name"], "script/echo");
    assert!(list["default"]["note"].as_str().unwrap().contains("abide config set model ollama/MODEL"), "{list}");
}

#[test]
fn the_list_has_windows_prices_keys_and_who_thinks_with_what() {
    let place = Place::empty();
    place.write(
        "home/config.toml",
        "[models.\"openai/gpt-5\"]\ninput_usd = 9.5\n[models.\"ollama/small\"]\nwindow_tokens = 8192\n",
    );
    let list = json_of(&place, &[("ANTHROPIC_API_KEY", KEY)], &["model", "list"]);
    let haiku = item(&list, "anthropic/claude-haiku-4-5");
    assert_eq!(
        (&haiku["window_tokens"], &haiku["problem"], &haiku["default"]),
        (&json!(200_000), &Value::Null, &json!(false))
    );
    assert_eq!(haiku["prices"]["cache_read_usd"], 0.1);
    assert!(haiku["prices"]["date"].as_str().unwrap().starts_with("20"), "{haiku}");
    let gpt = item(&list, "openai/gpt-5");
    assert_eq!(
        (&gpt["prices"]["input_usd"], &gpt["prices"]["date"]),
        (&json!(9.5), &Value::Null),
        "the settings have no date"
    );
    assert!(gpt["problem"].as_str().unwrap().contains("set OPENAI_API_KEY in the environment of the daemon"), "{gpt}");
    assert_eq!(item(&list, "ollama/small")["context_tokens"], 6_144);
    assert_eq!(item(&list, "script/echo")["window_tokens"], Value::Null);
    let anthropic = named(&list, "providers", "anthropic")[0];
    assert_eq!(
        *anthropic,
        json!({
            "name": "anthropic", "kind": "anthropic", "base_url": "https://api.anthropic.com",
            "key_env": "ANTHROPIC_API_KEY", "key": "set", "exposed": false, "found": null, "unheard": null,
        })
    );
    assert_eq!(named(&list, "providers", "openai")[0]["key"], "missing");
    assert_eq!(named(&list, "providers", "ollama")[0]["key"], "not_needed");
    let said = place.says(&["model", "list"]);
    assert!(said.contains("openai/MODEL: https://api.openai.com/v1, no key: OPENAI_API_KEY is not set\n"), "{said}");
}

#[test]
fn a_test_says_whether_a_model_answers_and_what_to_do() {
    let place = Place::empty();
    let tested = place.json(&["model", "test"]);
    assert_eq!(
        (&tested["model"], &tested["ok"], &tested["error"]),
        (&json!("script/echo"), &json!(true), &Value::Null)
    );
    assert!(tested["usage"]["input_tokens"].as_u64().unwrap() > 0);
    let ran = place.run(&["model", "test", "script/nowhere.json", "--json"]);
    assert_eq!(ran.code, Some(1));
    let tested = document(&ran.out);
    assert_eq!((&tested["ok"], &tested["error"]["class"]), (&json!(false), &json!("invalid")));
    assert!(place.refused(1, &["model", "test", "acme/x"]).starts_with("there is no provider \"acme\""));
}

#[test]
fn the_doctor_knows_keys_by_name_and_endpoints_by_knocking() {
    let place = Place::empty();
    let check = |variables: &[(&str, &str)], name: &str| {
        let ran = ran(&place, variables, &["doctor", "--json"]);
        assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY), "{}", ran.out);
        let report = document(&ran.out);
        let checks = report["checks"].as_array().unwrap().clone();
        let found: Vec<Value> = checks.into_iter().filter(|check| check["name"] == name).collect();
        (ran.code, found)
    };
    let (code, keys) = check(&[], "keys");
    assert_eq!(
        (code, keys[0]["found"].as_str()),
        (Some(0), Some("ANTHROPIC_API_KEY is not set, OPENAI_API_KEY is not set"))
    );
    assert_eq!(check(&[], "endpoint").1, Vec::<Value>::new(), "nobody is asked whom nobody wants");
    assert_eq!(check(&[], "model").1[0]["verdict"], "warn");

    // Somebody who answers, whatever they say.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = vec![0; 4096];
        let count = stream.read(&mut asked).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        String::from_utf8_lossy(&asked[..count]).into_owned()
    });
    let url = format!("http://{address}");
    let variables = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", url.as_str())];
    let (code, endpoint) = check(&variables, "endpoint");
    assert_eq!((code, endpoint[0]["verdict"].as_str()), (Some(0), Some("ok")), "{endpoint:?}");
    assert!(!served.join().unwrap().contains(KEY), "no key is shown to whoever answers");
    // No server listens any more.
    let (code, endpoint) = check(&variables, "endpoint");
    assert_eq!((code, endpoint[0]["verdict"].as_str()), (Some(1), Some("fail")), "{endpoint:?}");
    // Without its key, the chosen one can't be called.
    place.write("home/config.toml", "model = \"anthropic/claude-haiku-4-5\"\n");
    let (_, model) = check(&[("ANTHROPIC_BASE_URL", url.as_str())], "model");
    assert_eq!(model[0]["verdict"], "fail");
    assert!(model[0]["found"].as_str().unwrap().contains("set ANTHROPIC_API_KEY"), "{model:?}");
}

#[test]
fn a_key_that_is_not_set_is_named() {
    let place = Place::empty();
    let config =
        "[providers.mine]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"MY_KEY\"\n";
    place.write("home/config.toml", format!("model = \"mine/x\"\n{config}"));
    let ran = place.run(&["model", "test", "mine/x", "--json"]);
    let tested = document(&ran.out);
    assert_eq!((ran.code, &tested["error"]["class"]), (Some(1), &json!("auth")), "{tested}");
    assert!(tested["error"]["hint"].as_str().unwrap().starts_with("set MY_KEY to its key"), "{tested}");
    assert!(item(&place.json(&["model", "list"]), "mine/x")["problem"].as_str().unwrap().contains("set MY_KEY"));
    let doctor = document(&place.run(&["doctor", "--json"]).out);
    let checks = doctor["checks"].as_array().unwrap();
    let model = checks.iter().find(|check| check["name"] == "model").unwrap();
    assert!(model["found"].as_str().unwrap().contains("set MY_KEY"), "{model}");
    // With one, the hint is about what is wrong then: nobody is there.
    let ran = ran_with_key(&place);
    assert!(ran["error"]["hint"].as_str().unwrap().contains("see whether somebody serves http://127.0.0.1:9"), "{ran}");
}

#[test]
fn an_answer_that_breaks_off_is_not_taken_for_nobody_there() {
    let place = Place::empty();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 16 << 10]).unwrap() > 0);
        let event = r#"data: {"choices":[{"index":0,"delta":{"content":"so far"}}]}"#;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\n";
        stream.write_all(format!("{head}{event}\n\n").as_bytes()).unwrap();
    });
    place.write("home/config.toml", format!("[providers.mine]\nkind = \"openai-chat\"\nbase_url = \"{url}\"\n"));
    let tested = document(&place.run(&["model", "test", "mine/x", "--json"]).out);
    server.join().unwrap();
    assert_eq!(tested["error"]["class"], "disconnect", "{tested}");
    assert!(
        tested["error"]["hint"].as_str().unwrap().starts_with("it was reached, and its answer broke off"),
        "{tested}"
    );
}

fn ran_with_key(place: &Place) -> Value {
    document(&ran(place, &[("MY_KEY", KEY)], &["model", "test", "mine/x", "--json"]).out)
}

#[test]
fn a_model_that_has_no_room_for_what_every_agent_is_shown_is_refused() {
    let place = Place::empty();
    place.write("home/config.toml", "[models.\"ollama/tiny\"]\nwindow_tokens = 2000\nmax_output_tokens = 500\n");
    let warned = place.run(&["config", "set", "models.ollama/tiny.images", "true"]);
    assert!(warned.err.starts_with("abide: ollama/tiny has room for 1500 tokens"), "{warned:?}");
    let problem = item(&place.json(&["model", "list"]), "ollama/tiny")["problem"].clone();
    let problem = problem.as_str().unwrap();
    assert!(
        problem.starts_with("ollama/tiny has room for 1500 tokens, and what every agent is shown takes "),
        "{problem}"
    );
    assert!(problem.contains("models.\"ollama/tiny\".window_tokens"), "{problem}");
    let _daemon = crate::place::Daemon::start(&place, &[]);
    assert!(place.refused(1, &["agent", "create", "a", "--model", "ollama/tiny"]).contains("has room for 1500 tokens"));
    place.says(&["agent", "create", "b", "--model", "ollama/other"]);
}

#[test]
fn a_server_of_ones_own_has_an_address_before_it_is_asked() {
    let place = Place::empty();
    place.says(&["config", "set", "providers.mine.kind", "openai-chat"]);
    let error = place.refused(2, &["config", "set", "model", "mine/x"]);
    assert!(error.contains("providers.mine.base_url"), "{error}");
    assert!(place.refused(1, &["model", "test", "mine/x"]).contains("nobody says where it is"));
    let ran = place.run(&["doctor"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains("mine: nobody says where it is; `abide config set providers.mine.base_url"),
        "{}",
        ran.out
    );
    place.says(&["config", "set", "providers.mine.base_url", "http://127.0.0.1:9/v1"]);
    place.says(&["config", "set", "model", "mine/x"]);
}
