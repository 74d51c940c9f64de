//! The sentence of `why` for an agent whose turns wait for room on a disk. The evidence, which names the disk, is made by the
//! watch over commands (`effects/src/process/disk.rs`).

use crate::fact::DiskShort;
use crate::state::AgentState;

pub(super) fn waits_for_room(state: &AgentState, short: &DiskShort) -> String {
    format!(
        "{} waits for room on a disk ({}): a command of it that took a lot of it was ended; it goes on by itself when there is \
         room, so delete something.",
        state.id(),
        short.evidence
    )
}
