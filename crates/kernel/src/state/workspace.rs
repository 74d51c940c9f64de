//! Workspaces: the folders bound to an agent, which of them it works in, and whether it is in there now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fact::{WorkspaceAttached, Worktree};
use crate::id::Seq;
use crate::time::Time;
use crate::vocabulary::WorkspaceMode;

/// One binding, known by its root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub workspace: String,
    pub root: String,
    pub mode: WorkspaceMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub attached_at: Time,
    pub seq: Seq,
    /// Its worktree is being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
    /// A person allowed the removal to discard uncommitted files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard: bool,
    /// Why the last attempt to remove it came to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspaces {
    attached: BTreeMap<String, Workspace>,
    active: Option<String>,
    /// The root that the agent writes in, or may.
    occupied: Option<String>,
}

impl Workspace {
    #[must_use]
    pub fn of(fact: &WorkspaceAttached, seq: Seq, at: Time) -> Workspace {
        Workspace {
            workspace: fact.workspace.clone(),
            root: fact.root.clone(),
            mode: fact.mode,
            worktree: fact.worktree.clone(),
            note: fact.note.clone(),
            attached_at: at,
            seq,
            removing: false,
            discard: false,
            kept: None,
        }
    }
}

impl Workspaces {
    /// All bindings, by root.
    #[must_use]
    pub fn attached(&self) -> &BTreeMap<String, Workspace> {
        &self.attached
    }

    /// Where the agent works; none where nobody has chosen.
    #[must_use]
    pub fn active(&self) -> Option<&Workspace> {
        self.active.as_ref().and_then(|root| self.attached.get(root))
    }

    #[must_use]
    pub fn occupied(&self) -> Option<&str> {
        self.occupied.as_deref()
    }

    /// The binding of a folder: by its root, or by the folder that it is of where only one is.
    #[must_use]
    pub fn find(&self, folder: &str) -> Option<&Workspace> {
        self.attached.get(folder).or_else(|| {
            let mut of_it = self.attached.values().filter(|workspace| workspace.workspace == folder);
            of_it.next().filter(|_| of_it.next().is_none())
        })
    }

    pub(super) fn attach(&mut self, fact: &WorkspaceAttached, seq: Seq, at: Time) -> Result<(), String> {
        if self.attached.contains_key(&fact.root) {
            return Err(format!("{} is attached already", fact.root));
        }
        self.attached.insert(fact.root.clone(), Workspace::of(fact, seq, at));
        Ok(())
    }

    pub(super) fn use_root(&mut self, root: &str) -> Result<(), String> {
        self.edit(root, |_| ())?;
        self.active = Some(root.to_owned());
        Ok(())
    }

    pub(super) fn choose_none(&mut self) {
        self.active = None;
    }

    pub(super) fn detach(&mut self, root: &str) -> Result<(), String> {
        self.attached.remove(root).ok_or_else(|| format!("{root} is not attached"))?;
        self.active.take_if(|active| active == root);
        Ok(())
    }

    pub(super) fn edit(&mut self, root: &str, change: impl FnOnce(&mut Workspace)) -> Result<(), String> {
        let workspace = self.attached.get_mut(root).ok_or_else(|| format!("{root} is not attached"))?;
        change(workspace);
        Ok(())
    }

    pub(super) fn occupy(&mut self, root: &str) {
        self.occupied = Some(root.to_owned());
    }

    pub(super) fn release(&mut self, root: &str) {
        self.occupied.take_if(|occupied| occupied == root);
    }
}
