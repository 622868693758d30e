//! Secrets in arguments: a model sees a mark in their place, and what it gives back with that mark
//! gets the value again. A value is one by what its schema says, or by its name.

use serde_json::{Map, Value};

/// What stands for a value that a model does not see.
pub const MASK: &str = "(hidden)";

/// Words that are names of secrets.
const WORDS: [&str; 7] = ["auth", "creds", "jwt", "passwd", "pat", "pwd", "passphrase"];
/// What names of secrets end with.
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
                let (old, schema) = (&before[name.as_str()], &schema["properties"][name.as_str()]);
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
    fn names_and_schemas_say_what_is_secret() {
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
    fn a_model_sees_marks_and_its_answer_gets_the_values_again() {
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
    fn a_secret_goes_nowhere_else() {
        let before = json!({"password": "hush", "note": ""});
        for answer in [json!({"note": MASK}), json!([MASK]), json!({"token": MASK}), json!(MASK)] {
            assert_eq!(unmasked(&answer, &before, &json!({})), None, "{answer}");
        }
        let own = json!({"password": "new"});
        assert_eq!(unmasked(&own, &before, &json!({})), Some(own));
    }
}
