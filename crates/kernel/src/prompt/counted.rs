//! Items with their estimate. A request shares the items of the requests before it: they are made, and their tokens counted,
//! once.

use std::sync::Arc;

use super::Item;
use super::measure::tokens_of;

/// Items of a prompt, and the tokens that they are estimated to take.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CountedItems {
    pub items: Vec<Arc<Item>>,
    pub tokens: u64,
}

impl CountedItems {
    pub(super) fn append(&mut self, more: &CountedItems) {
        self.items.extend(more.items.iter().cloned());
        self.tokens += more.tokens;
    }
}

impl FromIterator<Item> for CountedItems {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> CountedItems {
        let mut counted = CountedItems::default();
        for item in items {
            counted.tokens += tokens_of(&item);
            counted.items.push(Arc::new(item));
        }
        counted
    }
}
