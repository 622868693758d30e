//! Masks secrets in arguments: a model sees a mark in their place, and a mark in its answer is
//! replaced by the value. A value is a secret by its schema or by its name.

use serde_json::{Map, Value};

/// Replaces a value that a model must not see.
pub const MASK: &str = "(hidden)";

/// How many characters of a secret say that it is the one.
const HEAD_CHARS: usize = 8;
/// Of a value with more secrets, nothing is said.
const SECRETS_MAX: usize = 64;

/// Words that are names of secrets.
const WORDS: [&str; 7] = ["auth", "creds", "jwt", "passwd", "pat", "pwd", "passphrase"];
/// Suffixes of names of secrets.
const ENDINGS: [&str; 9] = [
    "apikey", "authorization", "bearer", "cookie", "credential", "credentials", "password",
    "secret", "token",
];

/// The same value with a mark in the place of each secret.
pub fn masked(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mask = |(name, field): (&String, &Value)| {
                let schema = &schema["properties"][name.as_str()];
                let shown = match is_secret(name, schema) && !field.is_null() {
                    true => Value::from(MASK),
                    false => masked(field, schema),
                };
                (name.clone(), shown)
            };
            Value::Object(fields.iter().map(mask).collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.iter().map(|item| masked(item, &schema["items"])).collect(),
        other => other.clone(),
    }
}

/// The same value with the secrets of `before` in the place of their marks: at the same places, and
/// nowhere else. `None` where a mark stands where there was no secret.
pub fn unmasked(value: &Value, before: &Value, schema: &Value) -> Option<Value> {
    match value {
        Value::String(text) if text == MASK => None,
        Value::Object(fields) => {
            let mut shown = Map::new();
            for (name, field) in fields {
                let old = &before[name.as_str()];
                let schema = &schema["properties"][name.as_str()];
                let is_mark = field.as_str() == Some(MASK);
                let field = match is_mark && is_secret(name, schema) && !old.is_null() {
                    true => old.clone(),
                    false => unmasked(field, old, schema)?,
                };
                shown.insert(name.clone(), field);
            }
            Some(Value::Object(shown))
        }
        Value::Array(items) => {
            let old = |index: usize| before.get(index).unwrap_or(&Value::Null);
            let shown =
                |(index, item): (usize, &Value)| unmasked(item, old(index), &schema["items"]);
            items.iter().enumerate().map(shown).collect()
        }
        other => Some(other.clone()),
    }
}

/// A text about a value without the secrets of that: faults quote what does not fit, and may cut it
/// off.
pub fn hushed(text: &str, value: &Value, schema: &Value) -> String {
    let mut secrets = Vec::new();
    secrets_of(value, schema, &mut secrets);
    secrets.sort_unstable();
    secrets.dedup();
    if secrets.len() > SECRETS_MAX {
        return MASK.to_owned();
    }
    // Once over the text: a mark is never searched for secrets, or it would grow without end.
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let hidden = secrets.iter().map(|secret| quoted(rest, secret)).max().unwrap_or(0);
        match hidden {
            0 => told.push(letter),
            _ => told.push_str(MASK),
        }
        rest = &rest[hidden.max(letter.len_utf8())..];
    }
    told
}

/// The secrets in a value, as texts that are not empty.
fn secrets_of(value: &Value, schema: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let schema = &schema["properties"][name.as_str()];
                match is_secret(name, schema) {
                    true => leaves(field, secrets),
                    false => secrets_of(field, schema, secrets),
                }
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| secrets_of(item, &schema["items"], secrets));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// All texts and numbers in a value that is a secret, as they may be quoted.
fn leaves(value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => {
            let written = value.to_string();
            secrets.push(written[1..written.len() - 1].to_owned());
            secrets.push(text.clone());
        }
        Value::Number(number) => secrets.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, secrets)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, secrets)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// With how many bytes a text begins that are this secret, or enough of its beginning.
fn quoted(text: &str, secret: &str) -> usize {
    let same = text.chars().zip(secret.chars()).take_while(|(one, other)| one == other);
    let (letters, bytes) =
        same.fold((0, 0), |(letters, bytes), (letter, _)| (letters + 1, bytes + letter.len_utf8()));
    let enough = letters >= HEAD_CHARS || bytes == secret.len();
    if enough { bytes } else { 0 }
}

/// Whether a field holds a secret.
fn is_secret(name: &str, schema: &Value) -> bool {
    if schema["writeOnly"] == true || schema["format"] == "password" {
        return true;
    }
    let mut words: Vec<String> = Vec::new();
    let mut after_small = false;
    for letter in name.chars() {
        let begins = words.is_empty() || (letter.is_uppercase() && after_small);
        if !letter.is_alphanumeric() {
            words.push(String::new());
        } else if begins {
            words.push(letter.to_lowercase().collect());
        } else if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase() || letter.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    let says = |word: &String| {
        WORDS.contains(&word.as_str()) || ENDINGS.iter().any(|end| word.ends_with(end))
    };
    let is_api_key = words.windows(2).any(|pair| pair[0] == "api" && pair[1] == "key");
    is_api_key || words.last().is_some_and(says)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_recognised_by_name_and_schema() {
        let plain = json!({});
        for name in ["password", "db_password", "accessToken", "api_key", "apiKey", "x-api-key"] {
            assert!(is_secret(name, &plain), "{name}");
        }
        for name in ["key", "passenger", "tokens", "author", "secretary", "patient", "path"] {
            assert!(!is_secret(name, &plain), "{name}");
        }
        assert!(is_secret("note", &json!({"writeOnly": true})));
        assert!(is_secret("note", &json!({"format": "password"})));
    }

    #[test]
    fn masked_values_are_restored_in_the_answer() {
        let schema = json!({"properties": {"pin": {"writeOnly": true}}});
        let before = json!({"user": "ann", "pin": 1234, "login": {"password": "hush"},
                            "list": [{"token": "t1"}, {"token": "t2"}]});
        let shown = masked(&before, &schema);
        assert_eq!(
            shown,
            json!({"user": "ann", "pin": MASK, "login": {"password": MASK},
                   "list": [{"token": MASK}, {"token": MASK}]})
        );
        let mut answer = shown.clone();
        answer["user"] = json!("bob");
        let back = unmasked(&answer, &before, &schema).unwrap();
        let mut expected = before.clone();
        expected["user"] = json!("bob");
        assert_eq!(back, expected);
    }

    #[test]
    fn fault_texts_about_a_value_hide_its_secrets() {
        let schema = json!({"properties": {"pin": {"writeOnly": true}}});
        let value = json!({"user": "ann", "pin": 4711, "token": "a-long-\"token\"-indeed",
                           "login": {"credentials": ["hush"]}, "password": ""});
        let hush = |text: &str| hushed(text, &value, &schema);
        assert_eq!(hush("\"ann\" is wrong, 4711 is, too"), "\"ann\" is wrong, (hidden) is, too");
        assert_eq!(hush(&format!("{} fits nothing", value["token"])), "\"(hidden)\" fits nothing");
        assert_eq!(hush("a-long-\"tok.. is too short"), "(hidden).. is too short");
        assert_eq!(hush("hush, hush"), "(hidden), (hidden)");
        assert_eq!(hush("a-long story"), "a-long story");
        // A mark is not masked again, however many secrets are a part of it.
        let short = json!({"password": ["d", "d", "e", "i"]});
        assert_eq!(hushed("did", &short, &schema), MASK.repeat(3));
        let many = json!({"password": (0..100).collect::<Vec<u32>>()});
        assert_eq!(hushed("anything", &many, &schema), MASK);
    }

    #[test]
    fn a_mark_is_restored_only_in_its_own_place() {
        let before = json!({"password": "hush", "note": ""});
        for answer in [json!({"note": MASK}), json!([MASK]), json!({"token": MASK}), json!(MASK)] {
            assert_eq!(unmasked(&answer, &before, &json!({})), None, "{answer}");
        }
        let own = json!({"password": "new"});
        assert_eq!(unmasked(&own, &before, &json!({})), Some(own));
    }
}
