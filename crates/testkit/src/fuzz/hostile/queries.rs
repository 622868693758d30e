//! Queries: brackets that use up a stack, conditions and lists without end, and patterns that a
//! careless matcher tries for ever.

use super::{Case, Kind, nested, numbered};

/// As many bytes as a query may have.
const WHOLE: usize = 16 * 1024;

const fn query(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Query, build }
}

pub(super) const CASES: &[Case] = &[
    query("parentheses", || "(".repeat(WHOLE).into()),
    query("closing-parentheses", || ")".repeat(WHOLE).into()),
    query("brackets", || "[".repeat(WHOLE).into()),
    query("braces", || "{".repeat(WHOLE).into()),
    query("negations", || "!!".repeat(WHOLE / 2).into()),
    query("groups-32", || nested(32, "(", "text:a", ")").into()),
    query("groups-33", || nested(33, "(", "text:a", ")").into()),
    query("groups-5000", || nested(5_000, "(", "text:a", ")").into()),
    query("negated-groups", || nested(3_000, "!!(", "text:a", ")").into()),
    query("elements", || nested(2_000, "list:{", "name:a", "}").into()),
    query("elements-31", || nested(31, "extra.a:{", "b:a", "}").into()),
    query("expands-in-each-other", || nested(1_500, "expand(at, ", "id:~", ")").into()),
    query("expands", || nested(1, "", &"expand(at) && ".repeat(1_000), "expand(at)").into()),
    query("conditions-500", || joined(500, "&&")),
    query("conditions-501", || joined(501, "&&")),
    query("choices-500", || joined(500, "||")),
    query("list-1000", || listed(1_000)),
    query("list-1001", || listed(1_001)),
    query("list-of-patterns", || format!("text:^[{}]", vec!["*a*?b"; 999].join(",")).into()),
    query("names-in-each-other", || format!("extra{}:a", ".a".repeat(8_000)).into()),
    query("indexes", || format!("extra{}:a", "[4294967295]".repeat(1_200)).into()),
    query("huge-index", || "list[99999999999999999999].name:a".into()),
    query("stars", || format!("text:{}", "*".repeat(WHOLE - 5)).into()),
    query("stars-and-letters", || format!("text:{}b", "*a".repeat(4_000)).into()),
    query("question-marks", || format!("text:{}b", "?".repeat(8_000)).into()),
    query("stars-and-question-marks", || format!("text:{}b", "*?".repeat(4_000)).into()),
    query("long-parts", || {
        format!("text:*{}*", format!("{}b*", "?a".repeat(31)).repeat(200)).into()
    }),
    query("quotes", || format!("text:{}", "\"".repeat(WHOLE - 5)).into()),
    query("open-quote", || format!("text:\"{}", "a".repeat(WHOLE - 6)).into()),
    query("dollars", || format!("text:{}", "${".repeat(8_000)).into()),
    query("digits", || format!("n:#{}", "9".repeat(16_000)).into()),
    query("fraction", || format!("n:##0.{}1", "0".repeat(16_000)).into()),
    query("bare-digits", || format!("n:{}", "9".repeat(16_000)).into()),
    query("year-10000", || "day:10000-01-01".into()),
    query("last-moment", || "when:<=9999-12-31T23:59:59.999999999-23:59".into()),
    query("first-day", || "day:>=0000-01-01 && when:<0000-01-01".into()),
    query("last-day", || "day:9999-12-31 && when:9999-12-31 && when:>9999-12-31".into()),
    query("words", || format!("text(\"{}\")", "a ".repeat(8_000)).into()),
    query("blank", || " \n\t".repeat(5_000).into()),
    query("nul", || "text:\0 && \0".into()),
    query("one-byte-too-many", || format!("text:{}", "a".repeat(WHOLE - 4)).into()),
    query("wide-letters", || format!("text:{}", "\u{1f980}\u{130}".repeat(2_000)).into()),
    query("no-utf-8", || b"text:\xff\xfe && n:#\xc3".to_vec()),
    query("marks", || "\u{feff}text:a\u{202e} && \u{2028}n:#1".into()),
    query("fields", || format!("fields:[{}]", vec!["-extra.a"; 1_500].join(",")).into()),
];

fn joined(count: usize, by: &str) -> Vec<u8> {
    let more = numbered(count - 1, |at| format!("n:#{at} {by} "));
    format!("{more}text:*").into()
}

fn listed(count: usize) -> Vec<u8> {
    let values = numbered(count - 1, |at| format!("#{at},"));
    format!("n:^[{values}#1]").into()
}
