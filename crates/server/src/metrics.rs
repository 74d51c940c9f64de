//! Counters for Prometheus, in its text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use abide_engine::Host;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By operation and status.
    requests: Mutex<BTreeMap<(&'static str, u16), RouteCounts>>,
    accept_failures: AtomicU64,
}

/// Gauges, read at the time of the request.
#[derive(Debug)]
pub(crate) struct Gauges {
    pub connections_open: usize,
    pub connections_anonymous: usize,
    pub connections_closed_for_room: u64,
    pub streams_open: usize,
    pub answer_bytes_held: usize,
    pub log_lines_lost: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct RouteCounts {
    count: u64,
    micros: u64,
}

impl Metrics {
    pub fn count(&self, operation: &'static str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = requests.entry((operation, status)).or_default();
        counted.count += 1;
        counted.micros += u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    }

    pub fn count_accept_failure(&self) {
        self.accept_failures.fetch_add(1, Ordering::Relaxed);
    }

    pub fn text(&self, host: &Host, gauges: &Gauges) -> String {
        let Gauges { connections_open, connections_anonymous, connections_closed_for_room, .. } = *gauges;
        let Gauges { streams_open, answer_bytes_held, log_lines_lost, .. } = *gauges;
        let mut text = String::new();
        let meter = host.meter();
        let mut one = |name: &str, kind: &str, help: &str, value: u64| {
            // Writing into a string can't fail.
            let _ok = writeln!(text, "# HELP abide_{name} {help}\n# TYPE abide_{name} {kind}\nabide_{name} {value}");
        };
        one("agents_awake", "gauge", "Agents with a loop in memory.", host.awake() as u64);
        one("connections_open", "gauge", "Open connections.", connections_open as u64);
        let help = "Open connections that have shown no good token.";
        one("connections_anonymous", "gauge", help, connections_anonymous as u64);
        let help = "Connections that were closed to make room for others.";
        one("connections_closed_for_room_total", "counter", help, connections_closed_for_room);
        let help = "Connections that could not be accepted at the first try.";
        one("accept_failures_total", "counter", help, self.accept_failures.load(Ordering::Relaxed));
        one("event_streams_open", "gauge", "Clients that follow events.", streams_open as u64);
        one(
            "answer_bytes_held",
            "gauge",
            "Memory of answers that are made or not yet taken.",
            answer_bytes_held as u64,
        );
        one("turns_total", "counter", "Turns started.", meter.turns.get());
        one("facts_total", "counter", "Facts committed by loops.", meter.facts.get());
        one("commits_total", "counter", "Commits of loops.", meter.commits.get());
        one(
            "commits_refused_total",
            "counter",
            "Commits of loops that the ledger refused.",
            meter.commits_refused.get(),
        );
        one("loads_total", "counter", "Agents read from the ledger.", meter.loads.get());
        one("loop_crashes_total", "counter", "Loops that crashed.", meter.crashes.get());
        one("agents_quarantined_total", "counter", "Agents that were left alone.", meter.quarantined.get());
        one("notifications_total", "counter", "Notifications that got through.", meter.notified.get());
        one("notifications_failed_total", "counter", "Notifications that were given up.", meter.notify_failed.get());
        let damaged = host.ledger().damaged_rows();
        one("damaged_rows_total", "counter", "Rows of lists that were found damaged on disk.", damaged);
        one("log_lines_lost_total", "counter", "Lines that could not be written to the log.", log_lines_lost);
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        text.push_str("# HELP abide_requests_total Requests answered.\n# TYPE abide_requests_total counter\n");
        for ((operation, status), counted) in &requests {
            let labels = format!("{{operation=\"{operation}\",status=\"{status}\"}}");
            let _ok = writeln!(text, "abide_requests_total{labels} {}", counted.count);
        }
        text.push_str(
            "# HELP abide_request_seconds_total Time spent on them.\n# TYPE abide_request_seconds_total counter\n",
        );
        for ((operation, status), counted) in &requests {
            let labels = format!("{{operation=\"{operation}\",status=\"{status}\"}}");
            let _ok = writeln!(
                text,
                "abide_request_seconds_total{labels} {}.{:06}",
                counted.micros / 1_000_000,
                counted.micros % 1_000_000
            );
        }
        text
    }
}
