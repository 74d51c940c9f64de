//! The lines above the hunks of one file: its names before and after, and its other changes.

use super::parse::PatchFault;
use abide_kernel::tool::{FilePatch, Hunk, WorkspacePath};

/// A name in a `---` or `+++` line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Name {
    /// `/dev/null`: there is no file on this side.
    None,
    Path(String),
}

#[derive(Debug, Default)]
pub(super) struct Header {
    /// Both names in the line `diff --git`, where they can be told apart; nothing if there is no such line.
    pub git_names: Option<Option<(String, String)>>,
    pub old: Option<Name>,
    pub new: Option<Name>,
    from: Option<String>,
    to: Option<String>,
    copied: bool,
    created: bool,
    deleted: bool,
    executable: Option<bool>,
}

const KNOWN: [&str; 11] = [
    "old mode ",
    "new mode ",
    "deleted file mode ",
    "new file mode ",
    "similarity index ",
    "dissimilarity index ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "index ",
];

impl Header {
    pub(super) fn accepts(&self, line: &str) -> bool {
        KNOWN.iter().any(|known| line.starts_with(known))
    }

    pub(super) fn read_line(&mut self, line: &str) -> Result<(), PatchFault> {
        let known = KNOWN.iter().find_map(|known| line.strip_prefix(known).map(|value| (*known, value)));
        let Some((known, value)) = known else { return Ok(()) };
        match known {
            "old mode " => {
                parse_mode(value)?;
            }
            "new mode " => self.executable = Some(parse_mode(value)?),
            "deleted file mode " => {
                parse_mode(value)?;
                self.deleted = true;
            }
            "new file mode " => {
                self.executable = Some(parse_mode(value)?);
                self.created = true;
            }
            "rename from " | "copy from " => self.from = Some(unquote_name(value)?),
            "rename to " => self.to = Some(unquote_name(value)?),
            "copy to " => {
                self.to = Some(unquote_name(value)?);
                self.copied = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// The names as paths, and all of it as one change.
    pub(super) fn into_file_patch(self, hunks: Vec<Hunk>) -> Result<FilePatch, PatchFault> {
        let (old, new) = self.names()?;
        let path = |name: Option<String>| match name.map(|name| WorkspacePath::new(&name)).transpose() {
            Ok(path) => Ok(path),
            Err(hint) => Err(PatchFault::new("a name in it is no path", hint)),
        };
        let (old, new) = (path(old)?, path(new)?);
        if hunks.is_empty() && old == new && self.executable.is_none() {
            let hint = "give the hunks that change it, or leave the file out";
            return Err(PatchFault::new("nothing is changed in this file", hint));
        }
        let keeps_old = self.copied || old == new;
        Ok(FilePatch { old, new, keeps_old, executable: self.executable, hunks })
    }

    fn names(&self) -> Result<(Option<String>, Option<String>), PatchFault> {
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            return Ok((Some(from.clone()), Some(to.clone())));
        }
        let (old, new) = match (&self.old, &self.new, &self.git_names) {
            (Some(old), Some(new), _) => (old.clone(), new.clone()),
            (_, _, Some(Some((old, new)))) => (Name::Path(old.clone()), Name::Path(new.clone())),
            _ => {
                let hint = "name it in two lines, --- a/PATH and +++ b/PATH";
                return Err(PatchFault::new("it can't be told which file is meant", hint));
            }
        };
        let (old, new) = without_prefixes(old, new, self.git_names.is_some());
        match (old, new) {
            (Name::None, Name::None) => Err(PatchFault::new("both names are /dev/null", "name the file that is meant")),
            (Name::None, Name::Path(new)) => Ok((None, Some(new))),
            (Name::Path(old), Name::None) => Ok((Some(old), None)),
            (Name::Path(_), Name::Path(new)) if self.created => Ok((None, Some(new))),
            (Name::Path(old), Name::Path(_)) if self.deleted => Ok((Some(old), None)),
            // Only git renames. Elsewhere two names are those of two files that were compared, and the new one is meant.
            (Name::Path(_), Name::Path(new)) => Ok((Some(new.clone()), Some(new))),
        }
    }
}

/// Takes off `a/` and `b/`, or what git puts there instead when it compares other things.
fn without_prefixes(old: Name, new: Name, git: bool) -> (Name, Name) {
    let has = |name: &Name, marks: &[&str]| match name {
        Name::None => true,
        Name::Path(path) => marks.iter().any(|mark| path.starts_with(mark)),
    };
    let (a, b): (&[&str], &[&str]) =
        if git { (&["a/", "i/", "c/", "o/", "w/"], &["b/", "w/", "i/", "c/", "o/"]) } else { (&["a/"], &["b/"]) };
    if !has(&old, a) || !has(&new, b) {
        return (old, new);
    }
    let strip = |name| match name {
        Name::None => Name::None,
        Name::Path(path) => Name::Path(path.get(2..).unwrap_or_default().to_owned()),
    };
    (strip(old), strip(new))
}

/// Parses the text after `---` or `+++`: a name, and perhaps a tab and a time. The Unix epoch means no file.
pub(super) fn parse_name(text: &str) -> Result<Name, PatchFault> {
    let (name, time) = if text.starts_with('"') { (text, "") } else { text.split_once('\t').unwrap_or((text, "")) };
    let name = unquote_name(name)?;
    let never = time.starts_with("1970-01-01 00:00:00") || time.starts_with("1969-12-31 ");
    Ok(if name == "/dev/null" || never { Name::None } else { Name::Path(name) })
}

/// Both names of `a/NAME b/NAME`. Names with spaces can be told apart only if they are the same, and then that is enough:
/// of files that are renamed, other lines say the names.
pub(super) fn names_of_git_line(text: &str) -> Option<(String, String)> {
    if text.starts_with('"') {
        let end = text.get(1..)?.find("\" ")? + 2;
        return Some((unquote_name(&text[..end]).ok()?, unquote_name(&text[end + 1..]).ok()?));
    }
    let middle = text.len() / 2;
    let (old, new) = (text.get(..middle)?, text.get(middle..)?.strip_prefix(' ')?);
    (old.get(2..) == new.get(2..) || old == new).then(|| (old.to_owned(), new.to_owned()))
}

/// A name in quotes has its odd bytes as git spells them.
fn unquote_name(text: &str) -> Result<String, PatchFault> {
    let odd = || PatchFault::new("a quoted name in it can't be read", "give names as they are, or as git quotes them");
    let Some(inner) = text.strip_prefix('"') else { return Ok(text.to_owned()) };
    let inner = inner.trim_end_matches('\t').strip_suffix('"').ok_or_else(odd)?;
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let plain = match rest.next().ok_or_else(odd)? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            same @ (b'"' | b'\\') => same,
            first @ b'0'..=b'3' => {
                let mut digit = || rest.next().filter(|byte| matches!(byte, b'0'..=b'7')).map(|byte| byte - b'0');
                let (second, third) = (digit().ok_or_else(odd)?, digit().ok_or_else(odd)?);
                (first - b'0') * 64 + second * 8 + third
            }
            _ => return Err(odd()),
        };
        bytes.push(plain);
    }
    String::from_utf8(bytes).map_err(|_| odd())
}

fn parse_mode(mode: &str) -> Result<bool, PatchFault> {
    match mode {
        "100644" | "100664" | "100600" => Ok(false),
        "100755" | "100775" | "100700" => Ok(true),
        "120000" => {
            Err(PatchFault::new("it is a link, not a file", "leave it out, and make it with ExecCommand: ln -s"))
        }
        "160000" => {
            Err(PatchFault::new("it is a submodule", "leave it out, and change it with git through ExecCommand"))
        }
        _ => {
            Err(PatchFault::new("its mode is none that git knows", "say 100644, or 100755 for a file that can be run"))
        }
    }
}
