//! What lies around an agent, for the prompt of its model and for the tool that reads more of it. No folder is taken for
//! it: looking around is no work.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide_kernel::explain::FolderUse;
use abide_kernel::id::AgentId;
use abide_kernel::input::Refusal;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::{FileCall, ReadFile, ReadSkill, WorkspacePath};

use super::{Hands, Outcome, ToolRun, blocking};
use crate::policy::{Caller, Policy};
use crate::surroundings::{self, Surroundings, Whereabouts};
use crate::tools::READ_FILE;

impl Hands {
    /// The guides and skills of where an agent works, or will, but for those that the policy keeps from being read.
    pub async fn surroundings(&self, agent: &AgentId, place: &ToolPlacement, policy: Arc<Policy>) -> Surroundings {
        let (hands, agent, place) = (self.clone(), agent.clone(), place.clone());
        blocking(move || hands.look_around(&agent, &place, &policy)).await
    }

    /// The same. Blocks.
    #[must_use]
    pub fn look_around(&self, agent: &AgentId, place: &ToolPlacement, policy: &Policy) -> Surroundings {
        let mut around = self.whereabouts(agent, place, policy, surroundings::look);
        around.mask(&self.0.secrets.mask());
        around
    }

    /// Whether there is nothing to look at, neither a folder for the agent nor skills for all: so it is with many that
    /// only talk and hand out work. Found out in the home alone, and in less time than it takes to ask another thread.
    #[must_use]
    pub fn nothing_around(&self, agent: &AgentId, place: &ToolPlacement) -> bool {
        let is_absent = |path: &Path| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        place.workspace.is_none()
            && place.configured.is_none()
            && is_absent(&self.own_folder(agent))
            && is_absent(&surroundings::home_skills(&self.0.home))
    }

    pub(super) async fn read_skill(&self, run: &ToolRun, call: ReadSkill) -> Result<Outcome, Refusal> {
        let (hands, agent) = (self.clone(), run.agent.clone());
        let (place, policy) = (run.place.clone(), Arc::clone(&run.policy.policy));
        let read = move || hands.whereabouts(&agent, &place, &policy, |at| surroundings::read_skill(&call, at));
        blocking(move || read().map(Outcome::of)).await
    }

    fn whereabouts<T>(
        &self,
        agent: &AgentId,
        place: &ToolPlacement,
        policy: &Policy,
        look: impl FnOnce(&Whereabouts<'_>) -> T,
    ) -> T {
        let workspace = self.workspace_of(agent, place);
        let hidden = |folder: &Path| self.sandbox().hidden_in(folder);
        let open = || self.0.known_folders.open(agent, &workspace);
        let rule_folders = place.rule_folders();
        let caller = Caller {
            agent,
            makers: &place.makers,
            workspace: Some(&workspace),
            root: None,
            rule_folders: &rule_folders,
        };
        // A guide or a skill may be a link to any file of the workspace.
        let anything = FileCall::Read(ReadFile { path: WorkspacePath::default(), offset: 1, limit: 1 });
        let unseen = policy.unseen(&caller, READ_FILE, &anything, false);
        let mask = self.0.secrets.mask();
        look(&Whereabouts { home: &self.0.home, workspace: &workspace, open: &open, hidden: &hidden, unseen, mask })
    }

    /// How the agent stands to the folder that it works in, at this moment.
    pub async fn folder_use(&self, agent: &AgentId, place: &ToolPlacement) -> FolderUse {
        let held_by = self.folder_holder(agent, &self.workspace_of(agent, place)).await;
        FolderUse { held: self.0.folders.held(agent), awaited: self.0.folders.awaited(agent), held_by }
    }

    /// The folder that an agent works in, or will: as `desk` has it, and not held.
    #[must_use]
    pub fn workspace_of(&self, agent: &AgentId, place: &ToolPlacement) -> PathBuf {
        match (&place.workspace, &place.configured) {
            (Some(bound), _) => PathBuf::from(&bound.root),
            (None, Some(configured)) => PathBuf::from(configured),
            (None, None) => self.own_folder(agent),
        }
    }
}
