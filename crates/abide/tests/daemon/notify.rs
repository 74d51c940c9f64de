//! Notifications: what the operator's own command and webhook really get, also when the daemon is killed (issue 5.5).

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use abide_effects::webhook::Secret;
use serde_json::{Value, json};

use crate::hands::{calls, tool};
use crate::place::Daemon;
use crate::served::{Served, until};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn notify(text: &str) -> Value {
    tool("NotifyOperator", json!({ "text": text }))
}

/// The input of a command, line by line.
fn told(served: &Served) -> Vec<Value> {
    let text = fs::read_to_string(served.place.path("home/told")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn until_told(served: &Served, count: usize) -> Vec<Value> {
    until(&format!("{count} notifications"), || Some(told(served)).filter(|told| told.len() >= count))
}

/// Until it is written down that so many got through, and none was given up.
fn until_confirmed(served: &Served, sink: &str, count: u64) {
    until(&format!("{count} confirmed"), || {
        let place = fs::read(served.place.path(&format!("home/notify/{sink}.json"))).unwrap();
        let place: Value = serde_json::from_slice(&place).unwrap();
        (place["sent"] == count && place["failed"] == 0).then_some(())
    });
}

#[test]
fn a_command_is_told_what_needs_a_person() {
    let command = "echo $ABIDE_NOTIFY_KIND $ABIDE_AGENT $ABIDE_NOTIFY_ID >> names; cat >> told";
    let mut served = Served::start_with(&format!("[notify]\ncommand = {}\n", json!(command)));
    let approval = tool("RequestApproval", json!({ "summary": "ship it?" }));
    let wait = tool("WaitFor", json!({ "wake": "operator_input", "reason": "which colour" }));
    let rounds = json!([
        { "text": "An answer." },
        { "tools": [notify("look at this"), approval] },
        calls(wait),
        { "error": "auth" },
    ]);
    served.create_playing("worker", &rounds);
    served.send("worker", "one");
    served.send("worker", "two");
    let asked = served.until_fact("worker", "approval.requested", |_| true);
    let id = asked["approval_id"].as_str().unwrap();
    until_told(&served, 2);
    served.post(&format!("/v1/agents/worker/approvals/{id}/grant"), &json!({}));
    until_told(&served, 3);
    served.send("worker", "blue");
    let told = until_told(&served, 4);
    let kinds: Vec<&Value> = told.iter().map(|told| &told["kind"]).collect();
    assert_eq!(kinds, ["notify", "approval", "blocked", "failure"], "what is only an answer is not told");
    assert_eq!((&told[0]["text"], &told[0]["agent_id"]), (&json!("look at this"), &json!("worker")));
    assert_eq!((&told[1]["id"], &told[1]["approval"]["summary"]), (&json!(id), &json!("ship it?")));
    assert_eq!(told[1]["answer"], format!("abide approval grant {id} --agent worker"));
    assert!(told[2]["text"].as_str().unwrap().contains("which colour"), "{}", told[2]);
    let names = fs::read_to_string(served.place.path("home/names")).unwrap();
    assert!(names.contains(&format!("approval worker {id}\n")), "{names}");
    assert!(!served.place.path("names").exists(), "it does not run where the daemon was started");
    until_confirmed(&served, "command", 4);
    let metrics = served.get("/metrics");
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("abide_notifications_total 4"), "{metrics}");
    // A notice that was sent is not sent again.
    served.kill_and_up();
    served.script(
        "worker",
        &json!({ "rounds": [], "when": [
        { "contains": "more", "rounds": [{ "tools": [notify("once more")] }] },
    ] }),
    );
    served.send("worker", "more");
    let told = until_told(&served, 5);
    assert_eq!((told.len(), &told[4]["text"]), (5, &json!("once more")));
    served.stop_and_verify();
}

/// One request: its headers and its body. The answer is the caller's.
fn request(listener: &TcpListener) -> (TcpStream, Vec<(String, String)>, String) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let length = header(&headers, "content-length").parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (stream, headers, String::from_utf8(body).unwrap())
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    let found = headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no {name} in {headers:?}"))
}

fn answer(mut stream: TcpStream, status: &str) {
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
}

#[test]
fn a_webhook_gets_what_was_not_confirmed_again_after_a_kill() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let mut served = Served::down(&format!("[notify]\nwebhook = \"{url}\"\nsecret_env = \"HOOK_SECRET\"\n"));
    let up = |served: &mut Served| {
        let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
        command.env("HOOK_SECRET", SECRET);
        served.daemon = Some(Daemon::of(command));
    };
    let error = served.place.refused(1, &["up", "--listen", "127.0.0.1:0"]);
    assert!(error.contains("$HOOK_SECRET is not set"), "{error}");
    up(&mut served);
    served.create_playing("worker", &json!([calls(notify("first")), { "text": "Said." }, calls(notify("second"))]));
    served.send("worker", "go");
    let (unanswered, headers, body) = request(&listener);
    let id = header(&headers, "webhook-id").to_owned();
    let sent: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&sent["type"], &sent["data"]["text"]), (&json!("abide.notify"), &json!("first")));
    assert_eq!(sent["data"]["id"], json!(id));
    let time = header(&headers, "webhook-timestamp").parse().unwrap();
    let signature = Secret::parse(SECRET).unwrap().sign(&id, time, &body);
    assert_eq!(header(&headers, "webhook-signature"), signature);

    served.kill();
    drop(unanswered);
    up(&mut served);
    let (stream, headers, _) = request(&listener);
    assert_eq!(header(&headers, "webhook-id"), id, "the same, under the same id");
    // Refused, it is tried again; and the agent has long gone on.
    answer(stream, "500 Not Now");
    let message = served.send("worker", "more");
    let (stream, headers, _) = request(&listener);
    assert_eq!(header(&headers, "webhook-id"), id);
    served.until_told("worker", &message);
    let report = served.place.json(&["config", "show"]);
    assert_eq!(report["notify.webhook"], json!(url));
    answer(stream, "204 No Content");
    let (stream, headers, body) = request(&listener);
    assert_ne!(header(&headers, "webhook-id"), id, "what was confirmed is not sent again");
    assert!(body.contains("second"), "{body}");
    answer(stream, "200 OK");
    until_confirmed(&served, "webhook", 2);
    served.stop_and_verify();
}
