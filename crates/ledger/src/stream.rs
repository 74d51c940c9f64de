//! Names of streams. A stream is one agent's facts, in order; what belongs to no agent has streams of its own.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use abide_kernel::id::AgentId;

use crate::hash::Hash;

const AGENT: &str = "agent/";
const HOME: &str = "home";
const KEY: &str = "key/";

/// `agent/NAME`, `home`, or `key/DIGEST`. Cheap to clone; ordered by its text, so agents come first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no stream: write agent/NAME, with the name of an agent")]
pub struct BadStreamId {
    text: String,
}

impl StreamId {
    /// The names of all agents' streams lie between these, the first included.
    pub(crate) const AGENTS: [&'static str; 2] = [AGENT, "agent0"];

    #[must_use]
    pub fn agent(agent: &AgentId) -> StreamId {
        StreamId(Arc::from(format!("{AGENT}{agent}")))
    }

    /// What holds for the home as a whole: who may talk to it.
    #[must_use]
    pub fn home() -> StreamId {
        StreamId(Arc::from(HOME))
    }

    /// A request that must not be met twice, by what makes it the same.
    #[must_use]
    pub fn key(digest: Hash) -> StreamId {
        StreamId(Arc::from(format!("{KEY}{digest}")))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn agent_name(&self) -> Option<&str> {
        self.0.strip_prefix(AGENT)
    }
}

impl FromStr for StreamId {
    type Err = BadStreamId;

    fn from_str(text: &str) -> Result<StreamId, BadStreamId> {
        let agent = text.strip_prefix(AGENT).is_some_and(|name| AgentId::new(name).is_ok());
        let key = text.strip_prefix(KEY).is_some_and(|digest| digest.parse::<Hash>().is_ok());
        if agent || key || text == HOME {
            Ok(StreamId(Arc::from(text)))
        } else {
            Err(BadStreamId { text: text.chars().take(80).collect() })
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
