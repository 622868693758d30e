//! The project of the matrix: plans that end, ask and fail, an agent that asks before it acts, and
//! a pipeline with a port of its own.

use std::fs;
use std::path::Path;
use testkit::harness::Project;

/// The server is behind a proxy, so that everybody needs a credential.
pub(super) const SETTINGS: &str = r#"[server.tls]
by = "proxy"

[tools]
demo = true

[models.rules]
provider = "rules"
rules = "rules/clerk.yaml"

[events.sinks.file]
type = "file"
path = "events.jsonl"
"#;

const ECHO: &str = r#"planId: matrix::echo
description: gives its input back
parameters: {type: object}
startStepId: end
steps:
  - {id: end, type: final_response, message: {jsonPath: $.promptInput}}
"#;

const ASK: &str = r#"planId: matrix::ask
description: asks for a name
parameters: {type: object}
startStepId: ask
steps:
  - id: ask
    type: human_in_the_loop
    message: What is your name?
    expectedInputSchema: {type: object, properties: {name: {type: string}}, required: [name]}
    nextStepIdOnInput: end
  - {id: end, type: final_response, message: thanks}
"#;

const STUCK: &str = r#"planId: matrix::stuck
description: fails, and asks what to do
parameters: {type: object}
startStepId: fail
steps:
  - {id: fail, type: tool_call, toolId: "test::always_fail", arguments: {}, nextStepId: end}
  - {id: end, type: final_response, message: never}
"#;

const PIPELINE: &str = r#"description: Cases of a desk.
addresses: {inbound: desk.in, agent: desk.agent, events: desk.events}
http: {port: 0, route: /desk/cases, requestTimeoutMs: 30000}
schema:
  caseIdField: tradeId
  allowedFields: [tradeId, reason, altIds]
  requiredFields: [tradeId, reason]
agent: {maxSteps: 3, timeoutMs: 30000}
handlers:
  - {reason: Missing ISIN, type: lookup-enrich, params: {identifier: ISIN}}
tools: [{type: publish-event}, {type: raise-ticket}]
llm: {type: stub}
"#;

const AGENT: &str = r#"refName: clerk
llmConfigRef: rules
enabledTools: ["math::add"]
approve: ["math::add"]
"#;

const RULES: &str = r#"version: 1
rules:
  - rule: add
    when: {turn: executor, said: '^add', tools: [math__add]}
    calls:
      - tool: math__add
        args: {a: 1, b: 2}
  - rule: tell
    when: {turn: executor, after: math__add}
    say: it is added
fallback:
  say: there is nothing to add
"#;

/// What a realm can have files of its own for.
pub(super) const DEFINITIONS: [(&str, &str); 5] = [
    ("plans/matrix/echo.yaml", ECHO),
    ("plans/matrix/ask.yaml", ASK),
    ("plans/matrix/stuck.yaml", STUCK),
    ("agents/clerk.yaml", AGENT),
    ("pipelines/desk.yaml", PIPELINE),
];

/// Writes the project into this folder.
pub(super) fn written(folder: &Path) -> Project {
    let project = Project::write(folder, &[], SETTINGS);
    for (path, text) in DEFINITIONS.iter().chain(&[("rules/clerk.yaml", RULES)]) {
        put(folder, path, text);
    }
    project
}

/// Writes a file below this folder.
pub(super) fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
