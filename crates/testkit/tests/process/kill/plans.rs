//! The plans that the load runs, and what each of them must have done when it is completed.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use testkit::kill::{Order, Rng};

/// Where the receiver's address goes in the texts below.
pub(super) const RECEIVER: &str = "RECEIVER";
/// How the keys of the sessions begin that orders make.
pub(super) const PREFIX: &str = "kill-";

/// One plan of the load.
pub(super) struct Plan {
    pub(super) id: &'static str,
    path: &'static str,
    text: &'static str,
    /// The steps that write, in the order in which the answer names them.
    pub(super) writes: &'static [&'static str],
}

/// All of them.
pub(super) static PLANS: [Plan; 5] = [
    Plan { id: "kill/read3", path: "kill/read3.yaml", text: READ3, writes: &[] },
    Plan { id: "kill/write3", path: "kill/write3.yaml", text: WRITE3, writes: &["a", "b", "c"] },
    Plan { id: "kill/ask", path: "kill/ask.yaml", text: ASK, writes: &["write"] },
    Plan { id: "kill/approve", path: "kill/approve.yaml", text: APPROVE, writes: &["write"] },
    Plan {
        id: "kill/fan",
        path: "kill/fan.yaml",
        text: FAN,
        writes: &["left", "right", "first", "second", "third"],
    },
];

/// The plan of this id.
pub(super) fn named(id: &str) -> &'static Plan {
    PLANS.iter().find(|plan| plan.id == id).unwrap_or_else(|| panic!("no plan `{id}` here"))
}

/// Paths and texts, with every write going to this receiver.
pub(super) fn files(receiver: SocketAddr) -> Vec<(&'static str, String)> {
    let text = |plan: &Plan| plan.text.replace(RECEIVER, &receiver.to_string());
    let plans = PLANS.iter().map(|plan| (plan.path, text(plan)));
    plans.chain([("kill/look.yaml", LOOK.to_owned())]).collect()
}

/// The settings by which a rule looks at every write of unknown outcome before a person does.
pub(super) const RULES: &str =
    "[supervisor]\non_error = [{ when = { how = \"unknown\" }, plan = \"kill/look\" }]\n";

/// The order of this number: a plan by chance, in a session of its own.
pub(super) fn order(number: u64, rng: &mut Rng) -> Order {
    let plan = &PLANS[rng.below(PLANS.len() as u64) as usize];
    let session = format!("{PREFIX}{number}");
    let items = ["first", "second", "third"];
    let input = json!({"run": session, "number": number, "items": items});
    Order { plan: plan.id.to_owned(), session, input }
}

/// The answer of a completed run: it names the receiver's number of every write, so a result that
/// was lost or made up shows.
pub(super) fn answer(plan: &Plan, session: &str, writes: &BTreeMap<String, Written>) -> String {
    let written = plan.writes.iter().map(|step| writes.get(*step));
    let numbers: Vec<String> = written.flatten().map(|written| written.n.to_string()).collect();
    let numbers = numbers.join(" ");
    match plan.id {
        "kill/read3" => format!("sum {}", number_of(session) + 3),
        "kill/ask" => {
            let word = writes.get("write").map_or("", |written| written.word.as_str());
            format!("heard {word}, wrote {numbers}")
        }
        _ => format!("wrote {numbers}"),
    }
}

/// One write as the receiver saw it.
#[derive(Debug, Clone)]
pub(super) struct Written {
    /// The receiver's number of it.
    pub(super) n: u64,
    /// The person's word that went with it, if one did.
    pub(super) word: String,
}

/// What `http::request` makes of the receiver's answer to this effect: a person who settles a call
/// gives exactly this.
pub(super) fn output(n: u64) -> Value {
    json!({"status": 200, "headers": {}, "body": {"ok": true, "n": n}})
}

fn number_of(session: &str) -> u64 {
    let digits = session.strip_prefix(PREFIX).and_then(|digits| digits.parse().ok());
    digits.unwrap_or_else(|| panic!("`{session}` is no session of this load"))
}

/// A correction that cannot know either: it leaves the write to a person, with what it thinks.
const LOOK: &str = r#"planId: kill/look
description: two looks, and no certainty
steps:
  - {id: one, type: tool_call, toolId: "math::add", arguments: {a: 1, b: 1}, nextStepId: two}
  - {id: two, type: tool_call, toolId: "math::add", arguments: {a: 1, b: 2}, nextStepId: end}
  - {id: end, type: final_response, message: {action: retry, why: nobody can know}}
"#;

const READ3: &str = r#"planId: kill/read3
description: three reads, one after the other
parameters: {type: object, required: [number]}
startStepId: a
steps:
  - id: a
    type: tool_call
    toolId: "math::add"
    arguments: {a: {jsonPath: $.promptInput.number}, b: 1}
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
  - {id: end, type: final_response, message: "sum {{ context.s3 }}"}
"#;

const WRITE3: &str = r#"planId: kill/write3
description: three writes, one after the other
parameters: {type: object, required: [run]}
startStepId: a
steps:
  - id: a
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://RECEIVER/effects"
      body: {run: {jsonPath: $.promptInput.run}, step: a}
    saveAs: w1
    nextStepId: b
  - id: b
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://RECEIVER/slow?ms=40"
      body: {run: {jsonPath: $.promptInput.run}, step: b}
    saveAs: w2
    nextStepId: c
  - id: c
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://RECEIVER/effects"
      body: {run: {jsonPath: $.promptInput.run}, step: c}
    saveAs: w3
    nextStepId: end
  - id: end
    type: final_response
    message: "wrote {{ context.w1.body.n }} {{ context.w2.body.n }} {{ context.w3.body.n }}"
"#;

const ASK: &str = r#"planId: kill/ask
description: a question, then one write that carries the answer
parameters: {type: object, required: [run]}
startStepId: ask
steps:
  - {id: ask, type: human_in_the_loop, message: "which word?", nextStepIdOnInput: write}
  - id: write
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://RECEIVER/effects"
      body:
        run: {jsonPath: $.promptInput.run}
        step: write
        word: {jsonPath: $.context.human_input}
    saveAs: w1
    nextStepId: end
  - id: end
    type: final_response
    message: "heard {{ context.human_input }}, wrote {{ context.w1.body.n }}"
"#;

const APPROVE: &str = r#"planId: kill/approve
description: one write that a person must approve
parameters: {type: object, required: [run]}
startStepId: write
steps:
  - id: write
    type: tool_call
    toolId: "http::request"
    approve: true
    arguments:
      method: POST
      url: "http://RECEIVER/effects"
      body: {run: {jsonPath: $.promptInput.run}, step: write}
    saveAs: w1
    nextStepId: end
  - {id: end, type: final_response, message: "wrote {{ context.w1.body.n }}"}
"#;

const FAN: &str = r#"planId: kill/fan
description: two writes beside each other, then one for each of three items
parameters: {type: object, required: [run, items]}
startStepId: both
steps:
  - id: both
    type: parallel_branch
    branches:
      - id: l
        steps:
          - id: left
            type: tool_call
            toolId: "http::request"
            arguments:
              method: POST
              url: "http://RECEIVER/effects"
              body: {run: {jsonPath: $.promptInput.run}, step: left}
            saveAs: left
      - id: r
        steps:
          - id: right
            type: tool_call
            toolId: "http::request"
            arguments:
              method: POST
              url: "http://RECEIVER/slow?ms=80"
              body: {run: {jsonPath: $.promptInput.run}, step: right}
            saveAs: right
    nextStepId: each
  - id: each
    type: loop_over_items
    collectionPath: {jsonPath: $.promptInput.items}
    itemAlias: item
    concurrency: 3
    loopPlan:
      - id: one
        type: tool_call
        toolId: "http::request"
        arguments:
          method: POST
          url: "http://RECEIVER/effects"
          body: {run: {jsonPath: $.promptInput.run}, step: {jsonPath: $.context.item}}
        saveAs: item_write
    nextStepId: end
  - id: end
    type: final_response
    message: >-
      wrote {{ context.left.body.n }} {{ context.right.body.n }}
      {{ context.each[0].body.n }} {{ context.each[1].body.n }} {{ context.each[2].body.n }}
"#;
