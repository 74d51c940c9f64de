//! Our key, where a model says it itself: what it says is kept for good and shown to many.

use std::borrow::Cow;

use super::Key;

/// The text in its place.
pub(super) const INSTEAD: &str = "(the key)";

/// Shorter ones are words such as `none`, which servers at home take for a key.
const SECRET_BYTES: usize = 16;

/// A key that nobody is to read in an answer, if there is one.
#[derive(Clone, Copy)]
pub(super) struct KeyRedaction<'k>(Option<&'k str>);

impl<'k> KeyRedaction<'k> {
    pub(super) fn new(key: Option<&'k Key>) -> KeyRedaction<'k> {
        KeyRedaction(key.map(Key::reveal).filter(|key| key.len() >= SECRET_BYTES))
    }

    pub(super) fn from<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.0 {
            Some(key) if text.contains(key) => Cow::Owned(text.replace(key, INSTEAD)),
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// How many bytes at the end of a text may become the key with what comes next.
    pub(super) fn may_begin(&self, text: &str) -> usize {
        let begins = |key: &str, bytes: usize| key.get(..bytes).is_some_and(|beginning| text.ends_with(beginning));
        self.0.and_then(|key| (1..key.len()).rev().find(|bytes| begins(key, *bytes))).unwrap_or_default()
    }
}
