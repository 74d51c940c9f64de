//! The operator's policy: which calls of which agents run, wait for a person's yes, or never run. An ordered list of
//! rules; the first that matches decides, and a call that none matches runs.
//!
//! It judges what a model wrote, not what comes of it. A shell spells one thing in a thousand ways, so a rule about
//! commands is a net for those who mean well; what confines is the sandbox. Where reading is in doubt, rules that hold
//! back match and rules that let pass do not.

mod file;
mod subject;
mod wild;

use abide_kernel::id::AgentId;
use abide_kernel::input::{Ask, Does, Refusal};
use abide_kernel::vocabulary::ApprovalDefault;
use serde_json::Value;

use crate::files::Pattern;
use subject::Subject;
use wild::Wild;

#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// What is wrong with a policy's text, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}; {hint}")]
pub struct PolicyFault {
    pub line: usize,
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Clone)]
struct Rule {
    line: usize,
    action: Action,
    tool: Option<Wild>,
    command: Option<Wild>,
    path: Option<Pattern>,
    agent: Option<Wild>,
    deadline_ms: Option<u64>,
    default: ApprovalDefault,
    why: Option<String>,
}

impl Policy {
    pub fn parse(text: &str) -> Result<Policy, PolicyFault> {
        file::read(text).map(|rules| Policy { rules })
    }

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What a call that `does` this may do.
    #[must_use]
    pub fn judge(&self, agent: &AgentId, tool: &str, input: &Value, does: Does) -> Does {
        let world = match &does {
            Does::World(_) => true,
            Does::Act(_) => false,
            Does::Refused(_) | Does::Ask(_) => return does,
        };
        if self.rules.is_empty() {
            return does;
        }
        let subject = Subject::of(tool, input);
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(agent, tool, world, &subject)) else {
            return does;
        };
        match rule.action {
            Action::Allow => does,
            Action::Deny => Does::Refused(rule.refusal(tool)),
            // Whoever asks a person already asks a person.
            Action::Ask if tool == "RequestApproval" => does,
            Action::Ask => Does::Ask(Box::new(Ask {
                digest: digest(tool, input),
                summary: subject.summary(tool, input, rule.why.as_deref()),
                deadline_ms: rule.deadline_ms,
                default: rule.default,
                then: does,
            })),
        }
    }
}

impl Rule {
    fn matches(&self, agent: &AgentId, tool: &str, world: bool, subject: &Subject) -> bool {
        // Without a name, a rule is about what reaches into the world, not about the agent's own records.
        let of_tool = self.tool.as_ref().map_or(world, |wanted| wanted.matches(tool));
        let of_agent = self.agent.as_ref().is_none_or(|wanted| wanted.matches(agent.as_str()));
        let lets_pass = self.action == Action::Allow;
        of_tool
            && of_agent
            && self.command.as_ref().is_none_or(|wanted| subject.command_matches(wanted, lets_pass))
            && self.path.as_ref().is_none_or(|wanted| subject.path_matches(wanted, lets_pass, self.tool.is_some()))
    }

    fn refusal(&self, tool: &str) -> Refusal {
        let why = self.why.as_deref().unwrap_or("its operator wants it so");
        let message = format!("the policy does not let this {tool} run: {why}");
        let hint = format!("do it another way, or tell the operator what you need (rule in line {})", self.line);
        Refusal::new("refused_by_policy", message, hint)
    }
}

/// Names one call: the tool and all of its input. Keys are in order, whatever order they came in.
fn digest(tool: &str, input: &Value) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tool.as_bytes());
    hasher.update(&[0]);
    hasher.update(input.to_string().as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}
