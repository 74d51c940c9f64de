//! Output: results on stdout, everything else on stderr, progress and hints only on a terminal.

mod columns;
mod failed;

use std::io::{IsTerminal, Write};

use abide_daemon::text::grouped;
use abide_kernel::time::Time;
use abide_kernel::visible::is_hidden;
pub use abide_kernel::visible::one_line;
use abide_ledger::Progress;
use anyhow::Context;
use serde::Serialize;
use serde_json::Value;

use columns::columns;
pub use columns::{Cell, Paint, meant};
pub use failed::{AgentFailure, Failed, START_ONE, Unanswered, Why};

use crate::{clock, span};

/// An error, as programs get it.
#[derive(Serialize)]
struct ErrorOutput<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<&'a [String]>,
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
}

#[derive(Debug)]
pub struct Output {
    json: bool,
    /// Whether a person sees stderr.
    terminal: bool,
    /// Whether a person sees stdout, and not a program or a file.
    seen: bool,
    colour: bool,
}

impl Output {
    pub fn new(json: bool) -> Output {
        let seen = std::io::stdout().is_terminal() && !json;
        // https://no-color.org: set to anything but nothing.
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Output { json, terminal: std::io::stderr().is_terminal(), seen, colour: seen && !plain }
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// The result: one JSON document, or text for people.
    pub fn result(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        self.line(value, text).map(|_read| ())
    }

    /// One of many results; false when nobody reads them any more.
    pub fn line(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<bool> {
        // The conversion to a value sorts the fields by name.
        let shown = if self.json { format!("{}\n", serde_json::to_value(value)?) } else { text() };
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(true),
            // The reader closed the pipe.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(error).context("can't write to stdout"),
        }
    }

    pub fn error(&self, error: &anyhow::Error) {
        self.clear_progress();
        let text = error_text(error);
        let hint = Failed::hint(error);
        if self.json {
            let failed = error.downcast_ref::<Failed>();
            let unanswered = match failed {
                Some(Failed::Unanswered(unanswered)) => Some(unanswered),
                _ => None,
            };
            let shown = ErrorOutput {
                agent_id: error.downcast_ref().map(|AgentFailure { agent_id, .. }| agent_id.as_str()),
                class: unanswered.and_then(|unanswered| unanswered.class.as_deref()),
                code: Failed::word(error),
                differences: match failed {
                    Some(Failed::Differs { differences, .. }) => Some(differences.as_slice()),
                    _ => None,
                },
                error: &text,
                hint,
                message_id: unanswered.map(|unanswered| unanswered.message_id.as_str()),
            };
            write_stderr(&format!("{}\n", serde_json::to_string(&shown).unwrap_or_default()));
        } else {
            write_stderr(&format!("abide: {text}\n"));
            if let Some(hint) = hint {
                self.hint(&hint);
            }
        }
    }

    /// Reports progress on stderr. It is left out where a program reads JSON.
    pub fn note(&self, text: &str) {
        if !self.json || self.terminal {
            self.warning(text);
        }
    }

    /// Reports a warning on stderr, in every mode.
    pub fn warning(&self, text: &str) {
        self.clear_progress();
        write_stderr(&format!("abide: {}\n", one_line(text)));
    }

    /// Whether a person is there for hints: what is asked only for their sake can be left out otherwise.
    pub fn has_hints(&self) -> bool {
        self.terminal && !self.json
    }

    /// A suggestion for the next command.
    pub fn hint(&self, text: &str) {
        if self.has_hints() {
            write_stderr(&format!("  {}\n", one_line(text)));
        }
    }

    /// Whether what passes is worth showing: to a person, or to a program that reads all there is.
    pub fn is_live(&self) -> bool {
        self.json || self.seen
    }

    /// The end of what somebody is saying, on one line of a terminal; nothing elsewhere.
    pub fn show_text_end(&self, text: &str) {
        if self.has_hints() {
            write_stderr(&format!("\r\x1b[K{}", line_end(text)));
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
            // The total is unknown.
            None => grouped(done),
            Some(filled) => {
                let part = |count, sign: &str| sign.repeat(usize::try_from(count).unwrap_or(0));
                let bar = format!("{}{}", part(filled, "#"), part(WIDTH - filled, "-"));
                format!("[{bar}] {} of {}", grouped(done), grouped(total))
            }
        };
        write_stderr(&format!("\r\x1b[K{what:<18} {line}"));
    }

    pub fn clear_progress(&self) {
        if self.terminal {
            write_stderr("\r\x1b[K");
        }
    }

    /// A time, from here where a person sees it and in full elsewhere; nothing where none was ever recorded.
    pub fn time(&self, time: Time) -> String {
        match time {
            Time::EPOCH => "-".to_owned(),
            time if self.seen => span::relative(time, clock::now()),
            time => time.to_string(),
        }
    }

    /// One that was told as a text.
    pub fn time_of(&self, text: &str) -> String {
        text.parse().map_or_else(|_| one_line(text), |time| self.time(time))
    }

    /// Ids as a table shows them: a person sees as much of their ends as tells them apart, a program all of them.
    pub fn ids(&self, ids: &[&str]) -> Vec<String> {
        if self.seen { columns::short_ids(ids) } else { ids.iter().map(|id| one_line(id)).collect() }
    }

    pub fn paint(&self, paint: Paint, text: &str) -> String {
        if self.colour { paint.on(text) } else { text.to_owned() }
    }

    /// Aligned columns under their titles.
    pub fn columns(&self, titles: &[&str], rows: &[Vec<Cell>]) -> String {
        columns(titles, rows, self.colour)
    }
}

/// Writes to stderr. A failure can't be reported anywhere and does not change the exit code.
fn write_stderr(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _untold = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// An error and its causes in one line. Many errors repeat their cause in their own words; it is said once. What was
/// read may be quoted at any length; it is cut.
fn error_text(error: &anyhow::Error) -> String {
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
    // Further lines are indented, also those of a text that is quoted: none can pass for an error of its own.
    let indented = |line: String| if line.starts_with("  ") { line } else { format!("  {line}") };
    let mut lines = parts.join(": ").lines().map(cut).collect::<Vec<_>>().into_iter();
    let first = lines.next().unwrap_or_default();
    std::iter::once(first).chain(lines.map(indented)).collect::<Vec<_>>().join("\n")
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

/// The same where lines are welcome: an answer, a log.
pub fn many_lines(text: &str) -> String {
    text.lines().map(|line| line.split('\t').map(one_line).collect::<Vec<_>>().join("\t") + "\n").collect()
}

/// Quoted text below a heading: each line is indented, so that none can pass for a heading itself. White space is kept.
pub fn quoted(text: &str) -> String {
    many_lines(text).lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}

/// JSON below a heading: the fields of an object one by one, texts of several lines as they are.
pub fn quoted_json(value: &Value, max: usize) -> String {
    let Some(fields) = value.as_object() else { return quoted(&truncate(&value.to_string(), max)) };
    let mut shown = String::new();
    for (name, field) in fields {
        match field.as_str() {
            Some(text) if text.contains('\n') => {
                shown.push_str(&format!("  {}:\n", one_line(name)));
                shown.extend(quoted(&truncate(text, max)).lines().map(|line| format!("  {line}\n")));
            }
            Some(text) => shown.push_str(&quoted(&format!("{name}: {}", truncate(text, max)))),
            None => shown.push_str(&quoted(&format!("{name}: {}", truncate(&field.to_string(), max)))),
        }
    }
    shown
}

/// The beginning of a text, and how long it is where that is not all of it.
fn truncate(text: &str, max: usize) -> String {
    let kept = abide_kernel::limits::clip(text, max);
    let more = if kept.len() < text.len() { format!("… (cut: {} bytes in all)", text.len()) } else { String::new() };
    format!("{kept}{more}")
}

/// A piece of a text that others come before and after.
pub fn spoken(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        '\r' => String::new(),
        c => one_line(c.encode_utf8(&mut [0; 4])),
    };
    text.chars().map(shown).collect()
}

/// As much of the end of a text as surely fits on a line. Letters beyond the plain ones may be twice as wide.
fn line_end(text: &str) -> String {
    const COLUMNS: usize = 72;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut left = COLUMNS;
    let fits = |c: &char| {
        let width = if c.is_ascii() { 1 } else { 2 };
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    let end: Vec<char> = line.chars().map(|c| if is_hidden(c) { ' ' } else { c }).rev().take_while(fits).collect();
    end.into_iter().rev().collect()
}

/// The beginning of a text, on one line.
pub fn gist(text: &str, bytes: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = abide_kernel::limits::clip(&line, bytes);
    let more = if kept.len() < line.len() { " …" } else { "" };
    format!("{}{more}", one_line(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_fits_on_a_line() {
        assert_eq!(line_end("one\n two\u{1b}[2J "), "one two [2J");
        assert_eq!(line_end(&"ab ".repeat(100)), " ab".repeat(24));
        assert_eq!(line_end(&"汉".repeat(100)), "汉".repeat(36));
    }
}
