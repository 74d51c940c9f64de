//! Finds lines by a regular expression, with ripgrep's own searcher.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::Grep;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use rustix::fs::OFlags;
use serde_json::{Map, Value, json};

use super::pattern::Pattern;
use super::root::{Opened, Root};
use super::walk::{HELD_BACK, Walked, walk};
use crate::limits;
use crate::secrets::Mask;

/// Reads a regular expression, so that one that is none is refused before anything is searched.
pub(crate) fn matcher(pattern: &str) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).crlf(true).size_limit(8 << 20).dfa_size_limit(8 << 20);
    builder.build(pattern).map_err(|error| error.to_string())
}

/// The filter of the files that are searched. A pattern without a slash is one of names, in any folder; `!` means all others.
#[derive(Debug)]
pub(crate) struct FileFilter {
    pattern: Pattern,
    others: bool,
}

impl FileFilter {
    pub(crate) fn new(text: &str) -> Result<FileFilter, String> {
        let (text, others) = text.strip_prefix('!').map_or((text, false), |rest| (rest, true));
        let anywhere = format!("**/{text}");
        let pattern = Pattern::new(if text.is_empty() || text.contains('/') { text } else { &anywhere })?;
        Ok(FileFilter { pattern, others })
    }

    /// A path is that from the workspace on, and the one from the folder that is searched: either may be meant.
    fn takes(&self, path: &Path, from_start: &Path) -> bool {
        (self.pattern.matches(path) || self.pattern.matches(from_start)) != self.others
    }
}

pub(super) fn run(call: &Grep, root: &Root) -> Result<Value, Refusal> {
    let path = match &call.path {
        Some(path) => root.relative(path)?,
        None => Default::default(),
    };
    // A call is refused before, whose patterns are none; said again here, not assumed.
    let matcher = matcher(&call.pattern)
        .map_err(|why| Refusal::new(ErrorCode::InvalidInput, why).with_hint("mend the pattern"))?;
    let filter = call.glob.as_deref().map(FileFilter::new).transpose();
    let filter = filter.map_err(|why| Refusal::new(ErrorCode::InvalidInput, why).with_hint("mend the glob"))?;
    let mut searcher = searcher(call.context);
    let mut search = Search::new(call, &matcher, root.mask());
    let is_folder = root.open_beneath(&path, OFlags::PATH | OFlags::DIRECTORY).is_ok();
    let walked = if is_folder {
        let hidden = filter.as_ref().is_some_and(|filter| filter.pattern.names_hidden());
        walk(root, &path, hidden, |seen| {
            if !seen.is_file || !filter.as_ref().is_none_or(|filter| filter.takes(&seen.path, seen.from_start)) {
                return ControlFlow::Continue(());
            }
            seen.open().map_or(ControlFlow::Continue(()), |opened| search.file(&mut searcher, &seen.path, opened))
        })?
    } else {
        let opened = root.open_file(&path)?;
        let _ = search.file(&mut searcher, &path, opened);
        Walked::default()
    };
    Ok(search.result(walked, is_folder))
}

fn searcher(context: usize) -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder.line_number(true).before_context(context).after_context(context);
    builder.binary_detection(BinaryDetection::quit(0)).heap_limit(Some(limits::GREP_HEAP_BYTES));
    builder.line_terminator(LineTerminator::crlf());
    builder.build()
}

/// What was found so far, over all files.
struct Search<'a> {
    matcher: &'a RegexMatcher,
    mask: &'a Mask,
    limit: usize,
    matches: Vec<Found>,
    /// Bytes of files that may still be read, and of lines that may still be returned.
    left: u64,
    room: usize,
    more: bool,
    binary: u64,
    failed: u64,
}

#[derive(Default)]
struct Found {
    path: String,
    line: u64,
    text: String,
    before: Vec<String>,
    after: Vec<String>,
}

impl<'a> Search<'a> {
    fn new(call: &Grep, matcher: &'a RegexMatcher, mask: &'a Mask) -> Search<'a> {
        Search {
            matcher,
            mask,
            limit: call.limit,
            matches: Vec::new(),
            left: limits::GREP_READ_BYTES,
            room: limits::GREP_BYTES,
            more: false,
            binary: 0,
            failed: 0,
        }
    }

    fn file(&mut self, searcher: &mut Searcher, path: &Path, opened: Opened) -> ControlFlow<()> {
        if self.left == 0 {
            self.more = true;
            return ControlFlow::Break(());
        }
        // What can be read is taken from what is left, whether or not it is read to the end.
        let mut reader = opened.file.take(self.left);
        let before = self.left;
        let matcher = self.matcher;
        let sink = InFile { search: self, path: path.display().to_string(), before: Vec::new() };
        if searcher.search_reader(matcher, &mut reader, sink).is_err() {
            self.failed += 1;
        }
        self.left = reader.limit();
        if self.left == 0 && opened.bytes > before {
            self.more = true;
        }
        if self.more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// A line as it is returned: of a long one, the part around the match.
    fn clipped(&self, line: &[u8]) -> String {
        const BEFORE: usize = 80;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() <= limits::GREP_LINE_BYTES {
            return String::from_utf8_lossy(line).into_owned();
        }
        let line = self.mask.bytes(line);
        let found = self.matcher.find(&line).ok().flatten().map_or(0, |found| found.start());
        let start = if found + BEFORE < limits::GREP_LINE_BYTES { 0 } else { found - BEFORE };
        let end = (start + limits::GREP_LINE_BYTES).min(line.len());
        // The cut may go through characters at both ends.
        let text = String::from_utf8_lossy(&line[start..end]);
        let text = text.trim_matches('\u{fffd}');
        let (head, tail) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
        format!("{head}{text}{tail}")
    }

    fn result(self, walked: Walked, in_folder: bool) -> Value {
        let mut notes = Vec::new();
        if walked.cut {
            notes.push("not all folders were looked at: search a smaller one with `path`");
        }
        if self.failed > 0 {
            notes.push("some files were not read to the end: a line is too long, or reading failed");
        }
        if self.binary > 0 && !in_folder {
            notes.push("the file is binary: it was searched up to its first zero byte");
        }
        if walked.held_back {
            notes.push(HELD_BACK);
        }
        if self.matches.is_empty() && walked.ignored {
            notes.push("what .gitignore names was left out: name its folder in `path` to look there");
        }
        let matches: Vec<Value> = self.matches.into_iter().map(Found::shown).collect();
        let mut result = json!({ "matches": matches, "truncated": self.more || walked.cut });
        if !notes.is_empty() {
            result["note"] = notes.join("; ").into();
        }
        result
    }
}

impl Found {
    fn shown(self) -> Value {
        let mut shown = Map::new();
        shown.insert("path".to_owned(), self.path.into());
        shown.insert("line".to_owned(), self.line.into());
        shown.insert("text".to_owned(), self.text.into());
        for (name, lines) in [("before", self.before), ("after", self.after)] {
            if !lines.is_empty() {
                shown.insert(name.to_owned(), lines.into());
            }
        }
        Value::Object(shown)
    }
}

/// The search of one file. A line between two matches is shown once, after the first.
struct InFile<'a, 'b> {
    search: &'a mut Search<'b>,
    path: String,
    before: Vec<String>,
}

impl Sink for InFile<'_, '_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        let text = self.search.clipped(found.bytes());
        let size = self.path.len() + text.len() + self.before.iter().map(String::len).sum::<usize>();
        if self.search.matches.len() >= self.search.limit || size > self.search.room {
            self.search.more = true;
            return Ok(false);
        }
        self.search.room -= size;
        let (path, before) = (self.path.clone(), std::mem::take(&mut self.before));
        let line = found.line_number().unwrap_or_default();
        self.search.matches.push(Found { path, line, text, before, after: Vec::new() });
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, std::io::Error> {
        let text = self.search.clipped(context.bytes());
        match context.kind() {
            SinkContextKind::Before => self.before.push(text),
            SinkContextKind::After | SinkContextKind::Other => {
                self.search.room = self.search.room.saturating_sub(text.len());
                if let Some(last) = self.search.matches.last_mut() {
                    last.after.push(text);
                }
            }
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), std::io::Error> {
        self.search.binary += u64::from(finish.binary_byte_offset().is_some());
        Ok(())
    }
}
