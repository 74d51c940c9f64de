//! Images inside of JSON: `{"media_type", "data"}`, wherever it stands in a message or a tool's result. They are taken
//! out, so that a provider gets them as images and nobody reads base64; what stands in their place says which is which.
//!
//! A provider refuses a whole request over one image that it can't read. So nothing is taken for an image that is not
//! one from its beginning to its end, and one that a provider refused all the same is not shown again.

mod whole;

use serde_json::{Map, Value};

use super::Image;
use crate::limits::{IMAGE_BYTES, IMAGES_MAX};

pub use whole::{media_type, whole};

/// The images in a value, and the value with `(image 1)` where the first was, and so on. One that can't be shown is
/// left out of both, with a word about why.
#[must_use]
pub fn images_in(value: &Value) -> (Vec<Image>, Value) {
    let mut images = Vec::new();
    let rest = without(value, &mut |media_type, data| match fault(media_type, data, images.len()) {
        None => {
            images.push(Image { media_type: media_type.to_owned(), data: data.to_owned() });
            format!("(image {})", images.len())
        }
        Some(fault) => unshown(&fault),
    });
    (images, rest)
}

/// The value without its images, and a word about why in the place of each.
#[must_use]
pub(super) fn left_out(value: &Value, why: &str) -> Value {
    without(value, &mut |_, _| unshown(why))
}

/// The fault of the first image that can't be shown. It is for a sender who can still be told: the model is told only
/// that the image can't be shown.
#[must_use]
pub fn first_fault(value: &Value) -> Option<String> {
    let (mut first, mut images, mut shown) = (None, 0_usize, 0_usize);
    without(value, &mut |media_type, data| {
        images += 1;
        match fault(media_type, data, shown) {
            None => shown += 1,
            Some(fault) => first = first.take().or_else(|| Some(format!("image {images} can't be shown: {fault}"))),
        }
        String::new()
    });
    first
}

fn unshown(why: &str) -> String {
    format!("(an image that is not shown: {why})")
}

fn without(value: &Value, taken: &mut impl FnMut(&str, &str) -> String) -> Value {
    if let Some(items) = value.as_array() {
        return items.iter().map(|item| without(item, taken)).collect();
    }
    let Some(map) = value.as_object() else { return value.clone() };
    match claimed(map) {
        Some((media_type, data)) => {
            let stands_for = taken(media_type, data).into();
            if map.len() == 2 {
                return stands_for;
            }
            let mut rest = map.clone();
            rest.insert("data".to_owned(), stands_for);
            rest.into()
        }
        None => map.iter().map(|(name, inner)| (name.clone(), without(inner, taken))).collect(),
    }
}

/// The media type and data of what says that it is an image.
fn claimed(map: &Map<String, Value>) -> Option<(&str, &str)> {
    let media_type = map.get("media_type")?.as_str().filter(|media_type| media_type.starts_with("image/"))?;
    Some((media_type, map.get("data")?.as_str()?))
}

fn fault(said: &str, data: &str, before: usize) -> Option<String> {
    if data.len() > IMAGE_BYTES.div_ceil(3) * 4 {
        return Some(format!("it has more than {IMAGE_BYTES} bytes"));
    }
    let Some(bytes) = decoded(data) else { return Some("its data is not base64".to_owned()) };
    match whole(&bytes) {
        Err(fault) => Some(fault),
        Ok(found) if found != said => Some(format!("it is {found}, and says something else")),
        Ok(_) if before >= IMAGES_MAX => Some(format!("{IMAGES_MAX} are shown at most")),
        Ok(_) => None,
    }
}

/// The bytes that base64 stands for, with its padding and nothing between: the spelling that every provider takes.
fn decoded(data: &str) -> Option<Vec<u8>> {
    if data.is_empty() || !data.len().is_multiple_of(4) {
        return None;
    }
    let text = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3);
    for group in text.as_bytes().chunks(4) {
        let mut all = 0_u32;
        for place in 0..4 {
            let value = group.get(place).map_or(Some(0), |byte| digit(*byte))?;
            all = all << 6 | u32::from(value);
        }
        let [_, three @ ..] = all.to_be_bytes();
        bytes.extend_from_slice(&three[..group.len() - 1]);
    }
    Some(bytes)
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
