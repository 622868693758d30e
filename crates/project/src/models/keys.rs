//! The keys of `[models.<name>]`.

use crate::settings::{Named, Number, Text, checked, named};
use kernel::definition::agent_reader::micros_of_dollars;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::read::duration_ms;
use llms::config::Price;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::num::NonZeroU64;

/// The most freedom that providers know.
pub(super) const TEMPERATURE_MAX: f64 = 2.0;

/// All keys of an entry, as far as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ModelKeys {
    pub(super) provider: Option<Text>,
    pub(super) model: Option<Text>,
    pub(super) base_url: Option<Text>,
    pub(super) api_key: Option<Text>,
    #[serde(deserialize_with = "named")]
    pub(super) headers: Named,
    #[serde(deserialize_with = "max_tokens")]
    pub(super) max_tokens: Option<u32>,
    /// A number from 0 to 2, as a text.
    #[serde(deserialize_with = "temperature")]
    pub(super) temperature: Option<String>,
    #[serde(rename = "timeout", deserialize_with = "timeout_ms")]
    pub(super) timeout_ms: Option<u64>,
    #[serde(deserialize_with = "price")]
    pub(super) price: Option<Price>,
    pub(super) rules: Option<Text>,
}

fn max_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let most = NonZeroU64::deserialize(deserializer)?.get();
    Ok(Some(u32::try_from(most).unwrap_or(u32::MAX)))
}

fn temperature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Number(text) = Number::deserialize(deserializer)?;
    let number = text.parse::<f64>().ok();
    if number.is_some_and(|number| (0.0..=TEMPERATURE_MAX).contains(&number)) {
        return Ok(Some(text));
    }
    let hint = "write a number from 0 to 2, or leave it out";
    Err(D::Error::custom(format_args!("`temperature` cannot be `{text}`; hint: {hint}")))
}

fn timeout_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let hint = "write a whole number from 1 and `s`, `m` or `h`, such as \"90s\"";
    let wrong = |text: &str| Mistake::error(format!("`timeout` cannot be `{text}`")).hint(hint);
    checked(deserializer, |text| duration_ms(text).ok_or_else(|| wrong(text))).map(Some)
}

/// `{input, cached, cache_written, output}` in dollars per million tokens; `cached` and
/// `cache_written` cost as `input` where they are left out.
fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Price>, D::Error> {
    #[derive(Deserialize)]
    struct Prices {
        input: Dollars,
        cached: Option<Dollars>,
        cache_written: Option<Dollars>,
        output: Dollars,
    }

    let Prices { input, cached, cache_written, output } = Prices::deserialize(deserializer)?;
    let or_input = |price: Option<Dollars>| price.map_or(input.0, |price| price.0);
    let cached = or_input(cached);
    let cache_written = or_input(cache_written);
    Ok(Some(Price { input: input.0, cached, cache_written, output: output.0 }))
}

/// Dollars, in millionths of one.
struct Dollars(u64);

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Number(text) = Number::deserialize(deserializer)?;
        let hint = "write dollars per million tokens, such as 0.15";
        let wrong = || D::Error::custom(format_args!("`{text}` is no price; hint: {hint}"));
        micros_of_dollars(&text).map(Self).ok_or_else(wrong)
    }
}
