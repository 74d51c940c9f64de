//! Providers by name: where each is, which key it gets, what is known of its models.

use std::collections::BTreeMap;

use abide_effects::Model;
use abide_effects::model::Providers;
use abide_effects::model::cards::{CardChange, CardField};
use abide_effects::model::providers::{AddressSource, Kind, ProviderSettings, base_url, key_env, provider_name};
use abide_effects::model::remote::{Protocol, Remote};
use abide_kernel::budget::Usage;

/// The settings and the environment.
#[derive(Default)]
struct Said {
    providers: BTreeMap<String, ProviderSettings>,
    models: BTreeMap<String, CardChange>,
    environment: BTreeMap<String, String>,
}

impl Said {
    fn variable(mut self, name: &str, value: &str) -> Said {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    fn provider(mut self, name: &str, kind: Option<Kind>, url: Option<&str>, key_env: Option<&str>) -> Said {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let said = ProviderSettings { kind, base_url: text(url), key_env: text(key_env) };
        self.providers.insert(name.to_owned(), said);
        self
    }

    fn model(mut self, name: &str, fields: &[(CardField, &str)]) -> Said {
        let mut change = CardChange::default();
        for (field, text) in fields {
            change.set_field(*field, field.parse(text).unwrap());
        }
        self.models.insert(name.to_owned(), change);
        self
    }

    fn providers(&self) -> Providers {
        self.try_providers().unwrap()
    }

    fn try_providers(&self) -> Result<Providers, String> {
        let made = Providers::new(&self.providers, &self.models, &|name| self.environment.get(name).cloned());
        made.map_err(|problem| problem.to_string())
    }

    fn remote(&self, name: &str) -> Remote {
        match self.providers().model(name).unwrap() {
            Model::Remote(remote) => remote,
            other @ (Model::Echo | Model::Script { .. }) => panic!("{other} is no remote one"),
        }
    }

    /// Where the provider of this model is, and the key it is shown.
    fn reached(&self, name: &str) -> (String, Option<String>) {
        let provider = self.remote(name).provider;
        (provider.base_url.clone(), provider.key.as_ref().map(|key| key.reveal().to_owned()))
    }
}

fn none(url: &str) -> (String, Option<String>) {
    (url.to_owned(), None)
}

fn with(url: &str, key: &str) -> (String, Option<String>) {
    (url.to_owned(), Some(key.to_owned()))
}

#[test]
fn the_built_in_ones_are_where_they_always_are() {
    let said = Said::default();
    assert_eq!(said.reached("anthropic/x"), none("https://api.anthropic.com"));
    assert_eq!(said.reached("openai/x"), none("https://api.openai.com/v1"));
    assert_eq!(said.reached("openai-chat/x"), none("https://api.openai.com/v1"));
    assert_eq!(said.reached("ollama/x"), none("http://127.0.0.1:11434/v1"));
    let protocol = |name: &str| said.remote(name).provider.protocol;
    assert_eq!((protocol("anthropic/x"), protocol("openai/x")), (Protocol::Anthropic, Protocol::Responses));
    assert_eq!((protocol("openai-chat/x"), protocol("ollama/x")), (Protocol::Chat, Protocol::Chat));
    let missing = |name: &str| said.remote(name).missing_key().map(str::to_owned);
    assert_eq!(missing("anthropic/x").as_deref(), Some("ANTHROPIC_API_KEY"));
    assert_eq!(missing("openai/x").as_deref(), Some("OPENAI_API_KEY"));
    assert_eq!(missing("openai-chat/x").as_deref(), Some("OPENAI_API_KEY"));
    assert_eq!(missing("ollama/x"), None);
}

#[test]
fn the_environment_moves_them_and_has_their_keys() {
    let said = Said::default()
        .variable("ANTHROPIC_API_KEY", " a-key\n")
        .variable("ANTHROPIC_BASE_URL", "http://127.0.0.1:4010/v1/")
        .variable("OPENAI_API_KEY", "o-key")
        .variable("OPENAI_BASE_URL", "http://127.0.0.1:4010/v1/");
    assert_eq!(said.reached("anthropic/x"), with("http://127.0.0.1:4010", "a-key"));
    assert_eq!(said.reached("openai/x"), with("http://127.0.0.1:4010/v1", "o-key"));
    assert_eq!(said.reached("openai-chat/x"), with("http://127.0.0.1:4010/v1", "o-key"));
    assert_eq!(said.providers().get("openai").unwrap().address_source, AddressSource::Environment("OPENAI_BASE_URL"));
    // A server of one's own may want no key.
    let said = Said::default().variable("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1");
    assert_eq!(said.remote("openai-chat/x").missing_key(), None);
    assert_eq!(said.remote("openai/x").missing_key(), Some("OPENAI_API_KEY"));
    let error = Said::default().variable("OPENAI_BASE_URL", "example.com").try_providers().unwrap_err();
    assert_eq!(error, "$OPENAI_BASE_URL: begin the address with https:// or http://");
}

#[test]
fn ollama_is_found_as_it_finds_itself() {
    let cases = [
        ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("gpu.example", "http://gpu.example:11434/v1"),
        ("http://gpu.example", "http://gpu.example:80/v1"),
        ("https://gpu.example/ollama/", "https://gpu.example:443/ollama/v1"),
        ("[::1]:11434", "http://[::1]:11434/v1"),
        ("[::]", "http://[::1]:11434/v1"),
    ];
    for (host, url) in cases {
        assert_eq!(Said::default().variable("OLLAMA_HOST", host).reached("ollama/x"), none(url), "{host}");
    }
    for host in ["ftp://x", "x:port", "http://u:p@x"] {
        let error = Said::default().variable("OLLAMA_HOST", host).try_providers().unwrap_err();
        assert!(error.starts_with("$OLLAMA_HOST: ") && !error.contains("u:p"), "{error}");
    }
}

#[test]
fn settings_add_providers_and_change_those_there_are() {
    let said = Said::default()
        .variable("OPENAI_API_KEY", "o-key")
        .variable("WORK_KEY", "w-key")
        .provider("work", Some(Kind::Anthropic), None, Some("WORK_KEY"))
        .provider("mine", Some(Kind::OpenAiChat), Some("http://10.0.0.9:8000/v1"), None)
        .provider("lent", Some(Kind::OpenAi), Some("https://llm.example/v1"), None)
        .provider("openai", None, Some("https://proxy.example/v1"), None);
    assert_eq!(said.reached("work/x"), with("https://api.anthropic.com", "w-key"));
    assert_eq!(said.reached("openai/x"), with("https://proxy.example/v1", "o-key"));
    // No key goes to an address that it was not meant for.
    assert_eq!(said.reached("mine/x"), none("http://10.0.0.9:8000/v1"));
    assert_eq!(said.reached("lent/x"), none("https://llm.example/v1"));
    assert_eq!(said.remote("mine/a/b:7b").model, "a/b:7b");
    let providers = said.providers();
    assert!(providers.get("mine").unwrap().is_exposed() && !providers.get("openai").unwrap().is_exposed());
    assert_eq!(providers.key_variables(), ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "WORK_KEY"]);

    let error = Said::default().provider("mine", None, Some("http://x"), None).try_providers().unwrap_err();
    assert_eq!(error, "providers.mine: it is not built in, so say its kind: anthropic, openai, openai-chat, ollama");
    assert!(Said::default().provider("script", Some(Kind::Ollama), None, None).try_providers().is_err());
}

#[test]
fn a_key_is_in_no_text() {
    let said = Said::default().variable("ANTHROPIC_API_KEY", "sk-secret");
    assert!(!format!("{:?}", said.providers()).contains("sk-secret"));
    assert!(!format!("{:?}", said.remote("anthropic/x")).contains("sk-secret"));
    // Nor is what was taken for something else.
    assert!(!key_env("sk-ant-secret").unwrap_err().contains("secret"));
    assert!(!base_url("https://me:secret@x").unwrap_err().contains("secret"));
}

#[test]
fn what_can_not_be_a_name_or_an_address_is_refused() {
    for name in ["", "A", "a.b", "-a", "a/b", "script"] {
        assert!(provider_name(name).is_err(), "{name:?}");
    }
    assert_eq!(provider_name("my-vllm_2"), Ok(()));
    for url in ["", "example.com", "ftp://x", "https://", "https://x?key=1", "https://x#y", "https://x y"] {
        assert!(base_url(url).is_err(), "{url:?}");
    }
    assert_eq!(base_url(" https://x/v1// "), Ok("https://x/v1".to_owned()));
    for name in ["", "1A", "A-B", "sk-ant", "LC_KEY", "PATH", "HTTPS_PROXY"] {
        assert!(key_env(name).is_err(), "{name:?}");
    }
    assert_eq!(key_env("WORK_KEY_2"), Ok("WORK_KEY_2".to_owned()));
}

#[test]
fn cards_are_known_guessed_and_overridden() {
    let said = Said::default();
    let card = said.remote("anthropic/claude-haiku-4-5-20251001").card;
    assert_eq!((card.window_tokens, card.max_output_tokens, card.images), (200_000, 64_000, true));
    let usage = Usage {
        input_tokens: 3_000_000,
        cached_tokens: 1_000_000,
        cache_write_tokens: 1_000_000,
        output_tokens: 1_000_000,
        ..Usage::default()
    };
    assert_eq!(card.prices.unwrap().cost_micro_usd(&usage), 1_000_000 + 100_000 + 1_250_000 + 5_000_000);
    let guess = said.remote("anthropic/claude-next").card;
    assert_eq!(
        (guess.window_tokens, guess.max_output_tokens, guess.prices, guess.images),
        (128_000, 8_192, None, false)
    );
    let guess = said.remote("ollama/qwen3:8b").card;
    assert_eq!((guess.window_tokens, guess.max_output_tokens, guess.context_tokens), (32_768, 4_096, 28_672));
    // Elsewhere, a model of this name may be another.
    assert!(said.remote("openai-chat/gpt-5").card.prices.is_some());
    let elsewhere = Said::default().variable("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1");
    assert_eq!(elsewhere.remote("openai-chat/gpt-5").card.prices, None);

    let said = Said::default()
        .model("ollama/small", &[(CardField::WindowTokens, "8192"), (CardField::Images, "true")])
        .model("anthropic/claude-haiku-4-5", &[(CardField::InputUsd, "0.5"), (CardField::ContextTokens, "50_000")]);
    let card = said.remote("ollama/small").card;
    assert_eq!((card.max_output_tokens, card.context_tokens, card.images, card.prices), (2_048, 6_144, true, None));
    let card = said.remote("anthropic/claude-haiku-4-5").card;
    let prices = card.prices.unwrap();
    assert_eq!(
        (prices.input, prices.output, prices.cache_read, card.context_tokens),
        (500_000, 5_000_000, 100_000, 50_000)
    );
    assert!(
        said.providers().is_configured("ollama/small")
            && said.providers().list_models().contains(&"ollama/small".to_owned())
    );

    // Without a price of their own, cached tokens cost the same as others.
    let priced = |more: &[(CardField, &str)]| {
        let fields = [&[(CardField::InputUsd, "0.1"), (CardField::OutputUsd, "0.4")], more].concat();
        Said::default().model("ollama/x", &fields).remote("ollama/x").card.prices.unwrap()
    };
    let prices = priced(&[]);
    assert_eq!((prices.cache_read, prices.cache_write), (100_000, 100_000));
    assert_eq!(prices.cost_micro_usd(&Usage { input_tokens: 11, ..Usage::default() }), 2, "rounded up");
    let prices = priced(&[(CardField::CacheReadUsd, "0.01"), (CardField::CacheWriteUsd, "0.2")]);
    assert_eq!((prices.cache_read, prices.cache_write), (10_000, 200_000));
    let wide = Said::default().model("ollama/x", &[(CardField::WindowTokens, "1000000")]).remote("ollama/x").card;
    assert_eq!(wide.context_tokens, 200_000);

    let wrong =
        |name: &str, fields: &[(CardField, &str)]| Said::default().model(name, fields).try_providers().unwrap_err();
    let error = wrong("ollama/x", &[(CardField::InputUsd, "1")]);
    assert_eq!(error, "models.\"ollama/x\": a price needs both input_usd and output_usd");
    let error = wrong("ollama/x", &[(CardField::ContextTokens, "30000")]);
    assert!(error.ends_with("28672 at most"), "{error}");
    assert!(wrong("ollama/x", &[(CardField::MaxOutputTokens, "32768")]).contains("must be less than window_tokens"));
    assert!(wrong("acme/x", &[]).contains("there is no provider \"acme\""));
    assert!(wrong("script/echo", &[(CardField::WindowTokens, "1000")]).contains("a script has no window"));
    // An empty table only names it, as one that agents may choose.
    assert_eq!(Said::default().model("script/echo", &[]).providers().named().collect::<Vec<_>>(), ["script/echo"]);
}

#[test]
fn a_key_brings_a_usual_model() {
    let usual = |said: Said| said.providers().implied_model().map(|usual| (usual.model, usual.variable));
    assert_eq!(usual(Said::default()), None);
    assert_eq!(usual(Said::default().variable("OLLAMA_HOST", "127.0.0.1")), None);
    let openai = || Said::default().variable("OPENAI_API_KEY", "k");
    let (model, variable) = usual(openai()).unwrap();
    assert!(model.starts_with("openai/gpt-") && variable == "OPENAI_API_KEY", "{model} {variable}");
    let (model, variable) = usual(openai().variable("ANTHROPIC_API_KEY", "k")).unwrap();
    assert!(model.starts_with("anthropic/claude-") && variable == "ANTHROPIC_API_KEY", "{model} {variable}");
    let named = openai().variable("MY_KEY", "k").provider("anthropic", None, None, Some("MY_KEY"));
    assert_eq!(usual(named).unwrap().1, "MY_KEY");
    assert!(Said::default().remote("anthropic/claude-sonnet-5-5").card.prices.is_some());
}

#[test]
fn a_key_that_somebody_named_is_wanted() {
    let mine = |key_env| Said::default().provider("mine", Some(Kind::OpenAiChat), Some("http://10.0.0.9/v1"), key_env);
    assert_eq!(mine(None).remote("mine/x").missing_key(), None);
    assert_eq!(mine(Some("MY_KEY")).remote("mine/x").missing_key(), Some("MY_KEY"));
    assert_eq!(mine(Some("MY_KEY")).variable("MY_KEY", "k").remote("mine/x").missing_key(), None);
    let ollama = Said::default().provider("ollama", None, None, Some("MY_KEY"));
    assert_eq!(ollama.remote("ollama/x").missing_key(), Some("MY_KEY"));
}

#[test]
fn a_server_of_ones_own_is_somewhere() {
    let said = Said::default().provider("mine", Some(Kind::OpenAiChat), None, Some("MY_KEY"));
    let error = said.providers().model("mine/x").unwrap_err().to_string();
    assert!(error.contains("nobody says where it is") && error.contains("providers.mine.base_url"), "{error}");
    // The others have a place of their own.
    for kind in [Kind::Anthropic, Kind::OpenAi, Kind::Ollama] {
        assert!(Said::default().provider("mine", Some(kind), None, None).providers().model("mine/x").is_ok());
    }
}

#[test]
fn no_name_of_a_model_has_blanks_in_it() {
    for name in ["openai/ok space", "openai/ ", "ollama/a\tb", "ollama/a\u{7}"] {
        let error = Said::default().providers().model(name).unwrap_err().to_string();
        assert!(error.contains("blanks"), "{name:?}: {error}");
    }
    assert!(Said::default().providers().model("script//tmp/my demo.json").is_ok());
}

/// Where money is limited, a price has to be known, if it is 0.
#[test]
fn a_price_is_known_or_it_is_not() {
    let check = |said: Said, name: &str| said.providers().model(name).unwrap().check_price();
    let error = check(Said::default(), "ollama/x").unwrap_err();
    assert!(error.contains("models.\"ollama/x\".input_usd") && error.contains("limit tokens"), "{error}");
    let free = [(CardField::InputUsd, "0"), (CardField::OutputUsd, "0")];
    assert_eq!(check(Said::default().model("ollama/x", &free), "ollama/x"), Ok(()));
    assert_eq!(check(Said::default(), "anthropic/claude-haiku-4-5"), Ok(()));
    assert_eq!(check(Said::default(), "script/echo"), Ok(()));
}
