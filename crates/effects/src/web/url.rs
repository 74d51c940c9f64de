//! An address that may be fetched: http or https, with a host and without credentials.

use ureq::http::Uri;

const URL_BYTES: usize = 4_096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Without the part after `#`, which is never sent.
    text: String,
    uri: Uri,
}

impl Url {
    /// Refuses with what to do instead.
    pub fn parse(text: &str) -> Result<Url, String> {
        let text = text.trim();
        if text.is_empty() || text.len() > URL_BYTES {
            return Err(format!("give an address of 1 to {URL_BYTES} bytes, such as https://example.com/page"));
        }
        let text = encoded(text.split('#').next().unwrap_or_default());
        match text.split_once("://") {
            Some((scheme, _)) if ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {}
            Some(_) => return Err("only http and https are fetched; ReadFile reads files of the workspace".to_owned()),
            None => return Err("begin it with https:// or http://".to_owned()),
        }
        let uri: Uri = text.parse().map_err(|error| format!("{error}: write it like https://example.com/page"))?;
        let authority = uri.authority().ok_or("name a host, as in https://example.com/page")?;
        if authority.as_str().contains('@') {
            return Err("leave user and password out: no credentials are sent".to_owned());
        }
        if authority.host().is_empty() {
            return Err("name a host, as in https://example.com/page".to_owned());
        }
        Ok(Url { text: uri.to_string(), uri })
    }

    /// Where a redirect from here leads.
    pub(super) fn join(&self, location: &str) -> Result<Url, String> {
        let location = location.trim();
        let (scheme, authority) = (self.uri.scheme_str().unwrap_or("http"), self.uri.authority());
        let here = format!("{scheme}://{}", authority.map(|authority| authority.as_str()).unwrap_or_default());
        if has_scheme(location) {
            return Url::parse(location);
        }
        if location.starts_with("//") {
            return Url::parse(&format!("{scheme}:{location}"));
        }
        if location.starts_with('/') {
            return Url::parse(&format!("{here}{location}"));
        }
        let path = self.uri.path();
        if location.starts_with('?') {
            return Url::parse(&format!("{here}{path}{location}"));
        }
        let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
        let (relative, query) = location.split_once('?').map_or((location, None), |(path, query)| (path, Some(query)));
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Url::parse(&format!("{here}{}{query}", without_dots(&format!("{folder}{relative}"))))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    /// No proxy stands between a machine and itself.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        is_this_machine(self.host())
    }
}

/// Whether the host of an address is the machine that asks.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn has_scheme(location: &str) -> bool {
    let scheme = location.split(['/', '?', '#']).next().and_then(|part| part.split_once(':'));
    scheme.is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// People write letters and spaces that an address can't have.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte > 0x7e || matches!(byte, b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') {
            encoded.push_str(&format!("%{byte:02X}"));
        } else {
            encoded.push(char::from(byte));
        }
    }
    encoded
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = path.split('/').skip(1).peekable();
    while let Some(part) = rest.next() {
        match part {
            "." | ".." => {
                if part == ".." {
                    parts.pop();
                }
                if rest.peek().is_none() {
                    parts.push("");
                }
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
