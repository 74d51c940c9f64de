//! Notifications to a webhook of the operator's, signed as Standard Webhooks specifies.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::web::{self, Url};

/// The key that sender and receiver share.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// `whsec_` and base64 of 24 to 64 bytes. What is wrong is said without the secret.
    pub fn parse(text: &str) -> Result<Secret, String> {
        let hint = "write whsec_ and base64 of 24 to 64 random bytes, such as whsec_$(openssl rand -base64 32)";
        let encoded =
            text.trim().strip_prefix("whsec_").ok_or_else(|| format!("it does not begin with whsec_; {hint}"))?;
        let bytes = STANDARD.decode(encoded).map_err(|_| format!("what follows whsec_ is not base64; {hint}"))?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(format!("it has {} bytes; {hint}", bytes.len()));
        }
        Ok(Secret(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// As the header `webhook-signature` has it.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(tag.as_ref()))
    }
}

/// Sends one event, and says why it was not taken. It blocks. The time is in seconds since 1970.
pub fn send_notification(
    url: &Url,
    secret: Option<&Secret>,
    id: &str,
    timestamp: i64,
    body: &str,
) -> Result<(), String> {
    let (time, signature) = (timestamp.to_string(), secret.map(|secret| secret.sign(id, timestamp, body)));
    let mut headers = vec![("webhook-id", id), ("webhook-timestamp", time.as_str())];
    headers.extend(signature.as_deref().map(|signature| ("webhook-signature", signature)));
    match web::post(url, &headers, body)? {
        200..=299 => Ok(()),
        status => Err(format!("{} answers with status {status}", url.host())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn signs_as_the_specification_does() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_that_is_none_is_refused_without_being_told() {
        for (text, why) in [("hunter2", "begin with whsec_"), ("whsec_?", "not base64"), ("whsec_aGk=", "has 2 bytes")]
        {
            let said = Secret::parse(text).unwrap_err();
            assert!(said.contains(why) && !said.contains("hunter2"), "{said}");
        }
    }
}
