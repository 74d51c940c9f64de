//! The planes: every kind of record that an agent has, each in a collection of its own.

use std::collections::{BTreeMap, VecDeque};

use super::approval::Approvals;
use super::hint::{Hints, Trigger};
use super::queue::Queue;
use super::task::Tasks;
use super::timer::Timers;
use super::waiting::Waits;
use super::work::Work;
use super::workspace::Workspaces;
use crate::fact::{BriefRecorded, Resource};
use crate::id::{TriggerId, WorkItemId};
use crate::limits;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Planes {
    pub queue: Queue,
    pub tasks: Tasks,
    pub work: Work,
    pub waits: Waits,
    pub timers: Timers,
    pub triggers: BTreeMap<TriggerId, Trigger>,
    pub approvals: Approvals,
    pub hints: Hints,
    pub workspaces: Workspaces,
    /// The last briefs, oldest first.
    pub briefs: VecDeque<BriefRecorded>,
}

impl Planes {
    /// Rebuilds the indexes that are not stored: the standing of every work item, and which timers a wait names. Called
    /// once after a state was read or its records were put in place one by one.
    pub(crate) fn rebuild_indexes(&mut self) {
        let named: Vec<Resource> = self.waits.open().values().filter_map(|wait| wait.resource.clone()).collect();
        for resource in &named {
            self.index_awaited_timer(Some(resource));
        }
        let ids: Vec<WorkItemId> = self.work.items().keys().cloned().collect();
        for id in ids {
            if let Some(tick) = self.work.open(&id).and_then(|item| item.ticks.undelivered.clone()) {
                self.work.record_tick(&tick, &id);
            }
            self.update_standing(&id);
        }
    }

    /// Tells the timers whether an open wait names this one. Called whenever such a wait was made or ended.
    pub(crate) fn index_awaited_timer(&mut self, resource: Option<&Resource>) {
        if let Some(named @ Resource::Timer(timer)) = resource {
            let awaited = self.waits.waits_naming(named).next().is_some();
            self.timers.set_awaited(timer, awaited);
        }
    }

    /// Computes where an item stands. Called whenever its record or its waits changed.
    pub(crate) fn update_standing(&mut self, id: &WorkItemId) {
        let Some(item) = self.work.open(id) else { return };
        let standing = item.standing(self.waits.kind_holding(id));
        self.work.set_standing(id, standing);
    }

    pub(crate) fn add_brief(&mut self, brief: BriefRecorded) {
        if self.briefs.len() == limits::RECENT_MAX {
            self.briefs.pop_front();
        }
        self.briefs.push_back(brief);
    }
}
