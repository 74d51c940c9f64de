//! `abide up`: reads the settings, opens the home and serves it.

use std::path::Path;

use abide_daemon::{End, Event, FIRST_AGENT, Options, StartError, logs};
use serde::Serialize;
use tracing::level_filters::LevelFilter;

use crate::cli::{PlaceArgs, UpArgs};
use crate::config::{Log, Settings, Store};
use crate::output::{Failed, Output};
use crate::{home, options};

/// A line of `abide up --json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum EventLine<'a> {
    Ready { url: &'a str, pid: u32 },
    Stopped,
}

pub fn run(args: &UpArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let home = home::dir(place)?;
    let settings = Settings::load(&home, args)?;
    let options = options::daemon(&home, &settings)?;
    let ledger = match settings.store.value {
        Store::Sqlite => home::open_or_create(place)?,
    };
    logs::begin(level(settings.log.value), &home);
    match abide_daemon::run(&home, ledger, &options, &mut |event| report(&event, &home, &options, out)) {
        Ok(End::Stopped) => Ok(()),
        Ok(End::Forced(code)) => std::process::exit(code.into()),
        Err(StartError::Setting(problem)) => Err(Failed::Usage(problem).into()),
        Err(error @ (StartError::NoToken(_) | StartError::Policy(_) | StartError::Failed { .. })) => Err(error.into()),
    }
}

/// Prints an event. A failure does not end the daemon: the output may be on a full disk.
fn report(event: &Event<'_>, home: &Path, options: &Options, out: &Output) {
    let printed = match event {
        Event::Ready { url, is_new } => {
            let ready = EventLine::Ready { url, pid: std::process::id() };
            out.result(&ready, || welcome(url, home, options, *is_new))
        }
        Event::Stopped => out.result(&EventLine::Stopped, || "abide has stopped\n".to_owned()),
    };
    if let Err(error) = printed {
        tracing::warn!(error = format!("{error:#}"), "the standard output can't be written");
    }
}

fn welcome(url: &str, home: &Path, options: &Options, is_new: bool) -> String {
    let mut text = format!("abide is up at {url}, home {}\n", home.display());
    if let Some(note) = &options.models.default.note {
        text.push_str(&format!("{note}\n"));
    }
    if is_new {
        text.push_str(&format!("try, in another terminal:  abide send {FIRST_AGENT} --wait \"hello\"\n"));
    }
    text.push_str("Ctrl-C ends it; agents go on where they were when it is back\n");
    text
}

fn level(log: Log) -> LevelFilter {
    match log {
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
        Log::Trace => LevelFilter::TRACE,
    }
}
