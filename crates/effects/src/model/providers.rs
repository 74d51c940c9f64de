//! Who can be asked, by name: the providers that are built in, those that the settings add or change, and what is known
//! of their models. Keys come from the environment and from nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cards::{CATALOGUE, CardChange, Maker, MakerCards, unknown_card};
use super::remote::{Card, Key, Protocol, Provider, Remote};
use super::{BadModel, Model};
use crate::environment;
use crate::limits;
use crate::nearest::nearest_name;
use crate::web::Url;

/// Names of scripts begin with it; it is nobody's to change.
const SCRIPT: &str = "script";
const NAME_BYTES: usize = 64;
const OLLAMA_PORT: u16 = 11_434;

/// The kind of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Anthropic,
    OpenAi,
    /// Any server that speaks OpenAI's Chat Completions.
    OpenAiChat,
    Ollama,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Anthropic, Kind::OpenAi, Kind::OpenAiChat, Kind::Ollama];

    /// As it is spelled in settings. The built-in provider of this kind has the same name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Anthropic => "anthropic",
            Kind::OpenAi => "openai",
            Kind::OpenAiChat => "openai-chat",
            Kind::Ollama => "ollama",
        }
    }

    fn protocol(self) -> Protocol {
        match self {
            Kind::Anthropic => Protocol::Anthropic,
            Kind::OpenAi => Protocol::Responses,
            Kind::OpenAiChat | Kind::Ollama => Protocol::Chat,
        }
    }

    fn usual_url(self) -> &'static str {
        match self {
            Kind::Anthropic => "https://api.anthropic.com",
            Kind::OpenAi | Kind::OpenAiChat => "https://api.openai.com/v1",
            Kind::Ollama => "http://127.0.0.1:11434/v1",
        }
    }

    /// The variable that says where the built-in provider is.
    #[must_use]
    pub fn url_variable(self) -> &'static str {
        match self {
            Kind::Anthropic => "ANTHROPIC_BASE_URL",
            Kind::OpenAi | Kind::OpenAiChat => "OPENAI_BASE_URL",
            Kind::Ollama => "OLLAMA_HOST",
        }
    }

    /// The variable that a key is looked for in where the settings name none.
    #[must_use]
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Kind::Anthropic => Some("ANTHROPIC_API_KEY"),
            Kind::OpenAi | Kind::OpenAiChat => Some("OPENAI_API_KEY"),
            Kind::Ollama => None,
        }
    }

    fn maker(self) -> Option<Maker> {
        match self {
            Kind::Anthropic => Some(Maker::Anthropic),
            Kind::OpenAi | Kind::OpenAiChat => Some(Maker::OpenAi),
            Kind::Ollama => None,
        }
    }

    /// The card of a model that is on no list.
    fn unknown_card(self) -> Card {
        match self {
            Kind::Anthropic | Kind::OpenAi => unknown_card(128_000, 8_192),
            Kind::OpenAiChat | Kind::Ollama => unknown_card(32_768, 4_096),
        }
    }
}

/// The settings of one provider; missing ones have their usual value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    pub kind: Option<Kind>,
    /// As `base_url` makes it.
    pub base_url: Option<String>,
    pub key_env: Option<String>,
}

/// A provider that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProvider {
    pub kind: Kind,
    pub provider: Arc<Provider>,
    /// The variable that its key is looked for in, wanted or not.
    pub key_variable: Option<String>,
    pub address_source: AddressSource,
}

/// The source of a provider's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource {
    Usual,
    /// This variable.
    Environment(&'static str),
    Settings,
    /// No address is known: the provider can't be asked.
    Nowhere,
}

/// A setting that can't be, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct BadSetting {
    /// `providers.NAME.base_url`, `models."PROVIDER/MODEL"`, `$VARIABLE`.
    pub place: String,
    pub problem: String,
}

/// A model that is used because a key of its provider is set, and no model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpliedModel {
    pub model: String,
    /// The variable that holds the key.
    pub variable: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Providers {
    known: BTreeMap<String, KnownProvider>,
    cards: BTreeMap<String, Card>,
    /// Scripts that the settings name.
    scripts: BTreeSet<String>,
}

impl Default for Providers {
    /// The built-in ones, without an environment.
    fn default() -> Providers {
        match Providers::new(&BTreeMap::new(), &BTreeMap::new(), &|_| None) {
            Ok(providers) => providers,
            Err(problem) => unreachable!("nothing was said that could be wrong: {problem}"),
        }
    }
}

impl Providers {
    /// `variable` is the environment; one that is set to nothing is not set.
    pub fn new(
        providers: &BTreeMap<String, ProviderSettings>,
        models: &BTreeMap<String, CardChange>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Providers, BadSetting> {
        let mut known = BTreeMap::new();
        let nothing = ProviderSettings::default();
        for kind in Kind::ALL {
            let said = providers.get(kind.as_str()).unwrap_or(&nothing);
            known.insert(kind.as_str().to_owned(), built_in_provider(kind, said, variable)?);
        }
        for (name, said) in providers.iter().filter(|(name, _)| !is_built_in(name)) {
            known.insert(name.clone(), added_provider(name, said, variable)?);
        }
        let mut providers = Providers { known, cards: BTreeMap::new(), scripts: BTreeSet::new() };
        for (name, change) in models {
            let wrong = |problem: String| BadSetting { place: format!("models.{name:?}"), problem };
            let card = match providers.model(name).map_err(|error| wrong(error.to_string()))? {
                Model::Remote(remote) => remote.card,
                // An empty table names it as one that agents may choose.
                Model::Echo | Model::Script { .. } if *change == CardChange::default() => {
                    providers.scripts.insert(name.clone());
                    continue;
                }
                Model::Echo | Model::Script { .. } => {
                    return Err(wrong("a script has no window and no price; leave the table empty".to_owned()));
                }
            };
            providers.cards.insert(name.clone(), change.apply_to(&card).map_err(wrong)?);
        }
        Ok(providers)
    }

    /// The models that the settings have a table of.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.cards.keys().chain(&self.scripts).map(String::as_str)
    }

    /// The model of this name, if it names one that could be called.
    pub fn model(&self, name: &str) -> Result<Model, BadModel> {
        let quoted = |text: &str| text.chars().take(limits::QUOTED_CHARS).collect::<String>();
        let (provider, model) = match name.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => (provider, model),
            Some(_) | None => return Err(BadModel::NotAName { name: quoted(name) }),
        };
        match (provider, model) {
            (SCRIPT, "echo") => Ok(Model::Echo),
            (SCRIPT, file) if Path::new(file).is_absolute() => Ok(Model::Script { file: PathBuf::from(file) }),
            (SCRIPT, file) => Err(BadModel::RelativeScript { file: quoted(file) }),
            // Scripts are files, and have whatever name their files have.
            (_, model) if model.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                Err(BadModel::Blank { name: quoted(name) })
            }
            (provider, model) => match self.known.get(provider) {
                Some(KnownProvider { address_source: AddressSource::Nowhere, .. }) => {
                    Err(BadModel::NoAddress { provider: provider.to_owned() })
                }
                Some(known) => Ok(Model::Remote(Remote {
                    name: name.to_owned(),
                    model: model.to_owned(),
                    provider: Arc::clone(&known.provider),
                    card: self.cards.get(name).copied().unwrap_or_else(|| known.card_of(model)),
                })),
                None => {
                    Err(BadModel::UnknownProvider { instead: self.instead_of(provider), provider: quoted(provider) })
                }
            },
        }
    }

    fn instead_of(&self, provider: &str) -> String {
        let names = || self.known.keys().map(String::as_str).chain([SCRIPT]);
        match nearest_name(provider, names()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &KnownProvider> {
        self.known.values()
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&KnownProvider> {
        self.known.get(name)
    }

    /// Models that are on a list of ours or in the settings, by provider; every other name of a provider's is a model, too.
    #[must_use]
    pub fn list_models(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (provider, known) in &self.known {
            let shelf = known.maker_cards().map(|shelf| shelf.cards.as_slice()).unwrap_or_default();
            names.extend(shelf.iter().map(|(id, _)| format!("{provider}/{id}")));
            let said = self.cards.keys().filter(|name| name.split_once('/').is_some_and(|(of, _)| of == provider));
            names.extend(said.filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
        }
        names
    }

    /// Whether the settings say something of this model.
    #[must_use]
    pub fn is_configured(&self, name: &str) -> bool {
        self.cards.contains_key(name)
    }

    /// The model to use where none is set: that of the first provider whose key is.
    #[must_use]
    pub fn implied_model(&self) -> Option<ImpliedModel> {
        [Kind::Anthropic, Kind::OpenAi].into_iter().find_map(|kind| {
            let known = self.known.get(kind.as_str()).filter(|known| known.kind == kind)?;
            known.provider.key.as_ref()?;
            let model = format!("{}/{}", known.provider.name, known.maker_cards()?.usual);
            Some(ImpliedModel { model, variable: known.key_variable.clone()? })
        })
    }

    /// Every variable that a key is looked for in: what no program that is started may be given.
    #[must_use]
    pub fn key_variables(&self) -> Vec<String> {
        let mut names: Vec<String> = Kind::ALL.into_iter().filter_map(Kind::key_variable).map(str::to_owned).collect();
        names.extend(self.known.values().filter_map(|known| known.key_variable.clone()));
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// The date of our list of prices.
#[must_use]
pub fn prices_date() -> &'static str {
    &CATALOGUE.date
}

impl KnownProvider {
    /// Whether it can say better than we which models it has: it is run by somebody who chose them.
    #[must_use]
    pub fn has_its_own_models(&self) -> bool {
        match self.kind {
            Kind::Ollama => true,
            Kind::OpenAiChat => !self.is_usual(),
            Kind::Anthropic | Kind::OpenAi => false,
        }
    }

    /// The list that its models are on. Who serves OpenAI's protocol elsewhere has models of his own.
    fn maker_cards(&self) -> Option<&'static MakerCards> {
        let elsewhere = self.kind == Kind::OpenAiChat && !self.is_usual();
        self.kind.maker().filter(|_| !elsewhere).map(|maker| CATALOGUE.cards_of(maker))
    }

    fn card_of(&self, model: &str) -> Card {
        self.maker_cards().and_then(|shelf| shelf.find_card(model)).unwrap_or_else(|| self.kind.unknown_card())
    }

    fn is_usual(&self) -> bool {
        self.provider.base_url == self.kind.usual_url()
    }

    /// Whether a key would go over the network for everybody to read.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let url = &self.provider.base_url;
        url.starts_with("http://") && !Url::parse(url).is_ok_and(|url| url.is_this_machine())
    }
}

impl Remote {
    /// The variable to set before it can be called.
    #[must_use]
    pub fn missing_key(&self) -> Option<&str> {
        self.provider.key_env.as_deref().filter(|_| self.provider.key.is_none())
    }
}

#[must_use]
pub fn is_built_in(name: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.as_str() == name)
}

/// A name that a provider can have.
pub fn provider_name(name: &str) -> Result<(), String> {
    if name == SCRIPT {
        return Err("script is what files are played by; give the provider another name".to_owned());
    }
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = name.bytes().all(|byte| letter(byte) || matches!(byte, b'-' | b'_'));
    if fits && name.len() <= NAME_BYTES && name.bytes().next().is_some_and(letter) {
        return Ok(());
    }
    Err(format!("a provider's name has 1 to {NAME_BYTES} of a-z, 0-9, '-' and '_'"))
}

/// Where a provider is, without a slash at its end. What is wrong is said without repeating it: it may hold a password.
pub fn base_url(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    if !["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Err("begin the address with https:// or http://".to_owned());
    }
    if text.contains('@') {
        return Err("leave user and password out of the address; a key goes into the environment".to_owned());
    }
    if text.contains(['?', '#', ' ']) {
        return Err("an address ends with its path, as in https://example.com/v1".to_owned());
    }
    Url::parse(text).map_err(|_| "write the address as https://HOST, perhaps with a port and a path".to_owned())?;
    Ok(text.to_owned())
}

/// The name of a variable. What is wrong is said without repeating it: it may be the key itself.
pub fn key_env(text: &str) -> Result<String, String> {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let fits = text.bytes().all(|byte| letter(byte) || byte.is_ascii_digit());
    if !fits || text.len() > NAME_BYTES || !text.bytes().next().is_some_and(letter) {
        return Err(
            "name a variable of the daemon's environment, such as WORK_API_KEY; the key itself goes there".to_owned()
        );
    }
    if environment::is_carried(text) {
        return Err(format!("agents' commands are given {text}, so a key can't be there; name another variable"));
    }
    Ok(text.to_owned())
}

fn built_in_provider(
    of: Kind,
    said: &ProviderSettings,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<KnownProvider, BadSetting> {
    let kind = said.kind.unwrap_or(of);
    let from = kind.url_variable();
    let (place, url) = match (variable(from), &said.base_url) {
        (Some(url), _) => {
            let url = if kind == Kind::Ollama { ollama_url(&url) } else { base_url(&url) };
            let wrong = |problem| BadSetting { place: format!("${from}"), problem };
            (AddressSource::Environment(from), url.map_err(wrong)?)
        }
        (None, Some(url)) => (AddressSource::Settings, url.clone()),
        (None, None) => (AddressSource::Usual, kind.usual_url().to_owned()),
    };
    let keys = Keys::choose(said, kind.key_variable());
    Ok(known_provider(of.as_str(), kind, place, url, keys, variable))
}

/// A provider that only the settings know. Nobody's key goes to an address that was not meant for it: where it has one of
/// its own, `key_env` says which key it gets.
fn added_provider(
    name: &str,
    said: &ProviderSettings,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<KnownProvider, BadSetting> {
    let place = format!("providers.{name}");
    let wrong = |problem: String| BadSetting { place: place.clone(), problem };
    provider_name(name).map_err(wrong)?;
    let Some(kind) = said.kind else {
        let kinds = Kind::ALL.map(Kind::as_str).join(", ");
        return Err(wrong(format!("it is not built in, so say its kind: {kinds}")));
    };
    let (place, url, usual_key) = match (&said.base_url, kind) {
        (Some(url), _) => (AddressSource::Settings, url.clone(), None),
        // A custom server is not given OpenAI's key.
        (None, Kind::OpenAiChat) => (AddressSource::Nowhere, String::new(), None),
        (None, Kind::Anthropic | Kind::OpenAi | Kind::Ollama) => {
            (AddressSource::Usual, kind.usual_url().to_owned(), kind.key_variable())
        }
    };
    Ok(known_provider(name, kind, place, url, Keys::choose(said, usual_key), variable))
}

/// Where a provider's key is looked for.
struct Keys {
    variable: Option<String>,
    /// Somebody named the variable, so a key is wanted.
    named: bool,
}

impl Keys {
    fn choose(said: &ProviderSettings, usual: Option<&str>) -> Keys {
        let variable = said.key_env.clone().or_else(|| usual.map(str::to_owned));
        Keys { variable, named: said.key_env.is_some() }
    }
}

fn known_provider(
    name: &str,
    kind: Kind,
    address_source: AddressSource,
    base_url: String,
    keys: Keys,
    variable: &dyn Fn(&str) -> Option<String>,
) -> KnownProvider {
    // Some write its version behind it, which is part of the protocol here.
    let base_url = match kind {
        Kind::Anthropic => base_url.strip_suffix("/v1").unwrap_or(&base_url).to_owned(),
        Kind::OpenAi | Kind::OpenAiChat | Kind::Ollama => base_url,
    };
    let Keys { variable: key_variable, named } = keys;
    let key = key_variable.as_deref().and_then(variable).map(|key| key.trim().to_owned());
    let key = key.filter(|key| !key.is_empty()).map(Key::new);
    // A server of one's own may want none.
    let optional = match kind {
        Kind::Anthropic | Kind::OpenAi => false,
        Kind::OpenAiChat => base_url != kind.usual_url(),
        Kind::Ollama => true,
    };
    let key_env = key_variable.clone().filter(|_| !optional || named || key.is_some());
    let provider = Arc::new(Provider { name: name.to_owned(), protocol: kind.protocol(), base_url, key, key_env });
    KnownProvider { kind, provider, key_variable, address_source }
}

/// `OLLAMA_HOST` as Ollama reads it: a host, a port, both, or an address; where a server listens on everything, it is
/// asked at this machine.
fn ollama_url(text: &str) -> Result<String, String> {
    let text = text.trim().trim_matches(['"', '\'']);
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let (scheme, usual_port) = match scheme {
        "" => ("http", OLLAMA_PORT),
        "http" => ("http", 80),
        "https" => ("https", 443),
        _ => return Err("it takes HOST:PORT, or an address that begins with http:// or https://".to_owned()),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        // The colons of an IPv6 address are inside of its brackets.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let port = match port.filter(|port| !port.is_empty()) {
        Some(port) => port.parse::<u16>().map_err(|_| "its port is no number from 0 to 65535".to_owned())?,
        None => usual_port,
    };
    let host = match host {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    base_url(&format!("{scheme}://{host}:{port}{}/v1", path.trim_end_matches('/')))
}
