//! The tools that one turn may use. Models are told of them, and calls are parsed with them, by one value, so that the two
//! can't differ.

use std::sync::{Arc, LazyLock};

use abide_kernel::effect::ModelCall;
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::ToolCall;
use abide_kernel::vocabulary::Role;
use serde_json::Value;

use super::fields::quoted;
use super::{ALL, Tool};
use crate::nearest::nearest;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolSet {
    tools: Arc<[Tool]>,
    tokens: u64,
}

static EVERY_TOOL: LazyLock<ToolSet> = LazyLock::new(|| ToolSet::new(ALL.iter().copied()));

impl ToolSet {
    /// The tools that the answer to a call may use. Both roles have every tool.
    #[must_use]
    pub fn of_turn(call: &ModelCall) -> ToolSet {
        match call.role {
            Role::Orchestrator | Role::Execution => ToolSet::every(),
        }
    }

    /// Every tool there is.
    #[must_use]
    pub fn every() -> ToolSet {
        EVERY_TOOL.clone()
    }

    /// No tool: the model is to answer with text.
    #[must_use]
    pub fn none() -> ToolSet {
        ToolSet::new(std::iter::empty())
    }

    /// The tools with these names.
    #[must_use]
    pub fn of_names(names: &[&str]) -> ToolSet {
        ToolSet::new(ALL.iter().filter(|tool| names.contains(&tool.name)).copied())
    }

    fn new(tools: impl Iterator<Item = Tool>) -> ToolSet {
        let tools: Arc<[Tool]> = tools.collect();
        let tokens = tools.iter().map(Tool::tokens).sum();
        ToolSet { tools, tokens }
    }

    #[must_use]
    pub fn as_slice(&self) -> &[Tool] {
        &self.tools
    }

    /// In the order in which models are told of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Tool> {
        self.tools.iter()
    }

    /// Estimated tokens of their descriptions in a request.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Parses a model's call: the only way from the text of a call to its type.
    #[must_use]
    pub fn parse(&self, name: &str, input: &Value) -> ToolCall {
        let tool = self.tools.iter().find(|tool| tool.name == name);
        match tool.ok_or_else(|| self.missing(name)).and_then(|tool| tool.parse(input)) {
            Ok(call) => call,
            Err(refusal) => ToolCall::Refused(refusal),
        }
    }

    /// Refuses a call that names no tool of the set.
    fn missing(&self, name: &str) -> Refusal {
        if ALL.iter().any(|tool| tool.name == name) {
            return Refusal::new(ErrorCode::ToolNotOffered, format!("{name} can't be called here"))
                .with_hint(self.instead());
        }
        let names: Vec<&str> = self.iter().map(|tool| tool.name).collect();
        let list = match names.is_empty() {
            true => self.instead(),
            false => format!("the tools are: {}", names.join(", ")),
        };
        let hint = match nearest(name, names) {
            Some(near) => format!("did you mean {near}? {list}"),
            None => list,
        };
        Refusal::new(ErrorCode::UnknownTool, format!("there is no tool {}", quoted(name))).with_hint(hint)
    }

    /// The hint for a call that can't be made.
    pub(crate) fn instead(&self) -> String {
        let names: Vec<&str> = self.iter().map(|tool| tool.name).collect();
        if names.is_empty() {
            return "answer with text".to_owned();
        }
        format!("the tools here are: {}", names.join(", "))
    }
}
