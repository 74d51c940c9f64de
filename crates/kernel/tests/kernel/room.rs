//! How much of the past a model is shown: tokens as they are guessed, and what gives way at which size.

use abide_kernel::Fact;
use abide_kernel::fact::CallRecord;
use abide_kernel::id::CallId;
use abide_kernel::limits::{RESULT_PREVIEW_BYTES, RESULT_SHOWN_BYTES, SUMMARY_BYTES};
use abide_kernel::prompt::assemble::{Guide, Material, Older, Room, Shown, Surroundings, digest, summary_request};
use abide_kernel::prompt::measure::{tokens, tokens_of};
use abide_kernel::prompt::situation::{Situation, Summary};
use abide_kernel::prompt::talk::{Talk, Told};
use abide_kernel::prompt::{CallResult, Image, Item, Part, SealedReasoning};
use abide_kernel::state::token_calibration::TokenCalibration;
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use crate::golden::golden;
use crate::prompt::{calls, finish, items, long_turn, narrow, ready, said, shown_in, story, talk, text, told};
use crate::story::Story;

#[test]
fn letters_are_guessed_as_tokens() {
    for (text, expected) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("日本語", 3), ("日本 abcd", 4)]
    {
        assert_eq!(tokens(text), expected, "{text:?}");
    }
}

#[test]
fn every_part_of_an_item_is_counted() {
    let image = || Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let call =
        |input: Value| CallRecord { call_id: CallId::new("call_1"), tool: "Read".to_owned(), input: input.into() };
    let result = |content: &str, images: usize| CallResult {
        call_id: CallId::new("call_1"),
        content: content.to_owned(),
        failed: false,
        images: vec![image(); images],
    };
    let heard = |parts| tokens_of(&Item::User { parts });
    assert_eq!(heard(vec![]), 8);
    assert_eq!(heard(vec![Part::Text("abcd".to_owned()), Part::Text("abcde".to_owned())]), 8 + 1 + 2);
    assert_eq!(heard(vec![Part::Text("abcd".to_owned()), Part::Image(image())]), 8 + 1 + 1_600);
    let spoke = |calls: Vec<CallRecord>, sealed: Option<Value>| {
        let thought = sealed.map(|sealed| SealedReasoning { model: "p/m".to_owned(), sealed: sealed.into() });
        tokens_of(&Item::Assistant { text: "abcd".to_owned(), calls, thought })
    };
    assert_eq!(spoke(vec![], None), 8 + 1);
    // `{"path":"a"}` has 12 letters.
    let (one, other) = (call(json!({ "path": "a" })), call(json!({ "path": "abcdef" })));
    assert_eq!(spoke(vec![one.clone()], None), 8 + 1 + (8 + 3));
    assert_eq!(spoke(vec![one, other], None), 8 + 1 + (8 + 3) + (8 + 5));
    assert_eq!(spoke(vec![], Some(json!("abcdefghij"))), 8 + 1 + 3);
    assert_eq!(spoke(vec![call(json!({}))], Some(json!("日本"))), 8 + 1 + (8 + 1) + 3);
    let results = |results| tokens_of(&Item::Results { results });
    assert_eq!(results(vec![]), 8);
    assert_eq!(results(vec![result("abcd", 0), result("", 2)]), 8 + (8 + 1) + (8 + 3_200));
}

#[test]
fn guesses_fade_by_a_quarter_and_are_those_of_one_model() {
    let mut measure = TokenCalibration::default();
    measure.learn(Some("p/m"), 1_000, 1_600);
    measure.learn(Some("p/m"), 1_000, 500);
    assert_eq!((measure.estimated, measure.counted), (1_750, 1_700));
    assert_eq!(measure.corrected(700), 680);
    measure.learn(Some("p/other"), 800, 400);
    let other = TokenCalibration { model: Some("p/other".to_owned()), estimated: 800, counted: 400 };
    assert_eq!(measure, other);
    measure.learn(Some("p/other"), 800, 0);
    measure.learn(Some("p/other"), 0, 800);
    assert_eq!(measure, other);
    measure.learn(None, 1_000, 100);
    assert_eq!((measure.corrected(1_000), measure.corrected(10)), (250, 2), "by four times at most");
    assert_eq!(TokenCalibration { counted: 7, ..TokenCalibration::default() }.corrected(9), 9);
}

fn shown(story: &Story, room: Room) -> Shown {
    shown_in(story, room, &Surroundings::default())
}

/// The tokens that it takes when there is room for all of it, tools aside.
fn whole(story: &Story) -> u64 {
    ready(shown(story, narrow(1_000_000))).estimated_tokens
}

#[test]
fn a_turn_fits_into_exactly_the_room_it_takes() {
    let story = story("operator hi");
    let least = whole(&story);
    for tools_tokens in [0, 70] {
        let room = |budget_tokens| Room { budget_tokens, tools_tokens };
        assert_eq!(ready(shown(&story, room(least + tools_tokens))).estimated_tokens, least + tools_tokens);
        let missing = shown(&story, room(least + tools_tokens - 1));
        let (needed_tokens, budget_tokens) = (least + tools_tokens, least + tools_tokens - 1);
        assert_eq!(missing, Shown::TooMuch { needed_tokens, budget_tokens });
    }
}

#[test]
fn the_least_of_a_long_turn_is_what_it_says_it_needs() {
    for rounds in [1, 2, 3, 5] {
        let story = long_turn(rounds, 100_000);
        let Shown::TooMuch { needed_tokens, budget_tokens: 900 } = shown(&story, narrow(900)) else {
            panic!("{rounds} rounds fit")
        };
        let made = ready(shown(&story, narrow(needed_tokens)));
        assert_eq!(made.estimated_tokens, needed_tokens, "{rounds} rounds");
        assert_eq!(made.checkpoint.map(|made| made.through_round), (rounds > 2).then(|| rounds as u32 - 2));
        let missing = shown(&story, narrow(needed_tokens - 1));
        assert_eq!(missing, Shown::TooMuch { needed_tokens, budget_tokens: needed_tokens - 1 }, "{rounds} rounds");
    }
}

/// A recap is made only where the rounds as they are do not fit, and leaves a quarter of the room.
#[test]
fn rounds_are_shown_whole_as_long_as_they_fit() {
    let story = long_turn(8, 4_000);
    let all = whole(&story);
    assert_eq!(ready(shown(&story, narrow(all))).checkpoint, None);
    let made = ready(shown(&story, narrow(all - 1)));
    let base = whole(&{ crate::prompt::story("operator read it all") });
    let made_through = made.checkpoint.expect("a recap").through_round;
    assert!((2..=4).contains(&made_through), "{made_through}");
    let rounds = made.estimated_tokens - base;
    assert!(rounds * 4 <= (all - base) * 3, "{rounds} of {}", all - base);
}

/// The same request, for a model whose tokens are counted otherwise than they are guessed.
#[test]
fn the_room_is_in_tokens_as_the_provider_counts_them() {
    let story = story("operator hi");
    let (surroundings, turns) = (Surroundings::default(), talk(&told(&story)));
    let fits = |estimated, counted, budget_tokens| {
        let mut situation = Situation::of(&story.state).expect("a turn runs");
        situation.measure = TokenCalibration { model: None, estimated, counted };
        let room = narrow(budget_tokens);
        let material =
            Material { situation: &situation, surroundings: &surroundings, turns: &turns, left_out: false, room };
        match material.assemble() {
            Shown::Ready(_) => true,
            Shown::TooMuch { budget_tokens: 0, .. } | Shown::Summarise(_) => panic!("no such room"),
            Shown::TooMuch { .. } => false,
        }
    };
    let least = whole(&story);
    // How much is guessed of a real token, and the least real room that is guessed to suffice.
    for (estimated, counted, expected) in [
        (0, 0, least),
        (100, 0, least),
        (0, 100, least),
        (100, 100, least),
        (300, 200, (least * 2).div_ceil(3)),
        (200, 300, (least * 3).div_ceil(2)),
        (1_000, 1, least.div_ceil(4)),
        (1, 1_000, least * 4),
    ] {
        let (fit, missing) = (fits(estimated, counted, expected), fits(estimated, counted, expected - 1));
        assert_eq!((fit, missing), (true, false), "{estimated} guessed as {counted}");
    }
}

/// Turns of which each says its number.
fn turns_of(bytes: usize, count: usize) -> Story {
    let mut story = Story::begin();
    for number in 0..count {
        story.tell(&format!("operator question{number} {}", "x".repeat(bytes))).unwrap();
        said(&mut story, &format!("answer{number}."));
    }
    story.tell("operator last").unwrap();
    story
}

#[test]
fn earlier_turns_take_half_of_the_room_and_leave_a_fifth_when_they_are_summarised() {
    let story = turns_of(4_000, 8);
    let last = whole(&crate::prompt::story("operator last"));
    let spoken = whole(&story) - last;
    // Just half of the room, and a little more than that.
    assert!(text(&ready(shown(&story, narrow(spoken * 2))).prompt).contains("question0"));
    let fits = ready(shown(&story, narrow(spoken * 2 + 2)));
    assert!(text(&fits.prompt).contains("question0"));
    let Shown::Summarise(older) = shown(&story, narrow(spoken * 2 - 4)) else { panic!("there is room") };
    // A fifth of twice eight turns are three of them.
    assert_eq!((older.turns, older.messages), (5, 5));
    let turns = talk(&told(&story));
    assert_eq!(older.through, turns[4].last_seq);
}

fn older(turns: usize) -> Older {
    Older { turns, messages: turns as u64, through: 0 }
}

/// Bytes of the text that is to be summarised, without its heading, and which turns are in it.
fn asked(story: &Story, most_tokens: u64) -> (usize, Vec<usize>, bool) {
    let turns = talk(&told(story));
    let request = summary_request(None, &turns, &older(4), most_tokens);
    let [item] = &request.items[..] else { panic!("{request:?}") };
    let Item::User { parts } = &**item else { panic!("{item:?}") };
    let [Part::Text(text)] = &parts[..] else { panic!("{parts:?}") };
    let shown = text.strip_prefix("[abide to be summarised]\n").unwrap();
    let named = (0..6).filter(|number| shown.contains(&format!("question{number} "))).collect();
    (shown.len(), named, shown.starts_with("(earlier turns are left out)\n"))
}

#[test]
fn the_newest_turns_are_summarised_as_far_as_there_is_room() {
    let story = turns_of(3_000, 5);
    let (all, named, cut) = asked(&story, 100_000);
    assert_eq!((named, cut), (vec![0, 1, 2, 3], false));
    // Three bytes a token, the heading and a line end for each turn.
    let heading = "[abide to be summarised]\n".len();
    let exactly = u64::try_from(heading + all + 1).unwrap();
    let enough = exactly.div_ceil(3);
    assert_eq!(asked(&story, enough), (all, vec![0, 1, 2, 3], false));
    let (_, named, cut) = asked(&story, enough - 1);
    assert_eq!((named, cut), (vec![1, 2, 3], true));
    let (_, named, cut) = asked(&story, enough / 2 + 20);
    assert_eq!((named, cut), (vec![2, 3], true));
    // One is always there, as much of it as fits.
    let (length, named, cut) = asked(&story, 500);
    let left_out = "(earlier turns are left out)\n".len();
    assert_eq!((length, named, cut), (1_500 - heading + left_out, vec![3], true));
}

#[test]
fn turns_that_fill_the_room_to_the_last_byte_are_all_summarised() {
    let heading = "[abide to be summarised]\n".len();
    // A room is a multiple of three bytes.
    let filling = (3_000..3_003).map(|bytes| turns_of(bytes, 5)).find_map(|story| {
        let (all, ..) = asked(&story, 100_000);
        let needed = heading + all + 1;
        needed.is_multiple_of(3).then_some((story, all, needed as u64 / 3))
    });
    let (story, all, tokens) = filling.unwrap();
    assert_eq!(asked(&story, tokens), (all, vec![0, 1, 2, 3], false));
}

#[test]
fn a_summary_so_far_stands_before_what_happened_after_it() {
    let story = turns_of(10, 2);
    let before = Summary { text: "It began.\nIt went on.".to_owned(), messages: 3, through: 0 };
    let request = summary_request(Some(&before), &talk(&told(&story)), &older(1), 1_000);
    let shown = text(&request);
    let begins = "<user>\n[abide to be summarised]\nThe summary so far:\n| It began.\n| It went on.\n\
                  What happened after it:\n| turn 1 at ";
    assert!(shown.starts_with(begins), "{shown}");
    assert!(shown.contains("question0") && !shown.contains("question1"), "{shown}");
}

#[test]
fn a_digest_has_the_newest_turns_and_the_end_of_the_summary_before_them() {
    let story = turns_of(300, 60);
    let turns = talk(&told(&story));
    let lines = |text: &str| text.lines().filter(|line| line.starts_with("turn ")).count();
    let none = digest(None, &turns, &older(60));
    let shown = lines(&none);
    assert!(none.len() <= SUMMARY_BYTES && shown < 60 && none.contains("question59"), "{}", none.len());
    let line = none.lines().last().unwrap().len();
    assert!(SUMMARY_BYTES - none.len() <= line + 1, "another turn would have fitted");
    assert_eq!(none.len(), shown * (line + 1) - 1);
    // With few turns, the half of the room is for what was before.
    let text = format!("{}é the end", "y".repeat(SUMMARY_BYTES));
    let before = Summary { text, messages: 1, through: 0 };
    let some = digest(Some(&before), &turns, &older(2));
    assert_eq!(lines(&some), 2);
    let kept = some.split("\nturn ").next().unwrap();
    assert_eq!(kept.len(), SUMMARY_BYTES / 2);
    assert!(kept.ends_with("é the end"));
    // With many, what is left.
    let many = digest(Some(&before), &turns, &older(60));
    assert_eq!(lines(&many), shown);
    assert!(many.len() <= SUMMARY_BYTES);
    assert!(!many.contains("yyyyyyyyyy") || many.len() > none.len());
}

/// A letter that is cut in two is left out.
#[test]
fn the_end_of_the_summary_before_begins_at_a_letter() {
    let before = Summary { text: format!("{}x", "é".repeat(SUMMARY_BYTES)), messages: 1, through: 0 };
    assert_eq!(digest(Some(&before), &[], &older(0)), format!("{}x", "é".repeat(SUMMARY_BYTES / 4 - 1)));
}

/// The beginning and the end of a result, cut between letters, are as long as there is room for.
#[test]
fn a_long_result_is_shown_by_its_beginning_and_its_end() {
    for (before, after) in [("", ""), ("x", ""), ("", "x"), ("x", "x")] {
        let mut story = story("operator read");
        let ids = calls(&mut story, "", &[json!({ "path": "a" })]);
        let result = json!({ "content": format!("{before}{}{after}", "é".repeat(RESULT_SHOWN_BYTES)) });
        finish(&mut story, ids[0].clone(), result.clone());
        let items = items(&talk(&told(&story))[0]);
        let Some(Item::Results { results }) = items.last() else { panic!("{items:?}") };
        let whole = result.to_string();
        let (head, rest) = results[0].content.split_once(" …").unwrap();
        let (left_out, tail) = rest.split_once(" bytes are left out here; the records have them… ").unwrap();
        assert_eq!(left_out.parse::<usize>().unwrap(), whole.len() - head.len() - tail.len());
        assert!(whole.starts_with(head) && whole.ends_with(tail));
        let (head_most, tail_most) = (RESULT_SHOWN_BYTES * 3 / 4, RESULT_SHOWN_BYTES / 4);
        assert!((head_most - 1..=head_most).contains(&head.len()), "{}", head.len());
        assert!((tail_most - 1..=tail_most).contains(&tail.len()), "{}", tail.len());
    }
}

#[test]
fn a_digest_tells_what_was_asked_called_and_answered() {
    let mut story = story("operator build it");
    for id in calls(&mut story, "", &[json!({ "path": "a" }), json!({ "path": "b" })]) {
        finish(&mut story, id, json!({ "content": "" }));
    }
    said(&mut story, "Built.");
    story.tell("operator again").unwrap();
    said(&mut story, "No.");
    let told = digest(None, &talk(&told(&story)), &older(2));
    let mut lines = told.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("turn 1 (2026-01-01T00:00:00.00"), "{first}");
    assert!(first.ends_with("), operator: \"build it\"; calls: ReadFile x2; answer: \"Built.\""), "{first}");
    let second = lines.next().unwrap();
    assert!(second.ends_with("), operator: \"again\"; calls: none; answer: \"No.\""), "{second}");
}

/// Rounds of calls that came to each kind of end.
#[test]
fn a_summary_is_told_what_each_call_came_to() {
    let mut story = story("operator build it");
    let long = "x".repeat(500);
    for id in calls(&mut story, "Now.", &[json!({ "path": long })]) {
        let values: Vec<Value> = (0..20).map(|number| json!({ "path": format!("p{number}"), "other": 1 })).collect();
        finish(&mut story, id, json!({ "exit_code": 3, "list": values, "ok": true, "hint": long }));
    }
    calls(&mut story, "", &[json!({ "path": "cut" })]);
    story.tell("crash").unwrap();
    let turns = talk(&told(&story));
    let shown = text(&summary_request(None, &turns, &older(9), 100_000));
    let input = format!("| - ReadFile \"{{\\\"path\\\":\\\"{}\"…: completed exit_code=\"3\" hint=\"", "x".repeat(151));
    assert!(
        shown.contains(&format!("| agent: Now.\n| round 1:\n{input}{}\"… path=\"p0\"", "x".repeat(160))),
        "{shown}"
    );
    // Twelve values of one result.
    assert!(shown.contains("path=\"p9\"\n"), "{shown}");
    assert!(shown.contains("| - ReadFile \"{\\\"path\\\":\\\"cut\\\"}\": unknown: it was cut off"), "{shown}");
    assert!(shown.contains("| note: The turn was cut short here: "), "{shown}");
    assert_eq!(shown.matches("| agent: ").count(), 1, "nothing was said in the second round: {shown}");
}

/// The records as a model is shown them.
fn records(lines: &str) -> String {
    let story = story(lines);
    story.short(&Situation::of(&story.state).expect("a turn runs").records)
}

#[test]
fn of_many_records_a_dozen_is_listed_and_the_rest_counted() {
    let shown = |count: usize| records(&format!("again {count} person CreateTimer after=1h tea\noperator hi"));
    let listed = |records: &str| records.lines().filter(|line| line.starts_with("- timer")).count();
    let few = shown(12);
    assert_eq!((listed(&few), few.contains(" more")), (12, false), "{few}");
    let many = shown(14);
    assert_eq!((listed(&many), many.contains("\n- and 2 more")), (12, true), "{many}");
    assert!(!records("operator hi").contains("Timers"));
}

/// The item that a turn is about and the one in focus are told whole, and are not among the others.
#[test]
fn other_items_are_those_that_are_not_told_whole() {
    let others = |records: &str| records.lines().filter(|line| line.starts_with("- w")).count();
    let one = records("person CreateWorkItem build");
    assert!(one.contains("This turn is about the work item w1:") && !one.contains("Other open"), "{one}");
    let focused = records("stop\nperson CreateWorkItem build\nperson PickWorkItem w1\nstart");
    assert!(focused.contains("This turn is about the work item w1, in focus:"), "{focused}");
    let items = "stop\nagain 15 person CreateWorkItem build";
    let about = records(&format!("{items}\noperator item=w3 hi\nstart"));
    assert_eq!(others(&about), 12);
    assert!(about.contains("about the work item w3:") && about.contains("- and 2 more"), "{about}");
    let both = records(&format!("{items}\nperson PickWorkItem w2\noperator item=w3 hi\nstart"));
    assert!(both.contains("about the work item w3:") && both.contains("In focus is another one, w2:"), "{both}");
    assert!(both.contains("- and 1 more") && !both.contains("- w2 ") && !both.contains("- w3 "), "{both}");
}

/// A call that never began has a result all the same.
#[test]
fn a_call_that_was_not_run_says_so() {
    let mut story = story("operator build it");
    let ids = calls(&mut story, "", &[json!({ "path": "a" })]);
    finish(&mut story, ids[0].clone(), json!({ "content": "" }));
    said(&mut story, "Done.");
    let facts = told(&story).into_iter().filter(|told| told.fact.kind() != "tool.finished");
    let items: Vec<Item> = items(&talk(&facts.collect::<Vec<_>>())[0]);
    let results = items.iter().find_map(|item| if let Item::Results { results } = item { Some(results) } else { None });
    let result = &results.unwrap()[0];
    let content: Value = serde_json::from_str(&result.content).unwrap();
    assert_eq!((result.failed, &content["error"]["code"]), (true, &"not_run".into()));
}

/// After a provider refused a request of a turn, an image that comes later in the same turn is left out, too.
#[test]
fn images_that_follow_a_refused_request_are_left_out() {
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP8z8DAwMAAAAYIAQHLR3Z1AAAAAElFTkSuQmCC";
    let mut story = story("operator look");
    let ids = calls(&mut story, "", &[json!({ "path": "shot.png" })]);
    finish(&mut story, ids[0].clone(), json!({ "image": { "media_type": "image/png", "data": PNG } }));
    let images = |facts: &[Told]| {
        let items = items(&talk(facts)[0]);
        let counted = items.iter().map(|item| match item {
            Item::Results { results } => results.iter().map(|result| result.images.len()).sum(),
            Item::User { .. } | Item::Assistant { .. } => 0,
        });
        counted.sum::<usize>()
    };
    let mut facts = told(&story);
    assert_eq!(images(&facts), 1);
    let (kind, bytes) = golden().into_iter().find(|(kind, _)| kind == "turn.provider_round_failed").unwrap();
    let Fact::ProviderRoundFailed(mut failed) = Fact::decode(&kind, &bytes).unwrap() else { panic!("{kind}") };
    failed.error = ProviderError::Invalid;
    failed.exec_id = crate::prompt::turn(&story).exec_id;
    let begun = facts.iter().position(|told| told.fact.kind() == "turn.started").unwrap();
    let at = facts[begun].at;
    facts.insert(begun + 1, Told { seq: 0, at, fact: failed.into() });
    assert_eq!(images(&facts), 0);
    items_follow_the_facts(&facts);
}

/// Items that were made early are those that would be made now, after each fact.
fn items_follow_the_facts(facts: &[Told]) {
    let shown = |talk: &Talk| talk.turns.iter().map(items).collect::<Vec<_>>();
    let mut kept = Talk::default();
    for (index, fact) in facts.iter().enumerate() {
        kept.tell(fact.clone());
        let anew: Talk = facts[..=index].iter().cloned().collect();
        assert_eq!(shown(&kept), shown(&anew), "after {}", fact.fact.kind());
    }
}

#[test]
fn items_that_are_kept_follow_the_facts() {
    let mut story = story("operator read");
    for round in 0..3 {
        let inputs = [json!({ "path": "a" }), json!({ "path": "b" })];
        for (index, id) in calls(&mut story, &format!("Round {round}."), &inputs).into_iter().enumerate() {
            finish(&mut story, id, json!({ "content": index }));
        }
    }
    said(&mut story, "Read.");
    story.tell("operator and now?").unwrap();
    said(&mut story, "");
    items_follow_the_facts(&told(&story));
}

#[test]
fn what_runs_and_what_ended_is_listed() {
    let shown = records("task t1\ntask t1 runs\ntask t2\ntask t2 runs\nadvance 90s\noperator hi\ntask t2 ends failed");
    assert!(shown.contains("Running tasks:\n- t1 (running, 90 s): \"make\""), "{shown}");
    let ended = "Ended tasks whose results are on their way to you:\n- t2 (failed): \"make\"";
    assert!(shown.contains(ended), "{shown}");
    let waits = records("operator hi\nround WaitFor external c1\noperator again");
    assert!(waits.contains("Open waits:\n- wait1 for external: \"later\""), "{waits}");
    let more = records("person CreateTrigger hook\nperson RequestApproval deploy\noperator hi\noperator ho");
    assert!(more.contains("Triggers:\n- trig1 \"hook\""), "{more}");
    assert!(more.contains("Questions to a person that are open:\n- appr1: \"deploy\""), "{more}");
    assert!(more.contains("1 more messages wait in the queue"), "{more}");
}

/// Less than half of all, and exactly what the rest leaves.
#[test]
fn earlier_turns_may_fill_the_room_that_is_left() {
    let story = turns_of(4_000, 2);
    let guide = Guide { path: "AGENTS.md".to_owned(), text: "x".repeat(40_000) };
    let surroundings = Surroundings { guides: vec![guide], skills: Vec::new() };
    let of = |room: Room| shown_in(&story, room, &surroundings);
    let all = ready(of(narrow(1_000_000))).estimated_tokens;
    assert_eq!(ready(of(narrow(all))).estimated_tokens, all);
    assert!(matches!(of(narrow(all - 1)), Shown::Summarise(_)));
}

/// Where there is little room beside what is always shown, half of that is left to earlier turns.
#[test]
fn a_crowded_room_leaves_half_of_it_to_earlier_turns() {
    let story = turns_of(4_000, 8);
    let guide = Guide { path: "AGENTS.md".to_owned(), text: "x".repeat(80_000) };
    let surroundings = Surroundings { guides: vec![guide], skills: Vec::new() };
    let all = ready(shown_in(&story, narrow(1_000_000), &surroundings)).estimated_tokens;
    // Of eight turns, the room has six; half of it is three.
    let one = (whole(&story) - whole(&crate::prompt::story("operator last"))) / 8;
    let Shown::Summarise(older) = shown_in(&story, narrow(all - 2 * one + 20), &surroundings) else {
        panic!("there is room for all")
    };
    assert_eq!(older.turns, 5);
}

/// The middle between two exact rounds is told in so many bytes.
#[test]
fn what_was_heard_is_summarised_up_to_a_length() {
    let said = "x".repeat(RESULT_PREVIEW_BYTES * 3);
    let story = story(&format!("operator {said}\nround done\noperator last"));
    let shown = text(&summary_request(None, &talk(&told(&story)), &older(1), 1_000_000));
    let heard = shown.lines().find(|line| line.contains("xxx")).unwrap();
    assert_eq!(heard.strip_prefix("| ").unwrap().len(), RESULT_PREVIEW_BYTES * 2);
}

#[test]
fn a_plan_is_shown_up_to_a_length_and_the_rest_is_named() {
    let shown = |bytes: usize| {
        records(&format!("person CreateWorkItem build\nround UpdateWorkItem w1 plan={}", "x".repeat(bytes)))
    };
    let more = "\n(the plan goes on; GetWorkItem has all of it)";
    let (all, part) = (shown(32 * 1024), shown(32 * 1024 + 1));
    assert!(all.contains(&"x".repeat(32 * 1024)) && !all.contains(more));
    assert!(part.contains(&format!("| {}{more}", "x".repeat(32 * 1024))));
}

#[test]
fn a_turn_is_told_up_to_its_end() {
    let mut story = story("operator hi");
    said(&mut story, "done");
    let ended = story.facts.iter().position(|(_, fact)| fact.kind() == "turn.terminal").unwrap();
    let facts: Vec<Told> = told(&story).into_iter().take(ended + 1).collect();
    assert_eq!(talk(&facts)[0].last_seq, ended as u64 + 1);
}
