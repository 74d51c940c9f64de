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

/// The range of a search: there are eight years between some 29ths of February.
const FAR_S: i64 = 9 * 366 * 86_400;
/// The part of an unknown zone's name that the refusal quotes.
const NAME_SHOWN_BYTES: usize = 64;

#[derive(Debug, Clone)]
pub struct Calendar {
    fields: Fields,
    zone: TimeZone,
}

/// A period during which the zone's offset does not change, in seconds.
struct OffsetPeriod {
    start: i64,
    end: i64,
    offset: i64,
    /// The offset before `start`.
    offset_before: Option<i64>,
}

impl Calendar {
    pub fn new(cron: &str, time_zone: &str) -> Result<Calendar, Refusal> {
        Ok(Calendar { fields: Fields::parse(cron)?, zone: find_zone(time_zone)? })
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
            let period = self.period_at(from);
            let (begin, stands_in) = self.first_local_second(&period);
            if stands_in && from == period.start {
                return Some(to_time(from));
            }
            let (start, end) = (begin.max(from + period.offset), period.end.min(far) + period.offset);
            if let Some(local) = self.fields.first_in(start, end) {
                return Some(to_time(local - period.offset));
            }
            from = period.end;
        }
        None
    }

    /// The last occurrence before an instant.
    #[must_use]
    pub fn before(&self, time: Time) -> Option<Time> {
        let mut to = (time.as_ms() + 999).div_euclid(1_000);
        let far = to - FAR_S;
        while to > far {
            let period = self.period_at(to - 1);
            let (begin, stands_in) = self.first_local_second(&period);
            let begin = begin.max(far + period.offset);
            if let Some(local) = self.fields.last_in(begin, to + period.offset) {
                return Some(to_time(local - period.offset));
            }
            if stands_in {
                return Some(to_time(period.start));
            }
            to = period.start;
        }
        None
    }

    /// How many occurrences there are after one instant, and up to another. Whole days are counted, not walked.
    #[must_use]
    pub fn count(&self, after: Time, until: Time) -> u64 {
        let (mut from, to) = (after.as_ms().div_euclid(1_000) + 1, until.as_ms().div_euclid(1_000) + 1);
        let mut count = 0;
        while from < to {
            let period = self.period_at(from);
            let (begin, stands_in) = self.first_local_second(&period);
            count += u64::from(stands_in && from == period.start);
            let (start, end) = (begin.max(from + period.offset), period.end.min(to) + period.offset);
            count += self.fields.count_in(start, end);
            from = period.end;
        }
        count
    }

    /// The local time from which a period has occurrences of its own, and whether its first instant stands in for an
    /// occurrence that the clock skipped.
    fn first_local_second(&self, period: &OffsetPeriod) -> (i64, bool) {
        let begin = period.start + period.offset;
        let Some(before) = period.offset_before.filter(|_| !self.fields.every_hour()) else { return (begin, false) };
        let reached = period.start + before;
        let skipped = self.fields.first_in(reached, begin).is_some();
        (begin.max(reached), skipped && self.fields.first_in(begin, begin + 1).is_none())
    }

    fn period_at(&self, at: i64) -> OffsetPeriod {
        let start = self.zone.preceding(to_timestamp(at + 1)).next().map(|change| change.timestamp().as_second());
        let end = self.zone.following(to_timestamp(at)).next().map(|change| change.timestamp().as_second());
        let offset = |at: i64| i64::from(self.zone.to_offset(to_timestamp(at)).seconds());
        OffsetPeriod {
            start: start.unwrap_or(Time::MIN.as_ms() / 1_000),
            end: end.unwrap_or(Time::MAX.as_ms()),
            offset: offset(at),
            offset_before: start.map(|start| offset(start - 1)),
        }
    }
}

fn find_zone(name: &str) -> Result<TimeZone, Refusal> {
    let zones = TimeZoneDatabase::bundled();
    zones.get(name).map_err(|_| {
        let name = limits::clip(name, NAME_SHOWN_BYTES);
        let city = |zone: &str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
        let meant = zones.available().find(|zone| city(zone.as_str()));
        let meant = meant.map_or_else(|| "Europe/Berlin or UTC".to_owned(), |zone| zone.to_string());
        Refusal::new(ErrorCode::UnknownTimeZone, format!("{name:?} is no time zone")).fill("example", meant)
    })
}

fn to_timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

fn to_time(second: i64) -> Time {
    Time::from_ms(second * 1_000)
}
