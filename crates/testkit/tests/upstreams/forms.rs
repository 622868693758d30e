//! Many users with forms at one child process at the same time: each is asked its own question.

use crate::children::children;
use crate::house::{House, LIMIT, Way};
use serde_json::{Map, Value, json};
use std::process::Command;
use std::thread;
use std::time::Duration;
use testkit::caller::{Caller, Era};
use testkit::harness::wait_for;

const USERS: usize = 10;
/// Calls that are runs, as they are unless an operator says otherwise, and calls that are not.
const HOUSES: [fn(Way) -> House; 2] = [recorded, House::unrecorded];
/// How long the server may take to see that a child has ended; until then an answer goes to it.
const NOTICE: Duration = Duration::from_secs(3);

fn recorded(way: Way) -> House {
    House::start(way, &[])
}

/// A user whose client shows forms, and what it was asked.
struct User {
    name: String,
    caller: Caller,
    wanted: Value,
}

impl User {
    /// Calls the tool that asks, and is asked: its own question and no other.
    fn asked(house: &House, number: usize) -> Self {
        let can = json!({"elicitation": {"form": {}}});
        let mut caller = Caller::new(house.address(), Era::Modern, can).limit(LIMIT);
        let name = format!("user {number}");
        let wanted = caller.call("bad.ask", json!({"who": name})).unwrap().result();
        let requests = wanted["inputRequests"].as_object();
        let requests = requests.unwrap_or_else(|| panic!("{name} is asked nothing: {wanted}"));
        let own = format!("What is your name, {name}?");
        let mut messages = requests.values().map(|request| &request["params"]["message"]);
        assert_eq!((requests.len(), messages.next()), (1, Some(&json!(own))), "{wanted}");
        Self { name, caller, wanted }
    }

    /// Answers; what the tool says then.
    fn answered(mut self) -> (String, String) {
        let reply = json!({"action": "accept", "content": {"name": self.name}});
        let keys = self.wanted["inputRequests"].as_object().unwrap().keys();
        let responses: Map<String, Value> = keys.map(|key| (key.clone(), reply.clone())).collect();
        let params = json!({"name": "bad.ask", "arguments": {"who": self.name},
            "inputResponses": responses, "requestState": self.wanted["requestState"]});
        let said = self.caller.request("tools/call", params).unwrap().words();
        (format!("Hello, {}!", self.name), said)
    }
}

/// All at once.
fn all<T: Send>(work: impl IntoIterator<Item = impl FnOnce() -> T + Send>) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Every kind of house with an upstream of each era.
fn each() -> impl Iterator<Item = (&'static str, fn(Way) -> House)> {
    let eras = ["legacy", "modern"];
    eras.into_iter().flat_map(|era| HOUSES.map(|house| (era, house)))
}

fn all_asked(house: &House) -> Vec<User> {
    all((0..USERS).map(|number| move || User::asked(house, number)))
}

fn all_answered(users: Vec<User>) {
    for (expected, said) in all(users.into_iter().map(|user| move || user.answered())) {
        assert_eq!(said, expected);
    }
}

#[test]
fn ten_users_at_one_child_are_each_asked_their_own_question() {
    let _turn = crate::our_turn();
    for (era, house) in each() {
        let house = house(Way::Stdio(era));
        house.wait_for_tool("bad.ask");
        // Twice: at first it is not known that the tool asks.
        for _ in 0..2 {
            all_answered(all_asked(&house));
        }
        let most = if era == "legacy" { USERS + 1 } else { 1 };
        let running = children(house.folder.path()).len();
        assert!((1..=most).contains(&running), "{era}: {running} children");
        house.others_are_well("forms");
    }
}

#[test]
fn children_that_are_killed_between_question_and_answer_lose_nobody() {
    let _turn = crate::our_turn();
    for (era, house) in each() {
        let house = house(Way::Stdio(era));
        house.wait_for_tool("bad.ask");
        let users = all_asked(&house);
        let killed: Vec<u32> = children(house.folder.path()).into_iter().step_by(2).collect();
        for pid in &killed {
            let killing = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
            assert!(killing.success(), "{pid}");
        }
        wait_for("the killed children to be gone", LIMIT, || {
            let left = children(house.folder.path());
            killed.iter().all(|pid| !left.contains(pid)).then_some(())
        });
        thread::sleep(NOTICE);
        all_answered(users);
        all_answered(all_asked(&house));
    }
}
