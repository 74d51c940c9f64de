//! Replaces the values of secrets in text by their names. A value is found as it is, percent-encoded, in base64 at each of
//! the three alignments (also where lines are wrapped within it), with JSON's escapes, quoted for a shell, and with HTML's
//! entities. Masking prevents accidental disclosure; it stops no program that means to hide a value.
//!
//! Every agent's text is masked, also that of agents which were given no secret, so the mask must not help them to guess
//! one. Therefore only whole values are recognised: neither the text that is shown nor the moment at which it is shown
//! depends on a part of a value. Text must be masked before it is truncated, or else a truncated value stays readable.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::MIN_BYTES;

/// A stream keeps back at most this much, besides the length of the longest value.
const HELD_MAX_BYTES: usize = 256 << 10;

/// Finds the values of secrets. Cheap to clone.
#[derive(Clone, Default)]
pub struct Mask(Option<Arc<Patterns>>);

struct Patterns {
    automaton: AhoCorasick,
    /// By pattern, the text that replaces it.
    replacements: Vec<String>,
    /// Bytes of the longest match in a text: each byte of a pattern may be encoded as several.
    longest: usize,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} patterns)", self.0.as_ref().map_or(0, |patterns| patterns.replacements.len()))
    }
}

/// The text that replaces a value.
#[must_use]
pub fn placeholder(name: &str) -> String {
    format!("(secret {name})")
}

impl Mask {
    /// Of secrets by name and value.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Mask {
        let mut spelled: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        for (name, value) in secrets {
            for spelling in spellings(value) {
                spelled.entry(spelling).or_insert_with(|| placeholder(name));
            }
        }
        if spelled.is_empty() {
            return Mask(None);
        }
        let (patterns, replacements): (Vec<_>, Vec<_>) = spelled.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&patterns);
        // Building fails on more patterns than 32 bits count, which the limits of secrets exclude.
        let Ok(automaton) = automaton else { return Mask(None) };
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default() * LONGEST_ENCODING;
        Mask(Some(Arc::new(Patterns { automaton, replacements, longest })))
    }

    /// Whether there is anything to mask.
    pub(crate) fn has_values(&self) -> bool {
        self.0.is_some()
    }

    /// The masked text; None if it contains no value.
    #[must_use]
    pub fn masked_text(&self, text: &str) -> Option<String> {
        match self.masked_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => Some(String::from_utf8_lossy(&masked).into_owned()),
        }
    }

    /// The same for text that may not be UTF-8.
    #[must_use]
    pub fn masked_bytes<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let Some(patterns) = &self.0 else { return Cow::Borrowed(text) };
        let found = patterns.find_all(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::with_capacity(text.len());
        patterns.replace_found(text, 0..text.len(), &found, &mut masked);
        Cow::Owned(masked)
    }

    /// Masks a text in place.
    pub fn mask_string(&self, text: &mut String) {
        if let Some(masked) = self.masked_text(text) {
            *text = masked;
        }
    }

    pub fn mask_strings(&self, texts: &mut [String]) {
        texts.iter_mut().for_each(|text| self.mask_string(text));
    }

    /// How many bytes more than it shows a reader needs, to find every value that begins in the shown part.
    #[must_use]
    pub fn lookahead(&self) -> usize {
        self.0.as_ref().map_or(0, |patterns| patterns.longest)
    }

    /// Masks every string in a value, and the names of members. Returns whether there was anything to mask.
    pub fn mask_json(&self, value: &mut Value) -> bool {
        if self.0.is_none() {
            return false;
        }
        match value {
            Value::String(text) => match self.masked_text(text) {
                Some(masked) => {
                    *text = masked;
                    true
                }
                None => false,
            },
            Value::Array(elements) => {
                elements.iter_mut().fold(false, |masked, element| masked | self.mask_json(element))
            }
            Value::Object(members) => {
                let named: Vec<(String, String)> =
                    members.keys().filter_map(|name| Some((name.clone(), self.masked_text(name)?))).collect();
                let renamed = !named.is_empty();
                for (name, masked) in named {
                    if let Some(member) = members.remove(&name) {
                        members.insert(masked, member);
                    }
                }
                members.values_mut().fold(renamed, |masked, member| masked | self.mask_json(member))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    #[must_use]
    pub fn new_stream(&self) -> MaskedStream {
        MaskedStream { mask: self.clone(), held: Vec::new(), shown: 0, settled: 0 }
    }
}

/// Masks a stream that comes in pieces. Its owner calls [`MaskedStream::settle`] at equal intervals, and every byte is
/// held back for one to two of them: a value whose pieces arrive within an interval is masked whole. The delay is the
/// same for every byte, so that it tells nothing about values.
#[derive(Debug)]
pub struct MaskedStream {
    mask: Mask,
    /// The end of the stream: bytes that were shown, as context for values that began in them, and the others.
    held: Vec<u8>,
    /// How much of `held` was shown.
    shown: usize,
    /// How much of `held` had arrived when `settle` was called last.
    settled: usize,
}

impl MaskedStream {
    /// Takes the next piece, and returns the text to be shown: all of it without secrets, else no more than there is no
    /// room for.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(patterns) = &self.mask.0 else { return bytes.to_vec() };
        self.held.extend_from_slice(bytes);
        let longest = patterns.longest;
        if self.held.len() - self.shown > HELD_MAX_BYTES + longest {
            self.show_to(self.held.len() - longest)
        } else {
            Vec::new()
        }
    }

    /// Returns the text that had arrived before the call before this one.
    pub fn settle(&mut self) -> Vec<u8> {
        let shown = self.show_to(self.settled);
        self.settled = self.held.len();
        shown
    }

    /// Whether some of it was not shown yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.shown < self.held.len()
    }

    /// The rest of a stream that is over.
    pub fn finish(&mut self) -> Vec<u8> {
        let shown = self.show_to(self.held.len());
        (self.held, self.shown, self.settled) = (Vec::new(), 0, 0);
        shown
    }

    /// Shows `held` up to a place, or to the end of a value that this place is in.
    fn show_to(&mut self, to: usize) -> Vec<u8> {
        let Some(patterns) = self.mask.0.as_ref().filter(|_| to > self.shown) else { return Vec::new() };
        let found = patterns.find_all(&self.held);
        let around = found.iter().find(|found| found.range.contains(&to));
        let to = around.map_or(to, |found| found.range.end);
        let mut shown = Vec::new();
        patterns.replace_found(&self.held, self.shown..to, &found, &mut shown);
        let surplus = to.saturating_sub(patterns.longest);
        self.held.drain(..surplus);
        (self.shown, self.settled) = (to - surplus, self.settled.max(to) - surplus);
        shown
    }
}

/// A place in a text, and the pattern that was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PatternMatch {
    range: Range<usize>,
    pattern: usize,
}

/// Places that overlap as one, in order.
fn merge_overlapping(mut found: Vec<PatternMatch>) -> Vec<PatternMatch> {
    found.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut merged: Vec<PatternMatch> = Vec::new();
    for next in found {
        match merged.last_mut() {
            Some(last) if next.range.start < last.range.end => last.range.end = last.range.end.max(next.range.end),
            Some(_) | None => merged.push(next),
        }
    }
    merged
}

/// The bytes of the longest encoding of one byte: `&quot;`.
const LONGEST_ENCODING: usize = 6;
const ENTITIES: [(&[u8], u8); 8] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&#34;", b'"'),
    (b"&apos;", b'\''),
    (b"&#39;", b'\''),
    (b"&#x27;", b'\''),
];

/// Reads the encoding that a text begins with: the byte that it stands for, and its length.
type Decode = fn(&[u8]) -> Option<(u8, u8)>;

fn percent_encoded(text: &[u8]) -> Option<(u8, u8)> {
    let digit = |nth: usize| char::from(*text.get(nth)?).to_digit(16);
    let byte = digit(1)? * 16 + digit(2)?;
    Some((u8::try_from(byte).ok()?, 3))
}

/// As shells, JSON and most languages quote a character that is neither a letter nor a digit.
fn backslash_quoted(text: &[u8]) -> Option<(u8, u8)> {
    text.get(1).filter(|byte| byte.is_ascii_punctuation() || **byte == b' ').map(|byte| (*byte, 2))
}

fn html_entity(text: &[u8]) -> Option<(u8, u8)> {
    let (entity, byte) = ENTITIES.iter().find(|(entity, _)| text.starts_with(entity))?;
    Some((*byte, u8::try_from(entity.len()).ok()?))
}

/// A decoded text, with the place of every byte in the original.
#[derive(Default)]
struct DecodedText {
    bytes: Vec<u8>,
    /// Where each byte began, and how many bytes it was.
    places: Vec<(usize, u8)>,
}

impl DecodedText {
    /// With the encodings that begin with this byte decoded; none where the text has no such byte.
    fn new(text: &[u8], mark: u8, decode: Decode) -> Option<DecodedText> {
        memchr::memchr(mark, text)?;
        let mut decoded = DecodedText::default();
        let mut at = 0;
        while at < text.len() {
            let encoded = if text[at] == mark { decode(&text[at..]) } else { None };
            let (byte, length) = encoded.unwrap_or((text[at], 1));
            decoded.bytes.push(byte);
            decoded.places.push((at, length));
            at += usize::from(length);
        }
        Some(decoded)
    }

    /// Without line ends: most programs that write base64 wrap it.
    fn unwrapped(text: &[u8]) -> Option<DecodedText> {
        memchr::memchr2(b'\n', b'\r', text)?;
        let kept = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'));
        let (bytes, places) = kept.map(|(at, byte)| (*byte, (at, 1))).unzip();
        Some(DecodedText { bytes, places })
    }

    /// Where a part of the decoded text stands in the original.
    fn original_range(&self, range: Range<usize>) -> Range<usize> {
        let (last, length) = self.places[range.end - 1];
        self.places[range.start].0..last + usize::from(length)
    }
}

impl Patterns {
    /// Every value in a text, in order.
    fn find_all(&self, text: &[u8]) -> Vec<PatternMatch> {
        let matches = |bytes: &[u8]| -> Vec<PatternMatch> {
            let found = self.automaton.find_overlapping_iter(bytes);
            found.map(|found| PatternMatch { range: found.range(), pattern: found.pattern().as_usize() }).collect()
        };
        let mut all = matches(text);
        let decoded = [
            DecodedText::new(text, b'%', percent_encoded),
            DecodedText::new(text, b'\\', backslash_quoted),
            DecodedText::new(text, b'&', html_entity),
            DecodedText::unwrapped(text),
        ];
        for decoded in decoded.into_iter().flatten() {
            let found = matches(&decoded.bytes).into_iter();
            all.extend(found.map(|found| PatternMatch { range: decoded.original_range(found.range), ..found }));
        }
        merge_overlapping(all)
    }

    /// Writes a part of the text, with each value, and each part of a value, replaced.
    fn replace_found(&self, text: &[u8], part: Range<usize>, found: &[PatternMatch], into: &mut Vec<u8>) {
        let mut from = part.start;
        for PatternMatch { range, pattern } in found.iter().filter(|found| found.range.end > part.start) {
            if range.start >= part.end {
                break;
            }
            into.extend_from_slice(&text[from..range.start.max(from)]);
            into.extend_from_slice(self.replacements[*pattern].as_bytes());
            from = range.end.min(part.end);
        }
        into.extend_from_slice(&text[from..part.end]);
    }
}

/// How a value may be written in a text. Of base64 only the characters that encode nothing but the value: those at its
/// edges depend on the text beside it.
fn spellings(value: &str) -> Vec<Vec<u8>> {
    let mut plain = vec![value.to_owned()];
    plain.extend(value.lines().map(str::to_owned));
    let quoted: Vec<String> = plain.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    plain.extend(quoted.iter().map(|text| text[1..text.len() - 1].to_owned()));
    // A shell's single quotes are closed around a quote.
    let in_quotes: Vec<String> =
        [r"'\''", r#"'"'"'"#].iter().flat_map(|quote| plain.iter().map(|text| text.replace('\'', quote))).collect();
    // In forms a blank is a plus.
    let forms: Vec<String> = plain.iter().map(|text| text.replace(' ', "+")).collect();
    plain.extend(in_quotes.into_iter().chain(forms));
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

    fn test_mask() -> Mask {
        Mask::new([("TOKEN", VALUE), ("KEY", "line one of it\nx\nline two of it")])
    }

    fn shown(text: &str) -> String {
        test_mask().masked_text(text).unwrap_or_else(|| text.to_owned())
    }

    /// The same text in pieces of so many bytes.
    fn in_pieces(text: &[u8], bytes: usize) -> String {
        let mut stream = test_mask().new_stream();
        let mut all: Vec<u8> = text.chunks(bytes).flat_map(|piece| stream.push(piece)).collect();
        all.extend(stream.finish());
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

    /// Text that does not hold a whole value is shown as it is and when any other text is: an agent that was not given a
    /// secret must not learn whether its guess is the beginning or the end of one.
    #[test]
    fn a_part_of_a_value_is_treated_as_any_other_text() {
        for part in [&VALUE[..1], &VALUE[..10], &VALUE[1..], &VALUE[5..]] {
            let (guess, other) = (format!("ok {part}"), format!("ok {}", part.replace(|_| true, "#")));
            let timing = |text: &str| {
                let mut stream = test_mask().new_stream();
                let lengths = [stream.push(text.as_bytes()), stream.settle(), stream.settle(), stream.finish()];
                (lengths.map(|piece| piece.len() == text.len()), text.to_owned())
            };
            assert_eq!(timing(&guess).0, timing(&other).0, "{part}");
            assert_eq!(in_pieces(guess.as_bytes(), 3), guess);
            let long = "x".repeat(600);
            for text in [format!("{long}{part}…"), format!("…{part}{long}"), format!("{long}{part}\n")] {
                assert_eq!(shown(&text), text);
            }
        }
    }

    #[test]
    fn a_stream_is_shown_after_one_to_two_intervals() {
        let mut stream = test_mask().new_stream();
        assert_eq!(stream.push(b"password: "), b"");
        assert_eq!(stream.settle(), b"");
        assert!(stream.is_pending());
        assert_eq!(stream.push(b"more"), b"");
        assert_eq!(stream.settle(), b"password: ");
        assert_eq!(stream.settle(), b"more");
        assert!(!stream.is_pending());
        assert_eq!(Mask::default().new_stream().push(b"at once"), b"at once");
    }

    #[test]
    fn a_value_is_masked_that_comes_in_pieces_within_an_interval() {
        for at in (1..VALUE.len()).filter(|at| VALUE.is_char_boundary(*at)) {
            let mut stream = test_mask().new_stream();
            let mut all = stream.push(&VALUE.as_bytes()[..at]);
            all.extend(stream.settle());
            all.extend(stream.push(&VALUE.as_bytes()[at..]));
            for _ in 0..3 {
                all.extend(stream.settle());
            }
            assert_eq!(all, b"(secret TOKEN)", "{at}");
        }
    }

    #[test]
    fn the_rest_of_a_value_is_masked_where_its_beginning_was_shown() {
        let mut stream = test_mask().new_stream();
        let mut all = stream.push(&VALUE.as_bytes()[..9]);
        all.extend(stream.settle());
        all.extend(stream.settle());
        assert_eq!(all, &VALUE.as_bytes()[..9]);
        all.extend(stream.push(format!("{} and on", &VALUE[9..]).as_bytes()));
        all.extend(stream.finish());
        assert_eq!(String::from_utf8(all).unwrap(), format!("{}(secret TOKEN) and on", &VALUE[..9]));
    }

    #[test]
    fn a_quoted_value_is_masked() {
        let value = "a\"b$c`d\\e'f g&h<i>j";
        let mask = Mask::new([("Q", value)]);
        for quoted in [
            // export -p of bash and of dash, printf %q, repr of Python, JSON, HTML.
            r#""a\"b\$c\`d\\e'f g&h<i>j""#,
            r#"'a"b$c`d\e'\''f g&h<i>j'"#,
            r#"'a"b$c`d\e'"'"'f g&h<i>j'"#,
            r#"a\"b\$c\`d\\e\'f\ g\&h\<i\>j"#,
            r#"'a"b$c`d\\e\'f g&h<i>j'"#,
            r#""a\"b$c`d\\e'f g&h<i>j""#,
            r#"<b>a&quot;b$c`d\e&#x27;f g&amp;h&lt;i&gt;j</b>"#,
        ] {
            let shown = mask.masked_text(quoted).unwrap_or_default();
            assert!(shown.contains("(secret Q)") && !shown.contains("c`d"), "{quoted} {shown}");
        }
    }

    #[test]
    fn a_value_that_repeats_itself_is_masked_and_not_held_for_ever() {
        let mask = Mask::new([("A", "aaaaaaaa")]);
        let mut stream = mask.new_stream();
        let mut all = Vec::new();
        for _ in 0..256 {
            all.extend(stream.push(&[b'a'; 4096]));
            assert!(stream.held.len() < 2 * HELD_MAX_BYTES, "{}", stream.held.len());
        }
        all.extend(stream.finish());
        let shown = String::from_utf8(all).unwrap();
        assert_eq!(shown.replace("(secret A)", ""), "");
    }

    #[test]
    fn every_text_of_a_result_is_masked() {
        let mut value = serde_json::json!({ "a": [VALUE, 1], (VALUE): { "b": format!("<{VALUE}>") } });
        test_mask().mask_json(&mut value);
        let expected = serde_json::json!({ "a": ["(secret TOKEN)", 1], "(secret TOKEN)": { "b": "<(secret TOKEN)>" } });
        assert_eq!(value, expected);
    }
}
