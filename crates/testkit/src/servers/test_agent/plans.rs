//! The plans of the test agent: each does one thing that a test suite asks for.

use engine::PlanFile;
use kernel::values::ids::PlanId;

/// The steps of all of them, by name.
const PLANS: [(&str, &str); 14] = [
    ("complete", COMPLETE),
    ("quiet", QUIET),
    ("artifact-text", ARTIFACT_TEXT),
    ("artifact-file", ARTIFACT_FILE),
    ("artifact-file-url", ARTIFACT_FILE_URL),
    ("artifact-data", ARTIFACT_DATA),
    ("chunked", CHUNKED),
    ("chunked-appended", CHUNKED_APPENDED),
    ("input-required", INPUT_REQUIRED),
    ("multi-turn", MULTI_TURN),
    ("reject", REJECT),
    ("fail", FAIL),
    ("long", LONG),
    ("endless", ENDLESS),
];

const COMPLETE: &str = r#"
  - {id: end, type: final_response, message: "The task is complete."}
"#;

/// Completes, and makes nothing.
const QUIET: &str = r#"
  - {id: tell, type: publish_event, event: {type: TckQuiet}}
"#;

const ARTIFACT_TEXT: &str = r#"
  - id: made
    type: publish_event
    event:
      type: a2a.artifact
      artifactId: text
      name: text
      lastChunk: true
      parts: [{text: Generated text content}]
"#;

const ARTIFACT_FILE: &str = r#"
  - id: made
    type: publish_event
    event:
      type: a2a.artifact
      artifactId: file
      name: output.txt
      lastChunk: true
      parts: [{raw: dGNr, mediaType: text/plain, filename: output.txt}]
"#;

const ARTIFACT_FILE_URL: &str = r#"
  - id: made
    type: publish_event
    event:
      type: a2a.artifact
      artifactId: file-url
      name: output.txt
      lastChunk: true
      parts:
        - {url: "https://example.com/output.txt", mediaType: text/plain, filename: output.txt}
"#;

const ARTIFACT_DATA: &str = r#"
  - id: made
    type: publish_event
    event:
      type: a2a.artifact
      artifactId: data
      name: data
      lastChunk: true
      parts: [{data: {key: value, count: 42}, mediaType: application/json}]
"#;

const CHUNKED: &str = r#"
  - id: one
    type: publish_event
    event: {type: a2a.artifact, artifactId: chunked, name: chunked, parts: [{text: chunk-1}]}
    nextStepId: two
  - id: two
    type: publish_event
    event:
      type: a2a.artifact
      artifactId: chunked
      append: true
      lastChunk: true
      parts: [{text: chunk-2}]
"#;

const CHUNKED_APPENDED: &str = r#"
  - id: one
    type: publish_event
    event:
      type: a2a.artifact
      artifactId: chunked
      name: chunked
      append: true
      parts: [{text: chunk-1}]
    nextStepId: two
  - id: two
    type: publish_event
    event:
      type: a2a.artifact
      artifactId: chunked
      append: true
      lastChunk: true
      parts: [{text: chunk-2}]
"#;

const INPUT_REQUIRED: &str = r#"
  - {id: ask, type: human_in_the_loop, message: "What else is needed?", nextStepIdOnInput: end}
  - {id: end, type: final_response, message: "Thank you for the answer."}
"#;

/// Asks until an answer says that this is all.
const MULTI_TURN: &str = r#"
  - id: ask
    type: human_in_the_loop
    message: "What next? Reply `done` to finish."
    nextStepIdOnInput: check
  - id: check
    type: conditional_branch
    condition: {left: {jsonPath: $.context.human_input}, operator: equals, right: done}
    onTrue: {nextStepId: end}
    onFalse: {nextStepId: ask}
  - {id: end, type: final_response, message: "The conversation is over."}
"#;

const REJECT: &str = r#"
  - {id: refuse, type: tool_call, toolId: "tck::reject", arguments: {}, on_error: fail}
"#;

const FAIL: &str = r#"
  - {id: fail, type: tool_call, toolId: "tck::fail", arguments: {}, on_error: fail}
"#;

const LONG: &str = r#"
  - {id: wait, type: tool_call, toolId: "tck::wait", arguments: {seconds: 5}, nextStepId: end}
  - {id: end, type: final_response, message: "The long task is complete."}
"#;

const ENDLESS: &str = r#"
  - {id: wait, type: tool_call, toolId: "tck::wait", arguments: {seconds: 3600}}
"#;

/// The plans as files of a project.
pub(super) fn all() -> Vec<PlanFile> {
    let file = |(name, steps): (&str, &str)| PlanFile {
        file: format!("plans/tck/{name}.yaml"),
        text: format!(
            "planId: tck/{name}\ndescription: What a test suite asks for by `{name}`.\n\
             parameters: {{type: object}}\nsteps:{steps}"
        ),
        default_id: PlanId::from(format!("tck/{name}")),
    };
    PLANS.into_iter().map(file).collect()
}
