//! `ReadSkill`: what a skill says, and the files that come with it.

use std::path::Component;

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, ReadSkill, ToolCall, WorkspacePath};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};
use crate::limits::{READ_LINES, READ_LINES_MAX};

pub(super) const TOOL: Tool = Tool {
    name: "ReadSkill",
    description: "Read a skill: what it says, and which files come with it; with `path`, one of these files.",
    schema,
    instead: &[("name", "say `skill`."), ("file", "say `path`.")],
    rules: RulesOn::Name,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::ReadSkill(call))),
};

fn schema() -> Value {
    object(
        &["skill"],
        json!({
            "skill": { "type": "string", "description": "Its name." },
            "path": { "type": "string", "description": "A file that comes with it, as `files` names it." },
            "offset": { "type": "integer", "minimum": 0, "description": "The first line, counted from 1." },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": READ_LINES_MAX,
                "description": format!("How many lines at most. Left out: {READ_LINES}."),
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ReadSkill, Refusal> {
    let skill = fields.get_text("skill")?;
    let path = fields.optional_path("path")?;
    let inside = |path: &WorkspacePath| path.as_path().components().all(|part| matches!(part, Component::Normal(_)));
    if let Some(path) = path.as_ref().filter(|path| !inside(path)) {
        let named = Value::from(path.as_path().display().to_string());
        return Err(fields.wrong("path", &named, "name a file in the skill's folder, as `files` names it"));
    }
    let offset = fields.number("offset", 0..=u64::from(u32::MAX))?.map(|line| line.max(1));
    let limit = fields.number("limit", 1..=READ_LINES_MAX)?.unwrap_or(READ_LINES);
    Ok(ReadSkill { skill, path, offset, limit })
}
