//! Who may do what: tokens, their scopes and their ends; and requests that come from another site.

use abide_api::operations::OPERATIONS;
use abide_api::types::Scope;
use serde_json::json;

use crate::daemon::{ADMIN, Daemon};
use crate::http::{Ask, read_answer};
use crate::routes::{request, send};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_takes_its_scope_and_no_less() {
    let daemon = Daemon::start().await;
    let observer = daemon.token("looks", "observer").await;
    let operator = daemon.token("runs", "operator").await;
    let admin = daemon.token("all", "admin").await;
    let tokens = [(Scope::Observer, observer), (Scope::Operator, operator), (Scope::Admin, admin)];
    let open: Vec<&str> =
        OPERATIONS.iter().filter(|operation| operation.scope.is_none()).map(|operation| operation.path).collect();
    assert_eq!(open, ["/healthz", "/readyz", "/openapi.json", "/hooks/{token}"]);
    for operation in OPERATIONS {
        let Some(least) = operation.scope else {
            let answer = send(&daemon, operation, request(operation)).await;
            // A trigger's URL is its own proof, and this one is of no trigger.
            let open = if operation.id == "hook_deliver" { answer.status == 404 } else { answer.status < 400 };
            assert!(open, "{} is open to everybody", operation.id);
            continue;
        };
        let answer = send(&daemon, operation, request(operation)).await;
        answer.refused(401, "unauthorized");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{}", operation.id);
        for header in ["Bearer abide_0123", "Bearer", "Bearer ", "Basic YTpi", &format!("Token {ADMIN}"), ADMIN] {
            let ask = request(operation).header("Authorization", header);
            send(&daemon, operation, ask).await.refused(401, "unauthorized");
        }
        for (scope, token) in &tokens {
            let answer = send(&daemon, operation, request(operation).token(token)).await;
            if *scope < least {
                answer.refused(403, "scope");
            } else {
                assert!(!matches!(answer.status, 401 | 403), "{} with {scope:?}: {}", operation.id, answer.status);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_shown_once_and_nowhere_written_down() {
    let daemon = Daemon::start().await;
    let made = daemon.post("/v1/tokens", json!({ "name": "ci", "scope": "operator" })).await.is(201);
    let (token, id) = (made["token"].as_str().unwrap(), made["token_id"].as_str().unwrap());
    daemon.send(Ask::get("/v1/agents").token(token)).await.is(200);
    let listed = daemon.get("/v1/tokens").await;
    assert!(!listed.to_string().contains(token), "{listed}");
    let item = listed["items"].as_array().unwrap().iter().find(|item| item["token_id"] == id).unwrap();
    assert_eq!((&item["name"], &item["scope"]), (&json!("ci"), &json!("operator")));
    let exported = daemon.ask(Ask::get("/v1/ledger/export")).await;
    assert_eq!(exported.status, 200);
    let holds = |bytes: &[u8], secret: &str| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
    assert!(holds(&exported.body, id) && !holds(&exported.body, token));

    let (token, id) = (token.to_owned(), id.to_owned());
    // The daemon still runs: closing the ledger moves what its log holds into another file, perhaps while this reads.
    let records = files_of(&daemon.home).into_iter().filter(|(_, bytes)| holds(bytes, &id)).count();
    assert!(records > 0, "the token's record is somewhere");
    let home = daemon.stop().await;
    for (path, bytes) in files_of(&home) {
        assert!(!holds(&bytes, &token), "{} holds the token", path.display());
        assert!(!holds(&bytes, ADMIN), "{} holds the admin's token", path.display());
    }
}

fn files_of(home: &tempfile::TempDir) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().path());
    let files = paths.filter(|path| path.is_file());
    // A file of the ledger's may go between the listing and the reading.
    files.filter_map(|path| std::fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_is_good_no_more_and_neither_is_it_after_a_restart() {
    let daemon = Daemon::start().await;
    let client = daemon.client();
    let new = |name: &str| abide_api::types::TokenCreate { name: name.to_owned(), scope: Scope::Observer };
    let (gone, kept) =
        (client.create_token(&new("gone")).await.unwrap(), client.create_token(&new("kept")).await.unwrap());
    assert!(client.revoke_token(&gone.token_id).await.unwrap().ended);
    daemon.send(Ask::get("/v1/agents").token(&gone.token)).await.refused(401, "unauthorized");
    daemon.delete(&format!("/v1/tokens/{}", gone.token_id)).await.refused(404, "not_found");
    // The home's own token is a file, not a record.
    let refused = daemon.delete("/v1/tokens/admin").await.refused(404, "not_found");
    assert_eq!(refused["detail"], "the home's own token can't be revoked");

    let daemon = daemon.restart().await;
    daemon.send(Ask::get("/v1/agents").token(&gone.token)).await.refused(401, "unauthorized");
    daemon.send(Ask::get("/v1/agents").token(&kept.token)).await.is(200);
    let listed = daemon.client().tokens(None).await.unwrap();
    let names: Vec<&str> = listed.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["admin", "kept"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_in_a_query_is_refused() {
    let daemon = Daemon::start().await;
    for name in ["token", "access_token", "TOKEN"] {
        let path = format!("/v1/agents?{name}={ADMIN}");
        daemon.send(Ask::get(&path)).await.refused(401, "unauthorized");
        daemon.ask(Ask::get(&path)).await.refused(400, "bad_query");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_a_token_has_bounds() {
    let daemon = Daemon::start().await;
    for name in ["", "  ", "a\u{7}b", &"x".repeat(65)] {
        let refused = daemon.post("/v1/tokens", json!({ "name": name, "scope": "observer" })).await;
        assert_eq!(refused.refused(422, "wrong_fields")["pointer"], "/name");
    }
    let refused = daemon.post("/v1/tokens", json!({ "name": "a", "scope": "root" })).await;
    assert_eq!(refused.refused(422, "wrong_fields")["pointer"], "/scope");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_host_or_origin_is_refused() {
    let daemon = Daemon::start().await;
    let port = daemon.address.rsplit(':').next().unwrap().to_owned();
    for host in
        ["evil.example", "evil.example:80", &format!("localhost.evil.example:{port}"), "10.0.0.1", "", "[::2]:1"]
    {
        daemon.ask(Ask::get("/v1/agents").header("Host", host)).await.refused(403, "foreign_host");
    }
    // Names that only begin or end like one of this machine.
    for host in [
        "localhost:80@evil.example",
        "evil.example@localhost",
        "[::1]evil.example",
        "[::1",
        "::1",
        "localhost:evil.example",
        "localhost:",
        "localhost:+80",
        "localhost:65536",
        "localhost:80:80",
        "localhost, evil.example",
        "localhost/evil.example",
        "http://localhost",
    ] {
        daemon.ask(Ask::get("/v1/agents").header("Host", host)).await.refused(403, "foreign_host");
    }
    for host in ["localhost", &format!("localhost:{port}"), "LOCALHOST", "127.0.0.1", "[::1]", &format!("[::1]:{port}")]
    {
        daemon.ask(Ask::get("/v1/agents").header("Host", host)).await.is(200);
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        &format!("http://localhost:{port}"),
        &daemon.address,
        &format!("ftp://{}", daemon.address),
        &format!("x://y://{}", daemon.address),
        &format!("http://{}/", daemon.address),
        &format!("http://evil.example@{}", daemon.address),
    ] {
        let ask = Ask::post("/v1/agents").json(json!({ "id": "a" })).header("Origin", origin);
        daemon.ask(ask).await.refused(403, "foreign_origin");
        // Not even where no token is wanted.
        daemon.send(Ask::get("/healthz").header("Origin", origin)).await.refused(403, "foreign_origin");
    }
    let same = format!("http://{}", daemon.address);
    daemon.ask(Ask::get("/v1/agents").header("Origin", &same)).await.is(200);
    assert_eq!(daemon.items("/v1/agents").await, Vec::<serde_json::Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_host_or_origin_is_refused() {
    let daemon = Daemon::start().await;
    let good = daemon.good(Ask::get("/v1/agents"));
    let same = format!("http://{}", daemon.address);
    for (name, values, code) in [
        ("Host", [daemon.address.as_str(), "evil.example"], "foreign_host"),
        ("Host", [daemon.address.as_str(), daemon.address.as_str()], "foreign_host"),
        ("Origin", [same.as_str(), "http://evil.example"], "foreign_origin"),
        ("Origin", [same.as_str(), same.as_str()], "foreign_origin"),
    ] {
        let mut ask = good.clone().header("Connection", "close");
        ask.headers.retain(|(known, _)| known != name);
        ask.headers.extend(values.map(|value| (name.to_owned(), value.to_owned())));
        let mut stream = daemon.connect().await;
        ask.send(&mut stream).await;
        read_answer(&mut stream).await.refused(403, code);
    }
    // A request line that names a host names the same one.
    let foreign = Ask { path: format!("http://evil.example{}", good.path), ..good.clone() };
    let own = Ask { path: format!("{same}{}", good.path), ..good };
    for (ask, status) in [(foreign, 403), (own, 200)] {
        let mut stream = daemon.connect().await;
        ask.send(&mut stream).await;
        assert_eq!(read_answer(&mut stream).await.status, status);
    }
}
