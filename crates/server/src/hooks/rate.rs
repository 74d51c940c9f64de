//! How fast deliveries may come in by one trigger: a bucket of tokens each, in memory. A trigger that was quiet has
//! room for a burst.

use std::collections::HashMap;
use std::time::Instant;

use abide_kernel::id::TriggerId;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: u32,
    pub burst: u32,
}

impl Rate {
    /// With room for what comes in within ten seconds.
    #[must_use]
    pub fn of(per_second: u32) -> Rate {
        Rate { per_second, burst: per_second.saturating_mul(10) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

#[derive(Debug)]
pub(super) struct Buckets {
    rate: Rate,
    of: HashMap<TriggerId, Bucket>,
}

/// Buckets that are kept before those that have filled up again are let go.
const KEPT: usize = 1_024;

impl Buckets {
    pub(super) fn new(rate: Rate) -> Buckets {
        Buckets { rate, of: HashMap::new() }
    }

    /// Takes one token. `now` does not go back.
    pub(super) fn take(&mut self, trigger: &TriggerId, now: Instant) -> bool {
        let (per_second, burst) = (f64::from(self.rate.per_second), f64::from(self.rate.burst));
        let filled = |bucket: &Bucket| {
            (bucket.left + now.saturating_duration_since(bucket.at).as_secs_f64() * per_second).min(burst)
        };
        if self.of.len() >= KEPT && !self.of.contains_key(trigger) {
            self.of.retain(|_, bucket| filled(bucket) < burst);
        }
        let bucket = self.of.entry(trigger.clone()).or_insert(Bucket { left: burst, at: now });
        *bucket = Bucket { left: filled(bucket), at: now };
        let room = bucket.left >= 1.0;
        if room {
            bucket.left -= 1.0;
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn taken(buckets: &mut Buckets, id: &str, now: Instant, tries: usize) -> usize {
        let id = TriggerId::new(id);
        (0..tries).filter(|_| buckets.take(&id, now)).count()
    }

    #[test]
    fn a_burst_then_the_rate_and_each_trigger_for_itself() {
        let mut buckets = Buckets::new(Rate { per_second: 2, burst: 5 });
        let begin = Instant::now();
        assert_eq!(taken(&mut buckets, "a", begin, 9), 5);
        assert_eq!(taken(&mut buckets, "b", begin, 9), 5);
        assert_eq!(taken(&mut buckets, "a", begin + Duration::from_millis(499), 9), 0);
        assert_eq!(taken(&mut buckets, "a", begin + Duration::from_millis(1_500), 9), 3);
        assert_eq!(taken(&mut buckets, "a", begin + Duration::from_secs(100), 9), 5);
    }

    #[test]
    fn what_is_full_again_is_not_kept() {
        let mut buckets = Buckets::new(Rate { per_second: 1, burst: 2 });
        let begin = Instant::now();
        for number in 0..KEPT {
            assert_eq!(taken(&mut buckets, &number.to_string(), begin, 1), 1);
        }
        assert_eq!(taken(&mut buckets, "one more", begin + Duration::from_secs(2), 1), 1);
        assert_eq!(buckets.of.len(), 1);
    }
}
