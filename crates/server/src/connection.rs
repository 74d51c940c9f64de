//! Connections: how many, how slow, and how they end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

use crate::app::App;
use crate::router::router;

/// How long connections may take to end once everything is answered.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

impl Server {
    pub async fn bind(address: SocketAddr, app: Arc<App>) -> io::Result<Server> {
        Ok(Server { listener: TcpListener::bind(address).await?, app })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `done`; then nothing new is taken, and what is under way gets a moment to end.
    pub async fn serve(self, done: impl Future<Output = ()>) {
        let router = router(&self.app);
        let graceful = GracefulShutdown::new();
        let limits = self.app.options.limits.clone();
        let places = Arc::new(Semaphore::new(limits.connections));
        let mut done = std::pin::pin!(done);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut done => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, mostly: accepting again at once would only spin.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                turn_away(&stream);
                continue;
            };
            // Small answers go out at once; without it they wait for more to come.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection was gone before it began");
                continue;
            }
            let io = TokioIo::new(Patient { stream, stall: limits.stall, stalled: None });
            let service = TowerToHyperService::new(router.clone());
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.read)
                .max_buf_size(64 * 1024)
                .serve_connection(io, service);
            let connection = graceful.watch(connection);
            // It ends with its client, with a stall, or with the drain below.
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended early");
                }
                drop(place);
            });
        }
        drop(self.listener);
        self.app.closing.send_replace(true);
        if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
            tracing::debug!("connections were cut at the end");
        }
    }
}

/// Says why, as far as the socket takes it, and closes.
fn turn_away(stream: &TcpStream) {
    const ANSWER: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Type: application/problem+json\r\n\
Content-Length: 115\r\nConnection: close\r\n\r\n\
{\"type\":\"about:blank\",\"title\":\"Too Many Requests\",\"status\":429,\"code\":\"overloaded\",\"detail\":\"too many connections\"}";
    // Who can't even take this gets a closed connection.
    let _unsent = stream.try_write(ANSWER);
}

/// A stream whose reader has to take something now and then. One that takes nothing at all is cut off, so that it holds
/// nobody's memory.
struct Patient {
    stream: TcpStream,
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stall = self.stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the reader takes nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
