//! The fields of one input, read strictly: an unknown one, a missing one, one of the wrong kind or out of its range is a
//! refusal that names the field and says what is right.
//!
//! An optional field that is `null` counts as left out, because some providers make models name every field.

use std::ops::RangeInclusive;

use abide_kernel::id::TaskId;
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::WorkspacePath;
use serde_json::{Map, Value};

use crate::limits;
use crate::nearest::nearest;

pub(super) struct Fields<'a> {
    /// Where it is: a tool's name, or a place inside its input such as `todo[0]`.
    what: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Holds `input` against the names in `schema`. What each field must be is for its reader to say.
    pub(super) fn of(
        what: &'a str,
        input: &'a Value,
        schema: &Value,
        instead: &[(&str, &str)],
    ) -> Result<Fields<'a>, Refusal> {
        let known: Vec<&str> =
            schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Value::Object(map) = input else {
            let message = format!("the input of {what} is {}, not an object", kind(input));
            return Err(invalid(message, takes(&known, &required)));
        };
        if let Some(unknown) = map.keys().find(|name| !known.contains(&name.as_str())) {
            let message = format!("{what} has no field {}", quoted(unknown));
            let instead = instead.iter().find(|(name, _)| name == unknown).map(|(_, hint)| (*hint).to_owned());
            let meant = || nearest(unknown, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let hint = match instead.or_else(meant) {
                Some(hint) => format!("{hint} {}", takes(&known, &required)),
                None => takes(&known, &required),
            };
            return Err(invalid(message, hint));
        }
        let fields = Fields { what, map };
        match required.iter().find(|name| fields.get(name).is_none()) {
            Some(missing) => Err(invalid(format!("{what} lacks `{missing}`"), takes(&known, &required))),
            None => Ok(fields),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether it was said at all, be it `null`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// A text that must be there.
    pub(super) fn text(&self, name: &str) -> Result<String, Refusal> {
        self.required(name, self.optional_text(name)?)
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(name, other, "give a text")),
        }
    }

    /// A whole number of milliseconds within its range.
    pub(super) fn ms(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|ms| range.contains(ms)) {
            Some(ms) => Ok(Some(ms)),
            None => {
                let hint = format!("give a whole number of milliseconds from {} to {}", range.start(), range.end());
                Err(self.wrong(name, value, &hint))
            }
        }
    }

    /// A whole number within its range.
    pub(super) fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let hint = format!("give a whole number from {} to {}", range.start(), range.end());
                Err(self.wrong(name, value, &hint))
            }
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.wrong(name, other, "give true or false")),
        }
    }

    /// The id of a task. Files are found by it, so it is held against how ids are spelled.
    pub(super) fn task(&self, name: &str) -> Result<TaskId, Refusal> {
        let id = self.text(name)?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match id.strip_prefix("task_").is_some_and(|rest| rest.len() <= 64 && rest.chars().all(plain)) {
            true => Ok(TaskId::new(id)),
            false => Err(self.wrong(name, &Value::from(id), "give a task's id as ExecCommand or TaskList returned it")),
        }
    }

    /// The path of a file in the workspace; it must be given.
    pub(super) fn path(&self, name: &str) -> Result<WorkspacePath, Refusal> {
        let path = self.required(name, self.optional_path(name)?)?;
        match self.get(name).filter(|value| value.as_str().is_some_and(|text| text.ends_with('/'))) {
            Some(folder) => Err(self.wrong(name, folder, "that names a folder: name a file in it")),
            None => Ok(path),
        }
    }

    pub(super) fn optional_path(&self, name: &str) -> Result<Option<WorkspacePath>, Refusal> {
        let Some(text) = self.optional_text(name)? else { return Ok(None) };
        let path = WorkspacePath::new(&text);
        path.map(Some).map_err(|hint| self.wrong(name, &Value::from(text), hint))
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[T],
        spell: impl Fn(T) -> &'static str,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let found = value.as_str().and_then(|text| words.iter().copied().find(|&word| spell(word) == text));
        if found.is_some() {
            return Ok(found);
        }
        let spelled: Vec<&str> = words.iter().map(|&word| spell(word)).collect();
        let near = value.as_str().and_then(|text| nearest(text, spelled.iter().copied()));
        let meant = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        Err(self.wrong(name, value, &format!("{meant}give one of: {}", spelled.join(", "))))
    }

    pub(super) fn list(&self, name: &str, hint: &str) -> Result<Option<&'a [Value]>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(self.wrong(name, other, hint)),
        }
    }

    /// The schema asks for it, so `of` has refused an input without it; said again here, not assumed.
    pub(super) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Refusal> {
        value.ok_or_else(|| invalid(format!("{} lacks `{name}`", self.what), format!("say `{name}`")))
    }

    pub(super) fn wrong(&self, name: &str, value: &Value, hint: &str) -> Refusal {
        invalid(format!("`{name}` of {} is {}", self.what, kind(value)), hint)
    }
}

pub(super) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::InvalidInput, message).with_hint(hint)
}

/// What somebody else wrote, short and on one line.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(limits::QUOTED_CHARS).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

fn takes(known: &[&str], required: &[&str]) -> String {
    let optional: Vec<&str> = known.iter().filter(|name| !required.contains(name)).copied().collect();
    match (required.is_empty(), optional.is_empty()) {
        (true, true) => "give an empty object".to_owned(),
        (true, false) => format!("give an object; it may have: {}", optional.join(", ")),
        (false, true) => format!("give: {}", required.join(", ")),
        (false, false) => format!("give: {}; optional: {}", required.join(", "), optional.join(", ")),
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
