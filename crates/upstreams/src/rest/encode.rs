//! How arguments are written into paths, queries and headers: OpenAPI's styles and percent signs.

use crate::Result;
use kernel::tool::arguments::{kind, misfit};
use outbound::percent::{encoded, escaped};
use serde_json::Value;

/// How a list or an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `a,b`: paths and headers.
    Simple,
    /// `n=a&n=b`, or `n=a,b` where it is not exploded.
    Form,
    /// `n=a%20b`
    Spaces,
    /// `n=a%7Cb`
    Pipes,
    /// `n[key]=a`
    Deep,
    /// `.a,b`, or `.a.b` where it is exploded: paths.
    Label,
    /// `;n=a,b`, or `;n=a;n=b` where it is exploded: paths.
    Matrix,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueEncoding {
    pub(super) style: Style,
    /// Whether each item, or each key, stands for itself.
    pub(super) explode: bool,
    /// Whether the value is written as JSON, whatever it is.
    pub(super) json: bool,
    /// Whether reserved characters stay as they are, as far as that is safe.
    pub(super) reserved: bool,
}

/// Reserved characters that can neither end a value of a query nor begin another.
const RESERVED: &[u8] = b":/?@!$'()*,;";
/// Those that a path may have; percent signs are taken to be there on purpose.
const OF_PATHS: &[u8] = b"/:@!$&'()*+,;=%";

impl ValueEncoding {
    pub(super) fn in_path(self, name: &str, value: &Value) -> Result<String> {
        let written = match self.style {
            Style::Label | Style::Matrix => self.marked(name, value)?,
            Style::Simple | Style::Form | Style::Spaces | Style::Pipes | Style::Deep => {
                self.joined(name, value, encoded)?
            }
        };
        if written.is_empty() {
            return Err(misfit(format!("`{name}` must not be empty: it is a part of the path")));
        }
        Ok(written)
    }

    /// The value of a header.
    pub(super) fn in_header(self, name: &str, value: &Value) -> Result<String> {
        self.joined(name, value, str::to_owned)
    }

    /// The fields of a query, both sides encoded: none for an empty list.
    pub(super) fn in_query(self, name: &str, value: &Value) -> Result<Vec<(String, String)>> {
        let kept: &[u8] = if self.reserved { RESERVED } else { b"" };
        let write = |text: &str| escaped(text, kept);
        let key = encoded(name);
        if self.json {
            return Ok(vec![(key, write(&value.to_string()))]);
        }
        if self.style == Style::Deep {
            let mut fields = Vec::new();
            deep(&key, value, &write, &mut fields);
            return Ok(fields);
        }
        match value {
            Value::Array(items) if items.is_empty() => Ok(Vec::new()),
            Value::Array(items) => {
                let items = texts(name, items.iter())?;
                if self.explode {
                    return Ok(items.iter().map(|item| (key.clone(), write(item))).collect());
                }
                let items: Vec<String> = items.iter().map(|item| write(item)).collect();
                Ok(vec![(key, items.join(self.between()))])
            }
            Value::Object(members) if self.explode => {
                let member = |(key, value): (&String, &Value)| {
                    text(key, value).map(|value| (encoded(key), write(&value)))
                };
                members.iter().map(member).collect()
            }
            Value::Object(members) => {
                let mut parts = Vec::new();
                for (member, value) in members {
                    parts.push(write(member));
                    parts.push(write(&text(member, value)?));
                }
                Ok(vec![(key, parts.join(self.between()))])
            }
            plain => Ok(vec![(key, write(&text(name, plain)?))]),
        }
    }

    /// Separator of items.
    fn between(self) -> &'static str {
        match self.style {
            Style::Spaces => "%20",
            Style::Pipes => "%7C",
            Style::Simple | Style::Form | Style::Deep | Style::Label | Style::Matrix => ",",
        }
    }

    /// The styles that mark each value: nothing for an empty list.
    fn marked(self, name: &str, value: &Value) -> Result<String> {
        let mark = |name: &str, text: &str| match (self.style, text) {
            (Style::Matrix, "") => format!(";{name}"),
            (Style::Matrix, text) => format!(";{name}={text}"),
            (_, text) => format!(".{text}"),
        };
        let name_sent = encoded(name);
        match value {
            Value::Array(items) if self.explode && !self.json => {
                let items = texts(name, items.iter())?;
                Ok(items.iter().map(|item| mark(&name_sent, &encoded(item))).collect())
            }
            Value::Object(members) if self.explode && !self.json => {
                let mut written = String::new();
                for (key, value) in members {
                    let text = encoded(&text(key, value)?);
                    let key = encoded(key);
                    written.push_str(&match self.style {
                        Style::Matrix => mark(&key, &text),
                        _ => mark(&key, &format!("{key}={text}")),
                    });
                }
                Ok(written)
            }
            whole => {
                let text = self.joined(name, whole, encoded)?;
                let says_nothing = self.style == Style::Label || !whole.is_string();
                if text.is_empty() && says_nothing {
                    return Ok(text);
                }
                Ok(mark(&name_sent, &text))
            }
        }
    }

    /// The simple style.
    fn joined(self, name: &str, value: &Value, write: impl Fn(&str) -> String) -> Result<String> {
        if self.json {
            return Ok(write(&value.to_string()));
        }
        match value {
            Value::Array(items) => {
                let items = texts(name, items.iter())?;
                Ok(items.iter().map(|item| write(item)).collect::<Vec<_>>().join(","))
            }
            Value::Object(members) => {
                let between = if self.explode { "=" } else { "," };
                let member = |(key, value): (&String, &Value)| {
                    text(key, value).map(|text| format!("{}{between}{}", write(key), write(&text)))
                };
                let members: Vec<String> = members.iter().map(member).collect::<Result<_, _>>()?;
                Ok(members.join(","))
            }
            plain => Ok(write(&text(name, plain)?)),
        }
    }
}

/// A part of a path as a document writes it.
pub(super) fn path_text(text: &str) -> String {
    escaped(text, OF_PATHS)
}

/// A plain value as a text.
pub(super) fn text(name: &str, value: &Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null => Ok(String::new()),
        Value::Array(_) | Value::Object(_) => Err(misfit(format!(
            "`{name}` holds {} inside, which cannot be written here",
            kind(value)
        ))),
    }
}

fn texts<'a>(name: &str, items: impl Iterator<Item = &'a Value>) -> Result<Vec<String>> {
    items.map(|item| text(name, item)).collect()
}

/// `a[b]=1`, `a[c][0]=2`: brackets as they are, since that is what servers look for.
fn deep(
    key: &str,
    value: &Value,
    write: &impl Fn(&str) -> String,
    fields: &mut Vec<(String, String)>,
) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                deep(&format!("{key}[{}]", encoded(member)), value, write, fields);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                deep(&format!("{key}[{index}]"), value, write, fields);
            }
        }
        Value::Null => {}
        Value::String(text) => fields.push((key.to_owned(), write(text))),
        plain @ (Value::Bool(_) | Value::Number(_)) => {
            fields.push((key.to_owned(), write(&plain.to_string())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLAIN: ValueEncoding =
        ValueEncoding { style: Style::Simple, explode: false, json: false, reserved: false };

    fn written(style: Style, explode: bool) -> ValueEncoding {
        ValueEncoding { style, explode, ..PLAIN }
    }

    fn query(written: ValueEncoding, value: Value) -> String {
        let fields = written.in_query("n", &value).unwrap();
        let fields: Vec<String> =
            fields.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        fields.join("&")
    }

    #[test]
    fn every_style_is_written_as_the_specification_shows() {
        let list = json!(["a b", "c,d", 3]);
        let object = json!({"x": "é", "y": true});
        for (style, explode, of_list, of_object) in [
            (Style::Form, true, "n=a%20b&n=c%2Cd&n=3", "x=%C3%A9&y=true"),
            (Style::Form, false, "n=a%20b,c%2Cd,3", "n=x,%C3%A9,y,true"),
            (Style::Spaces, false, "n=a%20b%20c%2Cd%203", "n=x%20%C3%A9%20y%20true"),
            (Style::Pipes, false, "n=a%20b%7Cc%2Cd%7C3", "n=x%7C%C3%A9%7Cy%7Ctrue"),
            (Style::Deep, true, "n[0]=a%20b&n[1]=c%2Cd&n[2]=3", "n[x]=%C3%A9&n[y]=true"),
        ] {
            assert_eq!(query(written(style, explode), list.clone()), of_list, "{style:?}");
            assert_eq!(query(written(style, explode), object.clone()), of_object, "{style:?}");
        }
        let path = |explode, value: &Value| written(Style::Simple, explode).in_path("n", value);
        assert_eq!(path(false, &list).unwrap(), "a%20b,c%2Cd,3");
        assert_eq!(path(false, &object).unwrap(), "x,%C3%A9,y,true");
        assert_eq!(path(true, &object).unwrap(), "x=%C3%A9,y=true");
        assert_eq!(written(Style::Simple, false).in_header("n", &list).unwrap(), "a b,c,d,3");
    }

    #[test]
    fn values_of_a_path_are_marked_as_the_specification_shows() {
        let list = json!(["a b", 3]);
        let object = json!({"x": "é", "y": true});
        for (style, explode, of_plain, of_list, of_object) in [
            (Style::Label, false, ".7", ".a%20b,3", ".x,%C3%A9,y,true"),
            (Style::Label, true, ".7", ".a%20b.3", ".x=%C3%A9.y=true"),
            (Style::Matrix, false, ";n=7", ";n=a%20b,3", ";n=x,%C3%A9,y,true"),
            (Style::Matrix, true, ";n=7", ";n=a%20b;n=3", ";x=%C3%A9;y=true"),
        ] {
            let path = |value: &Value| written(style, explode).in_path("n", value).unwrap();
            assert_eq!(path(&json!(7)), of_plain, "{style:?}");
            assert_eq!(path(&list), of_list, "{style:?}");
            assert_eq!(path(&object), of_object, "{style:?}");
            for empty in [json!([]), json!({})] {
                assert!(written(style, explode).in_path("n", &empty).is_err(), "{style:?} {empty}");
            }
        }
        let plain = |style: Style, text: &str| written(style, false).in_path("n", &json!(text));
        assert_eq!(plain(Style::Matrix, "").unwrap(), ";n");
        assert!(plain(Style::Label, "").is_err());
        assert_eq!(plain(Style::Matrix, "a;b=c/d").unwrap(), ";n=a%3Bb%3Dc%2Fd");
        assert_eq!(written(Style::Matrix, false).in_path("a b", &json!(1)).unwrap(), ";a%20b=1");
    }

    #[test]
    fn encoded_values_cannot_escape_their_position() {
        let nasty = json!("a/../b?c=d&e#f%2F");
        let whole = "a%2F..%2Fb%3Fc%3Dd%26e%23f%252F";
        assert_eq!(PLAIN.in_path("n", &nasty).unwrap(), whole);
        assert_eq!(query(written(Style::Form, true), nasty.clone()), format!("n={whole}"));
        let reserved = ValueEncoding { reserved: true, ..written(Style::Form, true) };
        assert_eq!(query(reserved, nasty), "n=a/../b?c%3Dd%26e%23f%252F");
        assert!(PLAIN.in_path("n", &json!("")).is_err());
        assert!(PLAIN.in_path("n", &json!([])).is_err());
        assert!(written(Style::Form, true).in_query("n", &json!([[1]])).is_err());
    }

    #[test]
    fn json_parameters_are_written_whole_and_empty_lists_omitted() {
        let json = ValueEncoding { json: true, ..written(Style::Form, true) };
        assert_eq!(query(json, json!({"a": [1]})), "n=%7B%22a%22%3A%5B1%5D%7D");
        assert_eq!(query(written(Style::Form, true), json!([])), "");
        let nested = json!({"a": {"b": [1, {"c": null, "d": 2}]}});
        assert_eq!(query(written(Style::Deep, true), nested), "n[a][b][0]=1&n[a][b][1][d]=2");
    }

    #[test]
    fn literal_path_text_is_encoded_and_keeps_its_slashes() {
        assert_eq!(path_text("/a b/{é}"), "/a%20b/%7B%C3%A9%7D");
    }
}
