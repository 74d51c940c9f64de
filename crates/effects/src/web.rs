//! Fetches a page from the web, for agents whose operator lets them reach the network. It blocks, as the file tools do.
//!
//! Nothing is sent that says who asks: no cookies, no credentials, none from the address either. An address of the
//! machine itself is fetched like any other, since an agent with the network on can reach it by a command as well, and
//! looking at a server it has just started is what many want. Each redirect is held against the same rules as the first
//! address.

mod url;

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::WebFetch;
use abide_private::read_regular;
use serde_json::{Value, json};
use ureq::http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use ureq::http::{HeaderMap, HeaderName};
use ureq::tls::{PemItem, RootCerts, TlsConfig};

use crate::limits;
pub use url::Url;
pub(crate) use url::is_this_machine;

/// Does what a call asks for, and says what came of it. Whether the agent may is for the caller to say.
pub fn fetch(call: &WebFetch, network: bool) -> Result<Value, Refusal> {
    if !network {
        return Err(Refusal::new(ErrorCode::NetworkOff, "this agent may not reach the network"));
    }
    // A call is refused before, whose URL is none.
    let first =
        Url::parse(&call.url).map_err(|hint| Refusal::new(ErrorCode::InvalidInput, "no URL").with_hint(hint))?;
    let mut url = first.clone();
    for _ in 0..=limits::FETCH_REDIRECTS {
        let mut response = agent(&url).get(url.as_str()).call().map_err(|error| failed(&url, &error))?;
        let status = response.status();
        match text(response.headers(), &LOCATION).filter(|_| matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)) {
            Some(location) => url = url.join(&location).map_err(|hint| wrong_redirect(&url, &hint))?,
            None => {
                let headers = response.headers().clone();
                let reader = response.body_mut().with_config().limit(u64::MAX).reader();
                return page(call.max_bytes, &url, status.as_u16(), &headers, reader);
            }
        }
    }
    let message = format!("{} redirects more than {} times", first.host(), limits::FETCH_REDIRECTS);
    Err(Refusal::new(ErrorCode::TooManyRedirects, message).fill("url", shown(&url)))
}

fn page(max_bytes: u64, url: &Url, status: u16, headers: &HeaderMap, reader: impl Read) -> Result<Value, Refusal> {
    let kind = text(headers, &CONTENT_TYPE);
    let mut bytes = Vec::new();
    reader.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|error| failed(url, &ureq::Error::Io(error)))?;
    let truncated = bytes.len() as u64 > max_bytes;
    bytes.truncate(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    let encoded = text(headers, &CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
    let content = match decode(&bytes, kind.as_deref()).filter(|_| !encoded) {
        Some(content) if truncated => content.trim_end_matches('\u{fffd}').to_owned(),
        Some(content) => content,
        None => {
            let kind = kind.as_deref().unwrap_or("of no kind that is said");
            let message = format!("what {} answers with status {status} is not text: {kind}", url.host());
            return Err(Refusal::new(ErrorCode::BinaryContent, message));
        }
    };
    Ok(json!({
        "status": status,
        "content": content,
        "content_type": kind,
        "origin": "outside",
        "url": url.as_str(),
        "truncated": truncated,
    }))
}

/// Sends JSON, and says with which status it was answered. Redirects are not followed: what is signed is for one address.
pub fn post(url: &Url, headers: &[(&str, &str)], body: &str) -> Result<u16, String> {
    let mut request = agent(url).post(url.as_str()).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match request.send(body) {
        Ok(response) => Ok(response.status().as_u16()),
        Err(error) => Err(failed(url, &error).message),
    }
}

/// Whether anybody answers there, whatever they say. Nothing is sent but the question.
pub fn knock(url: &Url) -> Result<(), String> {
    let limit = Duration::from_millis(limits::KNOCK_TIMEOUT_MS);
    let asked = agent(url).get(url.as_str()).config().timeout_global(Some(limit)).build().call();
    asked.map(drop).map_err(|error| failed(url, &error).message)
}

/// One for each request: nothing is kept from one to the next, and nobody waits for a connection that has gone stale.
fn agent(url: &Url) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(limits::FETCH_HEADER_BYTES)
        .max_idle_connections(0)
        .timeout_global(Some(Duration::from_millis(limits::FETCH_TIMEOUT_MS)))
        .user_agent(concat!("abide/", env!("CARGO_PKG_VERSION")))
        .accept("text/*, application/json, application/xml;q=0.9, */*;q=0.5");
    if url.is_this_machine() {
        config = config.proxy(None);
    }
    if let Some(roots) = own_roots() {
        config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
    }
    config.build().new_agent()
}

/// Where the machine has certificates of its own to trust, as behind a proxy that looks into everything, it says so in
/// the variable that other programs read, too.
pub(crate) fn own_certificates() -> Option<std::io::Result<Vec<u8>>> {
    std::env::var_os("SSL_CERT_FILE").map(|file| read_regular(Path::new(&file)))
}

fn own_roots() -> Option<RootCerts> {
    let pem = own_certificates()?.ok()?;
    let mut certificates = Vec::new();
    for item in ureq::tls::parse_pem(&pem).flatten() {
        if let PemItem::Certificate(certificate) = item {
            certificates.push(certificate);
        }
    }
    (!certificates.is_empty()).then(|| RootCerts::new_with_certs(&certificates))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The text in its own character set; nothing if it is none.
fn decode(bytes: &[u8], kind: Option<&str>) -> Option<String> {
    let mut parts = kind.unwrap_or_default().split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    if ["image/", "audio/", "video/", "font/"].iter().any(|kind| name.starts_with(kind)) && name != "image/svg+xml" {
        return None;
    }
    let charset = parts.find_map(|part| part.split_once('=').filter(|(key, _)| key.eq_ignore_ascii_case("charset")));
    let label = charset.map(|(_, value)| value.trim_matches('"'));
    let encoding = label.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    let text = encoding.unwrap_or(encoding_rs::UTF_8).decode(bytes).0;
    (!text.contains('\0')).then(|| text.into_owned())
}

fn wrong_redirect(from: &Url, hint: &str) -> Refusal {
    let message = format!("{} redirects to where nothing can be fetched", from.host());
    Refusal::new(ErrorCode::BadRedirect, message).with_hint(format!("{hint}; nothing further was asked"))
}

fn failed(url: &Url, error: &ureq::Error) -> Refusal {
    let host = url.host();
    // An error that came while reading is wrapped in one of reading.
    let inner =
        if let ureq::Error::Io(io) = error { io.get_ref().and_then(|inner| inner.downcast_ref()) } else { None };
    let error: &ureq::Error = inner.unwrap_or(error);
    if matches!(error, ureq::Error::Timeout(_)) {
        let message = format!("{host} did not answer within {} seconds", limits::FETCH_TIMEOUT_MS / 1_000);
        return Refusal::new(ErrorCode::Timeout, message);
    }
    if matches!(error, ureq::Error::HostNotFound) {
        return Refusal::new(ErrorCode::NotFound, format!("there is no host {host}"))
            .with_hint("look at how it is spelled");
    }
    let why: String = error.to_string().chars().take(300).collect();
    Refusal::new(ErrorCode::FetchFailed, format!("{host} could not be asked: {why}"))
}

fn shown(url: &Url) -> String {
    url.as_str().chars().take(limits::PATH_SHOWN).collect()
}
