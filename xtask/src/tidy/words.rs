//! Plain words: comments, documents and help texts that open with a free relative ("What is stored here …"), words that a
//! reader can't search for, and types and files whose names say nothing about what they are.

use std::collections::BTreeMap;

use super::Location;
use super::lexer::{Comment, Token};
use super::markdown::Document;
use super::ratchet::{Figure, Table, Tenths};
use super::source::Source;

/// A paragraph that begins with one of these names no thing. "What is a lease?" is a question, and is allowed.
const OPENINGS: [&str; 6] = ["What ", "Whatever ", "Whoever ", "Whichever ", "Nobody ", "Those who "];

/// These have a plain term, wherever they stand.
const WORDS: [(&str, &str); 9] = [
    ("whoever", "the client, the caller, the operator: the one that is meant"),
    ("whomever", "the one that is meant"),
    ("those who", "the ones that are meant: clients, callers, operators"),
    ("kin", "children and peers"),
    ("neighbour", "peer"),
    ("neighbours", "peers"),
    ("words that make no command", "usage error"),
    ("what passes with time", "transient failures"),
    ("what nobody knows", "unknown"),
];

/// Headings name the topic that people look for.
const HEADINGS: [&str; 3] = ["Hands", "Minds", "The picture"];

/// Names of types that are no nouns, mean several things, or are poetry.
const TYPES: [&str; 22] = [
    "Asked",
    "ChildToBe",
    "Desk",
    "Does",
    "Ended",
    "FirstDay",
    "Found",
    "Hands",
    "Kept",
    "Kin",
    "Met",
    "Mind",
    "NewChild",
    "Outside",
    "Place",
    "Remains",
    "Said",
    "Seen",
    "Speaks",
    "Tab",
    "Thought",
    "World",
];

/// Files whose names answer no question.
const FILES: [&str; 8] = ["aside", "chosen", "hands", "keep", "look", "making", "once", "well"];

pub(super) fn tables(sources: &[Source], documents: &[Document]) -> Vec<Table> {
    let (mut openings, mut words) = (Counts::default(), Counts::default());
    for source in sources {
        for text in paragraphs(&source.comments).into_iter().chain(help_texts(&source.tokens)) {
            openings.opening(&source.krate, &source.path, &text);
            words.words(&source.krate, &source.path, &text);
        }
    }
    // The sentences of a generated document are in the sources.
    for document in documents.iter().filter(|document| !document.is_generated()) {
        for text in document.paragraphs() {
            let text = Paragraph { line: text.line, text: text.text };
            openings.opening("documents", &document.path, &text);
            words.words("documents", &document.path, &text);
        }
        for heading in document.headings.iter().filter(|heading| HEADINGS.contains(&heading.text.as_str())) {
            let key = format!("documents: heading {}", heading.text);
            words.add(key, Location::new(&document.path, heading.line, "name the topic that people look for"));
        }
    }
    vec![
        Table {
            name: "openings",
            about: "Paragraphs of comments, documents and help texts that open with a free relative, by crate.",
            limit: Tenths::whole(0),
            figures: openings.figures(),
            action: "begin with the noun that is meant: \"Unknown models …\", not \"What nobody knows …\"",
        },
        Table {
            name: "words",
            about: "Words that have a plain term, by crate.",
            limit: Tenths::whole(0),
            figures: words.figures(),
            action: "use the field's own term, named beside each place",
        },
        Table {
            name: "names",
            about: "Types and files whose names say nothing about what they are, by crate.",
            limit: Tenths::whole(0),
            figures: names(sources).figures(),
            action: "name a type by a noun that says what it is, and a file by what a reader looks for",
        },
    ]
}

#[derive(Debug, Default)]
struct Counts(BTreeMap<String, Vec<Location>>);

impl Counts {
    fn add(&mut self, key: String, place: Location) {
        self.0.entry(key).or_default().push(place);
    }

    fn opening(&mut self, part: &str, path: &str, paragraph: &Paragraph) {
        let text = paragraph.text.trim_start_matches(['*', '_', '(', '"']);
        let free = OPENINGS.iter().any(|opening| text.starts_with(opening));
        let first_sentence = text.split_inclusive(['.', '?', ':', ';']).next().unwrap_or("");
        if free && !first_sentence.ends_with('?') {
            let opening: Vec<&str> = text.split_whitespace().take(5).collect();
            self.add(part.to_owned(), Location::new(path, paragraph.line, &format!("{} …", opening.join(" "))));
        }
    }

    fn words(&mut self, part: &str, path: &str, paragraph: &Paragraph) {
        let text = paragraph.text.to_lowercase();
        for (word, plain) in WORDS {
            for (at, _) in text.match_indices(word) {
                let inner = |neighbour: Option<char>| neighbour.is_some_and(|it| it.is_alphanumeric() || it == '_');
                if inner(text[..at].chars().next_back()) || inner(text[at + word.len()..].chars().next()) {
                    continue;
                }
                self.add(format!("{part}: {word}"), Location::new(path, paragraph.line, &format!("{word}: {plain}")));
            }
        }
    }

    fn figures(self) -> BTreeMap<String, Figure> {
        let figure = |places: Vec<Location>| Figure { value: Tenths::whole(places.len()), places };
        self.0.into_iter().map(|(key, places)| (key, figure(places))).collect()
    }
}

fn names(sources: &[Source]) -> Counts {
    let mut names = Counts::default();
    for source in sources {
        for two in source.tokens.windows(2) {
            let declares = matches!(two[0].text.as_str(), "struct" | "enum" | "trait" | "type");
            if declares && TYPES.contains(&two[1].text.as_str()) {
                let place = Location::new(&source.path, two[1].line, "");
                names.add(format!("{}: type {}", source.krate, two[1].text), place);
            }
        }
        if let Some(last) = source.module.last().filter(|last| source.lines > 0 && FILES.contains(&last.as_str())) {
            names.add(format!("{}: file {last}.rs", source.krate), Location::new(&source.path, 1, ""));
        }
    }
    names
}

#[derive(Debug)]
struct Paragraph {
    line: usize,
    text: String,
}

/// Comments put together: adjacent lines of one kind are a paragraph, up to an empty one.
fn paragraphs(comments: &[Comment]) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut before: Option<&Comment> = None;
    for comment in comments {
        let goes_on = before.is_some_and(|before| {
            before.line + 1 == comment.line && before.marker == comment.marker && !before.text.is_empty()
        });
        let item = comment.text.starts_with(['-', '*', '|', '#']);
        match found.last_mut() {
            Some(last) if goes_on && !item => {
                last.text.push(' ');
                last.text.push_str(&comment.text);
            }
            _ => {
                let text = comment.text.trim_start_matches(['-', '*', '|', '#', ' ']).to_owned();
                found.push(Paragraph { line: comment.line, text });
            }
        }
        before = Some(comment);
    }
    found
}

/// `about = "…"` and its like, in attributes of the command line. Most help texts are comments.
fn help_texts(tokens: &[Token]) -> Vec<Paragraph> {
    let texts = tokens.windows(3).filter(|three| {
        matches!(three[0].text.as_str(), "about" | "long_about" | "help" | "long_help" | "after_help")
            && three[1].is("=")
    });
    let texts = texts
        .filter_map(|three| three[2].string().map(|text| Paragraph { line: three[2].line, text: text.to_owned() }));
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::super::markdown;
    use super::super::source::of_crate;
    use super::tables;

    fn places(rust: &str, document: &str) -> Vec<String> {
        let tables = tables(&of_crate("x", &[("src/once.rs", rust)]), &[markdown::parse("docs/a.md", document)]);
        let mut found = Vec::new();
        for table in &tables {
            for (key, figure) in &table.figures {
                let places: Vec<String> = figure.places.iter().map(ToString::to_string).collect();
                found.push(format!("[{}] {key} = {}: {}", table.name, figure.value, places.join(", ")));
            }
        }
        found.retain(|line| !line.contains("file once.rs"));
        found
    }

    #[test]
    fn comments_and_help_texts_that_open_with_a_free_relative_are_found() {
        let rust = "//! What is kept, and\n//! what is not.\n//!\n//! Whoever asks.\n\nfn a() {} // Nobody asks.\n\
                    /// Says what it is.\n/// What is one line of several.\nfn b() {}\n/// What is a lease? A lock with an end.\nfn c() {}\n\
                    #[command(about = \"Those who wait\")]\nstruct C;\n";
        assert_eq!(
            places(rust, ""),
            [
                "[openings] x = 4: crates/x/src/once.rs:1 (What is kept, and what …), crates/x/src/once.rs:4 (Whoever asks. …), \
                 crates/x/src/once.rs:6 (Nobody asks. …), crates/x/src/once.rs:12 (Those who wait …)",
                "[words] x: those who = 1: crates/x/src/once.rs:12 (those who: the ones that are meant: clients, callers, operators)",
                "[words] x: whoever = 1: crates/x/src/once.rs:4 (whoever: the client, the caller, the operator: the one that is meant)",
            ]
        );
    }

    #[test]
    fn documents_are_read_by_paragraph_item_cell_and_heading() {
        let document =
            "# Hands\n\nText.\nWhat goes on\n\n- **What** is an item\n\n| a | Nobody b |\n\n```\nWhat is code\n```\n";
        assert_eq!(
            places("", document),
            [
                "[openings] documents = 2: docs/a.md:6 (What is an item …), docs/a.md:8 (Nobody b …)",
                "[words] documents: heading Hands = 1: docs/a.md:1 (name the topic that people look for)",
            ]
        );
    }

    #[test]
    fn words_are_found_whole_and_across_lines() {
        let rust = "// It is akin to a kind of those\n// who are kin.\nconst S: &str = \"kin\";";
        let found = places(rust, "");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("[words] x: kin = 1") && found[1].starts_with("[words] x: those who = 1"));
    }

    #[test]
    fn types_and_files_that_say_nothing_are_found() {
        let names = |path: &str, text: &str| {
            let tables = tables(&of_crate("x", &[(path, text)]), &[]);
            tables[2].figures.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            names("src/routes/well.rs", "pub struct Place(u8);\nenum Does {}\nstruct Placed;\n"),
            ["x: file well.rs", "x: type Does", "x: type Place"]
        );
        assert!(
            names("src/well_known.rs", "fn f(place: Place) {}\n#[cfg(test)]\nmod tests { struct Place; }\n").is_empty()
        );
    }
}
