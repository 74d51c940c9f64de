//! Models: who thinks with which, and whether one answers.

use abide_api::types::ModelTest;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::http::Ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_says_who_thinks_with_which() {
    let daemon = Daemon::start().await;
    for (id, model) in
        [("a", "script/x.json"), ("b", "script/y.json"), ("c", "script/x.json"), ("gone", "script/z.json")]
    {
        daemon.post("/v1/agents", json!({ "id": id, "model": model, "start": false })).await.is(201);
    }
    daemon.delete("/v1/agents/gone").await.is(200);
    let list = daemon.get("/v1/models").await;
    let used: Vec<(&Value, &Value)> =
        list["items"].as_array().unwrap().iter().map(|item| (&item["name"], &item["agents"])).collect();
    assert_eq!(
        used,
        [(&json!("script/x.json"), &json!(["a", "c"])), (&json!("script/y.json"), &json!(["b"]))],
        "an archived agent thinks no more"
    );
    assert_eq!(daemon.client().models().await.unwrap().items[0].agents_total, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_is_of_the_named_model_or_the_default() {
    let daemon = Daemon::start().await;
    assert_eq!(daemon.ask(Ask::post("/v1/models/test")).await.is(200)["model"], "script/echo");
    let named = daemon.client().test_model(&ModelTest { model: Some("script/x.json".to_owned()) }).await.unwrap();
    assert_eq!((named.model.as_str(), named.ok), ("script/x.json", true));
    let refused = daemon.post("/v1/models/test", json!({ "model": "acme/large" })).await.is(422);
    assert_eq!((&refused["pointer"], &refused["hint"]), (&json!("/model"), &json!("name another")));
    daemon.post("/v1/models/test", json!({ "modle": "script/echo" })).await.is(422);
    daemon.post("/v1/models/test", json!({ "model": "script/".to_owned() + &"x".repeat(1 << 16) })).await.is(422);
    // It may cost something, so an observer may not.
    let observer = daemon.token("watcher", "observer").await;
    let ask = Ask::post("/v1/models/test").header("Authorization", &format!("Bearer {observer}"));
    daemon.send(ask).await.is(403);
}
