//! `ListWorkItems`: what there is to do, and what was completed lately.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{RecordCall, ToolCall};
use abide_kernel::vocabulary::WorkItemFilter;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "ListWorkItems",
    description: "List your work items: the open ones, oldest first, and the last that were completed. GetWorkItem has the plan and the report of one.",
    schema,
    instead: &[("state", "say `filter`.")],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &[],
        json!({
            "filter": {
                "type": "string", "enum": WorkItemFilter::ALL,
                "description": "queued: runnable and not current; waiting: held until something happens or the operator says something. Left out: all.",
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let filter = fields.parse_word("filter", WorkItemFilter::ALL, WorkItemFilter::as_str)?;
    Ok(ToolCall::Record(RecordCall::ListWorkItems { filter: filter.unwrap_or(WorkItemFilter::All) }))
}
