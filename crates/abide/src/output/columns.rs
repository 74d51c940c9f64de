//! Columns that line up, for people.

use super::one_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Dim,
    Bold,
    Good,
    Warn,
    Bad,
}

impl Paint {
    pub fn on(self, text: &str) -> String {
        let code = match self {
            Paint::Plain => return text.to_owned(),
            Paint::Dim => "2",
            Paint::Bold => "1",
            Paint::Good => "32",
            Paint::Warn => "33",
            Paint::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// How the status of an agent or a record looks.
    pub fn of_status(status: &str) -> Paint {
        match status {
            "awake_running" | "running" | "active" | "current" | "ok" => Paint::Good,
            "stopped" | "failed" | "interrupted" | "denied" | "fail" => Paint::Bad,
            "booting" | "pending" | "warn" | "blocked" => Paint::Warn,
            "completed" | "cancelled" | "triggered" | "revoked" | "expired" => Paint::Dim,
            _ => Paint::Plain,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Cell {
    pub text: String,
    pub paint: Paint,
}

impl Cell {
    pub fn status(text: &str) -> Cell {
        Cell { text: one_line(text), paint: Paint::of_status(text) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text: one_line(&text), paint: Paint::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell { text: one_line(text), paint: Paint::Plain }
    }
}

pub fn columns(titles: &[&str], rows: &[Vec<Cell>], colour: bool) -> String {
    let title = |text: &&str| Cell { text: text.to_uppercase(), paint: Paint::Dim };
    let head: Vec<Cell> = titles.iter().map(title).collect();
    let lines = || std::iter::once(&head).chain(rows);
    let width = |column: usize| lines().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max();
    let widths: Vec<usize> = (0..titles.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in lines() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            let pad = if last { 0 } else { widths[column].saturating_sub(cell.text.chars().count()) + 2 };
            line.push_str(&if colour { cell.paint.on(&cell.text) } else { cell.text.clone() });
            line.push_str(&" ".repeat(pad));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The shortest ends of ids that tell them apart, after their typed prefix. The ends, because ids begin with the time.
pub fn short_ids(ids: &[&str]) -> Vec<String> {
    const LEAST: usize = 8;
    let parts: Vec<(&str, &str)> = ids.iter().map(|id| id.split_once('_').unwrap_or(("", id))).collect();
    let longest = parts.iter().map(|(_, rest)| rest.len()).max().unwrap_or(0);
    let shown = |length: usize| -> Vec<String> {
        let cut = |(prefix, rest): &(&str, &str)| match rest.len().checked_sub(length) {
            // Only what we made ourselves has a prefix and is plain; other ids are shown whole.
            Some(start) if !prefix.is_empty() && rest.is_ascii() => format!("{prefix}_{}", &rest[start..]),
            Some(_) | None if prefix.is_empty() => one_line(rest),
            Some(_) | None => one_line(&format!("{prefix}_{rest}")),
        };
        parts.iter().map(cut).collect()
    };
    let distinct = |shown: &Vec<String>| shown.iter().collect::<std::collections::BTreeSet<_>>().len() == shown.len();
    (LEAST..longest).map(shown).find(distinct).unwrap_or_else(|| ids.iter().map(|id| one_line(id)).collect())
}

/// The one id that a person meant: all of it, or its end after the typed prefix.
pub fn meant<'a>(ids: &[&'a str], text: &str) -> Result<Option<&'a str>, Vec<&'a str>> {
    if let Some(exact) = ids.iter().find(|id| **id == text) {
        return Ok(Some(exact));
    }
    let (prefix, end) = text.split_once('_').unwrap_or(("", text));
    if end.len() < 4 {
        return Ok(None);
    }
    let fits = |id: &&&str| id.starts_with(prefix) && id.ends_with(end);
    match ids.iter().filter(fits).copied().collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(several.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_without_trailing_blanks() {
        let rows = vec![vec!["a".into(), "asleep".into()], vec!["night-watch".into(), "-".into()]];
        let shown = columns(&["id", "status"], &rows, false);
        assert_eq!(shown, "ID           STATUS\na            asleep\nnight-watch  -\n");
    }

    #[test]
    fn short_ids_tell_apart_and_are_understood() {
        let ids = ["timer_0199aaaa-bbbb-7ccc-8ddd-000011112222", "timer_0199aaaa-bbbb-7ccc-8ddd-100011112222"];
        let short = short_ids(&ids);
        assert_eq!(short, ["timer_000011112222", "timer_100011112222"]);
        for (short, id) in short.iter().zip(ids) {
            assert_eq!(meant(&ids, short), Ok(Some(id)));
        }
        assert!(meant(&ids, "11112222").is_err());
        assert_eq!(meant(&ids, "timer_9999"), Ok(None));
        assert_eq!(meant(&ids, "2"), Ok(None));
        assert_eq!(short_ids(&["m1", "m2"]), ["m1", "m2"]);
    }
}
