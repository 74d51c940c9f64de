//! The context windows and prices of models: a list of ours with a date, and the operator's changes to it.

use std::sync::LazyLock;

use toml_edit::{DocumentMut, Item, TableLike};

use super::remote::{Card, Prices};

/// Prompts fill no more than this of a window that is larger, unless somebody says so: they are paid for at every call.
const CONTEXT_USUAL: u64 = 200_000;
/// More than any model takes, and far from where sums end.
pub const TOKENS_MAX: u64 = 1_000_000_000;
/// Dollars for a million tokens. Beyond this, somebody mistook the unit.
pub const USD_MAX: u64 = 1_000_000;
const MICRO: u64 = 1_000_000;

/// One thing that can be said of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CardField {
    WindowTokens,
    MaxOutputTokens,
    ContextTokens,
    Images,
    InputUsd,
    OutputUsd,
    CacheReadUsd,
    CacheWriteUsd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardValue {
    Tokens(u64),
    Switch(bool),
    /// Millionths of a dollar.
    MicroUsd(u64),
}

/// The operator's changes to a model's card; the rest stays as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CardChange {
    window_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    context_tokens: Option<u64>,
    images: Option<bool>,
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

impl CardField {
    pub const ALL: [CardField; 8] = [
        CardField::WindowTokens,
        CardField::MaxOutputTokens,
        CardField::ContextTokens,
        CardField::Images,
        CardField::InputUsd,
        CardField::OutputUsd,
        CardField::CacheReadUsd,
        CardField::CacheWriteUsd,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CardField::WindowTokens => "window_tokens",
            CardField::MaxOutputTokens => "max_output_tokens",
            CardField::ContextTokens => "context_tokens",
            CardField::Images => "images",
            CardField::InputUsd => "input_usd",
            CardField::OutputUsd => "output_usd",
            CardField::CacheReadUsd => "cache_read_usd",
            CardField::CacheWriteUsd => "cache_write_usd",
        }
    }

    /// A value as it is written; refuses with what it takes.
    pub fn parse(self, text: &str) -> Result<CardValue, String> {
        match self {
            CardField::WindowTokens | CardField::MaxOutputTokens | CardField::ContextTokens => {
                let number = text.replace('_', "").parse().ok().filter(|tokens| (1..=TOKENS_MAX).contains(tokens));
                let number = number.ok_or_else(|| format!("{text:?} is no number of tokens from 1 to {TOKENS_MAX}"))?;
                Ok(CardValue::Tokens(number))
            }
            CardField::Images => match text {
                "true" => Ok(CardValue::Switch(true)),
                "false" => Ok(CardValue::Switch(false)),
                _ => Err(format!("{text:?} is neither true nor false")),
            },
            CardField::InputUsd | CardField::OutputUsd | CardField::CacheReadUsd | CardField::CacheWriteUsd => {
                micro_usd(text).map(CardValue::MicroUsd).ok_or_else(|| {
                    format!("{text:?} is no price: write dollars for a million tokens, such as 2.50, with six digits after the point at most")
                })
            }
        }
    }
}

impl Card {
    /// The value of one field; None for an unknown price.
    #[must_use]
    pub fn value(&self, field: CardField) -> Option<CardValue> {
        let price = |of: fn(&Prices) -> u64| self.prices.as_ref().map(|prices| CardValue::MicroUsd(of(prices)));
        match field {
            CardField::WindowTokens => Some(CardValue::Tokens(self.window_tokens)),
            CardField::MaxOutputTokens => Some(CardValue::Tokens(self.max_output_tokens)),
            CardField::ContextTokens => Some(CardValue::Tokens(self.context_tokens)),
            CardField::Images => Some(CardValue::Switch(self.images)),
            CardField::InputUsd => price(|prices| prices.input),
            CardField::OutputUsd => price(|prices| prices.output),
            CardField::CacheReadUsd => price(|prices| prices.cache_read),
            CardField::CacheWriteUsd => price(|prices| prices.cache_write),
        }
    }
}

impl CardChange {
    /// A value of another kind than the field takes says nothing.
    pub fn set_field(&mut self, field: CardField, value: CardValue) {
        let tokens = || if let CardValue::Tokens(tokens) = value { Some(tokens) } else { None };
        let price = || if let CardValue::MicroUsd(price) = value { Some(price) } else { None };
        match field {
            CardField::WindowTokens => self.window_tokens = tokens(),
            CardField::MaxOutputTokens => self.max_output_tokens = tokens(),
            CardField::ContextTokens => self.context_tokens = tokens(),
            CardField::Images => self.images = if let CardValue::Switch(on) = value { Some(on) } else { None },
            CardField::InputUsd => self.input = price(),
            CardField::OutputUsd => self.output = price(),
            CardField::CacheReadUsd => self.cache_read = price(),
            CardField::CacheWriteUsd => self.cache_write = price(),
        }
    }

    /// The card with what is said; refuses what can't all be true.
    pub fn apply_to(&self, card: &Card) -> Result<Card, String> {
        let window_tokens = self.window_tokens.unwrap_or(card.window_tokens);
        // A window that somebody made small leaves room to read in.
        let usual = if self.window_tokens.is_some() {
            card.max_output_tokens.min(window_tokens / 4).max(1)
        } else {
            card.max_output_tokens
        };
        let max_output_tokens = self.max_output_tokens.unwrap_or(usual);
        if max_output_tokens >= window_tokens {
            return Err(format!(
                "max_output_tokens ({max_output_tokens}) must be less than window_tokens ({window_tokens}), which holds what is read, too"
            ));
        }
        let room = window_tokens - max_output_tokens;
        let context_tokens = match self.context_tokens {
            Some(context) if context > room => {
                return Err(format!(
                    "context_tokens ({context}) must leave room for max_output_tokens ({max_output_tokens}) in window_tokens \
                     ({window_tokens}): {room} at most"
                ));
            }
            Some(context) => context,
            None if self.window_tokens.is_some() => room.min(CONTEXT_USUAL),
            None => card.context_tokens.min(room),
        };
        let images = self.images.unwrap_or(card.images);
        Ok(Card { window_tokens, max_output_tokens, context_tokens, images, prices: self.prices(card.prices)? })
    }

    fn prices(&self, known: Option<Prices>) -> Result<Option<Prices>, String> {
        let said = [self.input, self.output, self.cache_read, self.cache_write].iter().any(Option::is_some);
        if !said {
            return Ok(known);
        }
        let input = self.input.or(known.map(|prices| prices.input));
        let output = self.output.or(known.map(|prices| prices.output));
        let (Some(input), Some(output)) = (input, output) else {
            return Err("a price needs both input_usd and output_usd".to_owned());
        };
        // Without a price of their own, cached tokens cost the same as others.
        let cache_read = self.cache_read.or(known.map(|prices| prices.cache_read)).unwrap_or(input);
        let cache_write = self.cache_write.or(known.map(|prices| prices.cache_write)).unwrap_or(input);
        Ok(Some(Prices { input, output, cache_read, cache_write }))
    }
}

/// Dollars with at most six digits after the point, exactly, as millionths.
#[must_use]
pub fn micro_usd(text: &str) -> Option<u64> {
    let text = text.replace('_', "");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 6 || text.ends_with('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|dollars| *dollars <= USD_MAX)?;
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    Some(whole * MICRO + fraction)
}

/// Millionths of a dollar as dollars, with two digits after the point at least.
#[must_use]
pub fn format_usd(micro: u64) -> String {
    let fraction = format!("{:06}", micro % MICRO);
    let fraction = fraction.trim_end_matches('0');
    format!("{}.{fraction:0<2}", micro / MICRO)
}

/// A value as a file of TOML writes it, to be parsed by its field.
#[must_use]
pub fn format_item(item: &Item) -> Option<String> {
    match item.as_value()? {
        toml_edit::Value::Integer(number) => Some(number.display_repr().into_owned()),
        // As it is written: no rounding on the way.
        toml_edit::Value::Float(number) => Some(number.display_repr().into_owned()),
        toml_edit::Value::Boolean(switch) => Some(switch.value().to_string()),
        toml_edit::Value::String(_)
        | toml_edit::Value::Datetime(_)
        | toml_edit::Value::Array(_)
        | toml_edit::Value::InlineTable(_) => None,
    }
}

/// Whose models the list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    Anthropic,
    OpenAi,
}

#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) date: String,
    anthropic: MakerCards,
    openai: MakerCards,
}

#[derive(Debug)]
pub(super) struct MakerCards {
    /// The default model.
    pub(super) usual: String,
    /// In the order of the file: the newest first.
    pub(super) cards: Vec<(String, Card)>,
}

pub(super) static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| match parse_catalogue(include_str!("cards.toml")) {
        Ok(catalogue) => catalogue,
        // It is part of the program, and a test reads it.
        Err(problem) => unreachable!("cards.toml: {problem}"),
    });

impl Catalogue {
    pub(super) fn cards_of(&self, maker: Maker) -> &MakerCards {
        match maker {
            Maker::Anthropic => &self.anthropic,
            Maker::OpenAi => &self.openai,
        }
    }
}

impl MakerCards {
    /// The card of a model by its name, or by its name with a date behind it.
    pub(super) fn find_card(&self, model: &str) -> Option<Card> {
        let fits = |id: &str| model == id || model.strip_prefix(id).is_some_and(is_date);
        self.cards.iter().find(|(id, _)| fits(id)).map(|(_, card)| *card)
    }
}

/// `-20251001`, `-2026-04-14`, `-latest`. `-5` is another model.
fn is_date(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix('-') else { return false };
    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
    rest == "latest" || (digits == 8 && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

/// The card of an unknown model: a small context window.
pub(super) const fn unknown_card(window_tokens: u64, max_output_tokens: u64) -> Card {
    Card {
        window_tokens,
        max_output_tokens,
        context_tokens: window_tokens - max_output_tokens,
        images: false,
        prices: None,
    }
}

fn parse_catalogue(text: &str) -> Result<Catalogue, String> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let date = document.get("date").and_then(Item::as_str).ok_or("it has no date")?.to_owned();
    let shelf = |maker: &str| {
        let table = document.get(maker).and_then(Item::as_table_like).ok_or(format!("{maker} has no models"))?;
        let usual = document.get("usual").and_then(|usual| usual.get(maker)).and_then(Item::as_str);
        let cards = table.iter().map(|(id, item)| {
            let fields = item.as_table_like().ok_or(format!("{id} is no table"))?;
            Ok((id.to_owned(), parse_card(fields).map_err(|problem| format!("{id}: {problem}"))?))
        });
        let cards = cards.collect::<Result<Vec<_>, String>>()?;
        let usual = usual.filter(|usual| cards.iter().any(|(id, _)| id == usual));
        Ok::<_, String>(MakerCards { usual: usual.ok_or(format!("{maker} has no usual model"))?.to_owned(), cards })
    };
    Ok(Catalogue { date, anthropic: shelf("anthropic")?, openai: shelf("openai")? })
}

fn parse_card(fields: &dyn TableLike) -> Result<Card, String> {
    let mut change = CardChange::default();
    for (name, item) in fields.iter() {
        let field = CardField::ALL.into_iter().find(|field| field.name() == name);
        let field = field.ok_or_else(|| format!("no field is called {name}"))?;
        change.set_field(field, field.parse(&format_item(item).unwrap_or_default())?);
    }
    let said = change.window_tokens.is_some() && change.max_output_tokens.is_some() && change.input.is_some();
    if !said {
        return Err("it says too little".to_owned());
    }
    change.apply_to(&unknown_card(TOKENS_MAX, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact() {
        let cases = [
            ("2", Some(2_000_000)),
            ("2.50", Some(2_500_000)),
            ("0.005", Some(5_000)),
            ("0.000001", Some(1)),
            ("0.0000010", Some(1)),
            ("0.0000001", None),
            ("1_000.5", Some(1_000_500_000)),
            ("1000001", None),
            ("-1", None),
            ("1e3", None),
            (".5", None),
            ("5.", None),
            ("", None),
            ("$5", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(micro_usd(text), wanted, "{text}");
        }
        assert_eq!(
            (format_usd(2_500_000), format_usd(5_000), format_usd(1), format_usd(0)),
            ("2.50".into(), "0.005".into(), "0.000001".into(), "0.00".into())
        );
    }

    #[test]
    fn a_name_with_a_date_is_the_same_model_and_a_version_is_not() {
        let shelf = CATALOGUE.cards_of(Maker::Anthropic);
        let plain = shelf.find_card("claude-haiku-4-5").unwrap();
        assert_eq!(shelf.find_card("claude-haiku-4-5-20251001"), Some(plain));
        assert_eq!(shelf.find_card("claude-haiku-4-5-latest"), Some(plain));
        assert_eq!(shelf.find_card("claude-haiku-4"), None);
        assert_ne!(shelf.find_card("claude-opus-5"), shelf.find_card("claude-opus-5-5"));
        assert_eq!(shelf.find_card("claude-opus-5-6"), None);
        let shelf = CATALOGUE.cards_of(Maker::OpenAi);
        assert_eq!(shelf.find_card("gpt-5-2025-08-07"), shelf.find_card("gpt-5"));
        assert_ne!(shelf.find_card("gpt-5-mini"), shelf.find_card("gpt-5"));
        for other in ["gpt-5-202508", "gpt-5-202508071", "gpt-5-20250807x", "gpt-520250807"] {
            assert_eq!(shelf.find_card(other), None, "{other}");
        }
    }

    #[test]
    fn every_card_of_ours_has_a_price_and_room_for_a_prompt() {
        for maker in [Maker::Anthropic, Maker::OpenAi] {
            for (id, card) in &CATALOGUE.cards_of(maker).cards {
                let prices = card.prices.unwrap_or_else(|| panic!("{id} has no price"));
                assert!(prices.cache_read <= prices.input && prices.input < prices.output, "{id}: {prices:?}");
                assert!(card.context_tokens <= CONTEXT_USUAL, "{id}: {card:?}");
                assert!(card.context_tokens + card.max_output_tokens <= card.window_tokens, "{id}: {card:?}");
            }
        }
    }
}
