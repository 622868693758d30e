//! The demo killed between a request and its approval, and in the middle of what was approved: the
//! calendar has exactly the approved events, each once.

use crate::thread_client::{DemoClient, Event, LIMIT, ProposedCall, ThreadReply, approvals, with};
use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use testkit::harness::{Seen, processes_with, send_signal, wait_for};

/// How long after the approval was sent; from before it is read to after all is done.
const DELAYS_MS: [u64; 12] = [0, 1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50];
/// How often the kill comes at the very moment when the event is in the calendar's file.
const AT_THE_WRITE: usize = 4;

/// How often it comes after the calendar has done the call and before the demo can hear of it.
const UNHEARD: usize = 2;
/// Longer than a call needs from the journal to the calendar's pipe.
const ON_ITS_WAY: Duration = Duration::from_secs(2);
/// Longer than the calendar needs to write an event that it was asked for.
const TO_WRITE: Duration = Duration::from_secs(10);
/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(5);

/// When the demo is killed.
#[derive(Debug, Clone, Copy)]
enum When {
    After(Duration),
    Written,
    /// In the middle of the call for sure: the calendar has done it, and nobody heard its answer.
    Unheard,
}

/// A request for one event that nobody else asks for.
fn asked(demo: &mut DemoClient, thread: &str, name: &str) -> ProposedCall {
    let day = Zoned::now().date() + 60.days();
    let request = format!("create an event called {name} on {day} at 10am");
    demo.run(thread, &request).call(thread)
}

/// Sends the approval, and kills the demo while it is on its way; whether it was answered.
fn kill_amid(
    mut demo: DemoClient,
    data: &Path,
    (thread, call): (&str, &ProposedCall),
    when: When,
) -> bool {
    let mut client = demo.client();
    let body = approvals(thread, &[(call.id.as_str(), None)]);
    let calendars = processes_with(data.join("calendar").to_str().unwrap());
    if matches!(when, When::Unheard) {
        calendars.iter().for_each(|calendar| send_signal("STOP", calendar.pid));
    }
    let (sender, sent) = mpsc::channel();
    let approving = thread::spawn(move || {
        sender.send(()).unwrap();
        ThreadReply::of(client.post("/resume", &body)).is_ok_and(|said| said.status == 200)
    });
    sent.recv_timeout(LIMIT).unwrap();
    match when {
        When::After(delay) => thread::sleep(delay),
        When::Written => {
            let file = data.join("calendar/calendars/primary.json");
            let name = call.text("name");
            let begun = Instant::now();
            // Without a pause: the kill is to come before anybody hears of it.
            while !fs::read_to_string(&file).is_ok_and(|text| text.contains(name)) {
                let file = file.display();
                assert!(begun.elapsed() < LIMIT, "waited in vain for `{name}` in {file}");
            }
        }
        When::Unheard => hold_amid(&mut demo, data, (thread, call), &calendars),
    }
    drop(demo);
    approving.join().unwrap()
}

/// With the call on its way to a calendar that stands still: the demo stands still before the
/// calendar continues, so that it cannot hear the answer.
fn hold_amid(
    demo: &mut DemoClient,
    data: &Path,
    (thread, call): (&str, &ProposedCall),
    calendars: &[Seen],
) {
    assert!(!calendars.is_empty(), "the demo has a calendar");
    wait_for("the approved call to be under way", LIMIT, || {
        (demo.thread(thread)["status"] == "running").then_some(())
    });
    let file = data.join("calendar/calendars/primary.json");
    let name = call.text("name");
    let is_done = || fs::read_to_string(&file).is_ok_and(|text| text.contains(name));
    wait_for("the calendar to have done the call", LIMIT, || {
        // One of the two stands still at any time, so the answer is never heard. The rest of the
        // call's way is a write to a pipe; where that takes longer, the demo gets another moment.
        calendars.iter().for_each(|calendar| send_signal("STOP", calendar.pid));
        send_signal("CONT", demo.pid());
        thread::sleep(ON_ITS_WAY);
        send_signal("STOP", demo.pid());
        calendars.iter().for_each(|calendar| send_signal("CONT", calendar.pid));
        let begun = Instant::now();
        while begun.elapsed() < TO_WRITE && !is_done() {
            thread::sleep(LOOK);
        }
        is_done().then_some(())
    });
}

/// Waits until the thread's run is over; what is still asked is answered.
fn settle(demo: &mut DemoClient, thread: &str, call: &ProposedCall) -> (&'static str, String) {
    let mut asked = "went on by itself";
    let what = format!("thread `{thread}` to be settled");
    let response = wait_for(&what, LIMIT, || {
        let shown = demo.thread(thread);
        if shown["status"] == "completed" {
            return Some(shown["requestState"]["final_response"].as_str().unwrap().to_owned());
        }
        for ask in shown["asks"].as_array().unwrap() {
            let path = format!("/api/v1/asks/{}", ask.as_str().unwrap());
            let open = demo.get(&path);
            match open["kind"].as_str().unwrap() {
                // The kill came before the approval was known.
                "approve" => {
                    demo.decide(thread, &[(call, None)]);
                    asked = "was approved again";
                }
                // Nobody knows whether it happened: the same call once more, under its key.
                "fix" => {
                    assert_eq!(open["how"], "unknown", "{open}");
                    demo.post(&path, &json!({"action": "retry"}));
                    asked = "was asked about";
                }
                other => panic!("`{other}` is asked: {open}"),
            }
        }
        None
    });
    (asked, response)
}

fn count(calendar: &[Event], name: &str) -> usize {
    calendar.iter().filter(|event| event.2 == name).count()
}

#[test]
fn an_approval_outlives_a_kill_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut demo = DemoClient::start(&data);
    let before = demo.calendar();
    let call = asked(&mut demo, "kept", "Kept");
    let question = demo.run("open", "schedule something").questions("open").remove(0);
    drop(demo);

    let mut demo = DemoClient::start(&data);
    let shown = demo.thread("kept");
    let pending: &Value = &shown["requestState"]["pending_action"]["tool_calls"][0];
    assert_eq!((&pending["call_id"], shown["status"].as_str()), (&json!(call.id), Some("waiting")));
    // At once: its tools may be on their way yet.
    assert!(demo.decide("kept", &[(&call, None)]).success().contains("Kept has been created"));
    assert_eq!(demo.calendar(), with(&before, [call.event()]));
    drop(demo);

    let mut demo = DemoClient::start(&data);
    let day = Zoned::now().date() + 61.days();
    let create = demo.answer("open", &question, &format!("Zorvath on {day} at 9am")).call("open");
    drop(demo);
    let mut demo = DemoClient::start(&data);
    demo.decide("open", &[(&create, None)]).success();
    assert_eq!(demo.calendar(), with(&before, [call.event(), create.event()]));
    demo.stop();
}

#[test]
fn an_approved_call_is_done_once_whenever_the_demo_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut demo = DemoClient::start(&data);
    let mut expected = demo.calendar();
    let delays = DELAYS_MS.iter().map(|ms| When::After(Duration::from_millis(*ms)));
    let mut seen: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    let moments = delays.chain([When::Written; AT_THE_WRITE]).chain([When::Unheard; UNHEARD]);
    for (number, when) in moments.enumerate() {
        let t = format!("killed-{number}");
        let name = format!("Killed{number}");
        let call = asked(&mut demo, &t, &name);
        let answered = kill_amid(demo, &data, (&t, &call), when);
        assert!(!(answered && matches!(when, When::Unheard)), "a stopped demo answered");
        demo = DemoClient::start(&data);
        let (asked, response) = settle(&mut demo, &t, &call);
        let calendar = demo.calendar();
        println!("{when:?}: answered {answered}, {asked}, {}", count(&calendar, &name));
        *seen.entry((answered, asked)).or_default() += 1;
        expected = with(&expected, [call.event()]);
        assert_eq!(calendar, expected, "{when:?}: {asked}");
        assert!(response.contains(&format!("{name} has been created")), "{when:?}: {response}");
    }
    println!("{seen:?}");
    let mark = data.join("calendar").to_str().unwrap().to_owned();
    demo.stop();
    wait_for("the calendar servers to end", LIMIT, || {
        processes_with(&mark).is_empty().then_some(())
    });
}
