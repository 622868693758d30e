//! Rules files with mistakes, and small ones that show what each key does.

use super::{Rules, stub_rules};
use kernel::conversation::llm::{
    AnswerForm, Llm, Message, ModelCall, NullDeltaSink, Prompt, ToolCard, ToolChoice, Turn,
};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

fn rules(text: &str) -> Rules {
    let read = Rules::read(text, Path::new("test.yaml"));
    read.unwrap_or_else(|mistakes| panic!("{}", told(&mistakes).join("\n")))
}

fn mistakes(text: &str) -> Vec<String> {
    Rules::read(text, Path::new("r.yaml")).err().map(|all| told(&all)).unwrap_or_default()
}

fn told(mistakes: &[kernel::definition::plan::mistake::Mistake]) -> Vec<String> {
    mistakes.iter().map(ToString::to_string).collect()
}

fn prompt(messages: Vec<Message>, tools: &[&str]) -> Prompt {
    let card = |name: &&str| ToolCard {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: Arc::new(json!({})),
    };
    Prompt {
        trace: None,
        messages,
        tools: tools.iter().map(card).collect(),
        choice: ToolChoice::Auto,
        answer: None,
        latest: None,
        // Sunday, 15 November 2026, 10:30 in Berlin.
        now: Millis(1_794_735_000_000),
        zone: "Europe/Berlin".to_owned(),
    }
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn call(id: &str, tool: &str, arguments: Value) -> Message {
    let id = id.to_owned();
    let tool = tool.to_owned();
    let arguments = Arc::new(arguments);
    let calls = vec![ModelCall { id, tool, arguments }];
    Message::Assistant { text: String::new(), calls, native: None }
}

fn result(id: &str, text: &str, failed: bool) -> Message {
    Message::Result { id: id.to_owned(), tool: String::new(), text: text.to_owned(), failed }
}

fn answer(rules: &Rules, messages: Vec<Message>) -> Turn {
    rules.answer(&prompt(messages, &["find", "send"])).unwrap()
}

fn calls(turn: &Turn) -> Vec<(String, Value)> {
    turn.calls.iter().map(|call| (call.tool.clone(), (*call.arguments).clone())).collect()
}

#[test]
fn a_file_needs_rules_and_a_fallback() {
    assert_eq!(
        mistakes("version: 1\nrules: []\n"),
        ["r.yaml:1:1: error: `fallback` is missing: what is said where no rule holds; hint: add \
             `fallback: {say: I cannot help with that.}`"]
    );
    assert!(mistakes("").join("\n").contains("holds no rules file; hint: it has `version`"));
    assert!(
        mistakes(&["[".repeat(100), "]".repeat(100)].concat())
            .join("\n")
            .contains("rules are not that deep")
    );
    assert!(mistakes("version: 2\nrules: []\nfallback: {say: x}")[0].contains("r.yaml:1:10"));
    assert!(mistakes("a: [").join("\n").starts_with("r.yaml:"));
}

#[test]
fn a_request_that_is_too_long_is_not_read() {
    let rules = rules("version: 1\nrules:\n  - {rule: any, say: heard}\nfallback: {say: no}\n");
    assert_eq!(answer(&rules, vec![user("lunch at noon")]).text, "heard");
    let long = "lunch at noon, ".repeat(10_000);
    assert_eq!(answer(&rules, vec![user(&long)]).text, "no");
    assert_eq!(answer(&rules, vec![user(&long), user("thanks")]).text, "heard");
}

#[test]
fn mistakes_have_a_position_and_a_hint_and_are_reported_together() {
    let text = "\
version: 1
patterns:
  hello: '^hi('
rulez: []
rules:
  - rule: greet
    when: {turn: robot, sayd: x}
    say: 'hi {{ nmae }}'
  - rule: two
    let: {name: \"match('helo', text)\"}
    say: a
    answer: b
fallback: {say: '{{ txet }}'}
";
    let told = mistakes(text);
    let expected = [
        ("r.yaml:3:10: error: the pattern cannot be read: unclosed group", "regex"),
        ("r.yaml:4:1: error: unknown key `rulez` in a rules file", "did you mean `rules`?"),
        ("r.yaml:7:18: error: `turn` cannot be `robot`", "`router` or `executor`"),
        ("r.yaml:7:25: error: unknown key `sayd` in `when`", "did you mean `said`?"),
        ("r.yaml:8:10: error: `nmae` is not known here", "the names here are"),
        (
            "r.yaml:9:5: error: a rule replies in one way",
            "one of `say`, `answer`, `calls` and `command`",
        ),
        ("r.yaml:10:17: error: there is no pattern `helo`", "the patterns are"),
        ("r.yaml:13:17: error: `txet` is not known here", "did you mean `text`?"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (message, hint)) in told.iter().zip(expected) {
        assert!(told.starts_with(message) && told.contains(hint), "{told}\n{message}");
    }
}

#[test]
fn the_first_rule_that_holds_replies() {
    let rules = rules(
        "
version: 1
words: {greeting: [hi, good day]}
rules:
  - rule: greet by name
    when: {said: '^{greeting}, i am (?P<name>\\w+)'}
    say: 'Hello {{ m.name }}!'
  - rule: greet
    when: {said: '^{greeting}', not_said: 'bye'}
    say: Hello!
fallback: {say: 'What is “{{ text }}”?'}
",
    );
    let said = |text: &str| answer(&rules, vec![user(text)]).text;
    assert_eq!(said("Good  day, I am Ann"), "Hello Ann!");
    assert_eq!(said("hi there"), "Hello!");
    assert_eq!(said("hi and bye"), "What is “hi and bye”?");
}

#[test]
fn calls_are_made_once_from_lists_and_templates() {
    let rules = rules(
        "
version: 1
rules:
  - rule: send to all
    let: {names: text|split(' ')|list}
    calls:
      - for_each: names
        as: name
        choose:
          - if: name == 'nobody'
            tool: unknown
          - tool: send
            args:
              to: '{{ name }}'
              copies: '{{ names|length }}'
              text: Dear {{ name }}
              cc: '{{ none }}'
  - rule: report
    say: '{% for call in calls %}{{ call.args.to }}: {{ call.status }} {% endfor %}'
fallback: {say: x}
",
    );
    let turn = answer(&rules, vec![user("ann nobody bob")]);
    let arguments = |name: &str| json!({"to": name, "copies": 3, "text": format!("Dear {name}")});
    let expected = [("send".to_owned(), arguments("ann")), ("send".to_owned(), arguments("bob"))];
    assert_eq!(calls(&turn), expected);
    let messages = vec![
        user("ann nobody bob"),
        call("1", "send", arguments("ann")),
        result("1", "sent", false),
        call("2", "send", arguments("bob")),
        result("2", "no such person", true),
    ];
    assert_eq!(answer(&rules, messages.clone()).text, "ann: ok bob: failed");
    let mut silent = prompt(vec![user("ann")], &["send"]);
    silent.choice = ToolChoice::None;
    assert_eq!(rules.answer(&silent).unwrap().text, "x");
}

#[test]
fn results_answers_and_refusals_can_be_looked_at() {
    let rules = rules(
        "
version: 1
rules:
  - rule: found
    when:
      after: find
      failed: false
      result: [{at: /items, empty: false}, {at: /items/0, matches: '^b'}]
    say: 'found {{ (calls|last).result[\"items\"]|join(\" and \") }}'
  - rule: nothing found
    when: {after: find, result: {at: /items, empty: true}}
    say: nothing
  - rule: refused
    when: {rejected: 'not (?P<what>\\w+)'}
    say: 'so not {{ m.what }}'
  - rule: broken
    when: {failed: true}
    say: 'it broke: {{ (calls|last).outcome }}'
  - rule: answered
    when: {clarified: true}
    say: 'you said {{ (fresh|first).answer }}'
fallback: {say: lost}
",
    );
    let said = |tool: &str, text: &str, failed: bool| {
        let messages = vec![user("go"), call("1", tool, json!({})), result("1", text, failed)];
        answer(&rules, messages).text
    };
    assert_eq!(said("find", "{\"items\": [\"bee\", \"cow\"]}", false), "found bee and cow");
    assert_eq!(said("find", "{\"items\": []}", false), "nothing");
    assert_eq!(said("send", "User rejected this action: not today", false), "so not today");
    assert_eq!(said("send", "too late", true), "it broke: too late");
    assert_eq!(said("ask", "User clarification: a cat", false), "you said a cat");
    assert_eq!(said("send", "sent", false), "lost");
}

#[test]
fn a_form_is_answered_with_json() {
    let rules = rules(
        "
version: 1
rules:
  - rule: route
    when: {turn: router, said: mail}
    answer: {decision: allow, note: 'for {{ text }}', allowed_tool_types: '{{ [\"mail\"] }}'}
  - rule: act
    when: {turn: executor}
    say: done
fallback: {say: I only do mail.}
",
    );
    let routed = |text: &str| {
        let mut prompt = prompt(vec![user(text)], &[]);
        let form = AnswerForm { name: "route".to_owned(), schema: Arc::new(json!({})) };
        prompt.answer = Some(form);
        let text = rules.answer(&prompt).unwrap().text;
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let allowed = json!({"decision": "allow", "note": "for mail", "allowed_tool_types": ["mail"]});
    assert_eq!(routed("mail"), allowed);
    let refused =
        json!({"decision": "refuse", "note": "I only do mail.", "allowed_tool_types": []});
    assert_eq!(routed("fly"), refused);
    assert_eq!(answer(&rules, vec![user("mail")]).text, "done");
}

#[test]
fn a_rule_that_fails_leaves_the_request_to_the_next() {
    let rules = rules(
        "
version: 1
rules:
  - rule: broken
    say: '{{ text / 2 }}'
fallback: {say: fallen back}
",
    );
    assert_eq!(answer(&rules, vec![user("five")]).text, "fallen back");
    assert_eq!(answer(&rules, Vec::new()).text, "fallen back");
    let mut nowhere = prompt(vec![user("5")], &[]);
    nowhere.zone = "Nowhere/Else".to_owned();
    assert!(rules.answer(&nowhere).unwrap_err().message.contains("`Nowhere/Else`"));
}

#[test]
fn a_turn_is_the_same_every_time() {
    let rules = rules("version: 1\nrules: []\nfallback: {say: '{{ now }} {{ when(text).start }}'}");
    let prompt = prompt(vec![user("tomorrow at 3pm")], &[]);
    let turn = || futures::executor::block_on(rules.turn(&prompt, &NullDeltaSink)).unwrap();
    assert_eq!(turn().text, "2026-11-15T10:30:00 2026-11-16T15:00:00");
    assert_eq!(turn(), turn());
}

/// The command that a text is.
fn command(turn: &Turn) -> Value {
    assert!(turn.calls.is_empty());
    serde_json::from_str(&turn.text).unwrap_or_else(|error| panic!("{error}: {}", turn.text))
}

#[test]
fn an_event_is_answered_with_a_command() {
    let rules = rules(
        "
version: 1
rules:
  - rule: look
    when: {if: event and not calls}
    command:
      tool: find
      args: {order: '{{ event.order }}', as: 'order {{ event.order }}', none: '{{ event.none }}'}
      reasoning: It must be {{ text|length }} letters long.
      stop: false
  - rule: send
    when: {after: find, if: event}
    command: {tool: 'send.{{ (calls|last).result.way }}'}
fallback: {say: 'no event in {{ text }}'}
",
    );
    let asked = || user("{\"order\": 7}");
    let looked = json!({
        "intent": "CALL_TOOL", "tool": "find", "args": {"order": 7, "as": "order 7"},
        "stop": false, "reasoning": "It must be 12 letters long.",
    });
    assert_eq!(command(&answer(&rules, vec![asked()])), looked);
    // A command may name what cannot be called: its reader says so.
    let sent = json!({"intent": "CALL_TOOL", "tool": "send.mail", "args": {}, "stop": true});
    let found = [call("1", "find", json!({})), result("1", "{\"way\": \"mail\"}", false)];
    let messages = [vec![asked()], found.to_vec()].concat();
    assert_eq!(command(&answer(&rules, messages)), sent);
    for text in ["hello", "[1]", "{order: 7}", ""] {
        let said = format!("no event in {text}");
        assert_eq!(answer(&rules, vec![user(text)]).text, said.trim());
    }
    // An event may be longer than a request in words.
    let long = json!({"order": "x".repeat(10_000)}).to_string();
    assert_eq!(command(&answer(&rules, vec![user(&long)]))["tool"], "find");
    assert!(answer(&rules, vec![user(&"x".repeat(10_000))]).text.starts_with("no event in x"));
}

#[test]
fn a_wrong_command_is_reported() {
    let text = "\
version: 1
rules:
  - rule: both
    say: a
    command: {tool: t}
  - rule: slips
    command: {args: {}, stopp: true, stop: 1}
fallback: {say: x}
";
    let told = mistakes(text);
    let expected = [
        ("r.yaml:3:5: error: a rule replies in one way", "`calls` and `command`"),
        ("r.yaml:7:14: error: `tool` is missing", "add `tool: ..` here"),
        ("r.yaml:7:25: error: unknown key `stopp` in a command", "did you mean `stop`?"),
        ("r.yaml:7:44: error: expected true or false", "write true or false here"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (message, hint)) in told.iter().zip(expected) {
        assert!(told.starts_with(message) && told.contains(hint), "{told}\n{message}");
    }
}

#[test]
fn a_command_is_no_answer_in_a_form() {
    let rules =
        rules("version: 1\nrules:\n  - {rule: any, command: {tool: t}}\nfallback: {say: no}");
    let mut asked = prompt(vec![user("{}")], &[]);
    assert_eq!(command(&rules.answer(&asked).unwrap())["tool"], "t");
    asked.answer = Some(AnswerForm { name: "route".to_owned(), schema: Arc::new(json!({})) });
    assert!(rules.answer(&asked).unwrap().text.contains("refuse"));
}

#[test]
fn the_stub_raises_a_ticket_or_escalates() {
    let rules = rules(stub_rules());
    let decided = |event: Value| command(&answer(&rules, vec![user(&event.to_string())]));
    for reason in ["LEI not found in registry", "no lei", "Leidos is gone"] {
        let args = json!({
            "tradeId": "T-200", "category": "ReferenceData", "summary": "Counterparty LEI issue",
            "detail": format!("Failure reason: {reason}"),
        });
        let ticket =
            json!({"intent": "CALL_TOOL", "tool": "case.raiseTicket", "args": args, "stop": true});
        assert_eq!(decided(json!({"tradeId": "T-200", "reason": reason})), ticket);
    }
    let escalated = |event: Value| {
        let command = decided(event);
        assert_eq!((&command["tool"], &command["stop"]), (&json!("events.publish"), &json!(true)));
        assert!(command["expected"].is_string());
        command["args"].clone()
    };
    let told = |field: &str, id: Value, reason: &str| {
        let kind = "TradeEscalated";
        json!({"type": kind, field: id, "by": "agent", "reason": reason})
    };
    let event = json!({"tradeId": "T-300", "altIds": [1], "reason": "Something else"});
    assert_eq!(escalated(event), told("tradeId", json!("T-300"), "Something else"));
    // A case may be named by another field, and by a number.
    let event = json!({"altIds": [1], "orderId": 7, "reason": "late"});
    assert_eq!(escalated(event), told("orderId", json!(7), "late"));
    let event = json!({"amount": 1, "order_id": "o-1"});
    assert_eq!(escalated(event), told("order_id", json!("o-1"), ""));
    let ticket = decided(json!({"orderId": 7, "reason": "LEI"}));
    assert_eq!((&ticket["args"]["key"], ticket["args"].get("tradeId")), (&json!("7"), None));
    // What was done for an earlier request of the case changes nothing.
    let first = [user("{\"tradeId\": \"T-1\", \"reason\": \"LEI\"}")];
    let done = [call("1", "case__raiseTicket", json!({})), result("1", "{}", false)];
    let messages = [first.to_vec(), done.to_vec(), first.to_vec()].concat();
    assert_eq!(command(&answer(&rules, messages))["tool"], "case.raiseTicket");
    assert!(answer(&rules, vec![user("hello")]).text.starts_with("There is nothing"));
}

#[test]
fn escaped_names_are_those_of_the_tools_that_are_shown() {
    let file = |name: &str| {
        format!(
            "version: 1\nreads: [{name}]\nrules:\n  \
             - {{rule: found, when: {{after: {name}}}, say: found}}\n  \
             - {{rule: find, when: {{tools: [{name}]}}, calls: [{{tool: {name}, args: {{}}}}]}}\n\
             fallback: {{say: nothing}}\n"
        )
    };
    for name in ["shop__find", "shop_-2efind"] {
        let rules = rules(&file(name));
        let asked = |messages| rules.answer(&prompt(messages, &["shop__find"])).unwrap();
        assert_eq!(calls(&asked(vec![user("find it")])), [(name.to_owned(), json!({}))]);
        for said in ["shop__find", "shop_-2efind"] {
            let done = [call("1", said, json!({})), result("1", "{}", false)];
            let messages = [vec![user("find it")], done.to_vec()].concat();
            assert_eq!(asked(messages).text, "found", "{name} after {said}");
        }
    }
    // Where both tools are shown, each name is its own tool's.
    let rules = rules(&file("shop__find"));
    let both = ["shop__find", "shop_-2efind"];
    let done = [call("1", "shop_-2efind", json!({})), result("1", "{}", false)];
    let messages = [vec![user("find it")], done.to_vec()].concat();
    let turn = rules.answer(&prompt(messages, &both)).unwrap();
    assert_eq!(calls(&turn), [("shop__find".to_owned(), json!({}))]);
}
