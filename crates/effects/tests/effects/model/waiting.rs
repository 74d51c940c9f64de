//! Providers that keep one waiting, and callers that no longer wait. The time is the test's own: it jumps to the next
//! timer as soon as nothing else can happen.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use abide_effects::model::remote::Protocol;
use abide_effects::tools::ToolSet;
use abide_kernel::vocabulary::ProviderError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::chat;
use super::provider::*;

#[tokio::test(start_paused = true)]
async fn one_that_does_not_begin() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut provider = Loopback::new(vec![Answer::stream("")]);
    provider.base = format!("http://{}", listener.local_addr().unwrap());
    let failure = provider.call(Protocol::Chat).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Timeout);
    assert_eq!(failure.message, "openai-chat/m-1: it did not begin to answer for 600 seconds");
}

#[tokio::test]
async fn one_that_falls_silent() {
    let begun = format!("data: {}\n\n", chat::says("Hel"));
    let provider = Loopback::new(vec![Answer::stream(begun).silent()]);
    let remote = provider.remote(Protocol::Chat);
    // Everything that comes has come once this is heard.
    let mut hear = |_: &str| tokio::time::pause();
    let failure = remote.call(&hello(), &ToolSet::empty(), &exec_id(), 1, &mut hear).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Timeout);
    assert_eq!(failure.message, "openai-chat/m-1: its answer stopped coming for 300 seconds");
}

/// Something comes all the time, and never the end.
#[tokio::test(start_paused = true)]
async fn one_that_never_ends() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut provider = Loopback::new(vec![Answer::stream("")]);
    provider.base = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 65_536]).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await.unwrap();
        while stream.write_all(b": still here\n\n").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(200)).await;
        }
    });
    let failure = provider.call(Protocol::Chat).await.unwrap_err();
    assert_eq!(failure.error, ProviderError::Timeout);
    assert_eq!(failure.message, "openai-chat/m-1: its answer took more than 3600 s");
    server.abort();
}

/// A complete answer counts, even if its connection stays.
#[tokio::test]
async fn one_that_does_not_hang_up() {
    let provider = Loopback::new(vec![Answer::stream(chat::everything()).silent()]);
    assert_eq!(provider.call(Protocol::Chat).await.unwrap().calls.len(), 2);
}

#[tokio::test]
async fn a_connection_serves_the_next_call() {
    let provider = Loopback::new(vec![Answer::stream(chat::everything())]);
    for _ in 0..3 {
        provider.call(Protocol::Chat).await.unwrap();
    }
    let peers: BTreeSet<SocketAddr> = provider.asked().iter().map(|request| request.peer).collect();
    assert_eq!((provider.asked().len(), peers.len()), (3, 1));
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut provider = Loopback::new(vec![Answer::stream("")]);
    provider.base = format!("http://{}", listener.local_addr().unwrap());
    let (told, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 65_536]).unwrap();
        let begun =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\n", chat::says("Hel"));
        stream.write_all(begun.as_bytes()).unwrap();
        // Nothing more is sent by the caller but the end.
        told.send(stream.read(&mut [0; 1_024])).unwrap();
    });
    let remote = provider.remote(Protocol::Chat);
    let (heard, mut hearing) = tokio::sync::mpsc::unbounded_channel();
    let (prompt, tools, exec_id) = (hello(), ToolSet::empty(), exec_id());
    let mut hear = move |_: &str| heard.send(()).unwrap();
    tokio::select! {
        outcome = remote.call(&prompt, &tools, &exec_id, 1, &mut hear) => panic!("{outcome:?}"),
        Some(()) = hearing.recv() => {}
    }
    let read = tokio::task::spawn_blocking(move || ended.recv().unwrap()).await.unwrap();
    assert_eq!(read.unwrap_or(0), 0);
}
