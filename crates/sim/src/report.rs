//! The report of a run: counts if all invariants held, or a failure with its history.

/// Something that must not happen, happened.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub history: Vec<String>,
}

/// Counts of what happened in a run.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub facts: u64,
    pub commits: u64,
    pub crashes: u64,
    pub turns: u64,
    pub messages: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.facts += other.facts;
        self.commits += other.commits;
        self.crashes += other.crashes;
        self.turns += other.turns;
        self.messages += other.messages;
    }
}
