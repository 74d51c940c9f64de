//! Patterns of paths: `*` and `?` stay within a name, `**` goes through folders.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

const PATTERN_BYTES: usize = 1_000;

/// A pattern that is matched against whole paths.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    set: GlobSet,
    pub text: String,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        if text.is_empty() || text.len() > PATTERN_BYTES {
            return Err(format!("give a pattern of 1 to {PATTERN_BYTES} bytes, such as src/**/*.rs"));
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return Err("a pattern is relative to the folder that is searched; `path` says which one that is".into());
        }
        let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
        let set = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build());
        let set = set.map_err(|error| format!("{}: write it like src/**/*.rs or *.{{ts,tsx}}", error.kind()))?;
        Ok(Pattern { set, text: text.to_owned() })
    }

    pub(crate) fn matches(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }

    /// Whether it names something hidden, and so means hidden files.
    pub(super) fn names_hidden(&self) -> bool {
        let bytes = self.text.as_bytes();
        let begins = |at: usize| at == 0 || matches!(bytes[at - 1], b'/' | b'{' | b',');
        (0..bytes.len())
            .any(|at| bytes[at] == b'.' && begins(at) && bytes.get(at + 1).is_some_and(|next| *next != b'/'))
    }

    /// The folders it begins with, up to the first part that is a pattern; and the rest of it.
    pub(crate) fn split(&self) -> (PathBuf, Pattern) {
        let plain = |part: &str| !part.is_empty() && !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let parts: Vec<&str> = self.text.split('/').collect();
        // A comma or brace that spans a slash makes all of it one pattern.
        let count = parts[..parts.len() - 1].iter().take_while(|part| plain(part)).count();
        match Pattern::new(&parts[count..].join("/")) {
            Ok(rest) => (parts[..count].iter().collect(), rest),
            Err(_) => (PathBuf::new(), self.clone()),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}
