//! `abide daemon start`: returns when the daemon is ready, or says why it is not.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use abide_api::Client;
use anyhow::{Context, anyhow};
use serde::Serialize;
use tokio::time::Instant;

use super::logs;
use crate::cli::UpArgs;
use crate::config::Settings;
use crate::connection::{self, ServedHome, block_on};
use crate::output::{Failed, Output};

const READY_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(30);
const TAIL_LINES: usize = 20;

#[derive(Serialize)]
struct StartResult<'a> {
    url: &'a str,
    pid: i32,
    /// False for a daemon that ran already.
    started: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<&'a [String]>,
}

pub fn run(args: &UpArgs, home: &Path, out: &Output) -> anyhow::Result<()> {
    // A mistake in the settings is reported here and not in a log.
    let settings = Settings::load(home, args)?;
    if let Some(served) = connection::serving(home)? {
        return already(args, home, &served, out);
    }
    crate::home::create(home).with_context(|| format!("can't create {}", home.display()))?;
    let mut child = spawn(args, home)?;
    let ready = block_on(ready(&mut child, home))?;
    let Some(served) = ready else {
        let died = child.try_wait()?;
        let what = match died {
            Some(status) => format!("it ended at once ({status})"),
            None => format!("it is not ready after {} s; it goes on trying", READY_WITHIN.as_secs()),
        };
        let log = abide_daemon::logs::path(home);
        let tail = logs::tail(&log, TAIL_LINES).unwrap_or_default();
        if tail.is_empty() && !crate::home::has_room(home) {
            // In this case the log could not be written either.
            return Err(anyhow!("the daemon did not start: {what}; no room is left on the disk of {}", home.display()));
        }
        return Err(anyhow!("the daemon did not start: {what}; {} says:\n{}", log.display(), tail.join("\n")));
    };
    let missing = settings.missing_keys();
    let warnings: Vec<String> = missing.iter().map(|(provider, variable)| keyless(provider, variable)).collect();
    let result = StartResult { url: &served.url, pid: served.pid, started: true, warnings: Some(&warnings) };
    out.result(&result, || format!("the daemon serves {} at {} (pid {})\n", home.display(), served.url, served.pid))?;
    for warning in &warnings {
        out.note(warning);
    }
    if let Some(note) = settings.model_note() {
        out.hint(&format!("{note}; `abide config set model PROVIDER/MODEL` changes that"));
    }
    Ok(())
}

/// The warning for a provider without a key. The daemon inherits its environment from this process.
fn keyless(provider: &str, variable: &str) -> String {
    format!("{provider} has no key: {variable} is not set here; set it, and `abide daemon restart` takes it along")
}

fn already(args: &UpArgs, home: &Path, served: &ServedHome, out: &Output) -> anyhow::Result<()> {
    let UpArgs { listen, store, model } = args;
    if [listen, store, model].into_iter().any(Option::is_some) {
        let (home, url) = (home.display(), &served.url);
        let message = format!("a daemon serves {home} at {url} already; `abide daemon restart` takes other settings");
        return Err(Failed::Refused(message).into());
    }
    let result = StartResult { url: &served.url, pid: served.pid, started: false, warnings: None };
    out.result(&result, || {
        format!("a daemon serves {} at {} already (pid {})\n", home.display(), served.url, served.pid)
    })
}

fn spawn(args: &UpArgs, home: &Path) -> anyhow::Result<Child> {
    let log = new_log(home)?;
    let program = std::env::current_exe().context("can't find this program")?;
    let mut command = Command::new(program);
    command.arg("--home").arg(std::path::absolute(home)?).args(["--detached", "up"]);
    let UpArgs { listen, store, model } = args;
    for (name, value) in [("--listen", listen), ("--store", store), ("--model", model)] {
        if let Some(value) = value {
            command.args([name, value]);
        }
    }
    let errors = log.try_clone().context("can't use the log twice")?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    command.spawn().context("can't start the daemon")
}

/// An empty log. The previous one is kept, because it may say why there is a new one.
fn new_log(home: &Path) -> anyhow::Result<File> {
    let path = abide_daemon::logs::path(home);
    abide_daemon::logs::rotate(&path).with_context(|| format!("can't begin a new log at {}", path.display()))
}

/// Waits until the child says where it serves and answers there; none when it died, or takes too long.
async fn ready(child: &mut Child, home: &Path) -> anyhow::Result<Option<ServedHome>> {
    let until = Instant::now() + READY_WITHIN;
    while Instant::now() < until {
        if let Some(served) = connection::serving(home)?
            && u32::try_from(served.pid) == Ok(child.id())
            && Client::new(&served.url, "")?.health().await.is_ok()
        {
            return Ok(Some(served));
        }
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(None)
}
