//! Which settings there are, what each may be, and what it is where nobody says.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use abide_daemon::models::ECHO;
use abide_daemon::notify::NoticeKind;
use abide_daemon::text::dollars;
use abide_daemon::workspace_roots::PERSON;
use abide_effects::model::cards::{CardValue, micro_usd, usd};
use abide_effects::model::providers::Kind;
use abide_effects::sandbox::Mode;
use abide_effects::web::Url;
use abide_engine::TREE_AGENTS;
use abide_kernel::agent::config::AgentLimits;
use serde_json::json;

use crate::credentials;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Listen,
    Store,
    Model,
    Fallback,
    Log,
    Sandbox,
    SandboxMemory,
    SandboxScratch,
    DiskReserve,
    ShutdownGraceMs,
    NotifyCommand,
    NotifyWebhook,
    NotifySecretEnv,
    NotifyOn,
    PublicUrl,
    HookRate,
    WorkspaceRoots,
    SelfTurnsPerHour,
    RoundsPerTurn,
    BudgetDailyUsd,
    TreeAgents,
    AgentEnv,
    AgentSecrets,
    AgentGitCredentials,
    AgentSshAgent,
    AgentKnownHosts,
    AgentForChildren,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// In the home.
    Sqlite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Listen(SocketAddr),
    Store(Store),
    Model(String),
    Fallback(Vec<String>),
    Log(Log),
    Sandbox(Mode),
    /// Nothing: the daemon finds out what fits.
    Bytes(Option<u64>),
    ShutdownGraceMs(u64),
    /// A text that need not be there.
    Text(Option<String>),
    NotifyOn(Vec<NoticeKind>),
    /// Empty where there is none.
    PublicUrl(String),
    HookRate(u32),
    /// Zero is none.
    Limit(u32),
    /// Millionths of a dollar; zero is no limit.
    MicroUsd(u64),
    /// Each absolute, or below the home folder of the daemon's user.
    Folders(Vec<String>),
    /// Texts without commas.
    Words(Vec<String>),
    Switch(bool),
    /// Of a provider.
    Kind(Kind),
    /// Of a model.
    Card(CardValue),
}

const PORT: u16 = 4173;
const GRACE_MS: u64 = 5_000;
/// Longer than this, and whoever stops the daemon takes it for stuck.
const GRACE_MAX_MS: u64 = 600_000;
/// Less than this, and hardly a program starts.
const MEMORY_LEAST_BYTES: u64 = 64 << 20;
const SCRATCH_LEAST_BYTES: u64 = 1 << 20;
const SCRATCH_BYTES: u64 = 1 << 30;
const BYTES_PATTERN: &str = "^(auto|[0-9]+ *([KMGT]i?B|B)?)$";
/// From the largest to the smallest; those that count by thousands are understood and not written.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];
const HOOK_RATE: u32 = 50;
const HOOK_RATE_MAX: u32 = 1_000_000;
const LIMIT_MAX: u32 = 1_000_000;
/// Nobody waits for more than this many models to fail one after the other.
const FALLBACK_MAX: usize = 8;

impl Key {
    pub const ALL: [Key; 27] = [
        Key::Listen,
        Key::Store,
        Key::Model,
        Key::Fallback,
        Key::Log,
        Key::Sandbox,
        Key::SandboxMemory,
        Key::SandboxScratch,
        Key::DiskReserve,
        Key::ShutdownGraceMs,
        Key::NotifyCommand,
        Key::NotifyWebhook,
        Key::NotifySecretEnv,
        Key::NotifyOn,
        Key::PublicUrl,
        Key::HookRate,
        Key::WorkspaceRoots,
        Key::SelfTurnsPerHour,
        Key::RoundsPerTurn,
        Key::BudgetDailyUsd,
        Key::TreeAgents,
        Key::AgentEnv,
        Key::AgentSecrets,
        Key::AgentGitCredentials,
        Key::AgentSshAgent,
        Key::AgentKnownHosts,
        Key::AgentForChildren,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Key::Listen => "listen",
            Key::Store => "store",
            Key::Model => "model",
            Key::Fallback => "fallback",
            Key::Log => "log",
            Key::Sandbox => "sandbox",
            Key::SandboxMemory => "sandbox.memory",
            Key::SandboxScratch => "sandbox.scratch",
            Key::DiskReserve => "disk_reserve",
            Key::ShutdownGraceMs => "shutdown_grace_ms",
            Key::NotifyCommand => "notify.command",
            Key::NotifyWebhook => "notify.webhook",
            Key::NotifySecretEnv => "notify.secret_env",
            Key::NotifyOn => "notify.on",
            Key::PublicUrl => "public_url",
            Key::HookRate => "hook_rate",
            Key::WorkspaceRoots => "workspace_roots",
            Key::SelfTurnsPerHour => "self_turns_per_hour",
            Key::RoundsPerTurn => "rounds_per_turn",
            Key::BudgetDailyUsd => "budget.daily_usd",
            Key::TreeAgents => "tree_agents",
            Key::AgentEnv => "agent.env",
            Key::AgentSecrets => "agent.secrets",
            Key::AgentGitCredentials => "agent.git_credentials",
            Key::AgentSshAgent => "agent.ssh_agent",
            Key::AgentKnownHosts => "agent.known_hosts",
            Key::AgentForChildren => "agent.for_children",
        }
    }

    pub fn environment(self) -> Option<&'static str> {
        match self {
            Key::Listen => Some("ABIDE_LISTEN"),
            Key::Store => Some("ABIDE_STORE"),
            Key::Model => Some("ABIDE_MODEL"),
            Key::Fallback => Some("ABIDE_FALLBACK"),
            Key::Log => Some("ABIDE_LOG"),
            Key::Sandbox => Some("ABIDE_SANDBOX"),
            Key::PublicUrl => Some("ABIDE_PUBLIC_URL"),
            Key::WorkspaceRoots => Some("ABIDE_WORKSPACE_ROOTS"),
            Key::ShutdownGraceMs
            | Key::SandboxMemory
            | Key::SandboxScratch
            | Key::DiskReserve
            | Key::HookRate
            | Key::SelfTurnsPerHour
            | Key::RoundsPerTurn
            | Key::BudgetDailyUsd
            | Key::TreeAgents
            | Key::NotifyCommand
            | Key::NotifyWebhook
            | Key::NotifySecretEnv
            | Key::NotifyOn
            | Key::AgentEnv
            | Key::AgentSecrets
            | Key::AgentGitCredentials
            | Key::AgentSshAgent
            | Key::AgentKnownHosts
            | Key::AgentForChildren => None,
        }
    }

    pub fn default(self) -> Value {
        match self {
            Key::Listen => Value::Listen(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))),
            Key::Store => Value::Store(Store::Sqlite),
            Key::Model => Value::Model(ECHO.to_owned()),
            Key::Fallback => Value::Fallback(Vec::new()),
            Key::Log => Value::Log(Log::Info),
            Key::Sandbox => Value::Sandbox(Mode::Auto),
            Key::SandboxMemory | Key::DiskReserve => Value::Bytes(None),
            Key::SandboxScratch => Value::Bytes(Some(SCRATCH_BYTES)),
            Key::ShutdownGraceMs => Value::ShutdownGraceMs(GRACE_MS),
            Key::NotifyCommand | Key::NotifyWebhook | Key::NotifySecretEnv | Key::AgentKnownHosts => Value::Text(None),
            Key::NotifyOn => Value::NotifyOn(NoticeKind::USUAL.to_vec()),
            Key::PublicUrl => Value::PublicUrl(String::new()),
            Key::HookRate => Value::HookRate(HOOK_RATE),
            Key::WorkspaceRoots => Value::Folders(vec![PERSON.to_owned()]),
            Key::SelfTurnsPerHour => Value::Limit(AgentLimits::default().self_turns_per_hour),
            Key::RoundsPerTurn => Value::Limit(AgentLimits::default().rounds_per_turn),
            Key::BudgetDailyUsd => Value::MicroUsd(0),
            Key::TreeAgents => Value::Limit(TREE_AGENTS),
            Key::AgentEnv | Key::AgentSecrets | Key::AgentGitCredentials => Value::Words(Vec::new()),
            Key::AgentSshAgent | Key::AgentForChildren => Value::Switch(false),
        }
    }

    /// A value as it is written on a command line.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Key::Listen => {
                let wrong = |_| format!("{text:?} is no address to listen on: write IP:PORT, such as 127.0.0.1:{PORT}");
                text.parse().map(Value::Listen).map_err(wrong)
            }
            Key::Store => store(text).map(Value::Store),
            Key::Model => model(text).map(Value::Model),
            Key::Fallback => fallback(text).map(Value::Fallback),
            Key::Log => Log::parse(text).map(Value::Log),
            Key::Sandbox => sandbox(text).map(Value::Sandbox),
            Key::SandboxMemory => bytes(text, MEMORY_LEAST_BYTES).map(Value::Bytes),
            Key::DiskReserve => bytes(text, 0).map(Value::Bytes),
            Key::SandboxScratch => match bytes(text, SCRATCH_LEAST_BYTES)? {
                None => Ok(self.default()),
                some => Ok(Value::Bytes(some)),
            },
            Key::ShutdownGraceMs => {
                let number = text.parse().ok().filter(|ms| *ms <= GRACE_MAX_MS).map(Value::ShutdownGraceMs);
                number.ok_or_else(|| format!("{text:?} is no number of milliseconds from 0 to {GRACE_MAX_MS}"))
            }
            Key::NotifyCommand => some(text, "say what to run, such as notify-send \"$ABIDE_TEXT\""),
            Key::NotifyWebhook => {
                Url::parse(text).map_err(|hint| format!("{text:?} is no address to send to: {hint}"))?;
                some(text, "give an address")
            }
            Key::NotifySecretEnv => some(text, "name the environment variable that holds the webhook's secret"),
            Key::NotifyOn => on(text).map(Value::NotifyOn),
            Key::PublicUrl => public_url(text).map(Value::PublicUrl),
            Key::WorkspaceRoots => folders(text).map(Value::Folders),
            Key::BudgetDailyUsd => {
                micro_usd(text.strip_prefix('$').unwrap_or(text)).map(Value::MicroUsd).ok_or_else(|| {
                    format!("{text:?} is no amount in dollars: write one such as 20 or 7.50; 0 is no limit")
                })
            }
            Key::SelfTurnsPerHour | Key::RoundsPerTurn | Key::TreeAgents => limit(text),
            Key::AgentEnv => words(text, |word| credentials::variable(word).map(drop)),
            Key::AgentSecrets => words(text, credentials::secret),
            Key::AgentGitCredentials => words(text, |word| credentials::git_credential(word).map(drop)),
            Key::AgentSshAgent | Key::AgentForChildren => {
                text.parse().map(Value::Switch).map_err(|_| format!("{text:?} is neither true nor false"))
            }
            Key::AgentKnownHosts => match Path::new(text).is_absolute() {
                true => Ok(Value::Text(Some(text.to_owned()))),
                false => Err(format!("{text:?} is no absolute path of a file with host keys")),
            },
            Key::HookRate => {
                let number = text.parse().ok().filter(|rate| (1..=HOOK_RATE_MAX).contains(rate)).map(Value::HookRate);
                number.ok_or_else(|| format!("{text:?} is no number of deliveries from 1 to {HOOK_RATE_MAX}"))
            }
        }
    }

    /// How a file writes it.
    pub fn written(self) -> Written {
        match self {
            Key::BudgetDailyUsd => Written::Decimal,
            Key::ShutdownGraceMs | Key::HookRate | Key::SelfTurnsPerHour | Key::RoundsPerTurn | Key::TreeAgents => {
                Written::Number
            }
            Key::NotifyOn
            | Key::Fallback
            | Key::WorkspaceRoots
            | Key::AgentEnv
            | Key::AgentSecrets
            | Key::AgentGitCredentials => Written::List,
            Key::AgentSshAgent | Key::AgentForChildren => Written::Switch,
            Key::Listen
            | Key::Store
            | Key::Model
            | Key::Log
            | Key::Sandbox
            | Key::SandboxMemory
            | Key::SandboxScratch
            | Key::DiskReserve
            | Key::PublicUrl
            | Key::NotifyCommand
            | Key::NotifyWebhook
            | Key::NotifySecretEnv
            | Key::AgentKnownHosts => Written::Text,
        }
    }

    /// The table of the file that it is in, and its name there.
    pub fn place(self) -> (Option<&'static str>, &'static str) {
        match self.name().split_once('.') {
            Some((table, name)) => (Some(table), name),
            None => (None, self.name()),
        }
    }

    pub fn schema(self) -> serde_json::Value {
        let about = match self {
            Key::Listen => json!({
                "type": "string", "description": "Where the daemon listens: IP:PORT; port 0 takes a free one",
            }),
            Key::Store => json!({
                "type": "string", "enum": ["sqlite"], "description": "Where the ledger is kept: sqlite, in the home",
            }),
            Key::Model => json!({
                "type": "string", "pattern": "^[^/]+/.+$",
                "description": "What agents think with unless they say otherwise: PROVIDER/MODEL",
            }),
            Key::Fallback => json!({
                "type": "array", "items": { "type": "string", "pattern": "^[^/]+/.+$" }, "maxItems": FALLBACK_MAX,
                "description": "What is asked instead, in this order, where a model can't answer",
            }),
            Key::Log => json!({
                "type": "string", "enum": Log::ALL.map(|log| log.to_string()),
                "description": "How much the daemon writes to its log",
            }),
            Key::Sandbox => json!({
                "type": "string", "enum": MODES.map(|(name, _)| name),
                "description": "What keeps commands where they belong: auto takes the strongest that works here, required runs none without one, off confines nothing",
            }),
            Key::SandboxMemory => json!({
                "type": "string", "pattern": BYTES_PATTERN,
                "description": "Memory that all commands of an agent may use together, such as 4GiB; auto is half of the machine's",
            }),
            Key::SandboxScratch => json!({
                "type": "string", "pattern": BYTES_PATTERN,
                "description": "What the private folders in memory of one command may hold together",
            }),
            Key::DiskReserve => json!({
                "type": "string", "pattern": BYTES_PATTERN,
                "description": "What stays free on a disk: below it the commands that write the most are ended, and their agents wait; auto is 512MiB, or 3 % of a smaller disk",
            }),
            Key::ShutdownGraceMs => json!({
                "type": "integer", "minimum": 0, "maximum": GRACE_MAX_MS,
                "description": "How long running turns may take to come to a safe point when the daemon stops",
            }),
            Key::NotifyCommand => json!({
                "type": "string", "description": "Run by the shell for each notification: JSON on its input, ABIDE_* in its environment",
            }),
            Key::NotifyWebhook => json!({
                "type": "string", "description": "Where each notification is posted as JSON",
            }),
            Key::NotifySecretEnv => json!({
                "type": "string",
                "description": "The environment variable that holds the webhook's secret (whsec_…), by which it is signed",
            }),
            Key::NotifyOn => json!({
                "type": "array", "items": { "type": "string", "enum": NoticeKind::ALL.map(NoticeKind::as_str) },
                "description": "What is told",
            }),
            Key::PublicUrl => json!({
                "type": "string", "pattern": "^(https?://[^/]+(/.*)?)?$",
                "description": "Where the outside reaches the URLs of triggers, through a proxy or a tunnel; empty: where the daemon listens",
            }),
            Key::HookRate => json!({
                "type": "integer", "minimum": 1, "maximum": HOOK_RATE_MAX,
                "description": "Deliveries that each trigger takes in a second; ten times as many at once",
            }),
            Key::WorkspaceRoots => json!({
                "type": "array", "items": { "type": "string", "pattern": "^(/|~$|~/)" },
                "description": "The folders below which agents may work; ~ is the home folder of the daemon's user. An admin's token may go beyond them",
            }),
            Key::SelfTurnsPerHour => json!({
                "type": "integer", "minimum": 0, "maximum": LIMIT_MAX,
                "description": "Turns in an hour that an agent may cause itself, by its own timers, tasks and messages; more of them wait. 0 is no limit",
            }),
            Key::RoundsPerTurn => json!({
                "type": "integer", "minimum": 0, "maximum": LIMIT_MAX,
                "description": "Model rounds of one turn; then it ends, and the operator is asked. 0 is no limit",
            }),
            Key::BudgetDailyUsd => json!({
                "type": "number", "minimum": 0,
                "description": "Dollars that all agents together may spend on models in a day (UTC); then no model is called until midnight. 0 is no limit",
            }),
            Key::TreeAgents => json!({
                "type": "integer", "minimum": 0, "maximum": LIMIT_MAX,
                "description": "Agents that an agent of yours may lead to at the same time: its children, theirs, and the agents that its models made under names of their own. 0 is no limit",
            }),
            Key::AgentEnv => json!({
                "type": "array", "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*=[^,]*$" },
                "description": "NAME=VALUE: variables that the commands of every agent get that a person makes from now on; not for secrets",
            }),
            Key::AgentSecrets => json!({
                "type": "array", "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
                "description": "Names of secrets (abide secret set) that they get in variables of the same names",
            }),
            Key::AgentGitCredentials => json!({
                "type": "array", "items": { "type": "string", "pattern": "^[^=,]+=[A-Za-z_][A-Za-z0-9_]*$" },
                "description": "HOST=NAME: the secret that their git answers with when this host asks for a password over https",
            }),
            Key::AgentSshAgent => json!({
                "type": "boolean",
                "description": "Whether their ssh may sign with the keys of the daemon's ssh agent; needs bubblewrap",
            }),
            Key::AgentKnownHosts => json!({
                "type": "string", "description": "The file of host keys that their ssh accepts, read when the daemon starts",
            }),
            Key::AgentForChildren => json!({
                "type": "boolean", "description": "Whether their supervised children get the same",
            }),
        };
        let mut about = about;
        about["default"] = self.default().json();
        about
    }
}

impl Value {
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::ShutdownGraceMs(ms) => json!(ms),
            Value::HookRate(rate) | Value::Limit(rate) => json!(rate),
            Value::Text(text) => json!(text),
            Value::NotifyOn(on) => json!(on),
            Value::Fallback(models) => json!(models),
            Value::Folders(words) | Value::Words(words) => json!(words),
            Value::Switch(on) => json!(on),
            Value::Card(CardValue::Tokens(tokens)) => json!(tokens),
            Value::Card(CardValue::Switch(on)) => json!(on),
            Value::MicroUsd(micro) | Value::Card(CardValue::MicroUsd(micro)) => json!(dollars(*micro)),
            Value::Kind(_)
            | Value::Listen(_)
            | Value::Store(_)
            | Value::Model(_)
            | Value::Log(_)
            | Value::Sandbox(_)
            | Value::Bytes(_)
            | Value::PublicUrl(_) => json!(self.to_string()),
        }
    }

    pub fn listen(self) -> Option<SocketAddr> {
        if let Value::Listen(address) = self { Some(address) } else { None }
    }

    pub fn store(self) -> Option<Store> {
        if let Value::Store(store) = self { Some(store) } else { None }
    }

    pub fn model(self) -> Option<String> {
        if let Value::Model(model) = self { Some(model) } else { None }
    }

    /// The models that it names.
    pub fn models(&self) -> &[String] {
        match self {
            Value::Model(model) => std::slice::from_ref(model),
            Value::Fallback(models) => models,
            Value::Listen(_)
            | Value::Store(_)
            | Value::Log(_)
            | Value::Sandbox(_)
            | Value::Bytes(_)
            | Value::ShutdownGraceMs(_)
            | Value::Text(_)
            | Value::NotifyOn(_)
            | Value::PublicUrl(_)
            | Value::HookRate(_)
            | Value::Limit(_)
            | Value::MicroUsd(_)
            | Value::Folders(_)
            | Value::Words(_)
            | Value::Switch(_)
            | Value::Kind(_)
            | Value::Card(_) => &[],
        }
    }

    pub fn fallback(self) -> Option<Vec<String>> {
        if let Value::Fallback(models) = self { Some(models) } else { None }
    }

    pub fn log(self) -> Option<Log> {
        if let Value::Log(log) = self { Some(log) } else { None }
    }

    pub fn sandbox(self) -> Option<Mode> {
        if let Value::Sandbox(mode) = self { Some(mode) } else { None }
    }

    pub fn bytes(self) -> Option<Option<u64>> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    pub fn text(self) -> Option<Option<String>> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub fn notify_on(self) -> Option<Vec<NoticeKind>> {
        if let Value::NotifyOn(on) = self { Some(on) } else { None }
    }

    pub fn public_url(self) -> Option<String> {
        if let Value::PublicUrl(url) = self { Some(url) } else { None }
    }

    pub fn hook_rate(self) -> Option<u32> {
        if let Value::HookRate(rate) = self { Some(rate) } else { None }
    }

    pub fn limit(self) -> Option<u32> {
        if let Value::Limit(limit) = self { Some(limit) } else { None }
    }

    pub fn micro_usd(self) -> Option<u64> {
        if let Value::MicroUsd(micro) = self { Some(micro) } else { None }
    }

    pub fn folders(self) -> Option<Vec<String>> {
        if let Value::Folders(folders) = self { Some(folders) } else { None }
    }

    pub fn words(self) -> Option<Vec<String>> {
        if let Value::Words(words) = self { Some(words) } else { None }
    }

    pub fn switch(self) -> Option<bool> {
        if let Value::Switch(on) = self { Some(on) } else { None }
    }

    pub fn shutdown_grace_ms(self) -> Option<u64> {
        if let Value::ShutdownGraceMs(ms) = self { Some(ms) } else { None }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Listen(address) => write!(f, "{address}"),
            Value::Store(Store::Sqlite) => f.write_str("sqlite"),
            Value::Model(model) => f.write_str(model),
            Value::Log(log) => write!(f, "{log}"),
            Value::Sandbox(mode) => f.write_str(mode.as_str()),
            Value::Bytes(None) => f.write_str("auto"),
            Value::Bytes(Some(bytes)) => f.write_str(&size(*bytes)),
            Value::ShutdownGraceMs(ms) => write!(f, "{ms}"),
            Value::Text(text) => f.write_str(text.as_deref().unwrap_or("none")),
            Value::NotifyOn(on) => f.write_str(&on.iter().map(|on| on.as_str()).collect::<Vec<_>>().join(",")),
            Value::PublicUrl(url) => f.write_str(url),
            Value::HookRate(rate) | Value::Limit(rate) => write!(f, "{rate}"),
            Value::Fallback(models) if models.is_empty() => f.write_str("none"),
            Value::Fallback(models) => f.write_str(&models.join(",")),
            Value::Folders(words) | Value::Words(words) if words.is_empty() => f.write_str("none"),
            Value::Folders(words) | Value::Words(words) => f.write_str(&words.join(",")),
            Value::Switch(on) => write!(f, "{on}"),
            Value::Kind(kind) => f.write_str(kind.as_str()),
            Value::Card(CardValue::Tokens(tokens)) => write!(f, "{tokens}"),
            Value::Card(CardValue::Switch(on)) => write!(f, "{on}"),
            Value::MicroUsd(0) => f.write_str("0"),
            Value::MicroUsd(micro) | Value::Card(CardValue::MicroUsd(micro)) => f.write_str(&usd(*micro)),
        }
    }
}

impl Log {
    pub const ALL: [Log; 5] = [Log::Error, Log::Warn, Log::Info, Log::Debug, Log::Trace];

    fn parse(text: &str) -> Result<Log, String> {
        let known = Log::ALL.into_iter().find(|log| log.to_string() == text);
        known.ok_or_else(|| format!("{text:?} is no level: it takes error, warn, info, debug or trace"))
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Log::Error => "error",
            Log::Warn => "warn",
            Log::Info => "info",
            Log::Debug => "debug",
            Log::Trace => "trace",
        })
    }
}

/// How a value stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Number,
    Decimal,
    Switch,
    Text,
    List,
}

fn some(text: &str, hint: &str) -> Result<Value, String> {
    if text.trim().is_empty() { Err(format!("it is empty: {hint}")) } else { Ok(Value::Text(Some(text.to_owned()))) }
}

/// Divided by commas; nothing at all is a list, too.
fn on(text: &str) -> Result<Vec<NoticeKind>, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let known = |word: &str| {
        let found = NoticeKind::ALL.into_iter().find(|on| on.as_str() == word);
        found.ok_or_else(|| {
            format!(
                "{word:?} is nothing to be told of: it takes {}",
                NoticeKind::ALL.map(NoticeKind::as_str).join(", ")
            )
        })
    };
    words.map(known).collect()
}

fn limit(text: &str) -> Result<Value, String> {
    let number = text.parse().ok().filter(|limit| *limit <= LIMIT_MAX).map(Value::Limit);
    number.ok_or_else(|| format!("{text:?} is no number from 0, which is no limit, to {LIMIT_MAX}"))
}

const MODES: [(&str, Mode); 3] = [("auto", Mode::Auto), ("required", Mode::Required), ("off", Mode::Off)];

fn sandbox(text: &str) -> Result<Mode, String> {
    let known = MODES.into_iter().find(|(name, _)| *name == text).map(|(_, mode)| mode);
    known.ok_or_else(|| format!("{text:?} is no way to confine commands: it takes auto, required or off"))
}

/// A number of bytes, with or without a unit; `auto` leaves it to the daemon.
fn bytes(text: &str, least: u64) -> Result<Option<u64>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "" => Some(1),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes),
    };
    let bytes = number.parse().ok().zip(unit).and_then(|(number, unit): (u64, u64)| number.checked_mul(unit));
    match bytes {
        Some(bytes) if (least..=i64::MAX.unsigned_abs()).contains(&bytes) => Ok(Some(bytes)),
        Some(_) => Err(format!("{text:?} is too little or too much: it takes {} or more", size(least))),
        None => Err(format!("{text:?} is no number of bytes: write one such as 512MiB or 4GiB, or auto")),
    }
}

/// In the largest unit that says it exactly.
fn size(bytes: u64) -> String {
    let binary = UNITS.iter().filter(|(name, _)| name.ends_with("iB"));
    let unit = binary.into_iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

fn store(text: &str) -> Result<Store, String> {
    match text {
        "sqlite" => Ok(Store::Sqlite),
        _ => Err(format!("{text:?} is no store that this version knows: it takes sqlite")),
    }
}

/// Where URLs begin, without a slash at the end.
fn public_url(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let fits =
        !rest.starts_with('/') && !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || "?#@".contains(c));
    if url.is_empty() || fits {
        return Ok(url.to_owned());
    }
    Err(format!("{text:?} is no address: write https://HOST, perhaps with a path"))
}

/// Divided by commas; nothing at all is a list, too.
fn fallback(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let models = names.map(model).collect::<Result<Vec<_>, _>>()?;
    if models.len() > FALLBACK_MAX {
        return Err(format!("{} models are too many: name {FALLBACK_MAX} at most", models.len()));
    }
    Ok(models)
}

/// Divided by commas; nothing at all is a list, too.
fn words(text: &str, check: impl Fn(&str) -> Result<(), String>) -> Result<Value, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    words.iter().try_for_each(|word| check(word))?;
    Ok(Value::Words(words.into_iter().map(str::to_owned).collect()))
}

/// Divided by commas; nothing at all is a list, too.
fn folders(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let folder = |name: &str| {
        let below_person = name == PERSON || name.starts_with("~/");
        if below_person || Path::new(name).is_absolute() {
            return Ok(name.to_owned());
        }
        Err(format!("{name:?} is no absolute path: write /path/to/folder, or ~/folder"))
    };
    names.map(folder).collect()
}

/// `PROVIDER/MODEL`. A script's file is taken from the caller's folder and kept absolute, because the daemon has another.
pub fn model(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no model: write PROVIDER/MODEL, such as {ECHO}");
    let (provider, name) = text.split_once('/').ok_or_else(wrong)?;
    if provider.is_empty() || name.is_empty() || text.contains(char::is_control) {
        return Err(wrong());
    }
    if provider != "script" && text.contains(char::is_whitespace) {
        return Err(format!("{text:?} is no model: no name of one has blanks in it"));
    }
    if provider != "script" || text == ECHO {
        return Ok(text.to_owned());
    }
    let path = std::path::absolute(Path::new(name)).map_err(|error| format!("{name:?}: {error}"))?;
    let path = path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("script/{path}"))
}
