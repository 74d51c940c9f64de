//! What lies around an agent that its model should know of before it asks: the guides of the folder that it works in,
//! and the skills that it may read. Looked at anew for each call, so that what a person changes counts at once.
//!
//! Everything is opened beneath a root, as the file tools open it; nothing here takes a folder for the agent, makes one,
//! or runs anything. What is broken is named with what is wrong with it, and stands in nobody's way.

mod above;
mod front_matter;
mod guides;
mod read_skill;
mod skills;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};

use crate::files::Root;
use crate::policy::Unseen;
use crate::secrets::Mask;
pub(crate) use read_skill::run as read_skill;

/// The name of a guide's file.
const GUIDE: &str = "AGENTS.md";
const HOME_SKILLS: &str = "skills";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// The one that lies nearest to where the agent works comes last.
    pub guides: Vec<Guide>,
    /// By where they lie, then by name. No two have the same name.
    pub skills: Vec<Skill>,
    /// What was meant to be one of these, and is not.
    pub broken: Vec<Broken>,
}

/// An `AGENTS.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guide {
    /// From the workspace on: `AGENTS.md`, `../AGENTS.md`.
    pub path: String,
    pub text: String,
    /// There is more of it than there is room for.
    pub truncated: bool,
}

/// What a model is told of a skill before it reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// On one line.
    pub description: String,
    /// The folder it lies in, from the workspace on, or from the home.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub path: String,
    pub problem: String,
}

/// Where to look. `workspace` is a real path; `hidden` are the places that no agent may see.
pub(crate) struct Whereabouts<'a> {
    pub home: &'a Path,
    pub workspace: &'a Path,
    /// Opens the workspace. Refused where a link or another folder is in its place: no operator allowed where that leads.
    pub open: &'a dyn Fn() -> Result<OwnedFd, Refusal>,
    pub hidden: &'a dyn Fn(&Path) -> Vec<PathBuf>,
    /// The files of the workspace that the policy keeps from being read.
    pub unseen: Option<Unseen>,
    /// Applied to text before it is truncated.
    pub mask: Mask,
}

impl Surroundings {
    /// All of it goes into prompts, which hold no value of a secret.
    pub(crate) fn mask(&mut self, mask: &Mask) {
        for Guide { path, text, .. } in &mut self.guides {
            mask.string(path);
            mask.string(text);
        }
        for Skill { name, description, source } in &mut self.skills {
            [name, description, source].into_iter().for_each(|text| mask.string(text));
        }
        for Broken { path, problem } in &mut self.broken {
            mask.string(path);
            mask.string(problem);
        }
    }
}

/// Where in a home its operator keeps skills for all agents.
pub(crate) fn home_skills(home: &Path) -> PathBuf {
    home.join(HOME_SKILLS)
}

impl Whereabouts<'_> {
    fn root(&self, folder: &Path) -> Option<Root> {
        Root::open(folder).ok().map(|root| root.without((self.hidden)(folder)).masked_by(self.mask.clone()))
    }

    /// The workspace, unless it is not there, or not itself any more.
    fn workspace(&self) -> Option<Root> {
        let root = (self.open)().and_then(|folder| Root::of(folder, self.workspace)).ok()?;
        let root = root.without((self.hidden)(self.workspace)).without_unseen(self.unseen.clone());
        Some(root.masked_by(self.mask.clone()))
    }
}

/// Looks around. Blocks.
pub(crate) fn look(at: &Whereabouts<'_>) -> Surroundings {
    let mut around = Surroundings::default();
    let workspace = at.workspace();
    if let Some(workspace) = &workspace {
        guides::read(at, workspace, &mut around);
    }
    around.skills = skills::list(at, workspace, &mut around.broken).into_iter().map(|found| found.skill).collect();
    around
}

/// What is wrong, where a refusal would speak to somebody who named a path.
fn problem(refusal: Refusal) -> String {
    if refusal.code == ErrorCode::OutsideWorkspace {
        return "it leads out of the folder that it has to lie in: copy it there".to_owned();
    }
    refusal.message
}
