//! Programs that git's settings name by a path: filters, drivers, helpers, aliases. The user's next git runs them, so an
//! agent that can write one of them decides what the user runs.

use std::path::{Path, PathBuf};

use super::includes::expanded;

/// A program that a setting names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingProgram {
    /// The key of the setting.
    pub setting: String,
    pub path: PathBuf,
}

/// Settings whose value is a command, whole.
const COMMANDS: &[&str] = &[
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "diff.external",
    "gc.recentobjectshook",
    "gpg.program",
    "interactive.difffilter",
    "sendemail.sendmailcmd",
    "sendemail.tocmd",
    "sendemail.cccmd",
    "sequence.editor",
    "uploadpack.packobjectshook",
];

/// The same by their section and the last part of the key, whatever name lies between.
const NAMED_COMMANDS: &[(&str, &[&str])] = &[
    ("alias", &[""]),
    ("browser", &["cmd", "path"]),
    ("credential", &["helper"]),
    ("diff", &["command", "textconv"]),
    ("difftool", &["cmd", "path"]),
    ("filter", &["clean", "smudge", "process"]),
    ("gpg", &["program", "defaultkeycommand"]),
    ("guitool", &["cmd"]),
    ("hook", &["command"]),
    ("man", &["cmd", "path"]),
    ("merge", &["driver"]),
    ("mergetool", &["cmd", "path"]),
    ("pager", &[""]),
    ("remote", &["receivepack", "uploadpack"]),
    ("submodule", &["update"]),
    ("tar", &["command"]),
    ("trailer", &["command", "cmd"]),
];

/// Whether a setting, by its key, names a program.
fn is_command(key: &str) -> bool {
    let Some((section, rest)) = key.split_once('.') else { return false };
    let last = rest.rsplit_once('.').map_or(rest, |(_, last)| last);
    let names_one = |parts: &[&str]| parts.iter().any(|part| part.is_empty() || *part == last);
    COMMANDS.contains(&key) || NAMED_COMMANDS.iter().any(|(of, parts)| *of == section && names_one(parts))
}

/// The programs that one setting names by a path. A relative one begins at the top of the working tree, where git starts
/// such commands.
pub(super) fn programs_in(key: &str, value: &str, toplevel: &Path) -> Vec<SettingProgram> {
    let is_alias = key.starts_with("alias.") || (key.starts_with("submodule.") && key.ends_with(".update"));
    if !is_command(key) || (is_alias && !value.starts_with('!')) {
        return Vec::new();
    }
    let ends_word = |c: char| c.is_whitespace() || "!;&|()<>'\"`=".contains(c);
    let words = value.split(ends_word).filter(|word| !word.is_empty());
    let named = words.enumerate().filter_map(|(at, word)| {
        let path = toplevel.join(expanded(word)?);
        // Arguments may look like paths: `s/a/b/`.
        let is_plain = word.starts_with(['.', '/', '~']) || (at == 0 && word.contains('/'));
        (is_plain && word.contains('/') || path.is_file()).then(|| SettingProgram { setting: key.to_owned(), path })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_commands_as_a_shell_reads_them() {
        let top = Path::new("/nowhere");
        let named = |key: &str, value: &str| -> Vec<String> {
            programs_in(key, value, top).iter().map(|program| program.path.display().to_string()).collect()
        };
        for (key, value, path) in [
            ("filter.x.clean", "./tools/clean %f", "/nowhere/./tools/clean"),
            ("core.fsmonitor", "tools/fsm", "/nowhere/tools/fsm"),
            ("alias.st", "!cd src && ./tools/st", "/nowhere/./tools/st"),
            ("merge.a.b.driver", "sh './d/m' %O", "/nowhere/./d/m"),
            ("core.sshcommand", "ssh -o ProxyCommand=./proxy", "/nowhere/./proxy"),
        ] {
            assert_eq!(named(key, value), [path], "{key}");
        }
        for (key, value) in [
            ("alias.st", "status ./x"),
            ("core.fsmonitor", "true"),
            ("filter.x.clean", "sed s/a/b/"),
            ("remote.origin.url", "./other"),
            ("credential.helper", "store"),
        ] {
            assert_eq!(named(key, value), [""; 0], "{key}");
        }
    }
}
