//! When a provider says to come again.

use abide_effects::model::remote::Protocol;
use serde_json::json;

use super::provider::*;

async fn wait(headers: &[&str], message: &str) -> Option<u64> {
    let body = json!({ "error": { "type": "rate_limit_error", "message": message } });
    let answer = headers.iter().fold(Answer::json(429, &body), |answer, header| answer.with(header));
    Loopback::new(vec![answer]).call(Protocol::Chat).await.unwrap_err().retry_after_ms
}

#[tokio::test]
async fn by_headers() {
    let date = "date: Mon, 16 Nov 2026 09:00:00 GMT";
    for (headers, expected) in [
        (vec![], None),
        (vec!["retry-after: 7"], Some(7_000)),
        (vec!["retry-after: 0.5"], Some(500)),
        (vec!["retry-after: soon"], None),
        (vec!["retry-after: -3"], Some(0)),
        (vec!["retry-after: 1e300"], Some(86_400_000)),
        (vec!["retry-after-ms: 120.2", "retry-after: 7"], Some(121)),
        (vec![date, "retry-after: Mon, 16 Nov 2026 09:01:30 GMT"], Some(90_000)),
        (vec![date, "retry-after: Mon, 16 Nov 2026 08:00:00 GMT"], Some(0)),
        (vec!["x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 0"], Some(1_000)),
        (vec!["x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"], Some(360_000)),
        (vec!["x-ratelimit-reset-tokens: 1h2m3.5s", "x-ratelimit-remaining-tokens: 0"], Some(3_723_500)),
        // The limit that is used up counts, and the later of two.
        (
            vec![
                "x-ratelimit-reset-requests: 20ms",
                "x-ratelimit-remaining-requests: 9",
                "x-ratelimit-reset-tokens: 8s",
                "x-ratelimit-remaining-tokens: 0",
            ],
            Some(8_000),
        ),
        (vec!["x-ratelimit-reset-requests: 20ms", "x-ratelimit-reset-tokens: 8s"], Some(20)),
        (
            vec![
                date,
                "anthropic-ratelimit-requests-remaining: 0",
                "anthropic-ratelimit-requests-reset: 2026-11-16T09:00:02Z",
                "anthropic-ratelimit-tokens-remaining: 0",
                "anthropic-ratelimit-tokens-reset: 2026-11-16T09:00:31Z",
            ],
            Some(31_000),
        ),
        (vec![date, "x-ratelimit-reset: 1794819605000"], Some(5_000)),
        (vec![date, "x-ratelimit-reset: 1794819605"], Some(5_000)),
        (vec!["x-ratelimit-reset-tokens: 8 parsecs"], None),
    ] {
        assert_eq!(wait(&headers, "Slow down").await, expected, "{headers:?}");
    }
}

#[tokio::test]
async fn by_words() {
    for (message, expected) in [
        ("Rate limit reached for m-1. Please try again in 1.5s. Visit us.", Some(1_500)),
        ("Please try again in 28ms.", Some(28)),
        ("Please try again in 2m30s.", Some(150_000)),
        ("Please try again in 20 seconds.", Some(20_000)),
        ("Please try again in a while.", None),
        ("Please try again in ", None),
    ] {
        assert_eq!(wait(&[], message).await, expected, "{message}");
        assert_eq!(wait(&["retry-after: 3"], message).await, Some(3_000));
    }
}

/// A time to come again is for what time mends.
#[tokio::test]
async fn only_where_time_helps() {
    let answers = [400, 503].map(|status| Answer::json(status, &json!({})).with("retry-after: 3"));
    let provider = Loopback::new(answers.to_vec());
    assert_eq!(provider.call(Protocol::Chat).await.unwrap_err().retry_after_ms, None);
    assert_eq!(provider.call(Protocol::Chat).await.unwrap_err().retry_after_ms, Some(3_000));
}
