//! JSONPath: nesting, fan-out, long names and numbers at their edges.

use super::{Case, Kind, nested, numbered};

const fn path(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::JsonPath, build }
}

pub(super) const CASES: &[Case] = &[
    path("empty", Vec::new),
    path("root", || b"$".to_vec()),
    path("parentheses-31", || parentheses(31)),
    path("parentheses-1030", || parentheses(1_030)),
    path("parentheses-100000", || parentheses(100_000)),
    path("filters-22", || filters(22)),
    path("filters-510", || filters(510)),
    path("filters-50000", || filters(50_000)),
    path("filters-22-twice", || {
        let nest = nested(22, "[?@", "", "]");
        format!("$.promptInput{nest}{nest}").into()
    }),
    path("functions-200", || {
        format!("$.promptInput[?{}]", nested(200, "count(@[?", "@", "])>0")).into()
    }),
    path("negations-5000", || format!("$.promptInput[?{}]", nested(5_000, "!(", "@", ")")).into()),
    path("conjunctions-3000", || {
        format!("$.promptInput[?@.a{}]", "&&@.a".repeat(1_500) + &"||@.a".repeat(1_500)).into()
    }),
    path("descendants-6", || format!("$.promptInput{}", "..*".repeat(6)).into()),
    path("descendants-40", || format!("$.promptInput{}", "..*".repeat(40)).into()),
    path("descendants-2500", || format!("$.promptInput{}", "..*".repeat(2_500)).into()),
    path("descendants-of-unions", || {
        format!("$.promptInput{}", "..[*,*,*,*,*,*,*,*]".repeat(8)).into()
    }),
    path("wildcards-300", || format!("$.promptInput{}", "[*]".repeat(300)).into()),
    path("unions-2000", || format!("$.promptInput[0{}]", ",0".repeat(2_000)).into()),
    path("unions-of-unions", || format!("$.promptInput{}", "[0,0,0,0]".repeat(30)).into()),
    path("slices-of-slices", || format!("$.promptInput{}", "[::1,::-1]".repeat(60)).into()),
    path("long-name", || format!("$.promptInput.{}", "a".repeat(100_000)).into()),
    path("long-quoted-name", || format!("$.promptInput['{}']", "\\u0041".repeat(20_000)).into()),
    path("huge-index", || b"$.promptInput[99999999999999999999]".to_vec()),
    path("least-index", || b"$.promptInput[-9223372036854775808]".to_vec()),
    path("slice-without-step", || b"$.promptInput[::0]".to_vec()),
    path("widest-slice", || {
        b"$.promptInput[-9007199254740991:9007199254740991:9007199254740991]".to_vec()
    }),
    path("pattern-that-backtracks", || b"$.promptInput[?match(@, '(a+)+$')]".to_vec()),
    path("pattern-that-multiplies", || {
        b"$.promptInput..[?search(@, '((((a{99}){99}){99}){99}){99}')]".to_vec()
    }),
    path("pattern-out-of-the-data", || b"$.promptInput..[?match(@, $.promptInput.p)]".to_vec()),
    path("compared-with-everything", || b"$.promptInput..[?@==$.promptInput]".to_vec()),
    path("compared-in-every-node", || b"$.promptInput..[?@..[?@==@..[?@==@]]==@]".to_vec()),
    path("number-without-end", || format!("$.promptInput[?@=={}e99999]", "9".repeat(1_000)).into()),
    path("half-surrogate", || b"$.promptInput['\\ud800']".to_vec()),
    path("control-characters", || b"$.promptInput.a\0\x1b[2J\r\n".to_vec()),
    path("right-to-left", || "$.promptInput.\u{202e}tupni".as_bytes().to_vec()),
    path("brackets-that-stay-open", || format!("$.promptInput{}", "[".repeat(8_000)).into()),
    path("quotes-that-stay-open", || format!("$.promptInput['{}", "\\'".repeat(4_000)).into()),
    path("blanks", || format!("$.promptInput[{}0]", " ".repeat(8_000)).into()),
    path("history-of-many-steps", || {
        format!("$.history[?{}]", numbered(300, |at| format!("@.planStepId=='s{at}'||")) + "@")
            .into()
    }),
];

fn parentheses(levels: usize) -> Vec<u8> {
    format!("$.promptInput[?{}]", nested(levels, "(", "@", ")")).into()
}

fn filters(levels: usize) -> Vec<u8> {
    format!("$.promptInput{}", nested(levels, "[?@", "", "]")).into()
}
