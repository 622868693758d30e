//! The hostile corpus: one table of texts and bytes that were written to hang the server, to use up
//! its memory or its stack, or to make two readers disagree. Every endpoint and every loader is
//! tested with the kinds that it takes, so that a new one gets all of them.

mod paths;
mod templates;
mod schemas;
mod yaml;
mod headers;
mod bodies;
mod upstreams;
mod queries;

/// Stands in an answer of an upstream for the id of the request.
pub const ID: &str = "REQUEST-ID";

/// Where a case can be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A pointer of a plan.
    JsonPath,
    /// A text of a plan or of an agent.
    Template,
    /// A JSON Schema, as JSON.
    Schema,
    /// A file: a plan, an agent, a pipeline, settings.
    Yaml,
    /// Lines of an HTTP head, each with its end.
    Header,
    /// The body of a request.
    Body,
    /// A tool that an upstream lists, as JSON. None of them can be used.
    Listed,
    /// What an upstream answers to a call: the whole HTTP message. `ID` is the request's id.
    Answered,
    /// A query over records.
    Query,
}

/// One entry of the table.
#[derive(Debug)]
pub struct Case {
    /// Its name, `filters-22`; no other case of its kind has it.
    pub name: &'static str,
    /// Where it can be put.
    pub kind: Kind,
    build: fn() -> Vec<u8>,
}

impl Case {
    pub fn bytes(&self) -> Vec<u8> {
        (self.build)()
    }

    /// Its text; what is no UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

pub fn all() -> impl Iterator<Item = &'static Case> {
    let tables = [
        paths::CASES,
        templates::CASES,
        schemas::CASES,
        yaml::CASES,
        headers::CASES,
        bodies::CASES,
        upstreams::LISTED,
        upstreams::ANSWERED,
        queries::CASES,
    ];
    tables.into_iter().flatten()
}

pub fn of(kind: Kind) -> impl Iterator<Item = &'static Case> {
    all().filter(move |case| case.kind == kind)
}

/// Something so many times inside itself.
fn nested(levels: usize, open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

/// Something so many times, each with its number.
fn numbered(count: usize, each: impl Fn(usize) -> String) -> String {
    (0..count).map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_cases_of_a_kind_have_the_same_name() {
        let names: BTreeSet<(String, &str)> =
            all().map(|case| (format!("{:?}", case.kind), case.name)).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn every_kind_has_cases_and_they_are_of_bounded_size() {
        let kinds = [
            Kind::JsonPath,
            Kind::Template,
            Kind::Schema,
            Kind::Yaml,
            Kind::Header,
            Kind::Body,
            Kind::Listed,
            Kind::Answered,
            Kind::Query,
        ];
        for kind in kinds {
            assert!(of(kind).count() >= 8, "{kind:?}");
        }
        for case in all() {
            let length = case.bytes().len();
            assert!(length <= 64 * 1024 * 1024, "{}: {length} bytes", case.name);
        }
    }

    #[test]
    fn message_cases_can_be_put_into_messages() {
        for case in of(Kind::Listed) {
            let tool: Value = serde_json::from_slice(&case.bytes())
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert!(tool.is_object(), "{}", case.name);
        }
        for case in of(Kind::Header) {
            assert!(case.bytes().ends_with(b"\n"), "{}", case.name);
        }
        for case in of(Kind::Answered) {
            assert!(case.bytes().starts_with(b"HTTP/1.1 "), "{}", case.name);
        }
    }
}
