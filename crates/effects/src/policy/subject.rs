//! What a call is about, as rules look at it and as a person is asked.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::wild::Wild;
use crate::files::{Call, FilePatch, Pattern};
use crate::tools::{exec_command, task_input};

/// How much of a call a person is shown; the transcript has all of it.
const SHOWN_BYTES: usize = 2_000;
const WHERETO_BYTES: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Subject {
    /// For the shell, or for a task that reads it.
    command: Option<String>,
    /// Where the command runs, or who reads it.
    whereto: Option<String>,
    paths: Vec<PathBuf>,
    writes: bool,
}

impl Subject {
    /// An input that does not read is refused before it is judged.
    pub(super) fn of(tool: &str, input: &Value) -> Subject {
        match tool {
            "ExecCommand" => exec_command::call(input).map_or_else(
                |_| Subject::default(),
                |call| Subject {
                    command: Some(call.command.command),
                    whereto: call.command.workdir.map(|folder| format!(" (in {folder})")),
                    ..Subject::default()
                },
            ),
            "TaskInput" => task_input::call(input).map_or_else(
                |_| Subject::default(),
                |call| Subject {
                    command: Some(call.input),
                    whereto: Some(format!(" (to {})", call.task_id)),
                    ..Subject::default()
                },
            ),
            _ => match Call::read(tool, input) {
                Some(Ok(Call::Read(call))) => Subject::files(vec![call.path.as_path().to_owned()], false),
                Some(Ok(Call::Write(call))) => Subject::files(vec![call.path.as_path().to_owned()], true),
                Some(Ok(Call::Edit(call))) => Subject::files(vec![call.path.as_path().to_owned()], true),
                Some(Ok(Call::Patch(call))) => Subject::files(call.files.iter().flat_map(named).collect(), true),
                Some(Ok(Call::Glob(_) | Call::Grep(_)) | Err(_)) | None => Subject::default(),
            },
        }
    }

    fn files(paths: Vec<PathBuf>, writes: bool) -> Subject {
        Subject { paths, writes, ..Subject::default() }
    }

    /// A rule that holds back matches where the whole or any part of it does; one that lets pass only where every part
    /// does, and nothing in it is made up when it runs.
    pub(super) fn command_matches(&self, wanted: &Wild, lets_pass: bool) -> bool {
        let Some(command) = &self.command else { return false };
        if wanted.is_any() {
            return true;
        }
        if lets_pass {
            let made_up = ["`", "$(", "<(", ">("].iter().any(|sign| command.contains(sign));
            let mut parts = parts(command, &['\n', '\r', ';', '&', '|']).peekable();
            return !made_up && parts.peek().is_some() && parts.all(|part| wanted.matches(&part));
        }
        let signs = ['\n', '\r', ';', '&', '|', '(', ')', '{', '}', '`'];
        wanted.matches(&plain(command))
            || parts(command, &signs).any(|part| wanted.matches(&part) || wanted.matches(without_words(&part)))
    }

    /// As for commands: any file holds back, all files let pass. A path that leads somewhere else than it says is held
    /// against every end of it.
    pub(super) fn path_matches(&self, wanted: &Pattern, lets_pass: bool, tool_named: bool) -> bool {
        // Who names no tool means files that are written.
        if self.paths.is_empty() || !(self.writes || tool_named) {
            return false;
        }
        let straight = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        if lets_pass {
            return self.paths.iter().all(|path| straight(path) && wanted.matches(path));
        }
        self.paths.iter().any(|path| {
            let meant = lexical(path);
            wanted.matches(&meant) || (!straight(path) && ends(&meant).any(|end| wanted.matches(&end)))
        })
    }

    pub(super) fn summary(&self, tool: &str, input: &Value, why: Option<&str>) -> String {
        let what = match &self.command {
            Some(command) => format!(": {}", shown(command, SHOWN_BYTES)),
            None if !self.paths.is_empty() => {
                let paths: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
                format!(" {}", shown(&paths.join(", "), SHOWN_BYTES))
            }
            None => format!(" {}", shown(&input.to_string(), SHOWN_BYTES)),
        };
        let whereto = self.whereto.as_deref().map(|text| shown(text, WHERETO_BYTES)).unwrap_or_default();
        let why = why.map(|why| format!(" [{why}]")).unwrap_or_default();
        format!("{tool}{what}{whereto}{why}")
    }
}

fn named(file: &FilePatch) -> impl Iterator<Item = PathBuf> {
    let (old, new) = (file.old.as_ref(), file.new.as_ref());
    let paths = [old.filter(|old| Some(*old) != new), new];
    paths.into_iter().flatten().map(|path| path.as_path().to_owned()).collect::<Vec<_>>().into_iter()
}

/// On one line, with single blanks.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parts<'a>(command: &'a str, signs: &'a [char]) -> impl Iterator<Item = String> + 'a {
    command.split(|c| signs.contains(&c)).map(plain).filter(|part| !part.is_empty())
}

/// A command without what may stand before its name: words of the shell, and variables that it sets.
fn without_words(part: &str) -> &str {
    let mut rest = part;
    while let Some((word, after)) = rest.split_once(' ') {
        let sets = word
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        if !sets && !["then", "do", "else", "elif", "if", "while", "until", "!", "time", "exec"].contains(&word) {
            break;
        }
        rest = after;
    }
    rest
}

/// The path with `..` taken back, as if there were no links.
fn lexical(path: &Path) -> PathBuf {
    let mut meant = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => meant.push(name),
            Component::ParentDir => drop(meant.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    meant
}

fn ends(path: &Path) -> impl Iterator<Item = PathBuf> {
    let parts: Vec<_> = path.components().collect();
    (0..parts.len()).map(|from| parts[from..].iter().collect()).collect::<Vec<_>>().into_iter()
}

/// As much as fits, with everything made visible that would hide or reorder the rest on a screen.
fn shown(text: &str, max: usize) -> String {
    let hides = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut seen = String::new();
    for c in text.chars() {
        let start = seen.len();
        if hides(c) {
            seen.extend(c.escape_unicode())
        } else {
            seen.push(c)
        }
        if seen.len() > max {
            seen.truncate(start);
            return format!("{seen}… (cut: {} bytes in all; the transcript has them)", text.len());
        }
    }
    seen
}
