//! Bugs to switch on in tests, so that a simulator can prove that it would see them.

/// Planted bugs of a memory ledger with manual sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Answers before the sync.
    EarlyAck,
    /// A sync loses its last commit, and acknowledges it.
    LostTail,
    /// A crash leaves the first append of a commit that has several.
    PartialCommit,
}

impl Bug {
    pub const ALL: [Bug; 3] = [Bug::EarlyAck, Bug::LostTail, Bug::PartialCommit];
}
