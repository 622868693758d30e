//! Refusals of requests on records: the words of the server, and where it is a fault of a query the
//! query itself, with a caret under the place.

use crate::exit::Failure;
use crate::terminal::output::printable;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// So much of a long line is shown before and behind the place of a fault.
const AROUND_CHARS: usize = 38;
const CUT: &str = "…";

/// What the server refused, with what it says of places. `query` is what was typed.
pub(super) fn told(failure: Failure, query: Option<&str>) -> Failure {
    let Some(body) = failure.problem.as_deref() else { return failure };
    let place = query.and_then(|query| caret(query, body));
    let lines = place.unwrap_or_else(|| mistakes(body));
    if lines.is_empty() { failure } else { failure.lines(lines) }
}

/// The line of the query that the fault is in, and a caret under the place.
fn caret(query: &str, body: &Value) -> Option<Vec<String>> {
    let place = |name: &str| usize::try_from(body[name].as_u64()?).ok()?.checked_sub(1);
    let line = query.split('\n').nth(place("line")?)?.trim_end_matches('\r');
    let chars: Vec<char> = line.chars().collect();
    let column = place("column")?.min(chars.len());
    let begin = column.saturating_sub(AROUND_CHARS);
    let end = chars.len().min(column + AROUND_CHARS);
    let shown = |chars: &[char]| printable(&chars.iter().collect::<String>()).replace('\t', " ");
    let cut = |is_cut: bool| if is_cut { CUT } else { "" };
    let before = format!("{}{}", cut(begin > 0), shown(&chars[begin..column]));
    let behind = format!("{}{}", shown(&chars[column..end]), cut(end < chars.len()));
    let indent = " ".repeat(before.width());
    Some(vec![format!("{before}{behind}"), format!("{indent}^")])
}

/// What is wrong with the fields of a record, a line each.
fn mistakes(body: &Value) -> Vec<String> {
    let mistakes = body["errors"].as_array().into_iter().flatten();
    let line = |mistake: &Value| {
        let message = mistake["message"].as_str()?;
        match mistake["field"].as_str().unwrap_or_default() {
            "" => Some(message.to_owned()),
            field => Some(format!("{field}: {message}")),
        }
    };
    mistakes.filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::client::problem;
    use serde_json::json;

    fn shown(query: &str, line: usize, column: usize) -> String {
        let body = json!({
            "error": "InvalidQuery",
            "message": "`b` is not expected here",
            "hint": "join two conditions by `&&`",
            "line": line,
            "column": column,
        });
        told(problem(400, Some(body)), Some(query)).to_string()
    }

    #[test]
    fn a_fault_of_a_query_has_a_caret_under_its_place() {
        let expected = "error: `b` is not expected here\n  a:1 b:2\n      ^\nhint: join two \
                        conditions by `&&`";
        assert_eq!(shown("a:1 b:2", 1, 5), expected);
        let second = shown("a:1\n\tb:2 c", 2, 6);
        assert!(second.contains("\n   b:2 c\n       ^\n"), "{second}");
        let wide = shown("名:1 b", 1, 5);
        assert!(wide.contains("\n  名:1 b\n       ^\n"), "{wide}");
        let at_end = shown("a:", 1, 3);
        assert!(at_end.contains("\n  a:\n    ^\n"), "{at_end}");
    }

    #[test]
    fn of_a_long_query_only_what_is_around_the_place_is_shown() {
        let query = format!("{}!{}", "x".repeat(500), "y".repeat(500));
        let text = shown(&query, 1, 501);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].chars().count(), 2 + 2 * AROUND_CHARS + 2);
        let under = lines[1].chars().nth(lines[2].chars().count() - 1);
        assert_eq!(under, Some('!'), "{text}");
    }

    #[test]
    fn a_place_that_is_not_in_the_query_is_not_shown() {
        assert!(!shown("a:1", 7, 1).contains('^'));
        let kept = told(problem(500, None), Some("a:1"));
        assert_eq!(kept.message, "the server answered 500");
    }

    #[test]
    fn mistakes_of_a_record_are_listed() {
        let errors = json!([{"field": "total", "message": "is required"}, {"message": "is bad"}]);
        let body = json!({"error": "InvalidEntity", "message": "no order", "errors": errors});
        let failure = told(problem(400, Some(body)), None);
        assert_eq!(failure.to_string(), "error: no order\n  total: is required\n  is bad");
        assert_eq!(failure.code, "InvalidEntity");
    }
}
