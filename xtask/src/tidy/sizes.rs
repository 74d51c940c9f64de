//! How long production files and functions are.

use std::collections::BTreeMap;

use super::Location;
use super::lexer::Token;
use super::ratchet::{Figure, Table, Tenths};
use super::source::{Source, closing};

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 100;

/// Matches over all facts: one arm for each, so they are as long as there are facts.
const OVER_ALL_FACTS: [(&str, &str); 3] = [
    ("crates/kernel/src/state/apply.rs", "apply_fact"),
    ("crates/kernel/src/read_rows.rs", "rows_of"),
    ("crates/sim/src/model/observe.rs", "observe"),
];

pub(super) fn files(sources: &[Source]) -> Table {
    let figure = |source: &Source| Figure {
        value: Tenths::whole(source.lines),
        places: vec![Location::new(&source.path, 1, "the file")],
    };
    Table {
        name: "file_lines",
        about: "Lines of production files that have more than 600.",
        limit: Tenths::whole(FILE_LINES),
        figures: sources.iter().map(|source| (source.path.clone(), figure(source))).collect(),
        action: "move what answers a question of its own to a file of its own",
    }
}

pub(super) fn functions(sources: &[Source]) -> Table {
    let mut figures: BTreeMap<String, Figure> = BTreeMap::new();
    for source in sources {
        for function in functions_of(&source.tokens) {
            if OVER_ALL_FACTS.contains(&(source.path.as_str(), function.name.as_str())) {
                continue;
            }
            let place = Location::new(&source.path, function.line, &format!("fn {}", function.name));
            let figure = Figure { value: Tenths::whole(function.lines), places: vec![place] };
            let key = format!("{} {}", source.path, function.name);
            match figures.get(&key) {
                Some(longer) if longer.value >= figure.value => {}
                _ => drop(figures.insert(key, figure)),
            }
        }
    }
    Table {
        name: "function_lines",
        about: "Lines of production functions that have more than 100, by file and name.",
        limit: Tenths::whole(FUNCTION_LINES),
        figures,
        action: "extract what has a true name of its own",
    }
}

#[derive(Debug)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// Functions with a body, from `fn` to the closing brace; attributes and comments above `fn` do not count.
fn functions_of(tokens: &[Token]) -> Vec<Function> {
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        // `fn(u8)` is a type.
        let Some(name) = tokens.get(index + 1).filter(|name| token.is("fn") && name.is_ident()) else { continue };
        if let Some(open) = body(tokens, index + 1) {
            let end = &tokens[closing(tokens, open)];
            found.push(Function { name: name.text.clone(), line: token.line, lines: end.line - token.line + 1 });
        }
    }
    found
}

fn body(tokens: &[Token], name: usize) -> Option<usize> {
    let mut at = name + 1;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => return Some(at),
            ";" => return None,
            "(" | "[" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::ratchet::{Recorded, compare};
    use super::super::source::of_crate;
    use super::{files, functions};

    fn long(name: &str, lines: usize) -> String {
        format!("/// Says.\n#[inline]\nfn {name}(a: [u8; 4]) -> fn(u8) {{\n{}}}\n", "  let _ = 1;\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_may_have_a_hundred_lines_and_no_more() {
        let text = format!("{}{}trait T {{ fn c(); }}\n", long("a", 100), long("b", 101));
        let table = functions(&of_crate("x", &[("src/lib.rs", &text)]));
        let findings = compare(&[table], &Recorded::default()).findings;
        let problems: Vec<_> = findings.iter().map(|it| format!("{} {}", it.place, it.problem)).collect();
        let wanted = "crates/x/src/lib.rs:105 (fn b) [function_lines] crates/x/src/lib.rs b: 101, allowed are 100";
        assert_eq!(problems, [wanted]);
    }

    #[test]
    fn a_match_over_all_facts_may_be_long_where_it_is() {
        let text = long("apply_fact", 300);
        let longest = |krate: &str| {
            let table = functions(&of_crate(krate, &[("src/state/apply.rs", &text)]));
            compare(&[table], &Recorded::default()).findings.len()
        };
        assert_eq!((longest("kernel"), longest("engine")), (0, 1));
    }

    #[test]
    fn a_file_may_have_six_hundred_lines_besides_its_tests() {
        let tests = "#[cfg(test)]\nmod tests {\n}\n";
        let findings = |lines: usize| {
            let text = format!("{}{tests}", "const A: u8 = 1;\n".repeat(lines));
            compare(&[files(&of_crate("x", &[("src/lib.rs", &text)]))], &Recorded::default()).findings.len()
        };
        assert_eq!((findings(600), findings(601)), (0, 1));
    }
}
