//! Followers across restarts: with the id of the last event they go on, without gap or repeat.

use serde_json::Value;

use crate::served::Served;
use crate::wire::{Sse, Stream};

const STREAM: &str = "/v1/agents/worker/events/stream";

/// Events up to the answer to this message.
fn until_told(stream: &mut Stream, message: &str) -> Vec<Sse> {
    let mut seen = Vec::new();
    loop {
        let event = stream.next().expect("the stream goes on");
        seen.push(event.clone());
        if event.name == "brief.recorded" && event.data["data"]["message_id"] == message {
            return seen;
        }
    }
}

/// The events until the other side is gone.
fn rest(mut stream: Stream) -> Vec<Sse> {
    std::iter::from_fn(|| stream.next()).collect()
}

#[test]
fn a_follower_goes_on_where_it_was() {
    let mut served = Served::start();
    served.create("worker", "script/echo");
    served.create("other", "script/echo");
    let (mut one, mut all) = (Vec::new(), Vec::new());
    let last = |seen: &[Sse]| seen.last().map(|event: &Sse| event.id.clone());
    for life in 0..4 {
        let after = last(&one).unwrap_or_else(|| "0".to_owned());
        let mut stream = served.follow(STREAM, Some(&after));
        let mut feed = served.follow("/v1/events/stream", Some(&last(&all).unwrap_or_else(|| "start".to_owned())));
        let message = served.send("worker", &format!("life {life}"));
        served.until_told("worker", &message);
        let other = served.send("other", "beside");
        one.extend(until_told(&mut stream, &message));
        all.extend(until_told(&mut feed, &other));
        // While it goes down, more may come or not; either way it is told once.
        served.send("worker", &format!("in the last moment of life {life}"));
        match life % 2 {
            0 => served.kill(),
            _ => served.stop(),
        }
        one.extend(rest(stream));
        all.extend(rest(feed));
        served.up();
    }
    served.until_asleep("worker");
    let end = served.send("worker", "end");
    let after = last(&one).unwrap();
    one.extend(until_told(&mut served.follow(STREAM, Some(&after)), &end));
    all.extend(until_told(&mut served.follow("/v1/events/stream", Some(&last(&all).unwrap())), &end));

    let same = |seen: &[Sse], events: &[Value]| {
        for (seen, event) in seen.iter().zip(events) {
            assert_eq!((&seen.name, &seen.data), (&event["kind"].as_str().unwrap().to_owned(), event));
        }
    };
    let events = served.events("worker");
    let ids: Vec<String> = one.iter().map(|event| event.id.clone()).collect();
    assert_eq!(ids, (1..=one.len()).map(|seq| seq.to_string()).collect::<Vec<_>>(), "no gap, no repeat");
    same(&one, &events);
    // The feed of all agents has the same events of each, in the same order.
    for agent in ["worker", "other"] {
        let of_it: Vec<Sse> = all.iter().filter(|event| event.data["agent_id"] == agent).cloned().collect();
        let seqs: Vec<u64> = of_it.iter().map(|event| event.data["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=of_it.len() as u64).collect::<Vec<_>>(), "{agent}: no gap, no repeat");
        same(&of_it, &served.events(agent));
    }
    served.stop_and_verify();
}

#[test]
fn a_place_that_the_ledger_never_had_is_told() {
    let served = Served::start();
    served.create("worker", "script/echo");
    let first = served.follow(STREAM, Some("1000000")).next().unwrap();
    assert_eq!(first.name, "resync");
    assert_eq!(served.call("GET", &format!("{STREAM}?after=here"), &[], None).status, 400);
}
