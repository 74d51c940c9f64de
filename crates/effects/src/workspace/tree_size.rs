//! The size of a tree before it is checked out. A tree names others, and may name one of them often: a few kilobytes of
//! objects can stand for more files than any disk holds. Every tree is read once, and its totals count as often as it is
//! named, so counting takes no longer than the objects are many.

use std::collections::HashMap;

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::git::Git;
use super::objects::Objects;
use crate::limits;

/// Totals of a tree with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TreeSize {
    /// Files, folders, links and submodules.
    pub(super) entries: u64,
    /// Of the contents of files, each as often as it is named.
    pub(super) bytes: u64,
    /// Folders inside of each other.
    pub(super) depth: u64,
    /// The longest path.
    pub(super) path_bytes: u64,
}

impl TreeSize {
    /// The size of a tree, or of that of a commit.
    pub(super) fn of(git: &Git, tree: &str) -> Result<TreeSize, Refusal> {
        let mut objects = Objects::of(git)?;
        let size = Count { objects: &mut objects, known: HashMap::new(), read: 0 }.tree(&format!("{tree}^{{tree}}"))?;
        objects.finish()?;
        Ok(size)
    }

    /// Refuses a tree that is larger than any that is worked with. `what` names it for a person.
    pub(super) fn check(&self, what: &str) -> Result<(), Refusal> {
        let bounds = [
            (self.entries, limits::TREE_ENTRIES, "entries"),
            (self.depth, limits::TREE_DEPTH, "folders inside of each other"),
            (self.path_bytes, limits::TREE_PATH_BYTES, "bytes in its longest path"),
        ];
        match bounds.into_iter().find(|(found, most, _)| found > most) {
            Some((found, most, unit)) => Err(too_large(what, found, most, unit)),
            None => Ok(()),
        }
    }

    fn add(&mut self, below: TreeSize, name_bytes: u64) {
        self.entries = self.entries.saturating_add(below.entries);
        self.bytes = self.bytes.saturating_add(below.bytes);
        self.depth = self.depth.max(below.depth + 1);
        self.path_bytes = self.path_bytes.max(name_bytes.saturating_add(1).saturating_add(below.path_bytes));
    }
}

/// Counts the tree of a commit, and refuses one that is too large.
pub(super) fn check_tree(git: &Git, commit: &str) -> Result<TreeSize, Refusal> {
    let size = TreeSize::of(git, commit)?;
    size.check(&format!("the tree of {commit}"))?;
    Ok(size)
}

pub(super) fn too_large(what: &str, found: u64, most: u64, unit: &str) -> Refusal {
    let message = format!("{what} has {found} {unit}, the limit is {most}");
    Refusal::new(ErrorCode::TreeTooLarge, message)
        .with_hint("look for folders that are repeated in it: git ls-tree -d; commit a smaller tree")
}

/// A tree that is being counted: the trees below it that are still to be counted, and its totals so far.
struct Open {
    id: String,
    rest: Vec<(String, u64)>,
    size: TreeSize,
}

struct Count<'a, 'b> {
    objects: &'a mut Objects<'b>,
    /// Totals of trees by their ids; none while a tree is being counted.
    known: HashMap<String, Option<TreeSize>>,
    /// Entries of all trees that were read.
    read: u64,
}

impl Count<'_, '_> {
    fn tree(&mut self, top: &str) -> Result<TreeSize, Refusal> {
        let mut open = vec![self.open(top)?];
        loop {
            let depth = open.len() as u64;
            let Some(last) = open.last_mut() else { return Ok(TreeSize::default()) };
            let Some((id, name_bytes)) = last.rest.last() else {
                let Open { id, size, .. } = open.pop().unwrap_or_else(|| unreachable!("it was there"));
                self.known.insert(id, Some(size));
                let Some(above) = open.last_mut() else { return Ok(size) };
                let (_, name_bytes) = above.rest.pop().unwrap_or_default();
                above.size.add(size, name_bytes);
                continue;
            };
            match self.known.get(id) {
                Some(Some(size)) => {
                    last.size.add(*size, *name_bytes);
                    last.rest.pop();
                }
                // Only an object that does not match its name can be part of itself.
                Some(None) => {
                    let message = format!("the tree {id} is part of itself");
                    return Err(Refusal::new(ErrorCode::DamagedObjects, message)
                        .with_hint("see what git fsck says in the repository"));
                }
                None if depth > limits::TREE_DEPTH => {
                    return Err(too_large("the tree", depth, limits::TREE_DEPTH, "folders inside of each other"));
                }
                None => {
                    let id = id.clone();
                    open.push(self.open(&id)?);
                }
            }
        }
    }

    /// Reads a tree, and counts the entries that are not trees.
    fn open(&mut self, id: &str) -> Result<Open, Refusal> {
        let missing = || {
            let message = format!("the tree {id} is missing, or no tree");
            Refusal::new(ErrorCode::DamagedObjects, message)
        };
        let tree = self.objects.content(id)?.filter(|object| object.kind == "tree").ok_or_else(missing)?;
        self.known.insert(tree.id.clone(), None);
        let (mut rest, mut files, mut size) = (Vec::new(), Vec::new(), TreeSize::default());
        for entry in entries(&tree.bytes, tree.id.len() / 2) {
            let Entry { kind, name_bytes, id } = entry.ok_or_else(missing)?;
            size.entries += 1;
            size.path_bytes = size.path_bytes.max(name_bytes);
            match kind {
                EntryKind::Tree => rest.push((id, name_bytes)),
                EntryKind::File => files.push(id),
                EntryKind::Submodule => {}
            }
        }
        self.read += size.entries;
        if self.read > limits::TREE_ENTRIES {
            return Err(too_large(
                "the tree, without repetitions,",
                self.read,
                limits::TREE_ENTRIES,
                "entries or more",
            ));
        }
        size.bytes = self.objects.sizes(&files)?;
        Ok(Open { id: tree.id, rest, size })
    }
}

enum EntryKind {
    Tree,
    File,
    Submodule,
}

struct Entry {
    kind: EntryKind,
    name_bytes: u64,
    id: String,
}

/// The entries of a tree: a mode, a blank, a name, a zero byte, and the hash as it is. One that is cut off is None.
fn entries(mut tree: &[u8], hash_bytes: usize) -> impl Iterator<Item = Option<Entry>> {
    std::iter::from_fn(move || {
        if tree.is_empty() {
            return None;
        }
        let mut entry = || {
            let zero = tree.iter().position(|byte| *byte == 0)?;
            let blank = tree[..zero].iter().position(|byte| *byte == b' ')?;
            let hash = tree.get(zero + 1..zero + 1 + hash_bytes)?;
            let kind = match &tree[..blank] {
                b"40000" | b"040000" => EntryKind::Tree,
                b"160000" => EntryKind::Submodule,
                _ => EntryKind::File,
            };
            let id = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            let found = Entry { kind, name_bytes: (zero - blank - 1) as u64, id };
            tree = &tree[zero + 1 + hash_bytes..];
            Some(found)
        };
        let found = entry();
        if found.is_none() {
            tree = &[];
        }
        Some(found)
    })
}
