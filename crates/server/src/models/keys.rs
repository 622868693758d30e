//! The keys of `[models.<name>]`.

use crate::layer::Place;
use crate::upstreams::text::{Named, Reading, Text};
use crate::upstreams::written::{Table, Word, Written};
use kernel::agent_read::micros_of_dollars;
use kernel::plan::mistake::{Mistake, meant};
use kernel::plan::read::duration_ms;
use llms::config::Price;

const KEYS: &[&str] = &[
    "provider",
    "model",
    "base_url",
    "api_key",
    "headers",
    "max_tokens",
    "temperature",
    "timeout",
    "price",
    "rules",
];

const PRICE_KEYS: &[&str] = &["input", "cached", "output"];

/// The most freedom that providers know.
const TEMPERATURE_MAX: f64 = 2.0;

/// All keys of an entry, as far as they are written.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) provider: Option<Text>,
    pub(super) model: Option<Text>,
    pub(super) base_url: Option<Text>,
    pub(super) api_key: Option<Text>,
    pub(super) headers: Named,
    pub(super) max_tokens: Option<u32>,
    /// A number from 0 to 2, as it is written.
    pub(super) temperature: Option<Text>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) price: Option<Price>,
    pub(super) rules: Option<Text>,
    /// The keys that are there, and where.
    pub(super) there: Vec<(String, Place)>,
}

impl Keys {
    /// The keys of this table; `path` is how mistakes name it.
    pub(super) fn read(table: &Table, path: &str, mistakes: &mut Vec<Mistake>) -> Self {
        let mut keys = Self::default();
        for (word, value) in &table.0 {
            if KEYS.contains(&word.text.as_str()) {
                keys.there.push((word.text.clone(), word.place.clone()));
                keys.take(&word.text, value, mistakes);
            } else {
                mistakes.push(unknown(word, path, KEYS));
            }
        }
        keys
    }

    fn take(&mut self, key: &str, value: &Written, mistakes: &mut Vec<Mistake>) {
        let mut reading = Reading::new(mistakes);
        match key {
            "provider" => self.provider = reading.text(key, value),
            "model" => self.model = reading.text(key, value),
            "base_url" => self.base_url = reading.text(key, value),
            "api_key" => self.api_key = reading.text(key, value),
            "rules" => self.rules = reading.text(key, value),
            "headers" => self.headers = reading.named(key, value).unwrap_or_default(),
            "max_tokens" => {
                let most = reading.whole(key, value);
                self.max_tokens = most.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
            }
            "temperature" => {
                self.temperature = reading.number(key, value);
                mistakes.extend(self.temperature.as_ref().and_then(wrong_temperature));
            }
            "timeout" => {
                let text = reading.text(key, value);
                self.timeout_ms = text.as_ref().and_then(|text| duration_ms(&text.text));
                mistakes.extend(text.filter(|_| self.timeout_ms.is_none()).map(wrong_timeout));
            }
            "price" => {
                let table = reading.table(key, value);
                self.price = table.and_then(|table| price(table, &value.place, mistakes));
            }
            // `KEYS` has no others.
            _ => {}
        }
    }
}

fn wrong_temperature(text: &Text) -> Option<Mistake> {
    let number = text.text.parse::<f64>().ok();
    if number.is_some_and(|number| (0.0..=TEMPERATURE_MAX).contains(&number)) {
        return None;
    }
    let what = format!("`temperature` cannot be `{}`", text.text);
    Some(text.mistake(Mistake::error(what).hint("write a number from 0 to 2, or leave it out")))
}

fn wrong_timeout(text: Text) -> Mistake {
    let what = format!("`timeout` cannot be `{}`", text.text);
    let hint = "write a whole number from 1 and `s`, `m` or `h`, such as \"90s\"";
    text.mistake(Mistake::error(what).hint(hint))
}

/// `{input, cached, output}` in dollars per million tokens.
fn price(table: &Table, place: &Place, mistakes: &mut Vec<Mistake>) -> Option<Price> {
    let mut dollars = |key: &str| {
        let (_, value) = table.get(key)?;
        let text = Reading::new(mistakes).number(&format!("price.{key}"), value)?;
        let micros = micros_of_dollars(&text.text);
        if micros.is_none() {
            let what = format!("`price.{key}` cannot be `{}`", text.text);
            let hint = "write dollars per million tokens, such as 0.15";
            mistakes.push(text.mistake(Mistake::error(what).hint(hint)));
        }
        micros
    };
    let (input, cached, output) = (dollars("input"), dollars("cached"), dollars("output"));
    for (word, _) in table.0.iter().filter(|(word, _)| !PRICE_KEYS.contains(&word.text.as_str())) {
        mistakes.push(unknown(word, "price", PRICE_KEYS));
    }
    for key in ["input", "output"] {
        if table.get(key).is_none() {
            let what = format!("`price` has no `{key}`");
            let hint = "it is `{ input = 0.15, cached = 0.075, output = 0.6 }`, in dollars per \
                        million tokens; `cached` may be left out";
            mistakes.push(place.mistake(Mistake::error(what).hint(hint)));
        }
    }
    let input = input?;
    Some(Price { input, cached: cached.unwrap_or(input), output: output? })
}

fn unknown(word: &Word, path: &str, known: &[&str]) -> Mistake {
    let hint = meant(&word.text, known.iter().copied())
        .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
    let what = format!("unknown key `{}` in `{path}`", word.text);
    word.place.mistake(Mistake::error(what).hint(hint))
}
