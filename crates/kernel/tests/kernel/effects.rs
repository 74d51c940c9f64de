//! Effects that facts ask of the world, where the story's other tests do not look.

use crate::story::{Story, tell};

fn told(lines: &str) -> Story {
    let mut story = Story::begin();
    lines.lines().for_each(|line| story.tell(line.trim()).unwrap());
    story
}

/// The effects of the last line.
fn effects(lines: &str) -> String {
    tell(&format!("{lines}\n---\neffects")).join("\n")
}

#[test]
fn a_command_is_awaited_and_closed_and_a_child_is_neither() {
    assert_eq!(effects("operator hi\ntask t1\ntask t1 runs"), "await t1");
    assert_eq!(effects("operator hi\ntask t1 child=a.1\ntask t1 runs"), "");
    for how in ["completed", "failed", "cancelled", "interrupted"] {
        let ended = |task: &str| effects(&format!("operator hi\n{task}\ntask t1 runs\ntask t1 ends {how}"));
        assert_eq!((ended("task t1").as_str(), ended("task t1 child=a.1").as_str()), ("close t1", ""), "{how}");
    }
}

/// A command that a call became runs already.
#[test]
fn a_command_is_started_unless_a_call_became_it() {
    assert_eq!(effects("task t1 command=make"), "start t1 make");
    assert_eq!(effects("operator hi\nround Tool build\ntask t1 command=make call=call1"), "");
}

/// It came to run after it was asked to end, or after its end was recorded.
#[test]
fn a_command_that_starts_late_is_awaited_or_closed() {
    let asked = "operator hi\ntask t1\ntask t1 runs\nperson StopTask t1";
    assert_eq!(effects(asked), "end t1");
    assert_eq!(effects(&format!("{asked}\ntask t1 runs")), "await t1");
    assert_eq!(effects(&format!("{asked}\nperson StopTask t1")), "end t1 force");
    assert_eq!(effects(&format!("{asked}\ntask t1 ends\ntask t1 runs")), "close t1");
    assert_eq!(effects("operator hi\ntask t1\ntask t1 runs\ntask t1 runs"), "");
}

/// While it writes in a folder for an item, a model's call knows where.
#[test]
fn a_call_knows_its_place_while_it_writes_for_an_item() {
    let placed = |lines: &str| told(lines).model_call().place.is_some();
    assert!(!placed("operator hi"));
    assert!(!placed("use shop\noccupy shop\noperator hi"));
    assert!(!placed("person CreateWorkItem build"));
    assert!(placed("use shop\noccupy shop\nperson CreateWorkItem build"));
}

#[test]
fn a_call_is_about_its_message_and_what_joined_it() {
    let mut story = told("operator hi");
    story.tell("interject wait").unwrap();
    story.tell("round Tool look").unwrap();
    story.tell("tool call1").unwrap();
    let call = story.model_call();
    let texts: Vec<_> = call.interjections.iter().map(|message| message.text.as_deref().unwrap()).collect();
    assert_eq!((call.message.text.as_deref(), texts), (Some("hi"), vec!["wait"]));
    assert!(call.situation.is_some());
    assert!(!call.money_limited);
    let limited = told("budget micro_usd=5\noperator hi");
    assert!(limited.model_call().money_limited);
}
