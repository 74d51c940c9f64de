//! `abide daemon status`: whether it runs, and where.

use std::path::Path;

use abide_api::Client;
use serde_json::json;

use crate::cli::PlaceArgs;
use crate::commands::model;
use crate::connection::{self, CONFIG_CHANGED, block_on};
use crate::output::{Output, counted, table};

pub fn run(place: &PlaceArgs, home: &Path, out: &Output) -> anyhow::Result<()> {
    let home_text = home.display().to_string();
    let Some(served) = connection::serving(home)? else {
        out.result(&json!({ "running": false, "home": home_text }), || "not running\n".to_owned())?;
        return Err(connection::none(home));
    };
    let health = block_on(async { Ok(Client::new(&served.url, "")?.health().await?) })?;
    // What agents think with is not for everybody: it takes the home's token.
    let models = model::find_as_it_is(place).ok();
    let default = models.as_ref().map(|models| &models.default);
    let changed = served.config_changed(home);
    let value = json!({
        "running": true, "config_changed": changed, "home": home_text, "url": served.url, "pid": served.pid,
        "status": health.status, "version": health.version, "agents_awake": health.agents_awake,
        "model": default.map(|default| &default.name), "model_note": default.and_then(|default| default.note.as_ref()),
    });
    out.result(&value, || {
        let mut rows = vec![
            ("running", health.status.clone()),
            ("home", home_text.clone()),
            ("url", served.url.clone()),
            ("pid", served.pid.to_string()),
            ("version", health.version.clone()),
            ("awake", counted(health.agents_awake, "agent")),
        ];
        rows.extend(models.as_ref().map(|models| ("model", model::chosen(models))));
        rows.extend(changed.then(|| ("config", format!("{CONFIG_CHANGED}: `abide daemon restart` reads it"))));
        table(&rows)
    })
}
