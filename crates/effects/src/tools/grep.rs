//! `Grep`: lines in files of the workspace, by a regular expression.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, FileCall, Grep, ToolCall};
use serde_json::{Value, json};

use super::fields::{Fields, invalid, quoted};
use super::{CallSubject, RulesOn, Tool, Touches, object};
use crate::files::{FileFilter, compile_regex};
use crate::limits::{GREP_CONTEXT_MAX, GREP_MATCHES, GREP_MATCHES_MAX};

pub(super) const TOOL: Tool = Tool {
    name: "Grep",
    description: "Search files of the workspace for lines by a regular expression; what .gitignore names is left out.",
    schema,
    instead: &[
        ("include", "say `glob`."),
        ("case_insensitive", "begin the pattern with (?i)."),
        ("max_results", "say `limit`."),
    ],
    rules: RulesOn::Path,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::File(FileCall::Grep(call)))),
};

fn schema() -> Value {
    object(
        &["pattern"],
        json!({
            "pattern": {
                "type": "string",
                "description": "As ripgrep takes it, within a line; (?i) in front takes upper and lower case alike.",
            },
            "path": { "type": "string", "description": "A folder or a file. Left out: the workspace." },
            "glob": { "type": "string", "description": "Only files like this, such as *.rs; with ! in front, all others." },
            "context": {
                "type": "integer", "minimum": 0, "maximum": GREP_CONTEXT_MAX,
                "description": "Lines to show before and after each. Left out: 0.",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": GREP_MATCHES_MAX,
                "description": format!("How many lines at most. Left out: {GREP_MATCHES}."),
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<Grep, Refusal> {
    let (pattern, path) = (fields.get_text("pattern")?, fields.optional_path("path")?);
    let glob = fields.optional_text("glob")?;
    let context = fields.number("context", 0..=GREP_CONTEXT_MAX)?.unwrap_or(0);
    let limit = fields.number("limit", 1..=GREP_MATCHES_MAX)?.unwrap_or(GREP_MATCHES);
    if let Err(why) = compile_regex(&pattern) {
        let why: String = why.chars().take(400).collect();
        let hint = format!("{why}; a \\ in front takes a sign for itself, and a line end is never part of a match");
        return Err(invalid(format!("`pattern` of Grep is {}", quoted(&pattern)), hint));
    }
    if let Some((text, hint)) = glob.as_ref().and_then(|text| Some((text, FileFilter::new(text).err()?))) {
        return Err(fields.wrong("glob", &Value::from(text.as_str()), &hint));
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(Grep { pattern, path, glob, context: number(context), limit: number(limit) })
}

pub(super) fn subject(call: &Grep) -> CallSubject {
    let path = call.path.clone().unwrap_or_default();
    CallSubject { reads_content: true, ..CallSubject::of_paths(Touches::Searches, [(path, true)]) }
}
