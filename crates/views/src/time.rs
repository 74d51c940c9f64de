//! Time as the kernel knows it: an instant that somebody handed in. Nothing here asks what time it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant in milliseconds since the Unix epoch, UTC. Written as RFC 3339.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// The text was not an RFC 3339 instant that we can represent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an RFC 3339 time such as 2026-01-31T12:00:00Z")]
pub struct BadTime {
    text: String,
}

impl Time {
    /// 1970-01-01T00:00:00Z; also what "no time was ever recorded" reads as.
    pub const EPOCH: Time = Time(0);
    /// 9999-12-31T23:59:59.999Z: RFC 3339 ends here, and so do sums of ours.
    pub const MAX: Time = Time(253_402_300_799_999);
    /// 0000-01-01T00:00:00Z.
    pub const MIN: Time = Time(-62_167_219_200_000);

    #[must_use]
    pub fn from_ms(ms: i64) -> Time {
        Time(ms.clamp(Self::MIN.0, Self::MAX.0))
    }

    #[must_use]
    pub fn as_ms(self) -> i64 {
        self.0
    }

    /// `self` moved by a span; the far ends of the calendar hold rather than wrap.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Time {
        Time::from_ms(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; nothing when it is not after.
    #[must_use]
    pub fn since_ms(self, earlier: Time) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(timestamp) => write!(f, "{timestamp:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Time, BadTime> {
        jiff::Timestamp::from_str(text)
            .map(|timestamp| Time::from_ms(timestamp.as_millisecond()))
            .map_err(|_| BadTime { text: text.chars().take(64).collect() })
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: serde::de::Error>(self, ms: i64) -> Result<Time, E> {
                Ok(Time::from_ms(ms))
            }
        }
        // Packed bytes have it as a number; text has not, and does not read from one.
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Visitor)
        } else {
            deserializer.deserialize_i64(Visitor)
        }
    }
}

/// An instant that may not be known, which is written as an empty text.
pub mod or_empty {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Time;

    #[allow(clippy::ref_option, reason = "serde calls it with a reference")]
    pub fn serialize<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => time.serialize(serializer),
            None => serializer.serialize_str(""),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(serde::de::Error::custom) }
    }
}
