//! The parts of a request that are the same in every protocol: ids and names within the letters that providers accept,
//! inputs as objects, the tools,
//! and the fields of a request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use abide_kernel::id::CallId;
use abide_kernel::prompt::Image;
use serde::Serialize;
use serde_json::{Value, json};

use crate::tools::{self, Tool};

/// The longest name of a tool or a call that all of them take.
const NAME_BYTES: usize = 64;

/// Ours, so that a conversation can go on with another provider. One that a provider would not take goes by its digest.
pub(super) fn call_id(call_id: &CallId) -> Cow<'_, str> {
    let id = call_id.as_str();
    if is_plain(id) {
        return Cow::Borrowed(id);
    }
    let digest = blake3::hash(id.as_bytes()).to_hex();
    Cow::Owned(format!("call_{}", &digest[..32]))
}

/// As the model wrote it, which need not be the name of any tool: a request that repeats it has to be taken even so.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().map(plain).take(NAME_BYTES).collect();
    Cow::Owned(if name.is_empty() { "_".to_owned() } else { name })
}

pub(super) fn input(input: &Value) -> Value {
    if input.is_object() { input.clone() } else { json!({}) }
}

/// In place of a picture, for a model that can't look at any.
pub(super) fn unseen(image: &Image) -> String {
    format!("(a picture, {}, which this model can't look at)", image.media_type)
}

pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.data)
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(plain)
}

/// The tools in one protocol's spelling. They are most of a request's bytes and the same in every one, so they are
/// written once.
pub(super) struct Tools {
    spell: fn(&Tool) -> Value,
    written: OnceLock<BTreeMap<&'static str, String>>,
}

impl Tools {
    pub(super) const fn spelled(spell: fn(&Tool) -> Value) -> Tools {
        Tools { spell, written: OnceLock::new() }
    }

    pub(super) fn write(&self, tool: &Tool) -> &str {
        let all = || tools::ALL.iter().map(|tool| (tool.name, (self.spell)(tool).to_string())).collect();
        self.written.get_or_init(all).get(tool.name).map_or("null", String::as_str)
    }
}

/// The bytes of a request, field by field. Fields keep their order: a provider's cache compares bytes.
pub(super) struct Body(String);

/// The approximate bytes of a body besides the conversation: the tools take most of them.
const FIXED_BYTES: usize = 40 << 10;

impl Body {
    /// With room for so much of a conversation.
    pub(super) fn new(conversation_bytes: usize) -> Body {
        Body(String::with_capacity(FIXED_BYTES + conversation_bytes))
    }

    pub(super) fn field(&mut self, name: &str, value: &impl Serialize) {
        let json = serde_json::to_string(value).unwrap_or_default();
        self.value(name).push_str(&json);
    }

    /// A list of what is JSON already.
    pub(super) fn list<T: AsRef<str>>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        let text = self.value(name);
        text.push('[');
        push_joined(text, ",", values);
        text.push(']');
    }

    /// The text that the value of a field is to be added to.
    pub(super) fn value(&mut self, name: &str) -> &mut String {
        self.0.push_str(if self.0.is_empty() { "{\"" } else { ",\"" });
        self.0.push_str(name);
        self.0.push_str("\":");
        &mut self.0
    }

    pub(super) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub(super) fn push_joined<T: AsRef<str>>(text: &mut String, between: &str, values: impl IntoIterator<Item = T>) {
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            text.push_str(between);
        }
        text.push_str(value.as_ref());
    }
}
