//! Models over the network: a daemon whose providers are played by aimock, a server that is not ours. It answers in the
//! streams of each provider, with tool calls and faults.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::place::Daemon;
use crate::served::{Served, until};

/// One of each protocol.
const MODELS: [&str; 3] = ["anthropic/claude-haiku-4-5", "openai/gpt-5", "openai-chat/gpt-5-mini"];
const KEY: &str = "sk-test-4711-secret-of-the-tests";

/// The server, gone with this.
struct Aimock {
    child: Child,
    address: String,
}

impl Aimock {
    /// On a free port, with these answers: the first that fits is given.
    fn start(served: &Served, fixtures: &Value) -> Aimock {
        let program = Path::new(env!("CARGO_BIN_EXE_abide")).ancestors().nth(2).unwrap();
        let program = program.join("aimock/node_modules/@copilotkit/aimock/dist/cli.js");
        assert!(program.is_file(), "{} is missing: `cargo xtask aimock` installs it", program.display());
        let answers = served.place.write("aimock.json", json!({ "fixtures": fixtures }).to_string());
        let log = served.place.path("aimock.log");
        let out = fs::File::create(&log).unwrap();
        let mut command = Command::new("node");
        command.arg(program).args(["--port", "0", "--chunk-size", "4", "--fixtures"]).arg(answers);
        let child = command.stdin(Stdio::null()).stderr(out.try_clone().unwrap()).stdout(out).spawn().unwrap();
        let address = until("aimock", || {
            let said = fs::read_to_string(&log).ok()?;
            let rest = said.split_once("listening on http://")?.1;
            Some(rest.split_once('\n')?.0.trim().to_owned())
        });
        Aimock { child, address }
    }

    /// Every request for a model so far, as the server understood it.
    fn asked(&self) -> Vec<Value> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /__aimock/journal HTTP/1.0\r\nHost: aimock\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let journal: Vec<Value> = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        journal.into_iter().filter(|entry| entry["method"] == "POST").collect()
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn log(served: &Served) -> PathBuf {
    served.place.path("stderr")
}

/// A daemon whose providers are all at aimock.
fn up(served: &mut Served, aimock: &Aimock) {
    let errors = fs::OpenOptions::new().create(true).append(true).open(log(served)).unwrap();
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    let (url, versioned) = (format!("http://{}", aimock.address), format!("http://{}/v1", aimock.address));
    command.envs([("ANTHROPIC_API_KEY", KEY), ("OPENAI_API_KEY", KEY)]);
    command.envs([("ANTHROPIC_BASE_URL", url), ("OPENAI_BASE_URL", versioned)]).stderr(errors);
    served.daemon = Some(Daemon::of(command));
}

/// A home, its daemon, and who answers for its providers.
fn start(fixtures: &Value) -> (Served, Aimock) {
    let mut served = Served::down("model = \"script/echo\"\n");
    let aimock = Aimock::start(&served, fixtures);
    up(&mut served, &aimock);
    (served, aimock)
}

/// An agent for each protocol, by the provider's name.
fn agents(served: &Served) -> Vec<&'static str> {
    let create = |model: &'static str| {
        let name = model.split('/').next().unwrap();
        let folder = served.folder(&format!("work-{name}"));
        served.post("/v1/agents", &json!({ "id": name, "model": model, "workspace": folder }));
        name
    };
    MODELS.into_iter().map(create).collect()
}

/// The answer of each agent to the same message.
fn answers(served: &Served, agents: &[&str], text: &str) -> Vec<String> {
    let sent: Vec<(&str, String)> = agents.iter().map(|agent| (*agent, served.send(agent, text))).collect();
    let told = sent.iter().map(|(agent, message)| served.until_told(agent, message));
    told.map(|brief| brief["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Nothing that is kept or shown has the key in it.
fn stop_and_see_no_key(served: &mut Served, agents: &[&str]) {
    for agent in agents {
        for plane in ["", "/export", "/transcript", "/why", "/events"] {
            let answer = served.call("GET", &format!("/v1/agents/{agent}{plane}"), &[], None);
            assert!(!answer.body.to_string().contains(KEY), "{agent}{plane}");
        }
    }
    served.stop_and_verify();
    let export = served.place.path("export.ndjson");
    served.place.says(&["ledger", "export", "--full", export.to_str().unwrap()]);
    for file in [export, log(served)] {
        assert!(!String::from_utf8_lossy(&fs::read(&file).unwrap()).contains(KEY), "{}", file.display());
    }
    for (path, bytes) in crate::place::contents(&served.place.home()) {
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "{}", path.display());
    }
}

/// For each model: its first call gets the first of these answers, and so on; any call after the last gets `ok`. Models are
/// told apart by their names, which no two protocols share here.
fn in_turn(answers: &[Value]) -> Value {
    let mut fixtures = Vec::new();
    for model in MODELS {
        let (_, id) = model.split_once('/').unwrap();
        for (index, answer) in answers.iter().enumerate() {
            let mut fixture = answer.clone();
            fixture["match"] = json!({ "model": id, "sequenceIndex": index });
            fixtures.push(fixture);
        }
    }
    fixtures.push(json!({ "match": {}, "response": { "content": "ok" } }));
    json!(fixtures)
}

fn text(content: &str) -> Value {
    json!({ "response": { "content": content } })
}

/// Commands, all of them in one round.
fn commands(commands: &[&str]) -> Value {
    let call = |cmd: &&str| json!({ "name": "ExecCommand", "arguments": { "cmd": cmd } });
    json!({ "response": { "toolCalls": commands.iter().map(call).collect::<Vec<_>>() } })
}

/// The requests for one model, in order.
fn asked_of<'a>(asked: &'a [Value], model: &str) -> Vec<&'a Vec<Value>> {
    let (_, id) = model.split_once('/').unwrap();
    let of_it = asked.iter().filter(|entry| entry["body"]["model"] == id);
    of_it.map(|entry| entry["body"]["messages"].as_array().unwrap()).collect()
}

#[test]
fn every_protocol_answers_calls_tools_and_reads_what_came_of_them() {
    let (mut served, aimock) = start(&in_turn(&[
        text("Hello from far away."),
        commands(&["echo built > out.txt; cat out.txt"]),
        text("It is built."),
        commands(&["echo first > a; cat a", "echo second > b; cat b"]),
        text("Both ran."),
    ]));
    let agents = agents(&served);
    assert_eq!(answers(&served, &agents, "say hello"), ["Hello from far away."; 3]);
    assert_eq!(answers(&served, &agents, "build it"), ["It is built."; 3]);
    assert_eq!(answers(&served, &agents, "both at once"), ["Both ran."; 3]);
    for agent in &agents {
        let ran: Vec<Value> =
            served.results(agent, "ExecCommand").iter().map(|result| result["stdout"].clone()).collect();
        assert_eq!(ran.len(), 3, "{agent}: no call runs twice");
        assert!(["built\n", "first\n", "second\n"].iter().all(|said| ran.contains(&json!(said))), "{agent}: {ran:?}");
        let folder = served.folder(&format!("work-{agent}"));
        assert_eq!(fs::read_to_string(folder.join("out.txt")).unwrap(), "built\n");
        let summary = served.until_asleep(agent);
        assert_eq!(summary["model"]["answered_by"], summary["model"]["name"], "{summary}");
    }
    let asked = aimock.asked();
    for model in MODELS {
        let asked = asked_of(&asked, model);
        assert_eq!(asked.len(), 5, "{model}: nothing was asked twice");
        // Results of calls go back under the ids of the calls, in the same request if the calls were in one answer.
        let last = asked[4];
        let made = last.iter().flat_map(|message| message["tool_calls"].as_array().cloned().unwrap_or_default());
        let made: Vec<Value> = made.map(|call| call["id"].clone()).collect();
        let answered: Vec<&Value> = last.iter().filter(|message| message["role"] == "tool").collect();
        let ids: Vec<Value> = answered.iter().map(|message| message["tool_call_id"].clone()).collect();
        assert_eq!((made.len(), &ids), (3, &made), "{model}: {last:?}");
        for (message, said) in answered.iter().zip(["built", "first", "second"]) {
            assert!(message["content"].to_string().contains(said), "{model}: {message}");
        }
    }
    for model in MODELS {
        let tested = served.place.json(&["model", "test", model]);
        assert_eq!((&tested["ok"], &tested["error"]), (&json!(true), &Value::Null), "{tested}");
    }
    stop_and_see_no_key(&mut served, &agents);
}

#[test]
fn faults_become_waits_that_are_explained_and_the_agent_goes_on() {
    let fault = |message: &str, status: u16, kind: &str| json!({ "error": { "message": message, "type": kind }, "status": status });
    let mut limited = fault("slow down", 429, "rate_limit_error");
    limited["retryAfter"] = json!(1);
    let long = "This sentence is cut off long before its end is reached by anybody.";
    let (mut served, _aimock) = start(&in_turn(&[
        json!({ "response": limited }),
        text("Back again."),
        json!({ "response": fault("too much at once", 529, "overloaded_error") }),
        text("Room again."),
        json!({ "response": { "content": long }, "truncateAfterChunks": 5, "latency": 20 }),
        text("Whole again."),
    ]));
    let agents = agents(&served);
    assert_eq!(answers(&served, &agents, "the provider limits us"), ["Back again."; 3]);
    assert_eq!(answers(&served, &agents, "the provider has no room"), ["Room again."; 3]);
    assert_eq!(answers(&served, &agents, "the provider hangs up"), ["Whole again."; 3]);
    for agent in &agents {
        let failures = served.facts(agent, "turn.provider_round_failed");
        let classes: Vec<&Value> = failures.iter().map(|failure| &failure["error"]).collect();
        assert_eq!(classes, ["rate_limited", "overloaded", "disconnect"], "{agent}: {failures:?}");
        assert_eq!(failures[0]["retry_after_ms"], 1_000, "{agent}: the provider's own time");
        assert!(failures[0]["message"].as_str().unwrap().contains("slow down"), "{agent}: {failures:?}");
        // Each was a time to wait for that is on disk, and `why` says so.
        let waited = served
            .events(agent)
            .into_iter()
            .filter(|event| event["kind"] == "scheduler.decision" && event["data"]["reason"] == "provider_backoff");
        let waited: Vec<Value> = waited.collect();
        assert!(waited.len() >= 3, "{agent}: {waited:?}");
        let why = served.get(&format!("/v1/agents/{agent}/why?at={}", waited[0]["seq"]));
        assert_eq!(why["decision"]["reason"], "provider_backoff", "{agent}: {why}");
    }
    stop_and_see_no_key(&mut served, &agents);
}

#[test]
fn a_kill_in_the_middle_of_an_answer_leaves_one_answer_and_no_second_call() {
    let slow = json!({ "response": { "content": "word ".repeat(400) }, "latency": 20 });
    let (mut served, aimock) = start(&in_turn(&[commands(&["echo ran >> ran"]), slow, text("Counted.")]));
    let agents = agents(&served);
    let sent: Vec<(&str, String)> = agents.iter().map(|agent| (*agent, served.send(agent, "count"))).collect();
    // Each of them is in the middle of its second call, which takes its time.
    until("answers under way", || (aimock.asked().len() >= 2 * agents.len()).then_some(()));
    served.kill();
    up(&mut served, &aimock);
    for (agent, message) in &sent {
        assert_eq!(served.until_told(agent, message)["text"], "Counted.", "{agent}");
        served.until_asleep(agent);
        assert!(
            served.facts(agent, "exec.aborted").iter().any(|aborted| aborted["reason"] == "cut"),
            "{agent}: it was cut off"
        );
        let briefs = served.facts(agent, "brief.recorded");
        let told = briefs.iter().filter(|brief| brief["message_id"] == message.as_str());
        assert_eq!(told.count(), 1, "{agent} has one answer: {briefs:?}");
        let ran = fs::read_to_string(served.folder(&format!("work-{agent}")).join("ran")).unwrap();
        assert_eq!(ran, "ran\n", "{agent}: the call was not made again");
    }
    stop_and_see_no_key(&mut served, &agents);
}
