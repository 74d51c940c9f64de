//! Reports on the ledger as a whole.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, Seq};
use crate::vocabulary::Status;

/// The size of the ledger, and the state of its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerStats {
    pub streams: u64,
    pub facts: u64,
    /// Everything on disk: database, log, segments, blobs.
    pub bytes: u64,
    pub blobs: u64,
    pub blob_bytes: u64,
    pub segments: u64,
    pub segment_bytes: u64,
    pub snapshots: u64,
    pub database_bytes: u64,
    /// Streams whose rows another version made and that are yet to be rebuilt.
    pub outdated_rows: u64,
    /// Of these, streams whose rows can't be rebuilt because their facts can't be read.
    pub unreadable_rows: u64,
    /// Rows that were found damaged since the ledger was opened.
    pub damaged_rows: u64,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerVerification {
    pub intact: bool,
    pub streams: u64,
    pub facts: u64,
    pub segments: u64,
    pub blobs: u64,
    pub snapshots: u64,
    pub rows: u64,
    /// Streams whose rows another version made. Their rows were not compared.
    pub outdated_rows: u64,
    /// Facts that were cut out on purpose: no damage.
    pub redacted: Vec<String>,
    pub damage: Vec<String>,
    /// Damage beyond what is listed.
    pub more_damage: u64,
}

/// The facts that a compaction moved, and the segments that it wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerCompaction {
    pub segments: u64,
    pub facts: u64,
    /// Of the segments.
    pub bytes: u64,
}

/// An agent that was made from the past of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    pub agent_id: AgentId,
    pub parent: AgentId,
    pub at_seq: Seq,
    pub status: Status,
}
