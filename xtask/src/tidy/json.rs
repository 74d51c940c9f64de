//! How much of the code handles JSON without types: `serde_json::Value` and `json!`, per thousand production lines.
//!
//! Counted is every time that the name `Value` stands in production code and means serde_json's, its import included; and
//! every `json!`. `Value` of another crate (`toml_edit::Value`) or a type of ours of that name is not counted: a file in
//! which `Value` alone means one of those says so by importing or defining it. Lines are those with code on them: comments,
//! empty lines and tests do not count.

use std::collections::BTreeMap;

use super::Location;
use super::lexer::Token;
use super::ratchet::{Figure, Table, Tenths};
use super::source::Source;

/// Uses that are allowed per thousand lines.
const PER_THOUSAND: usize = 5;

/// Where JSON is open by its nature, and counted apart.
const APART: [(&str, &str); 2] =
    [("crates/effects/src/model/remote", "provider wires"), ("crates/effects/src/tools", "received tool inputs")];

/// All crates together, without the parts that are counted apart.
const ALL_THE_REST: &str = "all the rest";

/// Crates that do not ship are not counted.
const NOT_SHIPPED: [&str; 2] = ["sim", "xtask"];

pub(super) fn values(sources: &[Source]) -> Table {
    Table {
        name: "value_per_thousand",
        about: "Uses of `serde_json::Value` per thousand lines of production code, above 5.",
        limit: Tenths::whole(PER_THOUSAND),
        figures: figures(sources, values_of),
        action: "give the data a type that derives Serialize; if lines went and no use came, raise the record by hand",
    }
}

pub(super) fn macros(sources: &[Source]) -> Table {
    Table {
        name: "json_macro_per_thousand",
        about: "Uses of `json!` per thousand lines of production code, above 5.",
        limit: Tenths::whole(PER_THOUSAND),
        figures: figures(sources, macros_of),
        action: "give the data a type that derives Serialize; if lines went and no use came, raise the record by hand",
    }
}

fn figures(sources: &[Source], uses: fn(&[Token]) -> Vec<usize>) -> BTreeMap<String, Figure> {
    let mut parts: BTreeMap<&str, (usize, Vec<Location>)> = BTreeMap::new();
    for source in sources {
        let within = |folder: &str| source.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(['/', '.']));
        if NOT_SHIPPED.contains(&source.krate.as_str()) {
            continue;
        }
        let apart = APART.into_iter().find(|(folder, _)| within(folder)).map(|(_, name)| name);
        let found = uses(&source.tokens);
        let keys = match apart {
            Some(name) => [Some(name), None],
            None => [Some(source.krate.as_str()), Some(ALL_THE_REST)],
        };
        for key in keys.into_iter().flatten() {
            let (lines, places) = parts.entry(key).or_default();
            *lines += source.code_lines;
            if key != ALL_THE_REST {
                places.extend(found.iter().map(|line| Location::new(&source.path, *line, "")));
            } else {
                places.extend(found.iter().map(|_| Location::default()));
            }
        }
    }
    let figures = parts.into_iter().map(|(key, (lines, places))| {
        let value = Tenths::per_thousand(places.len(), lines);
        // The places are those of the crates.
        let places = if key == ALL_THE_REST { Vec::new() } else { places };
        (key.to_owned(), Figure { value, places })
    });
    figures.collect()
}

/// The lines on which `Value` means serde_json's.
fn values_of(tokens: &[Token]) -> Vec<usize> {
    let mut lines = Vec::new();
    let plain = !means_another(tokens);
    for (index, token) in tokens.iter().enumerate() {
        if !token.is("Value") {
            continue;
        }
        let before = |steps: usize| index.checked_sub(steps).map_or("", |at| tokens[at].text.as_str());
        let ours = match (before(2), before(1)) {
            ("serde_json", "::") => true,
            (_, "::") => false,
            // An associated type, a variant or a field's type is told apart by what follows.
            (_, "type") => false,
            _ => plain,
        };
        if ours {
            lines.push(token.line);
        }
    }
    lines
}

/// Whether `Value` alone means something else in this file.
fn means_another(tokens: &[Token]) -> bool {
    let mut declared =
        tokens.windows(2).any(|two| matches!(two[0].text.as_str(), "enum" | "struct") && two[1].is("Value"));
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is("use") {
            let end = (at..tokens.len()).find(|end| tokens[*end].is(";")).unwrap_or(tokens.len());
            let tree = &tokens[at + 1..end];
            let serde_json = tree.first().is_some_and(|first| first.is("serde_json"));
            declared |= !serde_json && tree.iter().any(|token| token.is("Value"));
            at = end;
        }
        at += 1;
    }
    declared
}

fn macros_of(tokens: &[Token]) -> Vec<usize> {
    let calls = tokens.windows(2).filter(|two| two[0].is("json") && two[1].is("!"));
    calls.map(|two| two[0].line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::super::source::of_crate;
    use super::{macros_of, values, values_of};

    fn lines(text: &str) -> Vec<usize> {
        values_of(&lex(text).tokens)
    }

    #[test]
    fn serde_json_s_value_is_counted_wherever_it_is_named() {
        assert_eq!(
            lines("use serde_json::{Map, Value};\nfn f(v: &Value) {}\nfn g() -> Value {\nValue::Null }"),
            [1, 2, 3, 4]
        );
        assert_eq!(lines("fn f(v: serde_json::Value) {}\n// Value\nconst S: &str = \"Value\";"), [1]);
    }

    #[test]
    fn values_of_others_are_not() {
        assert!(lines("use toml_edit::{Item, Value};\nfn f(v: Value) {}").is_empty());
        assert!(lines("pub enum Value { A }\nfn f(v: Value) {}").is_empty());
        assert!(lines("fn f(v: toml_edit::Value) -> V::Value { Item::Value }").is_empty());
        assert!(lines("type Value = u8;").is_empty());
        assert_eq!(lines("use toml_edit::Value;\nfn f(v: serde_json::Value) {}"), [2]);
    }

    #[test]
    fn the_macro_is_counted_as_a_call() {
        assert_eq!(macros_of(&lex("use serde_json::json;\njson!({});\nserde_json::json!(1);").tokens), [2, 3]);
    }

    #[test]
    fn provider_wires_and_tool_inputs_are_counted_apart() {
        let value = "use serde_json::Value;\n";
        let sources = of_crate(
            "effects",
            &[
                ("src/lib.rs", &format!("{value}// Says.\n/*\n\n\n\n\n\n*/\n{}", "fn f() {}\n".repeat(199))),
                ("src/model/remote/wire.rs", value),
                ("src/tools.rs", "fn f() {}\n"),
                ("src/toolshed.rs", "\n"),
            ],
        );
        let table = values(&sources);
        let figures: Vec<_> =
            table.figures.iter().map(|(key, it)| format!("{key} {} {}", it.value, it.places.len())).collect();
        assert_eq!(figures, ["all the rest 5 0", "effects 5 1", "provider wires 1000 1", "received tool inputs 0 0"]);
    }
}
