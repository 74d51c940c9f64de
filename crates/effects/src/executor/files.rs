//! The file tools, and fetching from the web.

use abide_kernel::refusal::Refusal;
use abide_kernel::tool::{FileCall, WebFetch};

use super::{Executor, ToolOutcome, ToolRun, run_blocking};
use crate::files::{self, Root};
use crate::limits::FOLDER_WAIT;
use crate::policy::Caller;
use crate::web;

impl Executor {
    pub(super) async fn web_fetch(&self, run: &ToolRun, call: WebFetch) -> Result<ToolOutcome, Refusal> {
        let network = run.place.network;
        run_blocking(move || web::fetch(&call, network).map(ToolOutcome::new)).await
    }

    pub(super) async fn file_tool(&self, run: &ToolRun, call: FileCall) -> Result<ToolOutcome, Refusal> {
        let (executor, agent, place) = (self.clone(), run.agent.clone(), run.place.clone());
        let (tool, input, policy) = (run.tool.clone(), run.input.clone(), run.policy.clone());
        // Readers never wait, and hold nothing.
        let lease = if call.writes() { Some(self.lease_folder(&agent, &place, FOLDER_WAIT).await?) } else { None };
        run_blocking(move || {
            let (folder, opened) = match &lease {
                Some(lease) => (lease.root.clone(), lease.open()?),
                None => executor.open_for_reading(&agent, &place)?,
            };
            let root = Root::from_open(opened, &folder)?;
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
            let result = files::run_call(&call, &root)?;
            Ok(ToolOutcome::with_inputs(result, lease.map(|lease| lease.record_inputs()).unwrap_or_default()))
        })
        .await
    }
}
