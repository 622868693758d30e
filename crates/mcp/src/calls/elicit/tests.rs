//! Each kind of ask, there and back.

use super::*;
use crate::client::ClientCapabilities;
use kernel::values::ids::{AskId, CallId, ContentHash, FrameId, Millis, RunId, StepId};

fn ask(body: AskBody) -> Ask {
    Ask {
        id: AskId(7),
        run: RunId(1),
        frame: FrameId(1),
        step: StepId::from("s"),
        title: "t".to_owned(),
        body,
        digest: ContentHash::of(b""),
        created_at: Millis(0),
        expires_at: None,
        wanted: None,
        answerers: None,
        subject: None,
        held: None,
        tried: Vec::new(),
        next: kernel::ask::context::NextSteps::default(),
        about: Vec::new(),
    }
}

fn client(version: Version) -> Client {
    let can = ClientCapabilities { form: true, page: true, ..ClientCapabilities::default() };
    Client { version, can, log: None, progress: None }
}

fn modern() -> Client {
    client(Version::July2026)
}

fn call(id: u128, arguments: Value) -> AskedCall {
    AskedCall { call_id: CallId(id), tool: "math::add".into(), arguments: Arc::new(arguments) }
}

fn heard(ask: &Ask, answer: &Value) -> Result<ElicitOutcome, ElicitError> {
    read(ask, answer, Version::July2026, 100)
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn is_misfit(said: &Result<ElicitOutcome, ElicitError>) -> bool {
    matches!(said, Err(ElicitError::Misfit(_)))
}

#[test]
fn a_question_is_one_field() {
    let ask = ask(AskBody::Clarify { message: "go on?".to_owned(), questions: Vec::new() });
    let params = request(&ask, &modern(), 10).unwrap();
    assert_eq!(params["message"], "go on?");
    assert_eq!(params["requestedSchema"]["required"], json!(["answer"]));
    let said = heard(&ask, &accept(json!({"answer": "yes"})));
    assert_eq!(said, Ok(ElicitOutcome::Reply(Reply::Clarify { answer: Some(json!("yes")) })));
    let declined = heard(&ask, &json!({"action": "decline"}));
    assert_eq!(declined, Ok(ElicitOutcome::Reply(Reply::Clarify { answer: None })));
    assert_eq!(heard(&ask, &json!({"action": "cancel"})), Ok(ElicitOutcome::Nothing));
    for wrong in [accept(json!({})), accept(json!({"answer": 1})), json!({"action": "accept"})] {
        assert!(is_misfit(&heard(&ask, &wrong)), "{wrong}");
    }
    for wrong in [json!({}), json!(1), json!({"action": "perhaps"}), json!({"action": 1})] {
        assert!(matches!(heard(&ask, &wrong), Err(ElicitError::Malformed(_))), "{wrong}");
    }
}

#[test]
fn several_questions_of_an_agent_are_one_field_each() {
    let asked = |id, question: &str, context: &str| Question {
        call_id: CallId(id),
        question: question.to_owned(),
        context: context.to_owned(),
    };
    let questions = vec![asked(1, "what?", ""), asked(2, "when?", "the meeting")];
    let several = ask(AskBody::Clarify { message: "what?\nwhen?".to_owned(), questions });
    let schema = &request(&several, &modern(), 10).unwrap()["requestedSchema"];
    assert_eq!(schema["required"], json!(["answer_1", "answer_2"]));
    assert_eq!(schema["properties"]["answer_2"]["description"], "the meeting");
    let said = heard(&several, &accept(json!({"answer_1": "a walk", "answer_2": "at 3"})));
    let by_call = json!({CallId(1).to_string(): "a walk", CallId(2).to_string(): "at 3"});
    assert_eq!(said, Ok(ElicitOutcome::Reply(Reply::Clarify { answer: Some(by_call) })));
    assert!(is_misfit(&heard(&several, &accept(json!({"answer_1": "a walk"})))));
    let questions = vec![asked(1, "what?", "")];
    let one = ask(AskBody::Clarify { message: "what?".to_owned(), questions });
    let said = heard(&one, &accept(json!({"answer": "a walk"})));
    let by_call = json!({CallId(1).to_string(): "a walk"});
    assert_eq!(said, Ok(ElicitOutcome::Reply(Reply::Clarify { answer: Some(by_call) })));
}

#[test]
fn a_form_of_plain_fields_is_shown_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "default": "Ann", "pattern": "^A"},
            "mail": {"type": "string", "format": "email"},
            "id": {"type": "string", "format": "uuid"},
            "age": {"type": "integer", "minimum": 0},
            "sure": {"type": "boolean"},
            "one": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
            "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1},
            "more": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let ask = ask(AskBody::Fill { message: "who?".to_owned(), schema: Arc::new(schema.clone()) });
    let params = request(&ask, &modern(), 10).unwrap();
    let shown = &params["requestedSchema"];
    let mut expected = schema;
    expected.as_object_mut().unwrap().remove("additionalProperties");
    expected["properties"]["name"].as_object_mut().unwrap().remove("pattern");
    expected["properties"]["id"].as_object_mut().unwrap().remove("format");
    assert_eq!(*shown, expected);
    let content = json!({"name": "Ann"});
    let said = heard(&ask, &accept(content.clone()));
    assert_eq!(said, Ok(ElicitOutcome::Reply(Reply::Fill { content: Some(content) })));
    let declined = heard(&ask, &json!({"action": "decline"}));
    assert_eq!(declined, Ok(ElicitOutcome::Reply(Reply::Fill { content: None })));
    assert_eq!(request(&ask, &client(Version::June2025), 10), None, "no lists before 2025-11-25");
}

#[test]
fn an_older_version_gets_titles_beside_the_values() {
    let choice = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]});
    let shown = plain_field(&choice, Version::June2025).unwrap();
    assert_eq!(shown, json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}));
}

#[test]
fn a_richer_form_is_none_or_one_text() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "string"}),
        json!({"type": "object", "properties": {"a": {"type": "object"}}}),
        json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
        json!({"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}}),
        json!({"type": "object", "properties": {"a": {"type": "string", "oneOf": [{"const": 1}]}}}),
        json!({"type": "object", "properties": {}, "required": ["a"]}),
        json!({"type": "object", "properties": {}, "allOf": []}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/x"}}}),
    ] {
        let body = AskBody::Fill { message: "who?".to_owned(), schema: Arc::new(schema.clone()) };
        let ask = ask(body);
        assert_eq!(request(&ask, &modern(), 10), None, "{schema}");
        let text = request_or_text(&ask, &modern(), 10).unwrap();
        assert!(text["message"].as_str().unwrap().contains(&schema.to_string()));
        let said = heard(&ask, &accept(json!({"answer": "{\"a\": [1]}"})));
        let content = Some(json!({"a": [1]}));
        assert_eq!(said, Ok(ElicitOutcome::Reply(Reply::Fill { content })));
        assert!(is_misfit(&heard(&ask, &accept(json!({"answer": "{a"})))));
    }
}

#[test]
fn an_approval_shows_what_would_be_called() {
    let one = ask(AskBody::Approve { calls: vec![call(1, json!({"a": 1}))] });
    let params = request(&one, &modern(), 100).unwrap();
    assert_eq!(params["message"], "May `math::add` be called with\n{\n  \"a\": 1\n}");
    assert_eq!(params["requestedSchema"]["required"], json!(["approve"]));
    let yes = CallDecision { call_id: CallId(1), approve: true, feedback: None, arguments: None };
    let said = heard(&one, &accept(json!({"approve": true, "feedback": " "})));
    assert_eq!(said, Ok(ElicitOutcome::Reply(Reply::Approve { decisions: vec![yes.clone()] })));
    assert!(is_misfit(&heard(&one, &accept(json!({"approve": "yes"})))));
    let Ok(ElicitOutcome::Reply(Reply::Approve { decisions })) =
        heard(&one, &json!({"action": "decline"}))
    else {
        panic!("a declined approval is a rejection");
    };
    assert!(!decisions[0].approve && decisions[0].feedback.is_some());

    let two = ask(AskBody::Approve { calls: vec![call(1, json!({})), call(2, json!({}))] });
    let params = request(&two, &modern(), 100).unwrap();
    assert_eq!(params["requestedSchema"]["required"], json!(["approve_1", "approve_2"]));
    let wordless = heard(&one, &accept(json!({"approve": false})));
    let Ok(ElicitOutcome::Reply(Reply::Approve { decisions })) = wordless else {
        panic!("{wordless:?}")
    };
    assert_eq!(decisions[0].feedback.as_deref(), Some(NO_WORDS), "an agent reads it");
    let content = json!({"approve_1": true, "approve_2": false, "feedback": "one will do"});
    let Ok(ElicitOutcome::Reply(Reply::Approve { decisions })) = heard(&two, &accept(content))
    else {
        panic!("both are decided");
    };
    assert!(decisions[0].approve && !decisions[1].approve);
    assert_eq!(decisions[1].feedback.as_deref(), Some("one will do"));
    assert!(is_misfit(&heard(&two, &accept(json!({"approve_1": true})))));
}

#[test]
fn calls_too_long_to_show_are_not_approved_by_a_form() {
    let calls = vec![call(1, json!({})), call(2, json!({"text": "\u{e9}".repeat(100)}))];
    let long = ask(AskBody::Approve { calls });
    let params = request(&long, &modern(), 100).unwrap();
    assert_eq!(params["requestedSchema"], json!({"type": "object", "properties": {}}));
    let message = params["message"].as_str().unwrap();
    let id = AskId(7);
    assert!(message.contains("too long to show here"), "{message}");
    assert!(message.contains(&format!("`waypost inbox show {id}`")), "{message}");
    assert!(message.contains(&format!("/api/v1/asks/{id}")), "{message}");
    assert!(!message.contains('\u{e9}'), "{message}");
    let yes = accept(json!({"approve_1": true, "approve_2": true}));
    for answer in
        [yes, accept(json!({})), json!({"action": "decline"}), json!({"action": "cancel"})]
    {
        assert_eq!(heard(&long, &answer), Ok(ElicitOutcome::Nothing), "{answer}");
    }
    // One character less can be shown, and then decided.
    let fits = ask(AskBody::Approve { calls: vec![call(1, json!("x".repeat(98)))] });
    assert_eq!(request(&fits, &modern(), 99).unwrap()["requestedSchema"]["required"], Value::Null);
    let shown = request(&fits, &modern(), 100).unwrap();
    assert_eq!(shown["requestedSchema"]["required"], json!(["approve"]));
}

#[test]
fn invisible_characters_of_a_call_are_shown_escaped() {
    let hiding = AskedCall {
        tool: "mail.send\u{200b}".into(),
        ..call(1, json!({"cc\u{e0041}": "\u{2066}x\u{200d}y", "to": "alice\u{202e}moc.live@bob"}))
    };
    let asked = ask(AskBody::Approve { calls: vec![hiding.clone()] });
    let params = request(&asked, &modern(), 1_000).unwrap();
    assert_eq!(
        params["message"],
        "May `mail.send\\u{200b}` be called with\n{\n  \"cc\\udb40\\udc41\": \
         \"\\u2066x\\u200dy\",\n  \"to\": \"alice\\u202emoc.live@bob\"\n}"
    );
    let title = &params["requestedSchema"]["properties"]["approve"]["title"];
    assert_eq!(*title, "Call `mail.send\\u{200b}`");
    let fault = Fault::new("Failed", "no\u{1b}[2J\nApproved\u{202e}");
    let how = CallProgress::NotSent;
    let actions = vec![FixAction::Retry];
    let plans = Vec::new();
    let asked = ask(AskBody::Fix { fault, call: Some(hiding), how, actions, plans });
    let params = request(&asked, &modern(), 10).unwrap();
    let expected = "`mail.send\\u{200b}` failed: Failed: no\\u{1b}[2J\\nApproved\\u{202e}";
    assert_eq!(params["message"], expected);
}

#[test]
fn a_failed_step_offers_what_a_form_can_say() {
    let actions = vec![FixAction::Retry, FixAction::Edit, FixAction::Skip, FixAction::Settle];
    let fault = Fault::new("Timeout", "no answer");
    let how = CallProgress::Unknown;
    let call = Some(call(1, json!({})));
    let ask = ask(AskBody::Fix { fault, call, how, actions, plans: Vec::new() });
    let params = request(&ask, &modern(), 10).unwrap();
    let offered = &params["requestedSchema"]["properties"]["action"]["enum"];
    assert_eq!(*offered, json!(["retry", "skip", "settle"]));
    let message = "outcome unknown: `math::add`: Timeout: no answer\nCheck the other system first: \
                   `settle` if it happened, `retry` if it did not, else `abort`.";
    assert_eq!(params["message"], message);
    let fix = |action, output| {
        Ok(ElicitOutcome::Reply(Reply::Fix { action, arguments: None, output, plan_id: None }))
    };
    let said = heard(&ask, &accept(json!({"action": "retry", "output": ""})));
    assert_eq!(said, fix(FixAction::Retry, None));
    let said = heard(&ask, &accept(json!({"action": "settle", "output": "{\"a\": 1}"})));
    assert_eq!(said, fix(FixAction::Settle, Some(json!({"a": 1}))));
    for wrong in [json!({}), json!({"action": "x"}), json!({"action": "skip", "output": "a b"})] {
        assert!(is_misfit(&heard(&ask, &accept(wrong.clone()))), "{wrong}");
    }
    assert_eq!(heard(&ask, &json!({"action": "decline"})), Ok(ElicitOutcome::Nothing));
}

#[test]
fn a_page_is_opened_where_the_client_can() {
    let message = "log in".to_owned();
    let url = "https://a.test/".to_owned();
    let ask = ask(AskBody::Authorize { message, url });
    let params = request(&ask, &modern(), 10).unwrap();
    assert_eq!(params, json!({"mode": "url", "message": "log in", "url": "https://a.test/"}));
    let legacy = request(&ask, &client(Version::November2025), 10).unwrap();
    assert_eq!(legacy["elicitationId"], AskId(7).to_string());
    assert_eq!(request(&ask, &client(Version::June2025), 10), None);
    let done = heard(&ask, &json!({"action": "accept"}));
    assert_eq!(done, Ok(ElicitOutcome::Reply(Reply::Authorize { done: true })));
    let declined = heard(&ask, &json!({"action": "decline"}));
    assert_eq!(declined, Ok(ElicitOutcome::Reply(Reply::Authorize { done: false })));
}

#[test]
fn a_client_that_shows_no_forms_is_not_asked() {
    let ask = ask(AskBody::Clarify { message: "go on?".to_owned(), questions: Vec::new() });
    let cannot = Client { can: ClientCapabilities::default(), ..modern() };
    assert_eq!(request_or_text(&ask, &cannot, 10), None);
    assert_eq!(request(&ask, &client(Version::March2025), 10), None);
}

#[test]
fn a_repeated_question_says_what_was_wrong() {
    let params = again(question("go on?"), "`answer` must be a text");
    let message = params["message"].as_str().unwrap();
    assert_eq!(message, "That did not fit: `answer` must be a text\n\ngo on?");
}
