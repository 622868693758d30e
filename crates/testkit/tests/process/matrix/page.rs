//! `docs/reference/access.md`: what every endpoint answers to whom, as it was observed.
//! `UPDATE_EXPECT=1` writes it again.

use super::doors::{Door, Thing};
use super::rules::Case;
use std::collections::BTreeMap;
use std::fs;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/access.md");

const HEAD: &str = "# Who gets what at which endpoint

<!-- Written by `crates/testkit/tests/process/matrix` with `UPDATE_EXPECT=1`. -->

What a server that requires credentials answers at each of its endpoints. A test sends all of these
requests to the real program and compares this page with the answers.
[Identity](../concepts/identity.md) says what keys, scopes and roles are, and
[the guide to keys](../guides/keys.md) how to get one.

An answer is its HTTP status and its `code`: a member of the problem or of the error object, for
JSON-RPC `error.data.code`, or the number of the error where it has no such code. At `/oauth/token`
it is `error`, and for A2A over HTTP `error.status`. Calls over gRPC always have the HTTP status
200; their answer is the name of the status in their trailers.

These hold at every endpoint, also at those that are open:

| the request | answer |
|---|---|
| has two credentials, or a malformed one, such as a scheme other than `Bearer` | 400 `bad_credential` |
| has a wrong one, after 30 of them from its address within a minute | 429 `too_many_failures` |
| asks for a realm that its credential may not enter, existing or not | 403 `realm_not_allowed` |

`/oauth/token` is the exception: its credential is in the form, its errors are those of OAuth, and
it ignores realms.

The columns of the tables:

- **none**: no credential.
- **not valid**: a key that was never made, was revoked or has expired. All three get the same
  answer: it gives no reason.
- **scope**: a key whose roles permit everything, but whose scopes do not cover the act. Every scope
  allows reading.
- **role**: a key without scopes, whose roles do not permit the act. What a caller may not read is
  answered as if it did not exist.
- **another's**: a member's key, for a session, run, ask, blob or thread of another member; in the
  MCP version with sessions, a request in the session of another member.
- **over**: a member's key, where its caller has used up its share of what is stored or of event
  streams, or called a tool as often as it may in a minute. 429 has `RateLimit-Policy` and
  `RateLimit` in the caller's own numbers. `/rpc` gives it as the result of the tool.

`served` means that the caller gets what it asks for; a list contains only what its caller may see.
`-` is a case that an endpoint does not have: it names nothing that could be another's, or policy
does not decide about it. `/desk/cases` stands for the route of any pipeline, and `math.add` for the
name of any tool. The skill `mcp.execute_tool` exists for callers that may call some tool; their
calls by it always become tasks: if a policy forbids one, its output says so, and nothing is called.
Over standard input and output, the program ends with an exit code if its client is not let in.
";

/// What was answered, by the place of the door and the case.
pub(super) type Cells = BTreeMap<(usize, Case), String>;

/// A door in words: its name, what it does, and the six cells.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) act: String,
    pub(super) cells: [String; 6],
}

/// The lines of doors over HTTP.
pub(super) fn lines(doors: &[Door], cells: &Cells) -> Vec<Line> {
    let line = |(index, door): (usize, &Door)| {
        let cell = |case: Case| cells[&(index, case)].clone();
        let cases =
            [Case::Nothing, Case::Unknown, Case::Scope, Case::Denied, Case::Hidden, Case::Over];
        Line { name: door.name(), act: act(door), cells: cases.map(cell) }
    };
    doors.iter().enumerate().map(line).collect()
}

/// The act with the scope that it needs.
fn act(door: &Door) -> String {
    match door.act() {
        Some(act) => format!("{} (`{}`)", act.name(), act.scope().name()),
        None if door.thing == Thing::Open => "open".to_owned(),
        None => "any credential".to_owned(),
    }
}

/// Writes the page, or compares it with the one that is kept.
pub(super) fn check(parts: &[(&str, Vec<Line>)]) {
    let mut text = HEAD.to_owned();
    for (title, lines) in parts {
        text.push_str(&format!("\n## {title}\n\n"));
        text.push_str(
            "| endpoint | act (scope) | none | not valid | scope | role | another's | over |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|---|\n");
        for Line { name, act, cells } in lines {
            text.push_str(&format!("| {name} | {act} | {} |\n", cells.join(" | ")));
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(PATH, text).unwrap();
        return;
    }
    let kept = fs::read_to_string(PATH).unwrap_or_else(|error| {
        panic!("docs/reference/access.md: {error}; `UPDATE_EXPECT=1` writes it")
    });
    assert_eq!(text, kept, "docs/reference/access.md: `UPDATE_EXPECT=1` writes it again");
}
