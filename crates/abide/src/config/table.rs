//! The table of settings: one row each. Parsing, typed access, `abide config`, its schema, docs/settings.md and `abide
//! doctor` follow from it. A new setting is a new row here, and whatever reads it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use abide_daemon::models::ECHO;
use abide_daemon::notify::NoticeKind;
use abide_daemon::workspace_roots::PERSON;
use abide_effects::model::providers::Providers;
use abide_effects::sandbox::Mode;
use abide_engine::TREE_AGENTS;
use abide_kernel::config::AgentLimits;

use super::Setting;
use super::key::Entry;
use super::setting_type::{Text, Type, Words};
use super::validation;
use super::value::{Log, MicroUsd, SettingType, Store, Value};
use crate::cli::UpArgs;

/// One setting.
#[derive(Debug)]
pub struct Row {
    /// `TABLE.NAME` stands in a table of the file. In a named table: the name of the field.
    pub key: &'static str,
    /// Its type, and the range of its values.
    pub takes: Type,
    /// In a named table there is none here: it depends on the provider or the model.
    pub default: Option<fn() -> Value>,
    /// The option of `abide up` and `abide daemon start`.
    pub flag: Option<Flag>,
    pub environment: Option<&'static str>,
    /// Whether a running daemon goes by the old value until it is restarted.
    pub restart: bool,
    /// Whether `abide.toml` of a trusted workspace may set it, for the agents that are made there. Never a setting that
    /// widens what an agent may do, reach, see or spend.
    pub workspace: bool,
    /// Where the file also has a table of the same name: the name of this setting in that table.
    pub in_table: Option<&'static str>,
    /// One sentence.
    pub about: &'static str,
}

#[derive(Debug)]
pub struct Flag {
    pub name: &'static str,
    pub value: fn(&UpArgs) -> Option<&str>,
}

impl Row {
    /// The defaults of a row: no flag, no variable, a restart is needed, and a workspace may not set it.
    pub(super) const BASE: Row = Row {
        key: "",
        takes: Type::Switch,
        default: None,
        flag: None,
        environment: None,
        restart: true,
        workspace: false,
        in_table: None,
        about: "",
    };
}

/// Rows are compared by identity: each exists once.
impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Row {}

/// Makes of the rows the table and the struct `Settings`, which has a typed field for each.
macro_rules! settings {
    ($($field:ident: $type:ty = $row:expr;)*) => {
        pub static ROWS: [Row; [$(stringify!($field)),*].len()] = [$($row),*];

        /// All settings of one process.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Settings {
            $(pub $field: Setting<$type>,)*
            /// Who can be asked, with the keys of this environment.
            pub providers: Providers,
            /// Which config.toml this was read from.
            pub file_digest: String,
            /// The entries of named tables in config.toml.
            pub(super) entries: Vec<(Entry, Setting<Value>)>,
        }

        impl Settings {
            /// `read` is asked for each row, in the order of the table.
            pub(super) fn of_rows(
                mut read: impl FnMut(&'static Row) -> anyhow::Result<Setting<Value>>,
                providers: Providers,
                file_digest: String,
                entries: Vec<(Entry, Setting<Value>)>,
            ) -> anyhow::Result<Settings> {
                let mut rows = ROWS.iter();
                Ok(Settings { $($field: typed(&mut read, &mut rows)?,)* providers, file_digest, entries })
            }

            /// Each setting with its row, in the order of the table.
            pub(super) fn rows(&self) -> Vec<(&'static Row, Setting<Value>)> {
                let settings = [$(self.$field.untyped()),*];
                ROWS.iter().zip(settings).collect()
            }
        }
    };
}

fn typed<T: SettingType>(
    read: &mut impl FnMut(&'static Row) -> anyhow::Result<Setting<Value>>,
    rows: &mut std::slice::Iter<'static, Row>,
) -> anyhow::Result<Setting<T>> {
    let Some(row) = rows.next() else { unreachable!("there is a row for each field") };
    let Setting { value, origin } = read(row)?;
    match T::of(&value) {
        Some(value) => Ok(Setting { value, origin }),
        None => unreachable!("{} has another type in its row than in its field: {value:?}", row.key),
    }
}

impl<T: SettingType> Setting<T> {
    fn untyped(&self) -> Setting<Value> {
        Setting { value: self.value.value(), origin: self.origin.clone() }
    }
}

const PORT: u16 = 4173;
/// Beyond this time, an operator who stops the daemon takes it for stuck.
const GRACE_MAX_MS: u64 = 600_000;
/// Less than this, and hardly a program starts.
const MEMORY_LEAST_BYTES: u64 = 64 << 20;
const SCRATCH_LEAST_BYTES: u64 = 1 << 20;
const SCRATCH_BYTES: u64 = 1 << 30;
const HOOK_RATE_MAX: u64 = 1_000_000;
/// A chain of more failing models would take too long.
const FALLBACK_MAX: usize = 8;

/// A limit of agents, of which zero is none.
const LIMIT: Type = Type::Number { least: 0, most: 1_000_000, of: "", zero_is_no_limit: true };

settings! {
    listen: SocketAddr = Row {
        key: "listen",
        takes: Type::Address { example: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT) },
        default: Some(|| Value::Address(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT))),
        flag: Some(Flag { name: "--listen", value: |flags| flags.listen.as_deref() }),
        environment: Some("ABIDE_LISTEN"),
        about: "Address of the daemon, IP:PORT; with port 0 the system chooses a free port",
        ..Row::BASE
    };
    store: Store = Row {
        key: "store",
        takes: Type::Word(Words { words: Words::of::<Store>, not: "no store that this version knows" }),
        default: Some(|| Store::Sqlite.value()),
        flag: Some(Flag { name: "--store", value: |flags| flags.store.as_deref() }),
        environment: Some("ABIDE_STORE"),
        about: "Store of the ledger: sqlite, in the home",
        ..Row::BASE
    };
    model: String = Row {
        key: "model",
        takes: Type::Model,
        default: Some(|| Value::Text(Some(ECHO.to_owned()))),
        flag: Some(Flag { name: "--model", value: |flags| flags.model.as_deref() }),
        environment: Some("ABIDE_MODEL"),
        workspace: true,
        about: "Default model of agents: PROVIDER/MODEL",
        ..Row::BASE
    };
    fallback: Vec<String> = Row {
        key: "fallback",
        takes: Type::Models { most: FALLBACK_MAX },
        default: Some(|| Value::List(Vec::new())),
        environment: Some("ABIDE_FALLBACK"),
        workspace: true,
        about: "Models that are called in this order if a model fails",
        ..Row::BASE
    };
    log: Log = Row {
        key: "log",
        takes: Type::Word(Words { words: Words::of::<Log>, not: "no level" }),
        default: Some(|| Log::Info.value()),
        environment: Some("ABIDE_LOG"),
        about: "Level of the daemon's log",
        ..Row::BASE
    };
    sandbox: Mode = Row {
        key: "sandbox",
        takes: Type::Word(Words { words: Words::of::<Mode>, not: "no way to confine commands" }),
        default: Some(|| Mode::Auto.value()),
        environment: Some("ABIDE_SANDBOX"),
        in_table: Some("mode"),
        about: "Isolation of commands: auto takes the strongest mechanism that works here, required runs no command without one, off isolates nothing",
        ..Row::BASE
    };
    sandbox_memory: Option<u64> = Row {
        key: "sandbox.memory",
        takes: Type::Bytes { least: MEMORY_LEAST_BYTES, auto: None },
        default: Some(|| Value::Bytes(None)),
        about: "Memory that all commands of an agent may use together, such as 4GiB; auto is half of the machine's",
        ..Row::BASE
    };
    sandbox_scratch: Option<u64> = Row {
        key: "sandbox.scratch",
        takes: Type::Bytes { least: SCRATCH_LEAST_BYTES, auto: Some(SCRATCH_BYTES) },
        default: Some(|| Value::Bytes(Some(SCRATCH_BYTES))),
        about: "Size of all private folders in memory of one command",
        ..Row::BASE
    };
    disk_reserve: Option<u64> = Row {
        key: "disk_reserve",
        takes: Type::Bytes { least: 0, auto: None },
        default: Some(|| Value::Bytes(None)),
        about: "Space that stays free on a disk: below it the commands that take the most are ended, and their agents wait; auto is 512MiB, or 3 % of a smaller disk",
        ..Row::BASE
    };
    shutdown_grace_ms: u64 = Row {
        key: "shutdown_grace_ms",
        takes: Type::Number { least: 0, most: GRACE_MAX_MS, of: " of milliseconds", zero_is_no_limit: false },
        default: Some(|| Value::Number(5_000)),
        about: "Time for running turns to reach a safe point when the daemon stops",
        ..Row::BASE
    };
    notify_command: Option<String> = Row {
        key: "notify.command",
        takes: Type::Text(Text { shape: "a shell command", pattern: None, check: validation::command }),
        default: Some(|| Value::Text(None)),
        about: "Shell command for each notification: JSON on its input, ABIDE_* in its environment",
        ..Row::BASE
    };
    notify_webhook: Option<String> = Row {
        key: "notify.webhook",
        takes: Type::Text(Text { shape: "a URL", pattern: None, check: validation::webhook }),
        default: Some(|| Value::Text(None)),
        about: "URL to which each notification is posted as JSON",
        ..Row::BASE
    };
    notify_secret_env: Option<String> = Row {
        key: "notify.secret_env",
        takes: Type::Text(Text { shape: "the name of a variable", pattern: None, check: validation::secret_variable }),
        default: Some(|| Value::Text(None)),
        about: "Environment variable with the webhook's secret (whsec_…), which signs notifications",
        ..Row::BASE
    };
    notify_on: Vec<NoticeKind> = Row {
        key: "notify.on",
        takes: Type::Words(Words { words: Words::of::<NoticeKind>, not: "nothing to be told of" }),
        default: Some(|| NoticeKind::USUAL.to_vec().value()),
        about: "Kinds of notifications that are sent",
        ..Row::BASE
    };
    public_url: String = Row {
        key: "public_url",
        takes: Type::Text(Text {
            shape: "`https://HOST`, perhaps with a path, or empty",
            pattern: Some("^(https?://[^/]+(/.*)?)?$"),
            check: validation::public_url,
        }),
        default: Some(|| Value::Text(Some(String::new()))),
        environment: Some("ABIDE_PUBLIC_URL"),
        about: "Public base URL of triggers, behind a proxy or a tunnel; empty: the daemon's address",
        ..Row::BASE
    };
    hook_rate: u32 = Row {
        key: "hook_rate",
        takes: Type::Number { least: 1, most: HOOK_RATE_MAX, of: " of deliveries", zero_is_no_limit: false },
        default: Some(|| Value::Number(50)),
        about: "Deliveries per second for each trigger; ten times as many in a burst",
        ..Row::BASE
    };
    workspace_roots: Vec<String> = Row {
        key: "workspace_roots",
        takes: Type::Texts(Text {
            shape: "an absolute path, `~` or `~/…`",
            pattern: Some("^(/|~$|~/)"),
            check: validation::folder,
        }),
        default: Some(|| Value::List(vec![PERSON.to_owned()])),
        environment: Some("ABIDE_WORKSPACE_ROOTS"),
        about: "Folders below which agents may work; ~ is the home folder of the daemon's user. An admin's token may use others",
        ..Row::BASE
    };
    self_turns_per_hour: u32 = Row {
        key: "self_turns_per_hour",
        takes: LIMIT,
        default: Some(|| AgentLimits::default().self_turns_per_hour.value()),
        about: "Turns per hour that an agent may cause itself, by its own timers, tasks and messages; further ones wait. 0 is no limit",
        ..Row::BASE
    };
    rounds_per_turn: u32 = Row {
        key: "rounds_per_turn",
        takes: LIMIT,
        default: Some(|| AgentLimits::default().rounds_per_turn.value()),
        about: "Model rounds of one turn; then the turn ends and the operator is asked. 0 is no limit",
        ..Row::BASE
    };
    budget_daily_usd: MicroUsd = Row {
        key: "budget.daily_usd",
        takes: Type::Dollars,
        default: Some(|| Value::MicroUsd(0)),
        about: "Dollars that all agents together may spend on models per day (UTC); then no model is called until midnight. 0 is no limit",
        ..Row::BASE
    };
    tree_agents: u32 = Row {
        key: "tree_agents",
        takes: LIMIT,
        default: Some(|| TREE_AGENTS.value()),
        about: "Agents below an agent that a person creates: its children, theirs, and the named agents that its models create. 0 is no limit",
        ..Row::BASE
    };
    agent_env: Vec<String> = Row {
        key: "agent.env",
        takes: Type::Texts(Text {
            shape: "`NAME=VALUE`",
            pattern: Some("^[A-Za-z_][A-Za-z0-9_]*=[^,]*$"),
            check: validation::agent_variable,
        }),
        default: Some(|| Value::List(Vec::new())),
        about: "NAME=VALUE: variables for the commands of every agent that a person creates from now on; not for secrets",
        ..Row::BASE
    };
    agent_secrets: Vec<String> = Row {
        key: "agent.secrets",
        takes: Type::Texts(Text {
            shape: "the name of a secret",
            pattern: Some("^[A-Za-z_][A-Za-z0-9_]*$"),
            check: validation::agent_secret,
        }),
        default: Some(|| Value::List(Vec::new())),
        about: "Names of secrets (abide secret set) that these commands get in variables of the same names",
        ..Row::BASE
    };
    agent_git_credentials: Vec<String> = Row {
        key: "agent.git_credentials",
        takes: Type::Texts(Text {
            shape: "`HOST=NAME`",
            pattern: Some("^[^=,]+=[A-Za-z_][A-Za-z0-9_]*$"),
            check: validation::agent_git_credential,
        }),
        default: Some(|| Value::List(Vec::new())),
        about: "HOST=NAME: the secret that git in these commands sends as the password of this host over https",
        ..Row::BASE
    };
    agent_ssh_agent: bool = Row {
        key: "agent.ssh_agent",
        takes: Type::Switch,
        default: Some(|| Value::Switch(false)),
        about: "Whether ssh in these commands may sign with the keys of the daemon's ssh agent; needs bubblewrap",
        ..Row::BASE
    };
    agent_known_hosts: Option<String> = Row {
        key: "agent.known_hosts",
        takes: Type::Text(Text { shape: "an absolute path", pattern: None, check: validation::known_hosts }),
        default: Some(|| Value::Text(None)),
        about: "File of host keys that ssh in these commands accepts, read when the daemon starts",
        ..Row::BASE
    };
    agent_for_children: bool = Row {
        key: "agent.for_children",
        takes: Type::Switch,
        default: Some(|| Value::Switch(false)),
        about: "Whether supervised children get the same credentials",
        ..Row::BASE
    };
}
