//! Which paths a file names, and which top-level module of its crate each of them leads to.
//!
//! Paths that begin with `crate`, `self` or `super` count, in `use` declarations and in code. A name that the crate's root
//! re-exports leads to the module that it comes from. Items that the root itself defines lead nowhere: the root declares
//! the modules, so it is left out of the graph.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::Token;
use super::source::Source;

/// One import: which module names what of which other one, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) to: String,
    /// The path that is named, from the crate's root.
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) file: String,
}

/// A path as written: absolute in the crate, and the name that it gets.
#[derive(Debug)]
struct Named {
    path: Vec<String>,
    name: String,
    line: usize,
    declared_by_use: bool,
}

/// The imports between top-level modules of one crate.
pub(super) fn imports(sources: &[&Source]) -> Vec<Import> {
    let roots: Vec<&Source> = sources.iter().copied().filter(|source| source.module.is_empty()).collect();
    let modules: BTreeSet<String> = roots.iter().flat_map(|root| modules_of(&root.tokens)).collect();
    let mut exports = Exports::default();
    for root in &roots {
        exports.read(&paths(root), &modules);
    }
    let mut found = Vec::new();
    for source in sources {
        let Some(from) = source.module.first().filter(|module| modules.contains(*module)) else { continue };
        for named in paths(source) {
            let Some(to) = exports.module(&named.path, &modules) else { continue };
            if to != *from {
                let (path, file) = (named.path.join("::"), source.path.clone());
                found.push(Import { from: from.clone(), to, path, line: named.line, file });
            }
        }
    }
    found
}

/// Names that the crate's root takes out of its modules.
#[derive(Debug, Default)]
struct Exports {
    names: BTreeMap<String, String>,
    /// The module that everything is taken from, if there is only one.
    globs: BTreeSet<String>,
}

impl Exports {
    fn read(&mut self, named: &[Named], modules: &BTreeSet<String>) {
        for named in named.iter().filter(|named| named.declared_by_use) {
            let Some(module) = named.path.first().filter(|first| modules.contains(*first)) else { continue };
            if named.name == "*" {
                self.globs.insert(module.clone());
            } else {
                self.names.insert(named.name.clone(), module.clone());
            }
        }
    }

    fn module(&self, path: &[String], modules: &BTreeSet<String>) -> Option<String> {
        let first = path.first()?;
        if modules.contains(first) {
            return Some(first.clone());
        }
        let only = if self.globs.len() == 1 { self.globs.first() } else { None };
        self.names.get(first).or(only).cloned()
    }
}

/// The modules that a file declares at its top, inline ones too.
fn modules_of(tokens: &[Token]) -> Vec<String> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "mod" if depth == 0 => found.extend(tokens.get(index + 1).map(|name| name.text.clone())),
            _ => {}
        }
    }
    found
}

fn paths(source: &Source) -> Vec<Named> {
    let mut reader =
        Reader { tokens: &source.tokens, at: 0, module: source.module.clone(), open: Vec::new(), found: Vec::new() };
    reader.read();
    reader.found
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    /// The module that we are in, inline ones included.
    module: Vec<String>,
    /// For every open brace, whether it is the body of an inline module.
    open: Vec<bool>,
    found: Vec<Named>,
}

impl Reader<'_> {
    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    fn read(&mut self) {
        while self.at < self.tokens.len() {
            match self.text(self.at) {
                "mod" if self.text(self.at + 2) == "{" => {
                    self.module.push(self.text(self.at + 1).to_owned());
                    self.open.push(true);
                    self.at += 3;
                }
                "{" => {
                    self.open.push(false);
                    self.at += 1;
                }
                "}" => {
                    if self.open.pop() == Some(true) {
                        self.module.pop();
                    }
                    self.at += 1;
                }
                // `use<'a>` is a bound, not a declaration.
                "use" if self.text(self.at + 1) != "<" => {
                    self.at += 1;
                    self.tree(&[]);
                }
                "crate" | "self" | "super" if self.text(self.at + 1) == "::" && !self.is_visibility() => {
                    let line = self.tokens[self.at].line;
                    let path = self.segments();
                    self.add(path, None, line, false);
                }
                _ => self.at += 1,
            }
        }
    }

    /// `pub(in crate::agent)` imports nothing.
    fn is_visibility(&self) -> bool {
        self.at > 0 && self.text(self.at - 1) == "in" && self.at > 1 && self.text(self.at - 2) == "("
    }

    /// `a::b::c`, as far as it goes.
    fn segments(&mut self) -> Vec<String> {
        let mut segments = Vec::new();
        while self.tokens.get(self.at).is_some_and(Token::is_ident) {
            segments.push(self.text(self.at).to_owned());
            self.at += 1;
            if self.text(self.at) != "::" {
                break;
            }
            self.at += 1;
        }
        segments
    }

    /// A tree of a `use`, up to what ends it.
    fn tree(&mut self, prefix: &[String]) {
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        if self.text(self.at) == "::" {
            self.at += 1;
        }
        let mut path = prefix.to_vec();
        path.extend(self.segments());
        match self.text(self.at) {
            "{" => {
                self.at += 1;
                while self.at < self.tokens.len() && self.text(self.at) != "}" {
                    let before = self.at;
                    self.tree(&path);
                    if self.text(self.at) == "," || self.at == before {
                        self.at += 1;
                    }
                }
                self.at += 1;
            }
            "*" => {
                self.at += 1;
                self.add(path, Some("*".to_owned()), line, true);
            }
            "as" => {
                let name = self.text(self.at + 1).to_owned();
                self.at += 2;
                self.add(path, Some(name), line, true);
            }
            _ => self.add(path, None, line, true),
        }
    }

    fn add(&mut self, path: Vec<String>, name: Option<String>, line: usize, declared_by_use: bool) {
        let glob = name.as_deref() == Some("*");
        let Some(mut path) = self.absolute(path, declared_by_use) else { return };
        let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
        if glob {
            path.push(name.clone());
        }
        self.found.push(Named { path, name, line, declared_by_use });
    }

    /// The path from the crate's root; nothing where it may lead out of the crate.
    fn absolute(&self, written: Vec<String>, declared_by_use: bool) -> Option<Vec<String>> {
        let mut segments = written.into_iter().peekable();
        let mut path = match segments.peek()?.as_str() {
            "crate" => {
                segments.next();
                Vec::new()
            }
            "self" | "super" => self.module.clone(),
            // In the root, `use agent::State` names one of its modules; elsewhere such a path leads to another crate, or
            // to a module below this one.
            _ if declared_by_use && self.module.is_empty() => Vec::new(),
            _ => return None,
        };
        for segment in segments {
            match segment.as_str() {
                "self" => {}
                "super" => drop(path.pop()),
                _ => path.push(segment),
            }
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::of_crate;
    use super::imports;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources = of_crate("x", files);
        let found = imports(&sources.iter().collect::<Vec<_>>());
        found
            .into_iter()
            .map(|it| {
                format!("{}:{} {} -> {} {}", it.file.rsplit_once('/').unwrap().1, it.line, it.from, it.to, it.path)
            })
            .collect()
    }

    const ROOT: &str = "mod a;\nmod b;\nmod c;\npub use b::{Thing as Other, deep::{Deep}};\npub use crate::c::Plain;";

    #[test]
    fn nested_groups_and_renames_are_followed() {
        let a = "use std::fmt;\npub use crate::{b::{self, X as Y, z::{Z, *}}, c};\nuse super::c::C;";
        assert_eq!(
            found(&[("src/lib.rs", ROOT), ("src/a.rs", a)]),
            [
                "a.rs:2 a -> b b",
                "a.rs:2 a -> b b::X",
                "a.rs:2 a -> b b::z::Z",
                "a.rs:2 a -> b b::z::*",
                "a.rs:2 a -> c c",
                "a.rs:3 a -> c c::C"
            ]
        );
    }

    #[test]
    fn names_that_the_root_exports_lead_to_their_module() {
        let a = "use crate::{Other, Deep, Plain, Rooted};\nfn f(_: &crate::Plain) {}";
        assert_eq!(
            found(&[("src/lib.rs", ROOT), ("src/a.rs", a)]),
            ["a.rs:1 a -> b Other", "a.rs:1 a -> b Deep", "a.rs:1 a -> c Plain", "a.rs:2 a -> c Plain"]
        );
        let glob = "mod a;\nmod b;\npub use b::*;";
        assert_eq!(found(&[("src/lib.rs", glob), ("src/a.rs", "use crate::Any;")]), ["a.rs:1 a -> b Any"]);
    }

    #[test]
    fn super_is_resolved_from_where_it_stands() {
        let files = [
            ("src/lib.rs", ROOT),
            (
                "src/a/deep.rs",
                "use super::sibling::S;\nuse super::super::b::B;\nmod inner {\n  use super::super::T;\n  fn f() { super::super::super::c::g(); }\n}\nfn h() { super::super::b::i() }",
            ),
        ];
        assert_eq!(found(&files), ["deep.rs:2 a -> b b::B", "deep.rs:5 a -> c c::g", "deep.rs:7 a -> b b::i"]);
    }

    #[test]
    fn paths_in_code_and_in_macros_count_and_visibilities_do_not() {
        let a = "pub(in crate::b) fn f() -> impl Sized + use<> { crate::b::g::<u8>() }\nmacro_rules! m { () => { $crate::c::h() } }";
        assert_eq!(found(&[("src/lib.rs", ROOT), ("src/a.rs", a)]), ["a.rs:1 a -> b b::g", "a.rs:2 a -> c c::h"]);
    }

    #[test]
    fn tests_comments_and_other_crates_import_nothing() {
        let a = "// use crate::b::B;\nuse b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }\nconst S: &str = \"crate::b::B\";";
        assert!(found(&[("src/lib.rs", ROOT), ("src/a.rs", a)]).is_empty());
    }
}
