//! The waiting plane: what is awaited, by whom, and what would end it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fact::{Resource, WaitingIntentCreated};
use crate::id::{MessageId, Seq, WaitId, WorkItemId};
use crate::time::Time;
use crate::vocabulary::{DeliveryMode, Scope, WaitKind, WaitSource};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    pub waiting_intent_id: WaitId,
    pub kind: WaitKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    pub source: WaitSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
    pub delivery_mode: DeliveryMode,
    #[serde(default)]
    pub trigger_count: u32,
    pub reason: String,
    /// The operator's message that is still unanswered because of this wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
    pub created_at: Time,
    pub seq: Seq,
}

impl Wait {
    #[must_use]
    pub fn scope(&self) -> Scope {
        if self.work_item_id.is_some() { Scope::WorkItem } else { Scope::Agent }
    }

    /// Whether other input stands back while this is open. A sleep holds ticks only; a question that the runtime asks
    /// must not silence the agent.
    #[must_use]
    pub fn parks(&self) -> bool {
        self.kind != WaitKind::Sleep && self.source != WaitSource::Runtime
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits {
    open: BTreeMap<WaitId, Wait>,
    /// Oldest first within a scope and kind.
    by_kind: BTreeSet<(Scope, WaitKind, Seq, WaitId)>,
    by_item: BTreeMap<WorkItemId, BTreeSet<(WaitKind, WaitId)>>,
    by_resource: BTreeMap<Resource, BTreeSet<WaitId>>,
    unnamed: BTreeSet<(WaitKind, WaitId)>,
    counts: BTreeMap<(Scope, WaitKind), usize>,
    /// Open waits of the agent, and of each item, behind which other input is parked.
    agent_parking: usize,
    item_parking: BTreeMap<WorkItemId, usize>,
}

impl Waits {
    #[must_use]
    pub fn open(&self) -> &BTreeMap<WaitId, Wait> {
        &self.open
    }

    #[must_use]
    pub fn get(&self, id: &WaitId) -> Option<&Wait> {
        self.open.get(id)
    }

    #[must_use]
    pub fn count(&self, scope: Scope, kind: WaitKind) -> usize {
        self.counts.get(&(scope, kind)).copied().unwrap_or(0)
    }

    /// The oldest open wait of that scope and kind.
    #[must_use]
    pub fn first(&self, scope: Scope, kind: WaitKind) -> Option<&Wait> {
        self.of_kind(scope, kind).next()
    }

    pub fn of_kind(&self, scope: Scope, kind: WaitKind) -> impl DoubleEndedIterator<Item = &Wait> {
        let (low, high) = ((scope, kind, Seq::MIN, WaitId::new("")), (scope, kind, Seq::MAX, WaitId::new("")));
        self.by_kind.range(low..high).filter_map(|(.., id)| self.open.get(id))
    }

    pub fn of_item(&self, item: &WorkItemId) -> impl Iterator<Item = &Wait> {
        self.by_item.get(item).into_iter().flatten().filter_map(|(_, id)| self.open.get(id))
    }

    /// The kind of wait that holds an item: the first in the order of the decision table.
    #[must_use]
    pub fn kind_holding(&self, item: &WorkItemId) -> Option<WaitKind> {
        self.by_item.get(item).and_then(BTreeSet::first).map(|(kind, _)| *kind)
    }

    pub fn waits_naming(&self, resource: &Resource) -> impl Iterator<Item = &Wait> {
        self.by_resource.get(resource).into_iter().flatten().filter_map(|id| self.open.get(id))
    }

    /// Waits of a kind that name no resource: anything of that kind satisfies them.
    pub fn unnamed_waits(&self, kind: WaitKind) -> impl Iterator<Item = &Wait> {
        self.unnamed
            .range((kind, WaitId::new(""))..)
            .take_while(move |(k, _)| *k == kind)
            .filter_map(|(_, id)| self.open.get(id))
    }

    /// How many waits hold back input that is about `item`: the agent's own, and that item's.
    #[must_use]
    pub fn parking_count(&self, item: Option<&WorkItemId>) -> usize {
        self.agent_parking + item.and_then(|item| self.item_parking.get(item)).copied().unwrap_or(0)
    }

    pub fn parking_waits(&self, item: Option<&WorkItemId>) -> impl Iterator<Item = &Wait> {
        let agents = WaitKind::ALL.iter().flat_map(|kind| self.of_kind(Scope::Agent, *kind));
        let items = item.into_iter().flat_map(|item| self.of_item(item));
        agents.chain(items).filter(|wait| wait.parks())
    }

    pub(super) fn create(&mut self, fact: &WaitingIntentCreated, seq: Seq, at: Time) -> Result<(), String> {
        if self.open.contains_key(&fact.waiting_intent_id) {
            return Err(format!("{} is open already", fact.waiting_intent_id));
        }
        self.restore(Wait {
            waiting_intent_id: fact.waiting_intent_id.clone(),
            kind: fact.kind,
            work_item_id: fact.work_item_id.clone(),
            source: fact.source,
            resource: fact.resource.clone(),
            delivery_mode: fact.delivery_mode,
            trigger_count: 0,
            reason: fact.reason.clone(),
            answers: fact.answers.clone(),
            created_at: at,
            seq,
        });
        Ok(())
    }

    pub(super) fn end(&mut self, id: &WaitId) -> Result<Wait, String> {
        let wait = self.open.remove(id).ok_or_else(|| format!("{id} is not an open wait"))?;
        let id = id.clone();
        self.by_kind.remove(&(wait.scope(), wait.kind, wait.seq, id.clone()));
        if let Some(count) = self.counts.get_mut(&(wait.scope(), wait.kind)) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&(wait.scope(), wait.kind));
            }
        }
        if let Some(item) = &wait.work_item_id
            && let Some(waits) = self.by_item.get_mut(item)
        {
            waits.remove(&(wait.kind, id.clone()));
            if waits.is_empty() {
                self.by_item.remove(item);
            }
        }
        match &wait.resource {
            Some(resource) => {
                if let Some(waits) = self.by_resource.get_mut(resource) {
                    waits.remove(&id);
                    if waits.is_empty() {
                        self.by_resource.remove(resource);
                    }
                }
            }
            None => {
                self.unnamed.remove(&(wait.kind, id));
            }
        }
        if wait.parks() {
            match &wait.work_item_id {
                None => self.agent_parking -= 1,
                Some(item) => {
                    if let Some(count) = self.item_parking.get_mut(item) {
                        *count -= 1;
                        if *count == 0 {
                            self.item_parking.remove(item);
                        }
                    }
                }
            }
        }
        Ok(wait)
    }

    pub(crate) fn forget(&mut self, id: &WaitId) {
        let _absent = self.end(id);
    }

    pub(crate) fn restore(&mut self, wait: Wait) {
        let id = wait.waiting_intent_id.clone();
        if self.open.contains_key(&id) {
            // A later record of a wait replaces the earlier one.
            let _replaced = self.end(&id);
        }
        self.by_kind.insert((wait.scope(), wait.kind, wait.seq, id.clone()));
        *self.counts.entry((wait.scope(), wait.kind)).or_default() += 1;
        if let Some(item) = &wait.work_item_id {
            self.by_item.entry(item.clone()).or_default().insert((wait.kind, id.clone()));
        }
        match &wait.resource {
            Some(resource) => {
                self.by_resource.entry(resource.clone()).or_default().insert(id.clone());
            }
            None => {
                self.unnamed.insert((wait.kind, id.clone()));
            }
        }
        if wait.parks() {
            match &wait.work_item_id {
                None => self.agent_parking += 1,
                Some(item) => *self.item_parking.entry(item.clone()).or_default() += 1,
            }
        }
        self.open.insert(id, wait);
    }
}

impl Serialize for Waits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.open.values())
    }
}

impl<'de> Deserialize<'de> for Waits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Waits, D::Error> {
        let mut waits = Waits::default();
        for wait in Vec::<Wait>::deserialize(deserializer)? {
            waits.restore(wait);
        }
        Ok(waits)
    }
}
