//! How a command fails: the exit code, a word for programs, and what to do next.

use std::fmt;

use abide_api::ClientError;
use abide_api::problem::exit_code;

/// An outcome with an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The command ran, and what it found is bad. It has said so already.
    #[error("{0}")]
    Found(String),
    #[error("{what}:\n  {}", differences.join("\n  "))]
    Differs { what: String, differences: Vec<String> },
    /// The words are fine one by one, and make no sense together.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    NoDaemon(String),
    #[error("{0}")]
    NotFound(String),
    #[error("{}", .0.said)]
    Unanswered(Box<Unanswered>),
    /// Some of several failed, and each of them was reported. The exit code is that of the first one.
    #[error("{what}")]
    Partly { what: String, code: u8 },
}

/// The agent that an error is about, where a command is for several: it comes before the error, as its context.
#[derive(Debug)]
pub struct AgentFailure {
    pub action: &'static str,
    pub agent_id: String,
}

impl fmt::Display for AgentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't {} {}", self.action, self.agent_id)
    }
}

/// A message that was taken, and not answered: what a program needs to go on with it.
#[derive(Debug)]
pub struct Unanswered {
    pub said: String,
    pub message_id: String,
    pub why: Why,
    /// The provider's kind of error, where one is to blame.
    pub class: Option<String>,
    /// The next step, where the sentence does not say it.
    pub hint: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Not yet: there may be one later.
    Timeout,
    Failed,
    Stopped,
    WaitsForPerson,
    BudgetSpent,
}

impl Why {
    fn word(self) -> &'static str {
        match self {
            Why::Timeout => "timeout",
            Why::Failed => "failed",
            Why::Stopped => "stopped",
            Why::WaitsForPerson => "waits_for_person",
            Why::BudgetSpent => "budget_spent",
        }
    }

    fn code(self) -> u8 {
        match self {
            Why::Timeout | Why::Failed => 1,
            Why::WaitsForPerson => 4,
            Why::BudgetSpent => 5,
            Why::Stopped => 6,
        }
    }
}

pub const START_ONE: &str = "start one with `abide daemon start`, or with `abide up` in the foreground";

impl Failed {
    pub fn code(error: &anyhow::Error) -> u8 {
        if let Some(error) = error.downcast_ref::<ClientError>() {
            return match error {
                ClientError::Unreachable { .. } => 7,
                ClientError::BadUrl(_) => 2,
                ClientError::Foreign { .. } => 1,
                ClientError::Refused(problem) => exit_code(problem.status),
            };
        }
        match error.downcast_ref::<Failed>() {
            Some(Failed::Found(_) | Failed::Differs { .. }) | None => 1,
            Some(Failed::Usage(_)) => 2,
            Some(Failed::Unanswered(unanswered)) => unanswered.why.code(),
            Some(Failed::Partly { code, .. }) => *code,
            Some(Failed::Refused(_)) => 6,
            Some(Failed::NoDaemon(_)) => 7,
            Some(Failed::NotFound(_)) => 8,
        }
    }

    /// Whether it came from talking to the daemon, and not from this machine.
    pub fn is_of_daemon(error: &anyhow::Error) -> bool {
        error.is::<ClientError>()
    }

    /// Whether the daemon refused what was asked for as such: for a name that it does not know, or a price that it lacks.
    pub fn is_about_fields(error: &anyhow::Error) -> bool {
        matches!(error.downcast_ref(), Some(ClientError::Refused(problem)) if problem.status == 422)
    }

    /// The daemon's own word for a refusal, or ours for what became of a message.
    pub fn word(error: &anyhow::Error) -> Option<&str> {
        if let Some(Failed::Unanswered(unanswered)) = error.downcast_ref() {
            return Some(unanswered.why.word());
        }
        match error.downcast_ref::<ClientError>() {
            Some(ClientError::Refused(problem)) => Some(&problem.code),
            Some(ClientError::Unreachable { .. } | ClientError::BadUrl(_) | ClientError::Foreign { .. }) | None => None,
        }
    }

    /// What to do next, where that is not in the error already.
    pub fn hint(error: &anyhow::Error) -> Option<String> {
        if let Some(Failed::Unanswered(unanswered)) = error.downcast_ref() {
            return unanswered.hint.clone();
        }
        match error.downcast_ref::<ClientError>()? {
            ClientError::Unreachable { .. } => Some(START_ONE.to_owned()),
            ClientError::Refused(problem) if problem.status == 401 && problem.hint.is_none() => {
                Some("--token TOKEN or $ABIDE_TOKEN says who you are; the home's own is in its file token".to_owned())
            }
            ClientError::Refused(problem) => problem.hint.clone(),
            ClientError::Foreign { .. } => Some("is --url the address of an abide daemon?".to_owned()),
            ClientError::BadUrl(_) => None,
        }
    }
}
