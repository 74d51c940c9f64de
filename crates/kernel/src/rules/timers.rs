//! Making and cancelling timers.

use abide_views::timer;

use super::act::{Acted, Actor, ahead, answer_with, end_waits_naming, require_room, require_text};
use super::waits::cancel_timer;
use super::work;
use crate::act_result::TimerEnded;
use crate::calendar::Calendar;
use crate::fact::{Resource, Schedule, TimerCreated};
use crate::id::{TimerId, WorkItemId};
use crate::limits;
use crate::refusal::{ErrorCode, Refusal};
use crate::rules::transaction::Transaction;
use crate::time::Time;
use crate::tool::When;
use crate::vocabulary::{CatchUp, TimerStatus};

/// A timer as it is asked for.
pub(super) struct Made {
    pub summary: String,
    pub when: When,
    pub catch_up: CatchUp,
    pub work_item_id: Option<WorkItemId>,
    pub check: Option<String>,
}

pub(super) fn create(tx: &mut Transaction<'_>, actor: &Actor, made: Made) -> Acted {
    let Made { summary, when, catch_up, work_item_id, check } = made;
    let summary = require_text(summary, limits::LINE_BYTES, "summary")?;
    let check = check.map(|check| require_text(check, limits::LINE_BYTES, "check")).transpose()?;
    require_room(tx.state.planes.timers.active().len(), "timers")?;
    let work_item_id = work::anchor_for(tx, actor, work_item_id)?;
    let after_ms = match when {
        When::AfterMs(ms) => Some(ms),
        When::At(_) | When::EveryMs(_) | When::Cron { .. } => None,
    };
    let (schedule, next_fire_at) = schedule(tx, when)?;
    let timer_id = tx.fresh.timer();
    let upcoming = schedule.upcoming_occurrences(Some(next_fire_at), limits::UPCOMING_SHOWN);
    tx.emit(TimerCreated {
        timer_id: timer_id.clone(),
        summary,
        schedule,
        next_fire_at,
        catch_up,
        waiting_intent_id: None,
        work_item_id,
        check,
        made_by: Some(actor.maker()),
        after_ms,
    });
    answer_with(&timer::TimerCreated { timer_id, next_fire_at: Some(next_fire_at), upcoming })
}

/// A schedule that can be kept, and when it first fires.
fn schedule(tx: &Transaction<'_>, when: When) -> Result<(Schedule, Time), Refusal> {
    match when {
        When::AfterMs(ms) => {
            let at = ahead(tx, ms)?;
            Ok((Schedule::Once { at }, at))
        }
        When::At(at) => {
            // A time that has just passed is meant as now.
            if tx.now.since_ms(at) > limits::JUST_PASSED_MS {
                return Err(Refusal::new(ErrorCode::InThePast, format!("{at} has passed")));
            }
            ahead(tx, at.since_ms(tx.now))?;
            Ok((Schedule::Once { at }, at))
        }
        When::EveryMs(every_ms) => {
            let least = limits::TIMER_EVERY_MIN_MS;
            if every_ms < least {
                let message = format!("every {every_ms} ms is too often");
                return Err(Refusal::new(ErrorCode::TooOften, message).fill("interval", least));
            }
            let first = ahead(tx, every_ms)?;
            Ok((Schedule::Every { every_ms, from: tx.now }, first))
        }
        When::Cron { cron, time_zone } => {
            let calendar = Calendar::new(&require_text(cron.clone(), limits::LINE_BYTES, "cron")?, &time_zone)?;
            let Some(first) = calendar.after(tx.now) else {
                return Err(Refusal::new(ErrorCode::NeverFires, format!("there is no day on which {cron:?} fires")));
            };
            let cron = cron.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
            Ok((Schedule::Cron { cron, time_zone: calendar.time_zone().to_owned() }, first))
        }
    }
}

pub(super) fn cancel(tx: &mut Transaction<'_>, actor: &Actor, id: &TimerId) -> Acted {
    if tx.state.planes.timers.get(id).is_none() {
        return Err(
            Refusal::new(ErrorCode::NotFound, format!("{id} is not an active timer")).with_hint("list the timers")
        );
    }
    let ended = end_waits_naming(tx, actor, &Resource::Timer(id.clone()), "its timer was cancelled");
    // A wait that owned the timer took it along.
    if tx.state.planes.timers.get(id).is_some() {
        cancel_timer(tx, id, &format!("cancelled_by {}", actor.name()));
    }
    answer_with(&TimerEnded { timer_id: id.clone(), status: TimerStatus::Cancelled, ended_waits: ended })
}
