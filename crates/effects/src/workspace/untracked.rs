//! The untracked files of a worktree that are work: those that git does not ignore, and those that it ignores only
//! because of something that the agent wrote.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::repository::read_record;
use super::tree::{self, listed, path_of};
use super::view::View;
use crate::limits;

/// Folders that tools fill, by their names. They are saved only where there is little in them, and only where no more
/// than the agent's own rules ignore them.
const GENERATED: &[&str] = &["node_modules", "target", "__pycache__", ".venv", ".tox"];

/// Lists the untracked files twice, into files of the view: by the rules that are in the folder now, and by those of the
/// baseline. git only warns of a folder that it can't read, so its warnings are kept.
pub(super) const LIST: &str = "\
list() { git ls-files -z -o \"$@\" 2>> \"$GIT_DIR/warnings\" || { cat \"$GIT_DIR/warnings\" >&2; exit 1; }; }
list --exclude-per-directory=.gitignore --exclude-from=\"$GIT_DIR/info/exclude\" > \"$GIT_DIR/untracked-now\"
if test -e \"$GIT_DIR/ignored\"; then
list --exclude-from=\"$GIT_DIR/ignored\" > \"$GIT_DIR/untracked-before\"
fi
";

#[derive(Debug, Default)]
pub(super) struct Untracked {
    /// From the top of the folder, as git prints them.
    pub(super) files: Vec<Vec<u8>>,
    /// Repositories of their own, and nothing that is in them.
    pub(super) repositories: Vec<PathBuf>,
}

impl Untracked {
    /// Reads the lists that `LIST` made of a folder.
    pub(super) fn read(view: &View, folder: &Path) -> Result<Untracked, Refusal> {
        nothing_unreadable(view, folder)?;
        let now = names(view, "untracked-now")?;
        let before = names(view, "untracked-before")?;
        let own: Vec<Vec<u8>> = before.difference(&now).cloned().collect();
        let mut all: Vec<Vec<u8>> = now.into_iter().chain(bounded(own, folder)?).collect();
        all.sort();
        let (repositories, files) = all.into_iter().partition::<Vec<_>, _>(|name| name.ends_with(b"/"));
        Ok(Untracked { files, repositories: repositories.iter().map(|name| path_of(name)).collect() })
    }

    /// The files, for the standard input of git.
    pub(super) fn joined(&self) -> Vec<u8> {
        self.files.iter().flat_map(|name| name.iter().copied().chain([0])).collect()
    }
}

fn names(view: &View, list: &str) -> Result<BTreeSet<Vec<u8>>, Refusal> {
    Ok(tree::names(&listed(view, list)?).map(<[u8]>::to_vec).collect())
}

/// Refuses where git warned of something that it could not look into.
fn nothing_unreadable(view: &View, folder: &Path) -> Result<(), Refusal> {
    let warnings = read_record(view.git_dir(), "warnings", limits::GIT_OUTPUT_BYTES).unwrap_or_default();
    let warnings = String::from_utf8_lossy(&warnings).into_owned();
    let Some(warning) = warnings.lines().find(|line| !is_harmless(line)) else { return Ok(()) };
    let path = folder.display();
    let message = format!("git could not look at everything in {path}: {warning}");
    let hint = format!(
        "make it readable: chmod -R u+rwX '{path}'; or give up what is in the worktree: abide workspace detach \
         --discard; nothing was removed"
    );
    Err(Refusal::new(ErrorCode::Unreadable, message).with_hint(hint))
}

/// An ignore file that is not read makes git ignore less; an extension of the index that it does not know is optional.
fn is_harmless(warning: &str) -> bool {
    let ignore_file = warning.starts_with("warning: unable to access '") && warning.contains(".gitignore': ");
    ignore_file || (warning.starts_with("ignoring ") && warning.ends_with(" extension"))
}

/// The files that are ignored only by the agent's own rules, if they are not too many.
fn bounded(mut own: Vec<Vec<u8>>, folder: &Path) -> Result<Vec<Vec<u8>>, Refusal> {
    let size = |name: &Vec<u8>| folder.join(path_of(name)).symlink_metadata().map_or(0, |found| found.len());
    let bytes = |own: &[Vec<u8>]| own.iter().map(size).sum::<u64>();
    let fits = |own: &[Vec<u8>]| own.len() <= limits::OWN_IGNORED_FILES && bytes(own) <= limits::OWN_IGNORED_BYTES;
    // A tool put it there, with what it installed.
    own.retain(|name| !(name.ends_with(b"/") && is_generated(name)));
    if fits(&own) {
        return Ok(own);
    }
    own.retain(|name| !is_generated(name));
    if fits(&own) {
        return Ok(own);
    }
    let shown = own.iter().take(limits::EVIDENCE_NAMES).map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>();
    let message = format!(
        "{} files of {} bytes in {} are ignored by rules that the agent wrote itself, too much to be saved: {}, …",
        own.len(),
        bytes(&own),
        folder.display(),
        shown.join(", ")
    );
    Err(Refusal::new(ErrorCode::TooMuchIgnored, message))
}

fn is_generated(name: &[u8]) -> bool {
    let parts = name.split(|byte| *byte == b'/');
    let in_folder = parts.rev().skip(1).any(|part| GENERATED.iter().any(|folder| folder.as_bytes() == part));
    in_folder || name.ends_with(b".pyc")
}
