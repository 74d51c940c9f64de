//! Whether the daemon is well, and what it counts.

use std::sync::Arc;

use abide_api::types::Health;

use super::{Met, blocking, json, text};
use crate::call::Call;
use crate::metrics::Gauges;
use crate::problems;

fn health(call: &Call, status: &str) -> Health {
    Health {
        status: status.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        agents_awake: call.app.host.awake() as u64,
    }
}

pub(super) fn healthz(call: &Call) -> Met {
    Ok(json(200, &health(call, "alive")))
}

/// Ready is a daemon that can read its ledger and record what it is asked to.
pub(super) async fn readyz(call: Call) -> Met {
    let app = Arc::clone(&call.app);
    blocking(move || {
        let ledger = app.host.ledger();
        // A ledger that can't say where it ends can't be served from.
        ledger.end().map_err(|error| problems::unreadable(&error))?;
        // While commits were refused, it takes a write to find out whether they still are. This one is nobody's.
        match ledger.write_failure() {
            None => Ok(()),
            Some(_) => ledger.try_write().map_err(|refusal| problems::not_written(&refusal)),
        }
    })
    .await?;
    Ok(json(200, &health(&call, "ready")))
}

pub(super) fn metrics(call: &Call) -> Met {
    let app = &call.app;
    let gauges = Gauges {
        connections_open: app.connections.open(),
        connections_anonymous: app.connections.anonymous(),
        connections_closed_for_room: app.connections.closed_for_room(),
        streams_open: app.streams.in_use(),
        answer_bytes_held: app.answers.held_bytes(),
        log_lines_lost: (app.options.log_lines_lost)(),
    };
    Ok(text(200, "text/plain; version=0.0.4", app.metrics.text(&app.host, &gauges)))
}
