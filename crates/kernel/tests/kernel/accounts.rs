//! Every occurrence of a timer is accounted for, once: it fired, or was missed for a reason that is recorded, or is
//! being checked. Whatever was slept through, stopped, crashed, or said by a check.

use std::collections::BTreeSet;

use abide_kernel::Fact;
use abide_kernel::agent::timer::Timer;
use abide_kernel::fact::Schedule;
use abide_kernel::time::Time;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::story::Story;

fn line() -> impl Strategy<Value = String> {
    let said = |lines: &'static [&'static str]| prop::sample::select(lines).prop_map(str::to_owned);
    prop_oneof![
        6 => (1_u64..400).prop_map(|minutes| format!("advance {minutes}m")),
        2 => (1_u64..4).prop_map(|days| format!("advance {}h", days * 24)),
        2 => (1_u64..90).prop_map(|seconds| format!("advance {seconds}s")),
        1 => (1_u64..48).prop_map(|hours| format!("back {hours}h")),
        5 => said(&["round done"]),
        5 => said(&["checked timer1 0 news", "checked timer1 1 nothing", "checked timer1 lost"]),
        2 => said(&["operator hi", "crash", "reload", "boot", "shutdown"]),
        2 => said(&["stop", "start", "start"]),
    ]
}

/// The occurrences up to the next one, as the schedule has them.
fn scheduled(schedule: &Schedule, first: Time, next: Option<Time>) -> BTreeSet<Time> {
    let all = std::iter::successors(Some(first), |at| schedule.after(*at));
    all.take_while(|at| next.is_none_or(|next| *at < next)).collect()
}

/// The occurrences that the facts account for. Two for one would be an error.
#[allow(clippy::wildcard_enum_match_arm, reason = "the other facts are about something else")]
fn accounted(story: &Story, schedule: &Schedule) -> Result<BTreeSet<Time>, String> {
    let mut told = BTreeSet::new();
    let mut once = |at: Time| if told.insert(at) { Ok(()) } else { Err(format!("{at} is accounted for twice")) };
    for (_, fact) in &story.facts {
        match fact {
            Fact::TimerFired(fact) => once(fact.due)?,
            Fact::TimerMissed(fact) => {
                let run = std::iter::successors(Some(fact.first), |at| schedule.after(*at));
                let run: Vec<Time> = run.take_while(|at| *at <= fact.last).collect();
                if run.len() as u64 != fact.count || run.last() != Some(&fact.last) {
                    return Err(format!("{fact:?} is a run of {}", run.len()));
                }
                run.into_iter().try_for_each(&mut once)?;
            }
            _ => {}
        }
    }
    Ok(told)
}

fn check_accounts(story: &Story, made: &Timer) -> Result<(), String> {
    // A timer whose last occurrence was told is gone; everything it had must be accounted for.
    let timer = story.state.timers.get(&made.timer_id);
    let mut told = accounted(story, &made.schedule)?;
    told.extend(timer.and_then(|timer| timer.checking).map(|checking| checking.due));
    let first = made.next_fire_at.ok_or("it was never to fire")?;
    let expected = scheduled(&made.schedule, first, timer.and_then(|timer| timer.next_fire_at));
    if told != expected {
        return Err(format!("accounted for {told:?} of {expected:?}"));
    }
    let Some(timer) = timer else { return Ok(()) };
    let counted = timer.fire_count + timer.missed_count + u64::from(timer.checking.is_some());
    if counted != expected.len() as u64 {
        return Err(format!("{counted} are counted of {}", expected.len()));
    }
    // Of what has come due, only what a tick or a check is still under way for may be left.
    let idle = timer.undelivered.is_none() && timer.checking.is_none();
    match timer.next_fire_at {
        Some(next) if next <= story.now && idle && story.state.is_runnable() => Err(format!("{next} is due")),
        _ => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(12), ..ProptestConfig::default() })]

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
        let made = story.state.timers.active().values().next().unwrap().clone();
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
