//! Guides: what the people of a project tell every agent that works on it.

use std::io::Read;
use std::path::Path;

use super::{AgentLocation, BrokenFile, GUIDE, Guide, Surroundings, above, problem};
use crate::files::{OpenedFile, Root};
use crate::limits;
use crate::secrets::Mask;

pub(super) fn read_guides(at: &AgentLocation<'_>, workspace: &Root, around: &mut Surroundings) {
    let mut left = limits::GUIDES_BYTES;
    let name = Path::new(GUIDE);
    // The nearest first: where there is not room for all, what lies farther away is cut.
    if workspace.is_there(name) {
        add_guide(GUIDE.to_owned(), workspace.open_file(name).map_err(problem), &at.mask, &mut left, around);
    }
    let mut up = String::new();
    for folder in above::folders(at.workspace, at.home) {
        up.push_str("../");
        let Some(root) = at.open_root(&folder).filter(|root| root.is_there(name)) else { continue };
        // An agent can turn links in its workspace, and a link up here might lead through one of them.
        add_guide(format!("{up}{GUIDE}"), root.open_own(GUIDE).map_err(problem), &at.mask, &mut left, around);
    }
    around.guides.reverse();
}

fn add_guide(
    path: String,
    opened: Result<OpenedFile, String>,
    mask: &Mask,
    left: &mut usize,
    around: &mut Surroundings,
) {
    match opened.and_then(|opened| read_text(opened, mask, *left)) {
        Ok((text, truncated)) if truncated || !text.trim().is_empty() => {
            *left -= text.len();
            around.guides.push(Guide { path, text, truncated });
        }
        Ok(_) => {}
        Err(problem) => around.broken.push(BrokenFile { path, problem }),
    }
}

/// As many whole lines as there is room for, and whether there are more.
fn read_text(opened: OpenedFile, mask: &Mask, left: usize) -> Result<(String, bool), String> {
    let room = left.min(limits::GUIDE_BYTES);
    let (mut bytes, looked_at) = (Vec::new(), room + 1 + mask.lookahead());
    opened.file.take(looked_at as u64).read_to_end(&mut bytes).map_err(|error| format!("it can't be read: {error}"))?;
    if bytes.contains(&0) {
        return Err("it is not text".to_owned());
    }
    let truncated = bytes.len() > room;
    let mut bytes = mask.masked_bytes(&bytes).into_owned();
    if truncated {
        bytes.truncate(room);
        let whole = |bytes: &[u8]| std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        // A single line that is too long is cut between letters.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or_else(|| whole(&bytes), |end| end + 1));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok((text, truncated))
}
