//! Replaces text in a file. The text has to be there as given, and only once unless all are meant: a model that is
//! wrong about a file is told what is there instead, and changes nothing.
//!
//! Files whose lines end in CRLF keep them: `old` and `new` may be written with LF, as models write.

use std::path::Path;

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::EditFile;

use super::changes::{self, Change, ChangeResult};
use super::near;
use super::root::{Root, display_path};
use super::target::{Content, too_large_refusal};
use crate::limits;
use crate::secrets::Mask;

/// How many places a refusal names.
const PLACES_NAMED: usize = 8;

pub(super) fn edit_file(call: &EditFile, root: &Root) -> Result<ChangeResult, Refusal> {
    let path = root.relative(&call.path)?;
    let target = root.target(&path, false)?;
    let before = target.content()?.ok_or_else(|| missing_refusal(&path, root))?;
    let found = find_occurrences(&before.bytes, &call.old, &call.new);
    if found.at.is_empty() {
        return Err(no_match_refusal(&path, &before.bytes, &call.old, root.mask()));
    }
    if found.at.len() > 1 && !call.all {
        return Err(ambiguous_refusal(&path, &before.bytes, &found.at));
    }
    let grown = (found.new.len() as u64).saturating_sub(found.old_len as u64).saturating_mul(found.at.len() as u64);
    if before.bytes.len() as u64 + grown > limits::FILE_BYTES {
        return Err(too_large_refusal(&display_path(&path), before.bytes.len() as u64 + grown));
    }
    let after = Content { bytes: replace_all(&before.bytes, &found), mode: before.mode };
    changes::apply_changes(
        root,
        &[Change { target, before: Some(before), after: Some(after), path: display_path(&path) }],
    )
}

/// Where the text is, and what takes its place there.
struct Occurrences {
    at: Vec<usize>,
    old_len: usize,
    new: Vec<u8>,
}

fn find_occurrences(bytes: &[u8], old: &str, new: &str) -> Occurrences {
    let as_given = || (old.to_owned(), new.to_owned());
    let as_crlf = || (with_crlf(old), with_crlf(new));
    let tries = if has_crlf(bytes) { [as_crlf(), as_given()] } else { [as_given(), as_crlf()] };
    let mut found = Occurrences { at: Vec::new(), old_len: 0, new: Vec::new() };
    for (old, new) in tries {
        found = Occurrences { at: positions(bytes, old.as_bytes()), old_len: old.len(), new: new.into_bytes() };
        if !found.at.is_empty() {
            break;
        }
    }
    found
}

/// Where `old` begins, none of them overlapping. One that begins or ends inside a CRLF is none: replacing it would tear
/// the line end apart.
fn positions(bytes: &[u8], old: &[u8]) -> Vec<usize> {
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

fn replace_all(bytes: &[u8], found: &Occurrences) -> Vec<u8> {
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

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn missing_refusal(path: &Path, root: &Root) -> Refusal {
    let refusal = root.refusal(path, rustix::io::Errno::NOENT);
    Refusal { hint: format!("{}; WriteFile makes a new file", refusal.hint), ..refusal }
}

fn no_match_refusal(path: &Path, bytes: &[u8], old: &str, mask: &Mask) -> Refusal {
    let message = format!("`old` is not in {}", display_path(path));
    match near::nearest_lines(bytes, old.as_bytes(), mask) {
        Some(near) => Refusal::new(ErrorCode::NoMatch, format!("{message}. {near}"))
            .with_hint("give `old` exactly as the file has it"),
        None => Refusal::new(ErrorCode::NoMatch, message)
            .with_hint("nothing in it is like `old`: read the file, then edit it"),
    }
}

fn ambiguous_refusal(path: &Path, bytes: &[u8], at: &[usize]) -> Refusal {
    let line = |at: &usize| (memchr::memchr_iter(b'\n', &bytes[..*at]).count() + 1).to_string();
    let lines: Vec<String> = at.iter().take(PLACES_NAMED).map(line).collect();
    let more = if at.len() > PLACES_NAMED { ", …" } else { "" };
    let (path, count, lines) = (display_path(path), at.len(), lines.join(", "));
    Refusal::new(ErrorCode::SeveralMatches, format!("`old` is in {path} {count} times, in lines {lines}{more}"))
}
