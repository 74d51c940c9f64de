//! Calendar schedules: what cron fields mean, and what the clocks of a zone do to them.

use std::collections::BTreeSet;

use abide_kernel::calendar::Calendar;
use abide_kernel::time::Time;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::story::check;

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

/// The next occurrences after an instant, as the zone's clocks show them.
#[track_caller]
fn next(cron: &str, zone: &str, after: &str, expected: &[&str]) {
    let calendar = Calendar::new(cron, zone).unwrap();
    let clocks = TimeZoneDatabase::bundled().get(zone).unwrap();
    let occurrences = std::iter::successors(calendar.after(time(after)), |at| calendar.after(*at));
    let occurrences: Vec<Time> = occurrences.take(expected.len()).collect();
    let last = *occurrences.last().unwrap();
    assert_eq!(calendar.count(time(after), last), expected.len() as u64, "{cron} in {zone}, counted");
    let back = std::iter::successors(calendar.before(last.plus_ms(1)), |at| calendar.before(*at));
    let mut back: Vec<Time> = back.take(expected.len()).collect();
    back.reverse();
    assert_eq!(back, occurrences, "{cron} in {zone}, backwards");
    let shown: Vec<String> = occurrences
        .into_iter()
        .map(|at| {
            let local = Timestamp::from_millisecond(at.as_ms()).unwrap().to_zoned(clocks.clone());
            local.strftime("%a %Y-%m-%d %H:%M %:z").to_string()
        })
        .collect();
    assert_eq!(shown, expected, "{cron} in {zone}");
}

#[test]
fn fields_mean_what_they_say() {
    let from = "2026-01-30T12:07:30Z";
    next("0 9 * * mon-fri", "UTC", from, &["Mon 2026-02-02 09:00 +00:00", "Tue 2026-02-03 09:00 +00:00"]);
    next("*/20 12 * * *", "UTC", from, &["Fri 2026-01-30 12:20 +00:00", "Fri 2026-01-30 12:40 +00:00"]);
    next("5,10-11 12 * * *", "UTC", from, &["Fri 2026-01-30 12:10 +00:00", "Fri 2026-01-30 12:11 +00:00"]);
    next("0 0 31 * *", "UTC", from, &["Sat 2026-01-31 00:00 +00:00", "Tue 2026-03-31 00:00 +00:00"]);
    next("30 6 1 JAN,jul *", "UTC", from, &["Wed 2026-07-01 06:30 +00:00", "Fri 2027-01-01 06:30 +00:00"]);
    let days = ["Sat 2026-01-31 00:00 +00:00", "Sun 2026-02-01 00:00 +00:00", "Mon 2026-02-02 00:00 +00:00"];
    next("0 0 * * sat-mon", "UTC", from, &[days[0], days[1], days[2], "Sat 2026-02-07 00:00 +00:00"]);
    next("0 0 * * 6-1", "UTC", from, &days);
    next("0 0 * * 7", "UTC", from, &["Sun 2026-02-01 00:00 +00:00", "Sun 2026-02-08 00:00 +00:00"]);
    next("0-59/30 23 * * *", "UTC", from, &["Fri 2026-01-30 23:00 +00:00", "Fri 2026-01-30 23:30 +00:00"]);
}

#[test]
fn where_both_days_are_said_either_will_do() {
    let days = ["Fri 2026-02-06 00:00 +00:00", "Fri 2026-02-13 00:00 +00:00", "Sun 2026-02-15 00:00 +00:00"];
    next("0 0 15 * fri", "UTC", "2026-01-31T00:00:00Z", &days);
}

#[test]
fn the_29th_of_february_comes_whenever_there_is_one() {
    next("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["Tue 2028-02-29 00:00 +00:00"]);
    // 2100 is no leap year.
    next("0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", &["Fri 2104-02-29 00:00 +00:00"]);
}

#[test]
fn a_time_that_the_clock_skips_comes_right_after() {
    let (berlin, york) = ("Europe/Berlin", "America/New_York");
    let days = ["Sat 2026-03-28 02:30 +01:00", "Sun 2026-03-29 03:00 +02:00", "Mon 2026-03-30 02:30 +02:00"];
    next("30 2 * * *", berlin, "2026-03-28T00:00:00Z", &days);
    let days = ["Sat 2026-03-07 02:30 -05:00", "Sun 2026-03-08 03:00 -04:00", "Mon 2026-03-09 02:30 -04:00"];
    next("30 2 * * *", york, "2026-03-07T05:00:00Z", &days);
    let days = ["Sat 2026-10-03 02:15 +10:30", "Sun 2026-10-04 02:30 +11:00", "Mon 2026-10-05 02:15 +11:00"];
    next("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T15:00:00Z", &days);
}

#[test]
fn what_is_skipped_together_comes_once() {
    let night = ["Sun 2026-03-29 01:45 +01:00", "Sun 2026-03-29 03:00 +02:00", "Sun 2026-03-29 03:15 +02:00"];
    next("*/15 1-3 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", &night);
    let night = ["Sun 2026-03-29 03:00 +02:00", "Mon 2026-03-30 02:00 +02:00"];
    next("*/15 2 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", &night);
    let night = ["Sun 2026-03-29 03:00 +02:00", "Sun 2026-03-29 03:30 +02:00", "Mon 2026-03-30 02:00 +02:00"];
    next("*/30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", &night);
}

#[test]
fn a_time_that_comes_twice_fires_the_first_time() {
    let days = ["Sun 2026-10-25 02:30 +02:00", "Mon 2026-10-26 02:30 +01:00"];
    next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &days);
    let days = ["Sun 2026-11-01 01:30 -04:00", "Mon 2026-11-02 01:30 -05:00"];
    next("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", &days);
    let days = ["Sun 2026-04-05 01:45 +11:00", "Mon 2026-04-06 01:45 +10:30"];
    next("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", &days);
}

#[test]
fn what_runs_every_hour_follows_the_clock_as_it_runs() {
    let forward = ["Sun 2026-03-29 01:45 +01:00", "Sun 2026-03-29 03:00 +02:00", "Sun 2026-03-29 03:15 +02:00"];
    next("*/15 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", &forward);
    let back = ["Sun 2026-10-25 02:30 +02:00", "Sun 2026-10-25 02:30 +01:00", "Sun 2026-10-25 03:30 +01:00"];
    next("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", &back);
    let half = ["Sun 2026-10-04 01:45 +10:30", "Sun 2026-10-04 02:30 +11:00", "Sun 2026-10-04 02:45 +11:00"];
    next("*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", &half);
}

#[test]
fn a_day_that_a_zone_left_out_comes_with_the_next() {
    // Samoa went from the 29th to the 31st of December 2011.
    let days = ["Thu 2011-12-29 09:00 -10:00", "Sat 2011-12-31 00:00 +14:00", "Sat 2011-12-31 09:00 +14:00"];
    next("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", &days);
}

#[test]
fn what_is_no_schedule_is_refused_and_says_why() {
    let refused = |cron: &str, zone: &str| {
        let refusal = Calendar::new(cron, zone).unwrap_err();
        format!("{}: {}; {}", refusal.code, refusal.message, refusal.hint)
    };
    let fields = "write minute, hour, day of the month, month, day of the week: 0 9 * * mon-fri";
    let cases = [
        ("@daily", format!("bad_cron: a cron expression has five fields, and this one has 1; {fields}")),
        ("0 0 9 * * *", format!("bad_cron: a cron expression has five fields, and this one has 6; {fields}")),
        ("60 * * * *", "bad_cron: \"60\" is no minute; the minute is from 0 to 59".to_owned()),
        ("+5 * * * *", "bad_cron: \"+5\" is no minute; the minute is from 0 to 59".to_owned()),
        ("0 22-2 * * *", "bad_cron: the hour \"22-2\" goes down; write it as two: 22-23,0-2".to_owned()),
        ("5/10 * * * *", "bad_cron: the minute \"5/10\" has a step and no range; say where it ends: 5-59/…".to_owned()),
        (
            "*/0 * * * *",
            "bad_cron: the minute \"*/0\" has no step that fits; a step is a number from 1 to 59".to_owned(),
        ),
        ("0 0 L * *", "bad_cron: \"L\" is no day of the month; the day of the month is from 1 to 31".to_owned()),
        ("0 0 * smarch *", "bad_cron: \"smarch\" is no month; the month is from 1 to 12, or jan to dec".to_owned()),
        (
            "0 0 * * ,",
            "bad_cron: \"\" is no day of the week; the day of the week is from 0 to 7, or sun to sat".to_owned(),
        ),
    ];
    for (cron, expected) in cases {
        assert_eq!(refused(cron, "UTC"), expected);
    }
    let zone =
        "unknown_time_zone: \"berlin\" is no time zone; give a name from the IANA database, such as Europe/Berlin";
    assert_eq!(refused("0 9 * * *", "berlin"), zone);
    assert!(refused("0 9 * * *", "/etc/localtime").starts_with("unknown_time_zone"));
}

#[test]
fn a_day_that_never_comes_is_refused() {
    check("person CreateTimer cron=0_0_31_2_* tea", "refused never_fires");
    check("person CreateTimer cron=0_0_30,31_feb_* tea", "refused never_fires");
}

/// Occurrences by looking at every minute: slow, and nothing like the code it is held against.
fn by_looking(cron: &[BTreeSet<i8>; 5], zone: &str, from: i64, to: i64) -> Vec<i64> {
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    let [minutes, hours, days, months, weekdays] = cron;
    let fits = |local: jiff::civil::DateTime| {
        let day = days.contains(&local.day());
        let weekday = weekdays.contains(&local.weekday().to_sunday_zero_offset());
        let day = if days.len() < 31 && weekdays.len() < 7 { day || weekday } else { day && weekday };
        minutes.contains(&local.minute()) && hours.contains(&local.hour()) && months.contains(&local.month()) && day
    };
    let local = |minute: i64| zone.to_datetime(Timestamp::from_second(minute * 60).unwrap());
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut expected = local(from - 2 * 1_440);
    for minute in from - 2 * 1_440..to {
        let now = local(minute);
        let mut fires = fits(now) && (hours.len() == 24 || !seen.contains(&now));
        while expected < now {
            fires |= hours.len() < 24 && fits(expected);
            seen.insert(expected);
            expected = expected.checked_add(jiff::Span::new().minutes(1)).unwrap();
        }
        seen.insert(now);
        expected = now.checked_add(jiff::Span::new().minutes(1)).unwrap();
        if fires && minute >= from {
            found.push(minute * 60);
        }
    }
    found
}

fn some(least: i8, most: i8) -> impl Strategy<Value = BTreeSet<i8>> {
    let all: BTreeSet<i8> = (least..=most).collect();
    prop_oneof![
        Just(all),
        prop::collection::btree_set(least..=most, 1..4),
        (least..=most, least..=most).prop_map(|(a, b)| (a.min(b)..=a.max(b)).collect()),
    ]
}

fn text(set: &BTreeSet<i8>) -> String {
    set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, rng_seed: RngSeed::Fixed(5), ..ProptestConfig::default() })]

    #[test]
    fn it_is_what_a_look_at_every_minute_says(
        cron in [some(0, 59).boxed(), some(0, 23).boxed(), some(1, 31).boxed(), some(1, 12).boxed(), some(0, 6).boxed()],
        // Days on which clocks are set, or the days before; Sao Paulo's is set back at midnight.
        (zone, day) in prop::sample::select(vec![
            ("UTC", "2026-02-27"), ("Europe/Berlin", "2026-03-28"), ("Europe/Berlin", "2026-10-24"),
            ("America/New_York", "2026-03-07"), ("America/New_York", "2026-10-31"),
            ("Australia/Lord_Howe", "2026-10-03"), ("Australia/Lord_Howe", "2026-04-04"),
            ("America/Sao_Paulo", "2018-02-17"), ("America/Sao_Paulo", "2018-11-03"), ("Pacific/Apia", "2011-12-29"),
            ("Africa/Casablanca", "2026-02-14"), ("Asia/Kolkata", "2026-06-30"),
        ]),
        shift in 0_i64..1_440,
    ) {
        let from = time(&format!("{day}T00:00:00Z")).as_ms() / 60_000 - shift;
        let (from, to) = (from, from + 4 * 1_440);
        let expected = by_looking(&cron, zone, from, to);
        let fields = cron.iter().map(text).collect::<Vec<_>>().join(" ");
        let calendar = Calendar::new(&fields, zone).unwrap();
        let at = |second: i64| Time::from_ms(second * 1_000);
        let (first, last) = (at(from * 60 - 1), at(to * 60 - 1));
        let ahead = std::iter::successors(calendar.after(first), |at| calendar.after(*at));
        let ahead: Vec<i64> = ahead.take_while(|at| *at <= last).map(|at| at.as_ms() / 1_000).collect();
        prop_assert_eq!(&ahead, &expected, "{} in {}", fields, zone);
        let back = std::iter::successors(calendar.before(last.plus_ms(1)), |at| calendar.before(*at));
        let mut back: Vec<i64> = back.take_while(|at| *at > first).map(|at| at.as_ms() / 1_000).collect();
        back.reverse();
        prop_assert_eq!(&back, &expected, "{} in {}, backwards", fields, zone);
        prop_assert_eq!(calendar.count(first, last), expected.len() as u64, "{} in {}, counted", fields, zone);
    }
}
