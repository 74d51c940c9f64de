//! Logs: to stderr, for people on a terminal and as JSON lines otherwise. They name agents and operations, never what
//! was said.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;

/// Begins logging. Only a daemon logs.
pub fn begin(level: LevelFilter) {
    let logs = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    let began = if std::io::stderr().is_terminal() {
        logs.compact().try_init()
    } else {
        logs.json().flatten_event(true).try_init()
    };
    // Somebody else may log already: a test, for one.
    drop(began);
}
