//! What goes where: results on stdout, everything else on stderr, progress only to a terminal.

use std::io::{IsTerminal, Write};

use abide_ledger::Progress;
use serde_json::{Value, json};

/// An outcome with an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The command ran, and what it found is bad. It has said so already.
    #[error("{0}")]
    Found(String),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    NotFound(String),
}

impl Failed {
    pub fn code(error: &anyhow::Error) -> u8 {
        match error.downcast_ref::<Failed>() {
            Some(Failed::Found(_)) | None => 1,
            Some(Failed::Refused(_)) => 6,
            Some(Failed::NotFound(_)) => 8,
        }
    }
}

#[derive(Debug)]
pub struct Output {
    json: bool,
    terminal: bool,
}

impl Output {
    pub fn new(json: bool) -> Output {
        Output { json, terminal: std::io::stderr().is_terminal() }
    }

    /// The result: one JSON document, or text for people.
    pub fn result(&self, value: &Value, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        let shown = if self.json { format!("{value}\n") } else { text() };
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush()) {
            // Whoever read us has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }

    pub fn error(&self, error: &anyhow::Error) {
        self.clear_progress();
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        if self.json {
            eprintln!("{}", json!({ "error": causes.join(": ") }));
        } else {
            eprintln!("abide: {}", causes.join(": "));
        }
    }

    /// A bar on a terminal, nothing elsewhere.
    pub fn progress(&self, progress: Progress) {
        if !self.terminal {
            return;
        }
        const WIDTH: u64 = 30;
        let total = progress.total.max(1);
        let filled = usize::try_from(progress.done.min(total) * WIDTH / total).unwrap_or(0);
        let bar = format!("{}{}", "#".repeat(filled), "-".repeat(usize::try_from(WIDTH).unwrap_or(0) - filled));
        eprint!("\r\x1b[K{:<18} [{bar}] {} of {}", progress.what, progress.done, progress.total);
        // A bar that can't be drawn is no reason to stop.
        let _undrawn = std::io::stderr().flush();
    }

    pub fn clear_progress(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Names and values, aligned.
pub fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect()
}
