//! A clock that was set back: what was to last for a while lasts no longer than that from now, and what was counted in the
//! future was counted now.

use abide_kernel::limits::TICK_BACKOFF_MS;
use abide_kernel::time::Time;

use super::Model;

impl Model {
    pub(super) fn clock_set_back(&mut self, from: Time, to: Time) {
        if let Some((_, until)) = &mut self.held {
            *until = (*until).min(to.plus_ms(until.since_ms(from)));
        }
        for item in &mut self.items {
            let step = (item.idle as usize).clamp(1, TICK_BACKOFF_MS.len()) - 1;
            item.not_before = item.not_before.map(|time| time.min(to.plus_ms(TICK_BACKOFF_MS[step])));
        }
        self.own_turns.iter_mut().for_each(|at| *at = (*at).min(to));
        if let Some(turn) = &mut self.turn {
            turn.counted_to = turn.counted_to.min(to);
        }
        self.day_set_back(to);
    }
}
