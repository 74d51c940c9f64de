//! Reads lines of a file, or an image: no more of the file than it takes, and no more than a model can use.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use abide_kernel::limits::IMAGE_BYTES;
use abide_kernel::prompt::image::{media_type, whole};
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::ReadFile;
use base64::prelude::{BASE64_STANDARD, Engine};
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use super::root::{Opened, Root, failed, shown};
use crate::limits;
use crate::secrets::Mask;

/// What was found on the way through the file.
#[derive(Default)]
struct Lines {
    content: Vec<u8>,
    /// The line that is being taken, as far as it can be shown.
    line: Vec<u8>,
    /// Lines that were begun so far.
    begun: u64,
    /// Lines that are in `content`.
    taken: u64,
    /// The first line that is there in part only.
    clipped: Option<u64>,
    /// The bytes are spent: no further line is taken.
    full: bool,
    looked_at: u64,
    ended: bool,
}

pub(super) fn run(call: &ReadFile, root: &Root) -> Result<Value, Refusal> {
    let path = root.relative(&call.path)?;
    let opened = root.open_file(&path)?;
    if let Some(kind) = image_kind(&opened) {
        return image(kind, &path, opened);
    }
    let lines = look(call, &path, opened, root.mask())?;
    if lines.begun < call.offset && call.offset > 1 {
        return Err(past_the_end(call, &path, &lines));
    }
    let (content, lossy) = match String::from_utf8(lines.content) {
        Ok(content) => (content, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    };
    let last = call.offset + lines.taken - u64::from(lines.taken > 0);
    let more = !lines.ended || last < lines.begun && lines.taken > 0;
    let mut result = Map::new();
    result.insert("content".to_owned(), json!(content));
    result.insert("lines".to_owned(), if lines.ended { json!(lines.begun) } else { Value::Null });
    result.insert("truncated".to_owned(), json!(more || lines.clipped.is_some()));
    if more {
        result.insert("next_offset".to_owned(), json!(last + 1));
    }
    let mut notes = Vec::new();
    if let Some(line) = lines.clipped {
        let most = limits::READ_LINE_BYTES;
        notes.push(format!("line {line} is clipped: a line is shown up to {most} bytes; ExecCommand can cut out more"));
    }
    if lossy {
        notes.push("the file is not UTF-8: what could not be read is shown as \u{fffd}; leave it out of edits".into());
    }
    if !notes.is_empty() {
        result.insert("note".to_owned(), json!(notes.join("; ")));
    }
    Ok(Value::Object(result))
}

/// What kind of image it is, if any. A text may begin with the letters of one; it has no byte that is not of a text.
fn image_kind(opened: &Opened) -> Option<&'static str> {
    let mut start = [0; 512];
    let read = opened.file.read_at(&mut start, 0).unwrap_or_default();
    let start = &start[..read];
    media_type(start).filter(|_| start.contains(&0) || std::str::from_utf8(start).is_err())
}

fn image(kind: &'static str, path: &Path, opened: Opened) -> Result<Value, Refusal> {
    let mut bytes = Vec::new();
    let read = opened.file.take(IMAGE_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(path, Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    if bytes.len() > IMAGE_BYTES {
        let size = opened.bytes.max(bytes.len() as u64);
        let message = format!("{} is an image of {size} bytes; one is shown up to {IMAGE_BYTES}", shown(path));
        let hint =
            "make a smaller one with ExecCommand, for example magick FILE -resize 1200x1200 small.jpg, and read that";
        return Err(Refusal::new(ErrorCode::FileTooLarge, message).with_hint(hint));
    }
    if let Err(wrong) = whole(&bytes) {
        let message = format!("{} is an image that can't be shown: {wrong}", shown(path));
        return Err(Refusal::new(ErrorCode::UnreadableImage, message));
    }
    let image = json!({ "media_type": kind, "data": BASE64_STANDARD.encode(bytes) });
    Ok(json!({ "image": image, "content": "", "lines": 0, "truncated": false }))
}

fn look(call: &ReadFile, path: &Path, opened: Opened, mask: &Mask) -> Result<Lines, Refusal> {
    let mut reader = BufReader::with_capacity(128 << 10, opened.file);
    let mut lines = Lines::default();
    let mut in_line = false;
    loop {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(path, Errno::from_io_error(&error).unwrap_or(Errno::IO))),
        };
        if buffer.is_empty() {
            lines.ended = true;
            lines.end_line(mask);
            return Ok(lines);
        }
        if lines.looked_at == 0 {
            refuse_binary(path, buffer)?;
        }
        if lines.are_taken(call) {
            // Only counted from here on.
            let ends = memchr::memchr_iter(b'\n', buffer).count() as u64;
            let ended = buffer.ends_with(b"\n");
            lines.begun += u64::from(!in_line) + ends - u64::from(ended);
            in_line = !ended;
        } else {
            for piece in buffer.split_inclusive(|byte| *byte == b'\n') {
                if !in_line {
                    lines.begun += 1;
                    lines.begin(call);
                }
                in_line = !piece.ends_with(b"\n");
                if lines.takes(call) {
                    refuse_binary(path, piece)?;
                    lines.take(piece, mask);
                    if !in_line {
                        lines.end_line(mask);
                    }
                }
            }
        }
        let read = buffer.len();
        lines.looked_at += read as u64;
        reader.consume(read);
        if lines.looked_at >= limits::READ_LOOKED_AT_BYTES {
            lines.ended = reader.fill_buf().is_ok_and(<[u8]>::is_empty);
            lines.end_line(mask);
            return Ok(lines);
        }
    }
}

impl Lines {
    fn begin(&mut self, call: &ReadFile) {
        if self.begun < call.offset || self.taken >= call.limit || self.full {
            return;
        }
        // A line that may not fit is not begun, unless it is the first: something always comes.
        if self.content.len() + limits::READ_LINE_BYTES > limits::READ_BYTES && self.taken > 0 {
            self.full = true;
        } else {
            self.taken += 1;
        }
    }

    /// Whether nothing more is asked for, not even the rest of the line.
    fn are_taken(&self, call: &ReadFile) -> bool {
        (self.full || self.taken >= call.limit) && !self.takes(call)
    }

    /// Whether the line that is being read is one of those asked for.
    fn takes(&self, call: &ReadFile) -> bool {
        self.taken > 0 && self.begun == call.offset + self.taken - 1
    }

    /// Takes a piece of the line, with as much beyond what is shown as it takes to mask that.
    fn take(&mut self, piece: &[u8], mask: &Mask) {
        let room = (limits::READ_LINE_BYTES + 1 + mask.lookahead()).saturating_sub(self.line.len());
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room && piece.ends_with(b"\n") {
            self.line.push(b'\n');
        }
    }

    /// The line is complete: it is shown up to its limit.
    fn end_line(&mut self, mask: &Mask) {
        let line = std::mem::take(&mut self.line);
        if line.len() <= limits::READ_LINE_BYTES {
            self.content.extend_from_slice(&line);
            return;
        }
        self.clipped = self.clipped.or(Some(self.begun));
        let masked = mask.bytes(&line);
        let text = masked.strip_suffix(b"\n").unwrap_or(&masked);
        self.content.extend_from_slice(&text[..text.len().min(limits::READ_LINE_BYTES)]);
        drop_half_char(&mut self.content);
        if line.ends_with(b"\n") {
            self.content.push(b'\n');
        }
    }
}

/// The cut may have gone through a character.
fn drop_half_char(content: &mut Vec<u8>) {
    for back in 1..=content.len().min(3) {
        let at = content.len() - back;
        let needs = match content[at] {
            0x00..=0x7f => return,
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
        };
        if needs > back {
            content.truncate(at);
        }
        return;
    }
}

fn refuse_binary(path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    if !bytes.contains(&0) {
        return Ok(());
    }
    let hint = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "it looks like UTF-16: read it with ExecCommand, for example iconv -f UTF-16 FILE"
    } else {
        "look at it with ExecCommand, for example file FILE, or xxd FILE | head"
    };
    Err(Refusal::new(ErrorCode::BinaryFile, format!("{} is not text", shown(path))).with_hint(hint))
}

fn past_the_end(call: &ReadFile, path: &Path, lines: &Lines) -> Refusal {
    let (path, offset) = (shown(path), call.offset);
    if lines.ended {
        let message = format!("{path} has {} lines; line {offset} is past its end", lines.begun);
        return Refusal::new(ErrorCode::PastTheEnd, message);
    }
    let message = format!("line {offset} of {path} is not within its first {} bytes", limits::READ_LOOKED_AT_BYTES);
    Refusal::new(ErrorCode::FileTooLarge, message)
        .with_hint("use ExecCommand, for example sed -n '5000000,5000100p' FILE, or Grep")
}
