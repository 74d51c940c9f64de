//! How many tokens something will take, estimated from its letters. `state/token_calibration.rs` corrects the estimates.

use serde_json::Value;

use super::{Item, Part, Prompt};

/// The tokens of a picture, about.
const IMAGE_TOKENS: u64 = 1_600;
/// The tokens of an item beside its text.
const ITEM_TOKENS: u64 = 8;

/// Four letters of the Latin alphabet are about one token; of most others, each is one.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    let mut letters = Letters::default();
    letters.count(text.as_bytes());
    letters.tokens()
}

/// The same for the text of a JSON value, which need not be written for that.
fn json_tokens(value: &Value) -> u64 {
    let mut letters = Letters::default();
    match serde_json::to_writer(&mut letters, value) {
        Ok(()) => letters.tokens(),
        Err(error) => unreachable!("a value has only string keys, and counting does not fail: {error}"),
    }
}

#[derive(Default)]
struct Letters {
    ascii: usize,
    others: usize,
}

impl Letters {
    /// Of UTF-8, cut anywhere.
    fn count(&mut self, bytes: &[u8]) {
        self.ascii += bytes.iter().filter(|byte| byte.is_ascii()).count();
        // Every other letter has one byte that begins it.
        self.others += bytes.iter().filter(|byte| **byte >= 0b1100_0000).count();
    }

    fn tokens(&self) -> u64 {
        u64::try_from(self.ascii.div_ceil(4) + self.others).unwrap_or(u64::MAX)
    }
}

impl std::io::Write for Letters {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.count(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[must_use]
pub fn tokens_of(item: &Item) -> u64 {
    let parts = match item {
        Item::User { parts } => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => tokens(text),
                Part::Image(_) => IMAGE_TOKENS,
            })
            .sum(),
        Item::Assistant { text, calls, thought } => {
            let calls: u64 = calls.iter().map(|call| ITEM_TOKENS + json_tokens(&call.input)).sum();
            let sealed = thought.as_ref().map_or(0, |thought| json_tokens(&thought.sealed));
            tokens(text) + calls + sealed
        }
        Item::Results { results } => results
            .iter()
            .map(|result| {
                let images = u64::try_from(result.images.len()).unwrap_or(0) * IMAGE_TOKENS;
                ITEM_TOKENS + tokens(&result.content) + images
            })
            .sum(),
    };
    ITEM_TOKENS + parts
}

impl Prompt {
    /// The tokens that the prompt is guessed to take, tools aside.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        tokens(&self.system) + self.items.iter().map(|item| tokens_of(item)).sum::<u64>()
    }
}
