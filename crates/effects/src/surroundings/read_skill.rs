//! A skill as a model reads it: what its `SKILL.md` says, with the names of the files beside it, and then those of the
//! files that it wants.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::{FileCall, ReadFile, ReadSkill, WorkspacePath};
use rustix::fs::{Dir, FileType, OFlags};
use serde_json::{Value, json};

use super::skills::{FILE, Found, list};
use super::{Broken, Whereabouts};
use crate::files::{self, Root};
use crate::limits;
use crate::nearest::nearest;

/// Blocks.
pub(crate) fn run(call: &ReadSkill, at: &Whereabouts<'_>) -> Result<Value, Refusal> {
    let mut broken = Vec::new();
    let found = list(at, at.workspace(), &mut broken);
    let Some(found) = found.iter().find(|found| found.skill.name == call.skill) else {
        return Err(no_skill(call, &found, &broken));
    };
    if let Some(path) = &call.path {
        return read(found, path.as_path(), call.offset.unwrap_or(1), call.limit);
    }
    let mut result = match read(found, Path::new(FILE), call.offset.unwrap_or(found.body), call.limit) {
        Ok(result) => result,
        // A head and nothing more.
        Err(refusal) if refusal.code == ErrorCode::PastTheEnd && call.offset.is_none() => {
            json!({ "content": "", "lines": found.body - 1, "truncated": false })
        }
        Err(refusal) => return Err(refusal),
    };
    let (files, more) = files(found);
    result["source"] = json!(found.skill.source);
    result["files"] = json!(files);
    if more {
        result["note"] = json!(format!("it has more files than the {} that are listed", files.len()));
    }
    Ok(result)
}

fn read(found: &Found, path: &Path, offset: u64, limit: u64) -> Result<Value, Refusal> {
    let whole = found.folder.join(path);
    let path = whole.to_str().ok_or("a path is UTF-8").and_then(WorkspacePath::new);
    let path =
        path.map_err(|hint| Refusal::new(ErrorCode::InvalidInput, "the path can't be one of a file").with_hint(hint))?;
    files::run(&FileCall::Read(ReadFile { path, offset, limit }), &found.root).map_err(|refusal| {
        if refusal.code == ErrorCode::NotFound {
            refusal.with_hint("ReadSkill with `skill` alone lists the files that there are")
        } else {
            refusal
        }
    })
}

/// What else lies in its folder, and whether there is more than that.
fn files(found: &Found) -> (Vec<String>, bool) {
    let mut gathered = Gathered::default();
    if let Ok(folder) = found.root.open_beneath(&found.folder, OFlags::RDONLY | OFlags::DIRECTORY) {
        gathered.gather(&found.root, &folder, "", 1);
    }
    gathered.files.sort_unstable();
    (gathered.files, gathered.more)
}

#[derive(Default)]
struct Gathered {
    files: Vec<String>,
    looked_at: usize,
    more: bool,
}

impl Gathered {
    fn gather(&mut self, root: &Root, folder: &OwnedFd, before: &str, depth: usize) {
        for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') || before.is_empty() && name == FILE {
                continue;
            }
            self.looked_at += 1;
            if self.files.len() >= limits::SKILL_FILES || self.looked_at > limits::SKILLS_LOOKED_AT {
                self.more = true;
                return;
            }
            let path = format!("{before}{name}");
            // No link to a folder is gone into: it might lead round in a circle.
            match root.open_in(folder, OsStr::new(name), OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(_) if depth >= limits::SKILL_DEPTH => self.more = true,
                Ok(inner) => self.gather(root, &inner, &format!("{path}/"), depth + 1),
                Err(_) => {
                    if matches!(entry.file_type(), FileType::RegularFile | FileType::Symlink | FileType::Unknown) {
                        self.files.push(path);
                    }
                }
            }
        }
    }
}

fn no_skill(call: &ReadSkill, found: &[Found], broken: &[Broken]) -> Refusal {
    let named = |broken: &&Broken| Path::new(&broken.path).file_name().is_some_and(|name| name == call.skill.as_str());
    if let Some(Broken { path, problem }) = broken.iter().find(named) {
        let message = format!("the skill in {path} can't be used: {problem}");
        return Refusal::new(ErrorCode::BrokenSkill, message);
    }
    let names: Vec<&str> = found.iter().map(|found| found.skill.name.as_str()).collect();
    let hint = match (nearest(&call.skill, names.iter().copied()), names.is_empty()) {
        (_, true) => "there are none: go on without".to_owned(),
        (Some(near), false) => format!("did you mean {near}? The skills are: {}", names.join(", ")),
        (None, false) => format!("the skills are: {}", names.join(", ")),
    };
    Refusal::new(ErrorCode::NotFound, format!("there is no skill {}", crate::tools::quoted(&call.skill)))
        .with_hint(hint)
}
