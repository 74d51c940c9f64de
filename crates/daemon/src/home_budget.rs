//! The home's spending limit for one day (`budget.daily_usd`), over all agents.
//!
//! The sum is that of the recorded costs of the day (UTC). It is added up from the ledger when the daemon starts and kept in
//! step with every fact that becomes durable, so it needs no record of its own. At the limit no model is called; calls that
//! are under way then are the overshoot. No agent asks another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use abide_effects::model::ProviderFailure;
use abide_effects::model::cards::format_usd;
use abide_engine::fold::decode;
use abide_kernel::AgentState;
use abide_kernel::Fact;
use abide_kernel::id::{AgentId, Seq};
use abide_kernel::state::spending::Spending;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{HoldCause, ProviderError};
use abide_ledger::{Bounds, Cursor, Ledger, ReadError, Recorded, StreamId};
use tokio::sync::watch;

use crate::announcement::Announcement;
use crate::key_holds::RefusedCall;

/// Facts that are read at once, backwards, until none of them is of today.
const BATCH: Bounds = Bounds { items: 10_000, bytes: 16 << 20 };
/// Days of which the sums are kept. A clock that jumps ahead and back finds today's sum again.
const DAYS_MAX: usize = 8;
/// How often a ledger that can't be read for the moment is tried.
const READ_TRIES: u32 = 10;
const READ_AGAIN: Duration = Duration::from_secs(1);

/// A cheap handle; clones share the sums. Without a limit it counts nothing and refuses nothing.
#[derive(Debug, Clone)]
pub struct HomeBudget(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    limit_micro_usd: u64,
    sums: Mutex<Sums>,
    /// Whether the costs that earlier processes recorded are in the sums.
    complete: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Sums {
    /// By the instant at which each day begins, in millionths of a dollar.
    days: BTreeMap<Time, u64>,
    /// The day whose spent budget the operator is told of.
    announced_for: Option<Time>,
    announcement: Announcement,
}

impl HomeBudget {
    /// A limit of zero is none.
    pub fn new(limit_micro_usd: u64) -> HomeBudget {
        let shared = || {
            let (complete, _) = watch::channel(false);
            Arc::new(Shared { limit_micro_usd, sums: Mutex::default(), complete })
        };
        HomeBudget((limit_micro_usd > 0).then(shared))
    }

    pub fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// Adds up the costs of today that are in the ledger. To be called before any agent is awake; the reading happens on
    /// a thread of its own, and models are called once it is done.
    pub fn rebuild(&self, ledger: &Ledger, now: Time) -> Result<(), ReadError> {
        let Some(shared) = self.0.clone() else { return Ok(()) };
        let (ledger, end) = (ledger.clone(), ledger.end()?);
        tokio::task::spawn_blocking(move || {
            shared.add_recorded(&ledger, end, Spending::day_begins(now));
            shared.complete.send_replace(true);
        });
        Ok(())
    }

    /// Whether a model may be called now. RefusedCall where the day's budget is spent.
    pub async fn check(&self, agent: &AgentId, now: Time) -> Result<(), RefusedCall> {
        let Some(shared) = &self.0 else { return Ok(()) };
        let mut complete = shared.complete.subscribe();
        // The sender lives as long as this handle, so this ends only when the sums are complete.
        drop(complete.wait_for(|complete| *complete).await);
        shared.check(agent, now, Instant::now()).map_or(Ok(()), Err)
    }

    /// These facts of the agent are durable.
    pub fn recorded(&self, agent: &AgentId, facts: &[(Seq, Time, Fact)]) {
        let Some(shared) = &self.0 else { return };
        for (_, at, fact) in facts {
            shared.count(agent, *at, fact);
        }
    }
}

impl Shared {
    fn check(&self, agent: &AgentId, now: Time, instant: Instant) -> Option<RefusedCall> {
        let today = Spending::day_begins(now);
        let mut sums = self.lock();
        if sums.days.get(&today).copied().unwrap_or(0) < self.limit_micro_usd {
            return None;
        }
        sums.announce_for(today);
        let announce = sums.announcement.offer(agent, instant);
        let failure =
            ProviderFailure { error: ProviderError::HomeBudgetSpent, ..ProviderFailure::invalid(self.reached()) };
        Some(RefusedCall { failure, announce })
    }

    /// The words by which a process knows that an earlier one told the operator of this limit.
    fn reached(&self) -> String {
        format!("the home's limit of ${} a day is reached", format_usd(self.limit_micro_usd))
    }

    fn count(&self, agent: &AgentId, at: Time, fact: &Fact) {
        let cost = fact.model_usage().map_or(0, |usage| usage.cost_micro_usd);
        let mut sums = self.lock();
        if cost > 0 {
            sums.add(Spending::day_begins(at), cost);
        }
        // An offer that comes to nothing, because the turn was aborted for example, lapses by itself.
        if matches!(fact, Fact::TurnsHeld(held) if held.cause == HoldCause::HomeBudget) {
            sums.announcement.settle(agent, true);
        }
    }

    /// From the end backwards, until a batch has no fact of today.
    fn add_recorded(&self, ledger: &Ledger, end: Cursor, today: Time) {
        let mut end = end;
        while end > Cursor::START {
            let begin = end.back(BATCH.items as u64);
            match self.add_batch(ledger, begin, end, today) {
                Ok(true) => end = begin,
                Ok(false) => return,
                Err(error) => {
                    tracing::error!(%error, "the costs of today can't be read; the daily limit counts from here on");
                    return;
                }
            }
        }
    }

    /// Adds the costs between two places. Whether any fact there is of today.
    fn add_batch(&self, ledger: &Ledger, begin: Cursor, end: Cursor, today: Time) -> Result<bool, ReadError> {
        let (mut follow, mut any, mut failures) = (ledger.follow(begin), false, 0);
        while follow.cursor() < end {
            match follow.next_within(BATCH) {
                Ok(facts) if facts.is_empty() => break,
                Ok(facts) => {
                    for (_, stream, recorded) in facts.iter().take_while(|(cursor, ..)| *cursor <= end) {
                        any |= Spending::day_begins(recorded.at) == today;
                        self.add_fact(stream, recorded, today);
                    }
                }
                // Its cost is unknown; the call after this one goes on behind it.
                Err(ReadError::Damaged(_)) => {}
                Err(error) => {
                    failures += 1;
                    if failures == READ_TRIES {
                        return Err(error);
                    }
                    std::thread::sleep(READ_AGAIN);
                }
            }
        }
        Ok(any)
    }

    fn add_fact(&self, stream: &StreamId, recorded: &Recorded, today: Time) {
        let counts = Fact::USAGE_KINDS.contains(&&*recorded.kind) || *recorded.kind == *HELD;
        if !counts || Spending::day_begins(recorded.at) != today {
            return;
        }
        let Ok(fact) = decode::<AgentState>(stream, recorded) else { return };
        let mut sums = self.lock();
        match (&fact, fact.model_usage()) {
            (_, Some(usage)) => sums.add(today, usage.cost_micro_usd),
            (Fact::TurnsHeld(held), None) if held.evidence.ends_with(&self.reached()) => {
                sums.announce_for(today);
                sums.announcement = Announcement::Made;
            }
            (_, None) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kind of the fact that an agent's turns are held.
const HELD: &str = "turns.held";

impl Sums {
    fn add(&mut self, day: Time, cost_micro_usd: u64) {
        let sum = self.days.entry(day).or_default();
        *sum = sum.saturating_add(cost_micro_usd);
        if self.days.len() > DAYS_MAX {
            self.days.pop_first();
        }
    }

    /// The operator is told once a day.
    fn announce_for(&mut self, day: Time) {
        if self.announced_for != Some(day) {
            self.announced_for = Some(day);
            self.announcement = Announcement::Due;
        }
    }
}
