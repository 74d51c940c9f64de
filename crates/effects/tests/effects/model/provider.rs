//! A provider on this machine: it answers as it is told to, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use abide_effects::ProviderFailure;
use abide_effects::model::remote::{Card, Key, Prices, Protocol, Provider, Remote};
use abide_effects::tools::{self, ToolSet};
use abide_kernel::fact::CallRecord;
use abide_kernel::id::{CallId, ExecId};
use abide_kernel::input::Reply;
use abide_kernel::prompt::{CallResult, Image, Item, Part, Prompt, SealedReasoning};
use serde_json::{Value, json};

pub const EXEC: &str = "exec_0198c0de-0000-7000-8000-000000000001";
pub const KEY: &str = "sk-very-secret-0123456789";

/// One answer, as it goes over the wire.
#[derive(Clone)]
pub struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
    chunk: usize,
    end: End,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    /// As HTTP wants it.
    Clean,
    /// The connection goes before the body is over.
    Cut,
    /// Nothing more comes, and the connection stays.
    Silent,
}

impl Answer {
    pub fn stream(body: impl Into<Vec<u8>>) -> Answer {
        let headers = "content-type: text/event-stream; charset=utf-8\r\n".to_owned();
        Answer { status: 200, headers, body: body.into(), chunk: usize::MAX, end: End::Clean }
    }

    pub fn json(status: u16, body: &Value) -> Answer {
        Answer::of(status, "application/json", &body.to_string())
    }

    pub fn of(status: u16, kind: &str, body: &str) -> Answer {
        let headers = format!("content-type: {kind}\r\n");
        Answer { status, headers, body: body.as_bytes().to_vec(), chunk: usize::MAX, end: End::Clean }
    }

    /// Without a word on what its body is.
    pub fn untyped(status: u16, body: &str) -> Answer {
        Answer { headers: String::new(), ..Answer::of(status, "", body) }
    }

    /// With its body in pieces of that many bytes.
    pub fn in_pieces_of(self, chunk: usize) -> Answer {
        Answer { chunk, ..self }
    }

    pub fn cut(self) -> Answer {
        Answer { end: End::Cut, ..self }
    }

    pub fn silent(self) -> Answer {
        Answer { end: End::Silent, ..self }
    }

    pub fn with(self, header: &str) -> Answer {
        Answer { headers: format!("{}{header}\r\n", self.headers), ..self }
    }

    fn write(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut bytes = format!("HTTP/1.1 {} Said\r\n{}", self.status, self.headers).into_bytes();
        bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
        for piece in self.body.chunks(self.chunk.max(1)) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend(piece);
            bytes.extend(b"\r\n");
        }
        if self.end == End::Clean {
            bytes.extend(b"0\r\n\r\n");
        }
        stream.write_all(&bytes)
    }
}

/// A request to the provider.
#[derive(Debug, Clone)]
pub struct Request {
    /// The caller's end of the connection.
    pub peer: SocketAddr,
    /// The first line and the headers, in small letters.
    pub head: String,
    pub body: Value,
}

pub struct Loopback {
    pub base: String,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Loopback {
    /// Answers the first request with the first answer, and all that come after the last with the last.
    pub fn new(answers: Vec<Answer>) -> Loopback {
        let mut answers = answers.into_iter();
        let mut last = None;
        Loopback::answering(move || {
            last = answers.next().or(last.take());
            last.clone().unwrap()
        })
    }

    pub fn answering(answer: impl FnMut() -> Answer + Send + 'static) -> Loopback {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&asked);
        let answer = Arc::new(Mutex::new(answer));
        // They end with the process: nobody waits for them.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, remembered, answer) = (stream.unwrap(), Arc::clone(&remembered), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &remembered, &answer));
            }
        });
        Loopback { base, asked }
    }

    pub fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }

    pub fn last_body(&self) -> Value {
        self.asked().last().unwrap().body.clone()
    }

    pub fn remote(&self, protocol: Protocol) -> Remote {
        remote_at(&self.base, protocol)
    }

    pub async fn call(&self, protocol: Protocol) -> Result<Reply, ProviderFailure> {
        call(&self.remote(protocol), &hello()).await
    }
}

/// A model at an address, with prices that make a token of each kind cost 1, 2, 3 and 4 millionths.
pub fn remote_at(base: &str, protocol: Protocol) -> Remote {
    let (provider, base_url) = match protocol {
        Protocol::Anthropic => ("anthropic", base.to_owned()),
        Protocol::Responses => ("openai", format!("{base}/v1")),
        Protocol::Chat => ("openai-chat", format!("{base}/v1")),
    };
    let price = |dollars: u64| dollars * 1_000_000;
    Remote {
        name: format!("{provider}/m-1"),
        model: "m-1".to_owned(),
        provider: Arc::new(Provider {
            name: provider.to_owned(),
            protocol,
            base_url,
            key: Some(Key::new(KEY.to_owned())),
            key_env: Some("A_KEY".to_owned()),
        }),
        card: Card {
            window_tokens: 100_000,
            max_output_tokens: 4_000,
            context_tokens: 96_000,
            prices: Some(Prices { input: price(1), output: price(2), cache_read: price(3), cache_write: price(4) }),
            images: true,
        },
    }
}

/// One connection, request by request.
fn serve(mut stream: TcpStream, remembered: &Mutex<Vec<Request>>, answer: &Mutex<impl FnMut() -> Answer>) {
    let peer = stream.peer_addr().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read(&mut reader, peer) {
        remembered.lock().unwrap().push(request);
        let answer = answer.lock().unwrap()();
        // A client that has enough hangs up.
        let written = answer.write(&mut stream);
        match answer.end {
            End::Clean if written.is_ok() => {}
            End::Clean | End::Cut => return,
            // Until the caller ends it.
            End::Silent => drop(reader.read_to_end(&mut Vec::new())),
        }
    }
}

fn read(reader: &mut impl BufRead, peer: SocketAddr) -> Option<Request> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line.to_lowercase());
    }
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { peer, head, body: serde_json::from_slice(&body).unwrap_or_default() })
}

pub async fn call(remote: &Remote, prompt: &Prompt) -> Result<Reply, ProviderFailure> {
    remote.call(prompt, &some_tools(), &exec_id(), 1, &mut |_| {}).await
}

/// The reply and everything that was heard of it.
pub async fn heard(remote: &Remote, prompt: &Prompt) -> (Result<Reply, ProviderFailure>, Vec<String>) {
    let mut pieces = Vec::new();
    let reply = remote.call(prompt, &some_tools(), &exec_id(), 1, &mut |piece| pieces.push(piece.to_owned())).await;
    (reply, pieces)
}

pub fn exec_id() -> ExecId {
    ExecId::new(EXEC)
}

pub fn call_id(index: usize) -> CallId {
    CallId::new(format!("call_{}-1-{index}", EXEC.strip_prefix("exec_").unwrap()))
}

/// Two of them, so that bodies can be written out.
pub fn some_tools() -> ToolSet {
    ToolSet::of_names(&["TaskList", "ReadFile"])
}

pub fn schema(name: &str) -> Value {
    tools::ALL.iter().find(|tool| tool.name == name).unwrap().schema().clone()
}

pub fn description(name: &str) -> &'static str {
    tools::ALL.iter().find(|tool| tool.name == name).unwrap().description
}

pub fn user(text: &str) -> Item {
    Item::User { parts: vec![Part::Text(text.to_owned())] }
}

/// As a prompt has them.
pub fn shared(items: impl IntoIterator<Item = Item>) -> Vec<Arc<Item>> {
    items.into_iter().map(Arc::new).collect()
}

pub fn hello() -> Prompt {
    Prompt { system: "Be brief.".to_owned(), items: shared([user("Hello")]), stable: 0 }
}

pub fn image() -> Image {
    Image { media_type: "image/png".to_owned(), data: "aGk=".to_owned() }
}

pub fn result(index: usize, content: &str) -> CallResult {
    CallResult { call_id: call_id(index), content: content.to_owned(), failed: false, images: Vec::new() }
}

/// The earlier reply as the ledger keeps it, with results for all of its calls.
pub fn after(reply: &Reply) -> Prompt {
    let calls = reply.calls.iter();
    let calls = calls.map(|call| CallRecord {
        call_id: call.call_id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone(),
    });
    let thought = reply.sealed.clone().map(|sealed| SealedReasoning { model: reply.model.clone().unwrap(), sealed });
    let answer = Item::Assistant { text: reply.text.clone(), calls: calls.collect(), thought };
    let results = (0..reply.calls.len()).map(|index| result(index, "{}")).collect();
    let items = shared([user("Hello"), answer, Item::Results { results }]);
    Prompt { system: "Be brief.".to_owned(), stable: 1, items }
}

/// The calls of a reply as they are read: tool and input.
pub fn calls(reply: &Reply) -> Vec<(&str, &Value)> {
    reply.calls.iter().map(|call| (call.tool.as_str(), &*call.input)).collect()
}

/// Events whose data says what they are, as Anthropic and Responses send them.
pub fn named(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

/// Events as Chat Completions have them.
pub fn chunks(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>() + "data: [DONE]\n\n"
}

/// One piece of a chat.
pub fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}
