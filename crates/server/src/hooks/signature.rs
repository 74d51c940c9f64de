//! Whether a delivery was signed with its trigger's secret: as Standard Webhooks are, or as GitHub's are. Comparing takes
//! as long for a wrong signature as for a right one.

use abide_kernel::time::Time;
use abide_ledger::Hash;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use ring::hmac;

use super::secrets::Secret;

/// How far the time of a Standard Webhook may be from ours, either way. What is older is a replay.
const WINDOW_MS: i64 = 5 * 60 * 1_000;

pub(super) const STANDARD_ID: &str = "webhook-id";
pub(super) const GITHUB_ID: &str = "x-github-delivery";
pub(super) const GITHUB_EVENT: &str = "x-github-event";
const STANDARD_TIMESTAMP: &str = "webhook-timestamp";
const STANDARD_SIGNATURE: &str = "webhook-signature";
const GITHUB_SIGNATURE: &str = "x-hub-signature-256";

/// How a delivery is signed, which says how a repeat of it is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Its id is signed with it.
    Standard,
    /// Its body alone is signed. The digest is of the signature and the body, however the signature was spelled.
    GitHub { digest: Hash },
}

/// The scheme of a delivery whose signature is right, or why it is not accepted.
pub(crate) fn verify_signature(
    secret: &Secret,
    headers: &HeaderMap,
    body: &[u8],
    now: Time,
) -> Result<Scheme, &'static str> {
    if headers.contains_key(STANDARD_SIGNATURE) {
        standard(secret, headers, body, now)
    } else if headers.contains_key(GITHUB_SIGNATURE) {
        github(secret, headers, body)
    } else {
        Err("it is not signed")
    }
}

fn standard(secret: &Secret, headers: &HeaderMap, body: &[u8], now: Time) -> Result<Scheme, &'static str> {
    let id = single(headers, STANDARD_ID).ok_or("it has no webhook-id")?;
    let timestamp = single(headers, STANDARD_TIMESTAMP).ok_or("it has no webhook-timestamp")?;
    let signatures = single(headers, STANDARD_SIGNATURE).ok_or("it has several webhook-signature headers")?;
    let seconds = seconds(timestamp).ok_or("its webhook-timestamp is no number of seconds")?;
    let apart = seconds.checked_mul(1_000).and_then(|ms| ms.checked_sub(now.as_ms()));
    if apart.is_none_or(|ms| ms.abs() > WINDOW_MS) {
        return Err("its webhook-timestamp is more than five minutes away");
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.standard_key());
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    let right = |signature: &str| {
        let encoded = signature.strip_prefix("v1,")?;
        hmac::verify(&key, &signed, &STANDARD.decode(encoded).ok()?).ok()
    };
    // There are several while its sender changes from one secret to the next.
    let known = signatures.split(' ').any(|signature| right(signature).is_some());
    if known { Ok(Scheme::Standard) } else { Err("its webhook-signature is not right") }
}

/// Digits alone: a number's own parser takes a sign, too.
fn seconds(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn github(secret: &Secret, headers: &HeaderMap, body: &[u8]) -> Result<Scheme, &'static str> {
    let given = single(headers, GITHUB_SIGNATURE).and_then(|text| hex(text.strip_prefix("sha256=")?));
    let given = given.ok_or("its x-hub-signature-256 does not read")?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.github_key());
    hmac::verify(&key, body, &given).map_err(|_| "its x-hub-signature-256 is not right")?;
    Ok(Scheme::GitHub { digest: Hash::of(&[&given, body].concat()) })
}

/// A header that is there once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    /// Test vectors of OpenSSL's HMAC: `printf '%s' 'ID.TIME.BODY' | openssl dgst -sha256 -mac HMAC -macopt hexkey:…`.
    mod standard {
        use super::*;

        const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        const AT: &str = "1614265330";
        const BODY: &[u8] = br#"{"test": 2432232314}"#;
        const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        const OTHER: &str = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

        fn checked(list: &[(&'static str, &str)], body: &[u8], seconds: i64) -> Result<Scheme, &'static str> {
            verify_signature(&Secret::new(SECRET).unwrap(), &headers(list), body, Time::from_ms(seconds * 1_000))
        }

        fn signed<'a>(id: &'a str, at: &'a str, signature: &'a str) -> [(&'static str, &'a str); 3] {
            [(STANDARD_ID, id), (STANDARD_TIMESTAMP, at), (STANDARD_SIGNATURE, signature)]
        }

        #[test]
        fn the_documented_example_is_right() {
            assert_eq!(checked(&signed(ID, AT, SIGNATURE), BODY, 1_614_265_330), Ok(Scheme::Standard));
        }

        #[test]
        fn one_right_signature_of_several_is_enough() {
            let several = format!("v1a,{SIGNATURE} {OTHER} {SIGNATURE} v2,x");
            assert_eq!(checked(&signed(ID, AT, &several), BODY, 1_614_265_330), Ok(Scheme::Standard));
            let none = format!("{OTHER} v2,{} {}", &SIGNATURE[3..], &SIGNATURE[3..]);
            let wrong = checked(&signed(ID, AT, &none), BODY, 1_614_265_330);
            assert_eq!(wrong, Err("its webhook-signature is not right"));
        }

        #[test]
        fn what_was_signed_can_not_be_changed() {
            let wrong = Err("its webhook-signature is not right");
            assert_eq!(checked(&signed("msg_other", AT, SIGNATURE), BODY, 1_614_265_330), wrong);
            assert_eq!(checked(&signed(ID, "1614265331", SIGNATURE), BODY, 1_614_265_330), wrong);
            assert_eq!(checked(&signed(ID, AT, SIGNATURE), br#"{"test": 2432232315}"#, 1_614_265_330), wrong);
        }

        #[test]
        fn five_minutes_either_way_and_no_more() {
            for seconds in [1_614_265_030, 1_614_265_630] {
                assert_eq!(checked(&signed(ID, AT, SIGNATURE), BODY, seconds), Ok(Scheme::Standard), "{seconds}");
            }
            for seconds in [1_614_265_029, 1_614_265_631] {
                let late = checked(&signed(ID, AT, SIGNATURE), BODY, seconds);
                assert_eq!(late, Err("its webhook-timestamp is more than five minutes away"), "{seconds}");
            }
        }

        /// Signed by its sender all the same, so that nothing but the sign is wrong.
        #[test]
        fn a_time_is_written_in_digits_alone() {
            for at in ["+1614265330", "-1614265330", " 1614265330", "1614265330.0", "1_614_265_330"] {
                let key = hmac::Key::new(hmac::HMAC_SHA256, &Secret::new(SECRET).unwrap().standard_key());
                let tag = hmac::sign(&key, &[ID.as_bytes(), b".", at.as_bytes(), b".", BODY].concat());
                let signature = format!("v1,{}", STANDARD.encode(tag));
                let refused = checked(&signed(ID, at, &signature), BODY, 1_614_265_330);
                assert_eq!(refused, Err("its webhook-timestamp is no number of seconds"), "{at}");
            }
        }

        #[test]
        fn what_is_missing_or_makes_no_sense_is_refused() {
            let now = 1_614_265_330;
            assert_eq!(checked(&signed(ID, AT, SIGNATURE)[1..], BODY, now), Err("it has no webhook-id"));
            let no_time = [(STANDARD_ID, ID), (STANDARD_SIGNATURE, SIGNATURE)];
            assert_eq!(checked(&no_time, BODY, now), Err("it has no webhook-timestamp"));
            assert!(checked(&signed(ID, "soon", SIGNATURE), BODY, now).is_err());
            assert!(checked(&signed(ID, "", SIGNATURE), BODY, now).is_err());
            assert!(checked(&signed(ID, "9223372036854775807", SIGNATURE), BODY, now).is_err());
            assert!(checked(&signed(ID, AT, ""), BODY, now).is_err());
            let twice = [signed(ID, AT, SIGNATURE).as_slice(), &[(STANDARD_ID, "other")]].concat();
            assert!(checked(&twice, BODY, now).is_err());
            assert_eq!(checked(&[], BODY, now), Err("it is not signed"));
        }
    }

    /// GitHub's own example: this secret, this payload, this signature.
    mod github {
        use super::*;

        const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

        fn checked(secret: &str, signature: &str, body: &[u8]) -> Result<Scheme, &'static str> {
            let headers = headers(&[(GITHUB_SIGNATURE, signature)]);
            verify_signature(&Secret::new(secret).unwrap(), &headers, body, Time::EPOCH)
        }

        #[test]
        fn the_documented_example_is_right() {
            let right = checked("It's a Secret to Everybody", SIGNATURE, b"Hello, World!");
            assert!(matches!(right, Ok(Scheme::GitHub { .. })), "{right:?}");
            let upper = SIGNATURE.to_uppercase().replace("SHA256", "sha256");
            assert_eq!(checked("It's a Secret to Everybody", &upper, b"Hello, World!"), right);
        }

        #[test]
        fn another_secret_body_or_signature_is_wrong() {
            assert!(checked("It's a Secret to Somebody", SIGNATURE, b"Hello, World!").is_err());
            assert!(checked("It's a Secret to Everybody", SIGNATURE, b"Hello, World?").is_err());
            let digits = &SIGNATURE["sha256=".len()..];
            for wrong in [digits, &SIGNATURE[..70], &format!("sha1={digits}"), "sha256=", "sha256=zz"] {
                assert!(checked("It's a Secret to Everybody", wrong, b"Hello, World!").is_err(), "{wrong}");
            }
        }
    }
}
