//! Images inside of messages and results: what is one, what is not, and what stands in its place.

use abide_kernel::limits::{IMAGE_BYTES, IMAGES_MAX};
use abide_kernel::prompt::image::{first_fault, images_in, media_type, whole};
use base64::prelude::{BASE64_STANDARD, Engine};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A whole one of each kind, two pixels wide.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP8z8DAwMAAAAYIAQHLR3Z1AAAAAElFTkSuQmCC";
const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP////////////////////////////////////////////////////////////////////\
                    //////////////////wAALCAABAAIBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAv/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAI\
                    AQEAAD8AL//Z";
const GIF: &str = "R0lGODdhAgABAIEAAP8AAAAAAAAAAAAAACwAAAAAAgABAAAIBQABAAgIADs=";
const WEBP: &str = "UklGRjIAAABXRUJQVlA4ICYAAABwAQCdASoCAAEADMDOJaACdAFAAAD+3FHSXS5Df6u/O36ntgAAAA==";
const WEBP_LOSSLESS: &str = "UklGRhwAAABXRUJQVlA4TA8AAAAvAQAAAAcQ/Y/+ByKi/wEA";
const WEBP_MOVING: &str = "UklGRrwAAABXRUJQVlA4WAoAAAASAAAAAQAAAAAAQU5JTQYAAAAAAAAAAABBTk1GPgAAAAAAAAAAAAEAAAAAAAAAAAJWUDgg\
                           JgAAADABAJ0BKgIAAQAMwM4loAADcAD+3FH/SXS5Df/6u/O36ntgAAAAQU5NRkoAAAAAAAAAAAABAAAAAAAAAAACQUxQ\
                           SAMAAAAAAwMAVlA4ICYAAAAwAQCdASoCAAEADMDOJaAAA3AA/ofX/195Q7EyH/6FfJn3XF4AAA==";
const ALL: [(&str, &str); 6] = [
    ("image/png", PNG),
    ("image/jpeg", JPEG),
    ("image/gif", GIF),
    ("image/webp", WEBP),
    ("image/webp", WEBP_LOSSLESS),
    ("image/webp", WEBP_MOVING),
];

fn bytes(data: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(data).unwrap()
}

/// A PNG of so many bytes.
fn large(of: usize) -> String {
    let mut png = bytes(PNG);
    let filler = of - png.len() - 12;
    let chunk = [&u32::try_from(filler).unwrap().to_be_bytes()[..], b"fiLl", &vec![0; filler], &[0; 4]].concat();
    png.splice(33..33, chunk);
    BASE64_STANDARD.encode(png)
}

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
fn an_image_is_one_from_its_beginning_to_its_end() {
    for (kind, data) in ALL {
        let image = bytes(data);
        assert_eq!(whole(&image), Ok(kind));
        for end in 0..image.len() {
            assert!(whole(&image[..end]).is_err(), "{kind} cut off after {end} bytes");
        }
    }
}

/// The fault of an image of which some bytes are others.
fn wrong(data: &str, at: usize, with: &[u8], why: &str) {
    let mut image = bytes(data);
    image.splice(at..at + with.len(), with.iter().copied());
    assert_eq!(whole(&image), Err(why.to_owned()));
}

#[test]
fn a_header_makes_sense_and_the_size_is_one_that_is_shown() {
    for (image, at, with) in [(PNG, 16, &8_000_u32.to_be_bytes()[..]), (GIF, 6, &8_000_u16.to_le_bytes())] {
        let mut largest = bytes(image);
        largest.splice(at..at + with.len(), with.iter().copied());
        assert!(whole(&largest).is_ok());
    }
    let side = "it has 8001 x 1 pixels, and 8000 on a side are shown at most";
    wrong(PNG, 16, &8_001_u32.to_be_bytes(), side);
    wrong(PNG, 16, &u32::MAX.to_be_bytes(), "it has 4294967295 x 1 pixels, and 8000 on a side are shown at most");
    wrong(PNG, 20, &[0; 4], "it is a PNG of 2 x 0");
    wrong(PNG, 12, b"IDAT", "it begins like a PNG, but has no header");
    wrong(PNG, 24, &[3], "it begins like a PNG, but its header makes no sense");
    for (at, with) in [(25, 1), (26, 1), (27, 1), (28, 2)] {
        wrong(PNG, at, &[with], "it begins like a PNG, but its header makes no sense");
    }
    wrong(PNG, 11, &[12], "it begins like a PNG, but has no header");
    wrong(PNG, 37, b"tEXt", "it begins like a PNG, but nothing is drawn in it");
    wrong(PNG, 33, &u32::MAX.to_be_bytes(), "it is a PNG that ends before its end");
    wrong(JPEG, 96, &8_001_u16.to_be_bytes(), "it has 8001 x 1 pixels, and 8000 on a side are shown at most");
    wrong(JPEG, 90, &[0xda], "it begins like a JPEG, but has no header");
    wrong(JPEG, 4, &[0, 1], "it begins like a JPEG, but its segments do not follow each other");
    wrong(JPEG, 20, b"x", "it begins like a JPEG, but its segments do not follow each other");
    wrong(GIF, 6, &8_001_u16.to_le_bytes(), side);
    wrong(GIF, 8, &[0; 2], "it is a GIF of 2 x 0");
    wrong(GIF, 25, b"x", "it begins like a GIF, but its parts do not follow each other");
    wrong(GIF, 25, b"\x3b", "it begins like a GIF, but nothing is drawn in it");
    wrong(WEBP, 26, &8_001_u16.to_le_bytes(), side);
    wrong(WEBP, 23, b"x", "it begins like a WebP, but its header makes no sense");
    wrong(WEBP, 12, b"VP9 ", "it begins like a WebP, but has no header");
    wrong(WEBP, 4, &u32::MAX.to_le_bytes(), "it is a WebP that ends before its end");
    wrong(WEBP_LOSSLESS, 21, &8_000_u32.to_le_bytes(), side);
    let high = "it has 2 x 8001 pixels, and 8000 on a side are shown at most";
    wrong(WEBP_LOSSLESS, 21, &(1 | 8_000_u32 << 14).to_le_bytes(), high);
    wrong(WEBP_LOSSLESS, 20, b"x", "it begins like a WebP, but its header makes no sense");
    wrong(WEBP_MOVING, 24, &8_000_u32.to_le_bytes()[..3], side);
}

/// Parts that draw nothing may stand before those that do.
#[test]
fn parts_without_a_picture_are_passed_over() {
    let with = |data: &str, at: usize, part: &[u8]| {
        let mut image = bytes(data);
        image.splice(at..at, part.iter().copied());
        whole(&image)
    };
    for marker in [0x01, 0xd0, 0xd7] {
        assert_eq!(with(JPEG, 2, &[0xff, marker]), Ok("image/jpeg"), "marker {marker:x}");
    }
    assert_eq!(with(GIF, 25, &[0x21, 0xf9, 4, 0, 0, 0, 0, 0]), Ok("image/gif"));
}

/// Greys, colours and palettes, each in the depths that it may have, also interlaced.
#[test]
fn a_png_may_have_every_header_of_its_format() {
    for (colour, depths) in
        [(0, &[1, 2, 4, 8, 16][..]), (2, &[8, 16]), (3, &[1, 2, 4, 8]), (4, &[8, 16]), (6, &[8, 16])]
    {
        for depth in depths {
            for interlace in [0, 1] {
                let mut image = bytes(PNG);
                image.splice(24..29, [*depth, colour, 0, 0, interlace]);
                assert_eq!(whole(&image), Ok("image/png"), "colour {colour}, depth {depth}, interlace {interlace}");
            }
        }
    }
}

#[test]
fn a_sender_is_told_of_the_first_that_can_not_be_shown() {
    assert_eq!(first_fault(&json!({ "text": "look", "images": [image("png", PNG), image("gif", GIF)] })), None);
    let cut = json!([image("png", PNG), { "shot": image("png", &PNG[..24]) }, image("png", "AAAA")]);
    let told = "image 2 can't be shown: it is a PNG that ends before its end";
    assert_eq!(first_fault(&cut).as_deref(), Some(told));
    let many = Value::from(vec![image("png", PNG); IMAGES_MAX + 1]);
    assert_eq!(first_fault(&many).as_deref(), Some("image 9 can't be shown: 8 are shown at most"));
    assert_eq!(first_fault(&json!({ "media_type": "text/plain", "data": "AAAA" })), None);
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
    // Other members beside the image stay.
    let named = json!({ "type": "base64", "media_type": "image/png", "data": PNG });
    check(named, json!({ "type": "base64", "media_type": "image/png", "data": "(image 1)" }), &["png"]);
}

#[test]
fn what_can_not_be_shown_is_left_out_with_a_word() {
    let unshown = |why: &str| json!(format!("(an image that is not shown: {why})"));
    let no_base64 = "its data is not base64";
    let cut = GIF.strip_suffix('=').unwrap();
    let spaced = format!("{} {}", &PNG[..10], &PNG[11..]);
    let padded = format!("{PNG}====");
    for data in ["", "====", "=", cut, &spaced, &padded, "iVBORw0KGgo=AAANSUhEUg==", "ïVBORw0KGgoAAAA"] {
        check(image("png", data), unshown(no_base64), &[]);
    }
    let none = "it is no PNG, JPEG, GIF or WebP";
    for data in ["AAAA", "aGVsbG8gd29ybGQ=", "iVBO"] {
        check(image("png", data), unshown(none), &[]);
    }
    check(image("png", &PNG[..24]), unshown("it is a PNG that ends before its end"), &[]);
    for kind in ["bmp", "jpg", "svg+xml", "jpeg"] {
        check(image(kind, PNG), unshown("it is image/png, and says something else"), &[]);
    }
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
    /// Any bytes after a beginning are looked at to an end, and the answer is short.
    #[test]
    fn any_bytes_are_an_image_or_not(which in 0_usize..6, from in 0_usize..60, with in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut image = bytes(ALL[which].1);
        image.truncate(from);
        image.extend(with);
        prop_assert!(whole(&image).map_or_else(|why| why.len() < 100, |kind| kind.starts_with("image/")));
    }

    /// Any value that claims to be an image: nothing of its data is left, or it was none at all.
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

#[test]
fn an_empty_piece_of_a_png_draws_nothing() {
    let mut image = bytes(PNG);
    let end = image.len() - 12;
    image.splice(33..end, [&[0; 4][..], b"IDAT", &[0; 4]].concat());
    assert_eq!(whole(&image), Err("it begins like a PNG, but nothing is drawn in it".to_owned()));
}

/// A table of colours is there only where a flag says so, for the screen and for each picture.
#[test]
fn a_gif_may_be_without_tables_of_colours() {
    let mut image = bytes(GIF);
    image.splice(13..25, []);
    image[10] = 0;
    assert_eq!(whole(&image), Ok("image/gif"));
    // The same number, and no flag.
    image[10] = 0x07;
    assert_eq!(whole(&image), Ok("image/gif"));
}
