//! Whether the daemon is well, and what it counts.

use abide_api::types::Health;

use super::{Met, json, text};
use crate::gate::Call;
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

pub(super) fn readyz(call: &Call) -> Met {
    // A ledger that can't say where it ends can't be served from.
    call.app.host.ledger().end().map_err(|error| problems::unreadable(&error))?;
    Ok(json(200, &health(call, "ready")))
}

pub(super) fn metrics(call: &Call) -> Met {
    let limits = &call.app.options.limits;
    let open = limits.streams.saturating_sub(call.app.streams.available_permits());
    Ok(text(200, "text/plain; version=0.0.4", call.app.metrics.text(&call.app.host, open)))
}
