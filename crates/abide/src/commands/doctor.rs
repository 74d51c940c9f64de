//! `abide doctor`: whether everything is in order, and what to do where it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use abide_api::types::Health;
use abide_ledger::Options;
use serde_json::{Value, json};

use crate::cli::{PlaceArgs, UpArgs};
use crate::config::{ECHO, Settings};
use crate::connection::{self, block_on};
use crate::output::{Cell, Failed, Output, START_ONE, counted, grouped};
use crate::{home, output};

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
    checks.extend(config(&home));
    checks.extend([daemon(place, &home), ledger(place, &home), disk(&home)]);
    checks.extend([git(), bubblewrap()]);
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
        (Ok(()), true, _) => Check::ok("home", format!("{shown} can be written to")),
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

fn config(home: &Path) -> Vec<Check> {
    match Settings::load(home, &UpArgs::default()) {
        Err(error) => vec![Check::fail("config", format!("{error:#}"), "`abide config schema` has what it may be")],
        Ok(settings) => {
            let model = settings.model.value;
            let model = if model == ECHO {
                let fix = "`abide config set model PROVIDER/MODEL` gives them one";
                Check::warn("model", format!("{ECHO}: agents answer with what they are told"), fix)
            } else {
                Check::ok("model", model)
            };
            vec![Check::ok("config", "every setting reads"), model]
        }
    }
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
        Err(error) => Check::fail("daemon", format!("{error:#}"), "`abide daemon logs` may say why"),
    }
}

fn ledger(place: &PlaceArgs, home: &Path) -> Check {
    let counts = |facts: u64, streams: u64, bytes: u64| {
        let (facts, streams) = (counted(facts, "fact"), counted(streams, "stream"));
        Check::ok(
            "ledger",
            format!("{facts} of {streams}, {} bytes; `abide ledger verify` checks them", grouped(bytes)),
        )
    };
    let wrong =
        |error: &anyhow::Error| Check::fail("ledger", format!("{error:#}"), "`abide ledger verify` names the damage");
    if let Ok(Some(client)) = connection::find_if_any(place) {
        return match block_on(async { Ok(client.ledger_stats().await?) }) {
            Ok(stats) => {
                let number = |name: &str| stats.get(name).and_then(Value::as_u64).unwrap_or(0);
                counts(number("facts"), number("streams"), number("bytes"))
            }
            Err(error) => wrong(&error),
        };
    }
    if !home.join("ledger.db").exists() {
        return Check::ok("ledger", "none yet; the daemon makes it when it first starts");
    }
    match home::open_existing(place, Options::read_only()).and_then(|ledger| Ok(ledger.stats()?)) {
        Ok(stats) => counts(stats.facts, stats.streams, stats.bytes),
        Err(error) => wrong(&error),
    }
}

fn disk(home: &Path) -> Check {
    let folder = existing(home);
    match rustix::fs::statvfs(&folder) {
        Err(error) => Check::warn("disk", format!("can't look at {} ({error})", folder.display()), "see `df`"),
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let text = format!("{} MiB free", output::grouped(free >> 20));
            match free {
                free if free < DISK_FAIL_BYTES => Check::fail("disk", text, "make room: nothing can be recorded soon"),
                free if free < DISK_WARN_BYTES => Check::warn("disk", text, "make room before it runs out"),
                _ => Check::ok("disk", text),
            }
        }
    }
}

fn git() -> Check {
    match program("git") {
        Some(path) => Check::ok("git", path.display().to_string()),
        None => Check::warn("git", "not found", "install git: worktrees need it"),
    }
}

fn bubblewrap() -> Check {
    match program("bwrap") {
        Some(path) => Check::ok("bubblewrap", path.display().to_string()),
        None => Check::warn("bubblewrap", "not found", "install bubblewrap: without it commands are not shut in"),
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let runs = |file: &PathBuf| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(runs)
}
