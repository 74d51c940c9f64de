//! Every operation of the table is served, and nothing else is.

use abide_api::openapi;
use abide_api::operations::{Answer as Wanted, Body, Method, OPERATIONS, Operation};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::{Answer, Ask, read_answer, read_head};
use crate::schema;

pub fn method(operation: &Operation) -> &'static str {
    match operation.method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    }
}

/// A request for an operation, about an agent and an item that do not exist.
pub fn request(operation: &Operation) -> Ask {
    let path = operation.path.replace("{id}", "nobody").replace("{item}", "nothing").replace("{token}", "nothing");
    let ask = Ask::new(method(operation), &path);
    match operation.body {
        Body::None => ask,
        Body::Empty | Body::Required(_) | Body::Optional(_) | Body::Data(_) => ask.json(json!({})),
    }
}

/// Sends it; of an event stream that begins, only the head is read.
pub async fn send(daemon: &Daemon, operation: &Operation, ask: Ask) -> Answer {
    let ask = ask.header("Host", &daemon.address).header("Connection", "close");
    let mut stream = daemon.connect().await;
    ask.send(&mut stream).await;
    let answer = match operation.answer {
        Wanted::Events => {
            let mut answer = read_head(&mut stream).await;
            if answer.status != 200 {
                let length = answer.header("content-length").unwrap().parse().unwrap();
                answer.body = vec![0; length];
                tokio::io::AsyncReadExt::read_exact(&mut stream, &mut answer.body).await.unwrap();
            }
            answer
        }
        Wanted::One(..) | Wanted::Page(_) | Wanted::Object(_) | Wanted::Text(_) => read_answer(&mut stream).await,
    };
    schema::check(&ask, &answer);
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_the_table_is_routed() {
    let daemon = Daemon::start().await;
    for operation in OPERATIONS {
        let answer = send(&daemon, operation, daemon.good(request(operation))).await;
        assert_ne!(answer.status, 405, "{}", operation.id);
        if answer.status >= 400 {
            assert_ne!(answer.json()["code"], "no_route", "{}", operation.id);
        }
    }
}

#[test]
fn every_documented_operation_is_in_the_table_and_has_a_name_of_its_own() {
    let document = json!(openapi::document());
    let mut documented: Vec<String> = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, described) in operations.as_object().unwrap() {
            let id = described["operationId"].as_str().unwrap();
            documented.push(format!("{} {path} {id}", method.to_uppercase()));
        }
    }
    let mut table: Vec<String> = OPERATIONS
        .iter()
        .map(|operation| format!("{} {} {}", method(operation), operation.path, operation.id))
        .collect();
    documented.sort();
    table.sort();
    assert_eq!(documented, table);
    let mut ids: Vec<&str> = OPERATIONS.iter().map(|operation| operation.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), OPERATIONS.len(), "two operations share an id");
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
                }
                fields.values().for_each(|value| walk(value, document));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, document)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = json!(openapi::document());
    walk(&document, &document);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_that_a_path_does_not_take_is_refused_with_those_it_takes() {
    let daemon = Daemon::start().await;
    for (method, path, allow) in [
        ("PUT", "/v1/agents", "GET,HEAD,POST"),
        ("POST", "/v1/agents/a", "DELETE,GET,HEAD,PATCH"),
        ("GET", "/v1/agents/a/start", "POST"),
        ("DELETE", "/healthz", "GET,HEAD"),
    ] {
        let answer = daemon.ask(Ask::new(method, path)).await;
        answer.refused(405, "wrong_method");
        let mut allowed: Vec<&str> = answer.header("allow").unwrap().split(',').map(str::trim).collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(","), allow, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_is_none_is_not_found() {
    let daemon = Daemon::start().await;
    for path in
        ["/v1", "/v1/agent", "/v1/agents/", "/v1/agents/a/b", "/v1/agents/a/events/stream/x", "/V1/agents", "/%00"]
    {
        daemon.ask(Ask::get(path)).await.refused(404, "no_route");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_daemon_says_that_it_is_well_and_what_it_counts() {
    let daemon = Daemon::start().await;
    assert_eq!(daemon.send(Ask::get("/healthz")).await.is(200)["status"], "alive");
    assert_eq!(daemon.send(Ask::get("/readyz")).await.is(200)["status"], "ready");
    daemon.create("a").await;
    daemon.finish("a", "hello").await;
    let metrics = daemon.ask(Ask::get("/metrics")).await;
    assert_eq!(metrics.status, 200);
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("\nabide_turns_total 1\n"), "{text}");
    assert!(text.contains("\nabide_requests_total{operation=\"agent_create\",status=\"201\"} 1\n"), "{text}");
    assert_eq!(daemon.get("/openapi.json").await, json!(openapi::document()));
    let well = daemon.client().health().await.unwrap();
    assert_eq!((well.status.as_str(), well.agents_awake), ("ready", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_is_answered_like_a_get_without_its_body() {
    let daemon = Daemon::start().await;
    let ask = daemon.good(Ask::new("HEAD", "/v1/agents")).header("Connection", "close");
    let mut stream = daemon.connect().await;
    ask.send(&mut stream).await;
    let answer = read_head(&mut stream).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await.unwrap();
    assert_eq!(rest, b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_requests_share_a_connection() {
    let daemon = Daemon::start().await;
    let mut stream = daemon.connect().await;
    let (list, missing) = (daemon.good(Ask::get("/v1/agents")), daemon.good(Ask::get("/v1/agents/nobody")));
    for _ in 0..3 {
        list.send(&mut stream).await;
        missing.send(&mut stream).await;
        read_answer(&mut stream).await.is(200);
        read_answer(&mut stream).await.refused(404, "not_found");
    }
}
