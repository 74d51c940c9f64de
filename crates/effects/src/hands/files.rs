//! The file tools, and fetching from the web.

use abide_kernel::effect::Place;
use abide_kernel::id::AgentId;
use abide_kernel::input::Refusal;
use serde_json::Value;

use super::{Hands, Outcome, blocking};
use crate::files::{Call, Root};
use crate::limits::FOLDER_WAIT;
use crate::policy::{CallPolicy, Caller};
use crate::web::WebFetch;

impl Hands {
    pub(super) async fn file_tool(
        &self,
        agent: &AgentId,
        tool: &str,
        input: &Value,
        place: &Place,
        policy: &CallPolicy,
    ) -> Result<Outcome, Refusal> {
        if tool == "WebFetch" {
            let (wanted, network) = (WebFetch::read(input)?, place.network);
            return blocking(move || wanted.run(network).map(Outcome::of)).await;
        }
        let Some(call) = Call::read(tool, input) else {
            // `tools::read` knows no other; a record of an older version might.
            return Err(Refusal::new("unknown_tool", format!("there is no tool called {tool}"), "use another"));
        };
        let (call, hands, agent, place) = (call?, self.clone(), agent.clone(), place.clone());
        let (tool, input, policy) = (tool.to_owned(), input.clone(), policy.clone());
        // Readers never wait, and hold nothing.
        let desk = if call.writes() { Some(self.desk(&agent, &place, FOLDER_WAIT).await?) } else { None };
        blocking(move || {
            let (folder, opened) = match &desk {
                Some(desk) => (desk.root.clone(), desk.open()?),
                None => hands.readable_folder(&agent, &place)?,
            };
            let root = Root::of(opened, &folder)?;
            let hidden = hands.sandbox().hidden_in(&folder);
            let rule_folders = place.rule_folders();
            let caller = Caller {
                agent: &agent,
                makers: &place.makers,
                workspace: Some(&folder),
                root: Some(&root),
                rule_folders: &rule_folders,
            };
            let unseen = policy.check(&caller, &tool, &input)?;
            let read_only = hands.sandbox().read_only_in(&folder);
            let root =
                root.without(hidden).read_only_at(read_only).without_unseen(unseen).masked_by(hands.0.secrets.mask());
            let result = call.run(&root)?;
            Ok(Outcome::after(result, desk.map(|desk| desk.record()).unwrap_or_default()))
        })
        .await
    }
}
