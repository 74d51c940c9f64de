//! Work items and approvals from the command line.

use serde_json::{Value, json};

use crate::place::{Daemon, Place};

#[test]
fn work_from_its_creation_to_its_report() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "scout", "--no-start"]);
    let none = place.says(&["work", "list", "--agent", "scout"]);
    assert_eq!(none, "scout has no such work items; `abide work create --agent scout OBJECTIVE` makes one\n");
    place.write("plan.md", "first this\nthen that\n");
    let create = ["work", "create", "--agent", "scout", "paint the fence", "--plan", "plan.md"];
    let made = place.json(&[&create[..], &["--plan-status", "ready", "--todo", "buy", "--todo", "paint"]].concat());
    assert_eq!((&made["plan"], &made["readiness"]), (&json!("first this\nthen that\n"), &json!("runnable")));
    let id = made["work_item_id"].as_str().unwrap();
    let end = &id[id.len() - 8..];
    let work = |action: &str, more: &[&str]| -> Vec<String> {
        let words = ["work", action, "--agent", "scout", end];
        words.iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let says = |action: &str, more: &[&str]| {
        let words = work(action, more);
        place.says(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(says("pick", &[]), format!("{id} is the current work item of scout\n"));
    assert_eq!(says("update", &["--done", "1", "--doing", "2"]), format!("{id} is at revision 2, runnable\n"));
    assert_eq!(says("update", &["--todo", "look", "--doing", "3"]), format!("{id} is at revision 3, runnable\n"));
    let todo = &place.json(&["work", "show", "--agent", "scout", id])["todo"];
    let states: Vec<&Value> = todo.as_array().unwrap().iter().map(|entry| &entry["state"]).collect();
    assert_eq!(states, ["completed", "pending", "in_progress"], "one at most is worked on");
    assert_eq!(says("block", &["--by", "rain"]), format!("{id} is blocked; nothing reminds scout of it\n"));
    let listed = place.says(&["work", "list", "--agent", "scout", "--filter", "blocked"]);
    assert!(listed.contains("current") && listed.contains("1/3") && listed.contains("; blocked by rain"), "{listed}");
    let reminded = says("block", &["--by", "rain", "--recheck", "2h"]);
    assert!(reminded.starts_with(&format!("{id} is blocked; scout is reminded 2")), "{reminded}");
    assert_eq!(says("update", &["--unblock"]), format!("{id} is at revision 6, runnable\n"));
    assert_eq!(says("complete", &["--report", "it is green"]), format!("{id} is completed\n"));
    let shown = says("show", &[]);
    for line in [
        "state      completed",
        "  1. [x] buy",
        "  3. [>] look",
        "plan:\n  first this\n  then that",
        "report:\n  it is green",
    ] {
        assert!(shown.contains(line), "{line:?} is not in\n{shown}");
    }
    assert_eq!(place.json(&["work", "list", "--agent", "scout", "--filter", "open"])["items"], json!([]));
    assert_eq!(place.refused(6, &["work", "pick", "--agent", "scout", id]), format!("{id} is completed"));
    assert_eq!(place.refused(8, &["work", "show", "--agent", "scout", "work_none"]), "scout has no such work item");
    assert_eq!(
        place.refused(8, &["work", "create", "--agent", "scout", "x", "--plan", "none.md"]),
        "none.md does not exist"
    );
}

#[test]
fn words_about_work_that_make_no_sense() {
    let place = Place::empty();
    let update = ["work", "update", "--agent", "scout", "work_1"];
    let error = place.refused(2, &update);
    assert!(error.starts_with("say what changes: --objective, --plan,"), "{error}");
    for wrong in [
        &["work", "list", "--agent", "a", "--filter", "stuck"][..],
        &["work", "create", "--agent", "a", "x", "--plan-status", "done"],
        &["work", "block", "--agent", "a", "work_1"],
        &["work", "block", "--agent", "a", "work_1", "--by", "x", "--recheck", "soon"],
        &["work", "complete", "--agent", "a", "work_1"],
        &["approval", "grant", "--agent", "a"],
    ] {
        assert_eq!(place.run(wrong).code, Some(2), "{wrong:?}");
    }
    let _daemon = Daemon::start(&place, &[]);
    place.says(&["agent", "create", "scout", "--no-start"]);
    let made = place.json(&["work", "create", "--agent", "scout", "paint", "--todo", "buy"]);
    let id = made["work_item_id"].as_str().unwrap();
    let error = place.refused(2, &["work", "update", "--agent", "scout", id, "--done", "2"]);
    assert_eq!(error, "its todo list has no entry 2: there are 1");
    let error = place.refused(2, &["work", "update", "--agent", "scout", id, "--done", "1", "--doing", "1"]);
    assert_eq!(error, "entry 1 is either done or worked on; leave one out");
    let error = place.refused(2, &["work", "show", "--agent", "scout", ""]);
    assert_eq!(error, "say which one: its id, or the end of it");
}

#[test]
fn a_question_is_decided_once() {
    let place = Place::empty();
    let _daemon = Daemon::start(&place, &[]);
    let ask = json!({ "tools": [{ "name": "RequestApproval", "input": { "summary": "deploy it?" } }] });
    place.write("asks.json", json!({ "rounds": [ask, { "text": "Deployed." }] }).to_string());
    place.says(&["agent", "create", "asks", "--model", "script/asks.json"]);
    let asked = place.run(&["send", "asks", "deploy", "--wait", "--timeout", "60"]);
    assert_eq!(asked.code, Some(4), "{}", asked.err);
    let pending = place.json(&["approval", "list", "--agent", "asks"]);
    let id = pending["items"][0]["approval_id"].as_str().unwrap();
    let sentence = place.json(&["why", "asks"])["sentence"].as_str().unwrap().to_owned();
    let command = format!("`abide approval grant --agent asks {id}`");
    assert!(sentence.contains("deploy it?") && sentence.contains(&command), "{sentence}");
    let open = place.json(&["approval", "list"]);
    assert_eq!((&open["items"][0]["approval_id"], &open["items"][0]["agent_id"]), (&json!(id), &json!("asks")));
    assert!(place.says(&["approval", "list"]).lines().nth(1).unwrap().starts_with("asks "), "whose it is comes first");
    let listed = place.says(&["approval", "list", "--agent", "asks"]);
    assert!(listed.contains("pending") && listed.contains("deploy it?"), "{listed}");
    assert_eq!(place.says(&["approval", "grant", "--agent", "asks", &id[id.len() - 8..]]), "granted: deploy it?\n");
    assert!(place.says(&["approval", "list"]).starts_with("nothing is open"));
    assert!(place.says(&["wait", "list"]).starts_with("nothing is open"));
    let error = place.refused(6, &["approval", "deny", "--agent", "asks", id]);
    assert!(error.starts_with(&format!("{id} is granted already: decided by admin at 2")), "{error}");
    assert_eq!(place.refused(8, &["approval", "deny", "--agent", "asks", "appr_none"]), "asks has no such approval");
}
