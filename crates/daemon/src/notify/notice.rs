//! The notices, and the facts that they are made of.

use std::fmt;

use abide_engine::fold::decode;
use abide_kernel::AgentState;
use abide_kernel::decision::Decision;
use abide_kernel::fact::{ApprovalRequested, BriefRecorded, Fact};
use abide_kernel::id::{ApprovalId, WorkItemId};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{ApprovalDefault, BriefKind, DecisionKind, Reason};
use abide_ledger::{Recorded, StreamId};
use serde::Serialize;

/// Kinds of things that an operator may want to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A person is asked for a yes.
    Approval,
    /// Something failed, or an agent was quarantined.
    Failure,
    /// An agent has something to say.
    Notify,
    /// Work that goes on only when a person does something.
    Blocked,
    /// The answer to a message.
    Result,
    /// That an answer will take its time.
    Ack,
}

impl NoticeKind {
    pub const ALL: [NoticeKind; 6] = [
        NoticeKind::Approval,
        NoticeKind::Failure,
        NoticeKind::Notify,
        NoticeKind::Blocked,
        NoticeKind::Result,
        NoticeKind::Ack,
    ];
    /// Where nobody says: what may need a person.
    pub const USUAL: [NoticeKind; 4] =
        [NoticeKind::Approval, NoticeKind::Failure, NoticeKind::Notify, NoticeKind::Blocked];

    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Approval => "approval",
            NoticeKind::Failure => "failure",
            NoticeKind::Notify => "notify",
            NoticeKind::Blocked => "blocked",
            NoticeKind::Result => "result",
            NoticeKind::Ack => "ack",
        }
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing to tell. The id is the same every time it is told.
#[derive(Debug, Clone, Serialize)]
pub struct Notice {
    pub id: String,
    pub kind: NoticeKind,
    pub agent_id: String,
    pub at: Time,
    pub seq: u64,
    /// Where a fact does not say it: what the agent is like when it is told.
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalNotice>,
    /// The command that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The approval that a notice asks for. Fields without a value are null.
#[derive(Debug, Clone, Serialize)]
pub struct ApprovalNotice {
    pub approval_id: ApprovalId,
    pub tool: Option<String>,
    pub summary: String,
    pub deadline: Option<Time>,
    pub default: ApprovalDefault,
    pub work_item_id: Option<WorkItemId>,
}

pub struct PendingNotice {
    pub notice: Notice,
    /// It is a state, which agents come back to: told once while it lasts.
    pub lasts: bool,
}

/// The facts that may be told; others are not even decoded.
const KINDS: &[&str] = &["approval.requested", "brief.recorded", "agent.quarantined", "scheduler.decision"];

/// The notice of a fact, if the operator wants it.
#[allow(clippy::wildcard_enum_match_arm, reason = "most facts are no news for a person")]
pub fn notice_of(stream: &StreamId, recorded: &Recorded, on: &[NoticeKind]) -> Option<PendingNotice> {
    if !KINDS.contains(&&*recorded.kind) {
        return None;
    }
    let agent = stream.agent_name()?;
    let about = NoticeSource { agent, recorded };
    let known = match decode::<AgentState>(stream, recorded).ok()? {
        Fact::ApprovalRequested(asked) => about.approval(&asked),
        Fact::BriefRecorded(brief) => about.brief(brief),
        Fact::AgentQuarantined(fact) => {
            let text = format!("{agent} is left alone, because its records can't be trusted: {}", fact.reason);
            let id = plain(&format!("quarantine-{agent}-{}", recorded.seq));
            PendingNotice { notice: about.notice(id, NoticeKind::Failure, Some(text)), lasts: false }
        }
        Fact::SchedulerDecided(fact) => about.decision(&fact.decision)?,
        _ => return None,
    };
    on.contains(&known.notice.kind).then_some(known)
}

struct NoticeSource<'a> {
    agent: &'a str,
    recorded: &'a Recorded,
}

impl NoticeSource<'_> {
    fn notice(&self, id: String, kind: NoticeKind, text: Option<String>) -> Notice {
        let (agent_id, at, seq) = (self.agent.to_owned(), self.recorded.at, self.recorded.seq);
        Notice { id, kind, agent_id, at, seq, text, approval: None, answer: None }
    }

    fn approval(&self, asked: &ApprovalRequested) -> PendingNotice {
        let (agent, id) = (self.agent, &asked.approval_id);
        let answer = format!("abide approval grant {id} --agent {agent}");
        let default = match asked.default {
            ApprovalDefault::Deny => "denied",
            ApprovalDefault::Grant => "granted",
        };
        let until =
            asked.deadline.map(|deadline| format!(" Until {deadline}, then it is {default}.")).unwrap_or_default();
        let text =
            format!("{agent} asks for your approval: {}\nAnswer with: {answer} (or deny).{until}", asked.summary);
        let approval = ApprovalNotice {
            approval_id: id.clone(),
            tool: asked.tool.clone(),
            summary: asked.summary.clone(),
            deadline: asked.deadline,
            default: asked.default,
            work_item_id: asked.work_item_id.clone(),
        };
        let notice = self.notice(id.to_string(), NoticeKind::Approval, Some(text));
        PendingNotice { notice: Notice { approval: Some(approval), answer: Some(answer), ..notice }, lasts: false }
    }

    fn brief(&self, brief: BriefRecorded) -> PendingNotice {
        let kind = match (brief.kind, &brief.work_item_id, &brief.message_id) {
            (BriefKind::Failure, Some(_), _) => NoticeKind::Blocked,
            (BriefKind::Failure, None, _) => NoticeKind::Failure,
            // A brief without a message was written by the agent itself.
            (BriefKind::Result, _, None) => NoticeKind::Notify,
            (BriefKind::Result, _, Some(_)) => NoticeKind::Result,
            (BriefKind::Ack, _, _) => NoticeKind::Ack,
        };
        PendingNotice { notice: self.notice(brief.brief_id.to_string(), kind, Some(brief.text)), lasts: false }
    }

    /// A rest that only a person ends. What has a notice of its own is not told again.
    fn decision(&self, decision: &Decision) -> Option<PendingNotice> {
        let told_already = matches!(
            decision.reason,
            Reason::ApprovalPending
                | Reason::WorkItemBlocked
                | Reason::BudgetSpent
                | Reason::HomeBudgetSpent
                | Reason::ModelKey
                | Reason::WorkTicksSpent
        );
        if decision.kind != DecisionKind::WaitForOperator || told_already {
            return None;
        }
        let because = decision.evidence.first().map(String::as_str).unwrap_or_default();
        let id = plain(&format!("blocked-{}-{}-{because}", self.agent, decision.reason));
        Some(PendingNotice { notice: self.notice(id, NoticeKind::Blocked, None), lasts: true })
    }
}

/// Fit for a header, and without dots, which divide what is signed.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect()
}
