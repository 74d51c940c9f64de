//! Summaries and checkpoints change what a model sees, and nothing else: the scenarios of the scheduler's contract, each
//! told as it is and with a summary made at every point of it.

use abide_kernel::Fact;

use crate::story::{Story, tell};

/// However often and wherever it is summarised, the story comes out the same.
#[track_caller]
fn nobody_notices(story: &str, expected: &[&str]) {
    let lines: Vec<&str> = story.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let plain = tell(story);
    for wanted in expected {
        assert!(plain.iter().any(|line| line.contains(wanted)), "{wanted} is not in\n{}", plain.join("\n"));
    }
    for at in 0..=lines.len() {
        let mut summarised = lines.clone();
        summarised.insert(at, "compact");
        assert_eq!(tell(&summarised.join("\n")), plain, "summarised before line {at}");
    }
}

#[test]
fn a_task_result_rejoins_its_work_after_a_summary() {
    nobody_notices(
        "operator hi
         round CreateWorkItem build
         round PickWorkItem w1
         task t1 item=w1
         task t1 runs
         round WaitFor task t1
         task t1 ends
         round done
         owed
         decide",
        &["result of t1", "turn resume_expected_wait of w1"],
    );
}

#[test]
fn a_queued_item_is_offered_after_a_summary_and_not_focused() {
    nobody_notices(
        "operator hi
         round CreateWorkItem one
         round PickWorkItem w1
         round CreateWorkItem two
         round WaitFor external c1
         on
         decide",
        &["queued_available w2"],
    );
}

#[test]
fn a_wake_hint_keeps_where_it_came_from_after_a_summary() {
    nobody_notices(
        "operator hi
         wake source=deploys it is out
         round done
         round seen
         decide",
        &["hint deploys coalesced", "wake_hint as next wake_hint:deploys:1"],
    );
}

#[test]
fn an_update_of_the_item_voids_a_checkpoint_after_a_summary() {
    nobody_notices(
        "person CreateWorkItem build
         checkpoint
         round UpdateWorkItem w1 plan=other
         round done",
        &["end completed"],
    );
    let held = tell("person CreateWorkItem build\ncheckpoint\ncompact\nround done");
    assert!(held.iter().any(|line| line == "end completed checkpoint"), "{held:?}");
    let void = tell("person CreateWorkItem build\ncheckpoint\ncompact\nround UpdateWorkItem w1 plan=other\nround done");
    assert!(void.iter().any(|line| line == "end completed"), "{void:?}");
}

#[test]
fn each_summary_is_the_next() {
    let mut story = Story::begin();
    for _ in 0..3 {
        story.tell("compact").unwrap();
    }
    let epoch = |(_, fact): &(_, Fact)| if let Fact::ContextCompacted(made) = fact { Some(made.epoch) } else { None };
    let epochs: Vec<u64> = story.facts.iter().filter_map(epoch).collect();
    assert_eq!(epochs, [1, 2, 3]);
}
