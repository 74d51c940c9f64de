//! A clock that was wrong and is set back: nothing waits for a time that was recorded while it was ahead, and nothing
//! fires twice (docs/timers.md, "Setting the clock").

use std::collections::BTreeSet;

use abide_kernel::Fact;
use abide_kernel::input::Input;
use abide_kernel::limits::TIMER_STREAKS_MAX;
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::vocabulary::{CatchUp, MissedReason};

use crate::story::{Story, check, tell};

/// A hundred years.
const CENTURY: &str = "876600h";

/// Tells `before`, lets the clock be a century ahead for as long as `ahead` takes, sets it back, and shows what `after`
/// comes to.
fn century(before: &str, ahead: &str, after: &str) -> Vec<String> {
    tell(&format!("{before}\nadvance {CENTURY}\n{ahead}\n---\nback {CENTURY}\n{after}"))
}

/// When the occurrences of all timers were that fired, in the order in which they fired.
fn fired(story: &Story) -> Vec<Time> {
    let due = |(_, fact): &(Time, Fact)| if let Fact::TimerFired(fired) = fact { Some(fired.due) } else { None };
    story.facts.iter().filter_map(due).collect()
}

/// Tells the lines, and answers whatever turn they start.
fn live(story: &mut Story, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        story.tell(line).unwrap();
        if story.state.turns.current.is_some() {
            story.tell("round done").unwrap();
        }
    }
}

fn differ(times: &[Time]) -> bool {
    times.iter().collect::<BTreeSet<_>>().len() == times.len()
}

#[test]
fn a_recurring_timer_goes_on_after_a_century() {
    for every in ["every=1h", "cron=0_*_*_*_*"] {
        let told = century(
            &format!("person CreateTimer {every} tea\nadvance 90m\nround done"),
            "round done",
            "wake?\nadvance 30m",
        );
        assert_eq!(
            told,
            [
                "clock set back from +3155765400s to +5400s",
                "timer1 rescheduled from +3155767200s to +7200s",
                "WaitForTimer active_timers",
                "+7200s: due",
                "queued m3 timer_tick",
                "timer1 fired in m3",
                "StartModelTurn model_reentry_message m3",
                "turn local_continuation",
            ],
            "{every}"
        );
    }
}

/// The times of a calendar stay what they were, and so do those of an interval: it keeps its minutes.
#[test]
fn an_interval_stays_in_step() {
    let told = century("advance 17m\nperson CreateTimer every=1h tea\nadvance 90m\nround done", "round done", "wake?");
    assert_eq!(told.last().unwrap(), "+8220s: due", "at 2:17");
}

#[test]
fn a_timer_made_while_the_clock_was_ahead_goes_on() {
    for (when, due) in [("every=1h", "+3600s"), ("cron=30_*_*_*_*", "+1800s"), ("after=2h", "+7200s")] {
        let told = century("", &format!("person CreateTimer {when} tea"), "wake?");
        assert_eq!(told.last().unwrap(), &format!("{due}: due"), "{when}");
    }
}

/// A person named the time.
#[test]
fn a_time_that_was_named_stays() {
    let mut story = Story::begin();
    story.tell(&format!("advance {CENTURY}")).unwrap();
    let at = story.now.plus_ms(3_600_000);
    let act = RecordCall::CreateTimer {
        summary: "tea".to_owned(),
        when: When::At(at),
        catch_up: CatchUp::Latest,
        work_item_id: None,
        check: None,
    };
    story.input(Input::Act { by: "ann".to_owned(), act });
    story.tell(&format!("back {CENTURY}")).unwrap();
    assert_eq!(story.state.planes.timers.next_due(), Some(at));
}

/// Waits and holds that were to last for a while last that long from the moment that the clock is right, at most.
#[test]
fn nothing_waits_longer_than_it_was_to() {
    for (ahead, moved, due) in [
        ("operator hi\nround Sleep 1h", "timer1 rescheduled from +3155763600s to +3600s", "+3600s: due"),
        ("operator hi\nround WaitFor timer after=1h", "timer1 rescheduled from +3155763600s to +3600s", "+3600s: due"),
        (
            "person CreateWorkItem build\nround UpdateWorkItem w1 blocked=rain recheck=1h\nround done",
            "w1 recheck moved from +3155763600s to +3600s",
            "+3600s: due",
        ),
        (
            "operator hi\nround RequestApproval deadline=1h deploy",
            "appr1 deadline moved from +3155763600s to +3600s",
            "+3600s: due",
        ),
        ("operator hi\nfail rate_limited", "requeued m1 clock_set_back until +2s", "+2s: due"),
        ("person CreateWorkItem build\nround done", "WaitForTimer tick_backoff w1", "+30s: due"),
        ("operator hi\nfail auth", "WaitForOperator model_key", "+600s: turns_held"),
        ("disk after=1m full\noperator hi", "clock set back from +3155760000s to +0s", "+60s: due"),
    ] {
        let told = century("", ahead, "wake?");
        assert_eq!(told[0], "clock set back from +3155760000s to +0s", "{ahead}");
        assert!(told.contains(&moved.to_owned()), "{ahead}: {told:#?}");
        assert_eq!(told.last().unwrap(), due, "{ahead}");
    }
}

/// Times that were recorded while the clock was right are not cut short because it was wrong for a moment.
#[test]
fn a_wait_from_before_is_not_cut_short() {
    check(
        "person CreateTimer after=10h tea
         operator hi
         round RequestApproval deadline=9h deploy
         advance 5h
         operator hello
         round done
         ---
         back 5h
         wake?",
        "clock set back from +18000s to +0s
         +32400s: due",
    );
}

#[test]
fn the_pace_counts_turns_of_the_future_as_turns_of_now() {
    let ahead = "limits self_turns=2
         operator hi
         round CreateTimer every=1m tea
         round done
         advance 1m
         round done
         advance 1m
         round done
         advance 1m";
    let told = century("", ahead, "wake?\nadvance 1h");
    assert!(told.contains(&"+3780s: due".to_owned()), "{told:#?}");
    assert!(told.contains(&"turn local_continuation".to_owned()), "{told:#?}");
}

#[test]
fn a_model_that_rests_rests_no_longer() {
    let told = century("models one two", "operator hi\nfail rate_limited after=1h", "notes");
    assert!(told.iter().any(|note| note == "one is left alone until +3600s (rate_limited)"), "{told:#?}");
}

#[test]
fn leave_for_a_call_lasts_a_day() {
    let told = century("", "operator go\nround Ask push\nperson DecideApproval appr1 grant", "notes");
    assert_eq!(told.last().unwrap(), "it may do this once, until 2026-01-02T00:00:00.004Z: run push (appr1)");
    let told =
        century("", "operator go\nround Ask push\nperson DecideApproval appr1 grant", "advance 25h\nround Ask push");
    assert!(told.contains(&"appr2 asked".to_owned()), "{told:#?}");
}

/// The use on the day before the clock jumped and while it was ahead counts for the day that it is.
#[test]
fn the_budget_of_the_day_is_neither_lost_nor_had_twice() {
    let spent = "budget daily_turns=2\noperator hi\nround done";
    let told = century(spent, "operator more\nround done", "operator again\nwake?\nadvance 24h");
    assert!(told.contains(&"WaitForOperator budget_spent".to_owned()), "{told:#?}");
    assert!(told.contains(&"+86400s: due".to_owned()), "{told:#?}");
    assert_eq!(told.last().unwrap(), "turn local_continuation");
}

/// However many days the clock was on in between, the day that it is set back to keeps what was used on it.
#[test]
fn a_day_keeps_its_count_over_several_others() {
    let turn = "operator hi\nround done";
    let before = format!("budget daily_turns=4\n{turn}\nadvance 24h\n{turn}\nadvance 24h\n{turn}");
    let told = century(&before, turn, "back 48h\noperator again");
    assert!(told.contains(&"WaitForOperator budget_spent".to_owned()), "{told:#?}");
}

/// A turn that was running while the clock was ahead is not charged a century, once the clock is right again.
#[test]
fn time_in_a_turn_goes_on_to_be_counted() {
    let mut story = Story::begin();
    for line in ["advance 876600h", "operator hi", "back 876600h", "advance 3s", "round done"] {
        story.tell(line).unwrap();
    }
    let ms = story.state.used().wall_ms;
    assert!((3_000..4_000).contains(&ms), "{ms}");
}

#[test]
fn it_is_recorded_once() {
    let mut story = Story::begin();
    live(&mut story, "person CreateTimer every=1h tea\nadvance 1h\nback 30m\noperator hi\nadvance 1m\ncrash\nreload");
    let set_back = story.facts.iter().filter(|(_, fact)| matches!(fact, Fact::ClockSetBack(_))).count();
    assert_eq!(set_back, 1);
}

/// A clock that is adjusted by a moment leaves no trace.
#[test]
fn an_adjustment_is_no_setting() {
    check(
        "person CreateTimer every=1h tea
         ---
         back 1s
         wake?",
        "+3600s: due",
    );
}

#[test]
fn a_calendar_that_fired_does_not_fire_again_when_its_time_comes_again() {
    let mut story = Story::begin();
    live(&mut story, "person CreateTimer cron=0_*_*_*_* tea\nadvance 1h\nadvance 1h\nadvance 1h\nback 5s");
    assert_eq!(fired(&story).len(), 3);
    live(&mut story, "advance 1m\nback 24h");
    // From 3:00 of the day before: what lies before the timer was made has not fired.
    for _ in 0..30 {
        live(&mut story, "advance 1h");
    }
    let times = fired(&story);
    assert!(differ(&times), "{times:#?}");
    assert_eq!(times.len(), 3 + 30 - 3, "{times:#?}");
    let missed = story
        .facts
        .iter()
        .filter_map(|(_, fact)| if let Fact::TimerMissed(missed) = fact { Some(missed) } else { None });
    let passed_over: u64 =
        missed.filter(|missed| missed.reason == MissedReason::FiredBefore).map(|missed| missed.count).sum();
    assert_eq!(passed_over, 3);
}

/// An occurrence that fired early, because the clock was ahead for a moment, has fired.
#[test]
fn what_fired_early_does_not_fire_at_its_time() {
    for when in ["every=1h", "cron=0_*_*_*_*"] {
        let mut story = Story::begin();
        live(&mut story, &format!("person CreateTimer {when} tea\nadvance 90m\nadvance 24h\nback 24h"));
        for _ in 0..30 {
            live(&mut story, "advance 1h");
        }
        let times = fired(&story);
        assert!(differ(&times), "{when}: {times:#?}");
        // One before, one early, and every hour from then on but that one.
        assert_eq!(times.len(), 1 + 1 + 30 - 1, "{when}: {times:#?}");
    }
}

/// Set back by more than two days, it was wrong: the days that come are not the days that were.
#[test]
fn a_calendar_begins_anew_after_a_clock_that_was_far_ahead() {
    let mut story = Story::begin();
    live(&mut story, "person CreateTimer cron=0_9_*_*_* tea");
    for _ in 0..10 {
        live(&mut story, "advance 24h");
    }
    live(&mut story, "back 240h\nadvance 24h");
    assert_eq!(fired(&story).len(), 11);
}

#[test]
fn ids_are_told_apart_when_the_same_millisecond_comes_again() {
    let mut story = Story::begin();
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        story.tell("operator hi").unwrap();
        story.tell("back 2s").unwrap();
        story.tell("advance 1999ms").unwrap();
    }
    for (_, fact) in &story.facts {
        if let Fact::MessageQueued(queued) = fact {
            assert!(ids.insert(queued.message.message_id.clone()));
        }
    }
    assert_eq!(ids.len(), 20);
}

/// A restart in between changes nothing.
#[test]
fn a_snapshot_and_a_restart_tell_the_same() {
    for between in ["reload", "crash"] {
        let told = century(
            "person CreateTimer every=1h tea\nadvance 90m\nround done",
            &format!("round done\n{between}"),
            "wake?",
        );
        assert!(told.contains(&"timer1 rescheduled from +3155767200s to +7200s".to_owned()), "{between}: {told:#?}");
        assert_eq!(told.last().unwrap(), "+7200s: due", "{between}");
    }
}

/// A timer that fires once in three minutes and skips the others, so that each that fires is a run of its own.
fn runs(count: usize) -> Story {
    let mut story = Story::begin();
    live(&mut story, "person CreateTimer cron=*_*_*_*_* catch_up=none tea\nadvance 1m");
    for _ in 1..count {
        live(&mut story, "advance 150s\nadvance 30s");
    }
    assert_eq!(fired(&story).len(), count);
    story
}

/// An occurrence that was passed over has not fired: when its time comes again, it does.
#[test]
fn an_occurrence_that_was_passed_over_fires_when_its_time_comes_again() {
    let mut story = runs(2);
    let (first, second) = (fired(&story)[0], fired(&story)[1]);
    assert_eq!(second.since_ms(first), 180_000);
    live(&mut story, "back 210s");
    assert_eq!(story.state.planes.timers.next_due(), Some(first.plus_ms(60_000)));
}

/// So many runs are remembered: of one more, the oldest is forgotten.
#[test]
fn the_runs_that_are_remembered_are_bounded() {
    for (count, after_ms) in [(TIMER_STREAKS_MAX, 60_000), (TIMER_STREAKS_MAX + 1, 0)] {
        let mut story = runs(count);
        let first = fired(&story)[0];
        let back = 30 + (count - 1) * 180;
        live(&mut story, &format!("back {back}s"));
        assert_eq!(story.state.planes.timers.next_due(), Some(first.plus_ms(after_ms)), "{count} runs");
    }
}

/// A time that stays is not recorded anew.
#[test]
fn a_time_that_stands_is_not_moved() {
    for when in ["every=1h", "cron=0_*_*_*_*"] {
        let told = tell(&format!("person CreateTimer {when} tea\nadvance 10m\noperator hi\nround done\n---\nback 1m"));
        assert!(told[0].starts_with("clock set back"), "{told:?}");
        assert!(told.iter().all(|line| !line.contains("rescheduled")), "{when}: {told:?}");
    }
}

#[test]
fn a_deadline_that_would_stay_the_same_is_not_moved() {
    check(
        "person RequestApproval deadline=1h x
         advance 10m
         error e
         ---
         back 600001ms",
        "clock set back from +600s to +0s",
    );
}

#[test]
fn a_wait_that_has_ended_is_not_made_shorter() {
    check(
        "operator hi
         fail rate_limited after=1m
         stop
         advance 2h
         error e
         ---
         back 30m",
        "clock set back from +7200s to +5400s",
    );
}

#[test]
fn a_recheck_that_would_stay_the_same_is_not_moved() {
    check(
        "person CreateWorkItem build
         person UpdateWorkItem w1 blocked=rain recheck=1h
         advance 10m
         error e
         ---
         back 600001ms",
        "clock set back from +600s to +0s",
    );
}
