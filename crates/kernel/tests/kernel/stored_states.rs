//! The stored form of the state: `tests/stored/states.jsonl` was written by a version whose state was one flat struct. Its
//! lines together have every field of the state and of a turn, and every phase of a turn.

use abide_kernel::AgentState;
use abide_kernel::pack::pack;

const STATES: &str = include_str!("../stored/states.jsonl");

#[test]
fn a_stored_state_is_written_as_it_was_read() {
    for line in STATES.lines() {
        let state = AgentState::from_snapshot(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(state.snapshot()).unwrap(), line);
    }
}

#[test]
fn a_packed_state_is_the_same_state() {
    for line in STATES.lines() {
        let packed = pack(line.as_bytes()).unwrap();
        let state = AgentState::from_snapshot(&packed).unwrap();
        assert_eq!(state, AgentState::from_snapshot(line.as_bytes()).unwrap());
        assert_eq!(String::from_utf8(state.snapshot()).unwrap(), line);
    }
}
