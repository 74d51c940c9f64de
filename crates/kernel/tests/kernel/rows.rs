//! Read rows: made of facts alone, they say of open records what the state says.

use std::collections::BTreeMap;

use abide_kernel::read_rows::rows_of;
use serde_json::{Map, Value, json};

use crate::story::Story;

type Rows = BTreeMap<(&'static str, String), Map<String, Value>>;

/// The rows of a story: each patch merged into the row of its id, key by key.
fn rows(story: &Story) -> Rows {
    let mut rows = Rows::new();
    for (seq, (at, fact)) in (1..).zip(&story.facts) {
        for row in rows_of(seq, *at, fact) {
            let Value::Object(patch) = row.patch else { panic!("{:?} is no patch", row.patch) };
            let fields = rows.entry((row.plane, row.id)).or_default();
            fields.extend(patch);
            fields.retain(|_, value| !value.is_null());
        }
    }
    rows
}

fn told(lines: &str) -> Story {
    let mut story = Story::begin();
    for line in lines.lines().map(str::trim) {
        story.tell(line).unwrap();
    }
    story
}

/// The row of the only record of a plane.
fn only(story: &Story, plane: &str) -> Map<String, Value> {
    let mut found = rows(story).into_iter().filter(|((of, _), _)| *of == plane);
    let (_, row) = found.next().unwrap();
    assert!(found.next().is_none(), "more than one of {plane}");
    row
}

/// Which rows of work items say that they are in focus, compared with which item is.
#[track_caller]
fn assert_focus(story: &Story) {
    let rows = rows(story);
    let current = rows.iter().filter(|((plane, _), row)| *plane == "work_items" && row["current"] == json!(true));
    let current: Vec<&str> = current.map(|((_, id), _)| id.as_str()).collect();
    assert_eq!(current, story.state.planes.work.current_id().map(|id| id.as_str()).as_slice());
}

#[test]
fn the_rows_know_the_item_in_focus() {
    let mut story = told("person CreateWorkItem build");
    assert_focus(&story);
    for line in [
        "person CreateWorkItem paint",
        "person PickWorkItem w1",
        "person PickWorkItem w2",
        "person CompleteWorkItem w1",
        "person CompleteWorkItem w2",
    ] {
        story.tell(line).unwrap();
        assert_focus(&story);
    }
}

#[test]
fn a_new_blocker_takes_the_old_recheck_away() {
    let story = told(
        "person CreateWorkItem build
         person UpdateWorkItem w1 blocked=rain recheck=1h
         person UpdateWorkItem w1 blocked=snow",
    );
    let row = only(&story, "work_items");
    assert_eq!((&row["blocked_by"], row.get("recheck_at")), (&json!("snow"), None));
}

#[test]
fn the_rows_count_what_a_timer_told_and_missed() {
    let story = told(
        "person CreateTimer every=1h tea
         advance 3h
         round done
         advance 1h",
    );
    let timer = story.state.planes.timers.active().values().next().unwrap();
    assert_eq!((timer.fire_count, timer.missed_count), (2, 2));
    let row = only(&story, "timers");
    assert_eq!((&row["fire_count"], &row["missed_count"]), (&json!(2), &json!(2)));
    assert_eq!(
        (&row["last_fired_at"], &row["next_fire_at"]),
        (&json!(timer.last_fired_at), &json!(timer.next_fire_at))
    );
}

#[test]
fn an_item_without_limits_has_none_in_its_row() {
    let none = only(&told("stop\nperson CreateWorkItem build"), "work_items");
    assert_eq!(none.get("budget"), None);
    let some = only(&told("stop\nperson CreateWorkItem max_turns=2 build"), "work_items");
    assert_eq!(some["budget"]["max_turns"], 2);
}
