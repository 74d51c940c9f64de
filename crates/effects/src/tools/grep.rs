//! `Grep`: lines in files of the workspace, by a regular expression.

use std::path::Path;

use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::{Fields, invalid, quoted};
use super::{Tool, object};
use crate::files::{Pattern, WorkspacePath, check_regex};
use crate::limits::{GREP_CONTEXT_MAX, GREP_MATCHES, GREP_MATCHES_MAX};

#[derive(Debug, Clone, PartialEq)]
pub struct Grep {
    pub(crate) pattern: String,
    pub(crate) path: Option<WorkspacePath>,
    pub(crate) glob: Option<Filter>,
    pub(crate) context: usize,
    pub(crate) limit: usize,
}

/// Which files are searched. A pattern without a slash is one of names, in any folder; `!` means all others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    pub(crate) pattern: Pattern,
    others: bool,
}

impl Filter {
    fn new(text: &str) -> Result<Filter, String> {
        let (text, others) = text.strip_prefix('!').map_or((text, false), |rest| (rest, true));
        let anywhere = format!("**/{text}");
        let pattern = Pattern::new(if text.is_empty() || text.contains('/') { text } else { &anywhere })?;
        Ok(Filter { pattern, others })
    }

    /// A path is that from the workspace on, and the one from the folder that is searched: either may be meant.
    pub(crate) fn takes(&self, path: &Path, from_start: &Path) -> bool {
        (self.pattern.matches(path) || self.pattern.matches(from_start)) != self.others
    }
}

pub(super) const TOOL: Tool = Tool {
    name: "Grep",
    description: "Search files of the workspace for lines by a regular expression; what .gitignore names is left out.",
    schema,
    instead: &[
        ("include", "say `glob`."),
        ("case_insensitive", "begin the pattern with (?i)."),
        ("max_results", "say `limit`."),
    ],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::ReadOnly)),
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

pub(crate) fn call(input: &Value) -> Result<Grep, Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<Grep, Refusal> {
    let (pattern, path) = (fields.text("pattern")?, fields.optional_path("path")?);
    let glob = fields.optional_text("glob")?;
    let context = fields.number("context", 0..=GREP_CONTEXT_MAX)?.unwrap_or(0);
    let limit = fields.number("limit", 1..=GREP_MATCHES_MAX)?.unwrap_or(GREP_MATCHES);
    if let Err(why) = check_regex(&pattern) {
        let why: String = why.chars().take(400).collect();
        let hint = format!("{why}; a \\ in front takes a sign for itself, and a line end is never part of a match");
        return Err(invalid(format!("`pattern` of Grep is {}", quoted(&pattern)), hint));
    }
    let glob = glob.map(|text| Filter::new(&text).map_err(|hint| fields.wrong("glob", &Value::from(text), &hint)));
    let glob = glob.transpose()?;
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(Grep { pattern, path, glob, context: number(context), limit: number(limit) })
}
