//! Images inside of messages and results: what is one, what is not, and what stands in its place.

use abide_kernel::limits::{IMAGE_BYTES, IMAGES_MAX};
use abide_kernel::prompt::image::{images_in, media_type};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The first bytes of each kind, and what it is called.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";
const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQ==";
const GIF: &str = "R0lGODlhAQABAIAAAAAAAA==";
const WEBP: &str = "UklGRiQAAABXRUJQVlA4IA==";

fn image(kind: &str, data: &str) -> Value {
    json!({ "media_type": format!("image/{kind}"), "data": data })
}

/// The value that is left, and the kinds of images that were in it.
fn check(value: Value, left: Value, kinds: &[&str]) {
    let (images, rest) = images_in(&value);
    assert_eq!(rest, left);
    let found: Vec<&str> = images.iter().map(|image| image.media_type.strip_prefix("image/").unwrap()).collect();
    assert_eq!(found, kinds);
}

#[test]
fn an_image_is_known_by_its_first_bytes() {
    assert_eq!(media_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
    assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
    assert_eq!(media_type(b"GIF87a"), Some("image/gif"));
    assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
    assert_eq!(media_type(b"RIFF\x24\0\0\0WEBPVP8 "), Some("image/webp"));
    for none in [&b""[..], b"\x89PNG", b"\xff\xd8", b"GIF80a", b"RIFF\x24\0\0\0WAVE", b"RIFF", b"<svg/>", b"BM"] {
        assert_eq!(media_type(none), None, "{none:?}");
    }
}

#[test]
fn images_are_taken_out_where_they_stand() {
    let message = json!({ "text": "look", "images": [image("png", PNG), image("jpeg", JPEG)] });
    check(message.clone(), json!({ "text": "look", "images": ["(image 1)", "(image 2)"] }), &["png", "jpeg"]);
    assert_eq!(images_in(&message).0[0].data, PNG);
    let result = json!({ "image": image("gif", GIF), "content": "", "lines": 0, "truncated": false });
    let left = json!({ "image": "(image 1)", "content": "", "lines": 0, "truncated": false });
    check(result, left, &["gif"]);
    check(json!([[{ "a": [image("webp", WEBP)] }]]), json!([[{ "a": ["(image 1)"] }]]), &["webp"]);
    check(image("png", PNG), json!("(image 1)"), &["png"]);
    // What else is said of it stays.
    let named = json!({ "type": "base64", "media_type": "image/png", "data": PNG });
    check(named, json!({ "type": "base64", "media_type": "image/png", "data": "(image 1)" }), &["png"]);
}

#[test]
fn what_can_not_be_shown_is_left_out_with_a_word() {
    let unshown = |why: &str| json!(format!("(an image that is not shown: {why})"));
    let no_base64 = "its data is not base64";
    let cut = PNG.strip_suffix('=').unwrap();
    let spaced = format!("{} {}", &PNG[..10], &PNG[11..]);
    let padded = format!("{PNG}====");
    for data in ["", "====", "=", cut, &spaced, &padded, "iVBORw0KGgo=AAANSUhEUg==", "ïVBORw0KGgoAAAA"] {
        check(image("png", data), unshown(no_base64), &[]);
    }
    let none = "it is no PNG, JPEG, GIF or WebP";
    for data in ["AAAA", "aGVsbG8gd29ybGQ=", "iVBO"] {
        check(image("png", data), unshown(none), &[]);
    }
    for kind in ["bmp", "jpg", "svg+xml", "jpeg"] {
        check(image(kind, PNG), unshown("it is image/png, and says something else"), &[]);
    }
    let large = |bytes: usize| format!("{}{}", &PNG[..20], "A".repeat(bytes.div_ceil(3) * 4 - 20));
    check(image("png", &large(IMAGE_BYTES)), json!("(image 1)"), &["png"]);
    check(image("png", &large(IMAGE_BYTES + 3)), unshown(&format!("it has more than {IMAGE_BYTES} bytes")), &[]);
    // One that is left out takes no number, and no place.
    let several = json!([image("png", "AAAA"), image("png", PNG)]);
    check(several, json!([unshown(none), "(image 1)"]), &["png"]);
}

#[test]
fn there_is_a_last_image_that_is_shown() {
    let (images, rest) = images_in(&Value::from(vec![image("png", PNG); 1_000]));
    assert_eq!(images.len(), IMAGES_MAX);
    assert_eq!(rest[IMAGES_MAX - 1], "(image 8)");
    assert_eq!(rest[IMAGES_MAX], "(an image that is not shown: 8 are shown at most)");
    assert!(rest.as_array().unwrap().iter().all(Value::is_string));
}

#[test]
fn what_does_not_say_that_it_is_an_image_is_none() {
    for value in [
        json!(null),
        json!(PNG),
        json!({ "media_type": "text/plain", "data": PNG }),
        json!({ "media_type": "image/png" }),
        json!({ "data": PNG }),
        json!({ "media_type": "image/png", "data": [PNG] }),
        json!({ "media_type": 7, "data": PNG }),
        json!({ "content": "{\"media_type\":\"image/png\"}" }),
    ] {
        check(value.clone(), value, &[]);
    }
}

proptest! {
    /// Whatever is said to be an image: nothing of its data is left, or it was none at all.
    #[test]
    fn no_data_of_an_image_stays(kind in "image/[a-z]{3,4}", data in "[A-Za-z0-9+/=]{0,60}", deep in 0_usize..20) {
        let mut value = json!({ "media_type": kind, "data": data });
        for _ in 0..deep {
            value = json!([{ "inner": value }]);
        }
        let (images, rest) = images_in(&value);
        prop_assert!(data.len() < 20 || !rest.to_string().contains(&data));
        prop_assert!(images.iter().all(|image| image.data == data && image.media_type == kind));
    }
}
