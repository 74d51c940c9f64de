//! The head of a `SKILL.md`: a few `key: value` lines between two lines of `---`. It is YAML, of which people write very
//! little there; what is read here is texts, plain, quoted or folded over several lines. Other keys are left alone.

use abide_kernel::limits::clip;

use crate::limits;
use crate::secrets::Mask;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub name: String,
    pub description: String,
    /// The line that the body begins at, counted from 1.
    pub body: u64,
}

/// Reads the head of a skill that lies in a folder of this name. The error says what is wrong with it.
pub(super) fn parse(text: &str, folder: &str, mask: &Mask) -> Result<Head, String> {
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return Err("its first line is not `---`: a skill begins with its name and description".to_owned());
    }
    let mut entries: Vec<(&str, String)> = Vec::new();
    let mut number = 1;
    loop {
        number += 1;
        let Some(line) = lines.next() else {
            let most = limits::SKILL_HEAD_BYTES;
            return Err(format!("nothing ends its head: a line of `---` has to come within {most} bytes"));
        };
        match line.trim_end() {
            "---" | "..." => break,
            plain if plain.trim_start().is_empty() || plain.starts_with('#') => {}
            plain if plain.starts_with([' ', '\t']) || plain.starts_with("- ") => match entries.last_mut() {
                Some((_, value)) => {
                    value.push(' ');
                    value.push_str(plain.trim_start());
                }
                None => return Err(format!("line {number} belongs to no key")),
            },
            plain => match plain.split_once(':') {
                Some((key, value)) => entries.push((key.trim_end(), value.trim_start().to_owned())),
                None => return Err(format!("line {number} is not `key: value`")),
            },
        }
    }
    let value = |key: &str| match entries.iter().find(|(name, _)| *name == key) {
        Some((_, raw)) => plain(raw).map(Some).ok_or_else(|| format!("the quote of `{key}` has no end")),
        None => Ok(None),
    };
    let name = value("name")?.filter(|name| !name.is_empty()).unwrap_or_else(|| folder.to_owned());
    let spelled = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > limits::SKILL_NAME_BYTES || !name.chars().all(spelled) {
        return Err("its `name` is not made of at most 64 letters, digits, `-`, `_` and `.`".to_owned());
    }
    match value("description")? {
        Some(description) if !description.is_empty() => {
            Ok(Head { name, description: short(description, mask), body: number + 1 })
        }
        Some(_) | None => Err("it lacks a `description`: a line that says what it is good for, and when".to_owned()),
    }
}

/// A text as it was meant, on one line; none if a quote is not closed.
fn plain(raw: &str) -> Option<String> {
    let raw = raw.trim();
    let text = if let Some(quoted) = raw.strip_prefix('"') {
        unescaped(quoted)?
    } else if let Some(quoted) = raw.strip_prefix('\'') {
        let (text, _) = until_single_quote(quoted)?;
        text
    } else {
        let folded = raw.strip_prefix(['>', '|']).and_then(|rest| {
            let (sign, text) = rest.split_once(' ').unwrap_or((rest, ""));
            sign.chars().all(|c| matches!(c, '-' | '+' | '0'..='9')).then_some(text)
        });
        match folded {
            Some(text) => text.to_owned(),
            None => raw.split_once(" #").map_or(raw, |(text, _)| text).to_owned(),
        }
    };
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.chars().map(visible).collect();
    Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn unescaped(quoted: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '"' => return Some(text),
            '\\' => match chars.next()? {
                'n' | 't' | 'r' => text.push(' '),
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

/// A quote in the text is written twice.
fn until_single_quote(quoted: &str) -> Option<(String, &str)> {
    let (mut text, mut rest) = (String::new(), quoted);
    loop {
        let (part, after) = rest.split_once('\'')?;
        text.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                rest = more;
            }
            None => return Some((text, after)),
        }
    }
}

fn short(mut description: String, mask: &Mask) -> String {
    mask.mask_string(&mut description);
    if description.len() <= limits::SKILL_DESCRIPTION_BYTES {
        return description;
    }
    format!("{}…", clip(&description, limits::SKILL_DESCRIPTION_BYTES - "…".len()))
}

#[cfg(test)]
mod tests {
    use super::{Mask, parse};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let said = match parse(text, "folder", &Mask::default()) {
            Ok(head) => format!("{} | {} | {}", head.name, head.description, head.body),
            Err(problem) => problem,
        };
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn a_head_is_read_as_people_write_it() {
        check("---\nname: pdf\ndescription: Reads PDF files.\n---\nbody", "pdf | Reads PDF files. | 5");
        check("\u{feff}---  \r\nname: pdf\r\ndescription: Reads.\r\n---\r\n", "pdf | Reads. | 5");
        check("---\ndescription: d\n...\n", "folder | d | 4");
        check("---\n# note\n\nname : a # b\ndescription: c#d # e\nlicense: MIT\n---\n", "a | c#d | 8");
        check("---\ndescription: \"a \\\"b\\\": c\\n d\" # e\nname: 'it''s'\n---\n", NAME);
        check("---\ndescription: 'it''s # so'\n---\n", "folder | it's # so | 4");
        check("---\ndescription: >-\n  one\n\n  two: three\nname: n\n---\n", "n | one two: three | 8");
        check("---\ndescription: |2\n  one\n---\n", "folder | one | 5");
        check("---\ndescription: one\n\ttwo\u{7}three\ntags:\n- a\n- b\n---\n", "folder | one two three | 8");
    }

    const NAME: &str = "its `name` is not made of at most 64 letters, digits, `-`, `_` and `.`";

    #[test]
    fn what_is_wrong_with_a_head_is_said() {
        let first = "its first line is not `---`: a skill begins with its name and description";
        check("", first);
        check("# A skill\n", first);
        check("---\nname: a\n", "nothing ends its head: a line of `---` has to come within 16384 bytes");
        check("---\n  indented\n---\n", "line 2 belongs to no key");
        check("---\nname: a\njust words\n---\n", "line 3 is not `key: value`");
        check("---\nname: 'a\n---\n", "the quote of `name` has no end");
        check("---\ndescription: \"a\\\"\n---\n", "the quote of `description` has no end");
        check("---\nname: a b\ndescription: d\n---\n", NAME);
        check("---\nname: ../../etc\ndescription: d\n---\n", NAME);
        let lacks = "it lacks a `description`: a line that says what it is good for, and when";
        check("---\nname: a\n---\n", lacks);
        check("---\nname: a\ndescription: \"\"\n---\n", lacks);
    }

    #[test]
    fn a_long_description_is_cut_between_letters() {
        let text = format!("---\ndescription: {}\n---\n", "ä".repeat(600));
        let description = parse(&text, "a", &Mask::default()).unwrap().description;
        assert_eq!(description, format!("{}…", "ä".repeat(510)));
        let fits = format!("---\ndescription: {}\n---\n", "a".repeat(1_024));
        assert_eq!(parse(&fits, "a", &Mask::default()).unwrap().description.len(), 1_024);
    }
}
