//! Every operator message ends in exactly one visible answer, or one visible reason why not; an answer that takes its
//! time is acknowledged, and comes when what was waited for has come.

use crate::story::{Story, check};

/// The briefs to the operator, and the message that each is about.
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
    agent.state.planes.briefs.iter().map(line).collect()
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
        fail invalid";
    assert_eq!(told(story), ["m1 ack: Waiting.", "m1 failure: invalid: no"]);
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

/// Nothing said is no answer: the model is asked once more, and then its asker is told.
#[test]
fn an_empty_answer_is_asked_for_again_and_then_told_as_none() {
    assert_eq!(told("operator hi\nround\nround hello"), ["m1 result: hello"]);
    let none = "m1 failure: The model's answer was empty, 2 times: neither text nor a call; ask again, or choose \
                another model.";
    assert_eq!(told("operator hi\nround\nround"), [none]);
    check(
        "operator hi
         ---
         round
         effects
         round
         closure",
        "call model exec1 round 2
         end provider_failed_needs_recovery
         processed m1
         told failure: The model's answer was empty, 2 times: neither text nor a call; ask again, or choose another model.
         Sleep no_pending_scheduler_facts
         failed sleeping",
    );
}

#[test]
fn an_answer_that_went_into_thinking_is_told_with_what_to_do() {
    let none = "m1 failure: The model's answer was empty, 2 times: it had written as much as it may before it said \
                anything; raise max_output_tokens for it in config.toml.";
    assert_eq!(told("operator hi\nround cut=yes\nround cut=yes"), [none]);
}

/// Some models end with nothing after their calls. What was done stands; nobody is told that the model said something.
#[test]
fn an_empty_end_after_calls_is_no_word_of_the_model() {
    let nothing = "(Nothing was said after the last tool calls; the transcript has them.)";
    let story = "operator hi\nround Tool look\ntool call1\nround\nround";
    assert_eq!(told(story), [format!("m1 result: {nothing}")]);
    let story = "operator hi\nround look ; Tool look\ntool call1\nround\nround";
    assert_eq!(told(story), [format!("m1 result: look\n\n{nothing}")]);
    // It is asked only where somebody waits for a word.
    check(
        "event news
         ---
         round",
        "end completed
         processed m1
         Sleep no_pending_scheduler_facts",
    );
    // A sleep is an end that the model chose.
    assert_eq!(told("operator hi\nround Sleep"), [format!("m1 result: {nothing}")]);
}

#[test]
fn a_turn_that_put_its_answer_off_need_not_say_more() {
    let story = "
        operator build it
        round WaitFor external c1 ; Tool look
        tool call2
        event done corr=c1
        round
        round it is built";
    assert_eq!(told(story), ["m1 ack: Waiting.", "m1 result: it is built"]);
}

/// Messages that joined the turn have to be heard first; that is asking again.
#[test]
fn an_empty_answer_before_an_interjection_is_not_counted_against_it() {
    let story = "operator hi\ninterject and this\nround\nround\nround both";
    assert_eq!(told(story), ["m1 result: both"]);
}

/// The first question has its answer before the interjection is heard: neither takes the other's away.
#[test]
fn an_answer_that_an_interjection_finds_is_told_with_its_own() {
    let story = "operator hi\ninterject and this\nround paris\ninterject and that\nround four\nround red";
    assert_eq!(told(story), ["m1 result: paris\n\nfour\n\nred"]);
    let unanswered = "operator hi\ninterject and this\nround paris\nround\nround";
    assert_eq!(
        told(unanswered),
        ["m1 result: paris\n\n(Nothing was said after the last tool calls; the transcript has them.)"]
    );
    // Text beside a call is no answer.
    let called = "operator hi\ninterject and this\nround let me see ; Tool look\ntool call1\nround four";
    assert_eq!(told(called), ["m1 result: four"]);
}

#[test]
fn a_cut_answer_says_so_to_whoever_reads_it() {
    check(
        "operator hi
         ---
         round as far as cut=yes
         notes
         operator go on
         round the rest
         notes",
        "end completed
         processed m1
         told result: as far as (cut)
         Sleep no_pending_scheduler_facts
         the answer of turn 1 is cut: the model had written as much as it may; raise max_output_tokens for  in config.toml
         queued m2 operator_prompt
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: the rest
         Sleep no_pending_scheduler_facts",
    );
}
