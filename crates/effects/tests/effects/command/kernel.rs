//! The table of system calls and kernel files in docs/sandbox.md, tried row by row inside a command. The table is part
//! of the test: a row that is missing, or that says something else than what happens, fails it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::{STAND_IN, World, in_each_sandbox, until};
use abide_effects::sandbox::{Mechanism, Mode, Sandbox};

in_each_sandbox!(
    the_table_of_the_documentation_is_true,
    the_table_is_true_for_an_ordinary_user,
    limits_of_its_own_can_be_set,
    usual_programs_still_work
);

/// A process of the same user outside the sandbox.
struct Victim {
    process: Child,
    _input: Option<ChildStdin>,
    pid: String,
    key: String,
}

impl Victim {
    fn start(mut program: Command) -> Victim {
        let mut process = program.arg("__victim").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (pid, key) = line.trim().split_once(' ').unwrap();
        let (pid, key) = (pid.to_owned(), key.to_owned());
        Victim { _input: process.stdin.take(), process, pid, key }
    }

    fn is_unharmed(&mut self) {
        assert!(self.process.try_wait().unwrap().is_none(), "the process outside has ended");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // The end of its input ends it, and it takes its shared memory with it.
        self._input = None;
        let _ended = self.process.wait();
    }
}

/// The user of the probes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Root,
    Ordinary,
}

impl User {
    fn of_this_test() -> User {
        if rustix::process::geteuid().is_root() { User::Root } else { User::Ordinary }
    }
}

/// The rows of the table: for each name, the cell of this mechanism.
fn documented(mechanism: Mechanism, network: bool, user: User) -> BTreeMap<String, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sandbox.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("<!-- tried: begin -->").unwrap();
    let (table, _) = rest.split_once("<!-- tried: end -->").unwrap();
    let column = if mechanism == Mechanism::Bubblewrap { 1 } else { 2 };
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let word = cells[column];
        let word = choose(word, "; with network ", network);
        let word = choose(word, "; as root ", user == User::Root);
        assert!(["refused", "allowed"].contains(&word), "{line}");
        (cells[0].replace('`', ""), word.to_owned())
    });
    rows.collect()
}

/// The cell's word for the exception if it holds, its usual word otherwise.
fn choose<'a>(cell: &'a str, exception: &str, holds: bool) -> &'a str {
    match cell.split_once(exception) {
        Some((_, word)) if holds => word,
        Some((word, _)) => word,
        None => cell,
    }
}

fn tried(report: &str) -> BTreeMap<String, (String, String)> {
    let lines = report.lines().map(|line| {
        let [name, word, error] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (name.to_owned(), (word.to_owned(), error.to_owned()))
    });
    lines.collect()
}

/// New calls that this machine's kernel does not have: rows that it can't answer.
fn unknown() -> Vec<String> {
    let said = Command::new(STAND_IN).arg("__unknown").output().unwrap();
    let unknown = String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect();
    println!("this kernel does not have {unknown:?}");
    unknown
}

fn compare(documented: &BTreeMap<String, String>, tried: &BTreeMap<String, (String, String)>) {
    let unknown = unknown();
    let wrong: Vec<String> = tried
        .iter()
        .filter(|(name, (word, _))| documented.get(*name) != Some(word))
        .filter(|(name, _)| !(unknown.contains(name) && documented.contains_key(*name)))
        .map(|(name, (word, error))| format!("{name}: {word} ({error}), documented: {:?}", documented.get(name)))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    if cfg!(target_arch = "x86_64") {
        let untried: Vec<_> = documented.keys().filter(|name| !tried.contains_key(*name)).collect();
        assert_eq!(untried, Vec::<&String>::new(), "rows that no probe tries");
    }
}

async fn the_table_of_the_documentation_is_true(world: World) {
    for network in [false, true] {
        let mut victim = Victim::start(Command::new(STAND_IN));
        let mut launch = world.launch(&format!("{STAND_IN} __probe {} {}; true", victim.pid, victim.key));
        launch.network = network;
        launch.extra_read = vec![STAND_IN.into()];
        let process = world.processes.start(launch).await.unwrap();
        process.wait().await;
        let output = process.output();
        println!("{}", String::from_utf8_lossy(&output.stderr.whole().unwrap()));
        let report = String::from_utf8(output.stdout.whole().unwrap()).unwrap();
        compare(&documented(world.mechanism, network, User::of_this_test()), &tried(&report));
        victim.is_unharmed();
    }
}

const NOBODY: u32 = 65_534;

async fn the_table_is_true_for_an_ordinary_user(world: World) {
    if !rustix::process::geteuid().is_root() {
        println!("not tested here: it takes the superuser to become another user; the other test is this one");
        return;
    }
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    open(world.dir.path());
    let program = world.path("root/probe");
    fs::copy(STAND_IN, &program).unwrap();
    open(&program);
    for name in ["home", "root", "home/token"] {
        chown(world.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let as_nobody = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        command.env("HOME", "/nonexistent");
        command
    };
    let mut victim = Victim::start(as_nobody());
    let command = format!("./probe __probe {} {} > report; touch done", victim.pid, victim.key);
    let mut start = as_nobody();
    start.arg(world.path("home")).arg(world.path("root")).arg(world.mechanism.as_str()).arg(command);
    start.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut daemon = start.spawn().unwrap();
    let mut said = BufReader::new(daemon.stderr.take().unwrap());
    until("it has tried", || {
        if let Ok(Some(_)) = daemon.try_wait() {
            let mut why = String::new();
            std::io::Read::read_to_string(&mut said, &mut why).unwrap();
            panic!("the command did not start: {why}");
        }
        world.path("root/done").exists()
    })
    .await;
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let report = fs::read_to_string(world.path("root/report")).unwrap();
    compare(&documented(world.mechanism, false, User::Ordinary), &tried(&report));
    victim.is_unharmed();
}

async fn limits_of_its_own_can_be_set(world: World) {
    let (text, code) = world.say("ulimit -n 100 && ulimit -n && test $(nice -n 19 nice) -eq 19 && ls | cat").await;
    assert_eq!((text.as_str(), code), ("100\n", Some(0)));
}

/// Programs that threads, forks and pipes are made of, with the calls that are refused around them.
async fn usual_programs_still_work(world: World) {
    let command = "set -e
        printf 'b\\na\\n' > list; sort --parallel=4 list; xargs -P 4 -n 1 echo < list | wc -l
        git init -q repo; (sleep 0 & wait); timeout 5 true; flock list true; tar -cf - list | tar -tf -
        chmod 755 list; cp -p list copy; cp -a repo repo2; install -m 755 list installed; install -d -m 1777 folder
        tar -cf all.tar list repo; mkdir out; tar -xpf all.tar -C out; test -x out/list -a -x copy -a -x installed
        echo x > /dev/stderr; echo done > /dev/stdout";
    let (text, code) = world.say(command).await;
    assert_eq!((text.as_str(), code), ("a\nb\n2\nlist\ndone\n", Some(0)));
}

/// A mechanism that does not work is not tested elsewhere, so an argument that bubblewrap does not take would go
/// unnoticed.
#[test]
fn bubblewrap_is_used_where_it_works() {
    let works = Command::new("bwrap").args(["--unshare-pid", "--ro-bind", "/", "/", "true"]).output();
    if !works.is_ok_and(|tried| tried.status.success()) {
        println!("not tested here: bubblewrap is not installed, or the kernel lets it make no namespaces");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::probe(Mode::Auto, home.path());
    assert_eq!(sandbox.mechanism(), Mechanism::Bubblewrap, "{:?}", sandbox.problems());
}

/// As another version of bubblewrap might be.
#[test]
fn a_bubblewrap_that_leaves_the_kernel_writable_is_not_used() {
    let Some(world) = World::new(Mechanism::Bubblewrap) else { return };
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("bwrap")).find(|file| file.is_file()).unwrap();
    let wrapper = format!(
        "#!/bin/bash
         while (($#)); do
             if [ \"$1 $2\" = '--remount-ro /proc' ]; then shift 2; else kept+=(\"$1\"); shift; fi
         done
         exec {} \"${{kept[@]}}\"",
        real.display()
    );
    fs::write(world.path("outside/bwrap"), wrapper).unwrap();
    fs::set_permissions(world.path("outside/bwrap"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut start = Command::new(STAND_IN);
    start.arg(world.path("home")).arg(world.path("root")).args(["bubblewrap", "true"]);
    start.env("PATH", format!("{}:{path}", world.path("outside").display()));
    let said = String::from_utf8(start.output().unwrap().stderr).unwrap();
    assert!(said.contains("it leaves the kernel's files open for writing: "), "{said}");
    assert!(said.contains("/proc/self/oom_score_adj"), "{said}");
}
