//! When a provider says to come again. Each has headers of its own for it; all of them are read here, and nothing is
//! made up where none says so.

use jiff::Timestamp;
use reqwest::header::HeaderMap;

use crate::limits;

pub(super) fn from_headers(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    // By the provider's own clock, where it tells it: ours may be wrong.
    let now = text("date").and_then(http_date).unwrap_or_else(Timestamp::now);
    let exact = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()).and_then(whole_ms);
    exact.or_else(|| text("retry-after").and_then(|value| wait_ms(value, now))).or_else(|| from_limits(headers, now))
}

/// "Please try again in 11.054s."
pub(super) fn from_words(message: &str) -> Option<u64> {
    let (_, after) = message.split_once("try again in ")?;
    let word = after.split_whitespace().next()?.trim_end_matches(['.', ',', ';']);
    span_ms(word).or_else(|| {
        let seconds = word.parse::<f64>().ok()?;
        after.split_whitespace().nth(1).filter(|unit| unit.starts_with("second")).and(whole_ms(seconds * 1_000.0))
    })
}

/// The limits that are used up say when they are whole again. Where all have something left, it was too little, and
/// the first that is whole again may do.
fn from_limits(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let resets = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        if !name.contains("ratelimit") || !name.contains("reset") {
            return None;
        }
        let wait = wait_ms(value.to_str().ok()?.trim(), now)?;
        let left = headers.get(name.replace("reset", "remaining").as_str());
        Some((left.is_some_and(|left| left == "0"), wait))
    });
    let (spent, others): (Vec<_>, Vec<_>) = resets.partition(|(spent, _)| *spent);
    let wait = |(_, wait): (bool, u64)| wait;
    spent.into_iter().map(wait).max().or_else(|| others.into_iter().map(wait).min())
}

/// Seconds, a span such as `6m0s`, or a moment: in seconds or milliseconds since 1970, or written out.
fn wait_ms(text: &str, now: Timestamp) -> Option<u64> {
    if let Ok(number) = text.parse::<f64>() {
        let since_1970 = |ms: f64| ms - now.as_millisecond() as f64;
        return match number {
            number if number >= 1e12 => whole_ms(since_1970(number)),
            number if number >= 1e9 => whole_ms(since_1970(number * 1_000.0)),
            number => whole_ms(number * 1_000.0),
        };
    }
    let moment = text.parse::<Timestamp>().ok().or_else(|| http_date(text));
    match moment {
        Some(moment) => whole_ms((moment.as_millisecond() - now.as_millisecond()) as f64),
        None => span_ms(text),
    }
}

/// `1s`, `6m0s`, `120ms`, `1h2m3.5s`.
fn span_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number = rest[..digits].parse::<f64>().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = match &rest[digits..unit_end] {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return None,
        };
        sum += number * unit;
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then_some(sum).and_then(whole_ms)
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

/// Rounded up, and not more than anybody means: a slip of a provider's pen must not put an agent to sleep for years.
fn whole_ms(ms: f64) -> Option<u64> {
    let most = limits::RETRY_AFTER_MAX_MS as f64;
    // A float within these bounds is a whole number of the other kind, exactly.
    ms.is_finite().then(|| ms.ceil().clamp(0.0, most) as u64)
}
