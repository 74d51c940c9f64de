//! Everything at once: messages, children, timers, webhooks, hostile agents, and one fault after another (kill -9, a full
//! disk, a clock that jumps a century ahead and a day back). Nothing that was acknowledged is lost or done twice, and
//! without faults memory and open files stay flat.
//!
//! The test command runs half a minute of it; `cargo xtask soak` runs an hour (`ABIDE_SOAK_SECONDS`) of the release build.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::hands::{calls, tool};
use crate::place::Daemon;
use crate::served::{Served, until};
use crate::wire::{Address, Wire};

const SHORT: Duration = Duration::from_secs(30);
/// Of the whole time, the last part has no faults: there memory and files are compared.
const QUIET_SHARE: u32 = 3;
const SENDERS: usize = 6;
const ECHOES: usize = 12;
const MIB: u64 = 1 << 20;

/// State that all threads share.
struct Course {
    /// Where the daemon is; nowhere while it is down.
    address: Mutex<Option<Address>>,
    over: AtomicBool,
    /// Faults are being made, so that answers may fail.
    faults: AtomicBool,
    sent: AtomicU64,
}

impl Course {
    fn address(&self) -> Option<Address> {
        self.address.lock().unwrap().clone()
    }

    fn move_to(&self, address: Option<Address>) {
        *self.address.lock().unwrap() = address;
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn pause(&self, ms: u64) {
        let end = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < end && !self.is_over() {
            thread::sleep(Duration::from_millis(ms.min(20)));
        }
    }

    /// Posts until it is taken: a daemon that is down or has no room is asked again, under the same key.
    fn post(&self, path: &str, key: &str, body: &Value) -> Value {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            assert!(Instant::now() < deadline, "{path} is not taken");
            if let Some(address) = self.address() {
                let header = if path.starts_with("/hooks/") { "webhook-id" } else { "idempotency-key" };
                let answer = Wire::new(address.clone()).send("POST", path, &[(header, key)], Some(body));
                match answer {
                    Ok(answer) if matches!(answer.status, 200..=202) => return answer.body,
                    Ok(answer) if matches!(answer.status, 429 | 503) => {}
                    // Another process has taken the port that ours had.
                    Ok(_) if self.address() != Some(address) => {}
                    Ok(answer) => panic!("{path}: {answer:?}"),
                    Err(_) => {}
                }
            }
            thread::sleep(Duration::from_millis(30));
        }
    }
}

/// Sends to all echoes in turn, and remembers which ids came back.
fn send(number: usize, course: &Course) -> Vec<(String, String)> {
    let mut taken = Vec::new();
    while !course.is_over() {
        let count = taken.len();
        let agent = format!("echo-{}", (number + count) % ECHOES);
        let text = format!("sender {number} says {count}");
        // A large one now and then.
        let text = if count % 50 == 49 { format!("{text} {}", "x".repeat(200_000)) } else { text };
        let body = course.post(
            &format!("/v1/agents/{agent}/messages"),
            &text[..20.min(text.len())].replace(' ', "-"),
            &json!({ "text": text }),
        );
        taken.push((agent, body["message_id"].as_str().unwrap().to_owned()));
        course.sent.fetch_add(1, Ordering::SeqCst);
        course.pause(60);
    }
    taken
}

/// Posts to a trigger's URL, each delivery under an id of its own. Returns how many were taken.
fn deliver(url: &str, course: &Course) -> u64 {
    let path = url.find("/hooks/").map(|at| url[at..].to_owned()).unwrap();
    let mut count = 0;
    while !course.is_over() {
        course.post(&path, &format!("delivery-{count}"), &json!({ "event": count }));
        count += 1;
        course.pause(100);
    }
    count
}

/// Has a parent spawn a child again and again, seldom enough that it is not paced.
fn ask_parent(course: &Course) -> Vec<String> {
    let mut asked = Vec::new();
    while !course.is_over() {
        let key = format!("parent-{}", asked.len());
        let body = course.post("/v1/agents/parent/messages", &key, &json!({ "text": "go" }));
        asked.push(body["message_id"].as_str().unwrap().to_owned());
        course.pause(20_000);
    }
    asked
}

/// Wakes the hostile agents, and stops and starts the one that grows a tree.
fn provoke(course: &Course) {
    for round in 0_u64.. {
        if course.is_over() {
            return;
        }
        for agent in ["looper", "commander", "spawner"] {
            course.post(&format!("/v1/agents/{agent}/messages"), &format!("{agent}-{round}"), &json!({ "text": "go" }));
        }
        course.pause(4_000);
        course.post("/v1/agents/spawner/stop", &format!("stop-{round}"), &json!({}));
        course.pause(4_000);
        course.post("/v1/agents/spawner/start", &format!("start-{round}"), &json!({}));
    }
}

/// How long a list of all agents takes, while no fault is made.
fn observe(course: &Course) -> Vec<Duration> {
    let mut took = Vec::new();
    while !course.is_over() {
        if let Some(address) = course.address().filter(|_| !course.faults.load(Ordering::SeqCst)) {
            let begun = Instant::now();
            let answer = Wire::new(address).send("GET", "/v1/agents", &[], None);
            if answer.is_ok_and(|answer| answer.status == 200) && !course.faults.load(Ordering::SeqCst) {
                took.push(begun.elapsed());
            }
        }
        course.pause(100);
    }
    took
}

/// A clock for the daemon that a file says how to read.
struct Clock {
    file: PathBuf,
    /// Of Debian's package `faketime`.
    library: PathBuf,
}

impl Clock {
    fn of(served: &Served) -> Clock {
        let folders = fs::read_dir("/usr/lib").unwrap().filter_map(Result::ok);
        let library =
            folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
        let library =
            library.expect("the library of faketime: `cargo xtask test` installs it (apt-get install faketime)");
        Clock { file: served.place.write("clock", "+0\n"), library }
    }

    fn start(&self, served: &mut Served) {
        let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        served.daemon = Some(Daemon::of(command));
    }

    fn set(&self, offset: &str) {
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{offset}\n")).unwrap();
        fs::rename(next, &self.file).unwrap();
    }
}

fn limit_files(served: &Served, bytes: Option<u64>) {
    let pid = Pid::from_raw(served.daemon.as_ref().unwrap().pid().try_into().unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

/// One fault after another, until the quiet part begins. Returns how many of each there were.
fn make_faults(served: &mut Served, clock: &Clock, course: &Course, until: Instant) -> [u32; 3] {
    let mut made = [0; 3];
    for round in 0_u32.. {
        course.pause(if round % 4 == 0 { 2_500 } else { 1_500 });
        if Instant::now() >= until {
            break;
        }
        course.faults.store(true, Ordering::SeqCst);
        match round % 4 {
            0 => {
                served.kill();
                course.move_to(None);
                clock.start(served);
                course.move_to(Some(served.address()));
                made[0] += 1;
            }
            2 => {
                limit_files(served, Some(1));
                thread::sleep(Duration::from_millis(700));
                limit_files(served, None);
                made[1] += 1;
            }
            turn => {
                clock.set(if turn == 1 { "+36500d" } else { "-1d" });
                thread::sleep(Duration::from_millis(900));
                clock.set("+0");
                made[2] += 1;
            }
        }
        // Requests that were under way may still fail.
        thread::sleep(Duration::from_millis(300));
        course.faults.store(false, Ordering::SeqCst);
    }
    course.faults.store(false, Ordering::SeqCst);
    made
}

/// Resident memory and open files of the daemon.
fn weight(served: &Served) -> (u64, usize) {
    let pid = served.daemon.as_ref().unwrap().pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let rss = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024;
    (rss, fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count())
}

fn create_agents(served: &Served) -> String {
    for number in 0..ECHOES {
        served.create(&format!("echo-{number}"), "script/echo");
    }
    let child = served.script("child", &json!({ "rounds": [{ "text": "The child is done." }], "loop": true }));
    let spawn = calls(tool("SpawnAgent", json!({ "message": "work", "model": child })));
    let wait = json!({ "wake": "task_result", "resource": { "$result": "/task_handle/task_id" }, "reason": "child" });
    let looping = |name: &str, rounds: Value| served.script(name, &json!({ "rounds": rounds, "loop": true }));
    let parent = looping("parent", json!([spawn, calls(tool("WaitFor", wait)), { "text": "It is done." }]));
    served.create("parent", &parent);
    let item = calls(tool("CreateWorkItem", json!({ "objective": "more" })));
    served.create("looper", &looping("looper", json!([item, { "text": "One more." }])));
    let escape = "(setsid sh -c 'trap \"\" TERM; sleep 900' &); (sleep 900 &); yes | head -c 3000000";
    let command = calls(tool("ExecCommand", json!({ "cmd": escape, "yield_time_ms": 200, "start_new": true })));
    let stay = calls(tool("ExecCommand", json!({ "cmd": "sleep 900", "yield_time_ms": 50, "start_new": true })));
    served.create("commander", &looping("commander", json!([command, stay, { "text": "Started." }])));
    let spawns: Vec<Value> = (0..60).map(|_| tool("SpawnAgent", json!({ "message": "grow" }))).collect();
    let rest = calls(tool("WaitFor", json!({ "wake": "operator_input", "reason": "rest" })));
    served.create("spawner", &looping("spawner", json!([{ "tools": spawns }, rest])));
    served.create("hooked", "script/echo");
    served.create("clock", "script/echo");
    served.post("/v1/agents/clock/timers", &json!({ "summary": "tick", "every_ms": 500 }));
    let trigger = served.post("/v1/agents/hooked/triggers", &json!({ "name": "ci" }));
    trigger["url"].as_str().unwrap().to_owned()
}

fn percentile(sorted: &[Duration], share: f64) -> Duration {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list"
    )]
    let at = (sorted.len().saturating_sub(1) as f64 * share) as usize;
    sorted.get(at).copied().unwrap_or_default()
}

/// Every message was processed, once.
fn check_messages(served: &Served, taken: &[(String, String)]) {
    let mut by_agent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (agent, id) in taken {
        by_agent.entry(agent).or_default().push(id);
    }
    for (agent, mut ids) in by_agent {
        let messages = until(&format!("{agent} to answer all"), || {
            let messages = served.items(&format!("/v1/agents/{agent}/messages"));
            messages.iter().all(|message| message["status"] == "processed").then_some(messages)
        });
        let mut found: Vec<&str> = messages.iter().map(|message| message["message_id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, ids, "{agent}: nothing lost, nothing doubled");
    }
}

fn processes_of(home: &Path) -> Vec<String> {
    let home = home.to_str().unwrap();
    let mut left = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(home) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            left.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    left
}

#[test]
#[allow(clippy::print_stderr, reason = "its figures, for whoever asks to see them")]
fn nothing_is_lost_while_everything_happens_at_once() {
    let seconds = std::env::var("ABIDE_SOAK_SECONDS").ok().map(|text| text.parse().unwrap());
    let whole = seconds.map_or(SHORT, Duration::from_secs);
    let mut served = Served::down("");
    served.offer(&["child", "spawner"]);
    let clock = Clock::of(&served);
    clock.start(&mut served);
    let url = create_agents(&served);
    let course = &Course {
        address: Mutex::new(Some(served.address())),
        over: AtomicBool::new(false),
        faults: AtomicBool::new(false),
        sent: AtomicU64::new(0),
    };
    let begun = Instant::now();
    let quiet_from = begun + whole - whole / QUIET_SHARE;
    let (taken, deliveries, asked, mut took, made, weights) = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|number| scope.spawn(move || send(number, course))).collect();
        let hook = scope.spawn(|| deliver(&url, course));
        let parent = scope.spawn(|| ask_parent(course));
        let hostile = scope.spawn(|| provoke(course));
        let observer = scope.spawn(|| observe(course));
        let made = make_faults(&mut served, &clock, course, quiet_from);
        // A moment to work off what the last fault held up; then memory and files are compared.
        course.pause(u64::try_from((whole / QUIET_SHARE / 3).as_millis()).unwrap());
        let before = weight(&served);
        while begun.elapsed() < whole {
            course.pause(500);
        }
        let after = weight(&served);
        course.over.store(true, Ordering::SeqCst);
        hostile.join().unwrap();
        let taken: Vec<(String, String)> = senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        (taken, hook.join().unwrap(), parent.join().unwrap(), observer.join().unwrap(), made, (before, after))
    });
    check_messages(&served, &taken);
    let hooked = served.items("/v1/agents/hooked/messages");
    assert_eq!(hooked.len() as u64, deliveries, "each delivery is one message");
    for message in &asked {
        served.until_told("parent", message);
    }
    let fired = |served: &Served| served.items("/v1/agents/clock/timers")[0]["fire_count"].as_u64().unwrap();
    let count = fired(&served);
    until("the timer to go on", || (fired(&served) > count).then_some(()));
    let ((rss_before, files_before), (rss_after, files_after)) = weights;
    took.sort_unstable();
    let [kills, full_disks, jumps] = made;
    eprintln!(
        "{:.0?}: {} messages, {deliveries} deliveries, {} children, {kills} kills, {full_disks} full disks, {jumps} clock \
         jumps; GET /v1/agents p50 {:.1?}, p99 {:.1?}, worst {:.1?} of {}; memory {} to {} MiB, files {files_before} to \
         {files_after} in the quiet part; {} agents at the end",
        begun.elapsed(),
        taken.len(),
        asked.len(),
        percentile(&took, 0.5),
        percentile(&took, 0.99),
        percentile(&took, 1.0),
        took.len(),
        rss_before / MIB,
        rss_after / MIB,
        served.items("/v1/agents").len(),
    );
    assert!(rss_after < rss_before + rss_before / 2 + 64 * MIB, "memory grew from {rss_before} to {rss_after}");
    assert!(files_after < files_before + 100, "open files grew from {files_before} to {files_after}");
    let home = served.place.home().canonicalize().unwrap();
    served.place.says(&["agent", "stop", "--all"]);
    served.stop_and_verify();
    until("no process to be left", || processes_of(&home).is_empty().then_some(()));
}
