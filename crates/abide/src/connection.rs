//! Finding the daemon, and talking to it.

use std::fs::{self, TryLockError};
use std::future::Future;
use std::path::{Path, PathBuf};

use abide_api::Client;
use abide_private::read_regular_text;
use anyhow::Context;
use rustix::process::{Pid, test_kill_process};
use serde::Deserialize;

use crate::cli::PlaceArgs;
use crate::config::{SettingsFile, variable};
use crate::output::{Failed, START_ONE};
use crate::{folder, home};

/// The content of `daemon.json`, which exists while the daemon serves its home.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServedHome {
    pub url: String,
    pub pid: i32,
    /// Which config.toml it read when it started; an earlier version does not say.
    #[serde(default)]
    config_digest: Option<String>,
}

/// The warning about a daemon with outdated settings.
pub const CONFIG_CHANGED: &str = "config.toml changed since the daemon started";

impl ServedHome {
    /// Whether the home's config.toml is another one than it read.
    pub fn config_changed(&self, home: &Path) -> bool {
        let now = SettingsFile::digest_of(home).ok();
        self.config_digest.as_ref().zip(now).is_some_and(|(read, now)| *read != now)
    }
}

/// Whether the home's daemon has read another config.toml than the one that is there.
pub fn has_old_settings(home: &Path) -> bool {
    matches!(serving(home), Ok(Some(served)) if served.config_changed(home))
}

/// The daemon that was asked for. What it is asked may still find that nobody answers.
pub fn find(place: &PlaceArgs) -> anyhow::Result<Client> {
    match elsewhere(place)? {
        Some(client) => Ok(client),
        None => {
            let home = home::dir(place)?;
            of_home(place, &home)?.ok_or_else(|| no_daemon_error(&home))
        }
    }
}

/// The daemon that a command which can do without one goes through: the one that was named, or the home's.
pub fn find_if_any(place: &PlaceArgs) -> anyhow::Result<Option<Client>> {
    match elsewhere(place)? {
        Some(client) => Ok(Some(client)),
        None => of_home(place, &home::dir(place)?),
    }
}

pub fn no_daemon_error(home: &Path) -> anyhow::Error {
    Failed::NoDaemon(format!("no daemon serves {}; {START_ONE}", home.display())).into()
}

/// Runs what talks to a daemon. One thread is enough to wait with.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("can't start waiting for answers")?.block_on(future)
}

/// The daemon at `--url`. It gets the token that goes with it and never the home's, which is another daemon's secret.
fn elsewhere(place: &PlaceArgs) -> anyhow::Result<Option<Client>> {
    let Some(url) = place.url.clone().or_else(|| variable("ABIDE_URL")) else { return Ok(None) };
    let same = || {
        let home = home::dir(place).ok()?;
        let served = serving(&home).ok()??;
        (served.url == url.trim_end_matches('/')).then(|| read_token(&home).ok()).flatten()
    };
    let token = token(place).or_else(same).unwrap_or_default();
    Ok(Some(Client::new(&url, &token)?))
}

fn of_home(place: &PlaceArgs, home: &Path) -> anyhow::Result<Option<Client>> {
    let Some(served) = serving(home)? else { return Ok(None) };
    let token = token(place).map_or_else(|| read_token(home), Ok)?;
    Ok(Some(Client::new(&served.url, &token)?))
}

fn token(place: &PlaceArgs) -> Option<String> {
    place.token.clone().filter(|token| !token.is_empty()).or_else(|| variable("ABIDE_TOKEN"))
}

pub fn token_path(home: &Path) -> PathBuf {
    home.join("token")
}

fn read_token(home: &Path) -> anyhow::Result<String> {
    let path = token_path(home);
    let text = read_regular_text(&path).with_context(|| format!("can't read {}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Reads `daemon.json`. None if its process has ended.
pub fn serving(home: &Path) -> anyhow::Result<Option<ServedHome>> {
    let path = home.join("daemon.json");
    // A home that is no folder has no daemon. The error is reported when the home is opened.
    if home.is_file() {
        return Ok(None);
    }
    let Some(bytes) = folder::read_if_there(&path)? else { return Ok(None) };
    // An invalid file was truncated when the process that wrote it ended.
    let Ok(served) = serde_json::from_slice::<ServedHome>(&bytes) else { return Ok(None) };
    Ok((process_exists(served.pid) && writes_lock(home, served.pid)).then_some(served))
}

/// Whether a process of this id exists, of any user. A zombie does not count.
pub fn process_exists(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may itself hold brackets.
    if stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])) {
        return false;
    }
    match Pid::from_raw(pid) {
        // Not allowed to signal it, but it is there.
        Some(pid) if pid.as_raw_nonzero().get() > 0 => !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)),
        Some(_) | None => false,
    }
}

/// Whether the ledger's lock names this process. Its id alone may have passed to a stranger since.
fn writes_lock(home: &Path, pid: i32) -> bool {
    read_regular_text(&lock_path(home)).is_ok_and(|text| text.trim() == pid.to_string())
}

/// Whether this process holds the ledger at this moment: what has to be known before it is sent a signal.
pub fn holds_ledger(home: &Path, pid: i32) -> bool {
    let Ok(file) = fs::File::open(lock_path(home)) else { return false };
    // Taken and let go at once when nobody holds it.
    let held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    held && writes_lock(home, pid)
}

fn lock_path(home: &Path) -> PathBuf {
    home.join("ledger.lock")
}
