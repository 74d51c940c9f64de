//! The ignore files of commits as one list of patterns. git itself would read those that lie in the folder, where an
//! agent may have changed them; this list says what was ignored before the agent came.

use std::collections::BTreeSet;

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::mirror::Mirror;
use super::tree_size::check_tree;
use crate::limits;

const NAME: &[u8] = b".gitignore";

/// The patterns of all ignore files of these commits, for a file that is read from the top of the tree. Those of deeper
/// folders come later, because they win. Ignore files beyond the limit, and those of a tree that is too large, are left
/// out: then more counts as work.
pub(super) fn patterns(mirror: &Mirror, commits: &BTreeSet<String>) -> Result<Vec<u8>, Refusal> {
    let git = mirror.git()?;
    let mut files = BTreeSet::new();
    for commit in commits {
        if check_tree(&git, commit).is_err_and(|refusal| refusal.code == ErrorCode::TreeTooLarge) {
            continue;
        }
        let listed = git.run(&[&"ls-tree", &"-r", &"-z", &commit])?;
        files.extend(listed.split(|byte| *byte == 0).filter_map(ignore_file));
    }
    let files: Vec<IgnoreFile> = files.into_iter().take(limits::IGNORE_FILES).collect();
    let ids: String = files.iter().map(|file| format!("{}\n", file.id)).collect();
    let printed = git.run_with(&[&"cat-file", &"--batch"], ids.as_bytes())?;
    let mut printed = printed.as_slice();
    let mut patterns = Vec::new();
    for file in &files {
        let (content, rest) = split_object(printed);
        if content.len() as u64 <= limits::GIT_SETTINGS_BYTES {
            translate(&file.folder, content, &mut patterns);
        }
        printed = rest;
    }
    Ok(patterns)
}

/// Ordered by how deep it lies.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IgnoreFile {
    depth: usize,
    /// With a slash at the end, and empty for the top.
    folder: Vec<u8>,
    id: String,
}

/// An entry of `git ls-tree`: mode, type and id, a tab, and the path.
fn ignore_file(entry: &[u8]) -> Option<IgnoreFile> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let folder = entry[tab + 1..].strip_suffix(NAME)?;
    let words = String::from_utf8_lossy(&entry[..tab]).into_owned();
    let (kind, id) = words.rsplit_once(' ')?;
    // A link is not followed, and a name with a line end can't be part of a pattern.
    if !kind.starts_with("100") || !(folder.is_empty() || folder.ends_with(b"/")) || folder.contains(&b'\n') {
        return None;
    }
    let depth = folder.iter().filter(|byte| **byte == b'/').count();
    Some(IgnoreFile { depth, folder: folder.to_vec(), id: id.to_owned() })
}

/// The first object that `git cat-file --batch` printed, and the others.
fn split_object(printed: &[u8]) -> (&[u8], &[u8]) {
    let Some(end) = printed.iter().position(|byte| *byte == b'\n') else { return (&[], &[]) };
    let size = String::from_utf8_lossy(&printed[..end]).rsplit(' ').next().and_then(|size| size.parse::<usize>().ok());
    // An object that is not there has a line alone.
    let Some(size) = size else { return (&[], &printed[end + 1..]) };
    let start = end + 1;
    let stop = usize::min(start + size, printed.len());
    (&printed[start..stop], printed.get(stop + 1..).unwrap_or_default())
}

/// Adds the patterns of an ignore file that lies in a folder, as they are written at the top of the tree.
fn translate(folder: &[u8], content: &[u8], patterns: &mut Vec<u8>) {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    for line in content.split(|byte| *byte == b'\n') {
        let line = trimmed(line.strip_suffix(b"\r").unwrap_or(line));
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let (not, pattern) = line.strip_prefix(b"!").map_or((&b""[..], line), |rest| (b"!", rest));
        let inner = pattern.strip_suffix(b"/").unwrap_or(pattern);
        patterns.extend_from_slice(not);
        if folder.is_empty() {
            patterns.extend_from_slice(pattern);
        } else {
            patterns.push(b'/');
            patterns.extend(folder.iter().flat_map(|byte| literal(*byte)));
            if !inner.contains(&b'/') {
                // It holds for every folder below.
                patterns.extend_from_slice(b"**/");
            }
            patterns.extend_from_slice(pattern.strip_prefix(b"/").unwrap_or(pattern));
        }
        patterns.push(b'\n');
    }
}

/// Without the blanks at its end, but for one that is escaped.
fn trimmed(line: &[u8]) -> &[u8] {
    let blanks = line.iter().rev().take_while(|byte| **byte == b' ').count();
    let (text, blanks) = line.split_at(line.len() - blanks);
    let escapes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    if blanks.is_empty() || escapes % 2 == 0 { text } else { &line[..text.len() + 1] }
}

/// A byte of a name in a pattern, where it stands for itself.
fn literal(byte: u8) -> impl Iterator<Item = u8> {
    let escape = matches!(byte, b'\\' | b'*' | b'?' | b'[').then_some(b'\\');
    escape.into_iter().chain([byte])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(folder: &str, content: &str) -> String {
        let mut patterns = Vec::new();
        translate(folder.as_bytes(), content.as_bytes(), &mut patterns);
        String::from_utf8(patterns).unwrap()
    }

    #[test]
    fn patterns_of_a_folder_hold_below_it() {
        assert_eq!(translated("", "\u{feff}a\r\n\n# b\n!c/\n/d\n"), "a\n!c/\n/d\n");
        assert_eq!(
            translated("x/", "a\n!b/\n/c\nd/e\nf/*/\n**/g"),
            "/x/**/a\n!/x/**/b/\n/x/c\n/x/d/e\n/x/f/*/\n/x/**/g\n"
        );
        assert_eq!(translated("x [y]*/", "a"), "/x \\[y]\\*/**/a\n");
        assert_eq!(translated("x/", "\\#a  \nb\\  \n\\!c\nd/  "), "/x/**/\\#a\n/x/**/b\\ \n/x/**/\\!c\n/x/**/d/\n");
    }
}
