//! Connections and open files: a daemon that runs out of file descriptors, and clients that hold connections for nothing.
//! No turn fails for good, and nobody is kept out.

use std::fs;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::{Value, json};

use crate::hands::{LONG_MS, calls, exec, tool, until_there};
use crate::place::Daemon;
use crate::served::{Served, of_kind, until};
use crate::wire::{Address, Wire};

/// Starts the daemon with these limits of open files, and its log in a file.
fn up_with(served: &mut Served, soft: u64, hard: u64) {
    let abide = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    let limited = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &limited]).arg(abide.get_program()).args(abide.get_args());
    command.current_dir(abide.get_current_dir().unwrap()).env_clear().env("ABIDE_LOG", "warn");
    for (name, value) in abide.get_envs() {
        command.env(name, value.unwrap());
    }
    command.stderr(File::create(served.place.path("log")).unwrap());
    served.daemon = Some(Daemon::of(command));
}

/// This process holds the other ends of all connections.
fn raise_own_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Changes the soft limit of a daemon that runs.
fn limit(served: &Served, soft: u64) {
    let pid = Pid::from_raw(served.daemon.as_ref().unwrap().pid().try_into().unwrap());
    prlimit(pid, Resource::Nofile, Rlimit { current: Some(soft), maximum: Some(900) }).unwrap();
}

/// A connection that is there before descriptors are short, for what is asked meanwhile.
fn wire(served: &Served) -> Wire {
    let mut wire = Wire::new(served.address());
    assert_eq!(wire.send("GET", "/v1/agents", &[], None).unwrap().status, 200);
    wire
}

/// The agent's events; none while they can't be read.
fn events(wire: &mut Wire, agent: &str) -> Vec<Value> {
    let answer = wire.send("GET", &format!("/v1/agents/{agent}/events?limit=1000"), &[], None).unwrap();
    answer.body["items"].as_array().cloned().unwrap_or_default()
}

fn metric(wire: &mut Wire, name: &str) -> u64 {
    let text = wire.send("GET", "/metrics", &[], None).unwrap().body;
    let line = text.as_str().unwrap().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    line.parse().unwrap()
}

/// Connections on which nothing is ever said. Some of them may be closed by now.
fn idle(address: &Address, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(&address.host).unwrap()).collect()
}

/// How every turn of the agent ended, and whether a message was given up.
fn ends(served: &Served, agent: &str) -> (Vec<Value>, usize) {
    let events = served.events(agent);
    let ends = of_kind(&events, "turn.terminal").iter().map(|end| end["terminal_kind"].clone()).collect();
    let failed = of_kind(&events, "brief.recorded").iter().filter(|brief| brief["kind"] == "failure").count();
    (ends, failed)
}

/// A timer that gives the agent a turn twice a second.
fn tick(served: &Served, agent: &str) {
    let model = served.script(agent, &json!({ "rounds": [{ "text": "tick" }], "loop": true }));
    served.create(agent, &model);
    served.post(&format!("/v1/agents/{agent}/timers"), &json!({ "summary": "tick", "every_ms": 500 }));
}

fn until_turns(served: &Served, agent: &str, count: usize) {
    until(&format!("{count} turns of {agent}"), || (ends(served, agent).0.len() >= count).then_some(()));
}

#[test]
fn the_daemon_raises_its_limit_and_programs_get_the_usual_one() {
    let mut served = Served::down("[notify]\ncommand = \"ulimit -Sn > told\"\n");
    up_with(&mut served, 300, 900);
    let limits = fs::read_to_string(format!("/proc/{}/limits", served.daemon.as_ref().unwrap().pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>()[3..5], ["900", "900"]);
    let notify = tool("NotifyOperator", json!({ "text": "look" }));
    served.create_playing("worker", &json!([calls(exec("ulimit -Sn; ulimit -Hn", 60_000)), calls(notify)]));
    served.send("worker", "go");
    let ran = served.until_fact("worker", "tool.finished", |_| true);
    assert_eq!(ran["result"]["stdout"], "300\n900\n", "{ran}");
    let told = until("a notification", || {
        fs::read_to_string(served.place.path("home/told")).ok().filter(|told| told.ends_with('\n'))
    });
    assert_eq!(told, "300\n");
}

/// The reproduction: 1,400 sockets held against 1,024 descriptors, and an agent that has nothing to do with it.
#[test]
fn idle_connections_stop_neither_turns_nor_the_command_line() {
    raise_own_limit();
    let mut served = Served::down("");
    up_with(&mut served, 1_024, 1_024);
    tick(&served, "bystander");
    until_turns(&served, "bystander", 1);
    let held = idle(&served.address(), 1_400);
    let before = ends(&served, "bystander").0.len();
    for _ in 0..5 {
        served.place.json(&["agent", "list"]);
    }
    served.place.says(&["send", "bystander", "hello", "--wait", "--timeout", "60"]);
    until_turns(&served, "bystander", before + 5);
    let (ends, failed) = ends(&served, "bystander");
    assert_eq!((ends.iter().find(|end| **end != "completed"), failed), (None, 0), "{ends:?}");
    let log = fs::read_to_string(served.place.path("log")).unwrap();
    assert!(!log.contains("could not"), "{log}");
    drop(held);
    served.stop_and_verify();
}

#[test]
fn a_turn_waits_for_descriptors_and_accepting_goes_on() {
    raise_own_limit();
    let mut served = Served::down("");
    up_with(&mut served, 300, 900);
    served.create_playing("worker", &json!([{ "text": "done" }]));
    let (address, mut wire) = (served.address(), wire(&served));
    // Standard input, output and error are open: no other file can be.
    limit(&served, 3);
    let body = json!({ "text": "hello" });
    let accepted = until("a message that is taken", || {
        let answer = wire.send("POST", "/v1/agents/worker/messages", &[], Some(&body)).unwrap();
        (answer.status == 202).then_some(answer.body)
    });
    // No connection can be accepted now; the waiting client is served as soon as there is a descriptor.
    let waiting = TcpStream::connect(&address.host).unwrap();
    until("failures to accept", || (metric(&mut wire, "abide_accept_failures_total") >= 3).then_some(()));
    let failed = until("a round that failed", || {
        of_kind(&events(&mut wire, "worker"), "turn.provider_round_failed").into_iter().next()
    });
    assert_eq!(failed["error"], "system", "{failed}");
    assert!(failed["message"].as_str().unwrap().contains("Too many open files"), "{failed}");
    limit(&served, 900);
    let told = served.until_told("worker", accepted["message_id"].as_str().unwrap());
    assert_eq!((&told["kind"], &told["text"]), (&json!("result"), &json!("done")));
    assert_eq!(ends(&served, "worker").1, 0);
    let log = fs::read_to_string(served.place.path("log")).unwrap();
    assert_eq!(log.matches("a connection could not be accepted").count(), 1, "{log}");
    drop(waiting);
    served.stop_and_verify();
}

#[test]
fn a_tool_without_descriptors_says_to_try_again_and_its_turn_goes_on() {
    let mut served = Served::down("");
    up_with(&mut served, 300, 900);
    let folder = served.folder("work");
    // Commands of a round run one after the other: the second begins when there is no descriptor any more.
    let waits = format!("touch begun; {}", until_there("go"));
    let both = json!({ "tools": [exec(&waits, LONG_MS), exec("echo second", LONG_MS)] });
    served.create_in("worker", &folder, &json!([both, calls(exec("echo again", LONG_MS)), { "text": "done" }]));
    let message = served.send("worker", "go");
    let mut wire = wire(&served);
    until("the first command", || folder.join("begun").exists().then_some(()));
    limit(&served, 3);
    fs::write(folder.join("go"), "").unwrap();
    let second = until("the second command", || of_kind(&events(&mut wire, "worker"), "tool.finished").get(1).cloned());
    limit(&served, 900);
    assert_eq!(second["status"], "failed", "{second}");
    assert!(second["result"]["error"]["message"].as_str().unwrap().contains("Too many open files"), "{second}");
    assert!(second["result"]["error"]["hint"].as_str().unwrap().contains("try again"), "{second}");
    let told = served.until_told("worker", &message);
    assert_eq!((&told["kind"], &told["text"]), (&json!("result"), &json!("done")));
    assert_eq!(served.results("worker", "ExecCommand")[2]["stdout"], "again\n");
    assert_eq!(ends(&served, "worker").1, 0);
}

/// An event stream that one client holds, or what it was told instead.
fn stream(address: &Address, token: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(&address.host).unwrap();
    let head = "GET /v1/events/stream HTTP/1.1\r\n";
    write!(stream, "{head}Host: {}\r\nAuthorization: Bearer {token}\r\n\r\n", address.host).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    (stream, line)
}

#[test]
fn event_streams_and_idle_connections_keep_nobody_out() {
    raise_own_limit();
    let mut served = Served::down("");
    up_with(&mut served, 1_024, 2_048);
    let address = served.address();
    let made = served.post("/v1/tokens", &json!({ "name": "other", "scope": "operator" }));
    let other = made["token"].as_str().unwrap().to_owned();
    // With the token that the command line has, too.
    let streams: Vec<_> = (0..1_100).map(|_| stream(&address, &address.token)).collect();
    let open = streams.iter().filter(|(_, line)| line.starts_with("HTTP/1.1 200")).count();
    // A quarter of the 1,536 connections that 2,048 descriptors leave room for; its requests have another quarter.
    assert_eq!(open, 384);
    assert!(streams.iter().all(|(_, line)| [" 200 ", " 429 "].iter().any(|status| line.contains(status))));
    let held = idle(&address, 1_500);
    for token in [&other, &address.token] {
        let mut wire = Wire::new(Address { token: token.clone(), ..address.clone() });
        for _ in 0..20 {
            let answer = wire.send("GET", "/v1/agents", &[], None).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    }
    assert!(stream(&address, &other).1.starts_with("HTTP/1.1 200"));
    served.place.json(&["agent", "list"]);
    served.create("a", "script/echo");
    served.place.says(&["send", "a", "hello", "--wait", "--timeout", "60"]);
    drop((streams, held));
    served.stop_and_verify();
}
