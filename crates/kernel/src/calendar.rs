//! Calendar schedules: five cron fields, read off the clocks of one time zone.
//!
//! A zone's clock is set forward and back. A schedule that names hours fires for every one of its times, once: a time
//! that the clock skipped fires at the first instant after the gap, one that comes twice fires when it first comes. A
//! schedule of every hour follows the clock as it runs, so that every 15 minutes stay 15 minutes.
//!
//! The rules of all zones are compiled in; nothing is read from the system, and no state is ever computed from them
//! anew: when a timer fires next is in its facts.

mod fields;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use self::fields::Fields;
use crate::limits;
use crate::refusal::{ErrorCode, Refusal};
use crate::time::Time;

/// How far a search goes: there are eight years between some 29ths of February.
const FAR_S: i64 = 9 * 366 * 86_400;
/// How much of a name that is none is said back.
const NAME_SHOWN_BYTES: usize = 64;

#[derive(Debug, Clone)]
pub struct Calendar {
    fields: Fields,
    zone: TimeZone,
}

/// A time during which the zone's clock runs without a jump, in seconds.
struct Stretch {
    start: i64,
    end: i64,
    offset: i64,
    /// What it was before.
    offset_before: Option<i64>,
}

impl Calendar {
    pub fn new(cron: &str, time_zone: &str) -> Result<Calendar, Refusal> {
        Ok(Calendar { fields: Fields::parse(cron)?, zone: zone(time_zone)? })
    }

    /// The zone's name as the database spells it.
    #[must_use]
    pub fn time_zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The first occurrence after an instant.
    #[must_use]
    pub fn after(&self, time: Time) -> Option<Time> {
        let mut from = time.as_ms().div_euclid(1_000) + 1;
        let far = from + FAR_S;
        while from < far {
            let stretch = self.stretch(from);
            let (begin, stands_in) = self.begin(&stretch);
            if stands_in && from == stretch.start {
                return Some(instant(from));
            }
            let (start, end) = (begin.max(from + stretch.offset), stretch.end.min(far) + stretch.offset);
            if let Some(local) = self.fields.first_in(start, end) {
                return Some(instant(local - stretch.offset));
            }
            from = stretch.end;
        }
        None
    }

    /// The last occurrence before an instant.
    #[must_use]
    pub fn before(&self, time: Time) -> Option<Time> {
        let mut to = (time.as_ms() + 999).div_euclid(1_000);
        let far = to - FAR_S;
        while to > far {
            let stretch = self.stretch(to - 1);
            let (begin, stands_in) = self.begin(&stretch);
            let begin = begin.max(far + stretch.offset);
            if let Some(local) = self.fields.last_in(begin, to + stretch.offset) {
                return Some(instant(local - stretch.offset));
            }
            if stands_in {
                return Some(instant(stretch.start));
            }
            to = stretch.start;
        }
        None
    }

    /// How many occurrences there are after one instant, and up to another. Whole days are counted, not walked.
    #[must_use]
    pub fn count(&self, after: Time, until: Time) -> u64 {
        let (mut from, to) = (after.as_ms().div_euclid(1_000) + 1, until.as_ms().div_euclid(1_000) + 1);
        let mut count = 0;
        while from < to {
            let stretch = self.stretch(from);
            let (begin, stands_in) = self.begin(&stretch);
            count += u64::from(stands_in && from == stretch.start);
            let (start, end) = (begin.max(from + stretch.offset), stretch.end.min(to) + stretch.offset);
            count += self.fields.count_in(start, end);
            from = stretch.end;
        }
        count
    }

    /// From which local time on a stretch has occurrences of its own, and whether its first instant is one for what
    /// the clock skipped.
    fn begin(&self, stretch: &Stretch) -> (i64, bool) {
        let begin = stretch.start + stretch.offset;
        let Some(before) = stretch.offset_before.filter(|_| !self.fields.every_hour()) else { return (begin, false) };
        let reached = stretch.start + before;
        let skipped = self.fields.first_in(reached, begin).is_some();
        (begin.max(reached), skipped && self.fields.first_in(begin, begin + 1).is_none())
    }

    fn stretch(&self, at: i64) -> Stretch {
        let start = self.zone.preceding(timestamp(at + 1)).next().map(|change| change.timestamp().as_second());
        let end = self.zone.following(timestamp(at)).next().map(|change| change.timestamp().as_second());
        let offset = |at: i64| i64::from(self.zone.to_offset(timestamp(at)).seconds());
        Stretch {
            start: start.unwrap_or(Time::MIN.as_ms() / 1_000),
            end: end.unwrap_or(Time::MAX.as_ms()),
            offset: offset(at),
            offset_before: start.map(|start| offset(start - 1)),
        }
    }
}

fn zone(name: &str) -> Result<TimeZone, Refusal> {
    let zones = TimeZoneDatabase::bundled();
    zones.get(name).map_err(|_| {
        let name = limits::clip(name, NAME_SHOWN_BYTES);
        let city = |zone: &str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
        let meant = zones.available().find(|zone| city(zone.as_str()));
        let meant = meant.map_or_else(|| "Europe/Berlin or UTC".to_owned(), |zone| zone.to_string());
        Refusal::new(ErrorCode::UnknownTimeZone, format!("{name:?} is no time zone")).fill("example", meant)
    })
}

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

fn instant(second: i64) -> Time {
    Time::from_ms(second * 1_000)
}
