//! What a call is about, as rules look at it and as a person is asked.

use std::path::{Component, Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::WorkspacePath;
use abide_kernel::visible::is_hidden;
use serde_json::Value;

use super::spellings::Spellings;
use super::wild::Wild;
use super::{Caller, command};
use crate::files::{Pattern, Root};
use crate::tools::{CallSubject, Touches};

/// How much of a call a person is shown; the transcript has all of it.
const SHOWN_BYTES: usize = 2_000;
const WHERETO_BYTES: usize = 200;

#[derive(Debug)]
pub(super) struct Subject {
    /// For the shell, or for a task that reads it.
    command: Option<String>,
    /// Where the command runs, or who reads it.
    whereto: Option<String>,
    paths: Vec<NamedPath>,
    touches: Touches,
    reads_content: bool,
    spellings: Spellings,
}

/// The folder that paths are looked up in.
#[derive(Debug, Clone, Copy)]
enum LookedAt<'a> {
    Nothing,
    Folder(&'a Root),
    /// A link or something else took its place: every path leads out.
    Elsewhere,
}

#[derive(Debug)]
struct NamedPath {
    /// As the model wrote it.
    written: PathBuf,
    leads: Leads,
    /// The call shows what the file says, copies it, or tells whether a text stands in it.
    is_read: bool,
}

/// How a rule is about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// It is about this tool.
    Call,
    /// It is about reading, and the call reads some of its files.
    Reading,
}

/// Where a path leads once links are followed, from the workspace on.
#[derive(Debug, PartialEq, Eq)]
enum Leads {
    /// There is no workspace to look in.
    NotLooked,
    /// Out of the workspace, or nowhere.
    Out,
    To(PathBuf),
}

impl Subject {
    /// Files are looked at only where a rule is about them.
    pub(super) fn of(call: CallSubject, caller: &Caller<'_>, looks_at_files: bool) -> Subject {
        let CallSubject { command, whereto, paths, touches, reads_content } = call;
        let workspace = caller.workspace.filter(|_| looks_at_files && !paths.is_empty());
        let opened = workspace.filter(|_| caller.root.is_none()).map(Root::open);
        let root = match (workspace.and(caller.root), &opened) {
            (Some(root), _) | (None, Some(Ok(root))) => LookedAt::Folder(root),
            // There is none yet.
            (None, None | Some(Err(Refusal { code: ErrorCode::Missing, .. }))) => LookedAt::Nothing,
            (None, Some(Err(_))) => LookedAt::Elsewhere,
        };
        let paths = paths.into_iter().map(|named| NamedPath::new(&named.path, root, named.is_read)).collect();
        let spellings = Spellings::of(caller.workspace, caller.rule_folders);
        Subject { command, whereto, paths, touches, reads_content, spellings }
    }

    /// Whether a rule that holds back reading is about this call, too.
    pub(super) fn reads_content(&self) -> bool {
        self.reads_content
    }

    /// A rule that holds back matches where the whole or any part of it does; one that lets pass only where every part
    /// does, and nothing in it is redirected or made up when it runs.
    pub(super) fn command_matches(&self, wanted: &Wild, lets_pass: bool) -> bool {
        let Some(text) = &self.command else { return false };
        if wanted.is_any() {
            true
        } else if lets_pass {
            command::every_part_matches(text, wanted)
        } else {
            command::any_part_matches(text, wanted)
        }
    }

    /// Whether a rule about paths is about this call: one that names no tool means files that are written.
    pub(super) fn is_about_files(&self, tool_named: bool) -> bool {
        !self.paths.is_empty() && (self.touches == Touches::Writes || tool_named)
    }

    pub(super) fn searches(&self) -> bool {
        self.touches == Touches::Searches
    }

    /// As for commands: any file holds back, all files let pass. A path is judged as it is written and by where it leads;
    /// one that says neither is held against every end of it.
    pub(super) fn path_matches(&self, wanted: &Pattern, lets_pass: bool, tool_named: bool, about: About) -> bool {
        if !self.is_about_files(tool_named) {
            return false;
        }
        let matches = |path: &Path| wanted.matches(path) || self.searches() && covers(wanted, path);
        let spelled = |path: &Path| self.spellings.match_path(path, lets_pass, matches);
        if lets_pass {
            self.paths.iter().all(|path| {
                path.is_straight()
                    && spelled(&path.written)
                    && path.leads.within().is_none_or(|real| real.is_some_and(spelled))
            })
        } else {
            let mut paths = self.paths.iter().filter(|path| about == About::Call || path.is_read);
            paths.any(|path| {
                let meant = lexical(&path.written);
                let leads_there = path.leads.within().flatten().is_some_and(spelled);
                spelled(&meant) || leads_there || (!path.is_straight() && ends(&meant).any(|end| matches(&end)))
            })
        }
    }

    /// The spellings of the files that the call names.
    pub(super) fn into_spellings(self) -> Spellings {
        self.spellings
    }

    /// Where the paths lead, as far as anybody looked.
    pub(super) fn led_to(&self) -> impl Iterator<Item = Vec<u8>> {
        self.paths.iter().filter_map(|path| path.leads.within()).map(|real| match real {
            Some(real) => real.as_os_str().as_encoded_bytes().to_vec(),
            None => b"/".to_vec(),
        })
    }

    pub(super) fn summary(&self, tool: &str, input: &Value, why: Option<&str>) -> String {
        let what = match &self.command {
            Some(command) => format!(": {}", shown(command, SHOWN_BYTES)),
            None if !self.paths.is_empty() => {
                let paths: Vec<String> = self.paths.iter().map(|path| self.shown_path(path)).collect();
                format!(" {}", shown(&paths.join(", "), SHOWN_BYTES))
            }
            None => format!(" {}", shown(&input.to_string(), SHOWN_BYTES)),
        };
        let whereto = self.whereto.as_deref().map(|text| shown(text, WHERETO_BYTES)).unwrap_or_default();
        let why = why.map(|why| format!(" [{why}]")).unwrap_or_default();
        format!("{tool}{what}{whereto}{why}")
    }
}

impl Subject {
    /// From the outermost folder on, and with the place that a link leads to.
    fn shown_path(&self, path: &NamedPath) -> String {
        if path.written.is_absolute() {
            return path.written.display().to_string();
        }
        let shown = self.spellings.longest(&path.written).display().to_string();
        match path.leads.within().flatten().filter(|real| **real != lexical(&path.written)) {
            Some(real) => format!("{shown} (leads to {})", self.spellings.longest(real).display()),
            None => shown,
        }
    }
}

impl NamedPath {
    fn new(path: &WorkspacePath, root: LookedAt<'_>, is_read: bool) -> NamedPath {
        let leads = match root {
            LookedAt::Nothing => Leads::NotLooked,
            LookedAt::Folder(root) => root.real(path).map_or(Leads::Out, Leads::To),
            LookedAt::Elsewhere => Leads::Out,
        };
        NamedPath { written: path.as_path().to_owned(), leads, is_read }
    }

    /// Whether it only goes down, by names.
    fn is_straight(&self) -> bool {
        self.written.components().all(|part| matches!(part, Component::Normal(_)))
    }
}

impl Leads {
    /// None where nobody looked; `Some(None)` where it leads out.
    fn within(&self) -> Option<Option<&Path>> {
        match self {
            Leads::NotLooked => None,
            Leads::Out => Some(None),
            Leads::To(path) => Some(Some(path)),
        }
    }
}

/// Whether a pattern is about everything below a folder, however deep.
fn covers(wanted: &Pattern, folder: &Path) -> bool {
    const ANY: &str = "\u{fffd}";
    let below = folder.join(ANY);
    wanted.matches(&below) && wanted.matches(&below.join(ANY))
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
    let hides = |c: char| is_hidden(c) && c != '\n';
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
