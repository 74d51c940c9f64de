//! Work items: their records, their standing, and the offers after which nothing changed.
//!
//! `Work` indexes items by their standing, so that a decision reads the first of a kind and never walks all of them. The
//! standing is computed in one place (`Planes::update_standing`), from the item's record and its waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::budget::Limits;
use crate::budget::{Reached, Used};
use crate::fact::WorkItemCreated;
use crate::id::{MessageId, Seq, WorkItemId};
use crate::limits;
use crate::time::Time;
use crate::todo::Todo;
use crate::vocabulary::{Maker, PlanStatus, Standing, WaitKind, WorkItemFilter, WorkItemState};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkItem {
    pub work_item_id: WorkItemId,
    pub revision: u64,
    pub objective: String,
    pub state: WorkItemState,
    pub plan_status: PlanStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default)]
    pub todo: Vec<Todo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_at: Option<Time>,
    /// How long after the item was blocked that was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_after_ms: Option<u64>,
    /// Who wants to be reminded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_by: Option<Maker>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The fact that created it: its age among items.
    pub order: Seq,
    /// The last fact that changed it.
    pub seq: Seq,
    #[serde(default)]
    pub ticks: Ticks,
    /// The limits for turns about it. Only a person sets them.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub budget: Limits,
    #[serde(default)]
    pub used: Used,
    /// The operator was told that its budget is spent, and it still is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_spent: bool,
}

/// The offers of the item to the model, and their effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ticks {
    /// Keys used up in this revision.
    pub attempts: u32,
    /// Offers in a row after which nothing had changed.
    pub idle: u32,
    /// When the last of them ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Time>,
    /// The tick that is still in the queue or running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<MessageId>,
    /// The revision at which the operator was told that nothing will wake it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u64>,
}

impl Ticks {
    /// When the next offer is due: at once after a change, later after each one that came to nothing.
    #[must_use]
    pub fn due_at(&self) -> Option<Time> {
        let last = self.last_at?;
        let step = usize::try_from(self.idle.checked_sub(1)?).unwrap_or(usize::MAX);
        let wait = limits::TICK_BACKOFF_MS.get(step).or(limits::TICK_BACKOFF_MS.last())?;
        Some(last.plus_ms(*wait))
    }

    /// Something changed: the next offer is due at once, and the count of vain ones begins again.
    pub(super) fn record_progress(&mut self) {
        self.idle = 0;
        self.last_at = None;
    }

    /// An offer after which nothing had changed.
    pub(crate) fn record_idle(&mut self, at: Time) {
        self.idle += 1;
        self.last_at = Some(at);
    }

    /// Offered too often: the operator has to say something first.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        usize::try_from(self.idle).unwrap_or(usize::MAX) > limits::TICK_BACKOFF_MS.len()
    }

    /// A turn about the item ended. One that an operator asked for begins the count of vain offers anew.
    pub(super) fn record_turn_end(&mut self, progressed: bool, by_operator: bool, at: Time) {
        if by_operator {
            self.idle = 0;
        }
        if progressed {
            self.record_progress();
        } else {
            self.record_idle(at);
        }
    }
}

/// Work ticks in a row, over all items, with no turn of another cause between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickRow {
    /// Ticks after which there were no fewer open items than ever before in the row.
    pub ticks: u32,
    /// The fewest open items that there were in the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fewest: Option<u64>,
    /// Too many: work waits until the operator says something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    spent: bool,
}

impl TickRow {
    fn is_new(&self) -> bool {
        *self == TickRow::default()
    }

    /// Whether there were too many, and nobody has said so yet.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.ticks >= limits::WORK_TICKS_MAX && !self.spent
    }
}

impl WorkItem {
    pub(super) fn from_fact(fact: &WorkItemCreated, seq: Seq) -> WorkItem {
        WorkItem {
            work_item_id: fact.work_item_id.clone(),
            revision: 1,
            objective: fact.objective.clone(),
            state: WorkItemState::Open,
            plan_status: fact.plan_status,
            plan: fact.plan.clone(),
            todo: fact.todo.clone(),
            blocked_by: None,
            recheck_at: None,
            recheck_after_ms: None,
            recheck_by: None,
            report: None,
            order: seq,
            seq,
            ticks: Ticks::default(),
            budget: fact.budget,
            used: Used::default(),
            told_spent: false,
        }
    }

    /// The limit of its own that keeps turns from being about it.
    #[must_use]
    pub fn spent(&self) -> Option<Reached> {
        self.budget.reached(|measure| self.used.of(measure))
    }

    /// The limit that ends a turn about it between two rounds; the turn has been paid for by its start.
    #[must_use]
    pub fn spent_between_rounds(&self) -> Option<Reached> {
        Limits { max_turns: None, ..self.budget }.reached(|measure| self.used.of(measure))
    }

    /// Where it stands, given what holds it.
    #[must_use]
    pub fn standing(&self, held: Option<WaitKind>) -> Standing {
        if self.state == WorkItemState::Completed {
            return Standing::Completed;
        }
        if self.plan_status == PlanStatus::NeedsInput {
            return Standing::NeedsInput;
        }
        if let Some(kind) = held {
            return match kind {
                WaitKind::Operator => Standing::WaitingForOperator,
                WaitKind::Task => Standing::WaitingForTask,
                WaitKind::External => Standing::WaitingForExternal,
                WaitKind::Timer | WaitKind::Sleep => Standing::WaitingForTimer,
            };
        }
        match (&self.blocked_by, self.recheck_at) {
            (Some(_), Some(_)) => Standing::BlockedUntilRecheck,
            (Some(_), None) => Standing::Stuck,
            (None, _) if self.spent().is_some() => Standing::BudgetSpent,
            (None, _) if self.ticks.is_spent() => Standing::ProgressSpent,
            (None, _) => Standing::Runnable,
        }
    }
}

/// How a runnable item is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offer {
    Ready,
    Later(Time),
    UnderWay,
}

#[derive(Debug, Clone, PartialEq)]
struct IndexEntry {
    standing: Standing,
    order: Seq,
    offer: Option<Offer>,
    recheck_at: Option<Time>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    items: BTreeMap<WorkItemId, WorkItem>,
    recent: VecDeque<WorkItem>,
    pub(super) current: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "TickRow::is_new")]
    row: TickRow,
    #[serde(skip)]
    places: BTreeMap<WorkItemId, IndexEntry>,
    #[serde(skip)]
    standings: BTreeSet<(Standing, Seq, WorkItemId)>,
    #[serde(skip)]
    counts: BTreeMap<Standing, usize>,
    #[serde(skip)]
    ready: BTreeSet<(Seq, WorkItemId)>,
    #[serde(skip)]
    later: BTreeSet<(Time, Seq, WorkItemId)>,
    #[serde(skip)]
    rechecks: BTreeSet<(Time, WorkItemId)>,
    #[serde(skip)]
    ticking: BTreeMap<MessageId, WorkItemId>,
    /// Items whose budget is spent, whatever else holds them.
    #[serde(skip)]
    spent: BTreeSet<WorkItemId>,
    /// Items that wait for the operator, who has not been told of it.
    #[serde(skip)]
    untold: BTreeSet<WorkItemId>,
}

impl Work {
    /// Open items.
    #[must_use]
    pub fn items(&self) -> &BTreeMap<WorkItemId, WorkItem> {
        &self.items
    }

    #[must_use]
    pub fn recent(&self) -> &VecDeque<WorkItem> {
        &self.recent
    }

    #[must_use]
    pub fn get(&self, id: &WorkItemId) -> Option<&WorkItem> {
        self.items.get(id).or_else(|| self.recent.iter().rev().find(|item| item.work_item_id == *id))
    }

    #[must_use]
    pub fn open(&self, id: &WorkItemId) -> Option<&WorkItem> {
        self.items.get(id)
    }

    /// The item in focus.
    #[must_use]
    pub fn current(&self) -> Option<&WorkItem> {
        self.current.as_ref().and_then(|id| self.items.get(id))
    }

    #[must_use]
    pub fn current_id(&self) -> Option<&WorkItemId> {
        self.current.as_ref()
    }

    #[must_use]
    pub fn standing(&self, id: &WorkItemId) -> Option<Standing> {
        self.places.get(id).map(|place| place.standing)
    }

    /// The same as people and models see it: while all work waits for the operator, no item can be worked on.
    #[must_use]
    pub fn readiness(&self, id: &WorkItemId) -> Option<Standing> {
        let held = |standing| standing == Standing::Runnable && self.is_spent();
        self.standing(id).map(|standing| if held(standing) { Standing::ProgressSpent } else { standing })
    }

    /// Whether all work waits for the operator, because it was offered too often in a row.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.row.spent
    }

    #[must_use]
    pub fn tick_row(&self) -> TickRow {
        self.row
    }

    /// Items that can be worked on now or later, without a person's word.
    #[must_use]
    pub fn runnable(&self) -> usize {
        if self.is_spent() { 0 } else { self.count(Standing::Runnable) }
    }

    /// Items that could be worked on, if all work did not wait for the operator.
    #[must_use]
    pub fn held_back(&self) -> usize {
        if self.is_spent() { self.count(Standing::Runnable) } else { 0 }
    }

    /// Whether an item is among those that were asked for.
    #[must_use]
    pub fn matches_filter(&self, item: &WorkItem, filter: WorkItemFilter) -> bool {
        let standing = self.readiness(&item.work_item_id);
        let is_current = self.current.as_ref() == Some(&item.work_item_id);
        let open = item.state == WorkItemState::Open;
        match filter {
            WorkItemFilter::All => true,
            WorkItemFilter::Open => open,
            WorkItemFilter::Completed => !open,
            WorkItemFilter::Current => is_current,
            WorkItemFilter::Queued => standing == Some(Standing::Runnable) && !is_current,
            WorkItemFilter::Blocked => item.blocked_by.is_some(),
            WorkItemFilter::Waiting => matches!(
                standing,
                Some(
                    Standing::NeedsInput
                        | Standing::WaitingForOperator
                        | Standing::ProgressSpent
                        | Standing::BudgetSpent
                        | Standing::WaitingForTask
                        | Standing::WaitingForExternal
                        | Standing::WaitingForTimer
                )
            ),
        }
    }

    #[must_use]
    pub fn count(&self, standing: Standing) -> usize {
        self.counts.get(&standing).copied().unwrap_or(0)
    }

    pub fn of_standing(&self, standing: Standing) -> impl Iterator<Item = &WorkItem> {
        self.standings
            .range((standing, Seq::MIN, WorkItemId::new(""))..)
            .take_while(move |(s, ..)| *s == standing)
            .filter_map(|(.., id)| self.items.get(id))
    }

    /// Whether this runnable item may be offered now.
    #[must_use]
    pub fn offer_due(&self, id: &WorkItemId, now: Time) -> bool {
        match self.places.get(id).and_then(|place| place.offer) {
            Some(Offer::Ready) => true,
            Some(Offer::Later(time)) => time <= now,
            Some(Offer::UnderWay) | None => false,
        }
    }

    /// The oldest item other than the one in focus that may be offered now.
    #[must_use]
    pub fn due_queued(&self, now: Time) -> Option<&WorkItem> {
        let other = |id: &WorkItemId| Some(id) != self.current.as_ref();
        let ready = self.ready.iter().find(|(_, id)| other(id)).map(|(order, id)| (*order, id));
        // Among many retries that are due at once, the oldest of those that are due longest: a bounded look.
        let due = self.later.iter().take_while(|(time, ..)| *time <= now).take(limits::DUE_LOOK_MAX);
        let later = due.filter(|(.., id)| other(id)).map(|(_, order, id)| (*order, id)).min();
        ready.into_iter().chain(later).min().and_then(|(_, id)| self.items.get(id))
    }

    /// A runnable item whose next offer lies ahead.
    #[must_use]
    pub fn first_later(&self) -> Option<(Time, &WorkItem)> {
        self.later.first().and_then(|(time, _, id)| Some((*time, self.items.get(id)?)))
    }

    #[must_use]
    pub fn next_offer(&self) -> Option<Time> {
        self.later.first().map(|(time, ..)| *time)
    }

    #[must_use]
    pub fn any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    #[must_use]
    pub fn next_recheck(&self) -> Option<Time> {
        self.rechecks.first().map(|(time, _)| *time)
    }

    /// The item that is looked at again first, and when.
    #[must_use]
    pub fn first_recheck(&self) -> Option<(Time, &WorkItem)> {
        self.rechecks.first().and_then(|(time, id)| Some((*time, self.items.get(id)?)))
    }

    pub fn rechecks_due_by(&self, now: Time) -> impl Iterator<Item = &WorkItem> {
        self.rechecks.iter().take_while(move |(time, _)| *time <= now).filter_map(|(_, id)| self.items.get(id))
    }

    /// Items that wait for a person who has not been told of it: stuck, at this revision, or with their budget spent.
    pub fn unreported_items(&self) -> impl Iterator<Item = &WorkItem> {
        self.untold.iter().filter_map(|id| self.items.get(id))
    }

    /// Items whose tick is in the queue or running, by that tick.
    #[must_use]
    pub fn items_by_tick(&self) -> &BTreeMap<MessageId, WorkItemId> {
        &self.ticking
    }

    pub(super) fn insert(&mut self, item: WorkItem) {
        self.items.insert(item.work_item_id.clone(), item);
    }

    pub(super) fn edit(&mut self, id: &WorkItemId, change: impl FnOnce(&mut WorkItem)) -> Result<(), String> {
        let item = self.items.get_mut(id).ok_or_else(|| format!("{id} is not an open work item"))?;
        change(item);
        Ok(())
    }

    pub(super) fn complete(&mut self, id: &WorkItemId) -> Result<(), String> {
        let item = self.items.remove(id).ok_or_else(|| format!("{id} is not an open work item"))?;
        if self.current.as_ref() == Some(id) {
            self.current = None;
        }
        self.remove_from_indexes(id);
        self.spent.remove(id);
        self.untold.remove(id);
        if let Some(tick) = &item.ticks.undelivered {
            self.ticking.remove(tick);
        }
        self.remember_completed(item);
        Ok(())
    }

    fn remember_completed(&mut self, item: WorkItem) {
        if self.recent.len() == limits::RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(item);
    }

    fn remove_from_indexes(&mut self, id: &WorkItemId) {
        let Some(place) = self.places.remove(id) else { return };
        self.standings.remove(&(place.standing, place.order, id.clone()));
        if let Some(count) = self.counts.get_mut(&place.standing) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&place.standing);
            }
        }
        match place.offer {
            Some(Offer::Ready) => {
                self.ready.remove(&(place.order, id.clone()));
            }
            Some(Offer::Later(time)) => {
                self.later.remove(&(time, place.order, id.clone()));
            }
            Some(Offer::UnderWay) | None => {}
        }
        if let Some(time) = place.recheck_at {
            self.rechecks.remove(&(time, id.clone()));
        }
    }

    /// Files an item under where it stands now.
    pub(super) fn set_standing(&mut self, id: &WorkItemId, standing: Standing) {
        self.remove_from_indexes(id);
        let Some(item) = self.items.get(id) else { return };
        let (order, recheck_at) = (item.order, item.recheck_at);
        if item.ticks.is_spent() {
            self.spent.insert(id.clone());
        } else {
            self.spent.remove(id);
        }
        let stuck = standing == Standing::Stuck && item.ticks.told != Some(item.revision);
        if stuck || (standing == Standing::BudgetSpent && !item.told_spent) {
            self.untold.insert(id.clone());
        } else {
            self.untold.remove(id);
        }
        let offer = (standing == Standing::Runnable).then(|| match (&item.ticks.undelivered, item.ticks.due_at()) {
            (Some(_), _) => Offer::UnderWay,
            (None, Some(time)) => Offer::Later(time),
            (None, None) => Offer::Ready,
        });
        match offer {
            Some(Offer::Ready) => {
                self.ready.insert((order, id.clone()));
            }
            Some(Offer::Later(time)) => {
                self.later.insert((time, order, id.clone()));
            }
            Some(Offer::UnderWay) | None => {}
        }
        if let Some(time) = recheck_at {
            self.rechecks.insert((time, id.clone()));
        }
        self.standings.insert((standing, order, id.clone()));
        *self.counts.entry(standing).or_default() += 1;
        self.places.insert(id.clone(), IndexEntry { standing, order, offer, recheck_at });
    }

    pub(super) fn record_tick(&mut self, message: &MessageId, id: &WorkItemId) {
        self.ticking.insert(message.clone(), id.clone());
    }

    pub(super) fn end_tick(&mut self, message: &MessageId) -> Option<WorkItemId> {
        self.ticking.remove(message)
    }

    /// A turn begins: that of a tick goes on with the row, any other ends it. What is spent stays spent until somebody
    /// speaks.
    pub(super) fn record_turn_start(&mut self, by_tick: bool) {
        if by_tick {
            self.row.fewest = self.row.fewest.or(Some(self.items.len() as u64));
        } else {
            self.row = TickRow { spent: self.row.spent, ..TickRow::default() };
        }
    }

    /// The turn of a tick is over. Fewer open items than ever before in the row are progress.
    pub(super) fn count_vain_tick(&mut self) {
        let open = self.items.len() as u64;
        if self.row.fewest.is_some_and(|fewest| fewest <= open) {
            self.row.ticks = self.row.ticks.saturating_add(1);
        } else {
            self.row = TickRow { ticks: 0, fewest: Some(open), ..self.row };
        }
    }

    pub(super) fn mark_row_spent(&mut self) {
        self.row.spent = true;
    }

    /// A person has said something, or made an item: work goes on.
    pub(super) fn begin_tick_row(&mut self) {
        self.row = TickRow::default();
    }

    /// All items wait for their next offer no longer: somebody said that it is time to look again.
    pub(super) fn delayed_offers(&self) -> Vec<WorkItemId> {
        self.later.iter().map(|(.., id)| id.clone()).collect()
    }

    pub(super) fn spent_items(&self) -> Vec<WorkItemId> {
        self.spent.iter().cloned().collect()
    }

    pub(crate) fn focus(&mut self, current: Option<WorkItemId>) {
        self.current = current;
    }

    pub(crate) fn count_tick(&mut self, id: &WorkItemId, count: impl FnOnce(&mut Ticks)) {
        if let Some(item) = self.items.get_mut(id) {
            count(&mut item.ticks);
        }
    }

    /// A record from elsewhere. A completed item is never reopened by a later record of it.
    pub(crate) fn restore(&mut self, item: WorkItem) {
        let known = self.recent.iter().any(|done| done.work_item_id == item.work_item_id);
        match item.state {
            WorkItemState::Open if known => {}
            WorkItemState::Open => self.insert(item),
            WorkItemState::Completed => {
                self.items.remove(&item.work_item_id);
                self.remove_from_indexes(&item.work_item_id);
                if !known {
                    self.remember_completed(item);
                }
            }
        }
    }
}
