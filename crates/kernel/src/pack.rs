//! JSON in few bytes: how the ledger keeps payloads, rows and states.
//!
//! A packed text comes back byte for byte. `pack` says `None` to a text that would not (blanks between members, unusual
//! escapes, no JSON at all); such bytes are kept as they are. `read` makes a value of packed bytes directly, without
//! the text.
//!
//! Packed bytes are the version, 1, which no JSON text begins with, and then one value:
//!
//! ```text
//! 00        the end of an object or a list        06  text: its length, its UTF-8
//! 01 02 03  null false true                       07  a whole number, not negative
//! 04        an object: names and values, end      08  any other number: its length, its text
//! 05        a list: values, end                   09  a time, as `Time` is written: ms since 1970, zigzag
//! 10..1f    an id: its prefix is PREFIXES[tag - 10], then the 16 bytes of its UUID
//! 20..ff    the word WORDS[tag - 20]
//! 0a        the word WORDS[e0 + the byte that follows]
//! ```
//!
//! Lengths and numbers have seven bits to the byte, the least first, the high bit set on all but the last. A name is any
//! of the tags that stand for a string. A string that could be written in several ways is a word if it is one, else an
//! id, else a time, else text, so equal texts have equal bytes.
//!
//! Ledgers live longer than versions: WORDS and PREFIXES never change under version 1. Another list is version 2, and the
//! list of version 1 stays, to read what it wrote.

mod read;
mod words;

use std::borrow::Cow;

use crate::time::Time;
use words::{PREFIXES, WORDS};

pub use read::{read, read_stored};

const VERSION: u8 = 1;
/// In front of bytes that are not packed and begin as if they were.
const ESCAPE: u8 = 0;

const END: u8 = 0x00;
const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const OBJECT: u8 = 0x04;
const LIST: u8 = 0x05;
const TEXT: u8 = 0x06;
const NUMBER: u8 = 0x07;
const NUMERAL: u8 = 0x08;
const TIME: u8 = 0x09;
const FAR_WORD: u8 = 0x0a;
const FIRST_ID: u8 = 0x10;
const FIRST_WORD: u8 = 0x20;
const NEAR_WORDS: usize = 0x100 - FIRST_WORD as usize;

/// Objects and lists within each other, at most: both directions recurse.
const DEPTH_MAX: u32 = 100;

/// The packed form of a JSON text, where it has one.
#[must_use]
pub fn pack(json: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(json).ok()?;
    let mut packer = Packer { text, at: 0, depth: 0, out: Vec::with_capacity(json.len() / 2 + 16) };
    packer.out.push(VERSION);
    packer.value()?;
    (packer.at == json.len()).then_some(())?;
    debug_assert_eq!(unpack(&packer.out).as_deref(), Some(json), "{text}");
    Some(packer.out)
}

/// Any bytes as they are to be stored: packed, if they are JSON of at most `limit` bytes that has a packed form; else as
/// they are. What begins like something packed, and is not, gets a zero in front: so `from_stored` tells them apart by
/// nothing but the bytes, and a hash over those covers that too.
#[must_use]
pub fn to_stored(bytes: Vec<u8>, limit: usize) -> Vec<u8> {
    let packed = if bytes.len() <= limit { pack(&bytes) } else { None };
    packed.unwrap_or_else(|| raw_to_stored(bytes))
}

/// The same for bytes that are not to be packed.
#[must_use]
pub fn raw_to_stored(mut bytes: Vec<u8>) -> Vec<u8> {
    if matches!(bytes.first(), Some(&(ESCAPE | VERSION))) {
        bytes.insert(0, ESCAPE);
    }
    bytes
}

/// Whether stored bytes are packed.
#[must_use]
pub fn is_packed(stored: &[u8]) -> bool {
    stored.first() == Some(&VERSION)
}

/// The bytes that were given to be stored; `None` where nothing is stored like that.
#[must_use]
pub fn from_stored(stored: &[u8]) -> Option<Cow<'_, [u8]>> {
    match stored.split_first() {
        Some((&VERSION, _)) => unpack(stored).map(Cow::Owned),
        Some((&ESCAPE, rest)) => matches!(rest.first(), Some(&(ESCAPE | VERSION))).then_some(Cow::Borrowed(rest)),
        Some(_) | None => Some(Cow::Borrowed(stored)),
    }
}

/// The text that was packed; `None` for bytes that `pack` never made.
#[must_use]
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut from = Unpacker::new(packed)?;
    let mut out = Vec::with_capacity(packed.len() * 4);
    let tag = from.byte()?;
    from.value(tag, &mut out)?;
    from.bytes.is_empty().then_some(out)
}

struct Packer<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    out: Vec<u8>,
}

impl<'a> Packer<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.members(OBJECT, b'}'),
            b'[' => self.members(LIST, b']'),
            b'n' => self.literal("null", NULL),
            b'f' => self.literal("false", FALSE),
            b't' => self.literal("true", TRUE),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn literal(&mut self, text: &str, tag: u8) -> Option<()> {
        self.text[self.at..].starts_with(text).then_some(())?;
        self.at += text.len();
        self.out.push(tag);
        Some(())
    }

    fn members(&mut self, tag: u8, end: u8) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEPTH_MAX).then_some(())?;
        self.at += 1;
        self.out.push(tag);
        if self.peek()? == end {
            self.at += 1;
        } else {
            loop {
                if tag == OBJECT {
                    (self.peek()? == b'"').then_some(())?;
                    self.string()?;
                    (self.next()? == b':').then_some(())?;
                }
                self.value()?;
                match self.next()? {
                    b',' => {}
                    byte => break (byte == end).then_some(())?,
                }
            }
        }
        self.out.push(END);
        self.depth -= 1;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().position(|byte| !is_of_number(byte)).unwrap_or(rest.len());
        let text = &self.text[self.at..self.at + length];
        self.at += length;
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u64>() {
            Ok(_) if is_whole && length > 1 && text.starts_with('0') => return None,
            Ok(number) if is_whole => {
                self.out.push(NUMBER);
                put_varint(&mut self.out, number);
            }
            Ok(_) | Err(_) => put_text(&mut self.out, NUMERAL, text),
        }
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let rest = &self.text[self.at + 1..];
        // Below a blank stand the control characters, which a string has only behind a backslash.
        let end = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        if rest.as_bytes()[end] == b'"' {
            self.at += end + 2;
            put_string(&mut self.out, &rest[..end]);
            return Some(());
        }
        // Of the ways to write it, the usual one comes back.
        let text: String = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter().next()?.ok()?;
        let quoted = serde_json::to_string(&text).ok()?;
        self.text[self.at..].starts_with(&quoted).then_some(())?;
        self.at += quoted.len();
        put_string(&mut self.out, &text);
        Some(())
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    if let Some(number) = number_of(text) {
        match u8::try_from(number) {
            Ok(near) if number < NEAR_WORDS => out.push(FIRST_WORD + near),
            Ok(_) | Err(_) => out.extend([FAR_WORD, u8::try_from(number - NEAR_WORDS).unwrap_or(u8::MAX)]),
        }
    } else if let Some((prefix, uuid)) = parse_id(text) {
        out.push(FIRST_ID + prefix);
        out.extend(uuid);
    } else if let Some(time) = parse_time(text) {
        out.push(TIME);
        let ms = time.as_ms();
        put_varint(out, ((ms << 1) ^ (ms >> 63)).cast_unsigned());
    } else {
        put_text(out, TEXT, text);
    }
}

fn put_text(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

/// Where a word stands in the list. Every string of every payload is looked up, so this is a table made by the compiler:
/// places by a sum over the letters, taken by the next word if taken; zero is a free place.
fn number_of(text: &str) -> Option<usize> {
    if text.len() > LONGEST {
        return None;
    }
    let mut place = sum_letters(text.as_bytes());
    loop {
        let number = usize::from(PLACES[place % PLACES.len()]).checked_sub(1)?;
        if WORDS[number] == text {
            return Some(number);
        }
        place += 1;
    }
}

const fn sum_letters(letters: &[u8]) -> usize {
    let (mut sum, mut at) = (letters.len(), 0);
    while at < letters.len() {
        sum = (sum ^ letters[at] as usize).wrapping_mul(0x0100_0193);
        at += 1;
    }
    // The upper bits depend on all letters.
    (sum ^ (sum >> 15)) & 0xffff
}

const LONGEST: usize = {
    let (mut longest, mut number) = (0, 0);
    while number < WORDS.len() {
        if WORDS[number].len() > longest {
            longest = WORDS[number].len();
        }
        number += 1;
    }
    longest
};

static PLACES: [u16; 2048] = {
    let mut places = [0u16; 2048];
    let mut number = 0;
    while number < WORDS.len() {
        let mut place = sum_letters(WORDS[number].as_bytes());
        while places[place % places.len()] != 0 {
            place += 1;
        }
        places[place % places.len()] = number as u16 + 1;
        number += 1;
    }
    places
};

const UUID_TEXT: usize = 36;
const DASHES: [usize; 4] = [8, 13, 18, 23];

fn parse_id(text: &str) -> Option<(u8, [u8; 16])> {
    let (prefix, uuid) = text.split_at_checked(text.len().checked_sub(UUID_TEXT)?)?;
    let prefix = prefix.strip_suffix('_')?;
    let prefix = PREFIXES.iter().position(|known| *known == prefix)?;
    let mut digits = [0u8; 32];
    let mut filled = 0;
    for (at, byte) in uuid.bytes().enumerate() {
        match byte {
            b'-' if DASHES.contains(&at) => continue,
            b'0'..=b'9' => digits[filled] = byte - b'0',
            b'a'..=b'f' => digits[filled] = byte - b'a' + 10,
            _ => return None,
        }
        filled += 1;
        if filled > 31 && at + 1 < UUID_TEXT {
            return None;
        }
    }
    let mut bytes = [0u8; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    (filled == 32).then_some((u8::try_from(prefix).ok()?, bytes))
}

fn parse_time(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    (bytes.len() == "2026-01-31T12:00:00.000Z".len() && bytes[10] == b'T' && bytes[23] == b'Z').then_some(())?;
    text.parse::<Time>().ok().filter(|time| time.to_string() == text)
}

/// A string of packed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text<'a> {
    /// As it is.
    Plain(&'a str),
    Id(&'static str, [u8; 16]),
    Time(Time),
}

impl Text<'_> {
    /// Hands it on as text.
    fn with<T>(self, each: impl FnOnce(&str) -> T) -> T {
        match self {
            Text::Plain(text) => each(text),
            Text::Id(prefix, uuid) => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let mut buffer = [b'-'; 16 + UUID_TEXT];
                let mut end = prefix.len() + 1;
                buffer[..prefix.len()].copy_from_slice(prefix.as_bytes());
                buffer[prefix.len()] = b'_';
                for (at, byte) in uuid.into_iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        end += 1;
                    }
                    buffer[end] = DIGITS[usize::from(byte >> 4)];
                    buffer[end + 1] = DIGITS[usize::from(byte & 15)];
                    end += 2;
                }
                each(std::str::from_utf8(&buffer[..end]).unwrap_or_default())
            }
            Text::Time(time) => each(&time.to_string()),
        }
    }
}

/// Takes packed bytes apart.
#[derive(Debug)]
struct Unpacker<'a> {
    bytes: &'a [u8],
    depth: u32,
}

impl<'a> Unpacker<'a> {
    fn new(packed: &'a [u8]) -> Option<Unpacker<'a>> {
        let (version, bytes) = packed.split_first()?;
        (*version == VERSION).then_some(Unpacker { bytes, depth: 0 })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(head)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.varint()?).ok()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// The string that a tag stands for; none if it stands for none.
    fn string(&mut self, tag: u8) -> Option<Text<'a>> {
        match tag {
            FIRST_WORD..=u8::MAX => Some(Text::Plain(WORDS.get(usize::from(tag - FIRST_WORD))?)),
            FAR_WORD => Some(Text::Plain(WORDS.get(NEAR_WORDS + usize::from(self.byte()?))?)),
            FIRST_ID..FIRST_WORD => {
                let prefix = PREFIXES.get(usize::from(tag - FIRST_ID))?;
                Some(Text::Id(prefix, self.take(16)?.try_into().ok()?))
            }
            TIME => {
                let zigzag = self.varint()?;
                Some(Text::Time(Time::from_ms((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())))
            }
            TEXT => self.text().map(Text::Plain),
            _ => None,
        }
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEPTH_MAX).then_some(())
    }

    fn value(&mut self, tag: u8, out: &mut Vec<u8>) -> Option<()> {
        match tag {
            NULL => out.extend_from_slice(b"null"),
            FALSE => out.extend_from_slice(b"false"),
            TRUE => out.extend_from_slice(b"true"),
            NUMBER => out.extend_from_slice(self.varint()?.to_string().as_bytes()),
            NUMERAL => out.extend_from_slice(self.text()?.as_bytes()),
            OBJECT | LIST => {
                self.deeper()?;
                out.push(if tag == OBJECT { b'{' } else { b'[' });
                let mut is_first = true;
                loop {
                    let mut tag_inside = self.byte()?;
                    if tag_inside == END {
                        break;
                    }
                    if !std::mem::take(&mut is_first) {
                        out.push(b',');
                    }
                    if tag == OBJECT {
                        quote(self.string(tag_inside)?, out);
                        out.push(b':');
                        tag_inside = self.byte()?;
                    }
                    self.value(tag_inside, out)?;
                }
                out.push(if tag == OBJECT { b'}' } else { b']' });
                self.depth -= 1;
            }
            _ => quote(self.string(tag)?, out),
        }
        Some(())
    }
}

fn quote(text: Text<'_>, out: &mut Vec<u8>) {
    text.with(|text| {
        let is_plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
        if is_plain {
            out.push(b'"');
            out.extend_from_slice(text.as_bytes());
            out.push(b'"');
        } else if let Ok(escaped) = serde_json::to_string(text) {
            out.extend_from_slice(escaped.as_bytes());
        }
    });
}
