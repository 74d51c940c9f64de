//! Posture and closure: one for each thing that an agent can stand at, and which of several comes first.

use crate::story::tell;

/// Posture and closure after the story.
#[track_caller]
fn check(story: &str, posture: &str, closure: &str) {
    let told = tell(&format!("{story}\n---\nposture\nclosure"));
    assert_eq!(told, [posture, closure], "{story}");
}

const ITEM: &str = "person CreateWorkItem build";

#[test]
fn each_cause_stands_alone() {
    check("", "idle", "completed sleeping");
    check("stop", "archived", "completed sleeping");
    check("operator hi", "active_turn", "none awake");
    check("operator hi\nround done", "idle", "completed sleeping");
    check("stop\noperator hi\nstart\nquarantine broken", "archived", "failed sleeping");
}

#[test]
fn waits_count_whether_of_the_agent_or_of_an_item() {
    for (wait, posture, closure) in [
        ("WaitFor external c1", "waiting_for_external", "waiting awaiting_external_change sleeping"),
        ("WaitFor operator", "waiting_for_operator", "waiting awaiting_operator_input sleeping"),
        ("WaitFor timer after=1h", "blocked", "waiting awaiting_timer sleeping"),
        ("Sleep 1h", "blocked", "waiting awaiting_timer sleeping"),
    ] {
        check(&format!("operator hi\nround {wait}"), posture, closure);
        check(&format!("{ITEM}\nround {wait}"), posture, closure);
    }
    let (posture, closure) = ("waiting_for_task", "waiting awaiting_task_result sleeping");
    check("task t1\ntask t1 runs\noperator hi\nround WaitFor task t1", posture, closure);
    check(&format!("task t1\ntask t1 runs\n{ITEM}\nround WaitFor task t1"), posture, closure);
}

#[test]
fn items_that_a_person_or_time_has_to_help() {
    let operator = "waiting awaiting_operator_input sleeping";
    check("person CreateWorkItem status=needs_input build", "waiting_for_operator", operator);
    let spent = format!("{ITEM}\nround a\nadvance 30s\nround b\nadvance 2m\nround c\nadvance 10m\nround d");
    check(&spent, "waiting_for_operator", operator);
    check(&format!("{ITEM}\nround UpdateWorkItem w1 blocked=rain\nround done"), "blocked", operator);
    let recheck = format!("{ITEM}\nround UpdateWorkItem w1 blocked=rain recheck=2h\nround done");
    check(&recheck, "blocked", "waiting awaiting_timer sleeping");
    check("person RequestApproval deploy", "waiting_for_operator", operator);
}

#[test]
fn the_nearest_cause_comes_first() {
    // A task before something outside, that before a person, and a person before time.
    let two = |first: &str, second: &str| format!("task t1\ntask t1 runs\n{ITEM}\nround {first} ; {second}");
    check(&two("WaitFor external c1", "WaitFor task t1"), "waiting_for_task", "waiting awaiting_task_result sleeping");
    let person = "waiting awaiting_operator_input sleeping";
    check("operator hi\nround WaitFor external c1\nperson RequestApproval deploy", "waiting_for_external", person);
    check("operator hi\nround Sleep 1h\nperson RequestApproval deploy", "waiting_for_operator", person);
    let stuck = format!("{ITEM}\nround UpdateWorkItem w1 blocked=rain\nround done\nperson CreateTimer after=1h tea");
    check(&stuck, "blocked", person);
}
