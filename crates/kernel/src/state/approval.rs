//! Approvals: questions with a deadline and a default, decided once; and the calls that may be made because of one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fact::{ApprovalDecided, ApprovalRequested};
use crate::id::{ApprovalId, Seq, WaitId, WorkItemId};
use crate::limits;
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
    /// How long after the question was asked that was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    pub default: ApprovalDefault,
    /// The digest of the one call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    pub seq: Seq,
}

/// A call that may be made once, because a person or a deadline said so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallPermit {
    pub approval_id: ApprovalId,
    pub call: String,
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    pub until: Time,
    pub seq: Seq,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approvals {
    pending: BTreeMap<ApprovalId, Approval>,
    deadlines: BTreeSet<(Time, ApprovalId)>,
    /// Pending ones that are about a call, by its digest.
    asked: BTreeMap<String, ApprovalId>,
    /// Not used yet, oldest first.
    grants: VecDeque<CallPermit>,
}

impl Approvals {
    #[must_use]
    pub fn pending(&self) -> &BTreeMap<ApprovalId, Approval> {
        &self.pending
    }

    /// The question that is open about this call.
    #[must_use]
    pub fn pending_call(&self, digest: &str) -> Option<&Approval> {
        self.asked.get(digest).and_then(|id| self.pending.get(id))
    }

    /// Calls that may still be made, as far as anybody said; each until its own time.
    #[must_use]
    pub fn permits(&self) -> &VecDeque<CallPermit> {
        &self.grants
    }

    #[must_use]
    pub fn permit_for(&self, digest: &str, now: Time) -> Option<&CallPermit> {
        self.grants.iter().find(|grant| grant.call == digest && now < grant.until)
    }

    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(time, _)| *time)
    }

    pub fn due_by(&self, now: Time) -> impl Iterator<Item = &Approval> {
        self.deadlines.iter().take_while(move |(time, _)| *time <= now).filter_map(|(_, id)| self.pending.get(id))
    }

    pub(super) fn request(&mut self, fact: &ApprovalRequested, seq: Seq, at: Time) -> Result<(), String> {
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
            deadline_ms: fact.deadline.map(|deadline| deadline.since_ms(at)),
            default: fact.default,
            call: fact.call.clone(),
            seq,
        });
        Ok(())
    }

    pub(super) fn decide(&mut self, fact: &ApprovalDecided, at: Time) -> Result<(), String> {
        let id = &fact.approval_id;
        let approval = self.pending.remove(id).ok_or_else(|| format!("{id} is not pending"))?;
        if let Some(deadline) = approval.deadline {
            self.deadlines.remove(&(deadline, id.clone()));
        }
        let Approval { approval_id, summary, work_item_id, call, seq, .. } = approval;
        let Some(call) = call else {
            return if fact.lets_call { Err(format!("{id} is about no call")) } else { Ok(()) };
        };
        self.asked.remove(&call);
        if fact.lets_call {
            self.grants.retain(|grant| at < grant.until);
            if self.grants.len() == limits::CALL_PERMITS_MAX {
                self.grants.pop_front();
            }
            let until = at.plus_ms(limits::CALL_PERMIT_MS);
            self.grants.push_back(CallPermit { approval_id, call, summary, work_item_id, until, seq });
        }
        Ok(())
    }

    pub(super) fn move_deadline(&mut self, id: &ApprovalId, to: Time) -> Result<(), String> {
        let approval = self.pending.get_mut(id).ok_or_else(|| format!("{id} is not pending"))?;
        if let Some(from) = approval.deadline.replace(to) {
            self.deadlines.remove(&(from, id.clone()));
        }
        self.deadlines.insert((to, id.clone()));
        Ok(())
    }

    pub(super) fn shorten_permits(&mut self, now: Time) {
        let latest = now.plus_ms(limits::CALL_PERMIT_MS);
        self.grants.iter_mut().for_each(|grant| grant.until = grant.until.min(latest));
    }

    pub(super) fn use_permit(&mut self, id: &ApprovalId) -> Result<(), String> {
        let index = self.grants.iter().position(|grant| grant.approval_id == *id);
        let index = index.ok_or_else(|| format!("{id} lets no call be made"))?;
        self.grants.remove(index);
        Ok(())
    }

    pub(super) fn end_permits_of(&mut self, item: &WorkItemId) {
        self.grants.retain(|grant| grant.work_item_id.as_ref() != Some(item));
    }

    pub(super) fn clear_permits(&mut self) {
        self.grants.clear();
    }

    pub(crate) fn restore(&mut self, approval: Approval) {
        if let Some(deadline) = approval.deadline {
            self.deadlines.insert((deadline, approval.approval_id.clone()));
        }
        if let Some(call) = &approval.call {
            self.asked.insert(call.clone(), approval.approval_id.clone());
        }
        self.pending.insert(approval.approval_id.clone(), approval);
    }
}

impl Serialize for Approvals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.pending.values().collect::<Vec<_>>(), &self.grants).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Approvals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Approvals, D::Error> {
        let (pending, grants) = <(Vec<Approval>, VecDeque<CallPermit>)>::deserialize(deserializer)?;
        let mut approvals = Approvals { grants, ..Approvals::default() };
        for approval in pending {
            approvals.restore(approval);
        }
        Ok(approvals)
    }
}
