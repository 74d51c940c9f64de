//! Many clients at once: nobody is answered with a failure of ours, and all that was acknowledged is done.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use crate::served::{Served, of_kind, until};
use crate::wire::Wire;

const CLIENTS: usize = 64;
const REQUESTS: usize = 100;
const AGENTS: usize = 8;

/// One client's requests; returns the ids of its messages, each with its agent.
fn client(number: usize, mut wire: Wire) -> Vec<(usize, String)> {
    let mut accepted = Vec::new();
    for n in 0..REQUESTS {
        let agent = (number + n) % AGENTS;
        let of_agent = format!("/v1/agents/agent-{agent}");
        let key = format!("{number}-{n}");
        let body = json!({ "text": format!("{number} says {n}") });
        let (method, path, headers, body): (&str, String, Vec<(&str, &str)>, Option<&Value>) = match n % 4 {
            0 => ("POST", format!("{of_agent}/messages"), vec![("idempotency-key", key.as_str())], Some(&body)),
            1 => ("GET", of_agent, vec![], None),
            2 => ("GET", format!("{of_agent}/events?last=5"), vec![], None),
            _ => ("GET", ["/v1/agents", "/healthz"][n / 4 % 2].to_owned(), vec![], None),
        };
        let answer = until("room for a request", || {
            let answer = wire.send(method, &path, &headers, body).unwrap_or_else(|error| panic!("{path}: {error}"));
            (answer.status != 429).then_some(answer)
        });
        assert!(matches!(answer.status, 200 | 202), "{method} {path}: {answer:?}");
        if answer.status == 202 {
            accepted.push((agent, answer.body["message_id"].as_str().unwrap().to_owned()));
        }
    }
    accepted
}

#[test]
fn a_crowd_is_served() {
    let mut served = Served::start();
    for agent in 0..AGENTS {
        served.create(&format!("agent-{agent}"), "script/echo");
    }
    let address = served.address();
    let accepted: Vec<(usize, String)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| (n, Wire::new(address.clone())))
            .map(|(n, wire)| scope.spawn(move || client(n, wire)))
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(accepted.len(), CLIENTS * REQUESTS / 4);
    for agent in 0..AGENTS {
        let name = format!("agent-{agent}");
        served.until_asleep(&name);
        let wanted: BTreeSet<&str> =
            accepted.iter().filter(|(of, _)| *of == agent).map(|(_, id)| id.as_str()).collect();
        let processed = of_kind(&served.events(&name), "message.processed");
        assert_eq!(processed.len(), wanted.len(), "each once");
        let processed: BTreeSet<&str> = processed.iter().map(|done| done["message_id"].as_str().unwrap()).collect();
        assert_eq!(processed, wanted);
    }
    served.stop_and_verify();
}
