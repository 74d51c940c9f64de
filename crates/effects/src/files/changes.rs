//! Changes to several files that happen together: all of them, or none.

use abide_kernel::input::Refusal;
use serde_json::{Value, json};

use super::root::Root;
use super::target::{Content, Target};

#[derive(Debug)]
pub(super) struct Change {
    pub target: Target,
    /// What was there when the change was worked out.
    pub before: Option<Content>,
    /// What shall be there; nothing means that the file goes.
    pub after: Option<Content>,
    /// The path as the model knows it.
    pub path: String,
}

impl Change {
    fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, None) => "unchanged",
            (None, Some(_)) => "created",
            (Some(_), None) => "deleted",
            (Some(before), Some(after)) if before.bytes == after.bytes && before.mode == after.mode => "unchanged",
            (Some(_), Some(_)) => "updated",
        }
    }
}

/// Writes them, one after another. When one fails, those before it are put back.
pub(super) fn make(root: &Root, changes: &[Change]) -> Result<Value, Refusal> {
    for (at, change) in changes.iter().enumerate() {
        let Err(refusal) = put(change, change.after.as_ref()) else { continue };
        let mut stuck = Vec::new();
        for done in changes[..at].iter().rev() {
            if put(done, done.before.as_ref()).is_err() {
                stuck.push(done.path.as_str());
            }
        }
        for change in changes.iter().rev() {
            root.unmake(&change.target.made);
        }
        if stuck.is_empty() {
            return Err(refusal);
        }
        let message = format!("{}; and these could not be put back: {}", refusal.message, stuck.join(", "));
        return Err(Refusal::new(refusal.code, message).with_hint("look at what is in them now, and mend them by hand"));
    }
    remove_empty_folders(root, changes);
    let changed: Vec<Value> =
        changes.iter().map(|change| json!({ "path": change.path, "action": change.action() })).collect();
    Ok(json!({ "changed": changed }))
}

fn put(change: &Change, content: Option<&Content>) -> Result<(), Refusal> {
    match content {
        Some(_) if change.action() == "unchanged" => Ok(()),
        Some(content) => change.target.write(&content.bytes, content.mode),
        None => match change.target.stat()? {
            Some(_) => change.target.remove(),
            None => Ok(()),
        },
    }
}

/// A folder whose last file was deleted goes with it, as git has it.
fn remove_empty_folders(root: &Root, changes: &[Change]) {
    for change in changes.iter().filter(|change| change.after.is_none()) {
        let parents = change.target.path.ancestors().skip(1);
        let _ = parents.take_while(|parent| !parent.as_os_str().is_empty() && root.remove_empty(parent)).count();
    }
}
