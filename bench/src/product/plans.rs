//! The project folder that the server runs: its settings and the plans that are measured.

use std::path::Path;

use crate::Result;

/// Where the receiver's port goes in the texts below.
const PORT: &str = "RECEIVER_PORT";

const FILES: [(&str, &str); 5] = [
    ("waypost.toml", SETTINGS),
    ("plans/bench/read3.yaml", READ3),
    ("plans/bench/write3.yaml", WRITE3),
    ("plans/bench/loop.yaml", LOOP),
    ("plans/bench/ask.yaml", ASK),
];

const SETTINGS: &str = r#"[tools.http]
allow = ["127.0.0.1:RECEIVER_PORT"]
[limits]
runs_active_max = 4096
"#;

/// What the plans that add need.
const DEMO_TOOLS: &str = "[tools]\ndemo = true\n";

const READ3: &str = r#"planId: bench/read3
description: three additions, each on the result of the one before
parameters: {type: object, required: [n]}
startStepId: a
steps:
  - id: a
    type: tool_call
    toolId: "math::add"
    arguments: {a: {jsonPath: $.promptInput.n}, b: 1}
    saveAs: s1
    nextStepId: b
  - id: b
    type: tool_call
    toolId: "math::add"
    arguments: {a: {jsonPath: $.context.s1}, b: 1}
    saveAs: s2
    nextStepId: c
  - id: c
    type: tool_call
    toolId: "math::add"
    arguments: {a: {jsonPath: $.context.s2}, b: 1}
    saveAs: s3
    nextStepId: end
  - {id: end, type: final_response, message: "sum: {{ context.s3 }}"}
"#;

const WRITE3: &str = r#"planId: bench/write3
description: three requests that change something elsewhere
parameters: {type: object, required: [n]}
startStepId: a
steps:
  - id: a
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://127.0.0.1:RECEIVER_PORT/effects"
      body: {n: {jsonPath: $.promptInput.n}}
    saveAs: w1
    nextStepId: b
  - id: b
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://127.0.0.1:RECEIVER_PORT/effects"
      body: {n: {jsonPath: $.promptInput.n}}
    saveAs: w2
    nextStepId: c
  - id: c
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://127.0.0.1:RECEIVER_PORT/effects"
      body: {n: {jsonPath: $.promptInput.n}}
    saveAs: w3
    nextStepId: end
  - {id: end, type: final_response, message: "written"}
"#;

const LOOP: &str = r#"planId: bench/loop
description: one addition for each item, one after the other
parameters: {type: object, required: [items]}
startStepId: each
steps:
  - id: each
    type: loop_over_items
    collectionPath: {jsonPath: $.promptInput.items}
    itemAlias: item
    concurrency: 1
    loopPlan:
      - id: one
        type: tool_call
        toolId: "math::add"
        arguments: {a: {jsonPath: $.context.item}, b: 1}
        saveAs: sum
    nextStepId: end
  - {id: end, type: final_response, message: "done"}
"#;

const ASK: &str = r#"planId: bench/ask
description: waits for a person
parameters: {type: object}
startStepId: ask
steps:
  - {id: ask, type: human_in_the_loop, message: "go on?", nextStepIdOnInput: end}
  - {id: end, type: final_response, message: "went on"}
"#;

/// Writes the project into an empty folder; its writing plan sends to this port.
pub fn write(project: &Path, receiver_port: u16) -> Result<()> {
    std::fs::create_dir_all(project.join("plans/bench"))?;
    for (path, text) in FILES {
        let text = text.replace(PORT, &receiver_port.to_string());
        std::fs::write(project.join(path), text)?;
    }
    Ok(())
}

/// Has the tools of the demo, in a project that was written.
pub fn switch_on(project: &Path) -> Result<()> {
    let path = project.join("waypost.toml");
    let settings = std::fs::read_to_string(&path)?;
    std::fs::write(path, format!("{settings}{DEMO_TOOLS}"))?;
    Ok(())
}
