//! Full-text search over tools and plans, without a model. Items that contain the whole text in
//! their id or description come first, in the given order; then items that share words with it,
//! best first.

use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many words of a text are searched for.
const QUERY_WORDS_MAX: usize = 32;
/// How many different words of one item are compared.
const ITEM_WORDS_MAX: usize = 500;
/// How deep a schema is read.
const SCHEMA_DEPTH_MAX: usize = 4;
/// The shortest beginning that two words must share to be related.
const RELATED_BYTES_MIN: usize = 3;

/// What a word counts for, by where it stands.
const IN_ID: u32 = 4;
const IN_DESCRIPTION: u32 = 2;
const IN_EXAMPLE: u32 = 2;
const IN_PARAMETER: u32 = 2;
const IN_PARAMETER_TEXT: u32 = 1;

/// Words that say nothing about what a user looks for.
const FILLERS: &[&str] = &[
    "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "has",
    "have", "how", "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on",
    "or", "our", "out", "so", "some", "that", "the", "them", "then", "there", "this", "to", "up",
    "us", "was", "we", "what", "when", "which", "who", "will", "with", "you", "your",
];

/// Something that can be found.
#[derive(Debug, Clone, Default)]
pub struct SearchItem<'a> {
    pub id: &'a str,
    pub description: &'a str,
    /// The JSON Schema of what it takes.
    pub parameters: Option<&'a Value>,
    /// The names of its examples.
    pub examples: Vec<&'a str>,
}

impl SearchItem<'_> {
    /// Whether its id or description has this text, which is in small letters.
    fn has(&self, whole: &str) -> bool {
        format!("{} {}", self.id, self.description).to_lowercase().contains(whole)
    }
}

/// The positions of those that fit a text, best first, and at most so many.
pub fn find(text: &str, items: &[SearchItem<'_>], most: usize) -> Vec<usize> {
    let whole = text.to_lowercase();
    let having = items.iter().enumerate().filter(|(_, item)| item.has(&whole));
    let mut found: Vec<usize> = having.map(|(position, _)| position).take(most).collect();
    if found.len() < most {
        let by_words = by_words(text, items);
        let more: Vec<usize> =
            by_words.into_iter().filter(|position| !found.contains(position)).collect();
        found.extend(more);
        found.truncate(most);
    }
    found
}

/// The positions of those that do all that a text says, as far as words can tell, best first and at
/// most so many: they have the whole text, or each of its words.
pub fn find_fitting(text: &str, items: &[SearchItem<'_>], most: usize) -> Vec<usize> {
    let whole = text.to_lowercase();
    let wanted = wanted(text);
    let fits = |position: &usize| {
        items.get(*position).is_some_and(|item| {
            let vocabulary = Vocabulary::of(item);
            let has_all = wanted.iter().all(|word| vocabulary.weight(word) > 0);
            item.has(&whole) || (wanted.len() > 1 && has_all)
        })
    };
    find(text, items, items.len()).into_iter().filter(fits).take(most).collect()
}

/// The positions of those that share words with a text, best first. A word that few of them have
/// counts more.
fn by_words(text: &str, items: &[SearchItem<'_>]) -> Vec<usize> {
    let wanted = wanted(text);
    let vocabularies = items.iter().map(Vocabulary::of);
    let hits: Vec<Vec<u32>> = vocabularies
        .map(|vocabulary| wanted.iter().map(|word| vocabulary.weight(word)).collect())
        .collect();
    let mut scores = vec![0_u32; items.len()];
    for place in 0..wanted.len() {
        let column = || hits.iter().map(move |row| row.get(place).copied().unwrap_or(0));
        let having = column().filter(|weight| *weight > 0).count();
        let rarity = (items.len() / having.max(1)).max(1).ilog2() + 1;
        for (score, weight) in scores.iter_mut().zip(column()) {
            *score += weight * rarity;
        }
    }
    let mut fitting: Vec<(usize, u32)> =
        scores.into_iter().enumerate().filter(|(_, score)| *score > 0).collect();
    fitting.sort_by_key(|(position, score)| (Reverse(*score), *position));
    fitting.into_iter().map(|(position, _)| position).collect()
}

/// The words of a text, each once.
fn wanted(text: &str) -> Vec<String> {
    let mut wanted = words(text);
    wanted.sort();
    wanted.dedup();
    wanted.truncate(QUERY_WORDS_MAX);
    wanted
}

/// The words of one item, each with the most that it counts for.
#[derive(Default)]
struct Vocabulary(BTreeMap<String, u32>);

impl Vocabulary {
    fn of(item: &SearchItem<'_>) -> Self {
        let mut own = Self::default();
        own.take(item.id, IN_ID);
        own.take(item.description, IN_DESCRIPTION);
        item.examples.iter().for_each(|name| own.take(name, IN_EXAMPLE));
        if let Some(schema) = item.parameters {
            own.take_schema(schema, SCHEMA_DEPTH_MAX);
        }
        own
    }

    fn take(&mut self, text: &str, weight: u32) {
        for word in words(text) {
            if self.0.len() >= ITEM_WORDS_MAX {
                return;
            }
            let known = self.0.entry(word).or_default();
            *known = weight.max(*known);
        }
    }

    fn take_schema(&mut self, schema: &Value, depth: usize) {
        for key in ["title", "description"] {
            self.take(schema.get(key).and_then(Value::as_str).unwrap_or(""), IN_PARAMETER_TEXT);
        }
        if depth == 0 {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, inner) in properties.into_iter().flatten() {
            self.take(name, IN_PARAMETER);
            self.take_schema(inner, depth - 1);
        }
        if let Some(items) = schema.get("items") {
            self.take_schema(items, depth - 1);
        }
    }

    /// What a word counts for here: twice as much as one that is only related to it.
    fn weight(&self, word: &str) -> u32 {
        if let Some(weight) = self.0.get(word) {
            return 2 * weight;
        }
        let related = self.0.iter().filter(|(known, _)| are_related(known, word));
        related.map(|(_, weight)| *weight).max().unwrap_or(0)
    }
}

/// Whether one word is the beginning of the other: `order` and `orders`.
fn are_related(left: &str, right: &str) -> bool {
    let is_long_enough = left.len().min(right.len()) >= RELATED_BYTES_MIN;
    is_long_enough && (left.starts_with(right) || right.starts_with(left))
}

/// The words of a text in small letters, those of names such as `listOpenOrders` too, without
/// fillers and single letters.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for character in text.chars() {
        let begins = was_small && character.is_uppercase();
        if begins || !character.is_alphanumeric() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        was_small = character.is_lowercase();
    }
    words.push(word);
    words.retain(|word| word.chars().nth(1).is_some() && !FILLERS.contains(&word.as_str()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named<'a>(id: &'a str, description: &'a str) -> SearchItem<'a> {
        SearchItem { id, description, ..SearchItem::default() }
    }

    #[test]
    fn matches_of_the_whole_text_come_first_in_the_given_order() {
        let items = [
            named("a", "sends an order"),
            named("b", "order lookup, finds an order"),
            named("c", "does ORDER LOOKUP by number"),
            named("d", "unrelated"),
        ];
        assert_eq!(find("order lookup", &items, 9), [1, 2, 0]);
        assert_eq!(find("order lookup", &items, 1), [1]);
        assert_eq!(find("", &items, 3), [0, 1, 2], "everything has an empty text");
        assert_eq!(find("order", &items, 0), [0; 0]);
    }

    #[test]
    fn words_match_in_any_position_and_order() {
        let schema = json!({"type": "object", "properties": {
            "customerId": {"type": "string"},
            "lines": {"type": "array", "items": {"properties": {"sku": {"title": "Stock unit"}}}},
        }});
        let items = [
            named("crm.listOpenOrders", "what is not shipped"),
            SearchItem { parameters: Some(&schema), ..named("shop.buy", "buys") },
            SearchItem { examples: vec!["a refund of a customer"], ..named("shop.undo", "undoes") },
            named("weather", "tells whether it rains"),
        ];
        assert_eq!(find("which orders are still open?", &items, 9), [0]);
        assert_eq!(find("stock of the unit", &items, 9), [1]);
        assert_eq!(find("refund the customer", &items, 9), [2, 1]);
        assert_eq!(find("the of and", &items, 9), [0; 0], "fillers say nothing");
    }

    #[test]
    fn names_count_more_than_texts_and_rare_words_more_than_common_ones() {
        let items = [
            named("mail.list", "lists mail"),
            named("mail.read", "reads mail"),
            named("mail.send", "sends mail with an invoice"),
            named("invoice.read", "reads one"),
        ];
        assert_eq!(find("read invoices", &items, 9), [3, 1, 2]);
        assert_eq!(find("mail an invoice", &items, 9), [2, 3, 0, 1]);
        assert_eq!(find("mail an invoice", &items, 1), [2]);
    }

    #[test]
    fn a_full_match_has_the_whole_text_or_every_word() {
        let items = [
            named("math::conditional_add", "Adds two numbers and says if the sum is positive."),
            named("math::fan_out", "Adds in two branches at the same time."),
            named("greet", "says hello"),
        ];
        assert_eq!(find_fitting("add two numbers", &items, 9), [0]);
        assert_eq!(find_fitting("add", &items, 9), [0, 1]);
        assert_eq!(find_fitting("add two numbers", &items, 0), [0; 0]);
        assert_eq!(find_fitting("add two numbers and mail the sum", &items, 9), [0; 0]);
        assert_eq!(find_fitting("number", &items, 9), [0]);
    }

    #[test]
    fn names_are_split_into_search_words() {
        assert_eq!(words("crm.listOpenOrders_v2"), ["crm", "list", "open", "orders", "v2"]);
        assert_eq!(words("The HTTP of a Straße"), ["http", "straße"]);
    }
}
