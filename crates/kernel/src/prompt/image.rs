//! Images inside of JSON: `{"media_type", "data"}`, wherever it stands in a message or a tool's result. They are taken
//! out, so that a provider gets them as images and nobody reads base64; what stands in their place says which is which.
//!
//! A provider refuses a whole request over one image that it can't read. So nothing is taken for an image that does not
//! begin like one.

use serde_json::{Map, Value};

use super::Image;
use crate::limits::{IMAGE_BYTES, IMAGES_MAX};

/// The media type of an image that begins with these bytes, if it is one that models are shown.
#[must_use]
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The images in a value, and the value with `(image 1)` where the first was, and so on. One that can't be shown is
/// left out of both, with a word about why.
#[must_use]
pub fn images_in(value: &Value) -> (Vec<Image>, Value) {
    let mut images = Vec::new();
    let rest = without(value, &mut images);
    (images, rest)
}

fn without(value: &Value, images: &mut Vec<Image>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| without(item, images)).collect(),
        Value::Object(map) => match claimed(map) {
            Some((media_type, data)) => {
                let stands_for = Value::from(taken(media_type, data, images));
                if map.len() == 2 {
                    return stands_for;
                }
                let mut rest = map.clone();
                rest.insert("data".to_owned(), stands_for);
                Value::Object(rest)
            }
            None => map.iter().map(|(name, inner)| (name.clone(), without(inner, images))).collect(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The media type and data of what says that it is an image.
fn claimed(map: &Map<String, Value>) -> Option<(&str, &str)> {
    let media_type = map.get("media_type")?.as_str().filter(|media_type| media_type.starts_with("image/"))?;
    Some((media_type, map.get("data")?.as_str()?))
}

fn taken(media_type: &str, data: &str, images: &mut Vec<Image>) -> String {
    match fault(media_type, data, images.len()) {
        None => {
            images.push(Image { media_type: media_type.to_owned(), data: data.to_owned() });
            format!("(image {})", images.len())
        }
        Some(fault) => format!("(an image that is not shown: {fault})"),
    }
}

fn fault(said: &str, data: &str, before: usize) -> Option<String> {
    if data.len() > IMAGE_BYTES.div_ceil(3) * 4 {
        return Some(format!("it has more than {IMAGE_BYTES} bytes"));
    }
    if !is_base64(data) {
        return Some("its data is not base64".to_owned());
    }
    match self::media_type(&beginning(data)) {
        None => Some("it is no PNG, JPEG, GIF or WebP".to_owned()),
        Some(found) if found != said => Some(format!("it is {found}, and says something else")),
        Some(_) if before >= IMAGES_MAX => Some(format!("{IMAGES_MAX} are shown at most")),
        Some(_) => None,
    }
}

/// With its padding, and nothing between: the spelling that every provider takes.
fn is_base64(data: &str) -> bool {
    let text = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    !data.is_empty() && data.len().is_multiple_of(4) && text.bytes().all(|byte| digit(byte).is_some())
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// As many of the first bytes as tell what it is.
fn beginning(data: &str) -> Vec<u8> {
    let groups = data.as_bytes().chunks_exact(4).take(4);
    let bytes = groups.flat_map(|group| {
        let all = group.iter().fold(0_u32, |all, byte| all << 6 | u32::from(digit(*byte).unwrap_or_default()));
        let [_, bytes @ ..] = all.to_be_bytes();
        bytes
    });
    bytes.collect()
}
