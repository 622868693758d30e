//! Whether a value that a file gives, as a default or to choose from, fits its field.

use super::fields::{Form, bound_keys};
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::read::{Spot, quoted};
use kernel::definition::plan::source::NodeKind;
use query::dates::{read_date, read_moment};
use query::types::{Bounds, Field, Kind};
use serde_json::Value;

impl Form<'_> {
    /// Whether the value fits the field; what is wrong with it is noted.
    pub(super) fn fits(&mut self, spot: &Spot<'_>, field: &Field) -> bool {
        let before = self.reader.mistakes.len();
        self.fit_kind(spot, &field.kind, &field.name);
        if self.reader.mistakes.len() == before {
            self.fit_bounds(spot, field);
            self.fit_choices(spot, field);
            self.fit_pattern(spot, field);
        }
        self.reader.mistakes.len() == before
    }

    fn fit_kind(&mut self, spot: &Spot<'_>, kind: &Kind, name: &str) {
        match (kind, &spot.node.kind) {
            (Kind::Json, _)
            | (Kind::Number, NodeKind::Number(_))
            | (Kind::Boolean, NodeKind::Bool(_)) => {}
            (Kind::Integer, NodeKind::Number(number)) if number.as_i64().is_some() => {}
            (Kind::Date, NodeKind::Text(text)) if read_date(text).is_some() => {}
            (Kind::DateTime, NodeKind::Text(text)) if read_moment(text).is_some() => {}
            (Kind::String, _) => {
                self.reader.text(spot);
            }
            (Kind::Array(of), NodeKind::List(_)) => {
                for item in self.reader.list(spot).unwrap_or_default() {
                    self.fit_kind(&item, of, name);
                }
            }
            (Kind::Object(fields), NodeKind::Map(_)) => self.fit_object(spot, fields, name),
            (Kind::Reference(_), _) => {
                let mistake = Mistake::error("a default cannot refer to a record");
                let hint = "the record may not be there; leave it out";
                self.reader.note(spot, mistake.hint(hint));
            }
            (
                Kind::Integer
                | Kind::Number
                | Kind::Boolean
                | Kind::Date
                | Kind::DateTime
                | Kind::Array(_)
                | Kind::Object(_),
                _,
            ) => self.reader.wrong(spot, wanted(kind)),
        }
    }

    fn fit_object(&mut self, spot: &Spot<'_>, fields: &[Field], name: &str) {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        self.reader.object(spot, &format!("`{name}`"), &names);
        for field in fields {
            if let Some(value) = spot.field(&field.name) {
                self.fits(&value, field);
            } else if field.required && field.default.is_none() {
                let mistake = Mistake::error(format!("`{}` is missing", field.name));
                self.reader.note(spot, mistake.hint("a record must have it"));
            }
        }
    }

    fn fit_bounds(&mut self, spot: &Spot<'_>, field: &Field) {
        let Some((least, most)) = bound_keys(&field.kind) else { return };
        let size = match &spot.node.kind {
            NodeKind::Text(text) => text.chars().count() as f64,
            NodeKind::List(items) => items.len() as f64,
            NodeKind::Number(number) => number.as_f64().unwrap_or_default(),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Map(_) => return,
        };
        let Bounds { min, max } = field.bounds;
        let below = min.filter(|min| size < *min).map(|min| (least, min));
        let above = max.filter(|max| size > *max).map(|max| (most, max));
        if let Some((key, bound)) = below.or(above) {
            let mistake = Mistake::error(format!("this does not fit `{key}: {bound}`"));
            self.reader.note(spot, mistake.hint("change one of the two"));
        }
    }

    fn fit_choices(&mut self, spot: &Spot<'_>, field: &Field) {
        let value = spot.node.to_value();
        if field.choices.is_empty() || field.choices.contains(&value) {
            return;
        }
        let choices: Vec<String> = field.choices.iter().map(plain).collect();
        let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
        let mistake = Mistake::error(format!("`{}` is not in `enum`", plain(&value)));
        self.reader.note(spot, mistake.hint(format!("the values are {}", quoted(&choices))));
    }

    fn fit_pattern(&mut self, spot: &Spot<'_>, field: &Field) {
        let (Some(pattern), Some(text)) = (&field.pattern, spot.node.text()) else { return };
        if !pattern.is_match(text) {
            let what = format!("this does not fit the pattern `{}`", pattern.as_str());
            self.reader.note(spot, Mistake::error(what).hint("change one of the two"));
        }
    }
}

/// A text without its quotes, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn wanted(kind: &Kind) -> &'static str {
    match kind {
        Kind::Integer => "a whole number of at most 64 bits",
        Kind::Number => "a number",
        Kind::Boolean => "true or false",
        Kind::Date => "a date such as `2024-01-31`",
        Kind::DateTime => "a date-time such as `2024-01-31T09:00:00Z`",
        Kind::Object(_) => "a map",
        Kind::Array(_) => "a list",
        Kind::String | Kind::Json | Kind::Reference(_) => "a value",
    }
}
