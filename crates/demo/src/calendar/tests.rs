//! The calendar tools as a caller uses them: arguments, answers, refusals, and the files
//! afterwards.

use super::super::{DemoParts, Zone};
use super::{Login, all};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Entropy, Spawn, Tool};
use kernel::tool::call::{
    Call, CallContext, CallProgress, CallReporter, Caller, InputRequest, InputResponses, Reach,
    ToolError, ToolOutput, ToolSpec,
};
use kernel::values::ids::{CallId, Millis};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// 15 November 2026, 9 o'clock in Berlin.
const NOW: Millis = Millis(1_794_729_600_000);

struct Standing;

impl Clock for Standing {
    fn now(&self) -> Millis {
        NOW
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Does at once what it is given.
struct AtOnce;

impl Spawn for AtOnce {
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, future);
    }

    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        assert_eq!(future.now_or_never(), Some(()), "{name} waits for something");
    }
}

struct Nothing;

impl Entropy for Nothing {
    fn bits(&self) -> u128 {
        7
    }
}

struct Office {
    folder: TempDir,
    tools: Vec<Arc<dyn Tool>>,
}

impl Office {
    fn open() -> Self {
        Self::of(tempfile::tempdir().unwrap(), None)
    }

    fn of(folder: TempDir, login: Option<Arc<Login>>) -> Self {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let parts = DemoParts { zone, clock: Arc::new(Standing), spawn: Arc::new(AtOnce), login };
        let tools = all(folder.path(), parts).unwrap();
        Self { folder, tools }
    }

    fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name.as_str() == name).unwrap()
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.path().join("calendars").join(format!("{id}.json"))
    }

    fn text(&self, id: &str) -> String {
        fs::read_to_string(self.file(id)).unwrap()
    }

    fn output(
        &self,
        (name, key): (&str, u128),
        arguments: Value,
        given: InputResponses,
    ) -> Result<ToolOutput, ToolError> {
        let caller = Caller::new("default", "local");
        let call = Call {
            id: CallId(key),
            tool: name.into(),
            arguments: Arc::new(arguments),
            timeout_ms: 1_000,
            output_bytes_max: 1_000_000,
            given: Arc::new(given),
            teller: CallReporter::default(),
            context: CallContext::default(),
            can: kernel::tool::call::Abilities::PERSON,
        };
        block_on(self.tool(name).call(&caller, &call))
    }

    fn call_as(&self, key: u128, name: &str, arguments: Value) -> Result<Value, ToolError> {
        match self.output((name, key), arguments, InputResponses::default())? {
            ToolOutput::Value(value) => Ok(value),
            other => panic!("{other:?}"),
        }
    }

    fn call(&self, name: &str, arguments: Value) -> Result<Value, ToolError> {
        self.call_as(1, name, arguments)
    }

    /// Names and times of what is listed.
    fn listed(&self, arguments: Value) -> Vec<(String, String)> {
        let listed = self.call("list_events", arguments).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let events = listed["events"].as_array().unwrap();
        events.iter().map(|event| (text(&event["name"]), text(&event["start"]))).collect()
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, start)| ((*name).to_owned(), (*start).to_owned())).collect()
}

#[test]
fn the_tools_are_what_the_contract_says() {
    let office = Office::open();
    let told = |spec: &ToolSpec| {
        let hints = &spec.listed.as_ref().unwrap()["annotations"];
        (spec.name.as_str().to_owned(), spec.reach, hints["idempotentHint"] == true)
    };
    let listed: Vec<_> = office.tools.iter().map(|tool| told(tool.spec())).collect();
    let expected = [
        ("list_calendars", Reach::Reads, true),
        ("list_events", Reach::Reads, true),
        ("create_event", Reach::Writes, false),
        ("update_event", Reach::Writes, true),
    ];
    let expected = expected.map(|(name, reach, repeatable)| (name.to_owned(), reach, repeatable));
    assert_eq!(listed, expected);
    let names = |tool: &str| {
        let schema = office.tool(tool).spec().input_schema.clone();
        let mut names: Vec<String> =
            schema["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        (names.join(" "), schema["required"].clone())
    };
    assert_eq!(
        names("create_event"),
        (
            "calendar_id description duration_minutes location name start".to_owned(),
            json!(["start"])
        )
    );
    assert_eq!(
        names("list_events"),
        ("calendar_id duration_days start_time".to_owned(), json!(["start_time"]))
    );
}

#[test]
fn two_calendars_are_there_with_events_around_today() {
    let office = Office::open();
    let calendars = office.call("list_calendars", json!({})).unwrap();
    assert_eq!(
        calendars,
        json!({"calendars": [
            {"name": "Primary", "description": "What you do", "calendar_id": "primary"},
            {"name": "Team", "description": "What the team does together", "calendar_id": "team"},
        ]})
    );
    assert_eq!(
        office.listed(json!({"start_time": "2026-11-15T09:00:00"})),
        pairs(&[
            ("Project meeting", "2026-11-15T15:00:00"),
            ("Coffee with Ada", "2026-11-17T10:30:00"),
            ("Plan the week", "2026-11-19T09:30:00"),
        ])
    );
    let team = json!({"start_time": "2026-11-15", "calendar_id": "Team", "duration_days": null});
    assert_eq!(office.listed(team).len(), 2);
}

#[test]
fn a_folder_is_filled_once() {
    let Office { folder, tools } = Office::open();
    drop(tools);
    let primary = folder.path().join("calendars/primary.json");
    fs::remove_file(folder.path().join("calendars/team.json")).unwrap();
    fs::write(&primary, r#"{"name": "Primary"}"#).unwrap();
    let office = Office::of(folder, None);
    assert!(office.listed(json!({"start_time": "2026-11-15"})).is_empty());
    assert!(!office.file("team").exists());
}

#[test]
fn missing_fields_of_an_event_get_defaults() {
    let office = Office::open();
    let made = office.call("create_event", json!({"start": "2026-11-16T10:00:00"})).unwrap();
    let id = CallId(1).to_string();
    assert_eq!(
        made,
        json!({
            "event_details": {
                "name": "New event", "start": "2026-11-16T10:00:00",
                "end": "2026-11-16T10:30:00", "location": "", "description": "",
                "calendar_id": "primary",
            },
            "id": id,
        })
    );
    let file: Value = serde_json::from_str(&office.text("primary")).unwrap();
    assert_eq!(
        file["events"].as_array().unwrap().last(),
        Some(&json!({
            "id": id, "name": "New event", "start": "2026-11-16T09:00:00Z",
            "end": "2026-11-16T09:30:00Z", "location": "", "description": "",
        }))
    );
    let listed = office.call("list_events", json!({"start_time": "2026-11-16T10:29:00"}));
    assert_eq!(listed.unwrap()["events"][0]["event_id"], id, "it is still going on");
}

#[test]
fn a_call_that_comes_again_makes_no_second_event() {
    let office = Office::open();
    let arguments = json!({
        "start": "2026-11-16T12:00", "name": "Lunch with Bob, and Eve", "calendar_id": "team",
        "duration_minutes": 60, "location": "Café; upstairs", "description": "one\ntwo",
    });
    let first = office.call_as(5, "create_event", arguments.clone()).unwrap();
    let file = office.text("team");
    assert_eq!(office.call_as(5, "create_event", arguments.clone()).unwrap(), first);
    assert_eq!(office.text("team"), file);
    office.call_as(6, "create_event", arguments).unwrap();
    let named = |event: &&(String, String)| event.0.starts_with("Lunch");
    let listed = office.listed(json!({"start_time": "2026-11-16", "calendar_id": "team"}));
    assert_eq!(listed.iter().filter(named).count(), 2);
    assert_eq!(first["event_details"]["location"], "Café; upstairs");
    assert_eq!(first["event_details"]["description"], "one\ntwo");
}

#[test]
fn a_change_touches_only_what_it_names() {
    let office = Office::open();
    let arguments = json!({"event_id": "seed-primary-1", "calendar_id": "primary",
        "start": "2026-11-15T16:00:00"});
    let moved = office.call("update_event", arguments.clone()).unwrap();
    assert_eq!(
        moved["event_details"],
        json!({
            "name": "Project meeting", "start": "2026-11-15T16:00:00",
            "end": "2026-11-15T16:45:00", "location": "Room 4",
            "description": "Where we are, and what comes next", "calendar_id": "primary",
        })
    );
    let file = office.text("primary");
    assert_eq!(office.call("update_event", arguments).unwrap(), moved);
    assert_eq!(office.text("primary"), file, "once more changes nothing");
}

#[test]
fn unknown_calendars_and_events_are_reported() {
    let office = Office::open();
    let failed = |name: &str, arguments: Value| {
        let error = office.call(name, arguments).unwrap_err();
        (error.how, error.fault.name, error.fault.message, error.fault.hint.unwrap_or_default())
    };
    let (how, name, message, hint) =
        failed("create_event", json!({"start": "2026-11-16T10:00", "calendar_id": "../x"}));
    assert_eq!((how, name.as_str()), (CallProgress::Failed, "CalendarNotFound"));
    assert_eq!(message, "there is no calendar `../x`");
    assert_eq!(hint, "the calendars are `primary`, `team`");
    let (how, name, message, _) =
        failed("update_event", json!({"event_id": "x", "start": "2026-11-16T10:00"}));
    assert_eq!((how, name.as_str()), (CallProgress::Failed, "EventNotFound"));
    assert_eq!(message, "there is no event `x` in calendar `primary`");
}

#[test]
fn arguments_that_cannot_be_meant_are_refused_before_anybody_is_asked() {
    let office = Office::open();
    let refused = |name: &str, arguments: Value| {
        let caller = Caller::new("default", "local");
        let error = office.tool(name).check(&caller, &arguments).unwrap_err();
        assert_eq!(error.how, CallProgress::NotSent);
        error.fault.message
    };
    assert_eq!(
        refused("create_event", json!({"start": "tomorrow at 3pm"})),
        "`start` is `tomorrow at 3pm`, which is no time"
    );
    assert_eq!(
        refused("create_event", json!({"start": "2026-02-30T10:00:00"})),
        "`start` is `2026-02-30T10:00:00`, which is no time"
    );
    assert_eq!(refused("create_event", json!({})), "`start` is missing");
    let long = json!({"start": "2026-11-16", "duration_minutes": 0});
    assert!(refused("create_event", long).contains("from 1 to 86400"));
    assert_eq!(refused("update_event", json!({"event_id": "x"})), "nothing is to be changed");
    assert_eq!(refused("list_events", json!({"start_time": null})), "`start_time` is missing");
}

#[test]
fn a_broken_file_is_reported_and_never_overwritten() {
    let office = Office::open();
    let broken = "{\n  \"name\": \"Team\",\n";
    fs::write(office.file("team"), broken).unwrap();
    let arguments = json!({"start": "2026-11-16T10:00", "calendar_id": "team"});
    let error = office.call("create_event", arguments).unwrap_err();
    assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::Failed, "CalendarBroken"));
    assert!(error.fault.message.contains("team.json` cannot be read: EOF"), "{error:?}");
    assert!(error.fault.message.contains("at line 3"), "{error:?}");
    assert_eq!(office.text("team"), broken);
    let undated = r#"{"name": "Team", "events": [{"id": "1", "name": "Lunch"}]}"#;
    fs::write(office.file("team"), undated).unwrap();
    let listed = json!({"start_time": "2026-11-16", "calendar_id": "team"});
    let error = office.call("list_events", listed.clone()).unwrap_err();
    assert!(error.fault.message.contains("missing field `start`"), "{error:?}");
    let unknown = r#"{"name": "Team", "color": "red"}"#;
    fs::write(office.file("team"), unknown).unwrap();
    let error = office.call("list_events", listed).unwrap_err();
    assert!(error.fault.message.contains("unknown field `color`"), "{error:?}");
    assert!(office.call("list_events", json!({"start_time": "2026-11-16"})).is_ok());
    let calendars = office.call("list_calendars", json!({})).unwrap();
    assert_eq!(calendars["calendars"].as_array().unwrap().len(), 2);
}

#[test]
fn concurrent_calls_lose_nothing() {
    let office = Office::open();
    std::thread::scope(|scope| {
        for key in 0..16 {
            let office = &office;
            scope.spawn(move || {
                let arguments = json!({"start": "2026-12-01T10:00", "name": format!("e{key}")});
                office.call_as(100 + key, "create_event", arguments).unwrap();
            });
        }
    });
    assert_eq!(office.listed(json!({"start_time": "2026-12-01", "duration_days": 1})).len(), 16);
}

#[test]
fn a_login_is_required_until_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let login = Arc::new(Login::open(folder.path(), Arc::new(Nothing)).unwrap());
    login.listens_at(SocketAddr::from(([127, 0, 0, 1], 4000))).unwrap();
    let office = Office::of(folder, Some(login.clone()));
    let arguments = json!({"start": "2026-11-16T10:00:00"});
    let output =
        |given: InputResponses| office.output(("create_event", 1), arguments.clone(), given);
    let ToolOutput::Wants(wants) = output(InputResponses::default()).unwrap() else {
        panic!("no login")
    };
    let (id, want) = wants.inputs.first_key_value().unwrap();
    let InputRequest::Url { url, .. } = want else { panic!("{want:?}") };
    assert_eq!(*url, format!("http://127.0.0.1:4000/auth/connect/{id}"));
    assert!(wants.state.is_null());
    let answer = |action: &str| InputResponses {
        inputs: [(id.clone(), json!({"action": action}))].into(),
        ..InputResponses::default()
    };
    assert!(matches!(output(answer("accept")), Ok(ToolOutput::Wants(_))), "nobody did it");
    assert_eq!(output(answer("decline")).unwrap_err().fault.name, "LoginDeclined");
    assert!(login.done(id).unwrap());
    assert!(matches!(output(answer("accept")), Ok(ToolOutput::Value(_))));
    assert!(matches!(output(InputResponses::default()), Ok(ToolOutput::Value(_))));
}
