//! Characters that a screen does not show, or that change the order of those around them. Quoted text with such
//! characters could look like something else than it is, so they are escaped wherever people read it.

/// Whether a character is invisible or reorders the text around it. Line ends and tabs are control characters, too.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The text on one line, with every hidden character escaped.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) {
            true if c.is_control() => line.extend(c.escape_default()),
            true => line.extend(c.escape_unicode()),
            false => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{is_hidden, one_line};

    #[test]
    fn hidden_characters_are_escaped_on_one_line() {
        assert_eq!(one_line("a\n[9] b\t\u{202e}c\u{200b}\u{1b}[2J ü"), r"a\n[9] b\t\u{202e}c\u{200b}\u{1b}[2J ü");
    }

    #[test]
    fn text_in_any_language_is_shown_and_marks_that_reorder_it_are_not() {
        let shown = "plain ÄÖ漢字 العربية עברית हिन्दी e\u{301} 👍";
        assert!(!shown.chars().any(is_hidden));
        for hidden in
            ['\u{202e}', '\u{2066}', '\u{200b}', '\u{200d}', '\u{feff}', '\u{2028}', '\u{e0041}', '\u{1b}', '\n']
        {
            assert!(is_hidden(hidden), "{hidden:?}");
        }
    }
}
