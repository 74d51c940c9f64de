//! Rust source as tokens and comments, each with its line. Enough of the language to count and to follow paths; it never
//! judges whether a program is correct.

/// A token of code. A string or character literal keeps its quotes, and `::` is one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
    /// Lines that a literal goes on for beyond its first.
    pub(super) more_lines: usize,
}

/// One comment, or one line of several `//` lines, without its marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comment {
    pub(super) marker: &'static str,
    pub(super) text: String,
    pub(super) line: usize,
}

#[derive(Debug, Default)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    pub(super) comments: Vec<Comment>,
}

impl Token {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub(super) fn is_ident(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphabetic() || first == '_') && !self.text.ends_with(['"', '\''])
    }

    /// The text between the quotes of a string literal, escapes as they are written.
    pub(super) fn string(&self) -> Option<&str> {
        let inner = self.text.trim_matches('#');
        let inner = &inner[inner.find('"')? + 1..];
        inner.strip_suffix('"')
    }
}

pub(super) fn lex(source: &str) -> Lexed {
    let mut lexer = Lexer { rest: source, line: 1, lexed: Lexed::default() };
    while lexer.step() {}
    lexer.lexed
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    lexed: Lexed,
}

impl<'a> Lexer<'a> {
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if first.is_whitespace() {
            self.take(first.len_utf8());
        } else if self.rest.starts_with("//") {
            self.line_comment();
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(length) = literal(self.rest) {
            self.token(length);
        } else if first.is_alphanumeric() || first == '_' {
            let raw = if self.rest.starts_with("r#") { 2 } else { 0 };
            self.take(raw);
            let length = word(self.rest);
            self.token(length);
        } else if self.rest.starts_with("::") {
            self.token(2);
        } else {
            self.token(first.len_utf8());
        }
        true
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn token(&mut self, length: usize) {
        let line = self.line;
        let text = self.take(length).to_owned();
        self.lexed.tokens.push(Token { text, line, more_lines: self.line - line });
    }

    fn line_comment(&mut self) {
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = self.line;
        let text = self.take(length);
        let marker = ["////", "///", "//!", "//"].into_iter().find(|marker| text.starts_with(marker)).unwrap_or("//");
        let text = text[marker.len()..].trim().to_owned();
        self.lexed.comments.push(Comment { marker, text, line });
    }

    fn block_comment(&mut self) {
        let (line, mut depth, mut at) = (self.line, 0_usize, 0);
        while at < self.rest.len() {
            if self.rest[at..].starts_with("/*") {
                depth += 1;
                at += 2;
            } else if self.rest[at..].starts_with("*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    break;
                }
            } else {
                at += self.rest[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        let text = self.take(at);
        let text = text.trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']).trim().to_owned();
        self.lexed.comments.push(Comment { marker: "/*", text, line });
    }
}

/// The length of the word or number that begins here.
fn word(text: &str) -> usize {
    let mut length = 0;
    let mut chars = text.chars().peekable();
    let number = text.starts_with(|first: char| first.is_ascii_digit());
    while let Some(next) = chars.next() {
        let goes_on = next.is_alphanumeric() || next == '_';
        // A point belongs to a number only before a digit: `0..5` is a range.
        let point = number && next == '.' && chars.peek().is_some_and(char::is_ascii_digit);
        if !goes_on && !point {
            break;
        }
        length += next.len_utf8();
    }
    length
}

/// The length of the string or character literal that begins here, if one does.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            let quoted = rest.trim_start_matches('#');
            let raw = prefix.ends_with('r');
            quoted.starts_with('"') && (raw || quoted.len() == rest.len())
        }) || (matches!(*prefix, "b" | "") && text.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('\'')))
    })?;
    let rest = &text[prefix.len()..];
    if rest.starts_with('\'') {
        return character(rest).map(|length| prefix.len() + length);
    }
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let close = format!("\"{}", "#".repeat(hashes));
        let inner = prefix.len() + hashes + 1;
        return Some(text[inner..].find(&close).map_or(text.len(), |at| inner + at + close.len()));
    }
    Some(prefix.len() + escaped(rest, b'"'))
}

/// A character literal, or nothing where a lifetime begins.
fn character(text: &str) -> Option<usize> {
    let mut inner = text[1..].chars();
    let first = inner.next()?;
    (first == '\\' || inner.next() == Some('\'')).then(|| escaped(text, b'\''))
}

/// The length of a literal from its first quote to the next one that is not escaped.
fn escaped(text: &str, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::lex;

    fn tokens(source: &str) -> Vec<String> {
        lex(source).tokens.into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn strings_comments_and_lifetimes_are_told_apart() {
        assert_eq!(tokens("use a::b; // use c::d;"), ["use", "a", "::", "b", ";"]);
        assert_eq!(tokens("/* a /* b */ c */ d"), ["d"]);
        assert_eq!(tokens(r##"f("{ \" //", r#"a"b"#, 'x', '\'', b'{', b"\\")"##).len(), 14);
        assert_eq!(tokens("&'a str"), ["&", "'", "a", "str"]);
        assert_eq!(tokens("'\u{1F600}' '{' x"), ["'\u{1F600}'", "'{'", "x"]);
        assert_eq!(tokens("0..5 1.5 r#type br x"), ["0", ".", ".", "5", "1.5", "type", "br", "x"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let lexed = lex("\"a\n b\"\n/* c\n */ d // What\n//! e");
        let lines: Vec<_> = lexed.tokens.iter().map(|token| (token.line, token.more_lines)).collect();
        assert_eq!(lines, [(1, 1), (4, 0)]);
        assert_eq!(lexed.tokens[0].string(), Some("a\n b"));
        let comments: Vec<_> = lexed.comments.iter().map(|c| (c.marker, c.text.as_str(), c.line)).collect();
        assert_eq!(comments, [("/*", "c", 3), ("//", "What", 4), ("//!", "e", 5)]);
    }
}
