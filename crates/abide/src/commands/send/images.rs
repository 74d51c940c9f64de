//! A message with images. They are looked at here, where somebody can choose others: the agent would be told only that
//! one could not be shown.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use abide_daemon::text::grouped;
use abide_kernel::limits::{IMAGES_MAX, MESSAGE_BYTES};
use abide_kernel::prompt::image::whole;
use anyhow::Context;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::output::Failed;

/// What stands around the message in its request, and more.
const AROUND_BYTES: usize = 1_024;

pub fn with(text: &str, files: &[PathBuf]) -> anyhow::Result<Value> {
    if files.len() > IMAGES_MAX {
        let most = format!("{} images: a message takes {IMAGES_MAX} at most", files.len());
        return Err(Failed::Usage(most).into());
    }
    let images: Vec<Value> = files.iter().map(|file| image(file)).collect::<anyhow::Result<_>>()?;
    let message = json!({ "text": text, "images": images });
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

fn image(path: &Path) -> anyhow::Result<Value> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MESSAGE_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("can't read {}", path.display()))?;
    if bytes.len() > MESSAGE_BYTES {
        let most = grouped(MESSAGE_BYTES as u64);
        let large = format!("{} is larger than {most} bytes: send a smaller one", path.display());
        return Err(Failed::Usage(large).into());
    }
    match whole(&bytes) {
        Ok(kind) => Ok(json!({ "media_type": kind, "data": BASE64_STANDARD.encode(bytes) })),
        Err(wrong) => Err(Failed::Usage(format!("{} can't be sent: {wrong}", path.display())).into()),
    }
}
