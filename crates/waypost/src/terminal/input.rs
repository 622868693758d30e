//! Data that people type: `key=value ..`, a JSON text, `@file`, or `@-` for standard input.

use crate::exit::{Failure, Result};
use serde_json::{Map, Value};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Words of a command line as one JSON value: nothing is `{}`, `key=value ..` an object, one JSON
/// text or `@file` is itself.
pub(crate) fn words(words: &[String]) -> Result<Value> {
    match words {
        [] => Ok(Value::Object(Map::new())),
        [word] if !is_pair(word) => text_or_file(word),
        pairs => self::pairs(pairs).map(Value::Object),
    }
}

/// A JSON text, `@file` or `@-`.
pub(crate) fn text_or_file(word: &str) -> Result<Value> {
    let (text, whence) = match word.strip_prefix('@') {
        Some("-") => (standard_input()?, "standard input".to_owned()),
        Some(path) => (file(Path::new(path))?, format!("`{path}`")),
        None => (word.to_owned(), format!("`{word}`")),
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{whence} is not JSON: {error}"))
            .hint("give `key=value`, a JSON text such as '{\"a\": 1}', or `@file`")
    })
}

/// Words that are all `key=value`.
pub(crate) fn pairs(pairs: &[String]) -> Result<Map<String, Value>> {
    let mut object = Map::new();
    for pair in pairs {
        let split = pair.split_once('=').filter(|(key, _)| !key.is_empty());
        let Some((key, value)) = split else {
            return Err(Failure::usage(format!("`{pair}` is not `key=value`"))
                .hint("several words must all be `key=value`"));
        };
        // What reads as JSON is JSON; everything else is text and needs no quotes.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if object.insert(key.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("`{key}` is given twice")).hint("leave one out"));
        }
    }
    Ok(object)
}

/// A JSON text may hold `=` as well, but never begins like a key.
fn is_pair(word: &str) -> bool {
    let begins_like_json = word.starts_with(['{', '[', '"', '@']);
    !begins_like_json && word.contains('=')
}

/// The text of a file that the command line names.
pub(crate) fn file(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))
}

/// The text of a file that failures call by this name; empty where there is none.
pub(crate) fn file_or_empty(path: &Path, name: &str) -> Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::usage(format!("cannot read `{name}`: {error}"))),
    }
}

/// The text on standard input.
pub(crate) fn standard_input() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(given: &[&str]) -> Result<Value, String> {
        let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
        words(&given).map_err(|failure| failure.message)
    }

    #[test]
    fn pairs_make_an_object() {
        let expected = json!({"a": 1, "name": "Ada L.", "ok": true, "list": [1], "eq": "x=y"});
        let given = ["a=1", "name=Ada L.", "ok=true", "list=[1]", "eq=x=y"];
        assert_eq!(read(&given), Ok(expected));
        assert_eq!(read(&["a="]), Ok(json!({"a": ""})));
        assert_eq!(read(&[]), Ok(json!({})));
    }

    #[test]
    fn a_json_argument_is_taken_as_it_is() {
        assert_eq!(read(&[r#"{"a": "b=c"}"#]), Ok(json!({"a": "b=c"})));
        assert_eq!(read(&["5"]), Ok(json!(5)));
    }

    #[test]
    fn input_that_is_neither_pairs_nor_json_is_refused() {
        assert_eq!(read(&["a=1", "b"]), Err("`b` is not `key=value`".to_owned()));
        assert_eq!(read(&["a=1", "a=2"]), Err("`a` is given twice".to_owned()));
        assert!(read(&["hello"]).unwrap_err().starts_with("`hello` is not JSON"));
        assert!(read(&["@/no/such/file"]).unwrap_err().starts_with("cannot read"));
    }
}
