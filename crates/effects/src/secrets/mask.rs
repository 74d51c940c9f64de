//! Replaces the values of secrets in text by their names. A value is found as it is, percent-encoded, with JSON's escapes,
//! and in base64 at each of the three alignments, also where lines are wrapped within it. Masking keeps a value from being
//! written down by accident; it stops no program that means to hide one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::MIN_BYTES;

/// Lines are clipped at several hundred bytes and more; only there may a value be cut in two.
const CLIPPED_LINE_BYTES: usize = 400;
/// Stands at the edge of a line that was clipped.
const CLIPPED: &str = "…";
/// More than this is not held back for a value that may be under way, besides the length of the longest one.
const HELD_MAX_BYTES: usize = 64 << 10;

/// Finds the values of secrets. Cheap to clone.
#[derive(Clone, Default)]
pub struct Mask(Option<Arc<Patterns>>);

struct Patterns {
    automaton: AhoCorasick,
    /// Sorted, so that the patterns that begin with a text are neighbours.
    patterns: Vec<Vec<u8>>,
    /// By pattern, the text that stands in for it.
    stand_ins: Vec<String>,
    first_bytes: [bool; 256],
    longest: usize,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} patterns)", self.0.as_ref().map_or(0, |patterns| patterns.patterns.len()))
    }
}

/// What stands in for a value.
#[must_use]
pub fn stand_in(name: &str) -> String {
    format!("(secret {name})")
}

impl Mask {
    /// Of secrets by name and value.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Mask {
        let mut spelled: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        for (name, value) in secrets {
            for spelling in spellings(value) {
                spelled.entry(spelling).or_insert_with(|| stand_in(name));
            }
        }
        if spelled.is_empty() {
            return Mask(None);
        }
        let (patterns, stand_ins): (Vec<_>, Vec<_>) = spelled.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&patterns);
        // It fails on more patterns than 32 bits count, which the limits of secrets exclude.
        let Ok(automaton) = automaton else { return Mask(None) };
        let mut first_bytes = [false; 256];
        for pattern in &patterns {
            first_bytes[usize::from(pattern[0])] = true;
        }
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        Mask(Some(Arc::new(Patterns { automaton, patterns, stand_ins, first_bytes, longest })))
    }

    /// A text that is whole, except that long lines in it may have been clipped.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        let patterns = self.0.as_ref()?;
        let mut found = patterns.find(text.as_bytes());
        found.extend(patterns.find_clipped(text));
        let found = merged(found);
        if found.is_empty() {
            return None;
        }
        let mut masked = Vec::with_capacity(text.len());
        patterns.replace(text.as_bytes(), &found, &mut masked);
        Some(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Every text in a value, and the names of members.
    pub fn json(&self, value: &mut Value) {
        if self.0.is_none() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Some(masked) = self.text(text) {
                    *text = masked;
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.json(element)),
            Value::Object(members) => {
                let named: Vec<(String, String)> =
                    members.keys().filter_map(|name| Some((name.clone(), self.text(name)?))).collect();
                for (name, masked) in named {
                    if let Some(member) = members.remove(&name) {
                        members.insert(masked, member);
                    }
                }
                members.values_mut().for_each(|member| self.json(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    #[must_use]
    pub fn stream(&self) -> MaskedStream {
        MaskedStream { mask: self.clone(), held: Vec::new() }
    }
}

/// Masks a stream that comes in pieces. The end of a piece that may be the beginning of a value is held back until more
/// comes, or the stream ends.
#[derive(Debug)]
pub struct MaskedStream {
    mask: Mask,
    held: Vec<u8>,
}

impl MaskedStream {
    /// What may be shown by now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(patterns) = &self.mask.0 else { return bytes.to_vec() };
        self.held.extend_from_slice(bytes);
        let found = merged(patterns.find(&self.held));
        let mut hold_from = patterns.begins_at(&self.held);
        let mut shown = Vec::new();
        let around = found.iter().find(|found| found.range.start < hold_from && hold_from < found.range.end);
        if let Some(Found { range, .. }) = around {
            // A value that another one may begin in: what follows decides. Not for ever, though.
            let too_much = self.held.len() - range.start > patterns.longest + HELD_MAX_BYTES;
            hold_from = if too_much { range.end } else { range.start };
        }
        let complete: Vec<Found> = found.into_iter().filter(|found| found.range.end <= hold_from).collect();
        patterns.replace(&self.held[..hold_from], &complete, &mut shown);
        self.held.drain(..hold_from);
        shown
    }

    /// The rest. A value that was cut off is masked if at least as much of it came as the shortest secret has.
    pub fn end(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let Some(patterns) = &self.mask.0 else { return held };
        let mut found = patterns.find(&held);
        found.extend(patterns.cut_off(&held, 0..held.len()));
        let mut shown = Vec::new();
        patterns.replace(&held, &merged(found), &mut shown);
        shown
    }
}

/// A place in a text, and the pattern that was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    range: Range<usize>,
    pattern: usize,
}

/// Places that overlap as one, in order.
fn merged(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut merged: Vec<Found> = Vec::new();
    for next in found {
        match merged.last_mut() {
            Some(last) if next.range.start < last.range.end => last.range.end = last.range.end.max(next.range.end),
            Some(_) | None => merged.push(next),
        }
    }
    merged
}

/// A text in which every byte knows where it stood.
struct View {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
    /// Where an escape begins that the text breaks off in.
    incomplete_from: Option<usize>,
}

impl View {
    /// With percent-encoded bytes decoded.
    fn decoded(text: &[u8]) -> Option<View> {
        memchr::memchr(b'%', text)?;
        let mut view = View { bytes: Vec::new(), places: Vec::new(), incomplete_from: None };
        let mut at = 0;
        while at < text.len() {
            let digits = text.get(at + 1..).unwrap_or_default();
            let digit = |nth: usize| digits.get(nth).map(|byte| char::from(*byte).to_digit(16));
            let (byte, length) = match (text[at], digit(0), digit(1)) {
                (b'%', Some(Some(high)), Some(Some(low))) => (u8::try_from(high * 16 + low).unwrap_or_default(), 3),
                (b'%', None | Some(Some(_)), None) => {
                    view.incomplete_from = Some(at);
                    break;
                }
                (byte, _, _) => (byte, 1),
            };
            view.bytes.push(byte);
            view.places.push(at..at + length);
            at += length;
        }
        Some(view)
    }

    /// Without line ends: base64 is wrapped by most programs that write it.
    fn joined(text: &[u8]) -> Option<View> {
        memchr::memchr2(b'\n', b'\r', text)?;
        let kept = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'));
        let (places, bytes) = kept.map(|(at, byte)| (at..at + 1, *byte)).unzip();
        Some(View { bytes, places, incomplete_from: None })
    }

    fn place(&self, range: Range<usize>) -> Range<usize> {
        self.places[range.start].start..self.places[range.end - 1].end
    }
}

impl Patterns {
    fn views(text: &[u8]) -> impl Iterator<Item = View> {
        View::decoded(text).into_iter().chain(View::joined(text))
    }

    fn find(&self, text: &[u8]) -> Vec<Found> {
        let matches = |bytes: &[u8]| -> Vec<Found> {
            let found = self.automaton.find_overlapping_iter(bytes);
            found.map(|found| Found { range: found.range(), pattern: found.pattern().as_usize() }).collect()
        };
        let mut all = matches(text);
        for view in Patterns::views(text) {
            let found = matches(&view.bytes).into_iter();
            all.extend(found.map(|found| Found { range: view.place(found.range), ..found }));
        }
        all
    }

    /// Where a value may begin that the text breaks off in; its end where none may.
    fn begins_at(&self, text: &[u8]) -> usize {
        let raw = self.longest_beginning(text).map(|(at, _)| at);
        let views = Patterns::views(text).map(|view| {
            let begins = self.longest_beginning(&view.bytes).map(|(at, _)| view.places[at].start);
            begins.into_iter().chain(view.incomplete_from).min()
        });
        std::iter::once(raw).chain(views).flatten().min().unwrap_or(text.len())
    }

    /// The longest end of a text that is the beginning of a pattern, and not all of it.
    fn longest_beginning(&self, text: &[u8]) -> Option<(usize, usize)> {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        (from..text.len()).find_map(|at| {
            if !self.first_bytes[usize::from(text[at])] {
                return None;
            }
            let end = &text[at..];
            let next = self.patterns.partition_point(|pattern| pattern.as_slice() <= end);
            self.patterns.get(next).filter(|pattern| pattern.starts_with(end)).map(|_| (at, next))
        })
    }

    /// A value that a part of the text breaks off in, with as much of it as the shortest secret has.
    fn cut_off(&self, text: &[u8], part: Range<usize>) -> Option<Found> {
        let (at, pattern) = self.longest_beginning(&text[part.clone()])?;
        let range = part.start + at..part.end;
        (range.len() >= MIN_BYTES).then_some(Found { range, pattern })
    }

    /// The same at both edges of each long line.
    fn find_clipped(&self, text: &str) -> Vec<Found> {
        let mut found = Vec::new();
        let mut from = 0;
        for line in text.split_inclusive('\n') {
            let (start, long) = (from, line.len() >= CLIPPED_LINE_BYTES);
            from += line.len();
            if !long {
                continue;
            }
            let shown = line.trim_end_matches(['\n', '\r']);
            let shown = shown.strip_suffix(CLIPPED).unwrap_or(shown);
            found.extend(self.cut_off(text.as_bytes(), start..start + shown.len()));
            let (skipped, rest) = match shown.find(CLIPPED) {
                Some(at) => (at + CLIPPED.len(), &shown[at + CLIPPED.len()..]),
                None => (0, shown),
            };
            let ends = self.patterns.iter().enumerate().filter_map(|(nth, pattern)| {
                let longest = (MIN_BYTES..pattern.len()).rev();
                let mut lengths =
                    longest.filter(|length| rest.as_bytes().starts_with(&pattern[pattern.len() - length..]));
                lengths.next().map(|length| (length, nth))
            });
            if let Some((length, pattern)) = ends.max() {
                found.push(Found { range: start + skipped..start + skipped + length, pattern });
            }
        }
        found
    }

    fn replace(&self, text: &[u8], found: &[Found], into: &mut Vec<u8>) {
        let mut from = 0;
        for Found { range, pattern } in found {
            into.extend_from_slice(&text[from..range.start]);
            into.extend_from_slice(self.stand_ins[*pattern].as_bytes());
            from = range.end;
        }
        into.extend_from_slice(&text[from..]);
    }
}

/// How a value may stand in a text. Of base64 only the characters that hold nothing else than the value: those at its
/// edges depend on what stands beside it.
fn spellings(value: &str) -> Vec<Vec<u8>> {
    let mut plain = vec![value.to_owned()];
    plain.extend(value.lines().map(str::to_owned));
    let quoted: Vec<String> = plain.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    plain.extend(quoted.iter().map(|text| text[1..text.len() - 1].to_owned()));
    // In forms a blank is a plus.
    let forms: Vec<String> = plain.iter().map(|text| text.replace(' ', "+")).collect();
    plain.extend(forms);
    let mut all: Vec<Vec<u8>> = plain.into_iter().map(String::into_bytes).collect();
    all.retain(|spelling| spelling.len() >= MIN_BYTES);
    for before in 0..3_usize {
        let aligned = [&[0; 2][..before], value.as_bytes()].concat();
        let (from, to) = ((before * 8).div_ceil(6), aligned.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&aligned), URL_SAFE_NO_PAD.encode(&aligned)] {
            all.push(encoded.as_bytes()[from..to].to_vec());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    use super::*;

    const VALUE: &str = "s3cr?t/+ välue&";

    fn mask() -> Mask {
        Mask::new([("TOKEN", VALUE), ("KEY", "line one of it\nx\nline two of it")])
    }

    fn shown(text: &str) -> String {
        mask().text(text).unwrap_or_else(|| text.to_owned())
    }

    /// The same text in pieces of so many bytes.
    fn in_pieces(text: &[u8], bytes: usize) -> String {
        let mut stream = mask().stream();
        let mut all: Vec<u8> = text.chunks(bytes).flat_map(|piece| stream.push(piece)).collect();
        all.extend(stream.end());
        String::from_utf8(all).unwrap()
    }

    fn percent(value: &str, encode: impl Fn(u8) -> bool, upper: bool) -> String {
        let one = |byte: u8| match (encode(byte), upper) {
            (true, true) => format!("%{byte:02X}"),
            (true, false) => format!("%{byte:02x}"),
            (false, _) => char::from(byte).to_string(),
        };
        value.bytes().map(one).collect()
    }

    #[test]
    fn a_value_is_masked_as_it_is() {
        assert_eq!(shown(&format!("a {VALUE} b {VALUE}")), "a (secret TOKEN) b (secret TOKEN)");
        assert_eq!(shown("nothing here"), "nothing here");
    }

    #[test]
    fn a_value_is_masked_however_much_of_it_is_percent_encoded() {
        let reserved = |byte: u8| !byte.is_ascii_alphanumeric();
        let path = |byte: u8| reserved(byte) && byte != b'/' && byte != b'+';
        for text in [
            percent(VALUE, reserved, true),
            percent(VALUE, reserved, false),
            percent(VALUE, path, true),
            percent(VALUE, |_| true, true),
            percent(&VALUE.replace(' ', "+"), |byte| reserved(byte) && byte != b'+', true),
        ] {
            assert_eq!(shown(&format!("https://x:{text}@host")), "https://x:(secret TOKEN)@host", "{text}");
        }
    }

    #[test]
    fn a_value_is_masked_in_base64_at_each_alignment() {
        for before in ["", "u", "us", "user:", "a:b:"] {
            for after in ["", "\n", "xy", "xyz"] {
                let whole = format!("{before}{VALUE}{after}");
                for encoded in [STANDARD.encode(&whole), URL_SAFE.encode(&whole)] {
                    let shown = shown(&format!("Basic {encoded}"));
                    assert!(shown.contains("(secret TOKEN)"), "{before:?} {after:?} {encoded} {shown}");
                }
            }
        }
    }

    #[test]
    fn wrapped_base64_is_masked() {
        let encoded = STANDARD.encode(format!("user:{VALUE}"));
        for width in 1..encoded.len() {
            let wrapped: Vec<&str> =
                encoded.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
            for end in ["\n", "\r\n"] {
                let shown = shown(&wrapped.join(end));
                assert!(shown.contains("(secret TOKEN)"), "{width} {shown}");
            }
        }
    }

    #[test]
    fn each_line_of_a_value_is_masked() {
        assert_eq!(shown("> line two of it\n> x"), "> (secret KEY)\n> x");
        assert_eq!(shown("line one of it\nx\nline two of it"), "(secret KEY)");
        assert_eq!(shown(r#"{"key":"line one of it\nx\nline two of it"}"#), r#"{"key":"(secret KEY)"}"#);
    }

    #[test]
    fn a_value_is_masked_however_the_stream_is_cut() {
        let encoded = STANDARD.encode(format!("user:{VALUE}"));
        let escaped = percent(VALUE, |byte| !byte.is_ascii_alphanumeric(), true);
        let text = format!("one {VALUE} two {escaped} three {encoded}\nline one of it\nend s3cr?");
        let whole = in_pieces(text.as_bytes(), text.len());
        assert!(!whole.contains(VALUE) && whole.ends_with("\n(secret KEY)\nend s3cr?"), "{whole}");
        for bytes in 1..text.len() {
            assert_eq!(in_pieces(text.as_bytes(), bytes), whole, "{bytes}");
        }
    }

    #[test]
    fn a_stream_holds_back_no_more_than_may_be_a_value() {
        let mut stream = mask().stream();
        assert_eq!(stream.push(b"password: "), b"password: ");
        assert_eq!(stream.push(b"ok s3c"), b"ok ");
        assert_eq!(stream.push(b"ond"), b"s3cond");
    }

    #[test]
    fn a_value_that_is_cut_off_is_masked() {
        assert_eq!(in_pieces(&VALUE.as_bytes()[..10], 3), "(secret TOKEN)");
        let long = "x".repeat(600);
        assert_eq!(shown(&format!("{long}{}…", &VALUE[..9])), format!("{long}(secret TOKEN)…"));
        assert_eq!(shown(&format!("…{}{long}", &VALUE[5..])), format!("…(secret TOKEN){long}"));
    }

    #[test]
    fn a_value_that_repeats_itself_is_masked_and_not_held_for_ever() {
        let mask = Mask::new([("A", "aaaaaaaa")]);
        let mut stream = mask.stream();
        let mut all = Vec::new();
        for _ in 0..64 {
            all.extend(stream.push(&[b'a'; 4096]));
            assert!(stream.held.len() < 2 * HELD_MAX_BYTES, "{}", stream.held.len());
        }
        all.extend(stream.end());
        let shown = String::from_utf8(all).unwrap();
        assert_eq!(shown.replace("(secret A)", ""), "");
    }

    #[test]
    fn every_text_of_a_result_is_masked() {
        let mut value = serde_json::json!({ "a": [VALUE, 1], (VALUE): { "b": format!("<{VALUE}>") } });
        mask().json(&mut value);
        let expected = serde_json::json!({ "a": ["(secret TOKEN)", 1], "(secret TOKEN)": { "b": "<(secret TOKEN)>" } });
        assert_eq!(value, expected);
    }
}
