//! The changes that facts about work items make, and the rules for progress of an item.

use super::Applied;
use crate::fact::{WorkItemCompleted, WorkItemCreated, WorkItemPicked, WorkItemUpdated};
use crate::id::WorkItemId;
use crate::state::AgentState;
use crate::state::work::WorkItem;
use crate::vocabulary::{Maker, WorkItemState};

impl AgentState {
    /// Something about an item changed that is not in its record: its waits, its tasks, the focus.
    pub(super) fn record_item_change(&mut self, item: Option<WorkItemId>) -> Applied {
        let Some(id) = item.filter(|id| self.planes.work.open(id).is_some()) else { return Ok(()) };
        self.planes.work.edit(&id, |item| item.ticks.record_progress())?;
        self.record_item_progress(&id);
        self.planes.update_standing(&id);
        Ok(())
    }

    pub(super) fn record_item_progress(&mut self, id: &WorkItemId) {
        let bound = self.turns.current.as_mut().and_then(|turn| turn.item.as_mut());
        if let Some(item) = bound.filter(|item| item.work_item_id == *id) {
            item.progressed = true;
        }
    }

    pub(super) fn work_item_created(&mut self, fact: &WorkItemCreated) -> Applied {
        if self.planes.work.get(&fact.work_item_id).is_some() {
            return Err(format!("{} exists already", fact.work_item_id));
        }
        match fact.made_by {
            Some(Maker::Model) => {}
            Some(Maker::Person) | None => self.planes.work.begin_tick_row(),
        }
        self.planes.work.insert(WorkItem::from_fact(fact, self.seq));
        self.planes.update_standing(&fact.work_item_id);
        Ok(())
    }

    pub(super) fn work_item_picked(&mut self, fact: &WorkItemPicked) -> Applied {
        if self.planes.work.open(&fact.work_item_id).is_none() {
            return Err(format!("{} is not an open work item", fact.work_item_id));
        }
        self.planes.work.current = Some(fact.work_item_id.clone());
        self.record_item_change(Some(fact.work_item_id.clone()))
    }

    pub(super) fn work_item_updated(&mut self, fact: &WorkItemUpdated) -> Applied {
        self.revise(&fact.work_item_id, fact.revision, |item| {
            if let Some(objective) = &fact.objective {
                item.objective.clone_from(objective);
            }
            if let Some(plan) = &fact.plan {
                item.plan = Some(plan.clone());
            }
            if let Some(status) = fact.plan_status {
                item.plan_status = status;
            }
            if let Some(todo) = &fact.todo {
                item.todo.clone_from(todo);
            }
            if let Some(budget) = fact.budget {
                item.budget = budget;
                item.told_spent &= item.spent().is_some();
            }
        })
    }

    pub(super) fn work_item_completed(&mut self, fact: &WorkItemCompleted) -> Applied {
        if self.planes.waits.of_item(&fact.work_item_id).next().is_some() {
            return Err(format!("{} still has open waits", fact.work_item_id));
        }
        self.revise(&fact.work_item_id, fact.revision, |item| {
            item.state = WorkItemState::Completed;
            item.blocked_by = None;
            item.recheck_at = None;
            item.report = Some(fact.report.clone());
        })?;
        self.planes.approvals.end_permits_of(&fact.work_item_id);
        self.planes.work.complete(&fact.work_item_id)
    }

    /// A change of the record itself is a new revision, and its keys begin anew.
    pub(super) fn revise(&mut self, id: &WorkItemId, revision: u64, change: impl FnOnce(&mut WorkItem)) -> Applied {
        let seq = self.seq;
        let mut known = 0;
        self.planes.work.edit(id, |item| known = item.revision)?;
        if revision != known + 1 {
            return Err(format!("{id} is at revision {known}, {revision} does not follow"));
        }
        self.planes.work.edit(id, |item| {
            change(item);
            item.revision = revision;
            item.seq = seq;
            item.ticks.attempts = 0;
            item.ticks.record_progress();
        })?;
        self.record_item_progress(id);
        self.planes.update_standing(id);
        Ok(())
    }
}
