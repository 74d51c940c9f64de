//! Every operator message ends in exactly one visible answer, or one visible reason why not; an answer that takes its
//! time is acknowledged, and comes when what was waited for has come.

use crate::story::Story;

/// What the operator was told, and about which of their messages.
#[track_caller]
fn told(story: &str) -> Vec<String> {
    let mut agent = Story::begin();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        agent.tell(line).unwrap();
    }
    let line = |brief: &abide_kernel::fact::BriefRecorded| {
        let about = brief.message_id.as_ref().map(|id| agent.short(id.as_str())).unwrap_or_default();
        format!("{about} {}: {}", brief.kind, brief.text)
    };
    agent.state.briefs.iter().map(line).collect()
}

#[test]
fn a_plain_turn_answers_its_message() {
    assert_eq!(told("operator hi\nround hello"), ["m1 result: hello"]);
}

#[test]
fn a_turn_that_waits_acknowledges_and_the_turn_after_the_wait_answers() {
    let story = "
        operator build it
        round on it ; WaitFor external c1
        event done corr=c1
        round it is built";
    assert_eq!(told(story), ["m1 ack: on it", "m1 result: it is built"]);
}

#[test]
fn an_answer_may_be_put_off_more_than_once_and_is_acknowledged_once() {
    let story = "
        operator build it
        round WaitFor external c1
        event done corr=c1
        round WaitFor timer after=1h
        advance 2h
        round it is built";
    assert_eq!(told(story), ["m1 ack: Waiting.", "m1 result: it is built"]);
}

#[test]
fn a_replay_owes_what_it_owed() {
    let story = "
        operator build it
        round WaitFor external c1
        event done corr=c1
        boot
        round it is built";
    assert_eq!(told(story), ["m1 ack: Waiting.", "m1 result: it is built"]);
}

#[test]
fn a_wait_that_somebody_cancels_does_not_swallow_the_answer() {
    let story = "
        operator build it
        round WaitFor external c1
        person CancelWait wait1
        round then not";
    assert_eq!(told(story), ["m1 ack: Waiting.", "m1 result: then not"]);
}

#[test]
fn a_failure_after_the_wait_is_told_about_the_message() {
    let story = "
        operator build it
        round WaitFor external c1
        event done corr=c1
        fail auth";
    assert_eq!(told(story), ["m1 ack: Waiting.", "m1 failure: auth: no"]);
}

/// Nothing stands between: what was said last is the answer.
#[test]
fn a_sleep_without_an_end_ends_the_turn_with_its_answer() {
    assert_eq!(told("operator hi\nround enough ; Sleep"), ["m1 result: enough"]);
}

/// The operator answers a question: that message is what the rest answers.
#[test]
fn an_operator_who_answers_a_question_is_answered_themselves() {
    let story = "
        operator deploy
        round really? ; WaitFor operator
        operator yes
        round deployed";
    assert_eq!(told(story), ["m1 ack: really?", "m2 result: deployed"]);
}

#[test]
fn nobody_is_told_of_turns_that_nobody_asked_for() {
    assert_eq!(told("event news\nround noted"), Vec::<String>::new());
}
