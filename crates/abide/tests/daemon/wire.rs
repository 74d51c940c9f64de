//! HTTP by hand, one connection at a time: a test decides itself what it sends, and hears when an answer did not come.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Far beyond what any answer takes; it only keeps a test from waiting for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a daemon is, and as whom it is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    pub host: String,
    pub token: String,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

pub struct Wire {
    address: Address,
    /// Kept from one request to the next, until one of them fails.
    stream: Option<BufReader<TcpStream>>,
}

impl Wire {
    pub fn new(address: Address) -> Wire {
        Wire { address, stream: None }
    }

    /// Sends one request. An error means that no answer was heard; what became of the request is not known then.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Result<Answer> {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.write(method, path, "application/json", headers, &body)
    }

    /// Posts a plain text.
    pub fn text(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Answer> {
        self.write("POST", path, "text/plain", headers, body)
    }

    fn write(&mut self, method: &str, path: &str, media: &str, headers: &[(&str, &str)], body: &str) -> Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(&self.address)?,
        };
        let length = body.len().to_string();
        let mut all = vec![("content-type", media), ("content-length", length.as_str())];
        all.extend(headers);
        write(&mut stream, &self.address, &format!("{method} {path} HTTP/1.1"), &all, body)?;
        let (status, length) = head(&mut stream)?;
        let mut bytes = vec![0; length.ok_or_else(|| broken("an answer without a length"))?];
        stream.read_exact(&mut bytes)?;
        let body = match bytes.is_empty() {
            true => Value::Null,
            // The counters are text.
            false => serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()),
        };
        self.stream = Some(stream);
        Ok(Answer { status, body })
    }
}

/// One event of a stream of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Sse {
    pub id: String,
    pub name: String,
    pub data: Value,
}

/// An open stream of events. Asked for in HTTP/1.0, it has no frames of its own and ends with its connection.
pub struct Stream(BufReader<TcpStream>);

impl Stream {
    pub fn open(address: &Address, path: &str, last_event_id: Option<&str>) -> Result<Stream> {
        let mut stream = connect(address)?;
        let headers: Vec<(&str, &str)> = last_event_id.map(|id| ("last-event-id", id)).into_iter().collect();
        write(&mut stream, address, &format!("GET {path} HTTP/1.0"), &headers, "")?;
        match head(&mut stream)? {
            (200, _) => Ok(Stream(stream)),
            (status, _) => Err(broken(&format!("status {status}"))),
        }
    }

    /// The next event; none when the other side is gone.
    pub fn next(&mut self) -> Option<Sse> {
        let (mut id, mut name, mut data) = (None, None, None);
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(read) if read > 0 && line.ends_with('\n') => {}
                // An event that was cut off in the middle is none.
                Ok(_) | Err(_) => return None,
            }
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("id", text)) => id = Some(text.to_owned()),
                Some(("event", text)) => name = Some(text.to_owned()),
                Some(("data", text)) => data = Some(serde_json::from_str(text).unwrap()),
                Some(_) | None => {}
            }
            if let (true, Some(data)) = (line.is_empty(), data.take_if(|_| line.is_empty())) {
                return Some(Sse { id: id.unwrap(), name: name.unwrap(), data });
            }
        }
    }
}

fn broken(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}

fn connect(address: &Address) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(&address.host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

fn write(
    stream: &mut BufReader<TcpStream>,
    address: &Address,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<()> {
    let Address { host, token } = address;
    let mut text = format!("{line}\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("\r\n{body}"));
    stream.get_mut().write_all(text.as_bytes())
}

/// The status and the length of the body.
fn head(stream: &mut BufReader<TcpStream>) -> Result<(u16, Option<usize>)> {
    let mut line = || -> Result<String> {
        let mut line = String::new();
        match stream.read_line(&mut line)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    };
    let first = line()?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| broken(&first))?;
    let mut length = None;
    loop {
        let line = line()?.to_lowercase();
        match line.split_once(": ") {
            Some(("content-length", text)) => length = text.parse().ok(),
            Some(_) => {}
            None if line.is_empty() => return Ok((status, length)),
            None => return Err(broken(&line)),
        }
    }
}
