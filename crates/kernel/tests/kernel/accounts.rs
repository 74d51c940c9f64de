//! Every occurrence of a timer is accounted for, once: it fired, or was missed for a reason that is recorded, or is
//! being checked. Whatever was slept through, stopped, crashed, or said by a check.

use std::collections::BTreeSet;

use abide_kernel::Fact;
use abide_kernel::fact::{Schedule, TimerMissed};
use abide_kernel::state::timer::Timer;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::MissedReason;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::story::Story;

fn line() -> impl Strategy<Value = String> {
    let said = |lines: &'static [&'static str]| prop::sample::select(lines).prop_map(str::to_owned);
    prop_oneof![
        6 => (1_u64..400).prop_map(|minutes| format!("advance {minutes}m")),
        2 => (1_u64..4).prop_map(|days| format!("advance {}h", days * 24)),
        2 => (1_u64..90).prop_map(|seconds| format!("advance {seconds}s")),
        3 => (1_u64..48).prop_map(|hours| format!("back {hours}h")),
        5 => said(&["round done"]),
        5 => said(&["checked timer1 0 news", "checked timer1 1 nothing", "checked timer1 lost"]),
        2 => said(&["operator hi", "crash", "reload", "boot", "shutdown"]),
        2 => said(&["stop", "start", "start"]),
    ]
}

/// The occurrences up to the next one, as the schedule has them.
fn scheduled(schedule: &Schedule, first: Time, next: Option<Time>) -> BTreeSet<Time> {
    let all = std::iter::successors(Some(first), |at| schedule.occurrence_after(*at));
    all.take_while(|at| next.is_none_or(|next| *at < next)).collect()
}

/// The facts' account of a timer between two settings of the clock.
#[derive(Debug)]
struct Stretch {
    first: Time,
    next: Option<Time>,
    told: BTreeSet<Time>,
}

impl Stretch {
    fn new(first: Time) -> Stretch {
        Stretch { first, next: Some(first), told: BTreeSet::new() }
    }

    fn once(&mut self, at: Time) -> Result<(), String> {
        if self.told.insert(at) { Ok(()) } else { Err(format!("{at} is accounted for twice")) }
    }

    fn check(&self, schedule: &Schedule) -> Result<(), String> {
        let expected = scheduled(schedule, self.first, self.next);
        if self.told == expected { Ok(()) } else { Err(format!("accounted for {:?} of {expected:?}", self.told)) }
    }
}

/// The stretches of a timer. Two accounts of one occurrence in a stretch are an error, and so are two ticks for one
/// occurrence, whatever becomes of the clock.
#[allow(clippy::wildcard_enum_match_arm, reason = "the other facts are about something else")]
fn stretches(story: &Story, made: &Timer, first: Time) -> Result<Vec<Stretch>, String> {
    let mut stretches = vec![Stretch::new(first)];
    let (mut looked_at, mut checking) = (BTreeSet::new(), None);
    for (_, fact) in &story.facts {
        let Some(stretch) = stretches.last_mut() else { continue };
        let mut look = |stretch: &mut Stretch, due: Time| {
            stretch.once(due)?;
            if looked_at.insert(due) { Ok(()) } else { Err(format!("{due} comes twice")) }
        };
        match fact {
            // The check of an occurrence may end after the clock was set back.
            Fact::TimerCheckStarted(fact) => {
                if checking.replace(fact.due) != Some(fact.due) {
                    look(stretch, fact.due)?;
                }
                stretch.next = fact.next_fire_at;
            }
            Fact::TimerFired(fact) => {
                if checking.take().is_none() {
                    look(stretch, fact.due)?;
                }
                stretch.next = fact.next_fire_at;
            }
            Fact::TimerMissed(TimerMissed {
                reason: MissedReason::CheckSaidNo | MissedReason::Stopped | MissedReason::Cancelled,
                ..
            }) => checking = None,
            Fact::TimerMissed(fact) => {
                let run = std::iter::successors(Some(fact.first), |at| made.schedule.occurrence_after(*at));
                let run: Vec<Time> = run.take_while(|at| *at <= fact.last).collect();
                if run.len() as u64 != fact.count || run.last() != Some(&fact.last) {
                    return Err(format!("{fact:?} is a run of {}", run.len()));
                }
                run.into_iter().try_for_each(|at| stretch.once(at))?;
                stretch.next = fact.next_fire_at;
            }
            Fact::TimerRescheduled(fact) => stretches.push(Stretch::new(fact.to)),
            _ => {}
        }
    }
    Ok(stretches)
}

fn check_accounts(story: &Story, made: &Timer) -> Result<(), String> {
    // A timer whose last occurrence was told is gone; everything it had must be accounted for.
    let timer = story.state.planes.timers.get(&made.timer_id);
    let stretches = stretches(story, made, made.next_fire_at.ok_or("it was never to fire")?)?;
    stretches.iter().try_for_each(|stretch| stretch.check(&made.schedule))?;
    let Some(timer) = timer else { return Ok(()) };
    let accounted: u64 = stretches.iter().map(|stretch| stretch.told.len() as u64).sum();
    let counted = timer.fire_count + timer.missed_count + u64::from(timer.checking.is_some());
    if counted != accounted {
        return Err(format!("{counted} are counted of {accounted}"));
    }
    let Some(next) = timer.next_fire_at else { return Ok(()) };
    let longest = match made.schedule {
        Schedule::Once { .. } => made.after_ms,
        Schedule::Every { every_ms, .. } => Some(every_ms),
        Schedule::Cron { .. } => None,
    };
    if longest.is_some_and(|ms| next > story.now.plus_ms(ms)) {
        return Err(format!("{next} is more than {longest:?} ms ahead"));
    }
    // Of what has come due, only what a tick or a check is still under way for may be left.
    let idle = timer.undelivered.is_none() && timer.checking.is_none();
    if next <= story.now && idle && story.state.lifecycle.is_runnable() {
        Err(format!("{next} is due"))
    } else {
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, rng_seed: RngSeed::Fixed(12), ..ProptestConfig::default() })]

    #[test]
    fn every_occurrence_is_accounted_for_once(
        when in prop::sample::select(vec![
            "every=7m", "every=1h", "after=3h", "cron=*/10_*_*_*_* zone=Europe/Berlin",
            "cron=30_2_*_*_* zone=Europe/Berlin", "cron=0_*/3_*_*_mon-fri zone=America/New_York",
        ]),
        catch_up in prop::sample::select(vec!["latest", "none", "all"]),
        check in prop::sample::select(vec!["", "check=c"]),
        // So that some of it happens while clocks are set.
        begin in prop::sample::select(vec![0_u64, 85 * 24, 296 * 24]),
        lines in prop::collection::vec(line(), 1..24),
    ) {
        let mut story = Story::begin();
        story.tell(&format!("advance {begin}h")).unwrap();
        story.tell(&format!("person CreateTimer {when} catch_up={catch_up} {check} tea")).unwrap();
        let made = story.state.planes.timers.active().values().next().unwrap().clone();
        for line in &lines {
            // A line that makes no sense here is passed over.
            let _passed_over = story.tell(line);
            if let Err(problem) = check_accounts(&story, &made) {
                let told = lines.join("\n");
                prop_assert!(false, "after {line:?}: {problem}\nCreateTimer {when} {catch_up} {check} at {begin}h\n{told}");
            }
        }
    }
}
