//! The site that a request is for and the one that it comes from: its `Host` and its `Origin`, each parsed once and
//! strictly. A page in somebody's browser must not speak to a daemon on their machine, whatever name it found for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use abide_api::{ErrorCode, Problem};
use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

/// `HOST` or `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    /// In lower case.
    Name(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// `SCHEME://HOST` or `SCHEME://HOST:PORT`, and nothing after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: Scheme,
    authority: Authority,
}

impl Authority {
    fn parse(text: &str) -> Option<Authority> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                (Host::Address(address.parse::<Ipv6Addr>().ok()?.into()), rest)
            }
            None => {
                let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Host::parse(name)?, rest)
            }
        };
        let port = match rest {
            "" => None,
            rest => Some(port(rest.strip_prefix(':')?)?),
        };
        Some(Authority { host, port })
    }

    fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }
}

impl Host {
    fn parse(name: &str) -> Option<Host> {
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Host::Address(address.into()));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        (!name.is_empty() && name.bytes().all(plain)).then(|| Host::Name(name.to_ascii_lowercase()))
    }
}

/// Digits alone: a number's own parser takes a sign, too.
fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Origin {
    fn parse(text: &str) -> Option<Origin> {
        let (scheme, authority) = text.split_once("://")?;
        let scheme = match scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        Some(Origin { scheme, authority: Authority::parse(authority)? })
    }

    /// The part of a URL before its path.
    pub(crate) fn of_url(url: &str) -> Option<Origin> {
        let path = url.find("://").and_then(|end| Some(end + 3 + url[end + 3..].find('/')?));
        Origin::parse(&url[..path.unwrap_or(url.len())])
    }

    /// Whether a request for this authority is one for this origin. A port that is left out is the scheme's own.
    fn is_at(&self, authority: &Authority) -> bool {
        let usual = match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        };
        self.authority.host == authority.host && self.authority.port.unwrap_or(usual) == authority.port.unwrap_or(usual)
    }
}

/// Refuses a request that is for another site, or comes from one. With `loopback`, only names of this machine are taken,
/// and the `public` one.
pub(crate) fn check(parts: &Parts, loopback: bool, public: Option<&Origin>) -> Result<(), Problem> {
    let host = host(parts)?;
    let ours = host.as_ref().is_some_and(|host| host.is_loopback() || public.is_some_and(|public| public.is_at(host)));
    if loopback && !ours {
        return Err(foreign_host("the request is not for a name of this machine"));
    }
    let foreign = || Problem::new(ErrorCode::ForeignOrigin, "requests of other sites are not accepted");
    match single(&parts.headers, &ORIGIN) {
        Header::Absent => Ok(()),
        Header::Once(origin) => {
            let same = Origin::parse(origin).zip(host).is_some_and(|(origin, host)| origin.is_at(&host));
            if same { Ok(()) } else { Err(foreign()) }
        }
        Header::Unclear => Err(foreign()),
    }
}

/// The host that a request names, if it names one. The request line may name it, too: it has to be the same.
fn host(parts: &Parts) -> Result<Option<Authority>, Problem> {
    let unclear = || foreign_host("the request does not name one host, once, as HOST or HOST:PORT");
    let named = match single(&parts.headers, &HOST) {
        Header::Absent => None,
        Header::Once(text) => Some(Authority::parse(text).ok_or_else(unclear)?),
        Header::Unclear => return Err(unclear()),
    };
    match parts.uri.authority().map(|authority| Authority::parse(authority.as_str())) {
        None => Ok(named),
        Some(target) if target.is_some() && target == named => Ok(named),
        Some(_) => Err(unclear()),
    }
}

fn foreign_host(detail: &str) -> Problem {
    Problem::new(ErrorCode::ForeignHost, detail)
}

enum Header<'a> {
    Absent,
    Once(&'a str),
    /// There are several, or it is not text.
    Unclear,
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Header<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Header::Absent,
        (Some(Ok(text)), None) => Header::Once(text),
        (Some(Ok(_) | Err(_)), _) => Header::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn checked(host: &str, origin: Option<&str>, public: Option<&str>) -> Result<(), String> {
        let mut request = Request::builder().uri("/").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let public = public.map(|url| Origin::of_url(url).unwrap());
        check(&parts, true, public.as_ref()).map_err(|problem| problem.code)
    }

    #[test]
    fn the_public_name_is_taken_with_the_port_that_its_scheme_has() {
        for (public, host) in [
            ("https://hooks.example", "hooks.example"),
            ("https://hooks.example", "HOOKS.example:443"),
            ("https://hooks.example:443/below", "hooks.example"),
            ("http://hooks.example:8080/below/it", "hooks.example:8080"),
            ("http://10.0.0.7", "10.0.0.7:80"),
            ("https://[2001:db8::7]", "[2001:db8:0::7]"),
        ] {
            assert_eq!(checked(host, None, Some(public)), Ok(()), "{host} at {public}");
        }
        for (public, host) in [
            ("https://hooks.example", "hooks.example:80"),
            ("https://hooks.example", "hooks.example.evil"),
            ("http://hooks.example:8080", "hooks.example"),
        ] {
            assert_eq!(checked(host, None, Some(public)), Err("foreign_host".to_owned()), "{host} at {public}");
        }
    }

    #[test]
    fn a_page_of_the_site_itself_may_ask() {
        for (host, origin) in [
            ("localhost:7777", "http://localhost:7777"),
            ("localhost", "http://localhost:80"),
            ("localhost", "https://localhost"),
            ("[::1]:7777", "http://[::1]:7777"),
        ] {
            assert_eq!(checked(host, Some(origin), None), Ok(()), "{origin} to {host}");
        }
        for (host, origin) in [("localhost", "http://localhost:443"), ("localhost:80", "https://localhost")] {
            assert_eq!(checked(host, Some(origin), None), Err("foreign_origin".to_owned()), "{origin} to {host}");
        }
    }

    #[test]
    fn a_url_that_names_no_site_has_no_origin() {
        for url in ["", "hooks.example", "ftp://hooks.example", "https://", "https://a@b/c", "https://bücher.example"]
        {
            assert_eq!(Origin::of_url(url), None, "{url}");
        }
    }
}
