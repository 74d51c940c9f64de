//! Health and metrics of the daemon.

use std::sync::Arc;

use abide_api::types::Health;

use super::{RouteResult, blocking, json, text};
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

pub(super) fn healthz(call: &Call) -> RouteResult {
    Ok(json(200, &health(call, "alive")))
}

/// The daemon is ready if it can read and write its ledger.
pub(super) async fn readyz(call: Call) -> RouteResult {
    let app = Arc::clone(&call.app);
    blocking(move || {
        let ledger = app.host.ledger();
        // A ledger whose end can't be read can't be served.
        ledger.end().map_err(|error| problems::unreadable(&error))?;
        // After a refused commit, only another write shows whether commits work again. This one changes no stream.
        match ledger.write_failure() {
            None => Ok(()),
            Some(_) => ledger.try_write().map_err(|refusal| problems::not_written(&refusal)),
        }
    })
    .await?;
    Ok(json(200, &health(&call, "ready")))
}

pub(super) fn metrics(call: &Call) -> RouteResult {
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
