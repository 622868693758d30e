//! Many users with forms at one child process at the same time: each is asked its own question.

use crate::children::children;
use crate::house::{House, LIMIT, Way};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use testkit::caller::{Caller, Era, Outcome};
use testkit::events::Events;
use testkit::harness::{send_signal, wait_for};

const USERS: usize = 10;
/// Calls that are runs, as they are unless an operator says otherwise, and calls that are not.
const HOUSES: [fn(Way) -> House; 2] = [recorded, House::unrecorded];

fn recorded(way: Way) -> House {
    House::start(way, &[])
}

/// A user whose client shows forms, and what it was asked.
struct User {
    name: String,
    caller: Caller,
    asked: Asked,
}

/// What a client was asked, as its era is.
enum Asked {
    /// By the answer to its call, which it makes again.
    Wanted(Value),
    /// By a request of the server's in the middle of its call.
    Question { question: Value, rest: Events },
}

impl User {
    /// Calls the tool that asks, and is asked: its own question and no other.
    fn asked(house: &House, number: usize, era: Era) -> Self {
        let can = json!({"elicitation": {"form": {}}});
        let mut caller = Caller::new(house.address(), era, can).limit(LIMIT);
        let name = format!("user {number}");
        let own = json!(format!("What is your name, {name}?"));
        let asked = match era {
            Era::Modern => {
                let wanted = caller.call("bad.ask", json!({"who": name})).unwrap().result();
                let requests = wanted["inputRequests"].as_object();
                let requests =
                    requests.unwrap_or_else(|| panic!("{name} is asked nothing: {wanted}"));
                let mut messages = requests.values().map(|request| &request["params"]["message"]);
                assert_eq!((requests.len(), messages.next()), (1, Some(&own)), "{wanted}");
                Asked::Wanted(wanted)
            }
            Era::Legacy => {
                let call = json!({"name": "bad.ask", "arguments": {"who": name}});
                let mut rest = caller.open("tools/call", call, LIMIT).unwrap();
                let question = next(&mut rest, &name);
                assert_eq!(question["method"], "elicitation/create", "{name}: {question}");
                assert_eq!(question["params"]["message"], own, "{question}");
                Asked::Question { question, rest }
            }
        };
        Self { name, caller, asked }
    }

    /// Answers; what the tool says then.
    fn answered(mut self) -> Said {
        let reply = json!({"action": "accept", "content": {"name": self.name}});
        let wanted = format!("Hello, {}!", self.name);
        let said = match self.asked {
            Asked::Wanted(asked) => {
                let keys = asked["inputRequests"].as_object().unwrap().keys();
                let responses: Map<String, Value> =
                    keys.map(|key| (key.clone(), reply.clone())).collect();
                let params = json!({"name": "bad.ask", "arguments": {"who": self.name},
                    "inputResponses": responses, "requestState": asked["requestState"]});
                self.caller.request("tools/call", params).unwrap().words()
            }
            Asked::Question { question, mut rest } => {
                self.caller.answer(&question, reply).unwrap();
                // Its answer and nothing else: who has answered is not asked again.
                let mut last = next(&mut rest, &self.name);
                assert!(last["result"].is_object(), "{}: {last}", self.name);
                Outcome::Result(last["result"].take()).words()
            }
        };
        Said { said, wanted }
    }
}

/// What a tool said to a user, and what it should have said.
struct Said {
    said: String,
    wanted: String,
}

/// The next message for a user.
fn next(stream: &mut Events, name: &str) -> Value {
    let message = stream.next(LIMIT).unwrap_or_else(|error| panic!("{name}: {error}"));
    message.unwrap_or_else(|| panic!("{name} is told nothing before the end"))
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

/// Users whose clients are of this era.
fn all_asked(house: &House, era: Era) -> Vec<User> {
    all((0..USERS).map(|number| move || User::asked(house, number, era)))
}

fn all_answered(users: Vec<User>) {
    for Said { said, wanted } in all(users.into_iter().map(|user| move || user.answered())) {
        assert_eq!(said, wanted);
    }
}

#[test]
fn ten_users_at_one_child_are_each_asked_their_own_question() {
    are_each_asked_their_own_question(Era::Modern);
}

#[test]
fn ten_users_with_sessions_at_one_child_are_each_asked_their_own_question() {
    are_each_asked_their_own_question(Era::Legacy);
}

fn are_each_asked_their_own_question(clients: Era) {
    let _turn = crate::our_turn();
    for (era, house) in each() {
        let house = house(Way::Stdio(era));
        house.wait_for_tool("bad.ask");
        // Twice: at first it is not known that the tool asks.
        for _ in 0..2 {
            all_answered(all_asked(&house, clients));
        }
        let most = if era == "legacy" { USERS + 1 } else { 1 };
        // One that was only asked whether it has a handshake may still be about to end.
        wait_for(&format!("1 to {most} children, {era}"), LIMIT, || {
            (1..=most).contains(&children(house.folder.path()).len()).then_some(())
        });
        house.others_are_well("forms");
    }
}

#[test]
fn children_that_are_killed_between_question_and_answer_lose_nobody() {
    killed_children_lose_nobody(Era::Modern);
}

#[test]
fn children_that_are_killed_between_question_and_answer_lose_no_session() {
    killed_children_lose_nobody(Era::Legacy);
}

/// The process that started this one.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything: its state, and then its parent.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// The pipes that a process has open, or the one that it has open under this number.
fn pipes(pid: u32, only: Option<&str>) -> Vec<PathBuf> {
    let folder = format!("/proc/{pid}/fd");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let wanted = entries.filter(|entry| only.is_none_or(|only| entry.file_name() == *only));
    let targets = wanted.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("pipe:")).collect()
}

fn killed_children_lose_nobody(clients: Era) {
    let _turn = crate::our_turn();
    for (era, house) in each() {
        let house = house(Way::Stdio(era));
        house.wait_for_tool("bad.ask");
        let users = all_asked(&house, clients);
        let killed: Vec<u32> = children(house.folder.path()).into_iter().step_by(2).collect();
        let supervisors: Vec<u32> = killed.iter().filter_map(|pid| parent(*pid)).collect();
        let inputs: Vec<PathBuf> = killed.iter().flat_map(|pid| pipes(*pid, Some("0"))).collect();
        // One that was only asked whether it has a handshake may have ended already.
        killed.iter().for_each(|pid| send_signal("KILL", *pid));
        wait_for("the killed children to be gone", LIMIT, || {
            let left = children(house.folder.path());
            killed.iter().all(|pid| !left.contains(pid)).then_some(())
        });
        // The server ends what it awaits of a child before it reaps what watched over it.
        wait_for("their supervisors to be reaped", LIMIT, || {
            let is_gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
            let mut supervisors = supervisors.iter().filter(|pid| **pid != house.server.pid());
            supervisors.all(is_gone).then_some(())
        });
        // It lets go of a child's input once the calls there know that it ended; until then an
        // answer goes to it.
        wait_for("the server to let go of their pipes", LIMIT, || {
            let held = pipes(house.server.pid(), None);
            inputs.iter().all(|input| !held.contains(input)).then_some(())
        });
        all_answered(users);
        all_answered(all_asked(&house, clients));
    }
}
