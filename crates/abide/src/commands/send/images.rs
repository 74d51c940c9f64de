//! A message with images. They are checked here, while the sender can choose others: the agent would only be told that an
//! image could not be shown.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use abide_daemon::text::grouped;
use abide_kernel::limits::{IMAGES_MAX, MESSAGE_BYTES};
use abide_kernel::prompt::image::whole;
use anyhow::Context;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Serialize;
use serde_json::Value;

use crate::output::Failed;

/// Room for the other fields of the request.
const AROUND_BYTES: usize = 1_024;

/// The JSON of a message with images.
#[derive(Serialize)]
struct IllustratedMessage<'a> {
    text: &'a str,
    images: Vec<Image>,
}

#[derive(Serialize)]
struct Image {
    media_type: &'static str,
    /// In base64.
    data: String,
}

pub fn message_with_images(text: &str, files: &[PathBuf]) -> anyhow::Result<Value> {
    if files.len() > IMAGES_MAX {
        let most = format!("{} images: a message takes {IMAGES_MAX} at most", files.len());
        return Err(Failed::Usage(most).into());
    }
    let images = files.iter().map(|file| read_image(file)).collect::<anyhow::Result<_>>()?;
    let message = serde_json::to_value(IllustratedMessage { text, images })?;
    let bytes = message.to_string().len() + AROUND_BYTES;
    if bytes > MESSAGE_BYTES {
        let (bytes, most) = (grouped(bytes as u64), grouped(MESSAGE_BYTES as u64));
        return Err(Failed::Usage(format!(
            "with its images the message has {bytes} bytes, and {most} fit (an image takes a third more than its file): \
             send smaller ones, or put them into the agent's workspace and name their paths"
        ))
        .into());
    }
    Ok(message)
}

fn read_image(path: &Path) -> anyhow::Result<Image> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MESSAGE_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("can't read {}", path.display()))?;
    if bytes.len() > MESSAGE_BYTES {
        let most = grouped(MESSAGE_BYTES as u64);
        let large = format!("{} is larger than {most} bytes: send a smaller one", path.display());
        return Err(Failed::Usage(large).into());
    }
    match whole(&bytes) {
        Ok(media_type) => Ok(Image { media_type, data: BASE64_STANDARD.encode(bytes) }),
        Err(wrong) => Err(Failed::Usage(format!("{} can't be sent: {wrong}", path.display())).into()),
    }
}
