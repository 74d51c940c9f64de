//! The operator's policy: which calls of which agents run, wait for a person's yes, or never run. An ordered list of
//! rules; the first that matches decides, and a call that none matches runs.
//!
//! It judges what a model wrote, not what comes of it. A shell spells one thing in a thousand ways, so a rule about
//! commands is a net for those who mean well; what confines is the sandbox. Where reading is in doubt, rules that hold
//! back match and rules that let pass do not.

mod command;
mod file;
mod spellings;
mod subject;
mod unseen;
mod wild;

use std::path::Path;
use std::sync::Arc;

use abide_kernel::id::AgentId;
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::rule_folder::RuleFolder;
use abide_kernel::tool::{ApprovalNeeded, FileCall, RecordCall, ToolCall};
use abide_kernel::vocabulary::ApprovalDefault;
use serde_json::Value;

use crate::files::{Pattern, Root};
use crate::tools::{CallSubject, READ_FILE};
use subject::{About, Subject};
pub use unseen::Unseen;
use wild::Wild;

#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// Whose call is judged, and where it would run.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub agent: &'a AgentId,
    /// The agents that made it: a rule that holds one of them back holds it back.
    pub makers: &'a [AgentId],
    /// The folder that its paths begin at. With one, a path is also judged by where it leads.
    pub workspace: Option<&'a Path>,
    /// That folder, where it is open already: then its path is not resolved again.
    pub root: Option<&'a Root>,
    /// The folders that rules about paths begin at, besides the workspace.
    pub rule_folders: &'a [RuleFolder],
}

/// The policy as one call runs under it.
#[derive(Debug, Clone, Default)]
pub struct CallPolicy {
    pub policy: Arc<Policy>,
    /// The digest of the call that a person said yes to, where one had to be asked before this call could run.
    pub approved: Option<String>,
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

    /// Whether any rule is about paths: then judging a call looks at the files of the workspace, and may block.
    #[must_use]
    pub fn looks_at_files(&self) -> bool {
        self.rules.iter().any(|rule| rule.path.is_some())
    }

    /// The call as the caller may make it. `tool` and `input` are its text.
    #[must_use]
    pub fn judge(&self, caller: &Caller<'_>, tool: &str, input: &Value, call: ToolCall) -> ToolCall {
        if self.rules.is_empty() {
            return call;
        }
        let (about, is_outside) = match &call {
            ToolCall::Executor(call) => (CallSubject::of(call), true),
            ToolCall::Host(_) => (CallSubject::default(), true),
            ToolCall::Record(_) => (CallSubject::default(), false),
            ToolCall::Refused(_) | ToolCall::NeedsApproval(_) => return call,
        };
        match self.verdict(caller, tool, input, about, is_outside) {
            Verdict::Run => call,
            Verdict::Refuse(refusal) => ToolCall::Refused(refusal),
            // It asks a person already.
            Verdict::Ask(_) if matches!(call, ToolCall::Record(RecordCall::RequestApproval { .. })) => call,
            Verdict::Ask(question) => {
                let Question { digest, summary, deadline_ms, default } = question;
                ToolCall::NeedsApproval(Box::new(ApprovalNeeded { digest, summary, deadline_ms, default, call }))
            }
        }
    }

    fn verdict(&self, caller: &Caller<'_>, tool: &str, input: &Value, about: CallSubject, is_outside: bool) -> Verdict {
        let subject = Subject::of(about, caller, self.looks_at_files());
        let Some(rule) = self.deciding(caller, tool, is_outside, &subject) else { return Verdict::Run };
        match rule.action {
            Action::Allow => Verdict::Run,
            Action::Deny => Verdict::Refuse(rule.refusal(tool)),
            Action::Ask => Verdict::Ask(Question {
                digest: digest(caller, tool, input, &subject),
                summary: subject.summary(tool, input, rule.why.as_deref()),
                deadline_ms: rule.deadline_ms,
                default: rule.default,
            }),
        }
    }
}

/// The verdict of the rules on a call.
enum Verdict {
    Run,
    Refuse(Refusal),
    Ask(Question),
}

/// The question to a person.
struct Question {
    digest: String,
    summary: String,
    deadline_ms: Option<u64>,
    default: ApprovalDefault,
}

impl CallPolicy {
    /// Judges a call that touches files once more, when it runs: the calls of a reply are judged before the first of them
    /// runs, and a link may have been turned since. The files that it must not reach all the same.
    pub fn check(
        &self,
        caller: &Caller<'_>,
        tool: &str,
        input: &Value,
        call: &FileCall,
    ) -> Result<Option<Unseen>, Refusal> {
        let approved = match self.policy.verdict(caller, tool, input, CallSubject::of_file(call), true) {
            Verdict::Run => false,
            Verdict::Refuse(refusal) => return Err(refusal),
            Verdict::Ask(question) if Some(&question.digest) == self.approved.as_ref() => true,
            Verdict::Ask(_) => {
                let message = format!("a person has to say yes to this {tool}, because of where its path leads by now");
                return Err(Refusal::new(ErrorCode::NeedsApproval, message));
            }
        };
        Ok(self.policy.unseen(caller, tool, call, approved))
    }
}

impl Policy {
    /// The first rule that matches.
    fn deciding(&self, caller: &Caller<'_>, tool: &str, is_outside: bool, subject: &Subject) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches(caller, tool, is_outside, subject))
    }
}

impl Rule {
    fn matches(&self, caller: &Caller<'_>, tool: &str, is_outside: bool, subject: &Subject) -> bool {
        let lets_pass = self.lets_pass();
        let Some(about) = self.about(tool, is_outside, subject) else { return false };
        self.binds(caller)
            && self.command.as_ref().is_none_or(|wanted| subject.command_matches(wanted, lets_pass))
            && self
                .path
                .as_ref()
                .is_none_or(|wanted| subject.path_matches(wanted, lets_pass, self.tool.is_some(), about))
    }

    fn lets_pass(&self) -> bool {
        self.action == Action::Allow
    }

    /// Without a tool, a rule is about calls that reach outside, not about the agent's own records. A rule that
    /// keeps files from being read keeps their lines from being found, copied and guessed.
    fn about(&self, tool: &str, is_outside: bool, subject: &Subject) -> Option<About> {
        let Some(wanted) = &self.tool else { return is_outside.then_some(About::Call) };
        if wanted.matches(tool) {
            return Some(About::Call);
        }
        let keeps_from_reading = self.path.is_some() && !self.lets_pass() && wanted.matches(READ_FILE);
        (subject.reads_content() && keeps_from_reading).then_some(About::Reading)
    }

    /// An agent may do what all of its makers may do, and nothing that one of them may not.
    fn binds(&self, caller: &Caller<'_>) -> bool {
        let Some(wanted) = &self.agent else { return true };
        let mut agents = std::iter::once(caller.agent).chain(caller.makers);
        if self.lets_pass() {
            agents.all(|agent| wanted.matches(agent.as_str()))
        } else {
            agents.any(|agent| wanted.matches(agent.as_str()))
        }
    }

    fn refusal(&self, tool: &str) -> Refusal {
        let why = self.why.as_deref().unwrap_or("its operator wants it so");
        let message = format!("the policy does not let this {tool} run: {why}");
        Refusal::new(ErrorCode::RefusedByPolicy, message).fill("line", self.line)
    }
}

/// Names one call: the tool, all of its input, the folder it runs in, and the files that its paths lead to. The same
/// words elsewhere, or with a link that leads elsewhere, are another call. Keys are in order, whatever order they came in.
fn digest(caller: &Caller<'_>, tool: &str, input: &Value, subject: &Subject) -> String {
    let mut hasher = blake3::Hasher::new();
    let workspace = caller.workspace.map(|folder| folder.as_os_str().as_encoded_bytes().to_vec());
    let parts = [tool.as_bytes().to_vec(), input.to_string().into_bytes()].into_iter();
    for part in parts.chain(workspace).chain(subject.led_to()) {
        hasher.update(&part);
        hasher.update(&[0]);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
