//! Reading what a request says: its body, its query, its headers. What can't be read is refused with the place of it.

mod strict;

use std::collections::BTreeMap;
use std::time::Duration;

use abide_api::{ErrorCode, Problem};
use abide_kernel::views::duration::parse_duration;
use serde::de::DeserializeOwned;

use strict::Strict;

/// Most problems of a body are about one field; this is where.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // First whether it is JSON at all: a body cut short is another mistake than a field too many.
    let Strict(value) = serde_json::from_slice(bytes).map_err(|error| {
        if error.is_data() {
            return Problem::new(ErrorCode::WrongFields, error.to_string()).hint("say each field once").pointer("");
        }
        Problem::new(ErrorCode::NotJson, format!("the body is not JSON: {error}"))
    })?;
    if !value.is_object() {
        return Err(Problem::new(ErrorCode::WrongFields, "the body is not a JSON object").pointer(""));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let pointer = pointer(error.path());
        Problem::new(ErrorCode::WrongFields, in_words(&error.inner().to_string())).pointer(pointer)
    })
}

/// What serde says, without the names of our types.
fn in_words(said: &str) -> String {
    let known = [
        ("f64", "a number"),
        ("u64", WHOLE),
        ("u32", WHOLE),
        ("u16", WHOLE),
        ("usize", WHOLE),
        ("i64", "a whole number"),
    ];
    let found = known.iter().find_map(|(name, word)| Some((said.strip_suffix(name)?.strip_suffix("expected ")?, word)));
    found.map_or_else(|| said.to_owned(), |(before, word)| format!("{before}expected {word}"))
}

const WHOLE: &str = "a whole number, 0 or more";

/// The same where a body may be left out.
pub(crate) fn json_or_default<T: DeserializeOwned + Default>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.iter().all(u8::is_ascii_whitespace) { Ok(T::default()) } else { json(bytes) }
}

/// Nothing, or `{}`.
pub(crate) fn empty(bytes: &[u8]) -> Result<(), Problem> {
    #[derive(serde::Deserialize, Default)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    json_or_default::<Nothing>(bytes).map(|_| ())
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => String::new(),
        })
        .collect()
}

/// The parameters of a query, each at most once and each one that the operation knows.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

pub(crate) const LIMIT_DEFAULT: usize = 100;
pub(crate) const LIMIT_MAX: usize = 1_000;

impl Query {
    pub fn read(uri: &http::Uri, known: &[&str]) -> Result<Query, Problem> {
        let bad = |detail: String| Problem::new(ErrorCode::BadQuery, detail);
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        let pairs = pairs.map_err(|error| bad(format!("the query can't be read: {error}")))?;
        let mut query = Query::default();
        for (name, value) in pairs.0 {
            if name.eq_ignore_ascii_case("token") || name.eq_ignore_ascii_case("access_token") {
                return Err(bad("a token never goes into a URL".to_owned()).hint("send Authorization: Bearer TOKEN"));
            }
            if !known.contains(&name.as_str()) {
                let hint = match known {
                    [] => "this route takes no parameters".to_owned(),
                    known => format!("there are {}", known.join(", ")),
                };
                return Err(bad(format!("there is no parameter {name:?}")).hint(hint));
            }
            if query.0.insert(name.clone(), value).is_some() {
                return Err(bad(format!("{name} is given twice")));
            }
        }
        Ok(query)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        // Plain digits: no sign, no blanks.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u64>().ok().filter(|number| digits && i64::try_from(*number).is_ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::new(ErrorCode::BadQuery, format!("{name} takes a whole number, not {text:?}"))),
        }
    }

    /// A duration of at most `max`.
    pub fn duration(&self, name: &str, max: Duration) -> Result<Option<Duration>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let bad = |detail: String| Problem::new(ErrorCode::BadQuery, detail);
        match parse_duration(text) {
            Ok(duration) if duration <= max => Ok(Some(duration)),
            Ok(_) => Err(bad(format!("{name} is at most {}s", max.as_secs())).hint("ask again when it is over")),
            Err(error) => Err(bad(format!("{name} {text:?} is no duration: {error}"))),
        }
    }

    fn count(&self, name: &str) -> Result<Option<usize>, Problem> {
        let range = 1..=LIMIT_MAX as u64;
        match self.number(name)? {
            None => Ok(None),
            Some(count) if range.contains(&count) => Ok(usize::try_from(count).ok()),
            Some(count) => {
                Err(Problem::new(ErrorCode::BadQuery, format!("{name} goes from 1 to {LIMIT_MAX}, not {count}")))
            }
        }
    }

    pub fn limit(&self) -> Result<usize, Problem> {
        Ok(self.count("limit")?.unwrap_or(LIMIT_DEFAULT))
    }

    pub fn last(&self) -> Result<Option<usize>, Problem> {
        self.count("last")
    }
}
