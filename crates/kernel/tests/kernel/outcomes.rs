//! The outcome of a message: one story for each, and for each way from one to another. Every other story checks beside
//! its own lines that a message which left the state is settled, and stays so.

use crate::story::tell;

/// The outcomes that a story asks for, line by line.
#[track_caller]
fn check(story: &str, expected: &str) {
    let told = tell(story);
    let told: Vec<&str> = told.iter().filter_map(|line| line.strip_prefix("outcome ")).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(told, expected);
}

#[test]
fn an_answer() {
    check("operator hi\noutcome m1\nround hello\noutcome m1", "under way: a is running a turn.\nanswered: hello");
    check("operator hi\nround as far cut=yes\noutcome m1", "answered (cut): as far");
}

#[test]
fn an_answer_that_was_put_off() {
    check(
        "operator build it
         round on it ; WaitFor external c1
         outcome m1
         event done corr=c1
         outcome m1
         round WaitFor timer after=1h
         outcome m1
         advance 2h
         round it is built
         outcome m1",
        "under way, on wait1: a sleeps until something outside happens (c1): later.
         under way: a is running a turn.
         under way, on wait2: a sleeps until +3600s.
         answered: it is built",
    );
}

/// The operator's next message is answered itself, and with it the one before.
#[test]
fn a_question_to_a_person_and_its_answer() {
    check(
        "operator deploy
         round really? ; WaitFor operator
         outcome m1
         operator yes
         outcome m1
         round deployed
         outcome m1
         outcome m2",
        "waits for a person: a waits for your answer: later
         under way: a is running a turn.
         answered: deployed
         answered: deployed",
    );
}

#[test]
fn a_question_is_one_while_a_turn_about_something_else_runs() {
    check(
        "operator deploy\nround really? ; WaitFor operator\nperson CreateTimer tea after=1h\nadvance 2h\noutcome m1",
        "waits for a person: a waits for your answer: later",
    );
}

#[test]
fn a_wait_that_ends_without_its_answer() {
    check(
        "operator build it
         round on it ; WaitFor external c1
         operator how far is it
         outcome m1
         round half of it
         outcome m1
         outcome m2
         person CancelWait wait1
         outcome m1
         round then not
         outcome m1",
        "under way, on wait1: a is running a turn.
         under way, on wait1: a sleeps until something outside happens (c1): later.
         answered: half of it
         under way: a is running a turn.
         answered: then not",
    );
}

/// The second wait of the first turn brings another brief; the message stays answered by the first one.
#[test]
fn an_answered_message_stays_answered() {
    check(
        "operator build both
         round on it ; WaitFor external c1 ; WaitFor external c2
         event one corr=c1
         round the first is built
         outcome m1
         event two corr=c2
         outcome m1
         fail invalid
         outcome m1",
        "answered: the first is built
         answered: the first is built
         answered: the first is built",
    );
}

#[test]
fn a_failure() {
    check("operator hi\nfail invalid\noutcome m1", "failed invalid: invalid: no");
    let empty = "The model's answer was empty, 2 times: neither text nor a call; ask again, or choose another model.";
    check("operator hi\nround\nround\noutcome m1", &format!("failed: {empty}"));
    let after_wait = "operator build it\nround WaitFor external c1\nevent done corr=c1\nfail invalid";
    check(&format!("{after_wait}\noutcome m1\noutcome m2"), "failed invalid: invalid: no\nfailed invalid: invalid: no");
    check("event news\nfail refusal\noutcome m1", "failed refusal: refusal: no");
}

#[test]
fn a_provider_that_is_asked_again_later() {
    check(
        "operator hi\nfail overloaded\noutcome m1\nadvance 1h\noutcome m1\nround here\noutcome m1",
        "under way: a waits until +2s and asks again then: its model failed (overloaded: no).
         under way: a is running a turn.
         answered: here",
    );
    // Also for an answer that was put off.
    check(
        "operator hi\nround WaitFor external c1\nevent done corr=c1\nfail overloaded\noutcome m1",
        "under way: a waits until +2s and asks again then: its model failed (overloaded: no).",
    );
}

#[test]
fn a_key_that_does_not_work() {
    check(
        "operator hi\nfail auth\noutcome m1\nadvance 1h\noutcome m1\nround here\noutcome m1",
        "waits for a person auth: a has no model with a key that works (auth: no); 1 message waits, and nothing is lost. Set the key, then `abide daemon restart`, or `abide model test` if it works by now; it is tried again at +600s.
         under way: a is running a turn.
         answered: here",
    );
}

#[test]
fn the_budget_of_the_home() {
    check(
        "operator hi\nfail home_budget_spent\noutcome m1",
        "budget spent home_budget_spent: a may ask no model until +86400s, because the home has spent its budget of the day (home_budget_spent: no); 1 message waits. Raise it to go on: `abide config set budget.daily_usd N`, then `abide daemon restart`.",
    );
}

#[test]
fn the_budget_of_the_agent() {
    let spent =
        "budget spent: a has used up its budget: 1 of 1 turns. Raise it to go on: `abide agent set a --max-turns N`.";
    check(
        "budget turns=1\noperator hi\nround hello\noperator more\noutcome m1\noutcome m2\nbudget turns=2\noutcome m2",
        &format!("answered: hello\n{spent}\nunder way: a is running a turn."),
    );
    check("budget turns=1\noperator hi\nround WaitFor external c1\noutcome m1", spent);
}

#[test]
fn a_disk_without_room() {
    let told = tell("disk full after=1h\noperator hi\noutcome m1");
    let last = told.last().unwrap();
    assert!(last.starts_with("outcome under way") && last.contains("disk"), "{told:?}");
}

#[test]
fn a_stop_and_a_start() {
    let stopped = "stopped: a is stopped; m1 is kept, and read once it starts: `abide agent start a`";
    check(
        "operator hi\nstop\noutcome m1\nstart\noutcome m1\nround here\noutcome m1",
        &format!("{stopped}\nunder way: a is running a turn.\nanswered: here"),
    );
    check(
        "operator hi\nround WaitFor external c1\nstop\noutcome m1\nstart\noutcome m1",
        &format!("{stopped}\nunder way, on wait1: a sleeps until something outside happens (c1): later."),
    );
}

#[test]
fn an_abort() {
    check("operator hi\nabort\noutcome m1", "aborted");
    check(
        "operator build it\nround WaitFor external c1\nevent done corr=c1\nabort\noutcome m1\noutcome m2",
        "aborted\naborted",
    );
}

#[test]
fn a_message_that_is_given_up() {
    let given_up = "waits for a person: Your message \"hi\" was given up: the process ended 3 times while it was being worked on. To send it again: abide send a 'hi'";
    check("operator hi\ncrash\ncrash\ncrash\noutcome m1", given_up);
    let told =
        tell("operator build it\nround WaitFor external c1\nevent done corr=c1\ncrash\ncrash\ncrash\noutcome m1");
    let last = told.last().unwrap();
    assert!(
        last.starts_with("outcome waits for a person: A message (webhook_event) \"done\" was given up"),
        "{told:?}"
    );
}

#[test]
fn a_turn_that_goes_in_circles() {
    let stubborn = |first: u32| {
        let run = (first..first + 3).map(|call| format!("round Tool look\ntool call{call}\n"));
        format!("{}{}", run.collect::<String>(), "round Tool look\n".repeat(12))
    };
    let circles = "waits for a person: The turn went in circles: 12 calls were not run because they had come to the same result before. Say what it should do instead.";
    check(&format!("operator hi\n{}outcome m1", stubborn(1)), circles);
    let after_wait = "operator build it\nround WaitFor external c1\nevent done corr=c1\n";
    check(&format!("{after_wait}{}outcome m1\noutcome m2", stubborn(2)), &format!("{circles}\n{circles}"));
}

#[test]
fn an_interjection_ends_as_the_message_that_it_joined() {
    check(
        "operator a
         interject b
         outcome m2
         round Tool make
         outcome m2
         tool call1
         round done
         outcome m1
         outcome m2",
        "under way: a is running a turn.
         under way, joined m1: a is running a turn; under way in it: Tool.
         answered: done
         answered: done",
    );
    // Its answer is put off with that of the other.
    check(
        "operator a
         interject b
         round Tool make
         tool call1
         round on it ; WaitFor external c1
         outcome m2
         event done corr=c1
         round both
         outcome m2",
        "under way, joined m1, on wait1: a sleeps until something outside happens (c1): later.
         answered: both",
    );
}

#[test]
fn an_interjection_in_a_turn_that_fails_has_a_turn_of_its_own() {
    check(
        "operator a\ninterject b\nround Tool make\ntool call1\nfail invalid\noutcome m1\noutcome m2\nround b\noutcome m2",
        "failed invalid: invalid: no\nunder way: a is running a turn.\nanswered: b",
    );
}

#[test]
fn an_interjection_in_a_turn_that_answers_nobody_is_answered_by_it() {
    check(
        "event news\ninterject b\nround Tool make\ntool call1\nround noted\noutcome m1\noutcome m2",
        "answered: noted\nanswered: noted",
    );
}

#[test]
fn a_parked_message() {
    let parked = "under way, on wait1: a waits for your answer: later 1 message is parked behind what it waits for.";
    check(
        "operator build it\nround WaitFor operator\nevent news\noutcome m2\noperator yes\nround done\noutcome m2\nround noted\noutcome m2",
        &format!("{parked}\nunder way: a is running a turn.\nanswered: -"),
    );
}

#[test]
fn an_event_that_needs_no_turn() {
    check("event\noutcome m1", "answered: -");
}
