//! A bit that flips on disk, in each copy of a text that the database holds: the text is shown as it was sent, or not at
//! all, and the operator is told.

use std::fs;

use serde_json::{Value, json};

use crate::place::{copy, document};
use crate::served::Served;

const SENT: &str = "the-text-in-many-places";
/// The same with one bit flipped.
const FLIPPED: &str = "uhe-text-in-many-places";

/// Where a text begins in the database.
fn places(bytes: &[u8], text: &str) -> Vec<usize> {
    bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes()).map(|(at, _)| at).collect()
}

/// Everything that is shown of an agent.
fn shown(served: &Served) -> Vec<(String, Value)> {
    let parts = ["", "/messages", "/briefs", "/events", "/transcript", "/decisions", "/why"];
    let get = |part: &str| {
        let answer = served.call("GET", &format!("/v1/agents/worker{part}"), &[], None);
        assert!(answer.status < 500, "{part}: {}", answer.body);
        (part.to_owned(), answer.body)
    };
    parts.map(get).into()
}

#[test]
fn no_flipped_bit_is_served_as_a_changed_text() {
    let mut served = Served::start();
    served.create("worker", "script/echo");
    let message = served.send("worker", SENT);
    served.until_told("worker", &message);
    served.until_asleep("worker");
    served.stop();
    let database = served.place.home().join("ledger.db");
    let bytes = fs::read(&database).unwrap();
    let (places, kept) = (places(&bytes, SENT), served.place.path("kept"));
    assert!(places.len() >= 4, "the text is in facts and in rows: {places:?}");
    copy(&served.place.home(), &kept);
    let mut rebuilt = 0;
    for at in places {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&database, damaged).unwrap();
        served.up();
        for (part, body) in shown(&served) {
            assert!(!body.to_string().contains(FLIPPED), "{part} shows another text: {body}");
        }
        let rows = served.get("/v1/ledger/stats")["damaged_rows"].as_u64().unwrap();
        let doctor = document(&served.place.run(&["doctor", "--json"]).out);
        let told = doctor["checks"].as_array().unwrap().iter().any(|check| check["name"] == "rows");
        assert_eq!(told, rows > 0, "{doctor}");
        if rows > 0 {
            rebuilt += 1;
            let list = served.get("/v1/agents/worker/messages");
            assert_eq!(list["items"][0]["text"], SENT, "{list}");
        }
        served.kill();
        fs::remove_dir_all(served.place.home()).unwrap();
        copy(&kept, &served.place.home());
    }
    assert!(rebuilt > 0, "no row was damaged");
}

/// Every copy of a text is damaged: nothing is left that the rows could be rebuilt from.
#[test]
fn damage_that_cannot_be_repaired_is_the_affair_of_its_own_agent() {
    let mut served = Served::start();
    let model = served.script(SENT, &json!({ "rounds": [{ "text": "Here." }] }));
    served.create("worker", &model);
    served.create("other", "script/echo");
    let trigger = json!({ "name": SENT, "secret": "only the worker knows" });
    served.post("/v1/agents/worker/triggers", &trigger);
    served.until_asleep("worker");
    served.stop();
    let database = served.place.home().join("ledger.db");
    let mut bytes = fs::read(&database).unwrap();
    for at in places(&bytes, SENT) {
        bytes[at] ^= 1;
    }
    fs::write(&database, bytes).unwrap();
    served.up();
    let agents = served.items("/v1/agents");
    let ids: Vec<&str> = agents.iter().map(|agent| agent["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["main", "other", "worker"]);
    served.get("/v1/models");
    let refused = served.call("GET", "/v1/agents/worker/triggers", &[], None);
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("damaged")), "{}", refused.body);
    let message = served.send("other", "hello");
    served.until_told("other", &message);
}
