//! The plans among the fixtures: tools to those who call them, runs in truth.

use engine::PlanFile;
use kernel::values::ids::PlanId;

/// All of them, by name; each also says it as its `planId`.
const PLANS: [(&str, &str); 4] = [
    ("confirm_delete", CONFIRM_DELETE),
    ("multi_input", MULTI_INPUT),
    ("protocol_error_job", PROTOCOL_ERROR_JOB),
    ("test_tool_with_task", TEST_TOOL_WITH_TASK),
];

/// A person confirms, then nothing is deleted after all.
const CONFIRM_DELETE: &str = r#"
planId: confirm_delete
description: Deletes a file once a person confirms it; there is no such file.
pace: slow
parameters:
  type: object
  properties:
    filename: {type: string, description: The file to delete}
  required: [filename]
steps:
  - id: confirm
    type: human_in_the_loop
    message: "Delete {{ promptInput.filename }}?"
    expectedInputSchema:
      type: object
      properties:
        confirm: {type: boolean, title: Delete it}
      required: [confirm]
    nextStepIdOnInput: decide
    onDeclined: {nextStepId: kept}
  - id: decide
    type: conditional_branch
    condition: {left: {jsonPath: $.context.human_input.confirm}, operator: equals, right: true}
    onTrue: {nextStepId: deleted}
    onFalse: {nextStepId: kept}
  - {id: deleted, type: final_response, message: "Deleted {{ promptInput.filename }}."}
  - {id: kept, type: final_response, message: "Kept {{ promptInput.filename }}."}
"#;

/// Two people are asked at once.
const MULTI_INPUT: &str = r#"
planId: multi_input
description: Asks for two names at the same time.
pace: slow
parameters: {type: object, properties: {}}
steps:
  - id: both
    type: parallel_branch
    branches:
      - id: first
        steps:
          - id: first_name
            type: human_in_the_loop
            message: Who comes first?
            expectedInputSchema:
              {type: object, properties: {name: {type: string}}, required: [name]}
      - id: second
        steps:
          - id: second_name
            type: human_in_the_loop
            message: Who comes second?
            expectedInputSchema:
              {type: object, properties: {name: {type: string}}, required: [name]}
    nextStepId: done
  - id: done
    type: final_response
    message: "{{ context.inputs.first_name.name }} before {{ context.inputs.second_name.name }}."
"#;

/// Ends for a reason that is no tool's: it goes in a circle until the limit of visits.
const PROTOCOL_ERROR_JOB: &str = r#"
planId: protocol_error_job
description: Goes in a circle until a limit ends its run.
pace: slow
parameters: {type: object, properties: {}}
steps:
  - {id: work, type: tool_call, toolId: slow_compute, arguments: {seconds: 0.3}, nextStepId: there}
  - id: there
    type: conditional_branch
    condition: {left: 1, operator: equals, right: 1}
    onTrue: {nextStepId: back}
    onFalse: {nextStepId: end}
  - id: back
    type: conditional_branch
    condition: {left: 1, operator: equals, right: 1}
    onTrue: {nextStepId: there}
    onFalse: {nextStepId: end}
  - {id: end, type: final_response, message: never}
"#;

/// A question first, then work that takes longer than a caller waits.
const TEST_TOOL_WITH_TASK: &str = r#"
planId: test_tool_with_task
description: Asks for a name, then works for some seconds.
parameters: {type: object, properties: {}}
steps:
  - id: user_name
    type: human_in_the_loop
    message: What is your name?
    expectedInputSchema: {type: object, properties: {name: {type: string}}, required: [name]}
    nextStepIdOnInput: work
  - id: work
    type: tool_call
    toolId: slow_compute
    arguments: {seconds: 2.5, label: work}
    nextStepId: done
  - {id: done, type: final_response, message: "Worked for {{ context.human_input.name }}."}
"#;

/// The plans as files of a project.
pub(crate) fn all() -> Vec<PlanFile> {
    let file = |(name, text): (&str, &str)| PlanFile {
        file: format!("plans/fixtures/{name}.yaml"),
        text: text.to_owned(),
        default_id: PlanId::from(name),
    };
    PLANS.into_iter().map(file).collect()
}
