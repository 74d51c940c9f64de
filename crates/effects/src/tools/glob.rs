//! `Glob`: files of the workspace, by a pattern of their paths.

use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};
use crate::files::{Pattern, WorkspacePath};

#[derive(Debug, Clone, PartialEq)]
pub struct Glob {
    pub(crate) pattern: Pattern,
    pub(crate) path: Option<WorkspacePath>,
}

impl Glob {
    /// The folder that is walked: the path, and the folders that the pattern begins with.
    pub(crate) fn start(&self) -> WorkspacePath {
        self.path.clone().unwrap_or_default().join(&self.pattern.split().0)
    }
}

pub(super) const TOOL: Tool = Tool {
    name: "Glob",
    description: "List files of the workspace by a pattern such as src/**/*.rs; what .gitignore names is left out.",
    schema,
    instead: &[("glob", "say `pattern`."), ("limit", "search a smaller folder with `path`.")],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::ReadOnly)),
};

fn schema() -> Value {
    object(
        &["pattern"],
        json!({
            "pattern": {
                "type": "string",
                "description": "`*` stays within a name, `**` goes through folders. Hidden files are meant only when it names them.",
            },
            "path": { "type": "string", "description": "The folder to look in. Left out: the workspace." },
        }),
    )
}

pub(crate) fn call(input: &Value) -> Result<Glob, Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<Glob, Refusal> {
    let (text, path) = (fields.text("pattern")?, fields.optional_path("path")?);
    let pattern = Pattern::new(&text).map_err(|hint| fields.wrong("pattern", &Value::from(text), &hint))?;
    Ok(Glob { pattern, path })
}
