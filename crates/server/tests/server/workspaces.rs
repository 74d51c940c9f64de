//! Folders that agents work in.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::daemon::Daemon;
use crate::http::Ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_bound_shown_and_let_go_of() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let bound = daemon.post("/v1/agents/a/workspaces", json!({ "path": "/w" })).await.is(201);
    assert_eq!((&bound["root"], &bound["mode"], &bound["active"]), (&json!("/w"), &json!("direct"), &json!(true)));
    let tree = daemon.post("/v1/agents/a/workspaces", json!({ "path": "/w", "mode": "worktree" })).await.is(201);
    assert_eq!((&tree["root"], &tree["branch"]), (&json!("/worktrees/1"), &json!("abide/a-1")));
    let listed = daemon.items("/v1/agents/a/workspaces").await;
    let roots: Vec<_> = listed.iter().map(|item| (item["root"].as_str().unwrap(), item["active"] == true)).collect();
    assert_eq!(roots, [("/w", false), ("/worktrees/1", true)]);
    let execution = daemon.summary("a").await["execution"].clone();
    assert_eq!((&execution["workspace"], &execution["cwd"]), (&json!("/w"), &json!("/worktrees/1")));
    assert_eq!((&execution["branch"], &execution["commands"]), (&json!("abide/a-1"), &json!(0)));
    assert_eq!(execution["sandbox"]["enforced"], json!(["processes", "network"]));
    assert_eq!(execution["disk_bytes"], 4_096);
    let transfer = json!({ "repository": "/shop", "phase": "receiving", "done": 9, "total": 20 });
    assert_eq!(daemon.items("/v1/transfers").await, [transfer]);
    let notes = daemon.get("/v1/agents/a/why").await["notes"].clone();
    assert_eq!(notes, json!(["it works in /worktrees/1, a worktree of /w on branch abide/a-1"]));
    let gone = daemon.delete("/v1/agents/a/workspaces/%2Fw").await.is(200);
    assert_eq!(gone, json!({ "root": "/w", "removing": false }));
    daemon.delete("/v1/agents/a/workspaces/%2Fnowhere").await.refused(404, "not_found");
    let going = daemon.delete("/v1/agents/a/workspaces/%2Fworktrees%2F1").await.is(200);
    assert_eq!(going["removing"], true, "it goes once what is in it is saved");
    let statuses = daemon.items("/v1/agents/a/workspaces").await;
    let statuses: Vec<_> = statuses.iter().map(|item| item["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["detached", "removing"]);
    assert_eq!(daemon.items("/v1/agents/a/patches").await[0]["files"], json!(["new"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_worked_in_is_refused_where_it_is_named() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let refused = daemon.post("/v1/agents/a/workspaces", json!({ "path": "/missing" })).await.refused(422, "missing");
    assert_eq!((&refused["pointer"], &refused["hint"]), (&json!("/path"), &json!("create the folder first")));
    for (body, pointer) in [
        (json!({}), ""),
        (json!({ "path": "/w", "mode": "copy" }), "/mode"),
        (json!({ "path": "/w", "branch": "x" }), "/branch"),
    ] {
        let problem = daemon.post("/v1/agents/a/workspaces", body).await.refused(422, "wrong_fields");
        assert_eq!(problem["pointer"], pointer, "{problem}");
    }
    let create = json!({ "id": "b", "workspace": "/missing" });
    let long = json!({ "workspace": format!("/{}", "x".repeat(5_000)) });
    for refused in [
        daemon.post("/v1/agents", create).await,
        daemon.patch("/v1/agents/a", json!({ "workspace": "/missing" })).await,
        daemon.patch("/v1/agents/a", json!({ "workspace": "" })).await,
        daemon.patch("/v1/agents/a", long).await,
    ] {
        assert_eq!(refused.refused(422, "wrong_fields")["pointer"], "/workspace");
    }
    daemon.ask(Ask::get("/v1/agents/b")).await.refused(404, "not_found");
    daemon.post("/v1/agents/nobody/workspaces", json!({ "path": "/w" })).await.refused(404, "not_found");
    daemon.ask(Ask::get("/v1/agents/nobody/patches")).await.refused(404, "not_found");
    assert_eq!(daemon.services.worktrees.load(Ordering::SeqCst), 0);
}

/// A worktree is made before the answer is recorded: a repeat must find the first one, and one for nobody is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_under_a_key_makes_no_second_worktree() {
    let daemon = Daemon::start().await;
    daemon.create("a").await;
    let attach = || Ask::post("/v1/agents/a/workspaces").json(json!({ "path": "/w", "mode": "worktree" })).key("once");
    let first = daemon.ask(attach()).await.is(201);
    assert_eq!(daemon.ask(attach()).await.is(201), first);
    let elsewhere = Ask::post("/v1/agents/nobody/workspaces").json(json!({ "path": "/w", "mode": "worktree" }));
    daemon.ask(elsewhere).await.refused(404, "not_found");
    assert_eq!(daemon.services.worktrees.load(Ordering::SeqCst), 1);
    assert_eq!(daemon.items("/v1/agents/a/workspaces").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_confines_commands_can_be_asked() {
    let daemon = Daemon::start().await;
    let found = daemon.get("/v1/sandbox").await;
    assert_eq!((&found["mechanism"], &found["processes"]), (&json!("landlock"), &json!("counted")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lies_around_an_agent_is_told_for_where_it_works() {
    let daemon = Daemon::start().await;
    daemon.post("/v1/agents", json!({ "id": "a", "workspace": "/srv/a" })).await.is(201);
    let around = daemon.get("/v1/agents/a/surroundings").await;
    assert_eq!(around["guides"], json!([{ "path": "/srv/a", "bytes": 7, "truncated": true }]));
    assert_eq!((&around["skills"][0]["name"], &around["broken"][0]["path"]), (&json!("pdf"), &json!("a/b")));
    daemon.ask(Ask::get("/v1/agents/nobody/surroundings")).await.refused(404, "not_found");
}
