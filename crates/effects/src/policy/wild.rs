//! A text with `*` for any run of characters and `?` for any one. Nothing else means anything special.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wild(Vec<char>);

impl Wild {
    pub(super) fn new(text: &str) -> Wild {
        Wild(text.chars().collect())
    }

    /// Whether it matches everything there is.
    pub(super) fn is_any(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|c| *c == '*')
    }

    /// As a command: a pattern that ends in a blank and `*` matches the command without arguments, too.
    pub(super) fn matches_command(&self, command: &str) -> bool {
        let alone = self.0.strip_suffix(&[' ', '*']);
        self.matches(command) || alone.is_some_and(|alone| Wild(alone.to_vec()).matches(command))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let (wanted, text): (&[char], Vec<char>) = (&self.0, text.chars().collect());
        let (mut w, mut t) = (0, 0);
        // The last star, and how far the text had come when it was last tried.
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            match wanted.get(w) {
                Some('*') => {
                    star = Some((w, t));
                    w += 1;
                }
                Some('?') => (w, t) = (w + 1, t + 1),
                Some(c) if *c == text[t] => (w, t) = (w + 1, t + 1),
                Some(_) | None => match star {
                    Some((at, tried)) => {
                        star = Some((at, tried + 1));
                        (w, t) = (at + 1, tried + 1);
                    }
                    None => return false,
                },
            }
        }
        wanted[w..].iter().all(|c| *c == '*')
    }
}
