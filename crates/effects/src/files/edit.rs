//! Replaces text in a file. The text has to be there as given, and only once unless all are meant: a model that is
//! wrong about a file is told what is there instead, and changes nothing.
//!
//! Files whose lines end in CRLF keep them: `old` and `new` may be written with LF, as models write.

use std::path::Path;

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::EditFile;
use serde_json::Value;

use super::changes::{self, Change};
use super::near;
use super::root::{Root, shown};
use super::target::{Content, too_large};
use crate::limits;
use crate::secrets::Mask;

/// How many places a refusal names.
const PLACES_NAMED: usize = 8;

pub(super) fn run(call: &EditFile, root: &Root) -> Result<Value, Refusal> {
    let path = root.relative(&call.path)?;
    let target = root.target(&path, false)?;
    let before = target.content()?.ok_or_else(|| missing(&path, root))?;
    let found = find(&before.bytes, &call.old, &call.new);
    if found.at.is_empty() {
        return Err(not_there(&path, &before.bytes, &call.old, root.mask()));
    }
    if found.at.len() > 1 && !call.all {
        return Err(several(&path, &before.bytes, &found.at));
    }
    let grown = (found.new.len() as u64).saturating_sub(found.old_len as u64).saturating_mul(found.at.len() as u64);
    if before.bytes.len() as u64 + grown > limits::FILE_BYTES {
        return Err(too_large(&shown(&path), before.bytes.len() as u64 + grown));
    }
    let after = Content { bytes: replaced(&before.bytes, &found), mode: before.mode };
    changes::make(root, &[Change { target, before: Some(before), after: Some(after), path: shown(&path) }])
}

/// Where the text is, and what takes its place there.
struct Found {
    at: Vec<usize>,
    old_len: usize,
    new: Vec<u8>,
}

fn find(bytes: &[u8], old: &str, new: &str) -> Found {
    let as_given = || (old.to_owned(), new.to_owned());
    let as_crlf = || (crlf(old), crlf(new));
    let tries = if has_crlf(bytes) { [as_crlf(), as_given()] } else { [as_given(), as_crlf()] };
    let mut found = Found { at: Vec::new(), old_len: 0, new: Vec::new() };
    for (old, new) in tries {
        found = Found { at: places(bytes, old.as_bytes()), old_len: old.len(), new: new.into_bytes() };
        if !found.at.is_empty() {
            break;
        }
    }
    found
}

/// Where `old` begins, none of them overlapping. One that begins or ends inside a CRLF is none: replacing it would tear
/// the line end apart.
fn places(bytes: &[u8], old: &[u8]) -> Vec<usize> {
    let torn = |at: usize| at > 0 && bytes[at - 1] == b'\r' && bytes.get(at) == Some(&b'\n');
    let mut from = 0;
    let mut all = Vec::new();
    while let Some(at) = memchr::memmem::find(&bytes[from..], old).map(|at| from + at) {
        if torn(at) || torn(at + old.len()) {
            from = at + 1;
        } else {
            all.push(at);
            from = at + old.len();
        }
    }
    all
}

fn replaced(bytes: &[u8], found: &Found) -> Vec<u8> {
    let mut after = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for at in &found.at {
        after.extend_from_slice(&bytes[from..*at]);
        after.extend_from_slice(&found.new);
        from = at + found.old_len;
    }
    after.extend_from_slice(&bytes[from..]);
    after
}

/// Whether most lines end in CRLF.
pub(super) fn has_crlf(bytes: &[u8]) -> bool {
    let lines = memchr::memchr_iter(b'\n', bytes);
    let (mut with, mut without) = (0_usize, 0_usize);
    for at in lines {
        let crlf = at > 0 && bytes[at - 1] == b'\r';
        *(if crlf { &mut with } else { &mut without }) += 1;
    }
    with > without
}

fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn missing(path: &Path, root: &Root) -> Refusal {
    let refusal = root.refusal(path, rustix::io::Errno::NOENT);
    Refusal { hint: format!("{}; WriteFile makes a new file", refusal.hint), ..refusal }
}

fn not_there(path: &Path, bytes: &[u8], old: &str, mask: &Mask) -> Refusal {
    let message = format!("`old` is not in {}", shown(path));
    match near::nearest_lines(bytes, old.as_bytes(), mask) {
        Some(near) => Refusal::new(ErrorCode::NoMatch, format!("{message}. {near}"))
            .with_hint("give `old` exactly as the file has it"),
        None => Refusal::new(ErrorCode::NoMatch, message)
            .with_hint("nothing in it is like `old`: read the file, then edit it"),
    }
}

fn several(path: &Path, bytes: &[u8], at: &[usize]) -> Refusal {
    let line = |at: &usize| (memchr::memchr_iter(b'\n', &bytes[..*at]).count() + 1).to_string();
    let lines: Vec<String> = at.iter().take(PLACES_NAMED).map(line).collect();
    let more = if at.len() > PLACES_NAMED { ", …" } else { "" };
    let (path, count, lines) = (shown(path), at.len(), lines.join(", "));
    Refusal::new(ErrorCode::SeveralMatches, format!("`old` is in {path} {count} times, in lines {lines}{more}"))
}
