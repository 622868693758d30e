//! Conversations over `/run` and `/resume` against the demo, and each way to misuse them: what is
//! asked, what is said, and which events the calendar has afterwards.

use crate::thread_client::{DemoClient, Meant, ThreadReply, answers, approvals, at, creates, with};
use jiff::civil::{DateTime, time};
use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};
use std::thread;

/// The id of a call that nobody asks about.
fn unknown() -> String {
    format!("call_{}", "0".repeat(32))
}

fn tomorrow(now: &Zoned, hour: i8) -> String {
    at(now.date().tomorrow().unwrap(), hour, 0)
}

/// The next such time.
fn next(now: &Zoned, hour: i8) -> String {
    let today = now.date().at(hour, 0, 0, 0);
    if now.datetime() < today { today.to_string() } else { tomorrow(now, hour) }
}

/// A demo over a folder of its own.
fn demo() -> (tempfile::TempDir, DemoClient) {
    let folder = tempfile::tempdir().unwrap();
    let demo = DemoClient::start(&folder.path().join("data"));
    (folder, demo)
}

/// The next event that begins at three in the afternoon, or the last one if all are over; of those
/// that begin together the first.
fn at_three<'a>(listed: &'a [Value], now: &Zoned) -> &'a Value {
    let start = |event: &&Value| event["start"].as_str().unwrap().parse::<DateTime>().unwrap();
    let meetings: Vec<&Value> =
        listed.iter().filter(|event| start(event).time() == time(15, 0, 0, 0)).collect();
    let ahead = meetings.iter().copied().filter(|event| start(event) >= now.datetime());
    let next = ahead.min_by_key(start);
    next.or_else(|| meetings.iter().copied().max_by_key(start)).unwrap()
}

/// "Example: Complex Flow". One meeting begins at 3pm, or two; the first of them is meant.
fn complex(demo: &mut DemoClient) {
    let t = "complex";
    let before = demo.calendar();
    let listed = demo.listed();
    let meant = Meant::from_now();
    let request = "schedule something for me, and move the meeting at 3pm to 4pm";
    let questions = demo.run(t, request).questions(t);
    assert_eq!(questions[0].text, "What would you like to schedule?");
    assert_eq!(questions.len(), 1, "{questions:?}");

    let words = "a dentist appointment on Friday at 10am";
    let update = demo.answer(t, &questions[0], words).call(t);
    let id = &update.arguments["event_id"];
    meant.is(id, |now| at_three(&listed, now)["event_id"].clone());
    let meeting = listed.iter().find(|event| event["event_id"] == *id).unwrap();
    let start = meeting["start"].as_str().unwrap().replace("T15:", "T16:");
    let arguments =
        json!({"calendar_id": "primary", "event_id": meeting["event_id"], "start": start});
    assert_eq!((update.tool.as_str(), &update.arguments), ("update_event", &arguments));
    assert_eq!(demo.calendar(), before, "nothing runs before it is approved");

    let create = demo.decide(t, &[(&update, None)]).call(t);
    meant.is(&create.arguments, |now| {
        let friday = |days: &i64| (now.date() + days.days()).strftime("%A").to_string() == "Friday";
        let over = now.datetime() >= now.date().at(10, 0, 0, 0);
        let days = (0..=7).filter(|days| *days > 0 || !over).find(friday).unwrap();
        creates("Dentist Appointment", &at(now.date() + days.days(), 10, 0))
    });
    let end = meeting["end"].as_str().unwrap().replace("T15:", "T16:");
    let name = meeting["name"].as_str().unwrap();
    let rest: Vec<_> = before.iter().filter(|event| event.2 != name).cloned().collect();
    let moved = with(&rest, [(start, end, name.to_owned())]);
    assert_eq!(demo.calendar(), moved, "only what was approved has run");

    let done = demo.decide(t, &[(&create, None)]);
    let response = done.success();
    assert!(response.contains(name) && response.contains("Dentist Appointment"), "{response}");
    assert_eq!(demo.calendar(), with(&moved, [create.event()]));
}

/// "Test 1: Clarification Flow".
fn clarification(demo: &mut DemoClient) {
    let t = "test-clarify";
    let before = demo.calendar();
    let questions = demo.run(t, "schedule something").questions(t);
    assert_eq!(questions.len(), 1, "{questions:?}");
    let meant = Meant::from_now();
    let create = demo.answer(t, &questions[0], "a meeting tomorrow at 3pm").call(t);
    meant.is(&create.arguments, |now| creates("Meeting", &tomorrow(now, 15)));
    assert_eq!(demo.calendar(), before);
    assert!(demo.decide(t, &[(&create, None)]).success().contains("created"));
    assert_eq!(demo.calendar(), with(&before, [create.event()]));
}

/// "Test 2: Direct Approval".
fn approval(demo: &mut DemoClient) {
    let t = "test-1";
    let before = demo.calendar();
    let meant = Meant::from_now();
    let create = demo.run(t, "create a meeting called Standup tomorrow at 9am").call(t);
    meant.is(&create.arguments, |now| creates("Standup", &tomorrow(now, 9)));
    assert_eq!(demo.calendar(), before);
    assert!(demo.decide(t, &[(&create, None)]).success().contains("Standup"));
    assert_eq!(demo.calendar(), with(&before, [create.event()]));
}

/// "Test 2: Rejection with Feedback".
fn rejection(demo: &mut DemoClient) {
    let t = "test-2";
    let before = demo.calendar();
    let meant = Meant::from_now();
    let wrong = demo.run(t, "create an event called Dentist tomorrow at 9am").call(t);
    meant.is(&wrong.arguments, |now| creates("Dentist", &tomorrow(now, 9)));
    let right = demo.decide(t, &[(&wrong, Some("Wrong time, should be 10am"))]).call(t);
    let day = wrong.text("start").split('T').next().unwrap();
    assert_eq!(right.arguments, creates("Dentist", &format!("{day}T10:00:00")));
    assert_ne!(right.id, wrong.id);
    assert_eq!(demo.calendar(), before);
    assert!(demo.decide(t, &[(&right, None)]).success().contains("10:00 AM"));
    assert_eq!(demo.calendar(), with(&before, [right.event()]));
}

/// "Test 3: Partial Approval".
fn partial(demo: &mut DemoClient) {
    let t = "test-3";
    let before = demo.calendar();
    let request = "create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm";
    let meant = Meant::from_now();
    let calls = demo.run(t, request).calls(t);
    assert_eq!(calls.len(), 2, "{calls:?}");
    meant.is(&calls[0].arguments, |now| creates("Team Meeting", &next(now, 10)));
    meant.is(&calls[1].arguments, |now| creates("Lunch with Bob", &next(now, 12)));
    let no = Some("I have other lunch plans");
    let done = demo.decide(t, &[(&calls[0], None), (&calls[1], no)]);
    let response = done.success();
    assert!(response.contains("Team Meeting has been created"), "{response}");
    assert!(response.contains("Lunch with Bob was not created"), "{response}");
    assert_eq!(demo.calendar(), with(&before, [calls[0].event()]));
}

#[test]
fn documented_flows_do_what_was_approved_and_no_more() {
    let (_folder, mut demo) = demo();
    assert_eq!(demo.get("/health-check"), json!("Server is healthy"));
    for flow in [complex, clarification, approval, rejection, partial] {
        flow(&mut demo);
    }
    // All of it is there for any caller, each once.
    let shown = demo.run("shown", "show me what is on my calendar");
    let shown = shown.success();
    for name in ["Standup", "Dentist Appointment", "Team Meeting"] {
        assert_eq!(shown.matches(&format!("- {name}\n")).count(), 1, "{name}: {shown}");
    }
    assert!(!shown.contains("Lunch with Bob"), "{shown}");
    demo.stop();
}

#[test]
fn of_two_events_at_one_time_the_first_is_changed_without_asking() {
    let (_folder, mut demo) = demo();
    // After three in the afternoon the event of the first flow begins together with a seeded one.
    for flow in [clarification, complex] {
        flow(&mut demo);
    }
    demo.stop();
}

/// The bodies that a thread with two calls to approve must not take, with status and code.
fn misuses(t: &str, one: &str, two: &str) -> Vec<(&'static str, Value, u16, &'static str)> {
    let unknown = unknown();
    let unknown = unknown.as_str();
    let decide = |decisions: &[(&str, Option<&str>)]| approvals(t, decisions);
    let mut both = decide(&[(one, None), (two, None)]);
    both["clarification_responses"] =
        answers(t, &[(one, "yes")])["clarification_responses"].clone();
    let wordless = json!({"thread_id": t, "approvals": [
        {"call_id": one, "approved": false}, {"call_id": two, "approved": true}]});
    let gone = approvals("nobody", &[(one, None), (two, None)]);
    vec![
        ("one of two is missing", decide(&[(one, None)]), 400, "calls_missing"),
        ("an unknown one is approved", decide(&[(unknown, None)]), 400, "unknown_call"),
        (
            "both and an unknown one are approved",
            decide(&[(one, None), (two, None), (unknown, None)]),
            400,
            "unknown_call",
        ),
        ("an unknown one is rejected", decide(&[(unknown, Some("no"))]), 400, "unknown_call"),
        ("the list is empty", decide(&[]), 400, "empty_list"),
        ("there is no list", json!({"thread_id": t}), 400, "nothing_given"),
        ("no such thread", gone, 404, "not_found"),
        ("an answer to an approval", answers(t, &[(one, "yes")]), 400, "other_kind"),
        ("both lists", both, 400, "several_lists"),
        (
            "one is there twice",
            decide(&[(one, None), (two, None), (one, None)]),
            400,
            "given_twice",
        ),
        ("a no without words", wordless, 400, "feedback_missing"),
        ("a list that is misspelt", json!({"thread_id": t, "aprovals": []}), 422, "wrong_shape"),
    ]
}

#[test]
fn misuse_is_refused_and_runs_nothing() {
    let (_folder, mut demo) = demo();
    let before = demo.calendar();
    let day = Zoned::now().date() + 40.days();
    let t = "two";
    let request = format!("create 2 events: Alpha on {day} at 10am and Beta on {day} at 11am");
    let calls = demo.run(t, &request).calls(t);
    let pending = demo.thread(t)["requestState"]["pending_action"].clone();
    for (why, body, status, code) in misuses(t, &calls[0].id, &calls[1].id) {
        println!("{why}");
        demo.resume(&body).refused(status, code);
        assert_eq!(demo.calendar(), before, "{why}");
        assert_eq!(demo.thread(t)["requestState"]["pending_action"], pending, "{why}");
    }
    demo.run(t, "create an event called Gamma tomorrow at 9am").refused(409, "thread_busy");
    assert_eq!(demo.calendar(), before);
    // It still waits, for exactly what it asked.
    demo.decide(t, &[(&calls[0], Some("not needed")), (&calls[1], None)]).success();
    assert_eq!(demo.calendar(), with(&before, [calls[1].event()]));
    demo.stop();
}

#[test]
fn questions_are_answered_all_and_by_answers() {
    let (_folder, mut demo) = demo();
    let t = "asked";
    let before = demo.calendar();
    let request = "schedule something and give me directions to the Louvre";
    let asked = demo.run(t, request).questions(t);
    assert_eq!(asked.len(), 2, "{asked:?}");
    let one = asked[0].id.as_str();
    let two = asked[1].id.as_str();
    let unknown = unknown();
    let unknown = unknown.as_str();
    let both = [(one, "a walk tomorrow at 3pm"), (two, "the Eiffel Tower")];
    for (why, body, code) in [
        ("one of two is missing", answers(t, &both[..1]), "calls_missing"),
        ("an empty answer", answers(t, &[both[0], (two, "")]), "empty_answer"),
        ("an empty list", answers(t, &[]), "empty_list"),
        ("an unknown one", answers(t, &[both[0], (unknown, "x")]), "unknown_call"),
        ("one is there twice", answers(t, &[both[0], both[1], both[0]]), "given_twice"),
        ("an approval of a question", approvals(t, &[(one, None), (two, None)]), "other_kind"),
    ] {
        println!("{why}");
        demo.resume(&body).refused(400, code);
        assert_eq!(demo.calendar(), before, "{why}");
    }
    let meant = Meant::from_now();
    let create = demo.resume(&answers(t, &both)).call(t);
    meant.is(&create.arguments, |now| creates("Walk", &tomorrow(now, 15)));
    assert_eq!(demo.calendar(), before);
    demo.decide(t, &[(&create, None)]).success();
    assert_eq!(demo.calendar(), with(&before, [create.event()]));
    demo.stop();
}

#[test]
fn an_answer_counts_once() {
    let (_folder, mut demo) = demo();
    let t = "once";
    let before = demo.calendar();
    let create = demo.run(t, "create an event called Once tomorrow at 9am").call(t);
    let yes = approvals(t, &[(create.id.as_str(), None)]);
    let mut left = demo.client();
    let mut right = demo.client();
    let (left, right) = thread::scope(|scope| {
        let other = scope.spawn(|| ThreadReply::of(left.post("/resume", &yes)).unwrap());
        let this = ThreadReply::of(right.post("/resume", &yes)).unwrap();
        (other.join().unwrap(), this)
    });
    let (won, lost) = if left.status == 200 { (left, right) } else { (right, left) };
    won.success();
    assert_eq!(lost.status, 409, "{lost:?}");
    let after = with(&before, [create.event()]);
    assert_eq!(demo.calendar(), after);

    demo.resume(&yes).refused(409, "ask_decided");
    let unknown = unknown();
    let unknown = unknown.as_str();
    demo.resume(&approvals(t, &[(unknown, None)])).refused(409, "no_open_ask");
    demo.resume(&answers(t, &[(create.id.as_str(), "yes")])).refused(400, "other_kind");
    assert_eq!(demo.calendar(), after);
    demo.stop();
}
