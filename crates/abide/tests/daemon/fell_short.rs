//! Answers that fall short: images that a provider refuses, answers with nothing in them, answers and calls that are cut by
//! the longest answer, and calls that break off. The sender is told, and the usage is counted.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Mutex, mpsc};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::odd_answers::{Provider, delta, stream, text};
use crate::place::png;
use crate::served::Served;

fn picture() -> Value {
    json!({ "media_type": "image/png", "data": BASE64_STANDARD.encode(png(100)) })
}

fn look(served: &Served, image: &Value) -> Value {
    let body = json!({ "json": { "text": "look", "images": [image] } });
    served.post("/v1/agents/thinker/messages", &body)
}

fn told(served: &Served, accepted: &Value) -> (String, String) {
    let told = served.until_told("thinker", accepted["message_id"].as_str().unwrap());
    (told["kind"].as_str().unwrap().to_owned(), told["text"].as_str().unwrap().to_owned())
}

#[test]
fn an_image_that_is_refused_does_not_ruin_the_agent() {
    let provider = Provider::start(|body, _| {
        if body.contains("data:image/png") {
            let error = json!({ "error": { "message": "Could not process image", "type": "invalid_request_error" } });
            let error = error.to_string();
            let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close";
            return format!("{head}\r\ncontent-length: {}\r\n\r\n{error}", error.len());
        }
        text("Well.")
    });
    let mut served = provider.served("images = true");
    // Data that is no image is refused before it is queued.
    let cut = json!({ "media_type": "image/png", "data": BASE64_STANDARD.encode(&png(100)[..90]) });
    let body = json!({ "json": { "text": "look", "images": [picture(), cut] } });
    let refused = served.call("POST", "/v1/agents/thinker/messages", &[], Some(&body));
    assert_eq!((refused.status, &refused.body["pointer"]), (422, &json!("/json")), "{}", refused.body);
    assert_eq!(refused.body["detail"], "image 2 can't be shown: it is a PNG that ends before its end");
    assert_eq!(served.facts("thinker", "message.queued"), Vec::<Value>::new());

    let accepted = look(&served, &picture());
    assert_eq!(accepted.get("warning"), None, "{accepted}");
    let (kind, said) = told(&served, &accepted);
    assert_eq!(kind, "failure");
    assert!(said.contains("Could not process image"), "{said}");
    let message = served.send("thinker", "and now?");
    assert_eq!(served.until_told("thinker", &message)["text"], "Well.");
    let asked = provider.asked();
    assert!(asked[1].contains("(an image that is not shown: a request that it was in was refused"), "{}", asked[1]);
    served.stop_and_verify();
}

#[test]
fn who_sends_an_image_to_a_model_that_is_blind_is_told() {
    let provider = Provider::start(|_, _| text("Well."));
    let mut served = provider.served("images = false");
    let accepted = look(&served, &picture());
    let warning = accepted["warning"].as_str().unwrap();
    assert!(
        warning.starts_with("odd/m can't look at pictures, so thinker is told only that there are some"),
        "{warning}"
    );
    assert_eq!(told(&served, &accepted).1, "Well.");
    served.place.write("shot.png", png(100));
    let ran = served.place.run(&["send", "thinker", "look", "--image", "shot.png", "--wait"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Well.\n"), "{}", ran.err);
    assert_eq!(ran.err, format!("abide: {warning}\n"));
    let answered = served.place.json(&["send", "thinker", "look", "--image", "shot.png", "--wait"]);
    assert_eq!((&answered["warning"], &answered["text"]), (&json!(warning), &json!("Well.")));
    assert_eq!(served.post("/v1/agents/thinker/messages", &json!({ "text": "hello" })).get("warning"), None);
    served.stop_and_verify();
}

#[test]
fn an_empty_answer_is_no_answer() {
    let provider = Provider::start(|body, _| match body.contains("speak") {
        true => text("I speak."),
        false => stream(&[delta(&json!({ "content": "" }), None), delta(&json!({}), Some("stop"))]),
    });
    let mut served = provider.served("");
    let ran = served.place.run(&["send", "thinker", "say nothing", "--wait"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    assert!(ran.err.contains("The model's answer was empty, 2 times"), "{}", ran.err);
    let asked = provider.asked();
    assert_eq!(asked.len(), 2, "it was asked once more");
    assert!(asked[1].contains("Your answer was empty: no text and no call."), "{}", asked[1]);
    assert_eq!(served.place.says(&["send", "thinker", "speak", "--wait"]), "I speak.\n");
    // `abide model test` reports the same.
    let tested = served.place.run(&["model", "test", "odd/m"]);
    assert_eq!(tested.code, Some(1), "{}", tested.out);
    assert!(tested.out.contains("odd/m does not answer: its answer was empty: no text and no call"), "{}", tested.out);
    served.stop_and_verify();
}

#[test]
fn what_nobody_knows_the_price_of_is_not_free() {
    let provider = Provider::start(|_, _| text("Well."));
    let mut served = provider.served("");
    let tested = served.place.says(&["model", "test", "odd/m"]);
    assert!(tested.ends_with("out, no price\n"), "{tested}");
    assert_eq!(served.place.json(&["model", "test", "odd/m"])["priced"], false);
    served.place.says(&["send", "thinker", "hi", "--wait"]);
    let used = |id: &str| {
        let shown = served.place.says(&["agent", "show", id]);
        shown.lines().find(|line| line.starts_with("used ")).unwrap().to_owned()
    };
    assert!(used("thinker").ends_with("out, no price"), "{}", used("thinker"));
    assert!(used("main").ends_with("out, $0.0000"), "{}", used("main"));
    assert_eq!(served.place.json(&["agent", "show", "thinker"])["model"]["priced"], false);
    served.stop_and_verify();
}

#[test]
fn what_is_cut_says_so_everywhere() {
    let cut = |given: Value| stream(&[delta(&given, None), delta(&json!({}), Some("length"))]);
    let provider = Provider::start(move |body, _| {
        if body.contains("write it down") {
            let call =
                json!({ "index": 0, "id": "c", "function": { "name": "WriteFile", "arguments": "{\"path\": \"a" } });
            return cut(json!({ "tool_calls": [call] }));
        }
        if body.contains("the rest") { text("The end.") } else { cut(json!({ "content": "As far as" })) }
    });
    let mut served = provider.served("");
    let ran = served.place.run(&["send", "thinker", "tell me", "--wait"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "As far as\n"));
    assert!(ran.err.starts_with("abide: the answer is cut: the model had written as much as it may"), "{}", ran.err);
    let (why, briefs) = (served.place.says(&["why", "thinker"]), served.place.says(&["briefs", "thinker"]));
    assert!(why.contains("the answer of turn 1 is cut"), "{why}");
    assert!(why.contains("raise max_output_tokens for odd/m in config.toml"), "{why}");
    assert!(briefs.starts_with("result (cut)"), "{briefs}");
    let shown = served.place.says(&["agent", "show", "thinker"]);
    assert!(shown.contains("cut: the model had written as much as it may"), "{shown}");
    let said = served.place.says(&["transcript", "thinker"]);
    assert!(said.contains("the answer is cut: the model had written as much as it may (max_output_tokens)"), "{said}");
    let answered = served.place.json(&["send", "thinker", "the rest", "--wait"]);
    assert_eq!((&answered["text"], answered.get("cut")), (&json!("The end."), None));
    assert!(provider.asked()[1].contains("Your answer was cut off there"), "{}", provider.asked()[1]);

    let ran = served.place.run(&["send", "thinker", "write it down", "--wait"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("The model's calls were cut off 3 times"), "{}", ran.err);
    assert!(ran.err.contains("Raise max_output_tokens"), "{}", ran.err);
    assert_eq!(served.results("thinker", "WriteFile").len(), 3);
    served.stop_and_verify();
}

/// Provider and model agree that the prompt was read; nobody hears the end.
#[test]
fn calls_that_break_off_or_are_ended_are_counted() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let provider = Provider::start(move |_, before| {
        let begun = stream(&[delta(&json!({ "content": "Hello, world" }), None)]).replace("data: [DONE]\n\n", "");
        match before {
            0 => begun,
            1 => text("Well."),
            _ => {
                released.lock().unwrap().recv().unwrap();
                begun + Provider::HOLD
            }
        }
    });
    let mut served = provider.served("");
    let message = served.send("thinker", "break off");
    assert_eq!(served.until_told("thinker", &message)["text"], "Well.");
    let failed = &served.facts("thinker", "turn.provider_round_failed")[0];
    assert_eq!((&failed["error"], &failed["estimated"]), (&json!("disconnect"), &json!(true)), "{failed}");
    let tokens = |fact: &Value| {
        (fact["usage"]["input_tokens"].as_u64().unwrap(), fact["usage"]["output_tokens"].as_u64().unwrap())
    };
    assert!(tokens(failed).0 > 1_000 && tokens(failed).1 == 3, "{failed}");

    let used = |served: &Served| served.get("/v1/agents/thinker")["model"]["usage"]["input_tokens"].as_u64().unwrap();
    let before = used(&served);
    let mut watch = served.place.command(&["watch", "thinker", "--after", "0", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut heard = BufReader::new(watch.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let message = served.send("thinker", "be ended");
    // Later messages are answered.
    heard.find(|line| line.contains(&message) && line.contains("turn.started")).unwrap();
    release.send(()).unwrap();
    heard.find(|line| line.contains("text.delta")).unwrap();
    served.post("/v1/agents/thinker/abort", &json!({}));
    let counted = served.until_fact("thinker", "turn.cut_round_counted", |_| true);
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!((tokens(&counted).1, &counted["estimated"]), (3, &json!(true)), "{counted}");
    assert_eq!(used(&served), before + tokens(&counted).0);
    assert!(tokens(&counted).0 > 1_000, "{counted}");
    served.stop_and_verify();
}
