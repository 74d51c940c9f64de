//! WebFetch, against a server of its own on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use abide_effects::web;
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::{ExecutorCall, WebFetch};
use serde_json::{Value, json};

use crate::calls::executor_call;

/// Answers each request by its path, and remembers what it was sent.
struct Server {
    base: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&asked);
        // It ends with the process: nobody waits for it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let path = head[0].split(' ').nth(1).unwrap().to_owned();
                remembered.lock().unwrap().push(head.join("\n"));
                // A client that has enough hangs up.
                let _ = stream.write_all(&answer(&path));
            }
        });
        Server { base, asked }
    }

    fn fetch(&self, path: &str) -> Result<Value, Refusal> {
        fetch(json!({ "url": format!("{}{path}", self.base) }))
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn web_call(input: &Value) -> Result<WebFetch, Refusal> {
    let call = executor_call("WebFetch", input)?;
    let ExecutorCall::WebFetch(call) = call else { panic!("{call:?}") };
    Ok(call)
}

fn fetch(input: Value) -> Result<Value, Refusal> {
    web::fetch(&web_call(&input)?, true)
}

fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn a_page_is_fetched_and_labelled() {
    let server = Server::new(|path| match path {
        "/page?q=%C3%A9" => answer("200 OK", "Content-Type: text/html; charset=utf-8\r\n", "<p>héllo</p>"),
        "/latin1" => answer("200 OK", "Content-Type: text/plain; charset=\"iso-8859-1\"\r\n", b"caf\xe9"),
        "/bare" => answer("200 OK", "", "no kind"),
        "/chunked" => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".to_vec(),
        _ => answer("404 Not Found", "Content-Type: text/plain\r\n", "nothing here"),
    });
    let url = format!("{}/page?q=%C3%A9", server.base);
    assert_eq!(
        server.fetch("/page?q=é#part").unwrap(),
        json!({ "status": 200, "content": "<p>héllo</p>", "content_type": "text/html; charset=utf-8",
            "origin": "outside", "url": url, "truncated": false })
    );
    assert_eq!(server.fetch("/latin1").unwrap()["content"], "café");
    assert_eq!(server.fetch("/chunked").unwrap()["content"], "abcde");
    let bare = server.fetch("/bare").unwrap();
    assert_eq!((&bare["content"], &bare["content_type"]), (&json!("no kind"), &Value::Null));
    let missing = server.fetch("/none").unwrap();
    assert_eq!((&missing["status"], &missing["content"]), (&json!(404), &json!("nothing here")));
    for head in server.asked() {
        let head = head.to_lowercase();
        assert!(head.starts_with("get /") && head.contains("user-agent: abide/"), "{head}");
        assert!(!head.contains("authorization") && !head.contains("cookie"), "{head}");
    }
}

#[test]
fn without_the_network_nothing_is_asked() {
    let server = Server::new(|_| answer("200 OK", "", "x"));
    let call = web_call(&json!({ "url": server.base })).unwrap();
    let refusal = web::fetch(&call, false).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::NetworkOff);
    assert!(refusal.hint.contains("--network") && refusal.hint.contains("PATCH /v1/agents/ID"), "{refusal:?}");
    assert!(server.asked().is_empty());
}

#[test]
fn redirects_are_followed_so_far_and_only_where_it_is_allowed() {
    let server = Server::new(|path| {
        let to = |location: &str| answer("302 Found", &format!("Set-Cookie: a=b\r\nLocation: {location}\r\n"), "");
        match path {
            "/a/one" => to("two"),
            "/a/two" => to("../b/./three?x=1"),
            "/b/three?x=1" => to("?x=2"),
            "/b/three?x=2" => to("/last#part"),
            "/round" => to("/round"),
            "/file" => to("file:///etc/passwd"),
            "/user" => to("http://me:secret@127.0.0.1/"),
            "/odd" => to("http://"),
            "/304" => answer("304 Not Modified", "Location: /last\r\n", ""),
            _ => answer("200 OK", "", path),
        }
    });
    let result = server.fetch("/a/one").unwrap();
    assert_eq!((&result["content"], &result["url"]), (&json!("/last"), &json!(format!("{}/last", server.base))));
    assert!(server.asked().iter().all(|head| !head.to_lowercase().contains("cookie")));
    assert_eq!(server.fetch("/304").unwrap()["status"], 304);
    assert_eq!(server.fetch("/round").unwrap_err().code, ErrorCode::TooManyRedirects);
    assert_eq!(server.asked().iter().filter(|head| head.starts_with("GET /round ")).count(), 6);
    for path in ["/file", "/user", "/odd"] {
        let refusal = server.fetch(path).unwrap_err();
        assert!(refusal.code == ErrorCode::BadRedirect && !format!("{refusal:?}").contains("secret"), "{refusal:?}");
    }
}

#[test]
fn bodies_are_bounded_and_have_to_be_text() {
    let server = Server::new(|path| match path {
        "/large" => answer("200 OK", "Content-Type: text/plain\r\n", "é".repeat(4 << 20)),
        "/endless" => {
            // Longer than it says, and than anybody reads.
            b"HTTP/1.1 200 OK\r\n\r\n".iter().copied().chain(std::iter::repeat_n(b'x', 6 << 20)).collect()
        }
        "/image" => answer("200 OK", "Content-Type: image/png\r\n", "PNG"),
        "/zero" => answer("200 OK", "", b"a\0b"),
        "/gzip" => answer("200 OK", "Content-Encoding: gzip\r\n", "x"),
        "/headers" => answer("200 OK", &"X-Many: and more of it\r\n".repeat(10_000), ""),
        "/short" => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".to_vec(),
        _ => b"no http at all\r\n\r\n".to_vec(),
    });
    let large = server.fetch("/large").unwrap();
    assert_eq!((large["content"].as_str().unwrap().len(), &large["truncated"]), (256 << 10, &json!(true)));
    let some = fetch(json!({ "url": format!("{}/large", server.base), "max_bytes": 5 })).unwrap();
    assert_eq!((&some["content"], &some["truncated"]), (&json!("éé"), &json!(true)));
    let most = fetch(json!({ "url": format!("{}/endless", server.base), "max_bytes": 4 << 20 })).unwrap();
    assert_eq!((most["content"].as_str().unwrap().len(), &most["truncated"]), (4 << 20, &json!(true)));
    for path in ["/image", "/zero", "/gzip"] {
        assert_eq!(server.fetch(path).unwrap_err().code, ErrorCode::BinaryContent, "{path}");
    }
    for path in ["/headers", "/short", "/nonsense"] {
        let refusal = server.fetch(path).unwrap_err();
        assert!(refusal.code == ErrorCode::FetchFailed && refusal.message.len() < 500, "{refusal:?}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(fetch(json!({ "url": format!("http://{closed}/") })).unwrap_err().code, ErrorCode::FetchFailed);
    // To a server that speaks no TLS, https fails; it does not fall back.
    let https = server.base.replace("http://", "https://");
    assert_eq!(fetch(json!({ "url": https })).unwrap_err().code, ErrorCode::FetchFailed);
}

#[test]
fn addresses_that_are_none_are_refused_before_anything_is_asked() {
    let long = format!("http://example.com/{}", "x".repeat(5_000));
    for (url, hints) in [
        ("", "such as https://"),
        ("example.com", "begin it with https://"),
        ("/etc/passwd", "begin it with https://"),
        ("file:///etc/passwd", "only http and https"),
        ("ftp://example.com/", "only http and https"),
        ("http://", "write it like"),
        ("http://me:secret@example.com/", "no credentials"),
        ("https://me@example.com", "no credentials"),
        ("http://exa mple.com/", "write it like"),
        ("http://example.com/a\nb", "write it like"),
        (&long, "4096 bytes"),
    ] {
        let refusal = web_call(&json!({ "url": url })).unwrap_err();
        assert!(refusal.code == ErrorCode::InvalidInput && refusal.hint.contains(hints), "{url:?}: {refusal:?}");
        assert!(!refusal.message.contains("secret") && !refusal.hint.contains("secret"), "{refusal:?}");
    }
    for input in [
        json!({ "url": "http://example.com", "max_bytes": 0 }),
        json!({ "url": "http://example.com", "max_bytes": (4 << 20) + 1 }),
        json!({ "url": "http://example.com", "headers": {} }),
        json!({ "url": 5 }),
    ] {
        assert_eq!(web_call(&input).unwrap_err().code, ErrorCode::InvalidInput, "{input}");
    }
}
