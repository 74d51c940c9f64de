//! `abide daemon status`: whether it runs, and where.

use std::path::Path;

use abide_api::Client;
use serde_json::json;

use crate::connection::{self, block_on};
use crate::output::{Output, counted, table};

pub fn run(home: &Path, out: &Output) -> anyhow::Result<()> {
    let home_text = home.display().to_string();
    let Some(served) = connection::serving(home)? else {
        out.result(&json!({ "running": false, "home": home_text }), || "not running\n".to_owned())?;
        return Err(connection::none(home));
    };
    let health = block_on(async { Ok(Client::new(&served.url, "")?.health().await?) })?;
    let value = json!({
        "running": true, "home": home_text, "url": served.url, "pid": served.pid,
        "status": health.status, "version": health.version, "agents_awake": health.agents_awake,
    });
    out.result(&value, || {
        table(&[
            ("running", health.status.clone()),
            ("home", home_text.clone()),
            ("url", served.url.clone()),
            ("pid", served.pid.to_string()),
            ("version", health.version.clone()),
            ("awake", counted(health.agents_awake, "agent")),
        ])
    })
}
