//! How words of others stand in a prompt. Labels of the runtime begin a line with `[abide`; nothing that anybody else
//! wrote can begin a line so, whatever it contains: outside content stands behind a bar on every line of it, a short
//! text stands between quotes on one line, and a person's own line that looks like a label is marked.

use crate::limits::clip;

/// The beginning of a label, and of nothing else.
pub(super) const LABEL: &str = "[abide";

/// Every character that some reader takes for the end of a line.
fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    // A carriage return and a newline are one end of a line.
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.find(ends_line) else {
            rest = None;
            return Some(text);
        };
        let after = &text[at..];
        let end = if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(1, char::len_utf8) };
        rest = Some(&after[end..]);
        Some(&text[..at])
    })
}

/// Every line of it behind a bar.
#[must_use]
pub(super) fn barred(text: &str) -> String {
    let mut barred = String::with_capacity(text.len() + text.len() / 16 + 2);
    for (index, line) in lines(text).enumerate() {
        if index > 0 {
            barred.push('\n');
        }
        barred.push_str("| ");
        barred.push_str(line);
    }
    barred
}

/// On one line, between quotes, at most so long.
#[must_use]
pub(super) fn quote_line(text: &str, max: usize) -> String {
    let short = clip(text, max);
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

/// The text of a person, as they wrote it; but a line of theirs is never taken for a label.
#[must_use]
pub(super) fn plain(text: &str) -> String {
    if !text.contains(LABEL) {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len() + 8);
    let mut begins = true;
    for (at, c) in text.char_indices() {
        if begins && text[at..].starts_with(LABEL) {
            plain.push('\\');
        }
        begins = ends_line(c);
        plain.push(c);
    }
    plain
}
