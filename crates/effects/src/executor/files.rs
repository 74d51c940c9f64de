//! The file tools, and fetching from the web.

use abide_kernel::refusal::Refusal;
use abide_kernel::tool::{FileCall, WebFetch};

use super::{Executor, Outcome, ToolRun, blocking};
use crate::files::{self, Root};
use crate::limits::FOLDER_WAIT;
use crate::policy::Caller;
use crate::web;

impl Executor {
    pub(super) async fn web_fetch(&self, run: &ToolRun, call: WebFetch) -> Result<Outcome, Refusal> {
        let network = run.place.network;
        blocking(move || web::fetch(&call, network).map(Outcome::of)).await
    }

    pub(super) async fn file_tool(&self, run: &ToolRun, call: FileCall) -> Result<Outcome, Refusal> {
        let (executor, agent, place) = (self.clone(), run.agent.clone(), run.place.clone());
        let (tool, input, policy) = (run.tool.clone(), run.input.clone(), run.policy.clone());
        // Readers never wait, and hold nothing.
        let desk = if call.writes() { Some(self.desk(&agent, &place, FOLDER_WAIT).await?) } else { None };
        blocking(move || {
            let (folder, opened) = match &desk {
                Some(desk) => (desk.root.clone(), desk.open()?),
                None => executor.readable_folder(&agent, &place)?,
            };
            let root = Root::of(opened, &folder)?;
            let hidden = executor.sandbox().hidden_in(&folder);
            let rule_folders = place.rule_folders();
            let caller = Caller {
                agent: &agent,
                makers: &place.makers,
                workspace: Some(&folder),
                root: Some(&root),
                rule_folders: &rule_folders,
            };
            let unseen = policy.check(&caller, &tool, &input, &call)?;
            let read_only = executor.sandbox().read_only_in(&folder);
            let root = root
                .without(hidden)
                .read_only_at(read_only)
                .without_unseen(unseen)
                .masked_by(executor.0.secrets.mask());
            let result = files::run(&call, &root)?;
            Ok(Outcome::after(result, desk.map(|desk| desk.record()).unwrap_or_default()))
        })
        .await
    }
}
