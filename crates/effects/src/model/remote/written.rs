//! The conversation of a request in its provider's JSON. A request begins as the one before it did, so the items that both
//! have are written once. The kept bytes follow from the items alone: without them, the same bytes are written anew.

use std::sync::Arc;

use abide_kernel::prompt::Item;
use serde_json::Value;

use super::{Protocol, Remote};

/// The items of the last request of a conversation, as they were written.
#[derive(Debug, Default)]
pub struct WrittenItems {
    written_for: Option<WrittenFor>,
    items: Vec<WrittenItem>,
    /// The size of the JSON.
    bytes: usize,
}

/// All that the JSON of an item depends on beside the item.
#[derive(Debug, PartialEq, Eq)]
struct WrittenFor {
    model: String,
    protocol: Protocol,
    images: bool,
}

#[derive(Debug)]
pub(super) struct WrittenItem {
    item: Arc<Item>,
    pub(super) fragments: Vec<Fragment>,
}

/// A part of an item. The parts before and after it decide how it is put into the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) place: FragmentPlace,
    pub(super) json: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FragmentPlace {
    /// A text in a message to the model: a JSON string.
    UserText,
    /// Any block of a message to the model.
    UserBlock,
    /// A block of a message by the model.
    AssistantBlock,
    /// A message of its own.
    Message,
    /// Nothing: only what is said before and after it are two messages.
    Gap,
}

impl WrittenItems {
    /// The items as they are written for a model.
    pub(super) fn update(
        &mut self,
        remote: &Remote,
        items: &[Arc<Item>],
        write: impl Fn(&Item) -> Vec<Fragment>,
    ) -> &[WrittenItem] {
        let Remote { name, provider, card, model: _ } = remote;
        let written_for = WrittenFor { model: name.clone(), protocol: provider.protocol, images: card.images };
        if self.written_for.as_ref() != Some(&written_for) {
            *self = WrittenItems { written_for: Some(written_for), ..WrittenItems::default() };
        }
        let is_same = |(written, item): &(&WrittenItem, &Arc<Item>)| {
            Arc::ptr_eq(&written.item, item) || written.item.as_ref() == item.as_ref()
        };
        let same = self.items.iter().zip(items).take_while(is_same).count();
        self.bytes -= self.items.drain(same..).map(|gone| gone.bytes()).sum::<usize>();
        let new = items.iter().skip(same);
        self.items.extend(new.map(|item| WrittenItem { item: Arc::clone(item), fragments: write(item) }));
        self.bytes += self.items[same..].iter().map(WrittenItem::bytes).sum::<usize>();
        &self.items
    }

    /// The size of the JSON.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl WrittenItem {
    fn bytes(&self) -> usize {
        self.fragments.iter().map(|fragment| fragment.json.len()).sum()
    }
}

impl Fragment {
    pub(super) fn at(place: FragmentPlace) -> impl Fn(Value) -> Fragment {
        move |value| Fragment { place, json: value.to_string() }
    }

    /// Of an answer with nothing in it.
    pub(super) fn gap() -> Fragment {
        Fragment { place: FragmentPlace::Gap, json: String::new() }
    }

    /// A text without the quotes around it.
    pub(super) fn unquoted(&self) -> &str {
        let text = self.json.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        text.unwrap_or(&self.json)
    }
}

impl FragmentPlace {
    pub(super) fn is_of_user(self) -> bool {
        match self {
            FragmentPlace::UserText | FragmentPlace::UserBlock => true,
            FragmentPlace::AssistantBlock | FragmentPlace::Message | FragmentPlace::Gap => false,
        }
    }
}
