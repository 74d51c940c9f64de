//! Many clients at once: nobody is answered with a failure of ours, and all that was acknowledged is done.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::{Served, of_kind, until};
use crate::wire::Wire;

const CLIENTS: usize = 64;
const REQUESTS: usize = 100;
const AGENTS: usize = 8;
const MINUTE: Duration = Duration::from_secs(60);

/// The actions of a client.
#[derive(Debug, Default)]
struct Course {
    requests: usize,
    /// Refused for want of room, and sent again.
    refused: usize,
    /// The ids of its messages, each with its agent.
    accepted: Vec<(usize, String)>,
}

impl Course {
    /// One request after another, for as long as `more` says so of the next one.
    fn run(number: usize, mut wire: Wire, more: impl Fn(usize) -> bool) -> Course {
        let mut course = Course::default();
        while more(course.requests) {
            course.ask(number, &mut wire);
            course.requests += 1;
        }
        course
    }

    fn ask(&mut self, number: usize, wire: &mut Wire) {
        let n = self.requests;
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
            let room = answer.status != 429;
            self.refused += usize::from(!room);
            room.then_some(answer)
        });
        assert!(matches!(answer.status, 200 | 202), "{method} {path}: {answer:?}");
        if answer.status == 202 {
            self.accepted.push((agent, answer.body["message_id"].as_str().unwrap().to_owned()));
        }
    }
}

/// All clients at once, each for as long as `more` says so.
fn crowd(served: &Served, more: impl Fn(usize) -> bool + Sync) -> Course {
    for agent in 0..AGENTS {
        served.create(&format!("agent-{agent}"), "script/echo");
    }
    let (address, more) = (served.address(), &more);
    let courses: Vec<Course> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| (n, Wire::new(address.clone())))
            .map(|(n, wire)| scope.spawn(move || Course::run(n, wire, more)))
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    courses.into_iter().fold(Course::default(), |mut all, one| {
        all.requests += one.requests;
        all.refused += one.refused;
        all.accepted.extend(one.accepted);
        all
    })
}

#[test]
fn a_crowd_is_served() {
    let mut served = Served::start();
    let Course { accepted, .. } = crowd(&served, |sent| sent < REQUESTS);
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

/// The minute is how long the clients keep going, not how long anything may take: however slow the machine, they are
/// only fewer requests. What nextest.toml says of this test lets it begin first, so that it runs beside the others.
#[test]
#[allow(clippy::print_stderr, reason = "its figures, for whoever asks to see them")]
fn a_crowd_is_served_for_a_minute() {
    let mut served = Served::start();
    let begin = Instant::now();
    let Course { requests, refused, accepted } = crowd(&served, |_| begin.elapsed() < MINUTE);
    let sent = begin.elapsed();
    for agent in 0..AGENTS {
        let name = format!("agent-{agent}");
        served.until_asleep(&name);
        let wanted: BTreeSet<&str> =
            accepted.iter().filter(|(of, _)| *of == agent).map(|(_, id)| id.as_str()).collect();
        let messages = served.items(&format!("/v1/agents/{name}/messages"));
        let processed: BTreeSet<&str> = messages
            .iter()
            .filter(|message| message["status"] == "processed")
            .map(|message| message["message_id"].as_str().unwrap())
            .collect();
        assert_eq!((messages.len(), processed), (wanted.len(), wanted), "{name}");
    }
    eprintln!(
        "{requests} requests of {CLIENTS} clients in {sent:.1?}, {refused} refused for want of room and sent again, \
         {} messages accepted and processed after {:.1?}",
        accepted.len(),
        begin.elapsed(),
    );
    served.stop_and_verify();
}
