//! The command line against a live daemon.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use abide_api::types::MessageOutcome;
use base64::prelude::{BASE64_STANDARD, Engine};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Daemon, Place, document, png};

fn script(place: &Place, name: &str, rounds: &Value) -> String {
    place.write(&format!("{name}.json"), json!({ "rounds": rounds }).to_string());
    format!("script/{name}.json")
}

#[test]
fn an_agent_from_its_creation_to_its_end() {
    let place = Place::empty();
    let daemon = Daemon::start(&place, &[]);
    let made = place.json(&["agent", "create", "scout", "--role", "execution"]);
    assert_eq!((&made["identity"]["id"], &made["identity"]["role"]), (&json!("scout"), &json!("execution")));
    assert_eq!(place.says(&["send", "scout", "hello", "--wait", "--timeout", "30"]), "hello\n");
    let brief = place.json(&["send", "scout", "again", "--wait", "--timeout", "30"]);
    assert_eq!((&brief["kind"], &brief["text"]), (&json!("result"), &json!("again")));
    let briefs = place.json(&["briefs", "scout", "--last", "1"]);
    assert_eq!(briefs["items"][0]["message_id"], brief["message_id"]);
    let said = place.says(&["transcript", "scout"]);
    assert!(said.contains("] input operator_prompt ") && said.contains("\n  hello\n"), "{said}");
    assert_eq!(place.json(&["transcript", "scout", "--last", "2"])["items"].as_array().unwrap().len(), 2);
    assert_eq!(place.json(&["why", "scout"])["agent_id"], "scout");
    assert_eq!(place.json(&["why"])["items"].as_array().unwrap().len(), 2);
    let timer = place.json(&["timer", "create", "--agent", "scout", "tea", "--in", "1d"]);
    let id = timer["timer_id"].as_str().unwrap();
    assert!(place.says(&["timer", "list", "--agent", "scout"]).contains(id));
    let end = &id[id.len() - 8..];
    assert_eq!(place.json(&["timer", "cancel", "--agent", "scout", end]), json!({ "ended": true, "id": id }));
    let cron = ["--cron", "0 9 * * mon-fri", "--time-zone", "europe/berlin", "--check", "test -s inbox"];
    let timer = place.json(&[&["timer", "create", "--agent", "scout", "post"], &cron[..]].concat());
    let id = timer["timer_id"].as_str().unwrap();
    let shown = place.json(&["timer", "show", "--agent", "scout", id]);
    assert_eq!((&shown["upcoming"], &shown["time_zone"]), (&timer["upcoming"], &json!("Europe/Berlin")));
    assert_eq!(shown["upcoming"].as_array().unwrap().len(), 5);
    let shown = place.says(&["timer", "show", "--agent", "scout", id]);
    assert!(shown.contains("0 9 * * mon-fri in Europe/Berlin") && shown.contains("test -s inbox"), "{shown}");
    assert!(place.says(&["timer", "list", "--agent", "scout"]).contains("0 9 * * mon-fri in Europe/Berlin"));
    place.says(&["timer", "create", "--agent", "scout", "mail", "--every", "1d", "--check", "test -s inbox"]);
    assert!(place.says(&["timer", "list", "--agent", "scout"]).contains("mail (with a check)"));
    let past = ["timer", "create", "--agent", "scout", "tea", "--at", "2020-01-01T00:00:00Z"];
    assert!(place.refused(1, &past).starts_with("2020-01-01T00:00:00.000Z has passed"));
    let refused = place.refused(1, &["timer", "create", "--agent", "scout", "tea", "--cron", "0 0 31 2 *"]);
    assert_eq!(refused, "there is no day on which \"0 0 31 2 *\" fires");
    place.says(&["timer", "cancel", "--agent", "scout", id]);
    place.says(&["why", "scout", "--export", "records"]);
    assert_eq!(
        place.json(&["ledger", "replay", "records"])["status"],
        place.json(&["agent", "show", "scout"])["agent"]["status"]
    );
    assert_eq!(place.refused(8, &["agent", "show", "nobody"]), "no agent is called nobody");
    assert_eq!(place.run(&["agent", "delete", "scout"]).code, Some(6), "it is not stopped");
    assert_eq!(place.says(&["agent", "stop", "scout"]), "scout is stopped\n");
    let ran = place.run(&["send", "scout", "are you there", "--wait"]);
    assert_eq!(ran.code, Some(6));
    assert!(ran.err.contains("is kept, and read once it starts: `abide agent start scout`"), "{}", ran.err);
    place.says(&["agent", "delete", "scout"]);
    let token = place.says(&["token", "create", "--name", "reader", "--scope", "observer"]);
    let reader = ["--url", &daemon.url, "--token", token.trim()];
    place.says(&[&reader[..], &["agent", "list"]].concat());
    assert_eq!(place.run(&[&reader[..], &["agent", "stop", "main"]].concat()).code, Some(6), "it may only read");
    assert_eq!(place.run(&["--token", "wrong", "agent", "list"]).code, Some(1));
    assert_eq!(place.json(&["doctor"])["ok"], true);
}

#[test]
fn an_image_goes_with_a_message() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    for (name, bytes) in [("shot.png", 72), ("large.png", 800_000), ("huge.png", 2 << 20)] {
        fs::write(place.path(name), png(bytes)).unwrap();
    }
    place.write("notes.md", "# Notes\n");
    place.write("cut.png", &png(200)[..150]);
    place.write("wide.png", [&png(80)[..16], &9_000_u32.to_be_bytes(), &png(80)[20..]].concat());
    let look = ["send", "main", "look", "--image", "shot.png"];
    assert_eq!(place.says(&[&look[..], &["--image", "shot.png", "--wait", "--timeout", "30"]].concat()), "look\n");
    let said = place.json(&["transcript", "main"]);
    assert_eq!(said["items"][0]["json"], json!({ "text": "look", "images": ["(image 1)", "(image 2)"] }));
    // Sent text is stored whole.
    let mut watch = place.command(&["watch", "main", "--after", "0", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut facts = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let queued = facts.find(|fact| fact["kind"] == "message.queued").unwrap();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(queued["data"]["json"]["images"][1]["data"], BASE64_STANDARD.encode(png(72)));
    let refused = |file: &str, why: &str| {
        let said = place.refused(2, &["send", "main", "look", "--image", file]);
        assert!(said.contains(why), "{said}");
    };
    refused("notes.md", "notes.md can't be sent: it is no PNG, JPEG, GIF or WebP");
    refused("cut.png", "cut.png can't be sent: it is a PNG that ends before its end");
    refused("wide.png", "wide.png can't be sent: it has 9000 x 1 pixels, and 8000 on a side are shown at most");
    refused("large.png", "the message has 1,067,7");
    refused("huge.png", "huge.png is larger than 1,048,576 bytes: send a smaller one");
    let many = ["--image", "shot.png"].repeat(9);
    let said = place.refused(2, &[&["send", "main", "look"], &many[..]].concat());
    assert_eq!(said, "9 images: a message takes 8 at most");
    assert_eq!(place.run(&["send", "main", "look", "--image", "none.png"]).code, Some(1));
    let said = place.json(&["transcript", "main"]);
    let inputs = said["items"].as_array().unwrap().iter().filter(|entry| entry["role"] == "input");
    assert_eq!(inputs.count(), 1, "nothing more was sent");
}

#[test]
fn how_waiting_for_an_answer_ends() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let wait = |wake: &str, after_ms: Option<u64>| {
        let input = json!({ "wake": wake, "after_ms": after_ms, "reason": "which colour" });
        let input: serde_json::Map<String, Value> =
            input.as_object().unwrap().clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
        json!({ "text": "A moment.", "tools": [{ "name": "WaitFor", "input": input }] })
    };
    let models = [
        ("asks", json!([wait("operator_input", None), { "text": "Blue it is." }])),
        ("naps", json!([wait("timer", Some(200)), { "text": "Tea is ready." }])),
        ("fails", json!([{ "error": "invalid" }])),
        ("keyless", json!([{ "error": "auth" }])),
        ("dawdles", json!([{ "text": "slow", "delay_ms": 600_000 }])),
    ];
    for (name, rounds) in &models {
        place.says(&["agent", "create", name, "--model", &script(&place, name, rounds)]);
    }
    let send = |name, text| place.run(&["send", name, text, "--wait", "--timeout", "60"]);
    let asked = send("asks", "paint it");
    assert_eq!((asked.code, asked.out.as_str()), (Some(4), ""));
    assert_eq!(asked.err, "abide: asks waits for your answer: which colour\n");
    assert_eq!(send("asks", "blue").out, "Blue it is.\n");
    assert_eq!(send("naps", "tea please").out, "Tea is ready.\n");
    let failed = send("fails", "go");
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), ""));
    assert!(failed.err.contains("invalid"), "{}", failed.err);
    let keyless = send("keyless", "go");
    assert_eq!((keyless.code, keyless.out.as_str()), (Some(4), ""));
    assert!(keyless.err.contains("auth") && keyless.err.contains("nothing is lost"), "{}", keyless.err);
    let late = place.run(&["send", "dawdles", "go", "--wait", "--timeout", "500ms"]);
    assert_eq!(late.code, Some(1));
    assert!(late.err.starts_with("abide: dawdles has not answered msg_"), "{}", late.err);
    // A program is told which message it was, and what became of it.
    let told = |name: &str, timeout: &str| {
        let ran = place.run(&["send", name, "go", "--wait", "--timeout", timeout, "--json"]);
        assert_eq!(ran.out, "");
        let told = document(&ran.err);
        assert!(told["message_id"].as_str().unwrap().starts_with("msg_"), "{told}");
        (ran.code, told["code"].as_str().unwrap().to_owned(), told["class"].as_str().map(str::to_owned))
    };
    assert_eq!(told("dawdles", "500ms"), (Some(1), "timeout".into(), None));
    place.write("fails.json", json!({ "rounds": [{ "error": "invalid" }], "loop": true }).to_string());
    assert_eq!(told("fails", "60"), (Some(1), "failed".into(), Some("invalid".into())));
    assert_eq!(told("keyless", "60"), (Some(4), "waits_for_person".into(), Some("auth".into())));
    place.write("asks.json", json!({ "rounds": [wait("operator_input", None)], "loop": true }).to_string());
    assert_eq!(told("asks", "60"), (Some(4), "waits_for_person".into(), None));
    place.says(&["agent", "stop", "naps"]);
    assert_eq!(told("naps", "60"), (Some(6), "stopped".into(), None));
}

/// The daemon has written down what it was asked, so another one answers.
#[test]
fn an_answer_is_waited_for_over_a_restart_of_the_daemon() {
    let place = Place::empty();
    let mut daemon = Daemon::start(&place, &[]);
    let rounds = json!([{ "error": "overloaded", "retry_after_ms": 3_000 }, { "text": "Here." }]);
    place.says(&["agent", "create", "busy", "--model", &script(&place, "busy", &rounds)]);
    let mut sending = place.command(&["send", "busy", "hi", "--wait", "--timeout", "60"]);
    let mut sending = sending.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut notes = BufReader::new(sending.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(notes.next().unwrap().starts_with("abide: busy waits until 20"));
    daemon.kill();
    assert_eq!(notes.next().unwrap(), "abide: the daemon has gone; waiting for it to come back");
    let _again = Daemon::start(&place, &[]);
    assert_eq!(notes.next().unwrap(), "abide: the daemon is back");
    let ended = sending.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), &b"Here.\n"[..]));
}

/// The operator's next message ends the question, and what the agent says then answers both.
#[test]
fn what_became_of_a_message_can_be_read_later() {
    let place = Place::empty();
    let daemon = Daemon::start(&place, &[]);
    let question = json!({ "wake": "operator_input", "reason": "which colour" });
    let rounds = json!([{ "tools": [{ "name": "WaitFor", "input": question }] }, { "text": "Blue it is." }]);
    place.says(&["agent", "create", "asks", "--model", &script(&place, "asks", &rounds)]);
    let asked = place.run(&["send", "asks", "paint it", "--wait", "--json"]);
    let message = document(&asked.err)["message_id"].as_str().unwrap().to_owned();
    let answered = place.json(&["send", "asks", "blue", "--wait"]);
    let token = fs::read_to_string(place.path("home/token")).unwrap();
    let client = abide_api::Client::new(&daemon.url, token.trim()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let asked = client.wait_for_message("asks", &message, Duration::from_secs(60), "");
    let detail = runtime.block_on(asked).unwrap();
    assert_eq!(detail.outcome, MessageOutcome::Answered { answer: None, cut: false });
    assert_eq!(detail.briefs.last().unwrap().text, answered["text"]);
}

#[test]
fn a_place_that_the_ledger_has_not_reached_is_told_as_that() {
    use std::io::{BufRead, BufReader};
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let mut command = place.command(&["watch", "main", "--after", "99999999"]);
    let mut watching =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watching.stderr.take().unwrap()).read_line(&mut line).unwrap();
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(line.starts_with("abide: there is nothing after 99999999 yet: the last fact is "), "{line}");
}

#[test]
fn a_trigger_is_made_used_rotated_and_revoked() {
    let place = Place::empty();
    place.write("home/config.toml", "public_url = \"https://hooks.example/in/\"\n");
    let daemon = Daemon::start(&place, &[]);
    let of = ["--agent", "main"];
    let run = |words: &[&str]| place.json(&[&["trigger"], words, &of].concat());
    let made = run(&["create", "deploys", "--mode", "wake_hint"]);
    let (id, url) = (made["trigger_id"].as_str().unwrap(), made["url"].as_str().unwrap());
    assert!(url.starts_with("https://hooks.example/in/hooks/"), "{url}");
    assert_eq!((&made["delivery_mode"], &made["signed"]), (&json!("wake_hint"), &json!(false)));
    let rotated = run(&["rotate", &id[id.len() - 8..]]);
    assert_eq!(rotated["trigger_id"], id);
    assert_ne!(rotated["url"], url);
    place.write("secret", "It's a Secret to Everybody\n");
    let signed = run(&["create", "pushes", "--secret-file", "secret"]);
    assert_eq!(signed["signed"], true);
    let error = place.refused(2, &["trigger", "create", "x", "--agent", "main", "--secret-env", "NO_SUCH_VARIABLE"]);
    assert!(error.contains("$NO_SUCH_VARIABLE is not set"), "{error}");
    assert_eq!(run(&["revoke", id])["ended"], true);
    let listed = run(&["list"]);
    let shown = |index: usize, key: &str| listed["items"][index][key].clone();
    assert_eq!((shown(0, "status"), shown(0, "url")), (json!("revoked"), Value::Null));
    assert_eq!((shown(1, "status"), shown(1, "signed")), (json!("active"), json!(true)));
    let table = place.says(&["trigger", "list", "--agent", "main"]);
    assert!(table.contains("pushes") && !table.contains("/hooks/"), "{table}");
    let said = place.says(&["trigger", "create", "more", "--agent", "main"]);
    assert!(said.contains("it is not shown again:\nhttps://hooks.example/in/hooks/"), "{said}");
    let more = place.json(&["trigger", "list", "--agent", "main"])["items"][2]["trigger_id"].clone();
    let revoke = ["trigger", "revoke", "--agent", "main", more.as_str().unwrap()];
    assert_eq!(place.says(&revoke), format!("{} is revoked\n", more.as_str().unwrap()));
    assert_eq!(place.refused(8, &revoke), format!("{} is not an active trigger", more.as_str().unwrap()));
    drop(daemon);
}

#[test]
fn watching_goes_on_when_the_daemon_is_back() {
    let place = Place::empty();
    let mut daemon = Daemon::start(&place, &[]);
    place.says(&["send", "main", "one", "--wait", "--timeout", "30"]);
    let mut watch = place.command(&["watch", "main", "--after", "0", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut seqs = Vec::new();
    let mut until_said = |text: &str| {
        for line in lines.by_ref() {
            let event = document(&format!("{}\n", line.unwrap()));
            seqs.push(event["seq"].as_u64().unwrap());
            if event["kind"] == "brief.recorded" && event["data"]["text"] == text {
                return;
            }
        }
        panic!("the stream ended before {text:?}");
    };
    until_said("one");
    daemon.kill();
    let _again = Daemon::start(&place, &[]);
    place.says(&["send", "main", "two", "--wait", "--timeout", "30"]);
    until_said("two");
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "none is lost, none comes twice");
}

#[test]
fn the_ledger_is_reached_through_its_daemon() {
    let place = Place::seeded();
    let mut daemon = Daemon::start(&place, &[]);
    assert_eq!(place.json(&["ledger", "verify"])["intact"], true);
    place.says(&["ledger", "fork", "idle", "--at", "3", "--as", "twin"]);
    place.says(&["ledger", "export", "twin", "twin"]);
    place.says(&["ledger", "compact"]);
    let facts = place.json(&["ledger", "export", "--full", "file"])["facts"].as_u64().unwrap();
    assert!(facts >= crate::home::seeded().facts);
    let error = place.refused(6, &["ledger", "import", "file"]);
    assert!(error.starts_with(&format!("a daemon serves home at {}; ", daemon.url)), "{error}");
    daemon.kill();
    let copy = ["--home", "copy"];
    place.says(&[&copy[..], &["ledger", "import", "file"]].concat());
    assert_eq!(place.json(&[&copy[..], &["ledger", "stats"]].concat())["facts"], facts);
}

/// Leaves no daemon behind, however a test ends.
struct Stopped<'a>(&'a Place);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.run(&["daemon", "stop"]);
    }
}

#[test]
fn a_daemon_in_the_background() {
    let place = Place::empty();
    let _stopped = Stopped(&place);
    let started = place.json(&["daemon", "start", "--listen", "127.0.0.1:0"]);
    let pid = started["pid"].as_u64().unwrap();
    // In a session of its own: no terminal ends it.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    if let Ok(stat) = stat {
        let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap().to_owned();
        assert_eq!(session, pid.to_string());
    }
    let again = place.json(&["daemon", "start"]);
    assert_eq!((&again["pid"], &again["started"]), (&started["pid"], &json!(false)));
    assert_eq!(place.run(&["daemon", "start", "--model", "script/echo"]).code, Some(6));
    assert_eq!(place.json(&["daemon", "status"])["status"], "ready");
    let restarted = place.json(&["daemon", "restart", "--listen", "127.0.0.1:0"]);
    assert_ne!(restarted["pid"], started["pid"]);
    assert!(place.path("home/daemon.log.1").exists());
    assert!(place.says(&["daemon", "logs"]).contains("abide is up at"));
    assert_eq!(place.json(&["daemon", "stop"])["stopped"], true);
    assert_eq!(place.run(&["daemon", "status"]).code, Some(7));
    // A daemon that dies at once is reported together with its output.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = place.refused(1, &["daemon", "start", "--listen", &address]);
    assert!(error.starts_with("the daemon did not start: it ended at once ("), "{error}");
    assert!(error.contains(&format!("can't listen on {address}")), "{error}");
}

#[test]
fn a_signal_ends_a_daemon_in_order() {
    let place = Place::empty();
    let mut daemon = Daemon::start(&place, &[]);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.gone(Duration::from_secs(10)), (Some(0), "{\"event\":\"stopped\"}\n".to_owned()));
    assert!(!place.path("home/daemon.json").exists());
}

/// The commands of the README's quick start, as they are written there.
#[test]
fn the_quick_start_of_the_readme() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let first = readme.lines().find_map(|line| line.strip_prefix("$ cargo run --release -- ")).unwrap();
    assert_eq!(first, "up");
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let minute = readme.split("## Quick start").nth(1).unwrap().split("```").nth(1).unwrap();
    let mut shown = minute.lines().peekable();
    let mut checked = 0;
    while let Some(line) = shown.next() {
        let Some(command) = line.strip_prefix("$ abide ") else { continue };
        let command = command.split(" #").next().unwrap().trim().replace('"', "");
        // One that never ends by itself.
        if command.starts_with("watch") {
            continue;
        }
        // The quoted text is one word, and the last one.
        let words: Vec<&str> = match command.split_once("--wait ").or_else(|| command.split_once("send main ")) {
            Some((_, text)) => command.trim_end_matches(text).split_whitespace().chain([text]).collect(),
            None => command.split_whitespace().collect(),
        };
        let output = place.command(&words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        if let Some(expected) = shown.next_if(|line| !line.starts_with('$')) {
            let said = String::from_utf8(output.stdout).unwrap();
            assert_eq!(said.lines().next(), Some(expected), "{words:?}");
            checked += 1;
        }
    }
    assert_eq!(checked, 3);
}

/// A script that is not there would fail the first turn, when nobody looks.
#[test]
fn a_script_that_is_not_there_is_refused_where_it_is_named() {
    let place = Place::empty();
    let error = place.refused(2, &["up", "--listen", "127.0.0.1:0", "--model", "script/none.json"]);
    assert!(error.contains("none.json does not exist"), "{error}");
    let _daemon = Daemon::start(&place, &[]);
    let error = place.refused(1, &["agent", "create", "a", "--model", "script/none.json"]);
    let none = place.path("none.json").canonicalize().unwrap_or_else(|_| place.path("none.json"));
    let wanted = format!("the script {} does not exist; write it first, or name another", none.display());
    assert_eq!(error, wanted);
    assert_eq!(place.run(&["agent", "show", "a"]).code, Some(8));
    place.write("none.json", "{}");
    place.says(&["agent", "create", "a", "--model", "script/none.json"]);
    let error = place.refused(1, &["agent", "create", "b", "--model", "script/."]);
    assert!(error.contains("is not a file"), "{error}");
}
