//! Serving connections: how they are accepted, how slow their clients may be, and how they end. How many there are, and
//! which one gives way, is decided in `connections`.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, Sleep};
use tower_service::Service;

use crate::app::App;
use crate::connections::{ActiveRequest, Connection};
use crate::limits::Limits;
use crate::router::router;

/// How long connections may take to end once everything is answered.
const DRAIN: Duration = Duration::from_secs(2);
/// Connections that the system holds until they are accepted. Past it a client tries again after a second.
const BACKLOG: u32 = 1_024;
/// How long to wait after a connection could not be accepted: the descriptors of those that were closed are free then.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

impl Server {
    pub fn bind(address: SocketAddr, app: Arc<App>) -> io::Result<Server> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // So that the daemon can be started again at once.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Server { listener: socket.listen(BACKLOG)?, app })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `done`; then nothing new is taken, and what is under way gets a moment to end.
    pub async fn serve(self, done: impl Future<Output = ()>) {
        let router = router(&self.app);
        let graceful = GracefulShutdown::new();
        let mut refused = AcceptFailures::default();
        let mut done = std::pin::pin!(done);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut done => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    refused.tell_if_due();
                    self.begin(stream, &router, graceful.watcher());
                    if self.app.connections.is_crowded() {
                        // Request heads that have arrived already are read first: only connections without one are closed.
                        tokio::task::yield_now().await;
                    }
                }
                Err(error) => {
                    self.app.metrics.count_accept_failure();
                    refused.count(&error);
                    // Out of descriptors, mostly: one that nobody showed a token on is given up for the next, and
                    // accepting again at once would only spin.
                    self.app.connections.close_anonymous();
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
        drop(self.listener);
        self.app.closing.send_replace(true);
        if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
            tracing::debug!("connections were cut at the end");
        }
    }

    fn begin(&self, stream: TcpStream, router: &Router, watcher: Watcher) {
        let Some(connection) = self.app.connections.admit() else {
            turn_away(&stream);
            return;
        };
        // Small answers go out at once; without it they wait for more to come.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection was gone before it began");
            return;
        }
        let limits = &self.app.options.limits;
        // It ends with its client, with a stall, to make room, or with the drain of the server.
        tokio::spawn(run(stream, connection, router.clone(), limits.clone(), watcher));
    }
}

async fn run(stream: TcpStream, connection: Arc<Connection>, router: Router, limits: Limits, watcher: Watcher) {
    let io = StallTimeout { stream, stall: limits.stall, stalled: None, connection: Arc::clone(&connection) };
    let on = Arc::clone(&connection);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.read)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(io), service_fn(move |request| answer(&on, &router, request)));
    let served = watcher.watch(served);
    tokio::select! {
        ended = served => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        }
        () = connection.must_close() => tracing::debug!("a connection was closed: it showed no request, or gave way"),
    }
}

/// Answers one request. The connection is busy until the answer's last byte was handed to it.
fn answer(
    connection: &Arc<Connection>,
    router: &Router,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response, std::convert::Infallible>> + use<> {
    let under_way = connection.begin_request();
    request.extensions_mut().insert(Arc::clone(connection));
    let answered = router.clone().call(request);
    async move {
        let response = answered.await?;
        Ok(response.map(|body| Body::new(TrackedBody { body, _under_way: under_way })))
    }
}

/// The body of an answer, and the request that it belongs to.
struct TrackedBody {
    body: Body,
    _under_way: ActiveRequest,
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Connections that could not be accepted, as the log tells them: the first at once, then a count once a minute.
#[derive(Debug, Default)]
struct AcceptFailures {
    told_at: Option<Instant>,
    untold: u64,
}

impl AcceptFailures {
    const EVERY: Duration = Duration::from_secs(60);

    fn count(&mut self, error: &io::Error) {
        self.untold += 1;
        if self.told_at.is_none() {
            tracing::warn!(%error, "a connection could not be accepted; it is tried again, and further failures are counted");
            (self.told_at, self.untold) = (Some(Instant::now()), 0);
        }
        self.tell_if_due();
    }

    fn tell_if_due(&mut self) {
        let Some(told_at) = self.told_at.filter(|told_at| told_at.elapsed() >= AcceptFailures::EVERY) else { return };
        let minutes = told_at.elapsed().as_secs() / 60;
        match self.untold {
            // Nothing happened since the last line: the next failure is told at once.
            0 => self.told_at = None,
            failures => {
                tracing::warn!(failures, minutes, "connections could not be accepted at the first try");
                (self.told_at, self.untold) = (Some(Instant::now()), 0);
            }
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
struct StallTimeout {
    stream: TcpStream,
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    connection: Arc<Connection>,
}

impl StallTimeout {
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.stalled.take().is_some() {
                self.connection.set_unsent(false);
            }
            return written;
        }
        let (stall, connection) = (self.stall, &self.connection);
        let stalled = self.stalled.get_or_insert_with(|| {
            connection.set_unsent(true);
            Box::pin(tokio::time::sleep(stall))
        });
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the reader takes nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for StallTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for StallTimeout {
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
