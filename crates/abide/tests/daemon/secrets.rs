//! Secrets: whom they reach, whom they do not, and where their values are.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use abide_effects::secrets::Mask;
use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, exec, git, result, tool, until_there};
use crate::odd_answers::{self, Provider};
use crate::place::{Daemon, Place, Ran, contents, text};
use crate::served::{Served, until};

const VALUE: &str = "s3cr?t/+ of the house&";

/// `abide` with this on its standard input.
pub fn with_input(place: &Place, args: &[&str], input: &str) -> Ran {
    let mut command = place.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that refuses its words reads nothing.
    let _refused = child.stdin.take().unwrap().write_all(input.as_bytes());
    Ran::of(child.wait_with_output().unwrap())
}

pub fn set_secret(served: &Served, name: &str, value: &str) {
    let ran = with_input(&served.place, &["secret", "set", name], &format!("{value}\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

fn patch(served: &Served, agent: &str, change: Value) -> crate::wire::Answer {
    served.call("PATCH", &format!("/v1/agents/{agent}"), &[], Some(&change))
}

/// An agent with these rounds in a folder, and more of what one is made with.
fn create(served: &Served, id: &str, folder: &Path, rounds: &Value, more: Value) {
    let mut body = json!({ "id": id, "model": served.script(id, &json!({ "rounds": rounds })), "workspace": folder });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    served.post("/v1/agents", &body);
}

fn told(served: &Served, id: &str) {
    let message = served.send(id, "go");
    served.until_told(id, &message);
}

/// The first result of a command of this agent, with what it wrote.
fn ran(served: &Served, id: &str) -> (String, Value) {
    told(served, id);
    let ran = served.results(id, "ExecCommand")[0].clone();
    (ran["stdout"].as_str().unwrap_or_default().to_owned(), ran)
}

/// What commands see of a secret, without saying it: masked where it stands, and how long it is.
const SEEN: &str = "echo \"<${DEPLOY_TOKEN-unset}> ${#DEPLOY_TOKEN}\"";
const MASKED: &str = "<(secret DEPLOY_TOKEN)> 22\n";
const UNSET: &str = "<unset> 0\n";

/// Fails if any file below the home holds the value in a spelling that is masked, except its own.
pub fn assert_nowhere(served: &Served, name: &str, value: &str) {
    let mask = Mask::new([(name, value)]);
    let own = served.place.home().join("secrets").join(name);
    for (path, bytes) in contents(&served.place.home()) {
        let holds = mask.masked_text(&String::from_utf8_lossy(&bytes)).is_some();
        assert_eq!(holds, path == own, "{}", path.display());
    }
    // Facts are packed in their file.
    let file = served.place.path("export.jsonl");
    served.place.says(&["ledger", "export", "--full", text(&file)]);
    let export = fs::read_to_string(file).unwrap();
    assert!(export.contains(name), "it names the secret");
    assert_eq!(mask.masked_text(&export), None, "the export");
}

#[test]
fn a_secret_reaches_the_commands_of_its_agent_and_nothing_else() {
    let mut served = Served::down("");
    served.place.write("home/config.toml", "log = \"trace\"\n");
    served.up();
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let file = served.place.home().join("secrets/DEPLOY_TOKEN");
    assert_eq!(fs::read_to_string(&file).unwrap(), VALUE, "without the newline");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let folder = served.folder("shared");
    let spelled = "printf %s \"$DEPLOY_TOKEN\" | base64; printf 'u:%s' \"$DEPLOY_TOKEN\" | base64 -w0; echo; \
        printf 'us:%s' \"$DEPLOY_TOKEN\" | base64 -w0; echo; printf 'key:%s' \"$DEPLOY_TOKEN\" | base64 -w 7; echo; \
        printf %s \"$DEPLOY_TOKEN\" | od -An -tx1 | tr -d '\\n' | tr ' ' %; echo";
    let rounds = json!([
        calls(exec(&format!("{SEEN}; {spelled}"), LONG_MS)),
        calls(exec("echo \"$DEPLOY_TOKEN\" >&2", LONG_MS)),
        calls(exec("printf '%s\\n' \"$DEPLOY_TOKEN\" > leaked; env > env.txt", LONG_MS)),
        calls(tool("ReadFile", json!({ "path": "leaked" }))),
        calls(tool("Grep", json!({ "pattern": "house", "path": "leaked" }))),
        { "text": "Done." },
    ]);
    create(&served, "given", &folder, &rounds, json!({ "secrets": ["DEPLOY_TOKEN"] }));
    let (stdout, result) = ran(&served, "given");
    let mask = Mask::new([("DEPLOY_TOKEN", VALUE)]);
    assert!(stdout.starts_with(MASKED), "{result}");
    assert_eq!(mask.masked_text(&stdout), None);
    assert_eq!(stdout.matches("(secret DEPLOY_TOKEN)").count(), 6, "{stdout}");
    assert_eq!(served.results("given", "ExecCommand")[1]["stderr"], "(secret DEPLOY_TOKEN)\n");
    assert!(fs::read_to_string(folder.join("env.txt")).unwrap().contains(VALUE), "it was really there");
    assert_eq!(served.results("given", "ReadFile")[0]["content"], "(secret DEPLOY_TOKEN)\n");
    assert!(served.results("given", "Grep")[0].to_string().contains("(secret DEPLOY_TOKEN)"));
    // A task that a person starts is the agent's own command, too; its output is masked where it is kept.
    // Half of the value comes with one write, half with the next.
    let halves = "printf 'begun\\n%s' \"${DEPLOY_TOKEN:0:9}\"; printf '%s\\n' \"${DEPLOY_TOKEN:9}\"";
    let task = served.run_task("given", halves);
    let output = |task: &str| served.get(&format!("/v1/agents/given/tasks/{task}/output"))["output"].clone();
    served.until_task("given", &task, "completed");
    assert_eq!(output(&task), "begun\n(secret DEPLOY_TOKEN)\n");
    // After a pause the first half is shown, as any other text is; the rest of the value is not.
    let paused = halves.replacen(';', &format!("; {};", until_there("go")), 1);
    let task = served.run_task("given", &paused);
    let half = format!("begun\n{}", &VALUE[..9]);
    until("the first half", || (output(&task) == half.as_str()).then_some(()));
    fs::write(folder.join("go"), "").unwrap();
    served.until_task("given", &task, "completed");
    assert_eq!(output(&task), format!("{half}(secret DEPLOY_TOKEN)\n"));

    // Another agent of the same folder neither has it, nor reads it there.
    let rounds =
        json!([calls(exec(SEEN, LONG_MS)), calls(tool("ReadFile", json!({ "path": "leaked" }))), { "text": "Done." }]);
    served.post("/v1/agents/given/stop", &json!({}));
    create(&served, "other", &folder, &rounds, json!({}));
    assert_eq!(ran(&served, "other").0, UNSET);
    assert_eq!(served.results("other", "ReadFile")[0]["content"], "(secret DEPLOY_TOKEN)\n");
    served.post("/v1/agents/other/stop", &json!({}));

    // The check of a timer has none.
    served.post("/v1/agents/given/start", &json!({}));
    let check = format!("{SEEN} > checked; exit 1");
    served.post("/v1/agents/given/timers", &json!({ "summary": "look", "after_ms": 1, "check": check }));
    let checked = folder.join("checked");
    until("the check", || fs::read_to_string(&checked).ok().filter(|text| text == UNSET));

    // It is shown by name, and survives a kill.
    let shown = served.get("/v1/agents/given");
    assert_eq!(shown["execution"]["credentials"]["secrets"], json!(["DEPLOY_TOKEN"]));
    let list = served.items("/v1/secrets");
    assert_eq!(list, [json!({ "name": "DEPLOY_TOKEN", "source": "home", "agents": ["given"] })]);
    served.kill_and_up();
    let task = served.run_task("given", SEEN);
    served.until_task("given", &task, "completed");
    assert_eq!(served.get(&format!("/v1/agents/given/tasks/{task}/output"))["output"], MASKED);
    served.stop_and_verify();
    assert_nowhere(&served, "DEPLOY_TOKEN", VALUE);
}

/// An agent that was not given a secret could try its guesses, one character after the other, if text that begins as the
/// value does were shown otherwise or later than any other text.
#[test]
fn a_guess_at_the_beginning_of_a_value_is_shown_as_any_other_text() {
    let mut served = Served::start();
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let folder = served.folder("work");
    let long = "x".repeat(20_000);
    let guesses = ["s", &VALUE[..9], &VALUE[..VALUE.len() - 1], "other"];
    for (nth, guess) in guesses.iter().enumerate() {
        fs::write(folder.join(format!("guess{nth}")), format!("{}{guess}\n{long}\n", &long[..500 - guess.len()]))
            .unwrap();
    }
    let reads = (0..guesses.len()).map(|nth| tool("ReadFile", json!({ "path": format!("guess{nth}") })));
    let greps = (0..guesses.len()).map(|nth| tool("Grep", json!({ "pattern": "x", "path": format!("guess{nth}") })));
    let rounds: Vec<Value> = reads.chain(greps).map(calls).chain([json!({ "text": "Done." })]).collect();
    create(&served, "guesser", &folder, &json!(rounds), json!({}));
    told(&served, "guesser");
    for (nth, guess) in guesses.iter().enumerate() {
        let read = &served.results("guesser", "ReadFile")[nth]["content"];
        assert!(read.as_str().unwrap().contains(&format!("x{guess}\n")), "{guess}: {read}");
        let found = &served.results("guesser", "Grep")[nth]["matches"][0]["text"];
        assert!(found.as_str().unwrap().ends_with(&format!("x{guess}")), "{guess}: {found}");
        let task =
            served.run_task("guesser", &format!("printf 'begun %s' '{guess}'; {}", until_there(&format!("go{nth}"))));
        let output = || served.get(&format!("/v1/agents/guesser/tasks/{task}/output"))["output"].clone();
        until("the guess", || (output() == format!("begun {guess}")).then_some(()));
        fs::write(folder.join(format!("go{nth}")), "").unwrap();
        served.until_task("guesser", &task, "completed");
        assert_eq!(output(), format!("begun {guess}"));
    }
    served.stop_and_verify();
}

/// Long lines are shown in part: the value in them is masked before they are.
#[test]
fn a_value_is_masked_where_its_line_is_truncated() {
    let mut served = Served::start();
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let folder = served.folder("work");
    // Where ReadFile, Grep and a refusal of EditFile end a line, within the value.
    let words: String = (0..9_000).map(|number| format!("{number},")).collect();
    for (name, shown, after) in [("read", 16 << 10, 20_000), ("grep", 500, 20_000), ("edit", 160, 20)] {
        let line = format!("{}x{VALUE}{}\n", &words[..shown - 10], "y".repeat(after));
        fs::write(folder.join(name), line).unwrap();
    }
    let rounds = json!([
        calls(tool("ReadFile", json!({ "path": "read" }))),
        calls(tool("Grep", json!({ "path": "grep", "pattern": "x" }))),
        calls(tool("EditFile", json!({ "path": "edit", "old": &words[..160], "new": "" }))),
        { "text": "Done." },
    ]);
    create(&served, "reader", &folder, &rounds, json!({}));
    told(&served, "reader");
    for tool in ["ReadFile", "Grep", "EditFile"] {
        let shown = served.results("reader", tool)[0].to_string();
        assert!(!shown.contains(&VALUE[..4]) && shown.contains("x(secret "), "{tool} {shown}");
    }
    served.stop_and_verify();
}

/// A model can put a value together again that it read in pieces, and a command can use it as a name.
#[test]
fn no_value_is_recorded_that_a_model_or_a_command_names() {
    let mut served = Served::start();
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let folder = served.folder("work");
    git(&folder, &["init", "-q"]);
    let rounds = json!([
        calls(exec("ln -s \"$DEPLOY_TOKEN\" .git/x; mkdir -p \"$DEPLOY_TOKEN\"", LONG_MS)),
        calls(tool("CreateWorkItem", json!({ "objective": VALUE }))),
        calls(tool("SendMessage", json!({ "agent_id": "other", "text": format!("it is {VALUE}") }))),
        calls(tool("NotifyOperator", json!({ "text": VALUE }))),
        calls(tool("CreateTimer", json!({ "summary": VALUE, "after_ms": 3_600_000 }))),
        calls(tool("WriteFile", json!({ "path": "written", "content": VALUE }))),
        calls(tool(VALUE, json!({ (VALUE): VALUE }))),
        { "text": format!("Said {VALUE}.") },
    ]);
    served.create("other", "script/echo");
    create(&served, "given", &folder, &rounds, json!({ "secrets": ["DEPLOY_TOKEN"] }));
    told(&served, "given");
    let evidence = served.results("given", "ExecCommand")[0]["evidence"].to_string();
    assert!(evidence.contains("x is a new link to (secret DEPLOY_TOKEN)"), "{evidence}");
    assert_eq!(fs::read_to_string(folder.join("written")).unwrap(), "(secret DEPLOY_TOKEN)");
    served.until_fact("other", "message.queued", |message| message.to_string().contains("it is (secret DEPLOY_TOKEN)"));
    served.stop_and_verify();
    assert_nowhere(&served, "DEPLOY_TOKEN", VALUE);
}

#[test]
fn guides_and_skills_are_masked_in_prompts() {
    let provider = Provider::start(|_, _| odd_answers::text("Well."));
    let mut served = provider.served("");
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let folder = served.folder("work");
    let skill = folder.join(".agents/skills/deploy");
    fs::create_dir_all(&skill).unwrap();
    fs::write(folder.join("AGENTS.md"), format!("Deploy with {VALUE} always.\n")).unwrap();
    let description = format!("{}{VALUE} and more", "d".repeat(1_012));
    fs::write(skill.join("SKILL.md"), format!("---\nname: deploy\ndescription: {description}\n---\n")).unwrap();
    assert_eq!(patch(&served, "thinker", json!({ "workspace": folder })).status, 200);
    served.until_told("thinker", &served.send("thinker", "go"));
    let asked = provider.asked().concat();
    assert!(asked.contains("Deploy with (secret DEPLOY_TOKEN) always."), "{asked}");
    assert!(asked.contains("dd(secret"), "{asked}");
    assert!(!asked.contains(&VALUE[..6]), "{asked}");
    served.stop_and_verify();
}

#[test]
fn no_other_command_finds_a_secret_among_the_processes() {
    for (bubblewrap, mechanism) in [(true, "bubblewrap"), (false, "landlock")] {
        let mut served = Served::down("");
        let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
        if !bubblewrap {
            command.env("PATH", without_bubblewrap(&served));
        }
        served.daemon = Some(Daemon::of(command));
        set_secret(&served, "DEPLOY_TOKEN", VALUE);
        let (mine, theirs) = (served.folder("mine"), served.folder("theirs"));
        create(&served, "given", &mine, &json!([]), json!({ "secrets": ["DEPLOY_TOKEN"] }));
        create(&served, "other", &theirs, &json!([]), json!({}));
        assert_eq!(served.get("/v1/agents/given")["execution"]["sandbox"]["mechanism"], mechanism);
        let path = "PATH=/usr/bin:/bin";
        let begins = format!("{path}; {SEEN} > seen; touch begun; {}", until_there("end"));
        let long = served.run_task("given", &begins);
        until("the command", || mine.join("begun").exists().then_some(()));
        assert!(fs::read_to_string(mine.join("seen")).unwrap().contains(VALUE), "it is there to be found");
        // The name of the variable: a value would be masked in what it prints.
        let look = format!(
            "{path}; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '^DEPLOY_TOKEN='; true"
        );
        let task = served.run_task("other", &look);
        served.until_task("other", &task, "completed");
        assert_eq!(served.get(&format!("/v1/agents/other/tasks/{task}/output"))["output"], "0\n", "{mechanism}");
        // Nor is it on a command line that any user can see.
        let seen = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(VALUE))
        });
        assert!(!seen);
        fs::write(mine.join("end"), "").unwrap();
        served.until_task("given", &long, "completed");
        served.stop_and_verify();
    }
}

#[test]
fn children_have_what_is_for_children_and_named_agents_have_nothing() {
    let mut served = Served::start_offering(&["child"]);
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    served.script("child", &json!({ "rounds": [calls(exec(SEEN, LONG_MS)), { "text": "Seen." }] }));
    let model = format!("script/{}", text(&served.place.path("child.json")));
    for (lead, for_children, expected) in [("alone", false, UNSET), ("family", true, MASKED)] {
        let folder = served.folder(lead);
        let rounds = json!([
            calls(tool("SpawnAgent", json!({ "message": "look", "workspace_mode": "inherit", "model": model }))),
            calls(tool("WaitFor", json!({ "wake": "task_result", "resource": result(TASK, 1), "reason": "it" }))),
            { "text": "Done." },
        ]);
        create(&served, lead, &folder, &rounds, json!({ "secrets": ["DEPLOY_TOKEN"], "for_children": for_children }));
        served.send(lead, "go");
        let child = format!("{lead}.1");
        let seen = until("the child's command", || {
            let made = served.call("GET", &format!("/v1/agents/{child}/events"), &[], None);
            (made.status == 200).then(|| served.results(&child, "ExecCommand").into_iter().next()).flatten()
        });
        assert_eq!(seen["stdout"], expected, "{lead}");
    }
    let rounds = json!([calls(tool("SpawnAgent", json!({ "message": "look", "name": "made", "model": model }))), { "text": "Done." }]);
    let more = json!({ "secrets": ["DEPLOY_TOKEN"], "env": { "PLAIN": "value" }, "for_children": true });
    create(&served, "maker", &served.folder("maker"), &rounds, more);
    served.send("maker", "go");
    let created = until("the named agent", || {
        let made = served.call("GET", "/v1/agents/made/events", &[], None);
        (made.status == 200).then(|| served.facts("made", "agent.created").into_iter().next()).flatten()
    });
    assert_eq!(created["config"]["credentials"], Value::Null, "{created}");
    served.stop_and_verify();
}

#[test]
fn a_secret_that_is_removed_is_missed_by_name() {
    let mut served = Served::start();
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let rounds = json!([calls(exec(SEEN, LONG_MS)), { "text": "Done." }]);
    create(&served, "given", &served.folder("work"), &rounds, json!({ "secrets": ["DEPLOY_TOKEN"] }));
    let said = served.place.says(&["secret", "remove", "DEPLOY_TOKEN"]);
    assert_eq!(said, "DEPLOY_TOKEN is removed\ncommands of given start without it from now on\n");
    assert!(!served.place.home().join("secrets/DEPLOY_TOKEN").exists());
    let (stdout, result) = ran(&served, "given");
    assert_eq!(stdout, UNSET);
    let note = result["note"].as_str().unwrap();
    assert_eq!(note, "started without DEPLOY_TOKEN: given to this agent, and not set in the daemon");
    let shown = served.get("/v1/agents/given");
    assert_eq!(shown["execution"]["credentials"]["missing"], json!(["DEPLOY_TOKEN"]));
    assert!(served.place.says(&["agent", "show", "given"]).contains("DEPLOY_TOKEN: its commands start without"));
    assert!(served.place.says(&["secret", "list"]).contains("missing"));
    served.place.refused(8, &["secret", "remove", "DEPLOY_TOKEN"]);
    served.stop_and_verify();
}

#[test]
fn only_an_admin_gives_secrets_and_only_those_that_there_are() {
    let mut served = Served::start();
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    served.create("given", "script/echo");
    let token = served.post("/v1/tokens", &json!({ "name": "ops", "scope": "operator" }));
    let mut operator = served.address();
    operator.token = token["token"].as_str().unwrap().to_owned();
    let wire =
        || crate::wire::Wire::new(crate::wire::Address { host: operator.host.clone(), token: operator.token.clone() });
    let ask = |method: &str, path: &str, body: Value| wire().send(method, path, &[], Some(&body)).unwrap();
    for change in [
        json!({ "secrets": ["DEPLOY_TOKEN"] }),
        json!({ "git_credentials": { "git.example": "DEPLOY_TOKEN" } }),
        json!({ "ssh_agent": true }),
        json!({ "for_children": true }),
    ] {
        let answer = ask("PATCH", "/v1/agents/given", change.clone());
        assert_eq!((answer.status, &answer.body["code"]), (403, &json!("scope")), "{change} {}", answer.body);
    }
    assert_eq!(ask("PATCH", "/v1/agents/given", json!({ "env": { "CI": "1" } })).status, 200);
    assert_eq!(ask("PUT", "/v1/secrets/OTHER", json!({ "value": "12345678" })).status, 403);
    assert_eq!(ask("GET", "/v1/secrets", json!({})).status, 403);

    let answer = patch(&served, "given", json!({ "secrets": ["DEPLOY_TOKEN", "NOBODY_SET_IT"] }));
    assert_eq!((answer.status, &answer.body["code"]), (409, &json!("no_secret")), "{}", answer.body);
    assert_eq!(answer.body["pointer"], "/secrets/1");
    for (change, pointer) in [
        (json!({ "env": { "ABIDE_X": "1" } }), "/env/ABIDE_X"),
        (json!({ "env": { "HOME": "/" } }), "/env/HOME"),
        (json!({ "secrets": ["PATH"] }), "/secrets/0"),
        (json!({ "git_credentials": { "*.example": "DEPLOY_TOKEN" } }), "/git_credentials/*.example"),
        (json!({ "known_hosts": "x ssh-ed25519 AAAA" }), "/known_hosts"),
    ] {
        let answer = patch(&served, "given", change.clone());
        assert_eq!((answer.status, &answer.body["pointer"]), (422, &json!(pointer)), "{change} {}", answer.body);
    }
    let shown = served.get("/v1/agents/given");
    assert_eq!(shown["execution"]["credentials"]["secrets"], json!([]), "nothing changed: {shown}");
    served.stop_and_verify();
}

#[test]
fn values_that_are_too_short_are_refused_and_not_repeated() {
    let mut served = Served::start();
    let ran = with_input(&served.place, &["secret", "set", "DEPLOY_TOKEN"], "seven77\n");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("at least 8 bytes") && !ran.err.contains("seven77"), "{}", ran.err);
    assert!(served.items("/v1/secrets").is_empty());
    let ran = with_input(&served.place, &["secret", "set", "LD_PRELOAD"], "long enough");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    set_secret(&served, "DEPLOY_TOKEN", "eight888");
    served.stop_and_verify();
}

#[test]
fn variables_of_the_daemon_are_secrets_where_they_are_given_and_keys_of_models_never() {
    let mut served = Served::down("");
    let start = |served: &Served| {
        let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
        command.env("DEPLOY_TOKEN", VALUE).env("ANTHROPIC_API_KEY", "sk-ant-not-a-key-of-anybody");
        Daemon::of(command)
    };
    served.daemon = Some(start(&served));
    let rounds = json!([calls(exec(SEEN, LONG_MS)), { "text": "Done." }]);
    create(&served, "given", &served.folder("work"), &rounds, json!({ "secrets": ["DEPLOY_TOKEN"] }));
    create(&served, "other", &served.folder("else"), &rounds, json!({}));
    assert_eq!(ran(&served, "given").0, MASKED);
    assert_eq!(ran(&served, "other").0, UNSET);
    let list = served.items("/v1/secrets");
    assert_eq!(list, [json!({ "name": "DEPLOY_TOKEN", "source": "environment", "agents": ["given"] })]);
    let answer = patch(&served, "given", json!({ "secrets": ["ANTHROPIC_API_KEY"] }));
    assert_eq!(answer.body["code"], "no_secret", "{}", answer.body);
    served.kill();
    served.daemon = Some(start(&served));
    // What was given before is masked from the start on.
    let file = served.folder("else").join("leaked");
    fs::write(file, VALUE).unwrap();
    let task = served.run_task("other", "cat leaked");
    served.until_task("other", &task, "completed");
    let output = served.get(&format!("/v1/agents/other/tasks/{task}/output"));
    assert_eq!(output["output"], "(secret DEPLOY_TOKEN)");
    served.stop();
}

#[test]
fn the_settings_give_to_every_agent_that_a_person_makes() {
    let settings = "[agent]\nenv = [\"CI=1\"]\nsecrets = [\"DEPLOY_TOKEN\"]\nfor_children = true\n";
    let mut served = Served::start_with(settings);
    let answer = served.call("POST", "/v1/agents", &[], Some(&json!({ "id": "early" })));
    assert_eq!((answer.status, &answer.body["code"]), (409, &json!("no_secret")), "{}", answer.body);
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let rounds = json!([calls(exec(&format!("echo $CI; {SEEN}"), LONG_MS)), { "text": "Done." }]);
    create(&served, "given", &served.folder("work"), &rounds, json!({}));
    assert_eq!(ran(&served, "given").0, format!("1\n{MASKED}"));
    create(&served, "other", &served.folder("else"), &rounds, json!({ "secrets": [] }));
    assert_eq!(ran(&served, "other").0, format!("1\n{UNSET}"));
    let listed = served.place.says(&["config", "show"]);
    assert!(listed.contains("agent.secrets") && listed.contains("DEPLOY_TOKEN"), "{listed}");
    served.stop_and_verify();
}

#[test]
fn a_fork_has_none_of_the_credentials() {
    let mut served = Served::start();
    set_secret(&served, "DEPLOY_TOKEN", VALUE);
    let more = json!({ "secrets": ["DEPLOY_TOKEN"], "env": { "CI": "1" } });
    create(&served, "given", &served.folder("work"), &json!([]), more);
    let seq = served.get("/v1/agents/given")["at_seq"].as_u64().unwrap();
    served.post("/v1/ledger/fork", &json!({ "agent": "given", "at": seq, "as": "forked" }));
    assert_eq!(served.get("/v1/agents/forked")["execution"]["credentials"], Value::Null);
    assert_eq!(served.items("/v1/secrets")[0]["agents"], json!(["given"]));
    served.stop_and_verify();
}

#[test]
fn the_command_line_adds_and_takes_away() {
    let mut served = Served::start();
    set_secret(&served, "ONE", "first value");
    set_secret(&served, "TWO", "second value");
    let say = |args: &[&str]| served.place.says(args);
    let known = served.place.write("known_hosts", "git.example ssh-ed25519 AAAA\n");
    say(&["agent", "create", "given", "--secret", "ONE", "--env", "CI=1"]);
    let credentials = || served.get("/v1/agents/given")["execution"]["credentials"].clone();
    assert_eq!((&credentials()["secrets"], &credentials()["env"]), (&json!(["ONE"]), &json!({ "CI": "1" })));
    say(&["agent", "set", "given", "--secret", "TWO", "--for-children"]);
    assert_eq!((&credentials()["secrets"], &credentials()["for_children"]), (&json!(["ONE", "TWO"]), &json!(true)));
    let ran = served.place.run(&["agent", "set", "given", "--git-credential", "git.example=ONE"]);
    assert!(ran.err.contains("given has no network"), "{}", ran.err);
    assert_eq!(credentials()["git_credentials"], json!({ "git.example": "ONE" }));
    say(&["agent", "set", "given", "--git-credential", "none"]);
    say(&["agent", "set", "given", "--secret", "none", "--secret", "TWO", "--env", "none", "--for-children=off"]);
    assert_eq!((&credentials()["secrets"], &credentials()["env"]), (&json!(["TWO"]), &json!({})));
    let ran = served.place.run(&["agent", "set", "given", "--env", "no value"]);
    assert!(ran.code == Some(2) && ran.err.contains("write NAME=VALUE"), "{}", ran.err);
    served.place.refused(6, &["agent", "set", "given", "--ssh-agent", "--known-hosts", text(&known)]);
    served.stop_and_verify();
}

/// A folder for `PATH` in which there is git, and no bubblewrap.
pub fn without_bubblewrap(served: &Served) -> PathBuf {
    let bin = served.folder("bin");
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.exists()).unwrap();
    symlink(git.canonicalize().unwrap(), bin.join("git")).unwrap();
    bin
}

#[test]
fn an_ssh_agent_is_refused_where_bubblewrap_does_not_confine() {
    for (settings, with) in [("sandbox = \"off\"\n", "no sandbox"), ("", "Landlock")] {
        let mut served = Served::down(settings);
        let bin = without_bubblewrap(&served);
        let socket = std::os::unix::net::UnixListener::bind(served.place.path("agent.sock")).unwrap();
        // Without bubblewrap in PATH there is Landlock.
        let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
        command.env("SSH_AUTH_SOCK", served.place.path("agent.sock")).env("PATH", &bin);
        served.daemon = Some(Daemon::of(command));
        served.create("given", "script/echo");
        let answer = patch(&served, "given", json!({ "ssh_agent": true }));
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (409, &json!("ssh_agent_needs_bubblewrap")),
            "{}",
            answer.body
        );
        assert!(answer.body["detail"].as_str().unwrap().contains(with), "{}", answer.body);
        assert!(answer.body["hint"].as_str().unwrap().contains("bubblewrap"), "{}", answer.body);
        drop(socket);
        served.stop_and_verify();
    }
}
