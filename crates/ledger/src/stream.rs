//! Names of streams. A stream is the facts of one thing, in order: of an agent, of something else that runs, of a request,
//! of the home.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use abide_kernel::id::AgentId;

use crate::hash::Hash;

const AGENT: &str = "agent";
const HOME: &str = "home";
const KEY: &str = "key";

/// `home`, or `KIND/NAME`: `agent/NAME`, `key/DIGEST`, or another kind that runs. Cheap to clone; ordered by its text, and
/// no kind sorts before `agent`, so agents come first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no stream: write KIND/NAME, such as agent/NAME with the name of an agent")]
pub struct BadStreamId {
    text: String,
}

impl StreamId {
    /// The names of all agents' streams lie between these, the first included.
    pub(crate) const AGENTS: [&'static str; 2] = ["agent/", "agent0"];

    #[must_use]
    pub fn agent(agent: &AgentId) -> StreamId {
        StreamId(Arc::from(format!("{AGENT}/{agent}")))
    }

    /// The stream of the home as a whole: its tokens.
    #[must_use]
    pub fn home() -> StreamId {
        StreamId(Arc::from(HOME))
    }

    /// A request that must not be met twice, by what makes it the same.
    #[must_use]
    pub fn key(digest: Hash) -> StreamId {
        StreamId(Arc::from(format!("{KEY}/{digest}")))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A stream of any kind. Kinds other than agents and keys have names of the form that agents' names have.
    pub fn of_kind(kind: &str, name: &str) -> Result<StreamId, BadStreamId> {
        format!("{kind}/{name}").parse()
    }

    #[must_use]
    pub fn agent_name(&self) -> Option<&str> {
        self.name_in(AGENT)
    }

    /// Its name, if it is of this kind.
    #[must_use]
    pub fn name_in(&self, kind: &str) -> Option<&str> {
        self.0.strip_prefix(kind)?.strip_prefix('/')
    }
}

impl FromStr for StreamId {
    type Err = BadStreamId;

    fn from_str(text: &str) -> Result<StreamId, BadStreamId> {
        let names_stream = match text.split_once('/') {
            None => text == HOME,
            Some((KEY, digest)) => digest.parse::<Hash>().is_ok(),
            Some((kind, name)) => is_kind(kind) && AgentId::new(name).is_ok(),
        };
        if names_stream {
            Ok(StreamId(Arc::from(text)))
        } else {
            Err(BadStreamId { text: text.chars().take(80).collect() })
        }
    }
}

/// A word that does not sort before `agent`.
fn is_kind(kind: &str) -> bool {
    kind >= AGENT && kind.len() <= 16 && kind.bytes().all(|byte| byte.is_ascii_lowercase())
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
