//! `abide doctor`: looks for problems of the home, the settings, the daemon and the host, and says how to repair them.

mod models;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use abide_api::types::{Health, LedgerStats, SandboxPart};
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
use serde::Serialize;

use crate::cli::{PlaceArgs, UpArgs};
use crate::config::{self, Settings, WorkspaceFile};
use crate::connection::{self, CONFIG_CHANGED, block_on};
use crate::output::{Cell, Failed, Output, START_ONE, counted};
use crate::{home, options};

/// Less than this, and a day's facts may not fit.
const DISK_WARN_BYTES: u64 = 1 << 30;
const DISK_FAIL_BYTES: u64 = 50 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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

/// The result: every diagnosis, and whether none of them failed.
#[derive(Serialize)]
struct Examination<'a> {
    ok: bool,
    checks: &'a [Diagnosis],
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    name: &'static str,
    verdict: Verdict,
    found: String,
    /// The repair.
    fix: Option<String>,
}

impl Diagnosis {
    fn ok(name: &'static str, found: impl Into<String>) -> Diagnosis {
        Diagnosis { name, verdict: Verdict::Ok, found: found.into(), fix: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Diagnosis {
        Diagnosis { name, verdict: Verdict::Warn, found: found.into(), fix: Some(fix.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Diagnosis {
        Diagnosis { name, verdict: Verdict::Fail, found: found.into(), fix: Some(fix.into()) }
    }
}

pub fn run(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let mut diagnoses = vec![diagnose_home(&home), diagnose_token(&home)];
    diagnoses.push(diagnose_settings(&home));
    diagnoses.extend(workspace_files(&home));
    diagnoses.extend(models::diagnose_models(place));
    diagnoses.push(diagnose_policy(&home));
    diagnoses.extend(diagnose_notifications(&home));
    diagnoses.push(diagnose_daemon(place, &home));
    diagnoses.extend(diagnose_ledger(place, &home));
    diagnoses.extend(diagnose_disks(&home));
    diagnoses.push(diagnose_open_files(&home));
    // The folders that agents were given decide which programs are used.
    programs::serve_home(&home.canonicalize().unwrap_or_else(|_| home.clone()));
    diagnoses.push(diagnose_git());
    diagnoses.extend(programs::skipped_folders().iter().map(skipped));
    diagnoses.extend(diagnose_sandbox(place, &home));
    diagnoses.extend(writable_settings(place));
    diagnoses.extend(unsettled_git_dirs(&home).into_iter().map(|problem| {
        Diagnosis::warn("repository", problem, "look at it and repair it; no command starts in that folder before")
    }));
    let failed = diagnoses.iter().filter(|diagnosis| diagnosis.verdict == Verdict::Fail).count();
    out.result(&Examination { ok: failed == 0, checks: &diagnoses }, || {
        let row = |diagnosis: &Diagnosis| {
            let found = match &diagnosis.fix {
                Some(fix) => format!("{}; {fix}", diagnosis.found),
                None => diagnosis.found.clone(),
            };
            vec![Cell::status(diagnosis.verdict.word()), diagnosis.name.into(), found.into()]
        };
        out.columns(&["verdict", "what", "found"], &diagnoses.iter().map(row).collect::<Vec<_>>())
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

fn diagnose_home(home: &Path) -> Diagnosis {
    let folder = existing(home);
    let allowed = rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    let shown = home.display();
    match (allowed, home.exists(), folder.is_dir()) {
        (_, _, false) => {
            Diagnosis::fail("home", format!("{} is not a folder", folder.display()), "choose another --home")
        }
        (Err(error), _, _) => {
            let found = format!("{} can't be written to ({error})", folder.display());
            Diagnosis::fail("home", found, "change who owns it, or choose another --home")
        }
        (Ok(()), true, _) => match fs::metadata(home).map(|found| found.permissions().mode() & 0o777) {
            Ok(mode) if mode & 0o077 != 0 => {
                let found = format!("{shown} can be written to, and is open to others (mode {mode:o})");
                Diagnosis::warn("home", found, format!("chmod 700 {shown}"))
            }
            Ok(_) | Err(_) => Diagnosis::ok("home", format!("{shown} can be written to")),
        },
        (Ok(()), false, _) => Diagnosis::ok("home", format!("{shown} does not exist yet; the daemon makes it")),
    }
}

fn diagnose_token(home: &Path) -> Diagnosis {
    let path = connection::token_path(home);
    match fs::metadata(&path) {
        Err(_) => Diagnosis::ok("token", "none yet; the daemon makes it when it first starts"),
        Ok(found) if found.permissions().mode() & 0o077 == 0 => Diagnosis::ok("token", "only you can read it"),
        Ok(found) => {
            let found = format!("others may read {} (mode {:o})", path.display(), found.permissions().mode() & 0o777);
            Diagnosis::fail("token", found, format!("chmod 600 {}", path.display()))
        }
    }
}

fn diagnose_settings(home: &Path) -> Diagnosis {
    match Settings::load(home, &UpArgs::default()) {
        Err(error) => Diagnosis::fail("config", format!("{error:#}"), "`abide config schema` has what it may be"),
        Ok(_) if connection::has_old_settings(home) => {
            Diagnosis::warn("config", CONFIG_CHANGED, "`abide daemon restart` reads it")
        }
        Ok(_) => Diagnosis::ok("config", "every setting reads"),
    }
}

/// Every `abide.toml` that was trusted, and whether it is used.
fn workspace_files(home: &Path) -> Vec<Diagnosis> {
    let name = "abide.toml";
    let wrong =
        |found: String| Diagnosis::fail(name, found, "mend it: no agent can be made in that workspace until then");
    let trusted = match config::trusted_files(home) {
        Ok(trusted) => trusted,
        Err(error) => return vec![wrong(format!("{error:#}"))],
    };
    let settings = Settings::load(home, &UpArgs::default());
    let check = |file: anyhow::Result<WorkspaceFile>| match file {
        Err(error) => Some(wrong(format!("{error:#}"))),
        Ok(WorkspaceFile::UnusedFile(unused)) => Some(Diagnosis::warn(name, unused.found(), unused.fix())),
        Ok(WorkspaceFile::Trusted(file)) => {
            Some(match settings.as_ref().map(|settings| settings.in_workspace(&file)) {
                Ok(Err(error)) => wrong(format!("{error:#}")),
                // Mistakes in config.toml have a line of their own.
                Ok(Ok(_)) | Err(_) => Diagnosis::ok(name, format!("{} is trusted", file.path().display())),
            })
        }
        // The trust was taken back meanwhile.
        Ok(WorkspaceFile::Absent) => None,
    };
    trusted.into_iter().filter_map(check).collect()
}

fn diagnose_policy(home: &Path) -> Diagnosis {
    match policy_file::read(home) {
        Ok(None) => Diagnosis::ok("policy", "none: no call of an agent waits for a person (see docs/policy.md)"),
        Ok(Some(policy)) => Diagnosis::ok("policy", counted(policy.len() as u64, "rule")),
        Err(error) => {
            let fix = "mend it: until then a running daemon goes by the rules it had, and none starts";
            Diagnosis::fail("policy", format!("{error:#}"), fix)
        }
    }
}

/// Whether the operator would hear of anything, and has so far.
fn diagnose_notifications(home: &Path) -> Vec<Diagnosis> {
    // Mistakes in settings have a line of their own.
    let Ok(settings) = Settings::load(home, &UpArgs::default()) else { return Vec::new() };
    let chosen = [("command", &settings.notify_command.value), ("webhook", &settings.notify_webhook.value)];
    let chosen: Vec<&str> = chosen.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect();
    if chosen.is_empty() {
        let found = "off; `abide config set notify.command CMD` or notify.webhook has you told when an agent needs you";
        return vec![Diagnosis::ok("notify", found)];
    }
    if let Err(error) = options::notify(&settings) {
        return vec![Diagnosis::fail("notify", format!("{error:#}"), "mend it: no daemon starts until then")];
    }
    if let Some(missing) = settings.notify_command.value.as_deref().and_then(missing_program) {
        let found = format!("command: there is no program {missing}");
        return vec![Diagnosis::warn("notify", found, "install it, or `abide config set notify.command CMD`")];
    }
    let check = |name: &str| match SinkProgress::read(&SinkProgress::file(home, name)) {
        None => Diagnosis::ok("notify", format!("{name}: nothing to tell yet")),
        Some(place) => {
            let sent = format!("{name}: {} told", place.sent);
            match place.last_failure {
                None => Diagnosis::ok("notify", sent),
                Some(Failure { at, id, error }) => {
                    let found = format!(
                        "{sent}, {} given up; the last attempt that failed, at {at}: {error} ({id})",
                        place.failed
                    );
                    Diagnosis::warn(
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

fn diagnose_daemon(place: &PlaceArgs, home: &Path) -> Diagnosis {
    let client = match connection::find_if_any(place) {
        Ok(Some(client)) => client,
        Ok(None) => return Diagnosis::warn("daemon", format!("none serves {}", home.display()), START_ONE),
        Err(error) => return Diagnosis::fail("daemon", format!("{error:#}"), "see `abide daemon status`"),
    };
    let ours = env!("CARGO_PKG_VERSION");
    match block_on(async { Ok(client.health().await?) }) {
        Ok(Health { version, .. }) if version != ours => {
            let found = format!("{} answers with version {version}, and this is {ours}", client.base());
            Diagnosis::warn("daemon", found, "`abide daemon restart` brings them together")
        }
        Ok(Health { version, status, .. }) => {
            Diagnosis::ok("daemon", format!("{} answers: {status}, version {version}", client.base()))
        }
        Err(error) => {
            let fix = Failed::hint(&error).unwrap_or_else(|| "`abide daemon logs` may say why".to_owned());
            Diagnosis::fail("daemon", format!("{error:#}"), fix)
        }
    }
}

fn diagnose_ledger(place: &PlaceArgs, home: &Path) -> Vec<Diagnosis> {
    let wrong = |error: &anyhow::Error| {
        // Nothing is damaged where the home is only held, or another version's: the message says what to do.
        let fix = match error.downcast_ref() {
            Some(Failed::Refused(_)) => "nothing in it was changed",
            Some(_) | None => "`abide ledger verify` names the damage",
        };
        vec![Diagnosis::fail("ledger", format!("{error:#}"), fix)]
    };
    if let Ok(Some(client)) = connection::find_if_any(place) {
        return match block_on(async { Ok(client.ledger_stats().await?) }) {
            Ok(stats) => diagnose_counts(&stats, true),
            Err(error) => wrong(&error),
        };
    }
    if !home.join("ledger.db").exists() {
        return vec![Diagnosis::ok("ledger", "none yet; the daemon makes it when it first starts")];
    }
    // Looking does not upgrade a home.
    let read = home::open(home, Options::read_only()).and_then(|ledger| {
        // A daemon that runs has recorded them.
        abide_daemon::count_agent_folders(home, &ledger)?;
        Ok(upkeep::stats(&ledger)?)
    });
    match read {
        Ok(stats) => diagnose_counts(&stats, false),
        Err(error) if home::is_outdated(&error) => {
            let found = "an older version of abide wrote it; the daemon upgrades it when it starts, and from then on \
                         that older version refuses it";
            vec![Diagnosis::ok("ledger", found)]
        }
        Err(error) => wrong(&error),
    }
}

fn diagnose_counts(stats: &LedgerStats, served: bool) -> Vec<Diagnosis> {
    let (facts, streams) = (counted(stats.facts, "fact"), counted(stats.streams, "stream"));
    let bytes = grouped(stats.bytes);
    let found = format!("{facts} of {streams}, {bytes} bytes; `abide ledger verify` checks them");
    let mut diagnoses = vec![Diagnosis::ok("ledger", found)];
    let (outdated, unreadable) = (stats.outdated_rows, stats.unreadable_rows);
    if outdated > unreadable {
        let when = match served {
            true => "are rebuilt in the background, or when they are read,",
            false => "are rebuilt when the daemon starts,",
        };
        let of = counted(outdated - unreadable, "stream");
        let found = format!("the lists of {of} are another version's or damaged; they {when} and are right meanwhile");
        diagnoses.push(Diagnosis::ok("rows", found));
    }
    let damaged = stats.damaged_rows;
    if damaged > 0 {
        let rows = counted(damaged, "row");
        let found = format!(
            "{rows} of lists found damaged on disk since the daemon started; lists are rebuilt from the facts, where these \
             can be read"
        );
        diagnoses.push(Diagnosis::warn("rows", found, "check the disk; `abide ledger verify` looks for more damage"));
    }
    if unreadable > 0 {
        let of = counted(unreadable, "stream");
        let found = format!("the lists of {of} can't be rebuilt: the facts can't be read");
        diagnoses.push(Diagnosis::warn("rows", found, "`abide ledger verify` names the damage"));
    }
    diagnoses
}

/// Where the ledger is, and where what commands write is kept; once where they share a disk.
fn diagnose_disks(home: &Path) -> Vec<Diagnosis> {
    let (ledger, output) = (existing(home), existing(&home.join("agents")));
    let device = |folder: &Path| fs::metadata(folder).ok().map(|found| found.dev());
    if device(&ledger) == device(&output) {
        return vec![diagnose_disk("disk", &ledger)];
    }
    vec![diagnose_disk("disk", &ledger), diagnose_disk("output", &output)]
}

fn diagnose_disk(name: &'static str, folder: &Path) -> Diagnosis {
    match rustix::fs::statvfs(folder) {
        Err(error) => Diagnosis::warn(name, format!("can't look at {} ({error})", folder.display()), "see `df`"),
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let text = format!("{} MiB free for facts and for what commands write", grouped(free >> 20));
            match free {
                free if free < DISK_FAIL_BYTES => {
                    Diagnosis::fail(name, text, "make room: nothing can be recorded soon")
                }
                free if free < DISK_WARN_BYTES => Diagnosis::warn(name, text, "make room before it runs out"),
                _ => Diagnosis::ok(name, text),
            }
        }
    }
}

/// Of the daemon where one serves the home, else of what would be started here.
fn diagnose_open_files(home: &Path) -> Diagnosis {
    let pid = connection::serving(home).ok().flatten().map(|served| served.pid);
    let hard = hard_limit(pid);
    let connections = grouped(Limits::for_open_files(hard).connections as u64);
    if hard == u64::MAX {
        return Diagnosis::ok("files", format!("no limit of open files; {connections} connections at once"));
    }
    let found = format!("{} open at most; {connections} connections at once", grouped(hard));
    if Limits::for_open_files(hard).connections == Limits::default().connections {
        return Diagnosis::ok("files", found);
    }
    let fix = "raise the hard limit for the daemon: `ulimit -Hn 65536`, or LimitNOFILE=65536 of its service";
    Diagnosis::warn("files", found, fix)
}

/// The oldest git that lists worktrees so that every path can be read.
const GIT_LEAST: (u32, u32) = (2, 36);

fn diagnose_git() -> Diagnosis {
    let path = match programs::find_program("git") {
        Ok(path) => path,
        Err(why) => return Diagnosis::warn("git", why, "install git: worktrees need it"),
    };
    let said = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let found = format!("{said} at {}", path.display());
    let (major, minor) = GIT_LEAST;
    match git_version(&said) {
        Some(version) if version >= GIT_LEAST => Diagnosis::ok("git", found),
        Some(_) => Diagnosis::warn("git", found, format!("install {major}.{minor} or later: worktrees need it")),
        None => Diagnosis::warn("git", format!("{} does not say its version", path.display()), "install git anew"),
    }
}

/// A folder of PATH whose programs the daemon does not run.
fn skipped(skipped: &SkippedFolder) -> Diagnosis {
    let read_only = match skipped.why {
        UnsafeReason::AgentFolder(_) => "; commands of agents can only read it",
        UnsafeReason::Relative | UnsafeReason::Home | UnsafeReason::WritableByEveryone => "",
    };
    let (folder, why) = (skipped.folder.display(), &skipped.why);
    let found = format!("{folder} is skipped for the daemon's own programs: {why}{read_only}");
    Diagnosis::warn("path", found, "take it out of the daemon's PATH, or have agents work in worktrees")
}

/// `git version 2.47.3`, whatever follows.
fn git_version(said: &str) -> Option<(u32, u32)> {
    let mut parts = said.strip_prefix("git version ")?.split(['.', ' ', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The sandbox of commands: as the daemon found it if one runs, else as it is found now.
fn diagnose_sandbox(place: &PlaceArgs, home: &Path) -> Vec<Diagnosis> {
    let (found, by) = match connection::find_if_any(place) {
        Ok(Some(client)) => match block_on(async { Ok(client.sandbox().await?) }) {
            Ok(found) => (found, "as the daemon found it"),
            Err(error) => return vec![Diagnosis::warn("sandbox", format!("{error:#}"), "see `abide daemon status`")],
        },
        Ok(None) | Err(_) => (probe_sandbox(home), "tried now"),
    };
    let advice = |problem: &String| Diagnosis::warn("sandbox", problem.clone(), repair_hint(problem));
    let mut diagnoses = vec![enforced(&found, by)];
    // Where nothing works, why is what matters; the gaps of a mechanism that works are one thing to know.
    diagnoses.extend(found.problems.iter().map(advice));
    let counted = found.processes.clone();
    diagnoses.push(match counted.contains("because") {
        false => Diagnosis::ok("processes", counted),
        true => Diagnosis::warn(
            "processes",
            counted,
            "their number is still bounded, only later; a service with Delegate=yes has a group to count in",
        ),
    });
    let memory = found.memory.clone();
    diagnoses.push(match memory.contains("because") {
        false => Diagnosis::ok("memory", memory),
        true => Diagnosis::warn(
            "memory",
            memory,
            "one command is ended when it has too much, later than the kernel would; a service with Delegate=yes has a \
             group to bound it in",
        ),
    });
    diagnoses
}

/// Hooks and settings of the user's git that agents can write. Only a daemon knows where agents work.
fn writable_settings(place: &PlaceArgs) -> Vec<Diagnosis> {
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
                Diagnosis::warn(name, warning, fix)
            };
            found.into_iter().map(check).collect()
        }
        Err(error) => vec![Diagnosis::warn("settings", format!("{error:#}"), "see `abide daemon status`")],
    }
}

/// Each is a look at a disk.
const AGENTS_LOOKED_AT: usize = 500;

fn probe_sandbox(home: &Path) -> SandboxPart {
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

fn enforced(found: &SandboxPart, by: &str) -> Diagnosis {
    let SandboxPart { mode, mechanism, enforced, .. } = found;
    match (mechanism.as_str(), mode.as_str()) {
        ("none", "required") => Diagnosis::fail(
            "sandbox",
            format!("none works, and one is required: no command starts ({by})"),
            "install bubblewrap, or `abide config set sandbox auto`",
        ),
        ("none", "off") => Diagnosis::warn(
            "sandbox",
            format!("off: nothing keeps commands from your files and the network ({by})"),
            "`abide config set sandbox auto` turns it on",
        ),
        ("none", _) => Diagnosis::warn(
            "sandbox",
            format!("NONE WORKS: nothing keeps commands from your files and the network ({by})"),
            "install bubblewrap; until then `abide config set sandbox required` keeps commands from starting",
        ),
        (_, _) => Diagnosis::ok("sandbox", format!("{mechanism} ({by}); enforced: {}", enforced.join(", "))),
    }
}

/// The repair for a problem of the sandbox.
fn repair_hint(problem: &str) -> &'static str {
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
