//! What goes where: results on stdout, everything else on stderr, progress only to a terminal.

use std::io::{IsTerminal, Write};

use abide_ledger::Progress;
use anyhow::Context;
use serde_json::{Value, json};

/// An outcome with an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The command ran, and what it found is bad. It has said so already.
    #[error("{0}")]
    Found(String),
    #[error("{what}:\n  {}", differences.join("\n  "))]
    Differs { what: String, differences: Vec<String> },
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    NotFound(String),
}

impl Failed {
    pub fn code(error: &anyhow::Error) -> u8 {
        match error.downcast_ref::<Failed>() {
            Some(Failed::Found(_) | Failed::Differs { .. }) | None => 1,
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
            other => other.context("can't write to stdout"),
        }
    }

    pub fn error(&self, error: &anyhow::Error) {
        self.clear_progress();
        let text = said(error);
        if self.json {
            let mut value = json!({ "error": text });
            if let Some(Failed::Differs { differences, .. }) = error.downcast_ref() {
                value["differences"] = json!(differences);
            }
            tell(&format!("{value}\n"));
        } else {
            tell(&format!("abide: {text}\n"));
        }
    }

    /// A bar on a terminal, nothing elsewhere.
    pub fn progress(&self, progress: Progress) {
        const WIDTH: u64 = 30;
        if !self.terminal {
            return;
        }
        let Progress { what, done, total } = progress;
        let line = match (done.min(total) * WIDTH).checked_div(total) {
            // Nobody knows how much is to come.
            None => grouped(done),
            Some(filled) => {
                let part = |count, sign: &str| sign.repeat(usize::try_from(count).unwrap_or(0));
                let bar = format!("{}{}", part(filled, "#"), part(WIDTH - filled, "-"));
                format!("[{bar}] {} of {}", grouped(done), grouped(total))
            }
        };
        tell(&format!("\r\x1b[K{what:<18} {line}"));
    }

    pub fn clear_progress(&self) {
        if self.terminal {
            tell("\r\x1b[K");
        }
    }
}

/// What can't be told on stderr can't be told at all; it is no reason to end differently.
fn tell(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _untold = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// An error and its causes in one line. Many errors repeat their cause in their own words; it is said once. What was
/// read may be quoted at any length; it is cut.
fn said(error: &anyhow::Error) -> String {
    const LONGEST: usize = 2_000;
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !parts.last().is_some_and(|last| last.contains(&cause)) {
            parts.push(cause);
        }
    }
    let cut = |line: &str| {
        let kept = abide_kernel::limits::clip(line, LONGEST);
        let more = if kept.len() < line.len() { " …" } else { "" };
        format!("{}{more}", one_line(kept))
    };
    parts.join(": ").lines().map(cut).collect::<Vec<_>>().join("\n")
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

/// `1 fact`, `2 facts`.
pub fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

/// Names and values, aligned.
pub fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:<width$}  {}\n", one_line(value))).collect()
}

/// What somebody wrote, without what would move a terminal's cursor or pass for a line of ours.
pub fn one_line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}
