//! A script as its file says it. Parsed whole and strictly before anything of it plays: a fault names the file, the
//! line and the field.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use abide_kernel::limits::{LINE_BYTES, TIMER_AHEAD_MAX_MS};
use abide_kernel::vocabulary::ProviderError;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::substitute;
use crate::limits;
use crate::model::ProviderFailure;
use crate::transient::is_transient;

#[derive(Debug)]
pub(super) struct Script {
    pub rounds: Vec<Round>,
    pub when: Vec<When>,
    /// The main rounds start again once they are played out. Entries never do.
    pub repeats: bool,
}

/// Rounds that a message sets off by what it says.
#[derive(Debug)]
pub(super) struct When {
    pub contains: String,
    pub rounds: Vec<Round>,
}

#[derive(Debug)]
pub(super) struct Round {
    pub says: RoundOutcome,
    pub delay_ms: u64,
}

#[derive(Debug)]
pub(super) enum RoundOutcome {
    Reply { text: String, tools: Vec<Tool> },
    Error { error: ProviderError, retry_after_ms: Option<u64> },
}

#[derive(Debug)]
pub(super) struct Tool {
    pub name: String,
    /// As written: what it leaves open is said right, and not yet filled in.
    pub input: Value,
}

impl Script {
    pub(super) async fn read(file: &Path) -> Result<Script, ProviderFailure> {
        let path = file.to_owned();
        let read = tokio::task::spawn_blocking(move || load_script(path)).await;
        let read = read.unwrap_or_else(|stopped| Err(Fault::Stays(stopped.to_string())));
        read.map_err(|fault| match fault {
            Fault::Stays(fault) => ProviderFailure::invalid(format!("{} {fault}", file.display())),
            Fault::Passes(fault) => ProviderFailure::system(format!("{} {fault}", file.display())),
        })
    }

    pub(super) fn find_entry(&self, contains: &str) -> Option<&When> {
        self.when.iter().find(|when| when.contains == contains)
    }
}

/// Why a file gives no script.
enum Fault {
    /// Until somebody changes the file.
    Stays(String),
    /// The machine is short of file descriptors, for example.
    Passes(String),
}

fn load_script(path: PathBuf) -> Result<Script, Fault> {
    let cant = |error: std::io::Error| {
        let kind = if is_transient(&error) { Fault::Passes } else { Fault::Stays };
        kind(format!("can't be read: {error}"))
    };
    // Looked at before it is opened: opening a pipe that nobody writes to would never return.
    if !std::fs::metadata(&path).map_err(cant)?.is_file() {
        return Err(Fault::Stays("can't be read: it is not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(cant)?;
    file.take(limits::SCRIPT_BYTES + 1).read_to_end(&mut bytes).map_err(cant)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::SCRIPT_BYTES {
        let most = limits::SCRIPT_BYTES;
        return Err(Fault::Stays(format!("is too large for a script: at most {most} bytes")));
    }
    serde_json::from_slice(&bytes).map_err(|error| Fault::Stays(format!("is not a script: {}", describe_fault(&error))))
}

/// Describes a fault and its place, without the file's content: a mistyped name may lead to a private file, and the
/// fault is told to models. Our own messages name fields and bounds only; of serde's, only the part about what was
/// expected is kept.
fn describe_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let quotes = ["invalid type: ", "invalid value: ", "invalid length ", "unknown field `", "unknown variant `"];
    let text = match quotes.iter().find(|quotes| text.starts_with(**quotes)) {
        None => text.to_owned(),
        Some(quotes) => {
            let what = quotes.trim_end_matches([' ', ':', '`']);
            // The last one is ours, whatever the file holds.
            text.rsplit_once(", expected ")
                .map_or_else(|| what.to_owned(), |(_, wanted)| format!("{what}, expected {wanted}"))
        }
    };
    format!("{text}{place}")
}

/// The written form is an object of known fields, and the meaning has more rules: each type here is read as the former,
/// and checked as it becomes the latter.
macro_rules! read_as {
    ($($meant:ty: $written:ty, $what:literal;)*) => {
        $(
            impl<'de> Deserialize<'de> for $meant {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let written: $written = deserializer.deserialize_map(Object { what: $what, is: PhantomData })?;
                    Self::try_from(written).map_err(serde::de::Error::custom)
                }
            }
        )*
    };
}

read_as! {
    Script: ScriptFields, "a script: an object with rounds";
    When: WhenFields, "an entry: an object with contains and rounds";
    Round: RoundFields, "a round: an object with text, tools or an error";
    Tool: ToolFields, "a tool: an object with a name and an input";
}

/// Takes an object and nothing else. Left to itself, serde takes a list for the fields in their order too.
struct Object<T> {
    what: &'static str,
    is: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFields {
    #[serde(default)]
    rounds: Vec<Round>,
    #[serde(default)]
    when: Vec<When>,
    #[serde(default)]
    r#loop: bool,
}

impl From<ScriptFields> for Script {
    fn from(ScriptFields { rounds, when, r#loop }: ScriptFields) -> Script {
        Script { rounds, when, repeats: r#loop }
    }
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
            return Err(format!("`contains` has more than {LINE_BYTES} bytes"));
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
        let delay_ms = require_at_most("delay_ms", delay_ms, limits::SCRIPT_DELAY_MAX_MS)?.unwrap_or(0);
        let retry_after_ms = require_at_most("retry_after_ms", retry_after_ms, TIMER_AHEAD_MAX_MS)?;
        let says = match (error, text, tools) {
            (Some(error), None, None) => RoundOutcome::Error { error, retry_after_ms },
            (Some(_), Some(_), _) => return Err("a round has `error` or `text`, not both".to_owned()),
            (Some(_), None, Some(_)) => return Err("a round has `error` or `tools`, not both".to_owned()),
            (None, ..) if retry_after_ms.is_some() => return Err("`retry_after_ms` goes with `error`".to_owned()),
            (None, text, tools) => {
                RoundOutcome::Reply { text: text.unwrap_or_default(), tools: tools.unwrap_or_default() }
            }
        };
        Ok(Round { says, delay_ms })
    }
}

fn require_at_most(field: &str, value: Option<u64>, max: u64) -> Result<Option<u64>, String> {
    match value {
        Some(ms) if ms > max => Err(format!("`{field}` is more than {max}")),
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
        substitute::validate_placeholders(&input)?;
        Ok(Tool { name, input })
    }
}
