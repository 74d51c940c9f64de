//! `abide daemon status`: whether the daemon runs, and its address.

use std::path::Path;

use abide_api::types::Health;
use abide_api::{Client, ClientError};
use serde::Serialize;

use crate::cli::PlaceArgs;
use crate::commands::model;
use crate::connection::{self, CONFIG_CHANGED, block_on};
use crate::output::{Failed, Output, counted, table};

#[derive(Serialize)]
struct NotRunning<'a> {
    running: bool,
    home: &'a str,
}

/// A daemon that runs. Fields without a value are null.
#[derive(Serialize)]
struct Running<'a> {
    running: bool,
    config_changed: bool,
    home: &'a str,
    url: &'a str,
    pid: i32,
    status: &'static str,
    ready: bool,
    problem: Option<&'a str>,
    version: &'a str,
    agents_awake: u64,
    model: Option<&'a str>,
    model_note: Option<&'a str>,
}

pub fn run(place: &PlaceArgs, home: &Path, out: &Output) -> anyhow::Result<()> {
    let home_text = home.display().to_string();
    let Some(served) = connection::serving(home)? else {
        out.result(&NotRunning { running: false, home: &home_text }, || "not running\n".to_owned())?;
        return Err(connection::no_daemon_error(home));
    };
    let (health, problem) = block_on(read_health(&served.url))?;
    let status = if problem.is_some() { "not_ready" } else { "ready" };
    // The list of models takes the home's token.
    let models = model::find_as_it_is(place).ok();
    let default = models.as_ref().map(|models| &models.default);
    let changed = served.config_changed(home);
    let running = Running {
        running: true,
        config_changed: changed,
        home: &home_text,
        url: &served.url,
        pid: served.pid,
        status,
        ready: problem.is_none(),
        problem: problem.as_deref(),
        version: &health.version,
        agents_awake: health.agents_awake,
        model: default.map(|default| default.name.as_str()),
        model_note: default.and_then(|default| default.note.as_deref()),
    };
    out.result(&running, || {
        let mut rows = vec![
            ("running", status.replace('_', " ")),
            ("home", home_text.clone()),
            ("url", served.url.clone()),
            ("pid", served.pid.to_string()),
            ("version", health.version.clone()),
            ("awake", counted(health.agents_awake, "agent")),
        ];
        rows.extend(problem.as_ref().map(|problem| ("problem", problem.clone())));
        rows.extend(models.as_ref().map(|models| ("model", model::chosen(models))));
        rows.extend(changed.then(|| ("config", format!("{CONFIG_CHANGED}: `abide daemon restart` reads it"))));
        table(&rows)
    })?;
    match problem {
        None => Ok(()),
        Some(_) => Err(Failed::Found("the daemon runs, and is not ready".to_owned()).into()),
    }
}

/// The daemon's health, and the reason if it is not ready.
async fn read_health(url: &str) -> anyhow::Result<(Health, Option<String>)> {
    let client = Client::new(url, "")?;
    let problem = match client.health().await {
        Ok(_) => None,
        Err(ClientError::Refused(problem)) if problem.status == 503 => Some(problem.detail),
        Err(error) => return Err(error.into()),
    };
    Ok((client.alive().await?, problem))
}
