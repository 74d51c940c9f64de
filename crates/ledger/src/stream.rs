//! Names of streams. A stream is one agent's facts, in order.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use abide_kernel::id::AgentId;

const AGENT: &str = "agent/";

/// `agent/NAME`. Cheap to clone; ordered by its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no stream: write agent/NAME, with the name of an agent")]
pub struct BadStreamId {
    text: String,
}

impl StreamId {
    #[must_use]
    pub fn agent(agent: &AgentId) -> StreamId {
        StreamId(Arc::from(format!("{AGENT}{agent}")))
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
        match text.strip_prefix(AGENT).map(AgentId::new) {
            Some(Ok(_)) => Ok(StreamId(Arc::from(text))),
            Some(Err(_)) | None => Err(BadStreamId { text: text.chars().take(80).collect() }),
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
