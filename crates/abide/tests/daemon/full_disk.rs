//! A disk that is full: every request is answered, the daemon says that it can't record anything, and when there is room
//! again it goes on by itself. Its log is on that disk, too.
//!
//! A limit on the size of files stands in for the disk: the kernel refuses every write to a file, and none to a socket.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::place::{Daemon, document};
use crate::served::{Served, until};
use crate::wire::Wire;

const SENDERS: usize = 40;

/// A daemon that logs much, to this file.
fn logging_to(served: &mut Served, log: &Path) {
    let log = File::options().append(true).create(true).open(log).unwrap();
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("ABIDE_LOG", "debug").stderr(log);
    served.daemon = Some(Daemon::of(command));
}

fn limit_files(served: &Served, bytes: Option<u64>) {
    let pid = Pid::from_raw(served.daemon.as_ref().unwrap().pid().try_into().unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

fn ready(served: &Served) -> (u16, Value) {
    let answer = served.call("GET", "/readyz", &[], None);
    (answer.status, answer.body["code"].clone())
}

fn counter(served: &Served, name: &str) -> u64 {
    let text = served.get("/metrics");
    let line = text.as_str().unwrap().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    line.parse().unwrap()
}

/// Large bodies are files of their own, small ones are in the database.
fn send_at_once(served: &Served, agent: &str, bytes: usize) -> Vec<(u16, Value)> {
    let (address, path) = (served.address(), format!("/v1/agents/{agent}/messages"));
    let send = || {
        let body = json!({ "text": "x".repeat(bytes) });
        let answer = Wire::new(address.clone()).send("POST", &path, &[], Some(&body));
        let answer = answer.unwrap_or_else(|error| panic!("cut off: {error}"));
        (answer.status, answer.body)
    };
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    })
}

#[test]
fn a_full_disk_refuses_everything_and_the_daemon_goes_on_when_there_is_room() {
    let mut served = Served::down("");
    // It takes nothing, from the first line on.
    logging_to(&mut served, Path::new("/dev/full"));
    served.create("busy", "script/echo");
    served.create("sleeper", "script/echo");
    let kept = served.send("busy", "before");
    served.until_told("busy", &kept);
    served.until_asleep("sleeper");
    let timer = json!({ "summary": "look at the builds", "after_ms": 3_000 });
    served.post("/v1/agents/sleeper/timers", &timer);
    assert_eq!(ready(&served).0, 200);

    limit_files(&served, Some(0));
    for bytes in [20, 50_000] {
        for (status, body) in send_at_once(&served, "busy", bytes) {
            assert_eq!((status, &body["code"]), (503, &json!("store")), "{body}");
            let (detail, home) = (body["detail"].as_str().unwrap(), served.place.home());
            assert!(detail.contains("home/"), "{detail} does not name a path in {}", home.display());
        }
        assert_eq!(ready(&served), (503, json!("store")));
    }
    assert_eq!(served.call("GET", "/healthz", &[], None).status, 200);
    assert_eq!(served.get("/v1/agents/busy")["agent"]["pending"], 0, "nothing was recorded, and it can be read");
    let status = served.place.run(&["daemon", "status", "--json"]);
    let shown = document(&status.out);
    assert_eq!((status.code, &shown["running"], &shown["ready"]), (Some(1), &json!(true), &json!(false)), "{shown}");
    // The timer comes due meanwhile, and nothing of it can be recorded.
    let refused = counter(&served, "abide_commits_refused_total");
    until("a refused tick", || (counter(&served, "abide_commits_refused_total") > refused).then_some(()));
    assert!(served.facts("sleeper", "timer.fired").is_empty());

    limit_files(&served, None);
    until("a daemon that is ready again", || (ready(&served).0 == 200).then_some(()));
    served.until_fact("sleeper", "turn.terminal", |turn| turn["terminal_kind"] == "completed");
    assert_eq!(served.facts("sleeper", "timer.fired").len(), 1);
    let after = served.send("busy", "after");
    assert_eq!(served.until_told("busy", &after)["text"], "after");
    assert_eq!(served.facts("busy", "message.queued").len(), 2, "what was refused is not there");
    assert_eq!(served.post("/v1/agents/busy/stop", &json!({}))["agent"]["status"], "stopped");
    assert!(counter(&served, "abide_log_lines_lost_total") > 0);
    assert_eq!(counter(&served, "abide_loop_crashes_total"), 0);
    served.stop_and_verify();
}

/// A small file system over the home. Gone with the value.
struct Mounted(PathBuf);

impl Mounted {
    fn at(folder: &Path) -> Option<Mounted> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256m,nr_inodes=1000,mode=700", "tmpfs"]).arg(folder);
        let done = mount.output().is_ok_and(|done| done.status.success());
        done.then(|| Mounted(folder.to_path_buf()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_daemon_without_inodes_is_not_ready_before_anything_was_refused() {
    let mut served = Served::down("");
    let Some(_mounted) = Mounted::at(&served.place.home()) else {
        println!("not tested here: no file system can be mounted");
        return;
    };
    served.up();
    assert_eq!(ready(&served).0, 200);
    let many = served.folder("home/many");
    let taken: Vec<PathBuf> =
        (0..1_000).map(|n| many.join(n.to_string())).take_while(|it| File::create(it).is_ok()).collect();
    let answer = served.call("GET", "/readyz", &[], None);
    assert_eq!((answer.status, &answer.body["code"]), (503, &json!("store")), "{}", answer.body);
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains("no inode is left") && detail.contains("ledger.db"), "{detail}");
    for file in taken {
        std::fs::remove_file(file).unwrap();
    }
    until("a daemon that is ready again", || (ready(&served).0 == 200).then_some(()));
    served.stop_and_verify();
}

/// The log says that lines are missing, and every other line is whole but the one that the disk cut.
#[test]
fn a_log_that_can_be_written_again_says_how_many_lines_were_lost() {
    let mut served = Served::down("");
    let log = served.place.path("log");
    logging_to(&mut served, &log);
    served.get("/v1/agents");
    limit_files(&served, Some(std::fs::metadata(&log).unwrap().len() + 10));
    for _ in 0..5 {
        served.get("/v1/agents");
    }
    let lost = until("lost lines", || Some(counter(&served, "abide_log_lines_lost_total")).filter(|lost| *lost >= 5));
    limit_files(&served, None);
    until("a line about them", || {
        served.get("/v1/agents");
        let text = std::fs::read_to_string(&log).unwrap();
        let lines: Vec<Option<Value>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        assert!(lines.iter().filter(|line| line.is_none()).count() <= 1, "{text}");
        let gap = lines.iter().flatten().find(|line| line["message"].as_str().unwrap().contains("were dropped"));
        gap.map(|gap| assert!(gap["lines"].as_u64().unwrap() >= lost, "{gap}"))
    });
    served.stop_and_verify();
}
