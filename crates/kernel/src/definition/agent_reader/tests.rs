//! Agents as people write them, and the mistakes they make. A `«` in a text marks where the mistake
//! must be shown.

use super::*;
use crate::definition::plan::source::DEPTH_MAX;
use crate::values::ids::ToolName;

const FULL: &str = r#"refName: calendar-assistant
name: Calendar assistant
description: Looks after a calendar
llmConfigRef: fast
routerLlmConfigRef: small
promptSteps:
  - {order: 2, role: user, content: "Hello, {{ agent }}."}
  - {order: 1, content: "It is {{ now }} in {{ zone }}. Tools: {{ tools }}."}
enabledTools: ["*_event", "*_events", list_calendars]
tool_types:
  calendar: [list_calendars, list_events, create_event]
  maps:
    description: Places and the way to them
    tools: ["search_*"]
approve: [create_event, update_event]
limits: {steps: 8, tokens: 20000, money: 0.25, time: 5m, repeats: 2, compact_tokens: 9000, keep_turns: 6}
zone: Europe/Berlin
"#;

fn load(text: &str) -> ReadAgent {
    read_text(text, "agents/a.yaml", &Limits::default())
}

/// The agent and its warnings; what is wrong with it is shown.
#[track_caller]
fn good(text: &str) -> (Agent, Vec<String>) {
    match load(text) {
        Ok((agent, warnings)) => (agent, warnings.iter().map(ToString::to_string).collect()),
        Err(mistakes) => panic!("{mistakes:#?}\n{text}"),
    }
}

/// An agent with these lines more.
fn with(lines: &str) -> String {
    format!("refName: a\nllmConfigRef: m\n{lines}")
}

/// The place of `«` and the text without it.
fn marked(text: &str) -> (String, (u32, u32)) {
    let (before, after) = text.split_once('«').unwrap();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (format!("{before}{after}"), (line as u32, column as u32))
}

/// The first mistake stands at `«` and begins so.
#[track_caller]
fn bad(text: &str, begins: &str) {
    let (text, (line, column)) = marked(text);
    let mistakes = load(&text).expect_err(&text);
    let told = mistakes[0].to_string();
    let expected = format!("agents/a.yaml:{line}:{column}: error: {begins}");
    assert!(told.starts_with(&expected), "expected {expected}\n     got {told}\n{text}");
}

#[test]
fn all_keys_of_an_agent_are_read() {
    let (agent, warnings) = good(FULL);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        (agent.name.as_str(), agent.title.as_str()),
        ("calendar-assistant", "Calendar assistant")
    );
    assert_eq!((&*agent.model, agent.router_model.as_deref()), ("fast", Some("small")));
    assert!(agent.routed);
    let roles: Vec<PromptRole> = agent.prompt.iter().map(|step| step.role).collect();
    assert_eq!(roles, [PromptRole::System, PromptRole::User], "in their order");
    assert_eq!(agent.types["maps"].description, "Places and the way to them");
    let limits = AgentLimits {
        steps: 8,
        tokens: Some(20_000),
        cost_micros: Some(250_000),
        time_ms: Some(300_000),
        repeats: 2,
        compact_tokens: Some(9_000),
        keep_turns: 6,
    };
    assert_eq!(agent.limits, limits);
    assert_eq!(agent.zone.as_deref(), Some("Europe/Berlin"));
    let create = ToolName::from("create_event");
    assert!(agent.asks_before(&create) && agent.sees(&create, None));
    assert!(!agent.sees(&create, Some(&["maps".to_owned()])));
    assert!(!agent.sees(&ToolName::from("search_places"), None), "it is not enabled");
}

#[test]
fn what_is_left_out_has_defaults() {
    let (agent, warnings) = good(&with(""));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((agent.title.as_str(), agent.description.as_str()), ("a", ""));
    assert_eq!((agent.routed, agent.enabled.is_none(), agent.types.len()), (false, true, 0));
    assert_eq!(agent.limits, AgentLimits::default());
    assert!(agent.prompt.is_empty() && agent.approve.is_empty() && agent.zone.is_none());
}

#[test]
fn commands_are_used_only_where_an_agent_enables_them() {
    assert!(!good(&with("mode: talk\n")).0.commands);
    let (agent, _) = good(&with("mode: commands\nlimits: {steps: 5}\n"));
    assert!(agent.commands);
    // The steps end what goes in circles, unless someone wants it otherwise.
    assert_eq!((agent.limits.steps, agent.limits.repeats), (5, u32::MAX));
    let (agent, _) = good(&with("mode: commands\nlimits: {repeats: 2}\n"));
    assert_eq!((agent.limits.steps, agent.limits.repeats), (20, 2));
    bad(&with("mode: «command\n"), "`mode` cannot be `command`; hint: write `talk` or `commands`");
}

#[test]
fn json_and_alternative_spellings_give_the_same_agent() {
    let value = good(FULL).0.source;
    let (again, _) = read_value(&value).unwrap();
    assert_eq!(again, good(FULL).0, "what is stored is what was read");
    let (json, _) = good(&value.to_string());
    assert_eq!(json, again);
    let spelt = json!({"ref_name": "a", "llm_config_ref": "m", "enabled_tools": ["x"],
        "toolTypes": {"t": ["x"]}, "limits": {"keepTurns": 2, "compactTokens": 5}});
    let (agent, _) = read_value(&spelt).unwrap();
    assert_eq!((agent.limits.keep_turns, agent.limits.compact_tokens), (2, Some(5)));
    let mut keys: Vec<&String> = agent.source.as_object().unwrap().keys().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["enabledTools", "limits", "llmConfigRef", "refName", "tool_types"]);
}

#[test]
fn unknown_members_of_a_value_stay_in_its_source() {
    let entity = json!({
        "id": "6571a1f0c2a4d5e6f7081920", "refName": "a", "name": null, "llmConfigRef": "m",
        "context": [{"order": 0, "role": "user", "content": "hi"}], "enabledTools": null,
        "dataDomain": {"tenantId": "t"}, "auditInfo": null,
    });
    let (agent, warnings) = read_value(&entity).unwrap();
    assert_eq!((&*agent.source, warnings.len()), (&entity, 0));
    assert_eq!(agent.prompt[0].content, "hi");
    // A likely typing mistake is reported: no one would be asked.
    let slip = json!({"refName": "a", "llmConfigRef": "m", "aprove": ["*"]});
    let told = read_value(&slip).unwrap_err()[0].to_string();
    assert_eq!(
        told,
        "error: at `/aprove`: unknown key `aprove` in an agent; hint: did you mean `approve`?"
    );
    let twice = json!({"refName": "a", "llmConfigRef": "m", "promptSteps": [], "context": []});
    let told = read_value(&twice).unwrap_err()[0].to_string();
    assert!(told.contains("`promptSteps` and `context` are the same key"), "{told}");
}

#[test]
fn unknown_keys_in_an_agent_file_are_mistakes() {
    bad(&with("«tool_type: {}\n"), "unknown key `tool_type` in an agent; hint: did you mean");
    bad(&with("«dataDomain: {}\n"), "unknown key `dataDomain` in an agent; hint: the keys are");
    bad(
        &with("limits: {«step: 1}\n"),
        "unknown key `step` in `limits`; hint: did you mean `steps`?",
    );
    let step = "promptSteps:\n  - {content: x, «rôle: user}\n";
    bad(&with(step), "unknown key `rôle` in a prompt step");
    good(&with("x-owner: me\n$schema: y\n"));
}

#[test]
fn what_must_be_there_is_missed() {
    bad("«llmConfigRef: m\n", "`refName` is missing; hint: add `refName: ..` here");
    bad("«refName: a\n", "`llmConfigRef` is missing");
    bad("«refName: a\nllmConfigRef: ~\n", "`llmConfigRef` is missing");
    bad("«just text", "expected a map for an agent, found a text");
    bad(&with("promptSteps: [«{role: user}]\n"), "`content` is missing");
    let told = load("  \n").unwrap_err()[0].to_string();
    assert!(
        told.starts_with("agents/a.yaml:") && told.contains("the text holds no agent"),
        "{told}"
    );
}

#[test]
fn an_agent_name_is_valid_in_a_url_path() {
    for name in ["a b", "a/b", "..", "ü", "a:b"] {
        bad(
            &format!("refName: «{name:?}\nllmConfigRef: m\n"),
            &format!("`{name}` cannot be the name"),
        );
    }
    good("refName: A.b_c-1\nllmConfigRef: m\n");
}

#[test]
fn an_invalid_prompt_template_is_a_mistake() {
    let step = |content: &str| with(&format!("promptSteps:\n  - content: «{content:?}\n"));
    bad(&step("{{ nwo }} x"), "`{{ nwo }}` is not known in a prompt");
    bad(
        &step("{{ user_name }}"),
        "`{{ user_name }}` is not known in a prompt; hint: a prompt may use `{{ now }}`",
    );
    bad(&step("{{ zoen }}"), "`{{ zoen }}` is not known in a prompt; hint: did you mean `zone`?");
    bad(&step("{{ now"), "the text cannot be filled: ");
    bad(
        &step("{{ now | shout }}"),
        "the text cannot be filled: there is no filter `shout`; use one of `default`, ",
    );
    bad(
        &with("promptSteps: [{content: x, role: «admin}]\n"),
        "`role` cannot be `admin`; hint: write",
    );
    bad(&with("promptSteps: [{content: x, order: «first}]\n"), "`order` must be a whole number");
    good(&step("{{ now }} {% if tools %}{{ tools | upper }}{% endif %}").replace('«', ""));
}

#[test]
fn foreign_placeholders_are_kept_in_stored_agents() {
    let stored = |content: &str| {
        let steps = json!([{"content": content}]);
        read_value(&json!({"refName": "a", "llmConfigRef": "m", "context": steps}))
    };
    let (agent, warnings) = stored("You work for {{tenantName}}. It is {{ now }}.").unwrap();
    assert_eq!(agent.prompt[0].content, "You work for {{tenantName}}. It is {{ now }}.");
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let expected = "warning: at `/context/0/content`: `{{ tenantName }}` is not known in a prompt: \
                    models read it as it is; hint: a prompt may use `{{ now }}`";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    for refused in ["{{ nwo }}", "{{ tenant.name }}", "{{ tenantName"] {
        assert!(stored(refused).is_err(), "{refused}");
    }
}

#[test]
fn patterns_and_types_are_checked() {
    bad(&with("enabledTools: [«\"a b\"]\n"), "`a b` has a ` `");
    bad(&with("approve: «create_event\n"), "expected a list, found a text");
    bad(&with("tool_types: «[a]\n"), "expected a map of tool types, found a list");
    bad(&with("tool_types: {a: «x}\n"), "expected a list of tools, or a map");
    bad(&with("tool_types: {a: «{description: x}}\n"), "`tools` is missing");
    bad(&with("router: «true\n"), "a router chooses among types of tools");
    let (_, warnings) =
        good(&with("enabledTools: []\ntool_types: {a: []}\nrouterLlmConfigRef: x\n"));
    assert!(warnings[0].contains("3:15: warning: the agent sees no tools"), "{warnings:?}");
    assert!(warnings[1].contains("4:17: warning: this type has no tools"), "{warnings:?}");
    let idle = good(&with("router: false\ntool_types: {a: [x]}\nrouterLlmConfigRef: x\n")).1;
    assert!(idle[0].contains("`routerLlmConfigRef` has no effect"), "{idle:?}");
}

#[test]
fn limits_are_numbers_money_and_times() {
    for (wrong, begins) in [
        ("steps: «0", "`steps` must be a whole number from 1 on"),
        ("tokens: «1.5", "`tokens` must be a whole number"),
        ("repeats: «many", "`repeats` must be a whole number"),
        ("money: «-1", "`money` cannot be `-1`"),
        ("money: «\"1 euro\"", "`money` cannot be `1 euro`"),
        ("money: «0", "`money` cannot be `0`"),
        ("time: «5", "expected a text, found a number"),
        ("time: «5 minutes", "`time` cannot be `5 minutes`; hint: write a whole number"),
        ("keep_turns: 1, keepTurns: «2", "`keep_turns` is given twice"),
    ] {
        bad(&with(&format!("limits: {{{wrong}}}\n")), begins);
    }
    for (text, micros) in [
        ("0.5", Some(500_000)),
        ("$2", Some(2_000_000)),
        (" 1.234567 ", Some(1_234_567)),
        ("0.0000001", None),
        ("1.", None),
        (".5", None),
        ("", None),
        ("1e3", None),
        ("99999999999999999", None),
    ] {
        assert_eq!(micros_of_dollars(text), micros, "{text}");
    }
}

#[test]
fn all_mistakes_are_told_in_the_order_of_the_text() {
    let text = "refName: a b\nllmConfigRef: 7\nzone: 'Berlin, Germany'\nlimits: {steps: x}\n";
    let told = load(text).unwrap_err();
    let lines: Vec<u32> = told.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [1, 2, 3, 4], "{told:#?}");
    assert!(told.iter().all(|mistake| mistake.hint.is_some()), "{told:#?}");
}

#[test]
fn limits_apply_to_agents_that_come_as_values() {
    let mut deep = json!("x");
    for _ in 0..DEPTH_MAX + 1 {
        deep = json!([deep]);
    }
    let told = read_value(&json!({"refName": "a", "llmConfigRef": "m", "extra": deep}));
    assert!(told.unwrap_err()[0].message.contains("deep"));
    let large = "x".repeat(Limits::default().plan_bytes_max);
    let told = read_value(&json!({"refName": "a", "llmConfigRef": "m", "description": large}));
    assert!(told.unwrap_err()[0].message.contains("bytes"));
}

#[test]
fn the_schema_of_agents_has_the_keys_that_are_read() {
    use crate::definition::schemas::described::{keys, schema, words};
    use std::collections::BTreeSet;
    let described = schema(crate::definition::schemas::AGENT);
    let read = KEYS.iter().flat_map(|(key, others)| std::iter::once(key).chain(*others)).copied();
    assert_eq!(keys(&described), read.collect::<BTreeSet<_>>());
    let defs = &described["$defs"];
    assert_eq!(keys(&defs["limits"]), limits::KEYS.iter().copied().collect::<BTreeSet<_>>());
    let roles: Vec<&str> = ROLES.iter().map(|(role, _)| *role).collect();
    assert_eq!(words(&defs["promptStep"]["properties"]["role"]), roles);
    let modes: Vec<&str> = MODES.iter().map(|(mode, _)| *mode).collect();
    assert_eq!(words(&described["properties"]["mode"]), modes);
}
