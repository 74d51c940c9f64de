//! Spans of time as people write and read them.

use std::time::Duration;

use abide_kernel::time::Time;
pub use abide_kernel::views::duration::parse_duration as duration;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A duration; a bare number counts seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => duration(text).map_err(|_| "it takes seconds, or a number and a unit: 30, 30s, 5m".to_owned()),
    }
}

pub fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `3 min ago`, `in 2 h`, `now`.
pub fn relative(time: Time, now: Time) -> String {
    let (ago, ahead) = (now.since_ms(time), time.since_ms(now));
    match (ago, ahead) {
        (ago, _) if ago >= SECOND_MS => format!("{} ago", rough(ago)),
        (_, ahead) if ahead >= SECOND_MS => format!("in {}", rough(ahead)),
        _ => "now".to_owned(),
    }
}

/// The largest unit that says something: `45 s`, `3 min`, `2 h`, `5 days`.
pub fn rough(ms: u64) -> String {
    match ms {
        ms if ms < SECOND_MS => format!("{ms} ms"),
        ms if ms < MINUTE_MS => format!("{} s", ms / SECOND_MS),
        ms if ms < HOUR_MS => format!("{} min", ms / MINUTE_MS),
        ms if ms < 2 * DAY_MS => format!("{} h", ms / HOUR_MS),
        ms => format!("{} days", ms / DAY_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let ms = |text| duration(text).map(as_ms);
        assert_eq!(
            ["500ms", "30s", "5m", "2h", "1d"].map(ms),
            [Ok(500), Ok(30_000), Ok(300_000), Ok(7_200_000), Ok(86_400_000)]
        );
        for wrong in ["", "5", "s", "-5s", "5 s", "1.5h", "5w", "99999999999999999999s", "999999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(seconds("5").map(as_ms), Ok(5_000));
        assert_eq!(seconds("2m").map(as_ms), Ok(120_000));
        assert!(seconds("soon").is_err());
    }

    #[test]
    fn times_read_from_here() {
        let now = Time::from_ms(1_700_000_000_000);
        let at = |ms: i64| relative(Time::from_ms(now.as_ms() + ms), now);
        assert_eq!(at(-200_000), "3 min ago");
        assert_eq!(at(-999), "now");
        assert_eq!(at(7_300_000), "in 2 h");
        assert_eq!(at(-200_000_000), "2 days ago");
    }
}
