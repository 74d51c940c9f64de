//! `abide doctor`: whether everything is in order, and what to do where it is not.

mod models;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use abide_api::types::{Health, SandboxPart};
use abide_daemon::notify::{Failure, SinkProgress};
use abide_daemon::open_files::hard_limit;
use abide_daemon::text::grouped;
use abide_daemon::{counted_by, memory_bounded_by, policy_file};
use abide_effects::process::{Bounds, Processes, unsettled_git_dirs};
use abide_effects::programs::{self, SkippedFolder, UnsafeReason};
use abide_effects::sandbox::{Mode, Sandbox};
use abide_engine::upkeep;
use abide_ledger::Options;
use abide_server::Limits;
use serde_json::{Value, json};

use crate::cli::{PlaceArgs, UpArgs};
use crate::config::{self, Settings, WorkspaceFile};
use crate::connection::{self, CONFIG_CHANGED, block_on};
use crate::output::{Cell, Failed, Output, START_ONE, counted};
use crate::{home, options};

/// Less than this, and a day's facts may not fit.
const DISK_WARN_BYTES: u64 = 1 << 30;
const DISK_FAIL_BYTES: u64 = 50 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
        }
    }
}

#[derive(Debug)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    found: String,
    /// What to do about it.
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, verdict: Verdict::Ok, found: found.into(), fix: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, verdict: Verdict::Warn, found: found.into(), fix: Some(fix.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, verdict: Verdict::Fail, found: found.into(), fix: Some(fix.into()) }
    }
}

pub fn run(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let mut checks = vec![writable(&home), token(&home)];
    checks.push(settings(&home));
    checks.extend(workspace_files(&home));
    checks.extend(models::checks(place));
    checks.push(rules(&home));
    checks.extend(notifications(&home));
    checks.push(daemon(place, &home));
    checks.extend(ledger(place, &home));
    checks.extend(disks(&home));
    checks.push(open_files(&home));
    // The folders that agents were given decide which programs are used.
    programs::serve_home(&home.canonicalize().unwrap_or_else(|_| home.clone()));
    checks.push(git());
    checks.extend(programs::skipped_folders().iter().map(skipped));
    checks.extend(sandbox(place, &home));
    checks.extend(writable_settings(place));
    checks.extend(unsettled_git_dirs(&home).into_iter().map(|problem| {
        Check::warn("repository", problem, "look at it and repair it; no command starts in that folder before")
    }));
    let failed = checks.iter().filter(|check| check.verdict == Verdict::Fail).count();
    let item = |check: &Check| {
        let Check { name, verdict, found, fix } = check;
        json!({ "name": name, "verdict": verdict.word(), "found": found, "fix": fix })
    };
    let value = json!({ "ok": failed == 0, "checks": checks.iter().map(item).collect::<Vec<Value>>() });
    out.result(&value, || {
        let row = |check: &Check| {
            let found = match &check.fix {
                Some(fix) => format!("{}; {fix}", check.found),
                None => check.found.clone(),
            };
            vec![Cell::status(check.verdict.word()), check.name.into(), found.into()]
        };
        out.columns(&["verdict", "what", "found"], &checks.iter().map(row).collect::<Vec<_>>())
    })?;
    if failed > 0 {
        return Err(Failed::Found(format!("{} failed", counted(failed as u64, "check"))).into());
    }
    Ok(())
}

/// The nearest folder that exists. Looking must not make a home.
fn existing(home: &Path) -> PathBuf {
    let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    home.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_owned()
}

fn writable(home: &Path) -> Check {
    let folder = existing(home);
    let allowed = rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    let shown = home.display();
    match (allowed, home.exists(), folder.is_dir()) {
        (_, _, false) => Check::fail("home", format!("{} is not a folder", folder.display()), "choose another --home"),
        (Err(error), _, _) => {
            let found = format!("{} can't be written to ({error})", folder.display());
            Check::fail("home", found, "change who owns it, or choose another --home")
        }
        (Ok(()), true, _) => match fs::metadata(home).map(|found| found.permissions().mode() & 0o777) {
            Ok(mode) if mode & 0o077 != 0 => {
                let found = format!("{shown} can be written to, and is open to others (mode {mode:o})");
                Check::warn("home", found, format!("chmod 700 {shown}"))
            }
            Ok(_) | Err(_) => Check::ok("home", format!("{shown} can be written to")),
        },
        (Ok(()), false, _) => Check::ok("home", format!("{shown} does not exist yet; the daemon makes it")),
    }
}

fn token(home: &Path) -> Check {
    let path = connection::token_path(home);
    match fs::metadata(&path) {
        Err(_) => Check::ok("token", "none yet; the daemon makes it when it first starts"),
        Ok(found) if found.permissions().mode() & 0o077 == 0 => Check::ok("token", "only you can read it"),
        Ok(found) => {
            let found = format!("others may read {} (mode {:o})", path.display(), found.permissions().mode() & 0o777);
            Check::fail("token", found, format!("chmod 600 {}", path.display()))
        }
    }
}

fn settings(home: &Path) -> Check {
    match Settings::load(home, &UpArgs::default()) {
        Err(error) => Check::fail("config", format!("{error:#}"), "`abide config schema` has what it may be"),
        Ok(_) if connection::goes_by_old_settings(home) => {
            Check::warn("config", CONFIG_CHANGED, "`abide daemon restart` reads it")
        }
        Ok(_) => Check::ok("config", "every setting reads"),
    }
}

/// Every `abide.toml` that was trusted, and whether it is used.
fn workspace_files(home: &Path) -> Vec<Check> {
    let name = "abide.toml";
    let wrong = |found: String| Check::fail(name, found, "mend it: no agent can be made in that workspace until then");
    let trusted = match config::trusted_files(home) {
        Ok(trusted) => trusted,
        Err(error) => return vec![wrong(format!("{error:#}"))],
    };
    let settings = Settings::load(home, &UpArgs::default());
    let check = |file: anyhow::Result<WorkspaceFile>| match file {
        Err(error) => Some(wrong(format!("{error:#}"))),
        Ok(WorkspaceFile::Unused(unused)) => Some(Check::warn(name, unused.found(), unused.fix())),
        Ok(WorkspaceFile::Trusted(file)) => {
            Some(match settings.as_ref().map(|settings| settings.in_workspace(&file)) {
                Ok(Err(error)) => wrong(format!("{error:#}")),
                // What is wrong with config.toml is said above.
                Ok(Ok(_)) | Err(_) => Check::ok(name, format!("{} is trusted", file.path().display())),
            })
        }
        // The trust was taken back meanwhile.
        Ok(WorkspaceFile::Absent) => None,
    };
    trusted.into_iter().filter_map(check).collect()
}

fn rules(home: &Path) -> Check {
    match policy_file::read(home) {
        Ok(None) => Check::ok("policy", "none: no call of an agent waits for a person (see docs/policy.md)"),
        Ok(Some(policy)) => Check::ok("policy", counted(policy.len() as u64, "rule")),
        Err(error) => {
            let fix = "mend it: until then a running daemon goes by the rules it had, and none starts";
            Check::fail("policy", format!("{error:#}"), fix)
        }
    }
}

/// Whether the operator would hear of anything, and has so far.
fn notifications(home: &Path) -> Vec<Check> {
    // What is wrong with a setting is said above.
    let Ok(settings) = Settings::load(home, &UpArgs::default()) else { return Vec::new() };
    let chosen = [("command", &settings.notify_command.value), ("webhook", &settings.notify_webhook.value)];
    let chosen: Vec<&str> = chosen.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect();
    if chosen.is_empty() {
        let found = "off; `abide config set notify.command CMD` or notify.webhook has you told when an agent needs you";
        return vec![Check::ok("notify", found)];
    }
    if let Err(error) = options::notify(&settings) {
        return vec![Check::fail("notify", format!("{error:#}"), "mend it: no daemon starts until then")];
    }
    if let Some(missing) = settings.notify_command.value.as_deref().and_then(missing_program) {
        let found = format!("command: there is no program {missing}");
        return vec![Check::warn("notify", found, "install it, or `abide config set notify.command CMD`")];
    }
    let check = |name: &str| match SinkProgress::read(&SinkProgress::file(home, name)) {
        None => Check::ok("notify", format!("{name}: nothing to tell yet")),
        Some(place) => {
            let sent = format!("{name}: {} told", place.sent);
            match place.last_failure {
                None => Check::ok("notify", sent),
                Some(Failure { at, id, error }) => {
                    let found = format!(
                        "{sent}, {} given up; the last attempt that failed, at {at}: {error} ({id})",
                        place.failed
                    );
                    Check::warn(
                        "notify",
                        found,
                        format!("see that the {name} works; `abide daemon logs` has every attempt"),
                    )
                }
            }
        }
    };
    chosen.into_iter().map(check).collect()
}

/// The program that a command begins with, where it is plain to see and is not there.
fn missing_program(command: &str) -> Option<&str> {
    let first = command.split_whitespace().next()?;
    let plain = first.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    let there = if first.contains('/') { Path::new(first).exists() } else { programs::find_program(first).is_ok() };
    (plain && !there).then_some(first)
}

fn daemon(place: &PlaceArgs, home: &Path) -> Check {
    let client = match connection::find_if_any(place) {
        Ok(Some(client)) => client,
        Ok(None) => return Check::warn("daemon", format!("none serves {}", home.display()), START_ONE),
        Err(error) => return Check::fail("daemon", format!("{error:#}"), "see `abide daemon status`"),
    };
    let ours = env!("CARGO_PKG_VERSION");
    match block_on(async { Ok(client.health().await?) }) {
        Ok(Health { version, .. }) if version != ours => {
            let found = format!("{} answers with version {version}, and this is {ours}", client.base());
            Check::warn("daemon", found, "`abide daemon restart` brings them together")
        }
        Ok(Health { version, status, .. }) => {
            Check::ok("daemon", format!("{} answers: {status}, version {version}", client.base()))
        }
        Err(error) => {
            let fix = Failed::hint(&error).unwrap_or_else(|| "`abide daemon logs` may say why".to_owned());
            Check::fail("daemon", format!("{error:#}"), fix)
        }
    }
}

fn ledger(place: &PlaceArgs, home: &Path) -> Vec<Check> {
    let wrong = |error: &anyhow::Error| {
        // Nothing is damaged where the home is only held, or another version's: the message says what to do.
        let fix = match error.downcast_ref() {
            Some(Failed::Refused(_)) => "nothing in it was changed",
            Some(_) | None => "`abide ledger verify` names the damage",
        };
        vec![Check::fail("ledger", format!("{error:#}"), fix)]
    };
    if let Ok(Some(client)) = connection::find_if_any(place) {
        return match block_on(async { Ok(client.ledger_stats().await?) }) {
            Ok(stats) => counts(&stats, true),
            Err(error) => wrong(&error),
        };
    }
    if !home.join("ledger.db").exists() {
        return vec![Check::ok("ledger", "none yet; the daemon makes it when it first starts")];
    }
    // Looking does not upgrade a home.
    let read = home::open(home, Options::read_only()).and_then(|ledger| {
        // A daemon that runs has recorded them.
        abide_daemon::count_agent_folders(home, &ledger)?;
        Ok(upkeep::stats(&ledger)?)
    });
    match read {
        Ok(stats) => counts(&stats, false),
        Err(error) if home::is_outdated(&error) => {
            let found = "an older version of abide wrote it; the daemon upgrades it when it starts, and from then on \
                         that older version refuses it";
            vec![Check::ok("ledger", found)]
        }
        Err(error) => wrong(&error),
    }
}

fn counts(stats: &Value, served: bool) -> Vec<Check> {
    let number = |name: &str| stats.get(name).and_then(Value::as_u64).unwrap_or(0);
    let (facts, streams) = (counted(number("facts"), "fact"), counted(number("streams"), "stream"));
    let bytes = grouped(number("bytes"));
    let found = format!("{facts} of {streams}, {bytes} bytes; `abide ledger verify` checks them");
    let mut checks = vec![Check::ok("ledger", found)];
    let (outdated, unreadable) = (number("outdated_rows"), number("unreadable_rows"));
    if outdated > unreadable {
        let when = match served {
            true => "are rebuilt in the background, or when they are read,",
            false => "are rebuilt when the daemon starts,",
        };
        let of = counted(outdated - unreadable, "stream");
        let found = format!("the lists of {of} are another version's or damaged; they {when} and are right meanwhile");
        checks.push(Check::ok("rows", found));
    }
    let damaged = number("damaged_rows");
    if damaged > 0 {
        let rows = counted(damaged, "row");
        let found = format!(
            "{rows} of lists found damaged on disk since the daemon started; lists are rebuilt from the facts, where these \
             can be read"
        );
        checks.push(Check::warn("rows", found, "check the disk; `abide ledger verify` looks for more damage"));
    }
    if unreadable > 0 {
        let of = counted(unreadable, "stream");
        let found = format!("the lists of {of} can't be rebuilt: the facts can't be read");
        checks.push(Check::warn("rows", found, "`abide ledger verify` names the damage"));
    }
    checks
}

/// Where the ledger is, and where what commands write is kept; once where they share a disk.
fn disks(home: &Path) -> Vec<Check> {
    let (ledger, output) = (existing(home), existing(&home.join("agents")));
    let device = |folder: &Path| fs::metadata(folder).ok().map(|found| found.dev());
    if device(&ledger) == device(&output) {
        return vec![disk("disk", &ledger)];
    }
    vec![disk("disk", &ledger), disk("output", &output)]
}

fn disk(name: &'static str, folder: &Path) -> Check {
    match rustix::fs::statvfs(folder) {
        Err(error) => Check::warn(name, format!("can't look at {} ({error})", folder.display()), "see `df`"),
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let text = format!("{} MiB free for facts and for what commands write", grouped(free >> 20));
            match free {
                free if free < DISK_FAIL_BYTES => Check::fail(name, text, "make room: nothing can be recorded soon"),
                free if free < DISK_WARN_BYTES => Check::warn(name, text, "make room before it runs out"),
                _ => Check::ok(name, text),
            }
        }
    }
}

/// Of the daemon where one serves the home, else of what would be started here.
fn open_files(home: &Path) -> Check {
    let pid = connection::serving(home).ok().flatten().map(|served| served.pid);
    let hard = hard_limit(pid);
    let connections = grouped(Limits::for_open_files(hard).connections as u64);
    if hard == u64::MAX {
        return Check::ok("files", format!("no limit of open files; {connections} connections at once"));
    }
    let found = format!("{} open at most; {connections} connections at once", grouped(hard));
    if Limits::for_open_files(hard).connections == Limits::default().connections {
        return Check::ok("files", found);
    }
    let fix = "raise the hard limit for the daemon: `ulimit -Hn 65536`, or LimitNOFILE=65536 of its service";
    Check::warn("files", found, fix)
}

/// The oldest git that lists worktrees so that every path can be read.
const GIT_LEAST: (u32, u32) = (2, 36);

fn git() -> Check {
    let path = match programs::find_program("git") {
        Ok(path) => path,
        Err(why) => return Check::warn("git", why, "install git: worktrees need it"),
    };
    let said = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let found = format!("{said} at {}", path.display());
    let (major, minor) = GIT_LEAST;
    match git_version(&said) {
        Some(version) if version >= GIT_LEAST => Check::ok("git", found),
        Some(_) => Check::warn("git", found, format!("install {major}.{minor} or later: worktrees need it")),
        None => Check::warn("git", format!("{} does not say its version", path.display()), "install git anew"),
    }
}

/// A folder of PATH whose programs the daemon does not run.
fn skipped(skipped: &SkippedFolder) -> Check {
    let read_only = match skipped.why {
        UnsafeReason::AgentFolder(_) => "; commands of agents can only read it",
        UnsafeReason::Relative | UnsafeReason::Home | UnsafeReason::WritableByEveryone => "",
    };
    let (folder, why) = (skipped.folder.display(), &skipped.why);
    let found = format!("{folder} is skipped for the daemon's own programs: {why}{read_only}");
    Check::warn("path", found, "take it out of the daemon's PATH, or have agents work in worktrees")
}

/// `git version 2.47.3`, whatever follows.
fn git_version(said: &str) -> Option<(u32, u32)> {
    let mut parts = said.strip_prefix("git version ")?.split(['.', ' ', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// What keeps commands where they belong: as the daemon found it where one runs, else as it is found now.
fn sandbox(place: &PlaceArgs, home: &Path) -> Vec<Check> {
    let (found, by) = match connection::find_if_any(place) {
        Ok(Some(client)) => match block_on(async { Ok(client.sandbox().await?) }) {
            Ok(found) => (found, "as the daemon found it"),
            Err(error) => return vec![Check::warn("sandbox", format!("{error:#}"), "see `abide daemon status`")],
        },
        Ok(None) | Err(_) => (look(home), "tried now"),
    };
    let advice = |problem: &String| Check::warn("sandbox", problem.clone(), mend(problem));
    let mut checks = vec![enforced(&found, by)];
    // Where nothing works, why is what matters; the gaps of a mechanism that works are one thing to know.
    checks.extend(found.problems.iter().map(advice));
    let counted = found.processes.clone();
    checks.push(match counted.contains("because") {
        false => Check::ok("processes", counted),
        true => Check::warn(
            "processes",
            counted,
            "their number is still bounded, only later; a service with Delegate=yes has a group to count in",
        ),
    });
    let memory = found.memory.clone();
    checks.push(match memory.contains("because") {
        false => Check::ok("memory", memory),
        true => Check::warn(
            "memory",
            memory,
            "one command is ended when it has too much, later than the kernel would; a service with Delegate=yes has a \
             group to bound it in",
        ),
    });
    checks
}

/// Hooks and settings of the user's git that agents can write. Only a daemon knows where agents work.
fn writable_settings(place: &PlaceArgs) -> Vec<Check> {
    let Ok(Some(client)) = connection::find_if_any(place) else { return Vec::new() };
    let found: anyhow::Result<BTreeMap<(&'static str, String), Vec<String>>> = block_on(async {
        let mut found: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for agent in super::agent::all(&client).await?.into_iter().take(AGENTS_LOOKED_AT) {
            for warning in super::agent::writable(&client.surroundings(agent.id.as_str()).await?) {
                found.entry(warning).or_default().push(agent.id.to_string());
            }
        }
        Ok(found)
    });
    match found {
        Ok(found) => {
            let check = |((name, warning), agents): ((&'static str, String), Vec<String>)| {
                let fix = format!("have {} work in a worktree: abide workspace attach --worktree", agents.join(", "));
                Check::warn(name, warning, fix)
            };
            found.into_iter().map(check).collect()
        }
        Err(error) => vec![Check::warn("settings", format!("{error:#}"), "see `abide daemon status`")],
    }
}

/// Each is a look at a disk.
const AGENTS_LOOKED_AT: usize = 500;

fn look(home: &Path) -> SandboxPart {
    let settings = Settings::load(home, &UpArgs::default());
    let (mode, bounds) =
        settings.map_or((Mode::Auto, Bounds::default()), |settings| (settings.sandbox.value, settings.bounds()));
    let sandbox = Sandbox::probe(mode, home);
    let [counted, memory] = Processes::bounded_here();
    SandboxPart {
        mode: mode.as_str().to_owned(),
        mechanism: sandbox.mechanism().as_str().to_owned(),
        enforced: sandbox.enforced(false).into_iter().map(str::to_owned).collect(),
        problems: sandbox.problems().to_vec(),
        processes: counted_by(counted.as_ref().map(|how| *how).map_err(String::as_str)),
        memory: memory_bounded_by(memory.as_ref().map(|how| *how).map_err(String::as_str), bounds),
    }
}

fn enforced(found: &SandboxPart, by: &str) -> Check {
    let SandboxPart { mode, mechanism, enforced, .. } = found;
    match (mechanism.as_str(), mode.as_str()) {
        ("none", "required") => Check::fail(
            "sandbox",
            format!("none works, and one is required: no command starts ({by})"),
            "install bubblewrap, or `abide config set sandbox auto`",
        ),
        ("none", "off") => Check::warn(
            "sandbox",
            format!("off: nothing keeps commands from your files and the network ({by})"),
            "`abide config set sandbox auto` turns it on",
        ),
        ("none", _) => Check::warn(
            "sandbox",
            format!("NONE WORKS: nothing keeps commands from your files and the network ({by})"),
            "install bubblewrap; until then `abide config set sandbox required` keeps commands from starting",
        ),
        (_, _) => Check::ok("sandbox", format!("{mechanism} ({by}); enforced: {}", enforced.join(", "))),
    }
}

/// What to do about a problem that the sandbox names.
fn mend(problem: &str) -> &'static str {
    match problem.split_once(": ") {
        Some(("bubblewrap", why)) if why.contains("no bwrap in PATH") => "apt install bubblewrap, or your system's way",
        Some(("bubblewrap", _)) => {
            "let the daemon's user make namespaces: sysctl kernel.unprivileged_userns_clone=1, and on Ubuntu \
             kernel.apparmor_restrict_unprivileged_userns=0"
        }
        Some(("landlock", _)) => "bubblewrap has no such gap: make it work, or use a newer kernel",
        Some(("seccomp", _)) => "use a kernel with seccomp filters",
        Some((_, _)) | None => "see docs/sandbox.md for what each mechanism keeps commands from",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_whatever_follows() {
        assert_eq!(git_version("git version 2.47.3"), Some((2, 47)));
        assert_eq!(git_version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(git_version("git version 2.36-rc1"), Some((2, 36)));
        assert_eq!(git_version("something else"), None);
    }
}
