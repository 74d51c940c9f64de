//! Triggers through their front door: URLs that are made, used, replaced and ended, and everything that comes in by them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::{Answer, Ask};

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A stopped agent with one trigger, and the path of its URL.
async fn with_trigger(daemon: &Daemon, body: Value) -> String {
    daemon.create_stopped("a").await;
    path(daemon, &daemon.post("/v1/agents/a/triggers", body).await.is(201))
}

fn path(daemon: &Daemon, trigger: &Value) -> String {
    let url = trigger["url"].as_str().unwrap();
    url.strip_prefix(&format!("http://{}", daemon.address)).unwrap().to_owned()
}

/// As the outside sends it: without a token.
async fn deliver(daemon: &Daemon, path: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Answer {
    let mut ask = Ask::post(path).bytes(body.as_ref());
    for (name, value) in headers {
        ask = ask.header(name, value);
    }
    daemon.send(ask).await
}

async fn messages(daemon: &Daemon) -> Vec<Value> {
    daemon.items("/v1/agents/a/messages").await
}

async fn only_trigger(daemon: &Daemon) -> Value {
    let items = daemon.items("/v1/agents/a/triggers").await;
    assert_eq!(items.len(), 1);
    items[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_is_shown_once_and_takes_deliveries_without_a_token() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let made = daemon.post("/v1/agents/a/triggers", json!({ "name": "deploys" })).await.is(201);
    let id = made["trigger_id"].as_str().unwrap();
    let received = deliver(&daemon, &path(&daemon, &made), &[], r#"{"version":7}"#).await.is(202);
    assert_eq!((&received["disposition"], &received["duplicate"]), (&json!("queued"), &json!(false)));
    let message = messages(&daemon).await.remove(0);
    assert_eq!(message["message_id"], received["message_id"]);
    assert_eq!(message["kind"], "webhook_event");
    assert_eq!(message["origin"], json!({ "kind": "webhook", "id": id }));
    assert_eq!(message["trust"], "trusted_integration");
    assert_eq!(message["trigger_id"], id);
    assert_eq!(message["json"], json!({ "version": 7 }));
    let listed = only_trigger(&daemon).await;
    assert_eq!(listed["url"], Value::Null);
    assert_eq!((&listed["delivery_count"], &listed["signed"]), (&json!(1), &json!(false)));
    assert_eq!(listed["last_delivered_at"], message["at"]);
    let everything = serde_json::to_string(&daemon.events("a").await).unwrap();
    assert!(!everything.contains("/hooks/"), "the URL is in the ledger: {everything}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_content_type_is_taken_as_what_it_is() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "all" })).await;
    let event =
        json!({ "specversion": "1.0", "id": "e1", "source": "/s", "type": "t", "subject": "order-7", "data": 1 });
    let sent: [(Headers<'_>, String); 5] = [
        (&[("Content-Type", "application/json"), ("X-Correlation-Id", "c-1")], json!([1, 2]).to_string()),
        (&[("Content-Type", "text/plain")], "plain words".to_owned()),
        (&[("Content-Type", "application/x-www-form-urlencoded")], "a=1&b=2+3&a=4".to_owned()),
        (&[("Content-Type", "application/cloudevents+json")], event.to_string()),
        (
            &[
                ("ce-specversion", "1.0"),
                ("ce-id", "e2"),
                ("ce-source", "/s"),
                ("ce-type", "t"),
                ("ce-subject", "order-8"),
            ],
            json!({ "n": 1 }).to_string(),
        ),
    ];
    for (headers, body) in &sent {
        deliver(&daemon, &path, headers, body).await.is(202);
    }
    let said: Vec<Value> = messages(&daemon)
        .await
        .into_iter()
        .map(|message| json!([message["text"], message["json"], message["correlation_id"]]))
        .collect();
    let binary = json!({
        "specversion": "1.0", "id": "e2", "source": "/s", "type": "t", "subject": "order-8",
        "datacontenttype": "application/json", "data": { "n": 1 },
    });
    let expected = [
        json!([null, [1, 2], "c-1"]),
        json!(["plain words", null, null]),
        json!([null, { "a": ["1", "4"], "b": "2 3" }, null]),
        json!([null, event, "order-7"]),
        json!([null, binary, "order-8"]),
    ];
    assert_eq!(said, expected);
    assert_eq!(only_trigger(&daemon).await["delivery_count"], 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_read_is_refused_and_leaves_nothing() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "all" })).await;
    let before = daemon.kinds("a").await;
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let bad: [(Headers<'_>, &[u8], u16, &str); 8] = [
        (&[], b"{", 400, "not_json"),
        (&[("Content-Type", "text/plain")], b"\xff", 400, "not_utf8"),
        (&[form], b"a=%zz", 400, "bad_form"),
        (&[form], br#"{"a":1}"#, 400, "bad_form"),
        (&[("Content-Type", "image/png")], b"x", 415, "unsupported_media"),
        (&[("Content-Type", "application/cloudevents+json")], b"{}", 422, "wrong_fields"),
        (&[("ce-specversion", "1.0")], b"{}", 422, "wrong_fields"),
        (&[("webhook-id", "")], b"{}", 400, "bad_header"),
    ];
    for (headers, body, status, code) in bad {
        deliver(&daemon, &path, headers, body).await.refused(status, code);
    }
    deliver(&daemon, &path, &[], vec![b' '; (1 << 20) + 1]).await.refused(413, "too_large");
    assert_eq!(daemon.kinds("a").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_is_answered_as_the_first_and_changes_nothing() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "all" })).await;
    let event = json!({ "specversion": "1.0", "id": "1", "source": "/s", "type": "t" }).to_string();
    let named: [(Headers<'_>, &str); 4] = [
        (&[("webhook-id", "1")], "{}"),
        (&[("X-GitHub-Delivery", "1")], "{}"),
        (&[("Content-Type", "application/cloudevents+json")], &event),
        (&[("Idempotency-Key", "1")], "{}"),
    ];
    for (headers, body) in named {
        let first = deliver(&daemon, &path, headers, body).await.is(202);
        let mut again = deliver(&daemon, &path, headers, body).await.is(202);
        assert_eq!(again["duplicate"], true);
        again["duplicate"] = json!(false);
        assert_eq!(again, first);
    }
    assert_eq!(messages(&daemon).await.len(), 4);
    assert_eq!(only_trigger(&daemon).await["delivery_count"], 4);
    deliver(&daemon, &path, &[("Idempotency-Key", "1")], "[]").await.refused(422, "key_reused");
    // An id stands for one delivery of one trigger, over restarts and other URLs of it.
    let daemon = daemon.restart().await;
    let other = daemon.post("/v1/agents/a/triggers", json!({ "name": "other" })).await.is(201);
    let other = deliver(&daemon, &self::path(&daemon, &other), &[("webhook-id", "1")], "{}").await.is(202);
    assert_eq!(other["duplicate"], false);
    assert_eq!(deliver(&daemon, &path, &[("webhook-id", "1")], "{}").await.is(202)["duplicate"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_or_revoked_url_opens_nothing() {
    let daemon = Daemon::start().await;
    let old = with_trigger(&daemon, json!({ "name": "all" })).await;
    deliver(&daemon, &old, &[("webhook-id", "1")], "{}").await.is(202);
    let id = only_trigger(&daemon).await["trigger_id"].as_str().unwrap().to_owned();
    let of_trigger = format!("/v1/agents/a/triggers/{id}");
    let rotated = daemon.post(&format!("{of_trigger}/rotate"), json!({})).await.is(200);
    let new = path(&daemon, &rotated);
    assert_ne!(new, old);
    let nothing = deliver(&daemon, &old, &[], "{}").await.refused(404, "not_found");
    // Not even that it was used.
    assert_eq!(deliver(&daemon, &old, &[("webhook-id", "1")], "{}").await.refused(404, "not_found"), nothing);
    assert_eq!(deliver(&daemon, &new, &[("webhook-id", "1")], "{}").await.is(202)["duplicate"], true);
    deliver(&daemon, &new, &[("webhook-id", "2")], "{}").await.is(202);
    daemon.delete(&of_trigger).await.is(200);
    for gone in [&old, &new, &format!("{new}x"), &"/hooks/nothing".to_owned()] {
        for headers in [[("webhook-id", "1")], [("webhook-id", "9")]] {
            assert_eq!(deliver(&daemon, gone, &headers, "{}").await.refused(404, "not_found"), nothing);
        }
    }
    let ended = only_trigger(&daemon).await;
    assert_eq!((&ended["status"], &ended["delivery_count"]), (&json!("revoked"), &json!(2)));
    daemon.post(&format!("{of_trigger}/rotate"), json!({})).await.refused(404, "not_found");
    daemon.delete(&of_trigger).await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trigger_that_wakes_says_what_became_of_it() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "ring", "delivery_mode": "wake_hint" })).await;
    let ignored = deliver(&daemon, &path, &[], "").await.is(202);
    assert_eq!((&ignored["disposition"], &ignored["message_id"]), (&json!("ignored"), &Value::Null));
    assert_eq!(only_trigger(&daemon).await["delivery_count"], 1, "it was ignored, and counted all the same");
    assert_eq!(messages(&daemon).await.len(), 0);
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn standard(id: &str, at: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(&SECRET["whsec_".len()..]).unwrap());
    format!("v1,{}", STANDARD.encode(hmac::sign(&key, format!("{id}.{at}.{body}").as_bytes())))
}

fn github(body: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_trigger_takes_what_is_signed_with_its_secret() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "ci", "secret": SECRET })).await;
    let now = daemon.app.host.clock().now().as_ms() / 1_000;
    let (body, at, old) = (r#"{"ok":true}"#, now.to_string(), (now - 301).to_string());
    let (right, wrong, late) = (standard("m1", now, body), standard("m2", now, body), standard("m1", now - 301, body));
    let unsigned: [Headers<'_>; 5] = [
        &[],
        &[("webhook-id", "m1"), ("webhook-timestamp", &at), ("webhook-signature", &wrong)],
        &[("webhook-id", "m1"), ("webhook-timestamp", &old), ("webhook-signature", &late)],
        &[("X-Hub-Signature-256", &github("another body"))],
        &[("Authorization", "Bearer something"), ("webhook-id", "m1")],
    ];
    for headers in unsigned {
        deliver(&daemon, &path, headers, body).await.refused(401, "not_signed");
    }
    assert_eq!(only_trigger(&daemon).await["delivery_count"], 0);
    let several = format!("{wrong} {right}");
    let signed = [("webhook-id", "m1"), ("webhook-timestamp", at.as_str()), ("webhook-signature", several.as_str())];
    assert_eq!(deliver(&daemon, &path, &signed, body).await.is(202)["duplicate"], false);
    assert_eq!(deliver(&daemon, &path, &signed, body).await.is(202)["duplicate"], true);
    let push = [("X-Hub-Signature-256", &*github(body)), ("X-GitHub-Event", "push"), ("X-GitHub-Delivery", "d1")];
    deliver(&daemon, &path, &push, body).await.is(202);
    let message = messages(&daemon).await.pop().unwrap();
    assert_eq!((&message["text"], &message["json"]), (&json!("GitHub event: push"), &json!({ "ok": true })));
    // The secret is in the home for its owner, in no record, and not lost with the process.
    let everything = serde_json::to_string(&daemon.events("a").await).unwrap();
    assert!(!everything.contains(SECRET), "{everything}");
    let daemon = daemon.restart().await;
    assert_eq!(only_trigger(&daemon).await["signed"], true);
    deliver(&daemon, &path, &[], body).await.refused(401, "not_signed");
    let home = daemon.stop().await;
    std::fs::remove_dir_all(home.path().join("triggers")).unwrap();
    let daemon = Daemon::on(home, abide_server::Limits::default()).await;
    deliver(&daemon, &path, &signed, body).await.refused(401, "not_signed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_a_trigger_takes_is_refused_until_later() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "busy" })).await;
    let other = daemon.post("/v1/agents/a/triggers", json!({ "name": "quiet" })).await.is(201);
    let mut taken = 0;
    let refused = loop {
        let answer = deliver(&daemon, &path, &[], "{}").await;
        match answer.status {
            202 => taken += 1,
            _ => break answer,
        }
    };
    refused.refused(429, "overloaded");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(taken >= 40, "{taken} were taken at once");
    deliver(&daemon, &self::path(&daemon, &other), &[], "{}").await.is(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrongly_signed_deliveries_leave_the_rate_to_the_signed_sender() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "ci", "secret": SECRET })).await;
    // More of them than a trigger takes at once.
    for number in 0..60 {
        let wrong = [("X-Hub-Signature-256", &*github("another body"))];
        deliver(&daemon, &path, &wrong, number.to_string()).await.refused(401, "not_signed");
    }
    let body = r#"{"ok":true}"#;
    deliver(&daemon, &path, &[("X-Hub-Signature-256", &*github(body))], body).await.is(202);
    assert_eq!(only_trigger(&daemon).await["delivery_count"], 1);
}

/// GitHub signs the body alone, so an id proves nothing: the signature is the id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_github_delivery_is_a_duplicate_under_any_other_id() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "ci", "secret": SECRET })).await;
    let body = r#"{"action":"opened"}"#;
    let signature = github(body);
    let first =
        [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Event", "issues"), ("X-GitHub-Delivery", "d1")];
    let accepted = deliver(&daemon, &path, &first, body).await.is(202);
    assert_eq!(accepted["duplicate"], false);
    let message = messages(&daemon).await.remove(0);
    let upper = signature.to_uppercase().replace("SHA256=", "sha256=");
    let event = ("Content-Type", "application/cloudevents+json");
    let replays: [Headers<'_>; 5] = [
        &[("X-Hub-Signature-256", &signature), ("X-GitHub-Delivery", "d2")],
        &[("X-Hub-Signature-256", &signature), ("X-GitHub-Event", "push"), ("Idempotency-Key", "k")],
        &[("X-Hub-Signature-256", &signature), ("webhook-id", "w1")],
        &[("X-Hub-Signature-256", &upper)],
        &[
            ("X-Hub-Signature-256", &signature),
            ("ce-specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-source", "/s"),
            ("ce-type", "t"),
        ],
    ];
    let mut expected = accepted.clone();
    expected["duplicate"] = json!(true);
    for headers in replays {
        assert_eq!(deliver(&daemon, &path, headers, body).await.is(202), expected, "{headers:?}");
    }
    // The type is not signed, either: what does not read as it says is refused, and what reads is a duplicate.
    deliver(&daemon, &path, &[("X-Hub-Signature-256", &*signature), event], body).await.refused(422, "wrong_fields");
    let daemon = daemon.restart().await;
    let other = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Delivery", "d3")];
    assert_eq!(deliver(&daemon, &path, &other, body).await.is(202), expected);
    assert_eq!(messages(&daemon).await, [message]);
    // Another body is another delivery.
    let next = r#"{"action":"closed"}"#;
    let closed = [("X-Hub-Signature-256", &*github(next)), ("X-GitHub-Delivery", "d4")];
    assert_eq!(deliver(&daemon, &path, &closed, next).await.is(202)["duplicate"], false);
    assert_eq!(only_trigger(&daemon).await["delivery_count"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_trigger_is_made_of_is_checked() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let secret = "a secret that nobody may see";
    for (body, status, code) in [
        (json!({}), 422, "wrong_fields"),
        (json!({ "name": "" }), 422, "empty"),
        (json!({ "name": "x", "delivery_mode": "shout" }), 422, "wrong_fields"),
        (json!({ "name": "x", "work_item_id": "work_none", "secret": secret }), 404, "not_found"),
        (json!({ "name": "x", "secret": "short" }), 422, "wrong_fields"),
        (json!({ "name": "x", "secret": "whsec_?" }), 422, "wrong_fields"),
    ] {
        daemon.post("/v1/agents/a/triggers", body).await.refused(status, code);
    }
    assert_eq!(daemon.items("/v1/agents/a/triggers").await, Vec::<Value>::new());
    let kept = std::fs::read_dir(daemon.home.path().join("triggers")).unwrap().count();
    assert_eq!(kept, 0, "the secret of a trigger that was refused is kept");
    daemon.post("/v1/agents/nobody/triggers", json!({ "name": "x" })).await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trigger_made_under_a_key_is_made_once() {
    let daemon = Daemon::start().await;
    daemon.create_stopped("a").await;
    let ask = Ask::post("/v1/agents/a/triggers").json(json!({ "name": "x", "secret": SECRET })).key("k");
    let first = daemon.ask(ask.clone()).await.is(201);
    assert_eq!(daemon.ask(ask).await.is(201), first);
    only_trigger(&daemon).await;
}

/// Some senders add what they like to a URL. The path alone says whose it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_behind_a_url_is_nobodys_business() {
    let daemon = Daemon::start().await;
    let path = with_trigger(&daemon, json!({ "name": "all" })).await;
    for query in ["?", "?source=ci&source=ci", "?token=x", "?%zz"] {
        deliver(&daemon, &format!("{path}{query}"), &[], "{}").await.is(202);
    }
    assert_eq!(messages(&daemon).await.len(), 4);
}
