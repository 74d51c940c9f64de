//! The parts of a request that are the same in every protocol: ids and names within the letters that providers accept,
//! inputs as objects, and the tools at the end of a request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use abide_kernel::id::CallId;
use abide_kernel::prompt::Image;
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

/// The bytes of a request: its fields, and at its end the tools, as they were written before.
pub(super) fn request<'a>(fields: &Value, tools: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut text = serde_json::to_string(fields).unwrap_or_default();
    let mut before = r#","tools":["#;
    // The brace at the end of the fields.
    text.pop();
    for tool in tools {
        text.push_str(before);
        text.push_str(&tool);
        before = ",";
    }
    text.push_str(if before == "," { "]}" } else { "}" });
    text
}
