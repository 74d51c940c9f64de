//! Answers that no provider should give, and what becomes of them: each ends in a state that is recorded and explained,
//! and the agent goes on when the provider does. And a conversation that outgrows its model.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::served::Served;

/// A provider that speaks Chat Completions, says what it is told to, and keeps what it was asked. It ends with the test.
pub struct Provider {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    /// At the end of what it says: it does not end there, and nothing more comes.
    pub const HOLD: &str = "(hold)";

    /// `says` gets the request and how many came before it, and gives the bytes of the whole answer.
    pub fn start(says: impl Fn(&str, usize) -> String + Send + Sync + 'static) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (asked, says) = (Arc::new(Mutex::new(Vec::new())), Arc::new(says));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, kept, says) = (stream.unwrap(), Arc::clone(&kept), Arc::clone(&says));
                std::thread::spawn(move || {
                    let Some(body) = read(&stream) else { return };
                    let before = {
                        let mut kept = kept.lock().unwrap();
                        kept.push(body.clone());
                        kept.len() - 1
                    };
                    let said = says(&body, before);
                    let held = said.strip_suffix(Provider::HOLD);
                    // The client may have read enough before the end.
                    let _heard = stream.write_all(held.unwrap_or(&said).as_bytes());
                    while held.is_some() {
                        std::thread::park();
                    }
                });
            }
        });
        Provider { url, asked }
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// A daemon that knows it, with an agent that thinks with it.
    pub fn served(&self, card: &str) -> Served {
        let settings = format!(
            "model = \"script/echo\"\n[providers.odd]\nkind = \"openai-chat\"\nbase_url = \"{}\"\n[models.\"odd/m\"]\n{card}\n",
            self.url
        );
        let served = Served::start_with(&settings);
        served.create("thinker", "odd/m");
        served
    }
}

fn read(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

pub fn stream(events: &[Value]) -> String {
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}data: [DONE]\n\n")
}

pub fn delta(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

pub fn text(text: &str) -> String {
    stream(&[delta(&json!({ "content": text }), None), delta(&json!({}), Some("stop"))])
}

#[test]
fn odd_answers_are_recorded_and_explained_and_the_agent_goes_on() {
    let provider = Provider::start(|_, before| match before {
        0 => "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
        2 => {
            let call = json!({ "index": 0, "id": "c", "function": { "name": "ReadFile", "arguments": "{\"path\": " } });
            stream(&[delta(&json!({ "tool_calls": [call] }), None), delta(&json!({}), Some("tool_calls"))])
        }
        4 => stream(&[delta(&json!({ "content": "Odd." }), None), delta(&json!({}), Some("moonrise"))]),
        5 => stream(&vec![delta(&json!({ "content": "much ".repeat(1_000) }), None); 2_000]),
        _ => text("Well."),
    });
    let mut served = provider.served("");
    let answer = |text: &str| {
        let told = served.until_told("thinker", &served.send("thinker", text));
        (told["kind"].as_str().unwrap().to_owned(), told["text"].as_str().unwrap().to_owned())
    };
    let well = || ("result".to_owned(), "Well.".to_owned());
    assert_eq!(answer("a limit that names no time"), well());
    let failed = &served.facts("thinker", "turn.provider_round_failed")[0];
    assert_eq!((&failed["error"], failed.get("retry_after_ms")), (&json!("rate_limited"), None), "{failed}");

    assert_eq!(answer("arguments that are no JSON"), well());
    let refused = &served.results("thinker", "ReadFile")[0];
    assert_eq!(refused["error"]["code"], "invalid_input", "{refused}");
    assert!(provider.asked()[3].contains("not valid JSON"), "the model is told");

    assert_eq!(answer("a reason that nobody knows"), ("result".to_owned(), "Odd.".to_owned()));
    let rounds = served.facts("thinker", "turn.provider_round_completed");
    assert_eq!(rounds.last().unwrap()["stop"], "moonrise");

    let (kind, text) = answer("ten megabytes");
    assert_eq!(kind, "failure");
    assert!(text.contains("too large"), "{text}");
    assert_eq!(answer("and again"), well());
    served.stop_and_verify();
}

#[test]
fn a_conversation_that_outgrows_its_model_is_summarised_and_keeps_its_goal() {
    const SUMMARY: &str = "The operator counts sheep.";
    let provider =
        Provider::start(
            |body, _| {
                if body.contains("[abide to be summarised]") { text(SUMMARY) } else { text("Counted.") }
            },
        );
    let mut served = provider.served("window_tokens = 20000\nmax_output_tokens = 2000\ncontext_tokens = 16000");
    let item = served.post("/v1/agents/thinker/work-items", &json!({ "objective": "Count every sheep, twice" }));
    served.post(&format!("/v1/agents/thinker/work-items/{}/pick", item["work_item_id"].as_str().unwrap()), &json!({}));
    for number in 0..24 {
        let message = served.send("thinker", &format!("sheep {number}: {}", "baa ".repeat(700)));
        assert_eq!(served.until_told("thinker", &message)["text"], "Counted.", "{number}");
    }
    let made = served.facts("thinker", "context.compacted");
    assert!(!made.is_empty(), "it was summarised");
    assert_eq!(made[0]["summary"], SUMMARY, "{}", made[0]);
    let asked = provider.asked();
    let last = asked.iter().rfind(|body| !body.contains("[abide to be summarised]")).unwrap();
    for shown in [SUMMARY, "objective:\\n| Count every sheep, twice", "sheep 23"] {
        assert!(last.contains(shown), "{shown}");
    }
    assert!(!last.contains("sheep 0:"), "the oldest is told, not shown");
    let longest = asked.iter().map(String::len).max().unwrap();
    assert!(longest < 16_000 * 5, "{longest} bytes");
    served.stop_and_verify();
}
