//! The mutants: what cargo-mutants names, in the order in which a seed draws them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const LIST: [&str; 6] = ["mutants", "--list", "--json", "--no-config", "-p", "abide-kernel"];

/// Parts of the names of mutants that no test has to catch: planted bugs are no part of the kernel, and no rule depends on
/// the text of `Debug` or on the words in which serde says what it expected.
const LEFT_OUT: [&str; 3] = ["/planted.rs", "fmt::Debug for", ">::expecting "];

/// A place in a file; both count from 1, columns in characters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineColumn {
    line: usize,
    column: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) diff: String,
    start: LineColumn,
    end: LineColumn,
    replacement: String,
}

impl Mutant {
    fn read(listed: &Value) -> Option<Mutant> {
        let text = |key: &str| listed[key].as_str().map(str::to_owned);
        let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
        let place = |key: &str| {
            let place = &listed["span"][key];
            Some(LineColumn { line: number(&place["line"])?, column: number(&place["column"])? })
        };
        Some(Mutant {
            name: text("name")?,
            file: text("file")?,
            diff: text("diff")?,
            start: place("start")?,
            end: place("end")?,
            replacement: text("replacement")?,
        })
    }

    /// The text of its file with the mutant in it.
    pub(crate) fn apply(&self, text: &str) -> Result<String> {
        let at = |place: LineColumn| offset(text, place).with_context(|| format!("{} is not in its file", self.name));
        let (start, end) = (at(self.start)?, at(self.end)?);
        ensure!(start <= end, "{} ends before it starts", self.name);
        Ok(format!("{}{}{}", &text[..start], self.replacement, &text[end..]))
    }
}

fn offset(text: &str, place: LineColumn) -> Option<usize> {
    let line = text.split_inclusive('\n').nth(place.line.checked_sub(1)?)?;
    let before = line.as_ptr() as usize - text.as_ptr() as usize;
    let columns = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    Some(before + columns.into_iter().nth(place.column.checked_sub(1)?)?)
}

/// All mutants of the kernel, in the order of its files.
pub(crate) fn list(folder: &Path) -> Result<Vec<Mutant>> {
    let output = super::command(folder, "cargo", &LIST).output().context("`cargo` does not start")?;
    ensure!(output.status.success(), "`cargo mutants --list` failed: {}", String::from_utf8_lossy(&output.stderr));
    let listed: Vec<Value> =
        serde_json::from_slice(&output.stdout).context("`cargo mutants --list` printed no list")?;
    let read: Option<Vec<Mutant>> = listed.iter().map(Mutant::read).collect();
    let mut mutants =
        read.context("a mutant lacks a field that this command reads: is cargo-mutants newer than 27?")?;
    mutants.retain(|mutant| !LEFT_OUT.iter().any(|part| mutant.name.contains(part)));
    Ok(mutants)
}

/// Puts them into the order that the seed gives (Fisher and Yates, from the front, with SplitMix64).
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for index in 0..items.len() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut drawn = state;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        drawn ^= drawn >> 31;
        let rest = (items.len() - index) as u64;
        items.swap(index, index + usize::try_from(drawn % rest).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(start: (usize, usize), end: (usize, usize), replacement: &str) -> Mutant {
        let place = |(line, column)| LineColumn { line, column };
        Mutant {
            name: "a mutant".to_owned(),
            file: "a.rs".to_owned(),
            diff: String::new(),
            start: place(start),
            end: place(end),
            replacement: replacement.to_owned(),
        }
    }

    #[test]
    fn a_mutant_replaces_its_span() {
        let text = "let s = \"ü…\"; a > b\nc\n";
        assert_eq!(mutant((1, 17), (1, 18), ">=").apply(text).unwrap(), "let s = \"ü…\"; a >= b\nc\n");
        assert_eq!(mutant((1, 15), (2, 2), "d").apply(text).unwrap(), "let s = \"ü…\"; d\n");
        assert!(mutant((4, 1), (4, 2), "d").apply(text).is_err());
    }

    #[test]
    fn a_seed_draws_the_same_order_each_time() {
        let drawn = |seed| {
            let mut items: Vec<usize> = (0..1_000).collect();
            shuffle(&mut items, seed);
            items
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7)[..10], drawn(8)[..10]);
        let mut sorted = drawn(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1_000).collect::<Vec<_>>());
    }
}
