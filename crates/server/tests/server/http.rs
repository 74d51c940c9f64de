//! HTTP as bytes: one request on one connection, and the answer as it came.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request to be sent.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Ask {
        Ask { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn get(path: &str) -> Ask {
        Ask::new("GET", path)
    }

    pub fn post(path: &str) -> Ask {
        Ask::new("POST", path)
    }

    /// In place of one of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn token(self, token: &str) -> Ask {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn key(self, key: &str) -> Ask {
        self.header("Idempotency-Key", key)
    }

    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Ask {
        self.body = body.into();
        self.header("Content-Type", "application/json")
    }

    pub fn json(self, body: Value) -> Ask {
        self.bytes(body.to_string())
    }

    pub fn named(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Everything up to the body.
    pub fn head(&self) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }

    pub async fn send(&self, stream: &mut TcpStream) {
        let mut ask = self.clone();
        if !ask.body.is_empty() && ask.named("Transfer-Encoding").is_none() && ask.named("Content-Length").is_none() {
            ask = ask.header("Content-Length", &self.body.len().to_string());
        }
        let mut bytes = ask.head().into_bytes();
        bytes.extend(&ask.body);
        stream.write_all(&bytes).await.unwrap();
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&self.body)),
        }
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// A refusal with this status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let problem = self.is(status);
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        problem
    }
}

/// The head of an answer; what follows it stays in the stream.
pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Answer {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        let read = stream.read(&mut byte).await.unwrap();
        assert_eq!(read, 1, "the connection ended in the head: {:?}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    Answer { status, headers: lines.map(pair).collect(), body: Vec::new() }
}

/// One whole answer; the connection may go on after it.
pub async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> Answer {
    let mut answer = read_head(stream).await;
    if let Some(length) = answer.header("content-length") {
        answer.body = vec![0; length.parse().unwrap()];
        let mut body = std::mem::take(&mut answer.body);
        stream.read_exact(&mut body).await.unwrap();
        answer.body = body;
    } else if answer.header("transfer-encoding") == Some("chunked") {
        while let Some(chunk) = read_chunk(stream).await {
            answer.body.extend(chunk);
        }
    }
    answer
}

/// The next chunk of a chunked body; none at its end.
pub async fn read_chunk(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        line.push(byte[0]);
    }
    let size = usize::from_str_radix(String::from_utf8(line).unwrap().trim(), 16).unwrap();
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).await.ok()?;
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}
