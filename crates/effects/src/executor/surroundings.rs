//! The guides and skills around an agent, for the prompt of its model and for the tool that reads a skill. Reading them
//! takes no lock on a folder.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide_kernel::explain::FolderUse;
use abide_kernel::id::AgentId;
use abide_kernel::input::Refusal;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::{FileCall, ReadFile, ReadSkill, WorkspacePath};

use super::{Executor, ToolOutcome, ToolRun, run_blocking};
use crate::policy::{Caller, Policy};
use crate::surroundings::{self, AgentLocation, Surroundings};
use crate::tools::READ_FILE;

impl Executor {
    /// The guides and skills of where an agent works, or will, but for those that the policy keeps from being read.
    pub async fn read_surroundings(&self, agent: &AgentId, place: &ToolPlacement, policy: Arc<Policy>) -> Surroundings {
        let (executor, agent, place) = (self.clone(), agent.clone(), place.clone());
        run_blocking(move || executor.read_surroundings_blocking(&agent, &place, &policy)).await
    }

    /// The same. Blocks.
    #[must_use]
    pub fn read_surroundings_blocking(&self, agent: &AgentId, place: &ToolPlacement, policy: &Policy) -> Surroundings {
        let mut around = self.with_location(agent, place, policy, surroundings::read_surroundings);
        around.mask_secrets(&self.0.secrets.mask());
        around
    }

    /// Whether there are no surroundings: no folder of the agent and no skills for all, as with many agents that only
    /// talk and delegate. It is found out in the home alone, in less time than it takes to ask another thread.
    #[must_use]
    pub fn has_no_surroundings(&self, agent: &AgentId, place: &ToolPlacement) -> bool {
        let is_absent = |path: &Path| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        place.workspace.is_none()
            && place.configured.is_none()
            && is_absent(&self.own_folder(agent))
            && is_absent(&surroundings::home_skills(&self.0.home))
    }

    pub(super) async fn read_skill(&self, run: &ToolRun, call: ReadSkill) -> Result<ToolOutcome, Refusal> {
        let (executor, agent) = (self.clone(), run.agent.clone());
        let (place, policy) = (run.place.clone(), Arc::clone(&run.policy.policy));
        let read = move || executor.with_location(&agent, &place, &policy, |at| surroundings::read_skill(&call, at));
        run_blocking(move || read().map(ToolOutcome::new)).await
    }

    fn with_location<T>(
        &self,
        agent: &AgentId,
        place: &ToolPlacement,
        policy: &Policy,
        look: impl FnOnce(&AgentLocation<'_>) -> T,
    ) -> T {
        let workspace = self.workspace_of(agent, place);
        let hidden = |folder: &Path| self.sandbox().hidden_in(folder);
        let open = || self.0.known_folders.open_folder(agent, &workspace);
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
        look(&AgentLocation { home: &self.0.home, workspace: &workspace, open: &open, hidden: &hidden, unseen, mask })
    }

    /// How the agent stands to the folder that it works in, at this moment.
    pub async fn folder_use(&self, agent: &AgentId, place: &ToolPlacement) -> FolderUse {
        let held_by = self.folder_holder(agent, &self.workspace_of(agent, place)).await;
        FolderUse { held: self.0.folders.held_folder(agent), awaited: self.0.folders.awaited_folder(agent), held_by }
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
