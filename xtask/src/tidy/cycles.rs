//! Import cycles between the top-level modules of a crate.
//!
//! Two modules that import each other, directly or around a corner, can't be read or tested one without the other. Each
//! pair of modules whose import lies on a cycle is a figure: the number of names that it takes.

use std::collections::{BTreeMap, BTreeSet};

use super::Location;
use super::imports::{Import, imports};
use super::ratchet::{Figure, Table, Tenths};
use super::source::Source;

pub(super) fn table(sources: &[Source]) -> Table {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        crates.entry(&source.krate).or_default().push(source);
    }
    let mut figures = BTreeMap::new();
    for (krate, sources) in crates {
        for (edge, imports) in cycles(imports(&sources)) {
            let names: BTreeSet<&str> = imports.iter().map(|import| import.path.as_str()).collect();
            let places = imports.iter().map(|import| Location::new(&import.file, import.line, &import.path)).collect();
            let figure = Figure { value: Tenths::whole(names.len()), places };
            figures.insert(format!("{krate}: {} -> {}", edge.0, edge.1), figure);
        }
    }
    Table {
        name: "cycles",
        about: "Names that a module imports from another one of its crate that imports from it in turn, directly or not.",
        limit: Tenths::whole(0),
        figures,
        action: "move what both need to a module below both, or pass it in; `cargo xtask tidy --all` shows the whole cycle",
    }
}

type Edge = (String, String);

/// The imports that lie on a cycle: both ends reach each other.
fn cycles(imports: Vec<Import>) -> BTreeMap<Edge, Vec<Import>> {
    let mut next: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for import in &imports {
        next.entry(import.from.clone()).or_default().insert(import.to.clone());
    }
    let reach: BTreeMap<&String, BTreeSet<&String>> = next.keys().map(|from| (from, reachable(&next, from))).collect();
    let mut found: BTreeMap<Edge, Vec<Import>> = BTreeMap::new();
    for import in imports {
        if reach.get(&import.to).is_some_and(|reached| reached.contains(&import.from)) {
            found.entry((import.from.clone(), import.to.clone())).or_default().push(import);
        }
    }
    found
}

fn reachable<'a>(next: &'a BTreeMap<String, BTreeSet<String>>, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for to in next.get(module).into_iter().flatten() {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::source::of_crate;
    use super::table;

    fn figures(files: &[(&str, &str)]) -> Vec<String> {
        let table = table(&of_crate("x", files));
        table.figures.iter().map(|(key, figure)| format!("{key} = {} at {}", figure.value, figure.places[0])).collect()
    }

    const ROOT: (&str, &str) = ("src/lib.rs", "mod a; mod b; mod c;");

    #[test]
    fn modules_that_import_each_other_are_found() {
        let files = [ROOT, ("src/a.rs", "use crate::b::{B, C};"), ("src/b.rs", "\nuse super::a::A;")];
        assert_eq!(
            figures(&files),
            ["x: a -> b = 2 at crates/x/src/a.rs:1 (b::B)", "x: b -> a = 1 at crates/x/src/b.rs:2 (a::A)"]
        );
    }

    #[test]
    fn a_cycle_around_a_corner_is_found_without_the_imports_that_lead_to_it_or_from_it() {
        let files = [
            ("src/lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
            ("src/a.rs", "use crate::b::B; use crate::d::D;"),
            ("src/b/deep.rs", "fn f() { crate::c::g() }"),
            ("src/c.rs", "use crate::a;"),
            ("src/e.rs", "use crate::a;"),
        ];
        let found = figures(&files);
        let edges: Vec<&str> = found.iter().map(|line| line.split(" =").next().unwrap()).collect();
        assert_eq!(edges, ["x: a -> b", "x: b -> c", "x: c -> a"]);
    }

    #[test]
    fn imports_in_one_direction_are_none() {
        let files =
            [ROOT, ("src/a.rs", "use crate::b::B;"), ("src/b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }")];
        assert!(figures(&files).is_empty());
    }
}
