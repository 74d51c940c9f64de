//! `abide config`: what outranks what, and a file that keeps what somebody wrote in it.

use std::fs;

use serde_json::json;

use crate::place::{Place, Ran, document};

fn origin(place: &Place, variables: &[(&str, &str)], key: &str) -> (String, String) {
    let mut command = place.command(&["config", "show", "--origin", "--json"]);
    let ran = Ran::of(command.envs(variables.iter().copied()).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let setting = &document(&ran.out)[key];
    (setting["value"].as_str().unwrap().to_owned(), setting["origin"].as_str().unwrap().to_owned())
}

#[test]
fn the_environment_outranks_the_file_and_that_the_default() {
    let place = Place::empty();
    let found = |variables: &[(&str, &str)], key: &str| origin(&place, variables, key);
    assert_eq!(found(&[], "listen"), ("127.0.0.1:4173".into(), "default".into()));
    assert_eq!(found(&[], "model"), ("script/echo".into(), "default".into()));
    place.write("home/config.toml", "listen = \"127.0.0.1:5000\"\nlog = \"debug\"\n");
    assert_eq!(found(&[], "listen"), ("127.0.0.1:5000".into(), "file home/config.toml".into()));
    let set = [("ABIDE_LISTEN", "[::1]:6000"), ("ABIDE_LOG", ""), ("ABIDE_MODEL", "ollama/small")];
    assert_eq!(found(&set, "listen"), ("[::1]:6000".into(), "environment ABIDE_LISTEN".into()));
    assert_eq!(found(&set, "log"), ("debug".into(), "file home/config.toml".into()), "set to nothing is not set");
    assert_eq!(found(&set, "model"), ("ollama/small".into(), "environment ABIDE_MODEL".into()));
    let ran = Ran::of(place.command(&["config", "show"]).env("ABIDE_STORE", "postgres://x").output().unwrap());
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.err, "abide: $ABIDE_STORE: \"postgres://x\" is no store that this version knows: it takes sqlite\n");
}

#[test]
fn settings_for_people() {
    let place = Place::empty();
    place.write("home/config.toml", "shutdown_grace_ms = 100\n");
    assert_eq!(
        place.says(&["config", "show", "--origin"]),
        "\
KEY                    VALUE                                                                 ORIGIN
listen                 127.0.0.1:4173                                                        default
store                  sqlite                                                                default
model                  script/echo (no model is set: agents answer with what they are told)  default
fallback               none                                                                  default
log                    info                                                                  default
sandbox                auto                                                                  default
sandbox.memory         auto                                                                  default
sandbox.scratch        1GiB                                                                  default
disk_reserve           auto                                                                  default
shutdown_grace_ms      100                                                                   file home/config.toml
notify.command         none                                                                  default
notify.webhook         none                                                                  default
notify.secret_env      none                                                                  default
notify.on              approval,failure,notify,blocked                                       default
public_url                                                                                   default
hook_rate              50                                                                    default
workspace_roots        ~                                                                     default
self_turns_per_hour    240                                                                   default
rounds_per_turn        500                                                                   default
budget.daily_usd       0                                                                     default
tree_agents            256                                                                   default
agent.env              none                                                                  default
agent.secrets          none                                                                  default
agent.git_credentials  none                                                                  default
agent.ssh_agent        false                                                                 default
agent.known_hosts      none                                                                  default
agent.for_children     false                                                                 default
"
    );
    assert_eq!(place.says(&["config", "get", "log"]), "info\n");
    let got = place.json(&["config", "get", "shutdown_grace_ms"]);
    assert_eq!(got, json!({ "key": "shutdown_grace_ms", "value": 100, "origin": "file home/config.toml" }));
    assert_eq!(place.json(&["config", "show"])["shutdown_grace_ms"], 100);
}

/// The mode of the sandbox was a setting of its own before there was a table of that name.
#[test]
fn the_sandbox_is_a_word_or_a_table() {
    let place = Place::empty();
    place.write("home/config.toml", "sandbox = \"required\" # kept\nhook_rate = 7\n");
    place.says(&["config", "set", "sandbox.memory", "4096MiB"]);
    let read = || std::fs::read_to_string(place.home().join("config.toml")).unwrap();
    assert_eq!(read(), "hook_rate = 7\n\n[sandbox]\nmode = \"required\" # kept\nmemory = \"4GiB\"\n");
    assert_eq!(place.says(&["config", "get", "sandbox"]), "required\n");
    place.says(&["config", "set", "sandbox", "auto", "sandbox.scratch", "100MB"]);
    assert_eq!(place.says(&["config", "get", "sandbox.scratch"]), "100000000B\n");
    place.says(&["config", "unset", "sandbox"]);
    assert_eq!(read(), "hook_rate = 7\n\n[sandbox]\nmemory = \"4GiB\"\nscratch = \"100000000B\"\n");
    let cases = [("12", "too little"), ("much", "no number of bytes"), ("4 GiX", "no number"), ("-1", "no number")];
    for (text, problem) in cases {
        let ran = place.run(&["config", "set", "sandbox.memory", "--", text]);
        assert!(ran.err.contains(problem), "{text}: {}", ran.err);
    }
}

#[test]
fn a_file_that_is_wrong_is_named_with_what_is_wrong() {
    let place = Place::empty();
    let cases = [
        ("listn = 1", "no setting is called \"listn\"; did you mean listen?"),
        (
            "[server]\n",
            "no setting is called \"server\"; there are listen, store, model, fallback, log, sandbox, sandbox.memory, \
             sandbox.scratch, disk_reserve, shutdown_grace_ms, notify.command, notify.webhook, notify.secret_env, notify.on, \
             public_url, hook_rate, workspace_roots, self_turns_per_hour, rounds_per_turn, \
             budget.daily_usd, tree_agents, agent.env, agent.secrets, agent.git_credentials, agent.ssh_agent, \
             agent.known_hosts, agent.for_children, providers, models",
        ),
        ("[provider.x]\n", "no setting is called \"provider\"; did you mean providers?"),
        ("listen = 4173", "listen takes text in quotes, not a number"),
        ("shutdown_grace_ms = \"5000\"", "shutdown_grace_ms takes a whole number, not text"),
        ("notify = 5", "notify takes a table, not a number"),
        ("[notify]\ncomand = \"x\"", "no setting is called \"notify.comand\"; did you mean notify.command?"),
        ("[notify]\non = \"approval\"", "notify.on takes a list of texts in quotes, not text"),
        ("[notify]\non = [\"aproval\"]", "notify.on: \"aproval\" is nothing to be told of: it takes approval"),
        ("[notify]\nwebhook = \"ftp://x\"", "notify.webhook: \"ftp://x\" is no address to send to"),
        ("shutdown_grace_ms = -1", "shutdown_grace_ms: \"-1\" is no number of milliseconds from 0 to 600000"),
        ("rounds_per_turn = -1", "rounds_per_turn: \"-1\" is no number from 0, which is no limit, to 1000000"),
        ("[budget]\ndaily_usd = -1", "budget.daily_usd: \"-1\" is no amount in dollars: write one such as 20 or 7.50"),
        ("[budget]\ndaily_usd = \"5\"", "budget.daily_usd takes a number, not text"),
        ("hook_rate = 0", "hook_rate: \"0\" is no number of deliveries from 1 to 1000000"),
        (
            "workspace_roots = [\"work\"]",
            "workspace_roots: \"work\" is no absolute path: write /path/to/folder, or ~/folder",
        ),
        ("workspace_roots = \"/work\"", "workspace_roots takes a list of texts in quotes, not text"),
        ("public_url = \"example.com\"", "public_url: \"example.com\" is no address: write https://HOST"),
        ("listen = \"localhost\"", "listen: \"localhost\" is no address to listen on: write IP:PORT"),
        ("store = \"postgres://x\"", "store: \"postgres://x\" is no store that this version knows: it takes sqlite"),
        ("model = \"echo\"", "model: \"echo\" is no model: write PROVIDER/MODEL, such as script/echo"),
        ("sandbox = 1", "sandbox takes text in quotes, not a number"),
        ("[sandbox]\nmode = \"on\"", "sandbox: \"on\" is no way to confine commands: it takes auto, required or off"),
        ("[sandbox]\nmemry = \"4GiB\"", "no setting is called \"sandbox.memry\"; did you mean sandbox.memory?"),
        ("[sandbox]\nmemory = 4", "sandbox.memory takes text in quotes, not a number"),
        ("sandbox = \"on\"", "sandbox: \"on\" is no way to confine commands: it takes auto, required or off"),
        ("log = \"loud\"", "log: \"loud\" is no level: it takes error, warn, info, debug or trace"),
    ];
    for (content, wanted) in cases {
        place.write("home/config.toml", content);
        for command in [&["config", "show"][..], &["config", "get", "log"], &["config", "set", "log", "info"]] {
            let error = place.refused(1, command);
            assert!(error.starts_with(&format!("home/config.toml: {wanted}")), "{content}: {error}");
        }
        assert_eq!(fs::read_to_string(place.path("home/config.toml")).unwrap(), content, "it is left as it was");
    }
    place.write("home/config.toml", "listen = \n");
    let error = place.refused(1, &["config", "show"]);
    assert!(error.starts_with("home/config.toml is not TOML: TOML parse error at line 1"), "{error}");
}

#[test]
fn a_change_keeps_everything_else() {
    let place = Place::empty();
    let before = "\
# Ours since spring.

listen   =  '127.0.0.1:5000'   # the proxy knows this one
# Loud while we look for the leak.
log = \"debug\"
shutdown_grace_ms = 1_000 # short
";
    place.write("home/config.toml", before);
    let now = || fs::read_to_string(place.path("home/config.toml")).unwrap();
    place.says(&["config", "set", "listen", "127.0.0.1:5001"]);
    assert_eq!(now(), before.replace("'127.0.0.1:5000'", "\"127.0.0.1:5001\""));
    place.says(&["config", "set", "shutdown_grace_ms", "2000"]);
    place.says(&["config", "set", "model", "ollama/small"]);
    let changed = before.replace("'127.0.0.1:5000'", "\"127.0.0.1:5001\"").replace("1_000", "2000");
    assert_eq!(now(), format!("{changed}model = \"ollama/small\"\n"));
    assert_eq!(place.json(&["config", "unset", "log"])["was_set"], true);
    assert!(!now().contains("log ="), "{}", now());
    for kept in ["# Ours since spring.", "# the proxy knows this one", "# Loud while we look for the leak.", "# short"]
    {
        assert!(now().contains(kept), "{kept} is gone:\n{}", now());
    }
    assert_eq!(place.json(&["config", "unset", "log"])["was_set"], false);
    assert_eq!(place.json(&["config", "get", "log"])["origin"], "default");
    let left: Vec<_> = fs::read_dir(place.home()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_setting_of_a_table_is_written_there() {
    let place = Place::empty();
    place.write("home/config.toml", "log = \"warn\"\n");
    let now = || fs::read_to_string(place.path("home/config.toml")).unwrap();
    place.says(&["config", "set", "notify.command", "cat"]);
    place.says(&["config", "set", "notify.on", "approval, result"]);
    assert_eq!(now(), "log = \"warn\"\n\n[notify]\ncommand = \"cat\"\non = [\"approval\", \"result\"]\n");
    assert_eq!(place.json(&["config", "get", "notify.on"])["value"], json!(["approval", "result"]));
    assert_eq!(place.json(&["config", "unset", "notify.on"])["was_set"], true);
    assert_eq!(place.json(&["config", "unset", "notify.on"])["was_set"], false);
    assert_eq!(now(), "log = \"warn\"\n\n[notify]\ncommand = \"cat\"\n");
    let schema = place.json(&["config", "schema"]);
    assert_eq!(schema["properties"]["notify"]["properties"]["command"]["type"], "string");
}

#[test]
fn what_can_not_be_set_is_refused() {
    let place = Place::empty();
    let wrong = |words: &[&str]| place.refused(2, &[&["config", "set"], words].concat());
    assert_eq!(wrong(&["modle", "x/y"]), "no setting is called \"modle\"; did you mean model?");
    assert!(wrong(&["listen", "here"]).starts_with("listen: \"here\" is no address to listen on"));
    assert!(wrong(&["shutdown_grace_ms", "soon"]).starts_with("shutdown_grace_ms: \"soon\" is no number"));
    assert_eq!(place.refused(2, &["config", "get", "logs"]), "no setting is called \"logs\"; did you mean log?");
    assert!(!place.home().exists(), "nothing was written");
}

#[test]
fn a_script_is_kept_with_its_whole_path() {
    let place = Place::empty();
    place.says(&["config", "set", "model", "script/demo.json"]);
    let model = place.says(&["config", "get", "model"]);
    let here = fs::canonicalize(place.path("")).unwrap();
    assert_eq!(model.trim_end(), format!("script/{}", here.join("demo.json").display()));
    place.says(&["config", "set", "model", "script/echo"]);
    assert_eq!(place.says(&["config", "get", "model"]), "script/echo\n");
}

#[test]
fn the_schema_has_every_setting() {
    let place = Place::empty();
    let schema = place.json(&["config", "schema"]);
    let settings = place.json(&["config", "show"]);
    let place_of = |name: &str| format!("/properties/{}", name.replace('.', "/properties/"));
    let names: Vec<&String> = settings.as_object().unwrap().keys().collect();
    // Those whose entries have names of their own say what any entry may have.
    let own = ["providers", "models"];
    let properties = schema["properties"].as_object().unwrap().iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let tables = properties.clone().filter(|(_, value)| value["properties"].is_object());
    let inside: usize = tables.clone().map(|(_, table)| table["properties"].as_object().unwrap().len()).sum();
    let beside = properties.count() - tables.count();
    for (table, field) in [("providers", "key_env"), ("models", "cache_write_usd")] {
        let entry = &schema["properties"][table]["additionalProperties"];
        assert_eq!(entry["additionalProperties"], false);
        assert!(entry["properties"][field]["type"].is_string(), "{table}.{field}");
    }
    assert_eq!(inside + beside, names.len());
    assert_eq!(schema["additionalProperties"], false);
    for (name, default) in settings.as_object().unwrap() {
        assert_eq!(schema.pointer(&place_of(name)).unwrap()["default"], *default, "{name}");
    }
}

#[test]
fn a_home_is_for_nobody_else_on_the_machine() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |place: &Place| fs::metadata(place.home()).unwrap().permissions().mode() & 0o777;
    let place = Place::empty();
    place.says(&["config", "set", "log", "debug"]);
    assert_eq!(mode(&place), 0o700);
    let place = Place::empty();
    let _daemon = crate::place::Daemon::start(&place, &[]);
    assert_eq!(mode(&place), 0o700);
}

#[test]
fn a_daemon_that_runs_has_not_read_what_is_set_now() {
    let place = Place::empty();
    assert_eq!(place.says(&["config", "set", "log", "warn"]), "log is warn in home/config.toml\n");
    let _daemon = crate::place::Daemon::start(&place, &[]);
    let said = place.says(&["config", "set", "model", "ollama/small"]);
    assert!(said.contains("when it starts again: `abide daemon restart`"), "{said}");
    assert_eq!(place.json(&["config", "unset", "model"])["restart_needed"], true);
    assert_eq!(place.json(&["config", "unset", "model"])["restart_needed"], false, "nothing was changed");
}

#[test]
fn every_value_is_shown_with_where_it_came_from() {
    let place = Place::empty();
    place.write("home/config.toml", "log = \"warn\"\n");
    let shown = place.says(&["config", "show"]);
    assert_eq!(shown, place.says(&["config", "show", "--origin"]));
    let of = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap_or_default().trim_end().to_owned();
    assert!(of("log").ends_with("file home/config.toml") && of("hook_rate").ends_with("default"), "{shown}");
}

/// Neither half is a price, so both are said at once; every hint says how.
#[test]
fn a_price_is_set_with_one_command() {
    let place = Place::empty();
    let provider = ["providers.mine.kind", "openai-chat", "providers.mine.base_url", "http://127.0.0.1:9/v1"];
    let set = |words: &[&str]| place.json(&[&["config", "set"], words].concat());
    let first = set(&[&provider[..], &["model", "mine/x"]].concat());
    assert_eq!(first["items"][2], json!({ "key": "model", "value": "mine/x" }), "what needs each other goes together");
    let before = fs::read_to_string(place.path("home/config.toml")).unwrap();
    let command = "`abide config set 'models.\"mine/x\".input_usd' USD 'models.\"mine/x\".output_usd' USD` sets both";
    for half in ["input_usd", "output_usd", "cache_read_usd"] {
        let error = place.refused(1, &["config", "set", &format!("models.\"mine/x\".{half}"), "3"]);
        assert!(error.ends_with(command), "{error}");
    }
    assert_eq!(fs::read_to_string(place.path("home/config.toml")).unwrap(), before, "it is left as it was");
    let (input, output) = ("models.\"mine/x\".input_usd", "models.\"mine/x\".output_usd");
    set(&[input, "3", output, "15"]);
    assert_eq!(place.says(&["config", "get", output]), "15.00\n");
    assert_eq!(set(&[input, "4"])["key"], input, "one half of a price that is there");
    place.says(&["config", "unset", input, output]);
    assert_eq!(fs::read_to_string(place.path("home/config.toml")).unwrap(), before);
    assert_eq!(
        place.refused(2, &["config", "set", "log", "info", "model"]),
        "model has no value: write KEY VALUE, and KEY VALUE again"
    );
}
