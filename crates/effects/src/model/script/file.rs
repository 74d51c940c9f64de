//! A script as its file says it. Parsed whole and strictly before anything of it plays: a fault names the file, the
//! line and the field.

use std::io::Read;
use std::path::{Path, PathBuf};

use abide_kernel::limits::{LINE_BYTES, TIMER_AHEAD_MAX_MS};
use abide_kernel::vocabulary::ProviderError;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::substitute;
use crate::limits;
use crate::model::ProviderFailure;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    #[serde(default)]
    pub rounds: Vec<Round>,
    #[serde(default)]
    pub when: Vec<When>,
    /// The main rounds start again once they are played out. Entries never do.
    #[serde(default, rename = "loop")]
    pub repeats: bool,
}

/// Rounds that a message sets off by what it says.
#[derive(Debug, Deserialize)]
#[serde(try_from = "WhenFields")]
pub(super) struct When {
    pub contains: String,
    pub rounds: Vec<Round>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "RoundFields")]
pub(super) struct Round {
    pub says: Says,
    pub delay_ms: u64,
}

#[derive(Debug)]
pub(super) enum Says {
    Reply { text: String, tools: Vec<Tool> },
    Error { error: ProviderError, retry_after_ms: Option<u64> },
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "ToolFields")]
pub(super) struct Tool {
    pub name: String,
    /// As written: what it leaves open is said right, and not yet filled in.
    pub input: Value,
}

impl Script {
    pub(super) async fn read(file: &Path) -> Result<Script, ProviderFailure> {
        let path = file.to_owned();
        let read = tokio::task::spawn_blocking(move || load(path)).await;
        let read = read.unwrap_or_else(|stopped| Err(stopped.to_string()));
        read.map_err(|fault| ProviderFailure::invalid(format!("{} {fault}", file.display())))
    }

    pub(super) fn when(&self, contains: &str) -> Option<&When> {
        self.when.iter().find(|when| when.contains == contains)
    }
}

fn load(path: PathBuf) -> Result<Script, String> {
    let cant = |error: std::io::Error| format!("can't be read: {error}");
    // Looked at before it is opened: opening a pipe that nobody writes to would never return.
    if !std::fs::metadata(&path).map_err(cant)?.is_file() {
        return Err("can't be read: it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(cant)?;
    file.take(limits::SCRIPT_BYTES + 1).read_to_end(&mut bytes).map_err(cant)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::SCRIPT_BYTES {
        return Err(format!("is too large for a script: at most {} bytes", limits::SCRIPT_BYTES));
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("is not a script: {error}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenFields {
    contains: String,
    rounds: Vec<Round>,
}

impl TryFrom<WhenFields> for When {
    type Error = String;

    fn try_from(WhenFields { contains, rounds }: WhenFields) -> Result<When, String> {
        // It names the entry in the carry, which is recorded with every round.
        if contains.len() > LINE_BYTES {
            return Err(format!("`contains` has {} bytes; at most {LINE_BYTES}", contains.len()));
        }
        Ok(When { contains, rounds })
    }
}

/// Both shapes of a round in one, because a fault in either should name the field, not say that no shape fits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoundFields {
    text: Option<String>,
    tools: Option<Vec<Tool>>,
    delay_ms: Option<u64>,
    error: Option<ProviderError>,
    retry_after_ms: Option<u64>,
}

impl TryFrom<RoundFields> for Round {
    type Error = String;

    fn try_from(fields: RoundFields) -> Result<Round, String> {
        let RoundFields { text, tools, delay_ms, error, retry_after_ms } = fields;
        let delay_ms = within("delay_ms", delay_ms, limits::SCRIPT_DELAY_MAX_MS)?.unwrap_or(0);
        let retry_after_ms = within("retry_after_ms", retry_after_ms, TIMER_AHEAD_MAX_MS)?;
        let says = match (error, text, tools) {
            (Some(error), None, None) => Says::Error { error, retry_after_ms },
            (Some(_), Some(_), _) => return Err("a round has `error` or `text`, not both".to_owned()),
            (Some(_), None, Some(_)) => return Err("a round has `error` or `tools`, not both".to_owned()),
            (None, ..) if retry_after_ms.is_some() => return Err("`retry_after_ms` goes with `error`".to_owned()),
            (None, text, tools) => Says::Reply { text: text.unwrap_or_default(), tools: tools.unwrap_or_default() },
        };
        Ok(Round { says, delay_ms })
    }
}

fn within(field: &str, value: Option<u64>, max: u64) -> Result<Option<u64>, String> {
    match value {
        Some(ms) if ms > max => Err(format!("`{field}` is {ms}; at most {max}")),
        value => Ok(value),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolFields {
    name: String,
    #[serde(default)]
    input: Map<String, Value>,
}

impl TryFrom<ToolFields> for Tool {
    type Error = String;

    fn try_from(ToolFields { name, input }: ToolFields) -> Result<Tool, String> {
        let input = Value::Object(input);
        substitute::check(&input)?;
        Ok(Tool { name, input })
    }
}
