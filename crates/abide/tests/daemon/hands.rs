//! Shared code of tests of commands and folders: scripts that call tools, folders, and a look at the machine itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::served::{Served, of_kind, until};

/// Nothing waits so long: what is given this much is ended by the test.
pub const LONG_MS: u64 = 600_000;

/// For the shell: waits until a file is there.
pub fn until_there(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.02; done")
}

pub fn tool(name: &str, input: Value) -> Value {
    json!({ "name": name, "input": input })
}

pub fn exec(cmd: &str, yield_time_ms: u64) -> Value {
    tool("ExecCommand", json!({ "cmd": cmd, "yield_time_ms": yield_time_ms }))
}

/// A round that calls one tool.
pub fn calls(tool: Value) -> Value {
    json!({ "tools": [tool] })
}

/// From a result: of the last call, or of one before.
pub fn result(pointer: &str, back: u64) -> Value {
    json!({ "$result": pointer, "back": back })
}

pub const TASK: &str = "/task_handle/task_id";

impl Served {
    /// A folder beside the home.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.place.path(name);
        fs::create_dir_all(&folder).unwrap();
        folder.canonicalize().unwrap()
    }

    /// A repository beside the home, of one commit with so many files.
    pub fn repository(&self, name: &str, files: usize) -> PathBuf {
        let folder = self.folder(name);
        for n in 0..files {
            fs::write(folder.join(format!("file-{n}")), format!("{n}\n").repeat(200)).unwrap();
        }
        git(&folder, &["init", "-q", "-b", "main"]);
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-q", "-m", "first"]);
        folder
    }

    /// An agent that plays these rounds in this folder.
    pub fn create_in(&self, id: &str, folder: &Path, rounds: &Value) {
        let model = self.script(id, &json!({ "rounds": rounds }));
        self.post("/v1/agents", &json!({ "id": id, "model": model, "workspace": folder }));
    }

    /// A task that a person starts; its id.
    pub fn run_task(&self, id: &str, cmd: &str) -> String {
        let task = self.post(&format!("/v1/agents/{id}/tasks"), &json!({ "cmd": cmd }));
        task["task_id"].as_str().unwrap().to_owned()
    }

    pub fn task(&self, id: &str, task: &str) -> Value {
        self.get(&format!("/v1/agents/{id}/tasks/{task}"))
    }

    /// The task, once it has this status.
    pub fn until_task(&self, id: &str, task: &str, status: &str) -> Value {
        until(&format!("{status} task {task}"), || {
            let task = self.task(id, task);
            let over = ["completed", "failed", "cancelled", "interrupted"];
            let other = task["status"] != status && over.iter().any(|over| task["status"] == *over);
            assert!(!other, "it is not {status}: {task}");
            (task["status"] == status).then_some(task)
        })
    }

    pub fn stop_task(&self, id: &str, task: &str) -> Value {
        self.post(&format!("/v1/agents/{id}/tasks/{task}/stop"), &json!({}))
    }

    /// The results of an agent's calls of this tool, in order.
    pub fn results(&self, id: &str, tool: &str) -> Vec<Value> {
        let finished = self.facts(id, "tool.finished");
        finished.into_iter().filter(|fact| fact["tool"] == tool).map(|fact| fact["result"].clone()).collect()
    }

    /// Once this many calls of a tool have begun.
    pub fn until_called(&self, id: &str, tool: &str, times: usize) {
        until(&format!("{times} {tool} of {id}"), || {
            let started = self.facts(id, "tool.started");
            (started.iter().filter(|fact| fact["tool"] == tool).count() >= times).then_some(())
        });
    }

    /// The processes of this home's commands, and those that watch over them.
    pub fn processes(&self) -> Vec<u32> {
        let home = self.place.home().canonicalize().unwrap();
        // As the daemon marks them, by its home: FNV-1a.
        let hash = home
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        let marker = format!("{hash:016x}.").into_bytes();
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let has = |pid: &u32| {
            ["environ", "cmdline"].iter().any(|file| {
                let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                text.windows(marker.len()).any(|part| part == marker.as_slice())
            })
        };
        let ended = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
        };
        pids.filter(|pid| has(pid) && !ended(pid)).collect()
    }

    pub fn until_no_process(&self) {
        until("end of all processes", || self.processes().is_empty().then_some(()));
    }
}

pub fn git(at: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).current_dir(at).args(args);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// The place of the first event of a kind that has this.
pub fn seq_of(events: &[Value], kind: &str, has: impl Fn(&Value) -> bool) -> u64 {
    let found = events.iter().find(|event| event["kind"] == kind && has(&event["data"]));
    found.unwrap_or_else(|| panic!("no such {kind}: {:?}", of_kind(events, kind)))["seq"].as_u64().unwrap()
}

/// How many lines a file has; none where there is no file.
pub fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}
