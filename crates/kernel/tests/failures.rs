//! Every failed call that there can be: how far it got, what its rule does, and where its step
//! stands. Each is a scene that is written here: it is played, and cut after every event.
#![allow(clippy::unwrap_used, reason = "a test")]

use kernel::definition::pipeline_reader::read_text;
use kernel::limits::Limits;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::scene::Scene;

/// A tool that reads, one that writes, and one whose writes may be repeated under their key.
const READS: &str = "test::read";
const WRITES: &str = "write::it";
const KEYED: &str = "write::idempotent";

/// A pipeline: one reason that a plan handles, all others are an agent's.
const PIPELINE: &str = r#"
name: trades
http: {route: /trades}
schema: {caseIdField: id, allowedFields: [id, reason], requiredFields: [id, reason]}
handlers: [{reason: Late, plan: cases/late}]
tools: ["test::read", "write::it", "write::idempotent"]
llm: {type: stub}
"#;

/// What the rule of a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Retry,
    Correct,
    Propose,
    Draft,
    DraftReads,
    Ask,
    Fail,
}

use Does::{Ask, Correct, Draft, DraftReads, Fail, Propose, Retry};

impl Does {
    const ALL: [Self; 7] = [Retry, Correct, Propose, Draft, DraftReads, Ask, Fail];

    /// As it is written.
    fn rule(self) -> &'static str {
        match self {
            Retry => "{retry: {times: 1, wait_ms: 1}}",
            Correct => "{plan: fixes/mend}",
            Propose => "{propose: {}}",
            Draft => "{draft: {}}",
            DraftReads => "{draft: {auto: reads}}",
            Ask => "ask",
            Fail => "fail",
        }
    }

    /// As an ask that it holds says it; nothing where it holds none.
    fn held(self) -> Option<&'static str> {
        match self {
            Retry => Some("retry"),
            Correct => Some("correct"),
            Propose => Some("propose"),
            Draft | DraftReads => Some("draft"),
            Ask | Fail => None,
        }
    }
}

/// Where the step stands whose call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Plan,
    Branch,
    Loop,
    CollectingLoop,
    SubPlan,
    /// A call that a model made.
    AgentsCall,
    /// A step of the plan that handles a case.
    Handler,
    /// The command of a pipeline's agent.
    Command,
}

/// One failed call.
#[derive(Debug, Clone, Copy)]
struct Failed {
    place: Place,
    /// How far it got.
    how: &'static str,
    does: Does,
    tool: &'static str,
}

/// The outcome of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is made once more, and works.
    Again,
    /// A person says what its outcome is.
    ByHand,
    /// It is an error among the results of its loop.
    Collected,
    /// The run fails.
    Failed,
    /// The model that made it hears of it.
    Told,
}

impl Failed {
    fn all(place: Place) -> Vec<Self> {
        let mut all = Vec::new();
        for does in Does::ALL {
            for (how, tool) in [
                ("not_sent", READS),
                ("not_sent", WRITES),
                ("failed", READS),
                ("failed", WRITES),
                ("unknown", READS),
                ("unknown", WRITES),
                ("unknown", KEYED),
            ] {
                all.push(Self { place, how, does, tool });
            }
        }
        all
    }

    /// Whether it may have happened, and would be done twice if it were made again.
    fn is_lost(self) -> bool {
        self.how == "unknown" && self.tool == WRITES
    }

    /// Whether it may have happened, so that other arguments would be a second write.
    fn may_be_done(self) -> bool {
        self.how == "unknown" && self.tool != READS
    }

    /// Whether a model made it and hears its outcome, so that no rule is asked.
    fn is_for_its_model(self) -> bool {
        self.place == Place::AgentsCall && !self.may_be_done()
    }

    /// Whether its rule acts at all.
    fn is_held(self) -> bool {
        let fits = match self.does {
            Retry => !self.is_lost(),
            Propose => !self.may_be_done(),
            Correct | Draft | DraftReads => true,
            Ask | Fail => false,
        };
        fits && !self.is_for_its_model()
    }

    /// What comes of it, and how often a person is asked.
    fn ends(self) -> (End, usize) {
        if self.is_for_its_model() {
            return (End::Told, 0);
        }
        let unasked = match self.does {
            Retry | Correct => !self.is_lost(),
            Propose | DraftReads => self.tool == READS,
            Draft | Ask | Fail => false,
        };
        let is_collected = self.place == Place::CollectingLoop && !self.is_lost();
        match self.does {
            _ if unasked => (End::Again, 0),
            _ if is_collected => (End::Collected, 0),
            Fail if !self.is_lost() => (End::Failed, 0),
            // Somebody takes what is proposed.
            Propose if !self.may_be_done() => (End::Again, 1),
            Draft | DraftReads if !self.is_lost() => (End::Again, 1),
            // The plan may not repeat it, no matter who had it run.
            Draft | DraftReads => (End::ByHand, 2),
            _ => (End::ByHand, 1),
        }
    }

    /// The list that its rule stands in: a pipeline's own plan has none.
    fn list(self) -> &'static str {
        match self.place {
            Place::Handler | Place::Command => "project",
            _ => "step",
        }
    }

    fn scene(self) -> Scene {
        let Self { place, how, does, tool } = self;
        let on_error = match self.list() {
            "step" => format!(", on_error: [{}]", does.rule()),
            _ => String::new(),
        };
        let rules = match self.list() {
            "step" => String::new(),
            _ => format!("[{}]\n", does.rule()),
        };
        let mut scene = Scene {
            inputs: vec![json!({"items": [1]})],
            tools: vec![format!("{tool} ! {how} Boom it broke"), format!("{tool} = \"well\"")],
            rules,
            proposals: self.proposals(),
            replies: self.replies(),
            ..Scene::default()
        };
        set(&mut scene, place, tool, &on_error);
        scene.plans.push(
            "planId: fixes/mend\nsteps:\n  \
             - {id: say, type: final_response, message: {action: retry}}\n"
                .to_owned(),
        );
        scene
    }

    fn proposals(self) -> Vec<String> {
        let edit = json!({"kind": "fix", "action": "edit", "arguments": {"n": 2}});
        let run = json!({"kind": "fix", "action": "correct", "planId": "drafted/one"});
        let say = json!({"id": "say", "type": "final_response", "message": {"action": "retry"}});
        let plan = json!({"planId": "drafted/one", "steps": [say]});
        let found = match self.does {
            Propose => json!({"reply": edit, "acts": self.tool == READS}),
            Draft => json!({"reply": run, "plan": plan}),
            DraftReads => json!({"reply": run, "plan": plan, "acts": true}),
            Retry | Correct | Ask | Fail => return Vec::new(),
        };
        vec![found.to_string()]
    }

    /// What people reply: they take what is proposed, and say the outcome of all else.
    fn replies(self) -> Vec<String> {
        let by_hand = json!({"action": "settle", "output": "by hand"});
        let first = match self.does {
            Propose if self.is_held() => json!({"action": "edit", "proposal": true}),
            Draft | DraftReads => json!({"action": "correct", "proposal": true}),
            _ => by_hand.clone(),
        };
        vec![first.to_string(), by_hand.to_string()]
    }
}

/// Puts the call where it fails.
fn set(scene: &mut Scene, place: Place, tool: &str, on_error: &str) {
    let work = format!(
        "id: work, type: tool_call, toolId: \"{tool}\", arguments: {{n: 1}}, saveAs: out{on_error}"
    );
    let end = "{id: end, type: final_response, message: done}";
    let plan = |step: &str| format!("planId: scene/plan\nsteps:\n  - {step}\n  - {end}\n");
    let looping = |collect: &str| {
        plan(&format!(
            "{{id: each, type: loop_over_items, collectionPath: {{jsonPath: $.promptInput.items}}, \
             itemAlias: item{collect}, loopPlan: [{{{work}}}], nextStepId: end}}"
        ))
    };
    match place {
        Place::Plan => scene.plans.push(plan(&format!("{{{work}, nextStepId: end}}"))),
        Place::Branch => scene.plans.push(plan(&format!(
            "{{id: both, type: parallel_branch, branches: [{{id: l, steps: [{{{work}}}]}}, \
             {{id: r, steps: [{{id: other, type: tool_call, toolId: \"test::echo\", \
             arguments: {{}}, saveAs: right}}]}}], nextStepId: end}}"
        ))),
        Place::Loop => scene.plans.push(looping("")),
        Place::CollectingLoop => scene.plans.push(looping(", on_error: collect")),
        Place::SubPlan => {
            let sub = "{id: sub, type: plan, planId: scene/inner, arguments: {}, saveAs: inner, \
                       nextStepId: end}";
            scene.plans.push(plan(sub));
            let inner = plan(&format!("{{{work}, nextStepId: end}}"));
            scene.plans.push(inner.replace("scene/plan", "scene/inner"));
        }
        Place::AgentsCall => {
            scene.plans.push(plan(&format!(
                "{{id: talk, type: agent, agent: helper, input: {{jsonPath: $.promptInput}}, \
                 saveAs: answer{on_error}, nextStepId: end}}"
            )));
            scene.agents.push(format!(
                "refName: helper\nname: Helper\ndescription: Helps.\nllmConfigRef: fast\n\
                 enabledTools: [\"{tool}\"]\n"
            ));
            let call = json!({"tool": tool.replace("::", "__"), "arguments": {"n": 1}});
            scene.model.push(json!({"calls": [call]}).to_string());
            scene.model.push(json!({"text": "I know."}).to_string());
        }
        Place::Handler => {
            set_pipeline(scene, "Late");
            let handler = plan(&format!("{{{work}, nextStepId: end}}"));
            scene.plans.push(handler.replace("scene/plan", "cases/late"));
        }
        Place::Command => {
            set_pipeline(scene, "Lost");
            scene.plans.push(format!("planId: cases/late\nsteps:\n  - {end}\n"));
            let command = json!({"intent": "CALL_TOOL", "tool": tool, "args": {"n": 1}});
            scene.model.push(json!({"text": command.to_string()}).to_string());
        }
    }
}

/// A pipeline's plan and agent, as files of these names would tell them, and a case.
fn set_pipeline(scene: &mut Scene, reason: &str) {
    let (pipeline, _) = read_text(PIPELINE, "trades.yaml", "trades", &Limits::default()).unwrap();
    scene.plans.push(as_file(&pipeline.plan_source));
    scene.agents.push(as_file(&pipeline.agent_source));
    scene.inputs = vec![json!({"id": "c1", "reason": reason})];
    scene.options = BTreeMap::from([("space".to_owned(), "case:trades".to_owned())]);
}

fn as_file(source: &Value) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(id) if name == "planId" => format!("{name}: {id}\n"),
        _ => format!("{name}: {value}\n"),
    };
    let text: String = source.as_object().unwrap().iter().map(line).collect();
    text.replace("pipeline/trades", "trades")
}

/// The outcome of the call, by the journal.
fn end_of(lines: &[&str]) -> End {
    let has = |begins: &str| lines.iter().any(|line| line.starts_with(begins));
    if has("=> failed Boom: it broke") {
        return End::Failed;
    }
    assert!(has("=> completed"), "the run did not end");
    if has("item.failed") {
        End::Collected
    } else if has("call.finished \"well\"") {
        End::Again
    } else if has("call.finished \"by hand\"") {
        End::ByHand
    } else {
        End::Told
    }
}

/// Plays one, and gives what is wrong with it.
fn wrong(failed: Failed) -> Option<String> {
    let scene = failed.scene();
    let came = std::panic::catch_unwind(|| scene.play());
    let Ok(came) = came else { return Some(format!("{failed:?} does not play to its end")) };
    let lines: Vec<&str> = came.lines().collect();
    let held = failed
        .does
        .held()
        .map_or_else(String::new, |does| format!(" held by {} 1: {does}, 1 of 1", failed.list()));
    let is_ask = |line: &&&str| line.starts_with("ask.opened");
    let asked = lines.iter().filter(is_ask).filter(|line| !line.contains(" held by ")).count();
    let acted = lines.iter().filter(is_ask).filter(|line| line.contains(" held by ")).count();
    let named = lines.iter().filter(is_ask).filter(|line| line.contains(&held)).count();
    let is_call = |line: &&&str| line.starts_with("call.requested") && line.contains(failed.tool);
    let calls: Vec<&&str> = lines.iter().filter(is_call).collect();
    let (end, person) = failed.ends();
    // What may have happened is repeated under its key, all else is a try of its own.
    let tries: &[&str] = match (end, failed.how) {
        (End::Again, "unknown") if failed.does != Propose => &["try 1", "try 1"],
        (End::Again, _) => &["try 1", "try 2"],
        _ => &["try 1"],
    };
    let fits = end_of(&lines) == end
        && asked == person
        && acted == usize::from(failed.is_held())
        && (acted == 0 || named == acted)
        && calls.len() == tries.len()
        && calls.iter().zip(tries).all(|(call, made)| call.contains(made));
    let told = format!("{failed:?} should end {end:?}, asking {person} times; it came out as:");
    (!fits).then(|| format!("{told}\n{came}"))
}

fn check(place: Place) {
    let all = Failed::all(place);
    assert_eq!(all.len(), 49);
    let wrong: Vec<String> = all.into_iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn failed_steps_of_a_plan_end_as_their_rules_say() {
    check(Place::Plan);
}

#[test]
fn failed_steps_of_a_branch_end_as_their_rules_say() {
    check(Place::Branch);
}

#[test]
fn failed_steps_of_a_loop_end_as_their_rules_say() {
    check(Place::Loop);
}

#[test]
fn failed_steps_of_a_loop_that_collects_end_as_their_rules_say() {
    check(Place::CollectingLoop);
}

#[test]
fn failed_steps_of_a_sub_plan_end_as_their_rules_say() {
    check(Place::SubPlan);
}

#[test]
fn failed_calls_of_an_agent_end_as_its_step_says_where_no_model_hears_of_them() {
    check(Place::AgentsCall);
}

#[test]
fn failed_steps_of_a_pipelines_handler_end_as_the_project_says() {
    check(Place::Handler);
}

#[test]
fn failed_commands_of_a_pipelines_agent_end_as_the_project_says() {
    check(Place::Command);
}
