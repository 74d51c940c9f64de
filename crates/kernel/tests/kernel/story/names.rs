//! Short names for ids, in the order in which they were first seen, and short times.

use std::collections::BTreeMap;

use abide_kernel::time::Time;

/// 2026-01-01T00:00:00Z, when every story begins.
pub const BEGIN_MS: u64 = 1_767_225_600_000;
/// Prefixes of ids and what their short names begin with.
const PREFIXES: &[(&str, &str)] = &[
    ("msg_", "m"),
    ("work_", "w"),
    ("wait_", "wait"),
    ("timer_", "timer"),
    ("trig_", "trig"),
    ("appr_", "appr"),
    ("brief_", "brief"),
    ("turn_", "turn"),
    ("exec_", "exec"),
    ("task_", "task"),
];
const UUID: usize = 36;

#[derive(Debug, Default)]
pub struct Names {
    short: BTreeMap<String, String>,
    long: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, u32>,
}

impl Names {
    /// Names every id in the text that has no name yet.
    pub fn learn(&mut self, text: &str) {
        let mut rest = text;
        while let Some((_, id, after)) = next_id(rest) {
            if !self.short.contains_key(id) {
                let (_, stem) = PREFIXES.iter().find(|(prefix, _)| id.starts_with(prefix)).unwrap();
                let count = self.counts.entry(stem).or_default();
                *count += 1;
                let name = format!("{stem}{count}");
                self.long.insert(name.clone(), id.to_owned());
                self.short.insert(id.to_owned(), name);
            }
            rest = after;
        }
    }

    /// The text with ids by their short names and times as spans since the beginning.
    pub fn short(&self, text: &str) -> String {
        let (mut named, mut rest) = (String::new(), text);
        while let Some((before, id, after)) = next_id(rest) {
            named.push_str(before);
            named.push_str(self.short.get(id).map_or(id, String::as_str));
            rest = after;
        }
        named.push_str(rest);
        let words = named.split(' ').map(|word| {
            let bare = word.trim_end_matches(['.', ',']);
            bare.parse::<Time>()
                .map_or_else(|_| word.to_owned(), |time| format!("{}{}", span(time), &word[bare.len()..]))
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// The id behind a short name. What is not one stands for itself.
    pub fn long(&self, name: &str) -> Result<String, String> {
        match self.long.get(name) {
            Some(id) => Ok(id.clone()),
            None => Err(format!("nothing is called {name} yet")),
        }
    }
}

/// The first id in the text, what stands before it and what comes after.
fn next_id(text: &str) -> Option<(&str, &str, &str)> {
    let found = PREFIXES.iter().filter_map(|(prefix, _)| {
        let uuid = |at: usize| {
            let from = at + prefix.len();
            let id = text.get(from..from + UUID)?;
            id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-').then_some((at, from + UUID))
        };
        text.match_indices(prefix).find_map(|(at, _)| uuid(at))
    });
    let (from, to) = found.min()?;
    Some((&text[..from], &text[from..to], &text[to..]))
}

/// Whole seconds since the beginning.
pub fn span(time: Time) -> String {
    let ms = time.as_ms() - i64::try_from(BEGIN_MS).unwrap();
    format!("+{}s", ms / 1000)
}
