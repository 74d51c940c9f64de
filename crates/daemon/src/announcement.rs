//! One thing that the operator is to be told once, by whichever agent is the first to be held for it.

use std::time::{Duration, Instant};

use abide_kernel::id::AgentId;

/// An agent that was asked to tell it, and recorded nothing for so long, will not: its turn was ended meanwhile.
const OFFER_LASTS: Duration = Duration::from_secs(60);

#[derive(Debug, Default, PartialEq, Eq)]
pub enum Announcement {
    #[default]
    Due,
    Offered {
        to: AgentId,
        at: Instant,
    },
    Made,
}

impl Announcement {
    /// Whether this agent is to tell it.
    pub fn offer(&mut self, agent: &AgentId, now: Instant) -> bool {
        let free = match self {
            Announcement::Due => true,
            Announcement::Offered { to, at } => to == agent || now.saturating_duration_since(*at) > OFFER_LASTS,
            Announcement::Made => false,
        };
        if free {
            *self = Announcement::Offered { to: agent.clone(), at: now };
        }
        free
    }

    /// The agent recorded that its turns are held, or that its turn ended in another way.
    pub fn settle(&mut self, agent: &AgentId, held: bool) {
        if matches!(self, Announcement::Offered { to, .. } if to == agent) {
            *self = if held { Announcement::Made } else { Announcement::Due };
        }
    }
}
