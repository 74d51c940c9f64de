//! Finds files by their paths.

use std::ops::ControlFlow;

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::Glob;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::{Value, json};

use super::pattern::Pattern;
use super::root::Root;
use super::walk::{HELD_BACK, Walked, walk};
use crate::limits;

pub(super) fn run(call: &Glob, root: &Root) -> Result<Value, Refusal> {
    let folder = match &call.path {
        Some(path) => root.relative(path)?,
        None => Default::default(),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    root.open_beneath(&folder, flags).map_err(|errno| root.refusal(&folder, errno))?;
    // A call is refused before, whose pattern is none.
    let whole = Pattern::new(&call.pattern)
        .map_err(|hint| Refusal::new(ErrorCode::InvalidInput, "no pattern").with_hint(hint))?;
    let (prefix, pattern) = whole.split();
    let start = folder.join(prefix);
    let mut matches: Vec<String> = Vec::new();
    let mut more = false;
    // The folders a pattern begins with need not be there; then nothing matches it.
    let walked = match root.open_beneath(&start, flags) {
        Err(Errno::NOENT | Errno::NOTDIR) => Walked::default(),
        Err(errno) => return Err(root.refusal(&start, errno)),
        Ok(_) => walk(root, &start, pattern.names_hidden(), |seen| {
            if !pattern.matches(seen.from_start) {
                return ControlFlow::Continue(());
            }
            more = matches.len() >= limits::GLOB_MATCHES;
            if more {
                return ControlFlow::Break(());
            }
            matches.push(seen.path.display().to_string());
            ControlFlow::Continue(())
        })?,
    };
    let mut result = json!({ "matches": matches, "truncated": more || walked.cut });
    if let Some(note) = note(&whole, matches.is_empty(), walked) {
        result["note"] = note.into();
    }
    Ok(result)
}

/// What to try, when nothing or not everything was found.
fn note(pattern: &Pattern, nothing: bool, walked: Walked) -> Option<String> {
    if walked.cut {
        let most = limits::WALK_ENTRIES;
        return Some(format!("not all was looked at, only {most} names: search a smaller folder with `path`"));
    }
    if walked.held_back {
        return Some(HELD_BACK.to_owned());
    }
    if !nothing {
        return None;
    }
    if !pattern.text.contains('/') {
        let text = &pattern.text;
        return Some(format!("{text} looks into one folder; **/{text} looks into those below it, too"));
    }
    walked.ignored.then(|| "what .gitignore names was left out: name its folder in `path` to look there".to_owned())
}
