//! Requests to providers: bounded in every direction of time, over connections that are kept. Dropping what is returned
//! here ends the connection.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::header::HeaderMap;
use reqwest::{Certificate, Client, Method, RequestBuilder, Response, Url, redirect};

use super::fault;
use crate::model::ProviderFailure;
use crate::transient::{is_caused_by_transient, is_transient};
use crate::{limits, web};

/// By the proxy that the environment names, if it does.
static OUTWARD: OnceLock<Client> = OnceLock::new();
/// No proxy stands between a machine and itself.
static INWARD: OnceLock<Client> = OnceLock::new();

/// Sends it, and returns the answer once its head is there.
pub(super) async fn post(url: &str, headers: HeaderMap, body: Vec<u8>) -> Result<Response, ProviderFailure> {
    send_request(request(Method::POST, url)?.headers(headers).body(body)).await
}

pub(super) async fn get(url: &str, headers: HeaderMap) -> Result<Response, ProviderFailure> {
    send_request(request(Method::GET, url)?.headers(headers)).await
}

fn request(method: Method, url: &str) -> Result<RequestBuilder, ProviderFailure> {
    // Without the URL: it may contain credentials.
    let url = Url::parse(url).map_err(|error| {
        ProviderFailure::invalid(format!("its base URL is no URL: {error}; write it like https://example.com/v1"))
    })?;
    let inward = web::is_this_machine(url.host_str().unwrap_or_default());
    let client = if inward { shared_client(&INWARD, false) } else { shared_client(&OUTWARD, true) };
    Ok(client?.request(method, url))
}

/// The client, made when it is first needed. A failure is not kept: it comes of files that could not be read, and the next
/// call reads them again.
fn shared_client(kept: &'static OnceLock<Client>, proxy: bool) -> Result<&'static Client, ProviderFailure> {
    match kept.get() {
        Some(client) => Ok(client),
        None => {
            let made = build_client(proxy)?;
            Ok(kept.get_or_init(|| made))
        }
    }
}

async fn send_request(request: RequestBuilder) -> Result<Response, ProviderFailure> {
    match tokio::time::timeout(limits::MODEL_FIRST_BYTE, request.send()).await {
        Ok(answer) => answer.map_err(|error| connection_failure(&error)),
        Err(_) => Err(timeout_after(limits::MODEL_FIRST_BYTE, "it did not begin to answer")),
    }
}

/// More of the answer; nothing once it is over.
pub(super) async fn next_chunk(answer: &mut Response) -> Result<Option<Bytes>, ProviderFailure> {
    match tokio::time::timeout(limits::MODEL_STALL, answer.chunk()).await {
        Ok(piece) => piece.map_err(|error| connection_failure(&error)),
        Err(_) => Err(timeout_after(limits::MODEL_STALL, "its answer stopped coming")),
    }
}

/// More of the answer, where it has come already: there is nothing to wait for, and no time to keep.
pub(super) fn poll_chunk(answer: &mut Response) -> Option<Result<Option<Bytes>, ProviderFailure>> {
    answer.chunk().now_or_never().map(|piece| piece.map_err(|error| connection_failure(&error)))
}

/// The beginning of an answer that is an error, of which `bytes` have been read. Parts that can't be read are left out:
/// its status says enough.
pub(super) async fn read_beginning(answer: &mut Response, mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.len() < limits::ERROR_BODY_BYTES {
        match next_chunk(answer).await {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Ok(None) | Err(_) => break,
        }
    }
    bytes.truncate(limits::ERROR_BODY_BYTES);
    bytes
}

/// Reads what is left of an answer that has said everything, so that its connection can serve the next.
pub(super) async fn drain_body(mut answer: Response) {
    let rest = async { while let Ok(Some(_)) = answer.chunk().await {} };
    // One that does not end is ended instead.
    let _ = tokio::time::timeout(limits::MODEL_DRAIN, rest).await;
}

fn build_client(proxy: bool) -> Result<Client, ProviderFailure> {
    let mut builder = Client::builder()
        .user_agent(concat!("abide/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(limits::MODEL_CONNECT)
        .tcp_keepalive(Duration::from_secs(60))
        // A key is for one address.
        .redirect(redirect::Policy::none());
    if !proxy {
        builder = builder.no_proxy();
    }
    if let Some(roots) = own_roots()? {
        builder = builder.tls_built_in_root_certs(false);
        builder = roots.into_iter().fold(builder, |builder, root| builder.add_root_certificate(root));
    }
    builder.build().map_err(|error| {
        let message = format!("no client for HTTP could be made: {}", cause(&error));
        if is_caused_by_transient(&error) {
            ProviderFailure::system(message)
        } else {
            ProviderFailure::invalid(message)
        }
    })
}

fn own_roots() -> Result<Option<Vec<Certificate>>, ProviderFailure> {
    let bundle = match web::own_certificates() {
        Some(Ok(bundle)) => bundle,
        // Made without them, the client would trust others for as long as the process lives.
        Some(Err(error)) if is_transient(&error) => {
            return Err(ProviderFailure::system(format!("the file in SSL_CERT_FILE can't be read: {error}")));
        }
        Some(Err(_)) | None => return Ok(None),
    };
    Ok(Certificate::from_pem_bundle(&bundle).ok().filter(|roots| !roots.is_empty()))
}

fn connection_failure(error: &reqwest::Error) -> ProviderFailure {
    let why = cause(error);
    if is_caused_by_transient(error) {
        return ProviderFailure::system(format!("it could not be asked: {why}"));
    }
    if error.is_builder() {
        return ProviderFailure::invalid(format!("it can't be asked: {why}"));
    }
    if error.is_timeout() {
        return timeout_after(limits::MODEL_CONNECT, "it could not be reached");
    }
    if error.is_connect() {
        return fault::disconnect_failure(format!("it could not be reached: {why}"));
    }
    fault::disconnect_failure(format!("the connection to it broke: {why}"))
}

fn timeout_after(patience: Duration, what: &str) -> ProviderFailure {
    fault::timeout_failure(format!("{what} for {} seconds", patience.as_secs()))
}

/// The innermost cause: the outermost error names the URL, and the ones between say that something failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "no reason is known".to_owned(), ToString::to_string)
}
