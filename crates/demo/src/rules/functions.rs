//! Functions of expressions: dates in words, patterns, and searches in lists. None reads a clock:
//! the moment and the zone are the prompt's.

use super::dates::{Here, When, show, squeezed};
use super::patterns::{Patterns, captures};
use super::scope::{Scope, from_json, to_json};
use jiff::civil::DateTime;
use minijinja::value::{Rest, Value};
use minijinja::{Error, ErrorKind};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The names of all functions, for checks of a file.
pub(super) const NAMES: &[&str] = &[
    "when", "match", "without", "titled", "sentence", "clock", "long_date", "moment", "span",
    "local", "nearest", "named", "find", "once", "outline",
];

/// Puts all functions into a scope.
pub(super) fn add(scope: &mut Scope, here: &Arc<Here>, patterns: &Arc<Patterns>) {
    add_dates(scope, here);
    add_shown(scope, here);
    add_patterns(scope, patterns);
    add_lists(scope, here);
    scope.set("titled", Value::from_function(|text: Value| titled(&words(&text))));
    scope.set("sentence", Value::from_function(|text: Value| sentence(&words(&text))));
    scope.set("outline", Value::from_function(|value: Value| outline(&to_json(&value), 0)));
}

fn add_dates(scope: &mut Scope, here: &Arc<Here>) {
    let own = here.clone();
    let when = move |text: Value, base: Option<Value>| {
        let base = base.and_then(|base| own.read(&words(&base)));
        from_json(&as_json(&own.when(&words(&text), base)))
    };
    scope.set("when", Value::from_function(when));
    let own = here.clone();
    let local = move |time: Value| own.read(&words(&time)).map(show::iso);
    scope.set("local", Value::from_function(local));
}

fn add_shown(scope: &mut Scope, here: &Arc<Here>) {
    let mut show_as = |name: &str, show: fn(DateTime) -> String| {
        let own = here.clone();
        let shown = move |time: Value| {
            let text = words(&time);
            // What is no time is shown as it came: better than nothing.
            own.read(&text).map_or(text, show)
        };
        scope.set(name, Value::from_function(shown));
    };
    show_as("clock", show::clock);
    show_as("long_date", show::long_date);
    show_as("moment", show::moment);
    let own = here.clone();
    let span = move |start: Value, end: Option<Value>| {
        let text = words(&start);
        let end = end.and_then(|end| own.read(&words(&end)));
        own.read(&text).map_or(text, |start| show::span(start, end))
    };
    scope.set("span", Value::from_function(span));
}

fn add_patterns(scope: &mut Scope, patterns: &Arc<Patterns>) {
    let own = patterns.clone();
    let matches = move |name: String, text: Value| -> Result<Value, Error> {
        let regex = own.get(&name).ok_or_else(|| unknown(&name))?;
        let found = captures(regex, &words(&text));
        Ok(found.map_or(Value::from(()), |found| from_json(&Json::Object(found))))
    };
    scope.set("match", Value::from_function(matches));
    let own = patterns.clone();
    let without = move |text: Value, names: Rest<String>| -> Result<String, Error> {
        let mut text = squeezed(&words(&text));
        for name in names.iter() {
            text = own.without(&text, name).ok_or_else(|| unknown(name))?;
        }
        Ok(text)
    };
    scope.set("without", Value::from_function(without));
}

fn add_lists(scope: &mut Scope, here: &Arc<Here>) {
    let own = here.clone();
    let nearest = move |items: Value, field: String, when: Value| {
        from_json(&Json::Array(nearest(&own, items_of(&items), &field, &to_json(&when))))
    };
    scope.set("nearest", Value::from_function(nearest));
    let named = |items: Value, field: String, text: Value| {
        from_json(&Json::Array(named(items_of(&items), &field, &words(&text))))
    };
    scope.set("named", Value::from_function(named));
    let find = |value: Value, key: String, wanted: Value| {
        let wanted = to_json(&wanted);
        let value = to_json(&value);
        let found = if wanted.is_null() { None } else { find(&value, &key, &wanted) };
        from_json(found.unwrap_or(&Json::Null))
    };
    scope.set("find", Value::from_function(find));
    let own = here.clone();
    let once = move |items: Value| from_json(&Json::Array(once(&own, items_of(&items))));
    scope.set("once", Value::from_function(once));
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("there is no pattern `{name}`"))
}

/// The text, if it is one.
fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items_of(value: &Value) -> Vec<Json> {
    match to_json(value) {
        Json::Array(items) => items,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => {
            Vec::new()
        }
    }
}

fn as_json(when: &When) -> Json {
    let time = when.start.filter(|_| when.has_time);
    json!({
        "start": when.start.map(show::iso),
        "end": when.end.map(show::iso),
        "minutes": when.minutes,
        "shift": when.shift,
        "day": when.day.map(|day| day.to_string()),
        "days": when.days,
        "time": time.map(|start| show::iso(start)[11..16].to_owned()),
        "has_day": when.day.is_some(),
        "unreal": when.unreal,
        "has_time": when.has_time,
        "loose": when.loose,
        "said": when.said,
        "rest": when.rest,
    })
}

/// A name out of a few words: capital letters but for small words. Who began with a capital letter
/// has chosen the others too.
fn titled(text: &str) -> String {
    const SMALL: &[&str] = &[
        "a", "about", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to",
        "with",
    ];
    if text.starts_with(char::is_uppercase) {
        return text.to_owned();
    }
    let word = |(index, word): (usize, &str)| {
        let plain = word.chars().all(|char| !char.is_uppercase());
        let mut chars = word.chars();
        match chars.next() {
            Some(first) if plain && (index == 0 || !SMALL.contains(&word)) => {
                first.to_uppercase().chain(chars).collect()
            }
            Some(_) | None => word.to_owned(),
        }
    };
    let words: Vec<String> = text.split(' ').enumerate().map(word).collect();
    words.join(" ")
}

/// The text with a full stop, unless it ends in its own way.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// The items that are meant by a time: those on the day and at the time that were said, of these
/// the next one, or the last one if all are over, with all that begin together with it.
fn nearest(here: &Here, items: Vec<Json>, field: &str, when: &Json) -> Vec<Json> {
    let said = |key: &str| when.get(key).and_then(Json::as_str).unwrap_or_default();
    let is = |key: &str| when.get(key).and_then(Json::as_bool).unwrap_or_default();
    let days = when.get("days").and_then(Json::as_i64).unwrap_or(1);
    let first_day = here.read(said("day")).map(DateTime::date);
    let time = here.read(said("start")).filter(|_| is("has_time"));
    let minute = |wall: DateTime| i64::from(wall.hour()) * 60 + i64::from(wall.minute());
    let fits = |start: DateTime| {
        let on_day = first_day.is_none_or(|day| {
            let after = start.date().duration_since(day).as_hours() / 24;
            (0..days).contains(&after)
        });
        let at_time = time.is_none_or(|time| {
            let apart = minute(start) - minute(time);
            apart == 0 || (is("loose") && apart % (12 * 60) == 0)
        });
        on_day && at_time
    };
    let start = |item: &Json| item.get(field).and_then(Json::as_str).and_then(|at| here.read(at));
    let found: Vec<(DateTime, Json)> = items
        .into_iter()
        .filter_map(|item| Some((start(&item)?, item)))
        .filter(|(start, _)| fits(*start))
        .collect();
    let starts = || found.iter().map(|(start, _)| *start);
    let ahead = starts().filter(|start| *start >= here.now()).min();
    let Some(best) = ahead.or_else(|| starts().max()) else { return Vec::new() };
    found.into_iter().filter(|(start, _)| *start == best).map(|(_, item)| item).collect()
}

/// The items that have all of these words in a field; all items if there are no words.
fn named(items: Vec<Json>, field: &str, text: &str) -> Vec<Json> {
    let wanted = split_words(text);
    let fits = |item: &Json| {
        let own = split_words(item.get(field).and_then(Json::as_str).unwrap_or_default());
        wanted.iter().all(|word| own.contains(word))
    };
    items.into_iter().filter(fits).collect()
}

fn split_words(text: &str) -> Vec<String> {
    let words = text.split(|char: char| !char.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The first object, however deep, whose field has this value.
fn find<'v>(value: &'v Json, key: &str, wanted: &Json) -> Option<&'v Json> {
    match value {
        Json::Object(fields) if fields.get(key) == Some(wanted) => Some(value),
        Json::Object(fields) => fields.values().find_map(|field| find(field, key, wanted)),
        Json::Array(items) => items.iter().find_map(|item| find(item, key, wanted)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

/// Events in the order of their `start`, each once: same `event_id`, same `start`.
fn once(here: &Here, mut events: Vec<Json>) -> Vec<Json> {
    let start = |event: &Json| here.read(event.get("start").and_then(Json::as_str)?);
    events.sort_by_key(start);
    let mut seen: Vec<(Json, Option<DateTime>)> = Vec::new();
    events.retain(|event| {
        let own = (event.get("event_id").cloned().unwrap_or_default(), start(event));
        let is_new = own.0.is_null() || !seen.contains(&own);
        seen.push(own);
        is_new
    });
    events
}

/// Any value as lines of text: lists with dashes, fields with their names.
fn outline(value: &Json, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    match value {
        Json::Null => String::new(),
        Json::Bool(_) | Json::Number(_) => format!("{indent}{value}"),
        Json::String(text) => format!("{indent}{text}"),
        Json::Array(items) => {
            let item = |item: &Json| format!("{indent}- {}", outline(item, depth + 1).trim_start());
            items.iter().map(item).collect::<Vec<_>>().join("\n")
        }
        Json::Object(fields) => {
            let mut lines: Vec<String> = Vec::new();
            let name = fields.get("name").and_then(Json::as_str);
            lines.extend(name.map(|name| format!("{indent}{name}")));
            for (key, field) in fields.iter().filter(|(key, _)| name.is_none() || *key != "name") {
                let label = key.replace('_', " ");
                match field {
                    Json::Null => {}
                    Json::Array(_) | Json::Object(_) => {
                        lines.push(format!("{indent}{label}:\n{}", outline(field, depth + 1)));
                    }
                    Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                        lines.push(format!("{indent}{label}: {}", outline(field, 0)));
                    }
                }
            }
            lines.join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday, 15 November 2026, 10:30 in Berlin.
    fn here() -> Here {
        Here::new(1_794_735_000_000, "Europe/Berlin").unwrap()
    }

    fn events() -> Vec<Json> {
        let event = |id: &str, name: &str, start: &str| {
            let fields = [("event_id", id), ("name", name), ("start", start)];
            fields.into_iter().collect::<Json>()
        };
        vec![
            event("c", "Review", "2026-11-17T15:00:00"),
            event("b", "Team Meeting", "2026-11-16T15:00:00+01:00"),
            event("a", "Standup", "2026-11-15T09:00:00"),
            event("d", "Call", "2026-11-16T14:00:00Z"),
        ]
    }

    fn ids(events: &[Json]) -> String {
        events.iter().filter_map(|event| event["event_id"].as_str()).collect()
    }

    #[test]
    fn the_nearest_event_is_found_with_those_at_the_same_time() {
        let near = |text: &str| {
            let when = as_json(&here().when(text, None));
            ids(&nearest(&here(), events(), "start", &when))
        };
        assert_eq!(near("the meeting at 3pm"), "bd");
        assert_eq!(near("the meeting at 3"), "bd");
        assert_eq!(near("the meeting at 3pm on Tuesday"), "c");
        assert_eq!(near("at 9am"), "a");
        assert_eq!(near("at 3am"), "");
        assert_eq!(near("next week"), "bd");
        assert_eq!(near("whatever"), "bd");
    }

    #[test]
    fn items_are_found_by_their_words() {
        assert_eq!(ids(&named(events(), "name", "the team")), "");
        assert_eq!(ids(&named(events(), "name", "TEAM meeting")), "b");
        assert_eq!(ids(&named(events(), "name", "")).len(), 4);
        let nested = json!([{"deep": [{"event_id": "x", "name": "Found"}]}]);
        assert_eq!(find(&nested, "event_id", &json!("x")).unwrap()["name"], "Found");
        assert!(find(&nested, "event_id", &json!("y")).is_none());
    }

    #[test]
    fn events_come_once_and_in_order() {
        let mut twice = events();
        twice.extend(events());
        let sorted = once(&here(), twice);
        assert_eq!((sorted.len(), ids(&sorted)), (4, "abdc".to_owned()));
    }

    #[test]
    fn words_become_names_and_sentences() {
        assert_eq!(titled("dentist appointment"), "Dentist Appointment");
        assert_eq!(titled("lunch with bob"), "Lunch with Bob");
        assert_eq!(titled("Walk the dog"), "Walk the dog");
        assert_eq!(titled("iOS sync"), "iOS Sync");
        assert_eq!(sentence(" no way"), "no way.");
        assert_eq!(sentence("Why?"), "Why?");
    }

    #[test]
    fn any_value_can_be_outlined() {
        let places = json!([{"name": "Cafe", "address": "Main St 1", "rating": null}, "plain"]);
        assert_eq!(outline(&places, 0), "- Cafe\n  address: Main St 1\n- plain");
        let way = json!({"distance_km": 3.2, "steps": ["north", "left"]});
        assert_eq!(outline(&way, 0), "distance km: 3.2\nsteps:\n  - north\n  - left");
    }
}
