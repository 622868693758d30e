//! Two replies to one ask at the same moment, a thousand times: exactly one is accepted, and the
//! other learns which decision won.

use crate::api;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;
use testkit::harness::{Project, Server, StartOptions};
use testkit::http::{ANSWER_LIMIT, Answer, Client, NoAnswer};
use testkit::kill::{Rng, Run, covers, read};

const ROUNDS: usize = 1_000;
const LANES: usize = 4;
const HEAD_START_US_MAX: u64 = 300;

const ASK: &str = r#"planId: replies/ask
description: asks one thing and repeats the answer
parameters: {type: object}
startStepId: ask
steps:
  - {id: ask, type: human_in_the_loop, message: "which word?", nextStepIdOnInput: end}
  - {id: end, type: final_response, message: "heard {{ context.human_input }}"}
"#;

#[test]
fn of_two_replies_at_once_one_wins_and_the_other_is_told() {
    let _turn = crate::my_turn();
    let folder = tempfile::tempdir().unwrap();
    let files = [("replies/ask.yaml", ASK)];
    let project = Project::write(&folder.path().join("project"), &files, "");
    let data = folder.path().join("data");
    let options = StartOptions { project: project.path(), data: &data, args: &[] };
    let mut server = Server::start(&options);
    server.wait_until_ready();
    let address = server.address();
    let wins: usize = thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..LANES).map(|lane| scope.spawn(move || race(address, lane))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
    });
    assert_eq!(api::open_asks(&mut server.client(), None).len(), 0, "an ask is still open");
    crate::tell(&format!("replies: {ROUNDS} races, {wins} won by the first of the two"));
}

/// The second of the two repliers, in a thread of its own.
struct Rival<'a> {
    start: &'a Barrier,
    tasks: Sender<Task>,
    answers: Receiver<Result<Answer, NoAnswer>>,
}

/// A reply to send once both are ready.
struct Task {
    path: String,
    reply: Value,
    wait: Duration,
}

/// Runs one lane's share of the races; how many the first replier won.
fn race(address: SocketAddr, lane: usize) -> usize {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let (tasks, given) = mpsc::channel::<Task>();
        let (told, answers) = mpsc::channel();
        let line = &start;
        scope.spawn(move || {
            let mut client = Client::new(address);
            // Nothing in here panics: the other would wait at the line for ever.
            for task in given {
                line.wait();
                thread::sleep(task.wait);
                let _ = told.send(client.post(&task.path, &task.reply));
            }
        });
        let rival = Rival { start: &start, tasks, answers };
        let mut client = Client::new(address);
        let mut rng = Rng::new(lane as u64);
        let keys = (0..ROUNDS / LANES).map(|round| format!("race-{lane}-{round}"));
        keys.filter(|key| first_wins(&mut client, &rival, &mut rng, key)).count()
    })
}

/// One race; every rule is checked, whichever wins.
fn first_wins(client: &mut Client, rival: &Rival<'_>, rng: &mut Rng, key: &str) -> bool {
    let run = started(client, key);
    let [ask] = run.asks.as_slice() else {
        panic!("not one ask: {run:?}");
    };
    let words = ["first", "second"].map(|who| format!("{who} of {key}"));
    let replies = words.each_ref().map(|word| json!({"answer": word}));
    let path = format!("/api/v1/asks/{}", ask.id);
    let mut wait = || {
        let us = if rng.one_in(2) { 0 } else { rng.below(HEAD_START_US_MAX) };
        Duration::from_micros(us)
    };
    let task = Task { path: path.clone(), reply: replies[1].clone(), wait: wait() };
    rival.tasks.send(task).unwrap();
    let wait = wait();
    rival.start.wait();
    thread::sleep(wait);
    let mine = client.post(&path, &replies[0]);
    let theirs = rival.answers.recv_timeout(ANSWER_LIMIT).expect("the rival's answer");
    let answers = [mine.unwrap(), theirs.unwrap()];
    let winner = match answers.each_ref().map(|answer| answer.status) {
        [200, 409] => 0,
        [409, 200] => 1,
        other => panic!("not one winner and one loser but {other:?}: {answers:?}"),
    };
    let accepted = answers[winner].json();
    let decision = &accepted["ask"]["decision"];
    assert!(covers(&decision["reply"], &replies[winner]), "the winner was told {accepted}");
    assert!(decision["by"].is_string() && decision["at"].is_string(), "who, when? {accepted}");
    let refused = answers[1 - winner].json();
    assert_eq!(&refused["decision"], decision, "the loser was told {refused}");
    let kept = api::get(client, &path);
    assert_eq!((&kept["decision"], &kept["status"]), (decision, &json!("decided")), "{kept}");
    let run = api::run(client, &run.id);
    let answer = json!(format!("heard {}", words[winner]));
    assert_eq!((run.status.as_str(), run.answer.as_ref()), ("completed", Some(&answer)), "{run:?}");
    winner == 0
}

fn started(client: &mut Client, key: &str) -> Run {
    let body = json!({"planId": "replies/ask", "session": key, "input": {}});
    let answer = client.post("/api/v1/runs", &body).unwrap();
    assert_eq!(answer.status, 202, "{}", answer.body);
    read(&answer.json()["run"])
}
