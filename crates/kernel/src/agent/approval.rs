//! Approvals: questions with a deadline and a default, decided once.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fact::ApprovalRequested;
use crate::id::{ApprovalId, Seq, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::ApprovalDefault;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub approval_id: ApprovalId,
    pub waiting_intent_id: WaitId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    pub default: ApprovalDefault,
    pub seq: Seq,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approvals {
    pending: BTreeMap<ApprovalId, Approval>,
    deadlines: BTreeSet<(Time, ApprovalId)>,
}

impl Approvals {
    #[must_use]
    pub fn pending(&self) -> &BTreeMap<ApprovalId, Approval> {
        &self.pending
    }

    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(time, _)| *time)
    }

    pub fn due_by(&self, now: Time) -> impl Iterator<Item = &Approval> {
        self.deadlines.iter().take_while(move |(time, _)| *time <= now).filter_map(|(_, id)| self.pending.get(id))
    }

    pub(super) fn request(&mut self, fact: &ApprovalRequested, seq: Seq) -> Result<(), String> {
        if self.pending.contains_key(&fact.approval_id) {
            return Err(format!("{} is pending already", fact.approval_id));
        }
        self.restore(Approval {
            approval_id: fact.approval_id.clone(),
            waiting_intent_id: fact.waiting_intent_id.clone(),
            tool: fact.tool.clone(),
            summary: fact.summary.clone(),
            work_item_id: fact.work_item_id.clone(),
            deadline: fact.deadline,
            default: fact.default,
            seq,
        });
        Ok(())
    }

    pub(super) fn decide(&mut self, id: &ApprovalId) -> Result<(), String> {
        let approval = self.pending.remove(id).ok_or_else(|| format!("{id} is not pending"))?;
        if let Some(deadline) = approval.deadline {
            self.deadlines.remove(&(deadline, id.clone()));
        }
        Ok(())
    }

    pub(crate) fn restore(&mut self, approval: Approval) {
        if let Some(deadline) = approval.deadline {
            self.deadlines.insert((deadline, approval.approval_id.clone()));
        }
        self.pending.insert(approval.approval_id.clone(), approval);
    }
}

impl Serialize for Approvals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pending.values())
    }
}

impl<'de> Deserialize<'de> for Approvals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Approvals, D::Error> {
        let mut approvals = Approvals::default();
        for approval in Vec::<Approval>::deserialize(deserializer)? {
            approvals.restore(approval);
        }
        Ok(approvals)
    }
}
