//! The lines of a file that are most like some wanted ones, as a refusal shows them: with their numbers, and with what
//! is different about them where that is hard to see.

use std::collections::{HashMap, HashSet};

use crate::limits;
use crate::secrets::Mask;

/// How often a line of the wanted text counts when it comes several times.
const SAME_LINE_MAX: usize = 8;
/// Lines that are compared letter by letter, when no line is the same but for its spaces.
const COMPARED_LINES: usize = 20_000;
const COMPARED_BYTES: usize = 200;

/// A sentence about the lines nearest to `wanted`, followed by them; nothing if none is near.
pub(super) fn nearest_lines(file: &[u8], wanted: &[u8], mask: &Mask) -> Option<String> {
    let file: Vec<&[u8]> = split_lines(file);
    let wanted: Vec<&[u8]> = split_lines(wanted);
    let start = match_by_lines(&file, &wanted).or_else(|| match_by_letters(&file, &wanted))?;
    let end = (start + wanted.len()).min(file.len());
    let window = &file[start..end];
    let numbered = window.iter().take(limits::LINES_SHOWN).enumerate();
    let mut said = match difference(window, &wanted, start, mask) {
        Some(difference) => format!("{difference} Nearest lines:"),
        None => "Nearest lines:".to_owned(),
    };
    for (at, line) in numbered {
        said.push_str(&format!("\n{}: {}", start + at + 1, shown(line, mask)));
    }
    if window.len() > limits::LINES_SHOWN {
        said.push_str("\n…");
    }
    Some(said)
}

fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.split(|byte| *byte == b'\n').collect()
}

/// Where most of the wanted lines stand as wanted, but for spaces.
fn match_by_lines(file: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let mut places: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (at, line) in wanted.iter().enumerate() {
        let (plain, at) = (without_spaces(line), at);
        // A line with next to nothing in it says next to nothing about where we are.
        if plain.len() > 2 {
            let same = places.entry(plain).or_default();
            if same.len() < SAME_LINE_MAX {
                same.push(at);
            }
        }
    }
    if places.is_empty() {
        return None;
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in file.iter().enumerate() {
        for place in places.get(&without_spaces(line)).into_iter().flatten() {
            if let Some(start) = at.checked_sub(*place) {
                *votes.entry(start).or_default() += 1;
            }
        }
    }
    // Of equals the first: a map has no order, and a refusal should not change from one run to the next.
    votes.into_iter().max_by_key(|(start, votes)| (*votes, std::cmp::Reverse(*start))).map(|(start, _)| start)
}

/// Where the line stands that shares the most pairs of letters with the longest of the first wanted ones.
fn match_by_letters(file: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let first = wanted.iter().take(limits::LINES_SHOWN).enumerate();
    let (place, line) = first.max_by_key(|(at, line)| (line.len().min(COMPARED_BYTES), std::cmp::Reverse(*at)))?;
    let wanted: HashSet<[u8; 2]> = byte_pairs(line).collect();
    let mut best: Option<(usize, usize)> = None;
    for (at, other) in file.iter().take(COMPARED_LINES).enumerate() {
        let (mut shared, mut all) = (0, 0);
        for pair in byte_pairs(other) {
            all += 1;
            shared += usize::from(wanted.contains(&pair));
        }
        // At least half of all pairs are shared; one that comes again and again does not count for more.
        let likeness = shared.min(wanted.len()) * 2 * 1_000 / (wanted.len() + all).max(1);
        if likeness >= 500 && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, at));
        }
    }
    best.map(|(_, at)| at.saturating_sub(place))
}

fn byte_pairs(line: &[u8]) -> impl Iterator<Item = [u8; 2]> {
    let letters = line[..line.len().min(COMPARED_BYTES)].iter().filter(|byte| !byte.is_ascii_whitespace());
    let letters = letters.map(u8::to_ascii_lowercase);
    letters.clone().zip(letters.skip(1)).map(|(a, b)| [a, b])
}

fn without_spaces(line: &[u8]) -> Vec<u8> {
    line.iter().filter(|byte| !byte.is_ascii_whitespace()).copied().collect()
}

/// The first line that differs in nothing one can see: its spaces, or how it ends.
fn difference(window: &[&[u8]], wanted: &[&[u8]], start: usize, mask: &Mask) -> Option<String> {
    let (at, (has, wants)) = window.iter().zip(wanted).enumerate().find(|(_, (has, wants))| has != wants)?;
    if without_spaces(has) != without_spaces(wants) {
        return None;
    }
    let all =
        window.len() == wanted.len() && window.iter().zip(wanted).all(|(a, b)| without_spaces(a) == without_spaces(b));
    let whole = if all { "Only whitespace differs: line" } else { "Line" };
    let (has, wants) = (quoted(has, mask), quoted(wants, mask));
    Some(format!("{whole} {} of the file is {has}, and {wants} was given.", start + at + 1))
}

/// With tabs and carriage returns to be seen.
fn quoted(line: &[u8], mask: &Mask) -> String {
    format!("{:?}", clip_line(&String::from_utf8_lossy(&mask.masked_bytes(line))))
}

fn shown(line: &[u8], mask: &Mask) -> String {
    clip_line(&String::from_utf8_lossy(&mask.masked_bytes(line.strip_suffix(b"\r").unwrap_or(line))))
}

pub(super) fn clip_line(text: &str) -> String {
    let mut short: String = text.chars().take(limits::LINE_SHOWN_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
