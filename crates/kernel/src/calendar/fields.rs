//! The five fields of a calendar schedule, as sets of numbers, on a clock that never jumps. Times here are local
//! seconds: what a clock on the wall would have counted since 1970. What a zone does to that clock is not known here.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

use crate::refusal::{ErrorCode, Refusal};

const DAY: i64 = 86_400;
const MINUTES: i64 = 1_440;
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Which numbers a field allows: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Set(u64);

impl Set {
    fn has(self, number: i64) -> bool {
        (0..64).contains(&number) && self.0 & (1 << number) != 0
    }

    fn first_from(self, number: i64) -> Option<i64> {
        let rest = self.0.checked_shr(u32::try_from(number).ok()?).filter(|rest| *rest != 0)?;
        Some(number + i64::from(rest.trailing_zeros()))
    }

    /// How many of its numbers are below this one.
    fn below(self, number: i64) -> i64 {
        let mask = u32::try_from(number).ok().and_then(|bits| 1_u64.checked_shl(bits)).unwrap_or(0).wrapping_sub(1);
        i64::from((self.0 & mask).count_ones())
    }

    fn last_below(self, number: i64) -> Option<i64> {
        (0..number).rev().find(|number| self.has(*number))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields {
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
}

/// The name of one field, its range, and the names that stand for its numbers.
struct Kind {
    name: &'static str,
    least: i64,
    most: i64,
    names: &'static [&'static str],
}

const KINDS: [Kind; 5] = [
    Kind { name: "minute", least: 0, most: 59, names: &[] },
    Kind { name: "hour", least: 0, most: 23, names: &[] },
    Kind { name: "day of the month", least: 1, most: 31, names: &[] },
    Kind { name: "month", least: 1, most: 12, names: &MONTHS },
    Kind { name: "day of the week", least: 0, most: 7, names: &WEEKDAYS },
];

impl Kind {
    fn all(&self) -> Set {
        Set((self.least..=self.most.min(if self.is_weekday() { 6 } else { 59 })).fold(0, |set, n| set | 1 << n))
    }

    fn is_weekday(&self) -> bool {
        self.most == 7
    }

    fn read(&self, text: &str) -> Result<Set, Refusal> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.step(part, step)?)),
                None => (part, None),
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" => (self.least, self.most.min(if self.is_weekday() { 6 } else { self.most })),
                Some((from, to)) => self.ordered(part, self.number(from)?, self.number(to)?)?,
                None if step.is_some() => {
                    let hint = format!("say where it ends: {range}-{}/…", self.most);
                    return Err(invalid_field(format!("the {} {part:?} has a step and no range", self.name), &hint));
                }
                None => {
                    let number = self.number(range)?;
                    (number, number)
                }
            };
            let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1);
            for number in (from..=to).step_by(step) {
                set |= 1 << if self.is_weekday() { number % 7 } else { number };
            }
        }
        Ok(Set(set))
    }

    fn step(&self, part: &str, step: &str) -> Result<i64, Refusal> {
        step.parse().ok().filter(|step| (1..=self.most).contains(step)).ok_or_else(|| {
            let message = format!("the {} {part:?} has no step that fits", self.name);
            invalid_field(message, &format!("a step is a number from 1 to {}", self.most))
        })
    }

    /// A week has no first day: `sat-mon` goes over its end. Anything else goes up.
    fn ordered(&self, part: &str, from: i64, to: i64) -> Result<(i64, i64), Refusal> {
        match (from <= to, self.is_weekday()) {
            (true, _) => Ok((from, to)),
            (false, true) => Ok((from, to + 7)),
            (false, false) => {
                let message = format!("the {} {part:?} goes down", self.name);
                Err(invalid_field(message, &format!("write it as two: {from}-{},{}-{to}", self.most, self.least)))
            }
        }
    }

    fn number(&self, text: &str) -> Result<i64, Refusal> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.and_then(|index| i64::try_from(index).ok()).map(|index| index + self.least);
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = named.or_else(|| text.parse().ok().filter(|_| digits));
        number.filter(|number| (self.least..=self.most).contains(number)).ok_or_else(|| {
            let names = match self.names {
                [first, .., last] => format!(", or {first} to {last}"),
                [] | [_] => String::new(),
            };
            let message = format!("{text:?} is no {}", self.name);
            invalid_field(message, &format!("the {} is from {} to {}{names}", self.name, self.least, self.most))
        })
    }
}

fn invalid_field(message: String, hint: &str) -> Refusal {
    Refusal::new(ErrorCode::BadCron, message).with_hint(hint)
}

impl Fields {
    pub(super) fn parse(text: &str) -> Result<Fields, Refusal> {
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts[..] else {
            let message = format!("a cron expression has five fields, and this one has {}", parts.len());
            return Err(invalid_field(
                message,
                "write minute, hour, day of the month, month, day of the week: 0 9 * * mon-fri",
            ));
        };
        let [minute, hour, day, month, weekday] = &KINDS;
        Ok(Fields {
            minutes: minute.read(minutes)?,
            hours: hour.read(hours)?,
            days: day.read(days)?,
            months: month.read(months)?,
            weekdays: weekday.read(weekdays)?,
        })
    }

    /// Whether it is about no hour in particular.
    pub(super) fn every_hour(self) -> bool {
        self.hours == KINDS[1].all()
    }

    /// Where both days are said, either will do: that is how cron has always read them.
    fn has_day(self, date: Date) -> bool {
        let (any_day, any_weekday) = (self.days == KINDS[2].all(), self.weekdays == KINDS[4].all());
        let day = self.days.has(date.day().into());
        let weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset().into());
        let fits = match (any_day, any_weekday) {
            (true, _) => weekday,
            (false, true) => day,
            (false, false) => day || weekday,
        };
        fits && self.months.has(date.month().into())
    }

    fn minute_from(self, minute: i64) -> Option<i64> {
        let (hour, within) = (minute / 60, minute % 60);
        if let Some(found) = self.minutes.first_from(within).filter(|_| self.hours.has(hour)) {
            return Some(hour * 60 + found);
        }
        Some(self.hours.first_from(hour + 1)? * 60 + self.minutes.first_from(0)?)
    }

    fn minute_before(self, minute: i64) -> Option<i64> {
        let (hour, within) = (minute / 60, minute % 60);
        if let Some(found) = self.minutes.last_below(within).filter(|_| self.hours.has(hour)) {
            return Some(hour * 60 + found);
        }
        Some(self.hours.last_below(hour)? * 60 + self.minutes.last_below(60)?)
    }

    /// How many minutes of a day that fits are before this one.
    fn minutes_before(self, minute: i64) -> i64 {
        let (hour, within) = (minute / 60, minute % 60);
        let of_hour = if self.hours.has(hour) { self.minutes.below(within) } else { 0 };
        self.hours.below(hour) * self.minutes.below(60) + of_hour
    }

    /// The first that fits from `from` on and before `to`.
    pub(super) fn first_in(self, from: i64, to: i64) -> Option<i64> {
        days_up(minute_up(from), to)
            .filter(|day| self.has_day(day.date))
            .find_map(|day| self.minute_from(day.from).filter(|minute| *minute < day.to).map(|minute| day.at(minute)))
    }

    /// The last that fits from `from` on and before `to`.
    pub(super) fn last_in(self, from: i64, to: i64) -> Option<i64> {
        days_down(minute_up(from), to).filter(|day| self.has_day(day.date)).find_map(|day| {
            self.minute_before(day.to).filter(|minute| *minute >= day.from).map(|minute| day.at(minute))
        })
    }

    pub(super) fn count_in(self, from: i64, to: i64) -> u64 {
        if from >= to {
            return 0;
        }
        let days = days_up(minute_up(from), to).filter(|day| self.has_day(day.date));
        let count: i64 = days.map(|day| self.minutes_before(day.to) - self.minutes_before(day.from)).sum();
        u64::try_from(count).unwrap_or(0)
    }
}

/// A day, and which of its minutes are meant: from one, and before another.
struct Day {
    date: Date,
    start: i64,
    from: i64,
    to: i64,
}

impl Day {
    fn of(date: Date, start: i64, from: i64, to: i64) -> Day {
        Day { date, start, from: ((from - start) / 60).clamp(0, MINUTES), to: minutes_up(to - start).clamp(0, MINUTES) }
    }

    fn at(&self, minute: i64) -> i64 {
        self.start + minute * 60
    }
}

fn days_up(from: i64, to: i64) -> impl Iterator<Item = Day> {
    let start = from.div_euclid(DAY) * DAY;
    let days = std::iter::successors(local_date(start), |date| date.tomorrow().ok());
    days.zip((start..to).step_by(86_400)).map(move |(date, start)| Day::of(date, start, from, to))
}

fn days_down(from: i64, to: i64) -> impl Iterator<Item = Day> {
    let start = (to - 1).div_euclid(DAY) * DAY;
    let days = std::iter::successors(local_date(start), |date| date.yesterday().ok());
    let starts = std::iter::successors(Some(start), |start| Some(start - DAY));
    let days = days.zip(starts).take_while(move |(_, start)| from < to && start + DAY > from);
    days.map(move |(date, start)| Day::of(date, start, from, to))
}

fn local_date(local: i64) -> Option<Date> {
    Some(Offset::UTC.to_datetime(Timestamp::from_second(local).ok()?).date())
}

fn minutes_up(seconds: i64) -> i64 {
    (seconds + 59).div_euclid(60)
}

fn minute_up(local: i64) -> i64 {
    minutes_up(local) * 60
}
