//! The workspace's Rust files, with what is for tests only taken out: `tests/`, `benches/`, items behind `#[cfg(test)]`,
//! and the files of modules that are declared behind it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::lexer::{self, Comment, Token};

/// One file.
#[derive(Debug)]
pub(super) struct Source {
    /// The name of the crate's folder.
    pub(super) krate: String,
    /// From the root of the workspace.
    pub(super) path: String,
    /// Where its items are: `["state", "apply"]` for `src/state/apply.rs`, nothing for the crate's root.
    pub(super) module: Vec<String>,
    /// Of production code.
    pub(super) tokens: Vec<Token>,
    /// Of the whole file.
    pub(super) comments: Vec<Comment>,
    /// Lines of production code, comments and empty lines included; none for a file of tests.
    pub(super) lines: usize,
    /// Lines of production code that have code on them.
    pub(super) code_lines: usize,
}

/// A file's name, and what is in it.
pub(super) struct Text {
    pub(super) krate: String,
    pub(super) path: String,
    pub(super) text: String,
}

/// The files of every crate in `crates/`, and of `xtask`.
pub(super) fn load(root: &Path) -> Result<Vec<Source>> {
    let mut folders = vec![root.join("xtask")];
    for entry in fs::read_dir(root.join("crates")).context("there is no folder `crates`")? {
        folders.push(entry?.path());
    }
    folders.sort();
    let mut sources = Vec::new();
    for folder in folders {
        let krate = name(&folder);
        let mut texts = Vec::new();
        for part in ["src", "tests", "benches"] {
            for path in files(&folder.join(part), "rs")? {
                let text = fs::read_to_string(&path).with_context(|| format!("{} can't be read", path.display()))?;
                texts.push(Text { krate: krate.clone(), path: relative(root, &path), text });
            }
        }
        sources.extend(parse(texts));
    }
    Ok(sources)
}

/// The files below a folder whose names end in `.extension`, in the order of their names.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files of one crate.
pub(super) fn parse(texts: Vec<Text>) -> Vec<Source> {
    let mut test_modules = BTreeSet::new();
    let mut sources = Vec::new();
    for Text { krate, path, text } in texts {
        let lexed = lexer::lex(&text);
        let module = module_of(&path);
        let production = path.contains("/src/");
        let (tokens, test_lines, declared) = if production { split(lexed.tokens) } else { Default::default() };
        for child in declared {
            let mut module = module.clone();
            module.push(child);
            test_modules.insert(module);
        }
        let lines = if production { text.lines().count().saturating_sub(test_lines) } else { 0 };
        let code_lines = code_lines(&tokens);
        sources.push(Source { krate, path, module, tokens, comments: lexed.comments, lines, code_lines });
    }
    for source in &mut sources {
        if (1..=source.module.len()).any(|length| test_modules.contains(&source.module[..length])) {
            source.tokens = Vec::new();
            source.lines = 0;
            source.code_lines = 0;
        }
    }
    sources
}

/// Lines that a token stands on.
fn code_lines(tokens: &[Token]) -> usize {
    let mut lines: Vec<usize> = tokens.iter().flat_map(|token| token.line..=token.line + token.more_lines).collect();
    lines.dedup();
    lines.len()
}

fn module_of(path: &str) -> Vec<String> {
    let inner = path.split_once("/src/").map_or(path, |(_, inner)| inner);
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let mut module: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if module.len() == 1 && matches!(module[0].as_str(), "lib" | "main") || module.last().is_some_and(|it| it == "mod")
    {
        module.pop();
    }
    module
}

/// The tokens of production code, the number of lines that the rest takes, and the modules that it declares elsewhere.
fn split(tokens: Vec<Token>) -> (Vec<Token>, usize, Vec<String>) {
    let (mut production, mut lines, mut declared) = (Vec::new(), 0, Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match test_attribute(&tokens[at..]) {
            Some(inner) if inner.whole_file => {
                let last = tokens.last().map_or(0, |token| token.line + token.more_lines);
                return (Vec::new(), last, declared);
            }
            Some(inner) => {
                let end = at + inner.length + item(&tokens[at + inner.length..]);
                let last = &tokens[end - 1];
                lines += last.line + last.more_lines - tokens[at].line + 1;
                let words: Vec<&str> = tokens[at..end].iter().map(|token| token.text.as_str()).collect();
                if let [.., "mod", module, ";"] = words.as_slice() {
                    declared.push((*module).to_owned());
                }
                at = end;
            }
            None => {
                production.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    (production, lines, declared)
}

struct Attribute {
    length: usize,
    whole_file: bool,
}

/// `#[cfg(test)]` or `#[cfg(all(test, …))]`, if it stands here; with `#!`, it is about the whole file.
fn test_attribute(tokens: &[Token]) -> Option<Attribute> {
    let words: Vec<&str> = tokens.iter().take(9).map(|token| token.text.as_str()).collect();
    let (whole_file, inner) = match words.as_slice() {
        ["#", "!", inner @ ..] => (true, inner),
        ["#", inner @ ..] => (false, inner),
        _ => return None,
    };
    matches!(inner, ["[", "cfg", "(", "test", ")", ..] | ["[", "cfg", "(", "all", "(", "test", ..])
        .then(|| Attribute { length: attribute(tokens), whole_file })
}

/// The length of the attribute that begins here.
fn attribute(tokens: &[Token]) -> usize {
    let open = tokens.iter().position(|token| token.is("[")).unwrap_or(0);
    closing(tokens, open) + 1
}

/// The length of the item that begins here, its further attributes included.
fn item(tokens: &[Token]) -> usize {
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => return closing(tokens, at) + 1,
            "(" | "[" => at = closing(tokens, at) + 1,
            // A comma or a closing brace ends a field, a variant or an arm.
            ";" | "," => return at + 1,
            "}" => return at,
            _ => at += 1,
        }
    }
    tokens.len()
}

/// The index of the bracket that closes the one at `open`; the last token's where none does.
pub(super) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len() - 1
}

/// Files of one crate, for the tests of the checks.
#[cfg(test)]
pub(super) fn of_crate(krate: &str, files: &[(&str, &str)]) -> Vec<Source> {
    let texts = files.iter().map(|(path, text)| Text {
        krate: krate.to_owned(),
        path: format!("crates/{krate}/{path}"),
        text: (*text).to_owned(),
    });
    parse(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::of_crate;

    fn words(text: &str) -> String {
        let sources = of_crate("a", &[("src/lib.rs", text)]);
        let words: Vec<&str> = sources[0].tokens.iter().map(|token| token.text.as_str()).collect();
        format!("{} {}", sources[0].lines, words.join(" "))
    }

    #[test]
    fn items_for_tests_are_taken_out() {
        assert_eq!(
            words("fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}"),
            "2 fn a ( ) { } fn c ( ) { }"
        );
        assert_eq!(words("#[cfg(all(test, unix))]\n#[inline]\nfn a(b: [u8; 2]) -> u8 {\n 0\n}\n"), "0 ");
        assert_eq!(words("struct A {\n  #[cfg(test)]\n  b: u8,\n  c: u8,\n}\n"), "3 struct A { c : u8 , }");
        assert_eq!(words("#![cfg(test)]\nfn a() {}\n"), "0 ");
        assert_eq!(words("#[cfg(feature = \"test\")]\nfn a() {}\n").split(' ').next(), Some("2"));
    }

    #[test]
    fn files_of_test_modules_count_as_tests_and_others_do_not() {
        let sources = of_crate(
            "a",
            &[
                ("src/lib.rs", "mod b;\n#[cfg(test)]\nmod tests;\n"),
                ("src/b.rs", "#[cfg(test)]\nmod cases;\nfn c() {}\n"),
                ("src/b/cases.rs", "fn d() {}\n"),
                ("src/tests.rs", "fn e() {}\n"),
                ("src/tests/more.rs", "fn f() {}\n"),
                ("tests/a/main.rs", "fn g() {}\n"),
            ],
        );
        let lines: Vec<_> = sources.iter().map(|source| source.lines).collect();
        assert_eq!(lines, [1, 1, 0, 0, 0, 0]);
        assert_eq!(sources[1].module, ["b"]);
        assert!(sources[0].module.is_empty());
    }
}
