//! Skills: folders with a `SKILL.md` of instructions for one kind of work. A model is told their names and
//! descriptions; the rest is read when it asks (`read_skill`).

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Dir, FileType, OFlags};

use super::front_matter::{self, Head};
use super::{AgentLocation, BrokenFile, HOME_SKILLS, Skill, home_skills, problem};
use crate::files::Root;
use crate::limits;

/// Where in a workspace skills lie. What comes first counts where two have the same name.
const SHELVES: [&str; 2] = [".agents/skills", ".claude/skills"];
pub(super) const FILE: &str = "SKILL.md";

/// A skill and its location.
#[derive(Debug)]
pub(super) struct SkillLocation {
    pub skill: Skill,
    pub root: Arc<Root>,
    /// From the root on.
    pub folder: PathBuf,
    /// The line of its `SKILL.md` at which its head is over.
    pub body: u64,
}

struct SkillFolder {
    root: Arc<Root>,
    /// From the root on.
    path: &'static str,
    /// How people name what is on it.
    shown: String,
}

/// All usable skills; the problems of the others go into `broken`.
pub(super) fn list_skills(
    at: &AgentLocation<'_>,
    workspace: Option<Root>,
    broken: &mut Vec<BrokenFile>,
) -> Vec<SkillLocation> {
    let mut found: Vec<SkillLocation> = Vec::new();
    let mut names = BTreeSet::new();
    for shelf in skill_folders(at, workspace) {
        for name in list_folders(&shelf) {
            let source = format!("{}/{}", shelf.shown, name.display());
            if found.len() >= limits::SKILLS_MAX {
                let problem = format!("there are more than {} skills: it is left out", limits::SKILLS_MAX);
                broken.push(BrokenFile { path: source, problem });
                return found;
            }
            let folder = Path::new(shelf.path).join(&name);
            match read_front_matter(&shelf.root, &folder) {
                Ok(Head { name, description, body }) if !names.contains(&name) => {
                    names.insert(name.clone());
                    let skill = Skill { name, description, source };
                    found.push(SkillLocation { skill, root: Arc::clone(&shelf.root), folder, body });
                }
                // The nearer one counts: a project may have its own way of doing what the operator has a skill for.
                Ok(_) => {}
                Err(problem) => broken.push(BrokenFile { path: source, problem }),
            }
        }
    }
    found
}

fn skill_folders(at: &AgentLocation<'_>, workspace: Option<Root>) -> Vec<SkillFolder> {
    let mut shelves = Vec::new();
    if let Some(root) = workspace.map(Arc::new) {
        shelves.extend(SHELVES.map(|path| SkillFolder { root: Arc::clone(&root), path, shown: path.to_owned() }));
    }
    // The home itself is closed to agents; of this one folder we read for them.
    // Its operator may have put a link there; no agent can.
    if let Some(root) = home_skills(at.home).canonicalize().ok().and_then(|folder| Root::open(&folder).ok()) {
        let root = root.masked_by(at.mask.clone());
        let shown = format!("$ABIDE_HOME/{HOME_SKILLS}");
        shelves.push(SkillFolder { root: Arc::new(root), path: "", shown });
    }
    shelves
}

/// The folders on a shelf, by name; links may be some.
fn list_folders(shelf: &SkillFolder) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let Ok(folder) = shelf.root.open_beneath(Path::new(shelf.path), flags) else { return Vec::new() };
    let entries = Dir::new(folder).into_iter().flatten().flatten().take(limits::SKILLS_LOOKED_AT);
    let mut names: Vec<PathBuf> = entries
        .filter(|entry| matches!(entry.file_type(), FileType::Directory | FileType::Symlink | FileType::Unknown))
        .map(|entry| PathBuf::from(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes())))
        .filter(|name| !name.as_os_str().as_bytes().starts_with(b"."))
        .collect();
    names.sort_unstable();
    names
}

fn read_front_matter(root: &Root, folder: &Path) -> Result<Head, String> {
    let path = folder.join(FILE);
    let name = folder.file_name().and_then(|name| name.to_str()).ok_or("its name is not UTF-8")?;
    if !root.is_there(&path) {
        return Err(format!("there is no {FILE} in it"));
    }
    let opened = root.open_file(&path).map_err(problem)?;
    let mut bytes = Vec::new();
    let mut start = opened.file.take(limits::SKILL_HEAD_BYTES);
    start.read_to_end(&mut bytes).map_err(|error| format!("it can't be read: {error}"))?;
    // The cut may have gone through a letter of the body.
    front_matter::parse(&String::from_utf8_lossy(&bytes), name, root.mask())
}
