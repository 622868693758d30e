//! The oracle itself: a receiver that forgot or invented an effect would make every kill test
//! worthless.

use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use testkit::harness::wait_for;
use testkit::http::{Client, Request};
use testkit::servers::receiver::{Effect, Line, Receiver};

const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn an_effect_is_written_down_before_it_is_answered() {
    let _turn = crate::my_turn();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path());
    let mut client = Client::new(receiver.address());
    let headers = [("Idempotency-Key", "call_1")];
    let request =
        Request { method: "POST", path: "/effects", headers: &headers, body: Some("{\"a\":1}") };
    let answer = client.send(&request).unwrap();
    assert_eq!((answer.status, answer.json()), (200, json!({"ok": true, "n": 1})));
    let key = Some("call_1".to_owned());
    let effect = Effect { n: 1, key, body: json!({"a": 1}), connection: 1 };
    assert_eq!(receiver.effects(), std::slice::from_ref(&effect));
    assert_eq!(receiver.lines(), [Line::Effect(effect), Line::Answered { answered: 1 }]);
}

#[test]
fn a_slow_effect_stands_in_the_log_long_before_its_answer() {
    let _turn = crate::my_turn();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path());
    // Its answer comes in ten minutes: nobody is so slow that it could be there already.
    let mut waiting = TcpStream::connect(receiver.address()).unwrap();
    let request = "POST /slow?ms=600000 HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";
    waiting.write_all(request.as_bytes()).unwrap();
    wait_for("the effect in the log", LIMIT, || receiver.effects().pop());
    let answered = |line: &Line| matches!(line, Line::Answered { .. });
    assert!(!receiver.lines().iter().any(answered), "answered too early");
    // And one that is waited for takes as long as it should.
    let begun = Instant::now();
    let answer = Client::new(receiver.address()).post("/slow?ms=200", &json!({"a": 1})).unwrap();
    assert_eq!(answer.status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(receiver.effects().len(), 2);
}

#[test]
fn a_drained_receiver_has_read_all_that_a_dead_client_sent() {
    let _turn = crate::my_turn();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path());
    for _ in 0..20 {
        // Sent, and gone before any answer.
        let mut dead = TcpStream::connect(receiver.address()).unwrap();
        let request = "POST /slow?ms=5 HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";
        dead.write_all(request.as_bytes()).unwrap();
    }
    receiver.drain(receiver.mark());
    assert_eq!(receiver.effects().len(), 20);
}
