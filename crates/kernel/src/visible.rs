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

#[cfg(test)]
mod tests {
    use super::is_hidden;

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
