//! Links of documents lead to files and headings that exist, and so do paths of files that they name.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::markdown::Document;
use super::{Finding, Location};

/// Folders of the workspace's root: a code span that begins with one of them is a path.
const FOLDERS: [&str; 4] = ["crates/", "docs/", "tests/", "xtask/"];

pub(super) fn check(root: &Path, documents: &[Document]) -> Vec<Finding> {
    let anchors: BTreeMap<&str, Vec<String>> =
        documents.iter().map(|document| (document.path.as_str(), anchors(document))).collect();
    let mut findings = Vec::new();
    for document in documents {
        for (line, target) in links(document) {
            if let Some(problem) = broken(root, document, &target, &anchors) {
                findings.push(Finding {
                    place: Location::new(&document.path, line, &target).to_string(),
                    problem,
                    action: "correct the link, or restore what it leads to".to_owned(),
                    more: Vec::new(),
                });
            }
        }
        for span in document.code_spans() {
            if let Some(path) = path_of(&span.text).filter(|path| !exists(root, path)) {
                findings.push(Finding {
                    place: Location::new(&document.path, span.line, &span.text).to_string(),
                    problem: format!("there is no `{path}`, neither at the root nor in `crates/`"),
                    action: "name the file that has it now".to_owned(),
                    more: Vec::new(),
                });
            }
        }
    }
    findings
}

/// The targets of `[text](target)` and of `[name]: target`, outside of code.
fn links(document: &Document) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, text) in document.prose.iter().enumerate() {
        let text = without_code(text);
        if let Some((name, target)) = text.split_once("]: ").filter(|(name, _)| name.starts_with('[')) {
            let footnote = name.starts_with("[^");
            found.extend((!footnote).then(|| (index + 1, target.trim().to_owned())));
        }
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or("");
            found.push((index + 1, target.to_owned()));
        }
    }
    found
}

fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

fn broken(root: &Path, document: &Document, target: &str, anchors: &BTreeMap<&str, Vec<String>>) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let path = if path.is_empty() { PathBuf::from(&document.path) } else { normal(&folder.join(path)) };
    if !root.join(&path).exists() {
        return Some(format!("there is no `{}`", path.display()));
    }
    let known = anchors.get(path.to_str()?)?;
    let anchor = anchor.filter(|anchor| !known.iter().any(|known| known == anchor))?;
    Some(format!("`{}` has no heading #{anchor}", path.display()))
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
    }
    normal
}

/// The names that headings can be linked by: in lower case, blanks as hyphens, punctuation left out, repeated ones
/// numbered.
fn anchors(document: &Document) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for heading in &document.headings {
        let kept = heading.text.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
        let slug = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let time = times.entry(slug.clone()).or_default();
        found.push(if *time == 0 { slug } else { format!("{slug}-{time}") });
        *time += 1;
    }
    found
}

/// A path of this repository, if the span is one: `crates/kernel`, `server/src/gate.rs`.
fn path_of(span: &str) -> Option<&str> {
    let plain = span.chars().all(|it| it.is_alphanumeric() || matches!(it, '/' | '.' | '_' | '-'));
    let ours = FOLDERS.iter().any(|folder| span.starts_with(folder)) || span.contains("/src/");
    (plain && ours).then(|| span.trim_end_matches('/'))
}

/// Whether it is there. `src/fact/PLANE.rs` stands for any file of the folder, so there the folder counts.
fn exists(root: &Path, path: &str) -> bool {
    let there = |path: &str| root.join(path).exists() || root.join("crates").join(path).exists();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split('.').next().unwrap_or(name);
    let placeholder = stem.len() > 1 && stem.chars().all(|it| it.is_ascii_uppercase() || it == '_');
    there(path) || (placeholder && there(folder))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::markdown::parse;
    use super::check;

    fn problems(texts: &[(&str, &str)]) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let documents: Vec<_> = texts.iter().map(|(path, text)| parse(path, text)).collect();
        check(root, &documents).into_iter().map(|it| format!("{}: {}", it.place, it.problem)).collect()
    }

    #[test]
    fn links_lead_to_files() {
        let text = "[a](../README.md) [b](https://example.com/none) [c](adr/none.md)\n`[d](none)`\n[e]: ../Cargo.toml\n[f]: none.md\n";
        assert_eq!(
            problems(&[("docs/a.md", text)]),
            [
                "docs/a.md:1 (adr/none.md): there is no `docs/adr/none.md`",
                "docs/a.md:4 (none.md): there is no `docs/none.md`"
            ]
        );
    }

    #[test]
    fn links_lead_to_headings() {
        let readme = "# A `b`: c\n## A b c\n[a](#a-b-c) [b](#a-b-c-1) [c](#a-b-c-2)\n";
        let other = "[a](../README.md#a-b-c) [b](../README.md#b)\n```\n[c](none)\n```\n";
        assert_eq!(
            problems(&[("README.md", readme), ("docs/b.md", other)]),
            [
                "README.md:3 (#a-b-c-2): `README.md` has no heading #a-b-c-2",
                "docs/b.md:1 (../README.md#b): `README.md` has no heading #b"
            ]
        );
    }

    #[test]
    fn paths_of_the_repository_exist() {
        let text = "`crates/kernel/` `xtask/src/none.rs` `kernel/src/lib.rs`\n`none/src/lib.rs` `state/apply.rs` `docs/*.md` `tests`\n`xtask/src/NAME.rs` `xtask/none/NAME.rs`\n";
        let found = problems(&[("docs/a.md", text)]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("docs/a.md:1 (xtask/src/none.rs)") && found[1].contains("(none/src/lib.rs)"));
        assert!(found[2].contains("xtask/none/NAME.rs"));
    }
}
