//! The keys of `[events.sinks.<name>]`.

use crate::layer::Place;
use crate::realm::DEFAULT_REALM;
use crate::upstreams::text::{Reading, Text};
use crate::upstreams::written::{Table, Word, Written};
use kernel::plan::mistake::{Mistake, meant};
use kernel::rules::Pattern;

const KEYS: &[&str] = &["type", "path", "url", "secret", "types", "timeout_ms", "from", "realm"];

/// All keys of an entry, as far as they are written.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) kind: Option<Text>,
    pub(super) path: Option<Text>,
    pub(super) url: Option<Text>,
    pub(super) secret: Option<Text>,
    /// Patterns of the types that go there.
    pub(super) types: Option<Vec<Pattern>>,
    pub(super) timeout_ms: Option<u64>,
    /// Whether it begins with all that is kept.
    pub(super) from_start: bool,
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
                mistakes.push(unknown(word, path));
            }
        }
        keys
    }

    fn take(&mut self, key: &str, value: &Written, mistakes: &mut Vec<Mistake>) {
        let mut reading = Reading::new(mistakes);
        match key {
            "type" => self.kind = reading.text(key, value),
            "path" => self.path = reading.text(key, value),
            "url" => self.url = reading.text(key, value),
            "secret" => self.secret = reading.text(key, value),
            "timeout_ms" => {
                self.timeout_ms = reading.within(key, value, "delivery_timeout_ms");
            }
            "types" => {
                let texts = reading.texts(key, value);
                self.types = texts.and_then(|texts| types(&texts, &value.place, mistakes));
            }
            "from" => {
                let text = reading.text(key, value);
                self.from_start = text.as_ref().is_some_and(|text| text.text == "start");
                mistakes.extend(text.as_ref().and_then(wrong_begin));
            }
            "realm" => {
                let text = reading.text(key, value);
                mistakes.extend(text.as_ref().and_then(wrong_realm));
            }
            // `KEYS` has no others.
            _ => {}
        }
    }
}

fn types(texts: &[Text], place: &Place, mistakes: &mut Vec<Mistake>) -> Option<Vec<Pattern>> {
    if texts.is_empty() {
        let what = "`types` is empty, so nothing would go there";
        mistakes.push(place.mistake(Mistake::error(what).hint("leave it out to send all events")));
        return None;
    }
    let mut patterns = Vec::new();
    for text in texts {
        match Pattern::new(&text.text) {
            Ok(pattern) => patterns.push(pattern),
            Err(_) => {
                let what = format!("`{}` is no pattern of event types", text.text);
                let hint = "write a type, with `*` for any characters: `TradeRepaired`, \
                            `waypost.run.*`";
                mistakes.push(text.mistake(Mistake::error(what).hint(hint)));
            }
        }
    }
    Some(patterns)
}

fn wrong_begin(text: &Text) -> Option<Mistake> {
    if ["now", "start"].contains(&text.text.as_str()) {
        return None;
    }
    let hint = "it is `now`, for what happens from its first start on, or `start`, for all that \
                is kept";
    let what = format!("`from` cannot be `{}`", text.text);
    Some(text.mistake(Mistake::error(what).hint(hint)))
}

fn wrong_realm(text: &Text) -> Option<Mistake> {
    if text.text == DEFAULT_REALM {
        return None;
    }
    let what = format!("there is no realm `{}`", text.text);
    let hint = format!("the one realm is `{}`; leave `realm` out", DEFAULT_REALM);
    Some(text.mistake(Mistake::error(what).hint(hint)))
}

fn unknown(word: &Word, path: &str) -> Mistake {
    let hint = meant(&word.text, KEYS.iter().copied())
        .unwrap_or_else(|| format!("known here: {}", KEYS.join(", ")));
    let what = format!("unknown key `{}` in `{path}`", word.text);
    word.place.mistake(Mistake::error(what).hint(hint))
}
