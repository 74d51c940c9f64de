//! The list of a provider's models.

use abide_effects::ProviderFailure;
use abide_effects::model::remote::Protocol;
use abide_kernel::vocabulary::ProviderError;
use serde_json::{Value, json};

use super::provider::*;

async fn look(answer: Answer) -> Result<Vec<String>, ProviderFailure> {
    Loopback::new(vec![answer]).remote(Protocol::Chat).list_models().await
}

fn list(ids: &[Value]) -> Answer {
    let data: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "object": "model" })).collect();
    Answer::json(200, &json!({ "object": "list", "data": data }))
}

#[tokio::test]
async fn names_come_in_order_and_once() {
    let (long, longer) = ("x".repeat(80), "x".repeat(81));
    let ids = [json!("b:8b"), json!("org/a"), json!(long), json!("b:8b"), json!("a")];
    let odd = [json!(""), json!(7), Value::Null, json!("bell\u{7}"), json!(longer)];
    let provider = Loopback::new(vec![list(&[odd, ids].concat())]);
    let found = provider.remote(Protocol::Chat).list_models().await.unwrap();
    assert_eq!(found, ["a", "b:8b", "org/a", &long]);
    let head = &provider.asked()[0].head;
    assert!(head.starts_with("get /v1/models http/1.1"), "{head}");
    assert!(head.contains(&format!("authorization: bearer {KEY}")), "{head}");
    assert_eq!(look(list(&[])).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_list_has_an_end() {
    let many: Vec<Value> = (0..300).rev().map(|number| json!(format!("m-{number:03}"))).collect();
    let found = look(list(&many)).await.unwrap();
    assert_eq!((found.len(), found[0].as_str(), found[199].as_str()), (200, "m-000", "m-199"));

    let blank = " ".repeat(8 << 20);
    assert_eq!(look(Answer::of(200, "application/json", &format!("{blank}{{}}"))).await.unwrap_err().message, LONG);
    let failure = look(Answer::of(200, "application/json", &blank)).await.unwrap_err();
    assert_eq!(failure.message, NO_LIST);
}

const LONG: &str = "openai-chat/m-1: its list of models is too long";
const NO_LIST: &str = "openai-chat/m-1: what it answers is no list of models";

#[tokio::test]
async fn what_is_no_list_is_said() {
    for body in ["", "{}", "[]", "<html>", "{\"data\": {}}", "{\"data\": null}"] {
        let failure = look(Answer::of(200, "application/json", body)).await.unwrap_err();
        assert_eq!((failure.error, failure.message.as_str()), (ProviderError::Invalid, NO_LIST), "{body}");
    }
    // A list with a status that is none of success is none.
    let refused = Answer::json(401, &json!({ "error": { "message": format!("No: {KEY}") }, "data": [] }));
    let failure = look(refused).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Auth);
    assert!(failure.message.contains("status 401: No: (the key)") && !failure.message.contains(KEY), "{failure}");
    let cut = list(&[json!("a")]).cut();
    assert_eq!(look(cut).await.unwrap_err().error, ProviderError::Disconnect);
}
