//! The scheduler: a pure function of a state. It reads what is, and says what comes next and why.

pub mod closure;
pub mod continuation;
pub mod decide;
pub mod posture;
pub mod projection;
pub mod ticks;
pub mod timed;

pub use decide::{decide, decide_next_action};
pub use projection::SchedulerProjection;
