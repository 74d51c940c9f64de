//! The part of `why` about folders that agents hold and wait for, as the daemon knows it at one moment.

use abide_kernel::act_result::told as shown_in_full;
use abide_kernel::decide;
use abide_kernel::explain::{FolderHolder, FolderUse, FolderWait, HeldFolder, Why, add_folder_use, why};
use abide_kernel::time::Time;
use serde_json::json;

use crate::story::Story;

fn at(seconds: u64) -> Time {
    Time::EPOCH.plus_ms(seconds * 1_000)
}

fn ada() -> FolderHolder {
    let (agent_id, folder) = (Some("ada".to_owned()), "/w".to_owned());
    FolderHolder { agent_id, daemon_pid: None, folder, since: Some(at(7)), is_next: false }
}

#[test]
fn who_holds_a_folder() {
    assert_eq!(ada().sentence(), "ada holds /w since 1970-01-01T00:00:07.000Z");
    let next = FolderHolder { is_next: true, since: None, ..ada() };
    assert_eq!(next.sentence(), "ada is next in line for /w");
    let elsewhere = FolderHolder { agent_id: None, daemon_pid: Some(42), since: None, ..ada() };
    assert_eq!(elsewhere.sentence(), "an agent of another daemon (process 42) holds /w");
    let unknown = FolderHolder { daemon_pid: None, ..elsewhere.clone() };
    assert_eq!(unknown.sentence(), "an agent of another daemon holds /w");
    let named = FolderHolder { agent_id: Some("bob".to_owned()), ..elsewhere };
    assert_eq!(named.sentence(), "bob holds /w");
}

#[test]
fn a_holder_as_it_goes_out() {
    let note = "ada holds /w since 1970-01-01T00:00:07.000Z, until its turn and its tasks are over; commands and changes of \
                files wait for that, reading does not; agents in worktrees do not wait";
    assert_eq!(ada().note(), note);
    let expected = json!({
        "agent_id": "ada", "daemon_pid": null, "folder": "/w", "since": "1970-01-01T00:00:07.000Z", "note": note,
    });
    assert_eq!(shown_in_full(&ada().view()), expected);
}

/// The explanation of an agent with nothing to do, with the folders that are given.
fn explained(used: &FolderUse) -> Why {
    let story = Story::begin();
    let mut explained = why(&story.state, decide(&story.state, story.now));
    add_folder_use(&mut explained, used);
    explained
}

const IDLE: &str = "a has nothing to do; a message will wake it.";

#[test]
fn no_folders() {
    let none = explained(&FolderUse::default());
    assert_eq!((none.sentence.as_str(), none.notes.len(), none.waiting_on.len()), (IDLE, 0, 0));
}

#[test]
fn a_folder_that_is_waited_for() {
    let awaited = FolderWait { folder: "/w/src".to_owned(), since: at(9), holder: ada() };
    let waits = explained(&FolderUse { awaited: Some(awaited), ..FolderUse::default() });
    assert_eq!(
        waits.sentence,
        format!("{IDLE} It waits for the folder /w/src that ada holds since 1970-01-01T00:00:07.000Z.")
    );
    let expected = json!([{
        "what": "the folder /w/src that ada holds since 1970-01-01T00:00:07.000Z", "since": "1970-01-01T00:00:09.000Z",
        "seq": waits.at_seq,
    }]);
    assert_eq!(serde_json::to_value(&waits.waiting_on).unwrap(), expected);
    assert!(waits.notes.is_empty(), "{:?}", waits.notes);
}

#[test]
fn a_folder_that_is_held_and_who_waits_for_it() {
    let notes = |waiting: &[&str]| {
        let waiting = waiting.iter().map(|name| (*name).to_owned()).collect();
        let held = HeldFolder { folder: "/w".to_owned(), since: at(7), waiting };
        let explained = explained(&FolderUse { held: Some(held), ..FolderUse::default() });
        assert_eq!((explained.sentence.as_str(), explained.waiting_on.len()), (IDLE, 0));
        explained.notes
    };
    let held = "it holds /w since 1970-01-01T00:00:07.000Z, until its turn and its tasks are over";
    assert_eq!(notes(&[]), [held.to_owned()]);
    assert_eq!(notes(&["bob"]), [format!("{held}; bob waits for it")]);
    assert_eq!(notes(&["bob", "cyd"]), [format!("{held}; bob, cyd wait for it")]);
}

#[test]
fn a_folder_that_another_agent_holds() {
    let explained = explained(&FolderUse { held_by: Some(ada()), ..FolderUse::default() });
    assert_eq!((explained.sentence.as_str(), explained.waiting_on.len()), (IDLE, 0));
    assert_eq!(explained.notes, [ada().note()]);
}
