//! Where tools are known: each in a file of its own, and nowhere else by name.

use std::fs;
use std::path::{Path, PathBuf};

use abide_effects::tools;

/// What the tools' folder has beside them.
const SHARED: &[&str] = &["fields.rs", "set.rs", "subject.rs", "todo.rs"];

/// Strings outside of the tools' folder that are spelled like a tool, and what they are.
const OTHER_WORDS: &[(&str, &str, &str)] = &[
    ("kernel/src/pack/words.rs", "*", "words that facts are stored with"),
    ("views/src/vocabulary.rs", "Sleep", "a decision of the scheduler"),
    ("api/src/operations.rs", "TaskInput", "the body of a request"),
    ("sim/src/generators.rs", "*", "what the simulated model writes"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// `ExecCommand` is in `exec_command.rs`.
fn file_of(tool: &str) -> String {
    let letters = tool.chars().enumerate().flat_map(|(at, c)| {
        let before = (at > 0 && c.is_uppercase()).then_some('_');
        before.into_iter().chain(c.to_lowercase())
    });
    format!("{}.rs", letters.collect::<String>())
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_tool_is_one_file_with_its_schema_and_its_parser() {
    let folder = crates().join("effects/src/tools");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.filter(|file| !SHARED.contains(&file.as_str())).collect();
    let mut wanted: Vec<String> = tools::ALL.iter().map(|tool| file_of(tool.name)).collect();
    files.sort();
    wanted.sort();
    assert_eq!(files, wanted, "one file for each tool of the table");
    for tool in tools::ALL {
        let text = fs::read_to_string(folder.join(file_of(tool.name))).unwrap();
        let name = format!("name: {:?}", tool.name);
        for part in [name.as_str(), "pub(super) const TOOL: Tool", "fn schema() -> Value"] {
            assert!(text.contains(part), "{} has no `{part}`", file_of(tool.name));
        }
        assert!(!text.contains("pub fn parse") && !text.contains("pub(crate) fn parse"), "{}: one way in", tool.name);
        assert_eq!(tool.schema()["type"], "object", "{}", tool.name);
    }
}

#[test]
fn no_other_code_knows_a_tool_by_its_name() {
    let (crates, mut files) = (crates(), Vec::new());
    for entry in fs::read_dir(&crates).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 300, "{} files were looked at", files.len());
    let mut known = Vec::new();
    for file in files.iter().filter(|file| !file.starts_with(crates.join("effects/src/tools"))) {
        let (path, text) = (file.strip_prefix(&crates).unwrap().display(), fs::read_to_string(file).unwrap());
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (number, line) in lines {
            let named = tools::ALL.iter().filter(|tool| line.contains(&format!("{:?}", tool.name)));
            known.extend(named.map(|tool| (path.to_string(), tool.name, number + 1)));
        }
    }
    let other = |path: &str, name: &str| {
        OTHER_WORDS.iter().any(|(file, word, _)| *file == path && (*word == "*" || *word == name))
    };
    let places: Vec<String> = known
        .iter()
        .filter(|(path, name, _)| !other(path, name))
        .map(|(path, name, line)| format!("{path}:{line}: {name:?}; match on the parsed call, or ask tools::ALL"))
        .collect();
    assert!(places.is_empty(), "{}", places.join("\n"));
    for (file, word, _) in OTHER_WORDS {
        let is_there = known.iter().any(|(path, name, _)| path == file && (*word == "*" || word == name));
        assert!(is_there, "{file} has no {word:?} any more: take it off the list");
    }
}
