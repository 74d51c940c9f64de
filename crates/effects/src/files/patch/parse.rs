//! Unified diffs, as `git diff` and `diff -u` write them, read into what they mean: strictly where a guess could change
//! the wrong lines.

use abide_kernel::tool::{FilePatch, Hunk, Line, Side};

use super::header::{Header, names_of_git_line, parse_name};
use crate::limits;

/// A fault of a patch, and its remedy.
#[derive(Debug)]
pub(crate) struct PatchFault {
    pub message: String,
    pub hint: String,
}

impl PatchFault {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> PatchFault {
        PatchFault { message: message.into(), hint: hint.into() }
    }
}

/// The lines of a patch, and where in it we are.
struct PatchText<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> PatchText<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// A header: how its line ends says nothing.
    fn header(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).map(|line| line.strip_suffix('\r').unwrap_or(line))
    }

    fn begins_file(&self) -> bool {
        begins_file(&self.lines[self.at.min(self.lines.len())..])
    }
}

fn begins_file(lines: &[&str]) -> bool {
    let names = |ahead: usize, mark| lines.get(ahead).is_some_and(|line| line.starts_with(mark));
    names(0, "diff --git ") || names(0, "--- ") && names(1, "+++ ")
}

pub(crate) fn parse(patch: &str) -> Result<Vec<FilePatch>, PatchFault> {
    let patch = patch.strip_suffix('\n').unwrap_or(patch);
    let mut text = PatchText { lines: patch.split('\n').collect(), at: 0 };
    let mut files = Vec::new();
    while let Some(line) = text.header(0) {
        if text.begins_file() {
            files.push(parse_file(&mut text)?);
            if files.len() > limits::PATCH_FILES_MAX {
                let most = limits::PATCH_FILES_MAX;
                return Err(PatchFault::new(
                    format!("the patch has more than {most} files"),
                    "give it in several parts",
                ));
            }
        } else if line.starts_with("@@ ") {
            let hint = "begin each file with two lines, --- a/PATH and +++ b/PATH";
            return Err(PatchFault::new(format!("line {} begins a hunk, but of no file", text.at + 1), hint));
        } else {
            // Text that people write around a patch: a commit's message, a signature.
            text.at += 1;
        }
    }
    if files.is_empty() {
        let hint = "give a unified diff: --- a/PATH, +++ b/PATH, then hunks that begin with @@ -1,3 +1,4 @@";
        return Err(PatchFault::new("there is no file in the patch", hint));
    }
    Ok(files)
}

fn parse_file(text: &mut PatchText<'_>) -> Result<FilePatch, PatchFault> {
    let begin = text.at;
    let mut header = Header::default();
    if let Some(names) = text.header(0).and_then(|line| line.strip_prefix("diff --git ")) {
        header.git_names = Some(names_of_git_line(names));
        text.at += 1;
        while let Some(line) = text.header(0).filter(|line| header.accepts(line)) {
            header.read_line(line).map_err(|fault| at_line(text.at, fault))?;
            text.at += 1;
        }
        if let Some(line) = text.header(0).filter(|line| is_binary(line)) {
            let message = format!("line {} of the patch is of a binary file: {line}", text.at + 1);
            return Err(PatchFault::new(message, "leave it out, and make the file with ExecCommand"));
        }
    }
    // After a git header without any lines changed, the next file may follow at once.
    if let (Some(old), Some(new)) = (text.header(0), text.header(1))
        && let (Some(old), Some(new)) = (old.strip_prefix("--- "), new.strip_prefix("+++ "))
    {
        header.old = Some(parse_name(old).map_err(|fault| at_line(text.at, fault))?);
        header.new = Some(parse_name(new).map_err(|fault| at_line(text.at + 1, fault))?);
        text.at += 2;
    }
    let mut hunks = Vec::new();
    while text.header(0).is_some_and(|line| line.starts_with("@@")) {
        hunks.push(parse_hunk(text)?);
    }
    if let Some(line) = text.header(0).filter(|line| is_binary(line)) {
        return Err(PatchFault::new(format!("the patch has a binary file: {line}"), "make the file with ExecCommand"));
    }
    header.into_file_patch(hunks).map_err(|fault| at_line(begin, fault))
}

fn is_binary(line: &str) -> bool {
    line == "GIT binary patch" || line.starts_with("Binary files ") && line.ends_with(" differ")
}

fn at_line(at: usize, fault: PatchFault) -> PatchFault {
    PatchFault { message: format!("line {} of the patch: {}", at + 1, fault.message), hint: fault.hint }
}

fn parse_hunk(text: &mut PatchText<'_>) -> Result<Hunk, PatchFault> {
    let (at, header) = (text.at, text.header(0).unwrap_or_default());
    let Some((old_start, old_count, new_count)) = parse_ranges(header) else {
        let hint = "a hunk begins with @@ -LINE,COUNT +LINE,COUNT @@";
        return Err(at_line(at, PatchFault::new(format!("{:?} says no lines", clip_line(header)), hint)));
    };
    text.at += 1;
    let (mut old_left, mut new_left) = (old_count, new_count);
    let mut lines: Vec<Line> = Vec::new();
    while old_left > 0 || new_left > 0 {
        let Some(line) = text.peek() else { return Err(wrong_counts(text, at)) };
        let side = match line.as_bytes().first() {
            Some(b'+') => Side::New,
            Some(b'-') => Side::Old,
            // Who trims lines leaves nothing of an empty one.
            Some(b' ') | None => Side::Both,
            Some(b'\r') if line == "\r" => Side::Both,
            Some(b'\\') if !lines.is_empty() => {
                end_without_newline(&mut lines);
                text.at += 1;
                continue;
            }
            Some(_) => return Err(wrong_counts(text, at)),
        };
        let (old, new) = (u64::from(side != Side::New), u64::from(side != Side::Old));
        if old > old_left || new > new_left {
            return Err(wrong_counts(text, at));
        }
        (old_left, new_left) = (old_left - old, new_left - new);
        let content = line.strip_prefix(['+', '-', ' ']).unwrap_or(line);
        lines.push(Line { side, text: format!("{content}\n") });
        text.at += 1;
    }
    if text.peek().is_some_and(|line| line.starts_with('\\')) {
        end_without_newline(&mut lines);
        text.at += 1;
    }
    // A line that looks like one of a hunk belongs to this one, or it is the signature below a mailed patch.
    let more = text.header(0).is_some_and(|line| line.starts_with(['+', '-', ' ']) && line != "-- ");
    if more && !text.begins_file() {
        return Err(wrong_counts(text, at));
    }
    Ok(Hunk { header: clip_line(header), old_start, lines })
}

fn end_without_newline(lines: &mut [Line]) {
    if let Some(last) = lines.last_mut() {
        last.text.truncate(last.text.trim_end_matches('\n').len());
    }
}

/// Says what the counts would be if the hunk went on to where the next one begins.
fn wrong_counts(text: &PatchText<'_>, at: usize) -> PatchFault {
    let (mut old, mut new) = (0, 0);
    for next in at + 1..text.lines.len() {
        match text.lines[next].as_bytes().first() {
            Some(b'@' | b'd') => break,
            Some(b'-') if begins_file(&text.lines[next..]) => break,
            Some(b'+') => new += 1,
            Some(b'-') => old += 1,
            Some(b'\\') => {}
            Some(_) | None => (old, new) = (old + 1, new + 1),
        }
    }
    let header = clip_line(text.lines[at]);
    let message = format!("line {} of the patch: {header:?} says other counts than its hunk has", at + 1);
    let hint = format!(
        "the hunk seems to have {old} old lines and {new} new ones; each of its lines begins with a space, - or +"
    );
    PatchFault::new(message, hint)
}

/// The old range's start and both counts of `@@ -1,2 +3,4 @@ …`.
fn parse_ranges(header: &str) -> Option<(u64, u64, u64)> {
    let (old, rest) = header.strip_prefix("@@ -")?.split_once(" +")?;
    let new = rest.split_once(" @@")?.0;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let number = |text: &str| text.parse::<u32>().ok().map(u64::from);
        Some((number(start)?, number(count)?))
    };
    let ((old_start, old_count), (_, new_count)) = (range(old)?, range(new)?);
    (old_count + new_count > 0).then_some((old_start, old_count, new_count))
}

fn clip_line(line: &str) -> String {
    line.chars().take(limits::QUOTED_CHARS).collect()
}
