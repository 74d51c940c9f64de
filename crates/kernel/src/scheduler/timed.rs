//! Row 11: the first of all records that are due at a known time. The decision and the sentence of `why` are both about this
//! record, so that headline, evidence and time agree.

use crate::decision::Decision;
use crate::fact::Resource;
use crate::state::AgentState;
use crate::state::queue::Entry;
use crate::state::timer::Timer;
use crate::state::waiting::Wait;
use crate::state::work::WorkItem;
use crate::time::Time;
use crate::vocabulary::{DecisionKind, Reason, Scope, WaitKind};

/// A record that the agent waits for until a time.
#[derive(Debug, Clone, Copy)]
pub enum Timed<'a> {
    /// A timer wait or a sleep, and its timer. The timer is missing only where its tick is in the queue already.
    Wait(&'a Wait, Option<&'a Timer>),
    /// A blocked item that is looked at again.
    Recheck(&'a WorkItem),
    /// An item that is offered again after an offer that changed nothing.
    Backoff(&'a WorkItem),
    /// A message that is tried again after its model failed.
    Retry(&'a Entry),
}

impl<'a> Timed<'a> {
    /// The one that is due first. A standing timer is none: nothing waits for it.
    #[must_use]
    pub fn first(state: &'a AgentState) -> Option<Timed<'a>> {
        let offers_work =
            state.planes.waits.first(Scope::Agent, WaitKind::Sleep).is_none() && !state.planes.work.is_spent();
        let timed = [
            first_timed_wait(state),
            state.planes.work.first_recheck().map(|(due, item)| (Some(due), Timed::Recheck(item))),
            state
                .planes
                .work
                .first_later()
                .filter(|_| offers_work)
                .map(|(due, item)| (Some(due), Timed::Backoff(item))),
            state.planes.queue.first_delayed().map(|entry| (entry.not_before, Timed::Retry(entry))),
        ];
        // A wait whose tick is on its way comes last: everything else has a time.
        timed.into_iter().flatten().min_by_key(|(due, _)| (due.is_none(), *due)).map(|(_, timed)| timed)
    }

    /// When it is due; `None` for a wait whose tick is in the queue.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        match self {
            Timed::Wait(_, timer) => timer.and_then(Timer::next_time),
            Timed::Recheck(item) => item.recheck_at,
            Timed::Backoff(item) => item.ticks.due_at(),
            Timed::Retry(entry) => entry.not_before,
        }
    }

    pub(super) fn decision(&self) -> Decision {
        match self {
            Timed::Wait(wait, timer) => {
                let reason = match wait.scope() {
                    Scope::WorkItem => Reason::WorkItemTimerWait,
                    Scope::Agent => Reason::ActiveTimers,
                };
                let decision = super::decide::about_wait(DecisionKind::WaitForTimer, reason, wait);
                match timer {
                    Some(timer) => decision.because(describe_next_fire(timer)),
                    None => decision,
                }
            }
            Timed::Recheck(item) => {
                let due = item.recheck_at.map(|due| format!("recheck_at {due}")).unwrap_or_default();
                super::decide::about_item(DecisionKind::WaitForTimer, Reason::RecheckPending, item).because(due)
            }
            Timed::Backoff(item) => {
                let due = item.ticks.due_at().map(|due| format!("next_tick {due}")).unwrap_or_default();
                super::decide::about_item(DecisionKind::WaitForTimer, Reason::TickBackoff, item).because(due)
            }
            Timed::Retry(entry) => {
                let (id, seq) = (&entry.message.message_id, entry.seq);
                let until = entry.not_before.map(|until| format!(" not_before {until}")).unwrap_or_default();
                let decision = Decision::new(DecisionKind::WaitForTimer, Reason::ProviderBackoff)
                    .because(format!("message {id}{until} seq {seq}"));
                Decision { message_id: Some(id.clone()), ..decision }
            }
        }
    }
}

/// The timer wait or sleep whose timer fires first. One that names no timer ends with whichever fires first.
fn first_timed_wait(state: &AgentState) -> Option<(Option<Time>, Timed<'_>)> {
    let named = state.planes.timers.first_awaited().and_then(|(due, timer)| {
        let wait = state.planes.waits.waits_naming(&Resource::Timer(timer.timer_id.clone())).next()?;
        Some((Some(due), Timed::Wait(wait, Some(timer))))
    });
    let any = state.planes.waits.unnamed_waits(WaitKind::Timer).next().map(|wait| {
        let timer = state.planes.timers.first_due();
        (timer.and_then(Timer::next_time), Timed::Wait(wait, timer))
    });
    let dated = named.into_iter().chain(any).min_by_key(|(due, _)| (due.is_none(), *due));
    dated.or_else(|| {
        let kinds = [WaitKind::Timer, WaitKind::Sleep];
        let scopes = [Scope::WorkItem, Scope::Agent];
        let mut waits = scopes.into_iter().flat_map(|scope| kinds.map(|kind| state.planes.waits.first(scope, kind)));
        waits.find_map(|wait| Some((None, Timed::Wait(wait?, None))))
    })
}

/// `timer T next 10:00 seq 7`.
pub(super) fn describe_next_fire(timer: &Timer) -> String {
    let next = match (timer.checking, timer.next_fire_at) {
        (Some(checking), _) => format!("checked for {}", checking.due),
        (None, Some(time)) => format!("next {time}"),
        (None, None) => "next at once".to_owned(),
    };
    format!("timer {} {next} seq {}", timer.timer_id, timer.seq)
}
