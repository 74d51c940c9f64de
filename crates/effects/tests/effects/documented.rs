//! The threat model names, for each line, the tests that hold it. A name without a test would be a promise that nothing
//! holds.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names of all functions in the Rust files below a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('(').map(|(name, _)| name));
            found.extend(names.map(str::to_owned));
        }
    }
}

/// The names in the last column of every table whose last column is called `test`.
fn named(document: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_table = false;
    for line in document.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", .., "test", ""] => in_table = true,
            ["", .., last, ""] if in_table => {
                names.extend(last.split(',').map(|name| name.trim().trim_matches('`').to_owned()));
            }
            _ => in_table = false,
        }
    }
    names.retain(|name| !name.is_empty() && !name.starts_with('-'));
    names
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut there = BTreeSet::new();
    for folder in ["crates/effects/src", "crates/effects/tests", "crates/abide/tests"] {
        functions(&root.join(folder), &mut there);
    }
    for (document, least) in [("docs/sandbox.md", 50), ("docs/repositories.md", 15)] {
        let names = named(&fs::read_to_string(root.join(document)).unwrap());
        assert!(names.len() >= least, "{document} names {} tests", names.len());
        let missing: Vec<&String> = names.iter().filter(|name| !there.contains(*name)).collect();
        assert!(missing.is_empty(), "{document} names tests that do not exist: {missing:?}");
    }
}
