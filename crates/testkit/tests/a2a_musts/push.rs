//! Sections 3.1.7 to 3.1.10, 4.3.3 and 13.2: webhooks, what they get, and how they are kept.

use crate::talk::{BINDINGS, Binding, LIMIT, Talk, reply, said};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use testkit::http::{Connection, Message};

const POLL: Duration = Duration::from_millis(10);

/// A receiver on this machine that takes everything.
struct Receiver {
    url: String,
    got: Arc<Mutex<Vec<Message>>>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let got = Arc::<Mutex<Vec<Message>>>::default();
        let kept = got.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let got = kept.clone();
                thread::spawn(move || take(stream, &got));
            }
        });
        Self { url, got }
    }

    /// The configuration of a webhook here.
    fn config(&self, task: &Value) -> Value {
        json!({"taskId": task["id"], "url": self.url, "token": "a-token",
            "authentication": {"scheme": "Bearer", "credentials": "a-credential"}})
    }

    /// What it got, in a word each.
    fn words(&self) -> Vec<String> {
        let got = self.got.lock().unwrap();
        let bodies = got.iter().map(|message| serde_json::from_str(&message.body).unwrap());
        crate::talk::words(&bodies.collect::<Vec<Value>>())
    }

    /// Waits until the last that it got is this; all words until then.
    fn until(&self, word: &str) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let words = self.words();
            if words.last().is_some_and(|last| last == word) {
                return words;
            }
            assert!(begun.elapsed() < LIMIT, "no {word} within {LIMIT:?}: {words:?}");
            thread::sleep(POLL);
        }
    }
}

/// Takes what comes over one connection.
fn take(stream: TcpStream, got: &Mutex<Vec<Message>>) {
    let mut connection = Connection::new(stream).unwrap();
    while let Ok(Some(message)) = connection.read(LIMIT) {
        got.lock().unwrap().push(message);
        if connection.write(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
            return;
        }
    }
}

fn made(talk: &Talk, binding: Binding, config: &Value) -> Value {
    let made = talk.call(binding, "CreateTaskPushNotificationConfig", config);
    made.unwrap_or_else(|fault| panic!("{config}: {fault:?}"))
}

#[test]
fn a_webhook_gets_what_happens_with_its_credentials() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let receiver = Receiver::start();
        let task = talk.task(binding, "tck-input-required");
        let config = made(&talk, binding, &receiver.config(&task));
        assert_eq!((&config["url"], &config["taskId"]), (&json!(receiver.url), &task["id"]));
        talk.send(binding, reply(&task, "this")).unwrap();
        let words = receiver.until("COMPLETED");
        assert!(words.iter().any(|word| word.starts_with("artifact")), "{words:?}");
        let got = receiver.got.lock().unwrap();
        for message in got.iter() {
            assert!(message.first_line.starts_with("POST /hook "), "{message:?}");
            assert_eq!(message.header("authorization"), Some("Bearer a-credential"));
            let kind = message.header("content-type").unwrap_or_default();
            assert!(kind.starts_with("application/a2a+json"), "{kind}");
            let body: Value = serde_json::from_str(&message.body).unwrap();
            let update = body.as_object().unwrap().values().next().unwrap();
            assert_eq!(update["taskId"], task["id"], "{body}");
        }
    }
}

#[test]
fn a_webhook_that_comes_with_a_message_gets_all_of_its_task() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let receiver = Receiver::start();
        let config = json!({"url": receiver.url});
        let configuration = json!({"taskPushNotificationConfig": config});
        let params = json!({"message": said("tck-stream-basic"), "configuration": configuration});
        talk.call(binding, "SendMessage", &params).unwrap();
        let words = receiver.until("COMPLETED");
        assert_eq!(words, ["WORKING", "artifact Generated text content", "COMPLETED"]);
    }
}

#[test]
fn webhooks_are_read_and_listed_and_their_credentials_are_not() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let task = talk.task(binding, "tck-input-required");
        let receiver = Receiver::start();
        let one = made(&talk, binding, &receiver.config(&task));
        let mut other = receiver.config(&task);
        other["id"] = json!("mine");
        assert_eq!(made(&talk, binding, &other)["id"], "mine", "a client's id is kept");
        let params = json!({"taskId": task["id"], "id": one["id"]});
        let got = talk.call(binding, "GetTaskPushNotificationConfig", &params).unwrap();
        assert_eq!((&got["id"], &got["url"]), (&one["id"], &json!(receiver.url)), "{got}");
        assert!(!got.to_string().contains("a-credential"), "{got}");
        let params = json!({"taskId": task["id"]});
        let list = talk.call(binding, "ListTaskPushNotificationConfigs", &params).unwrap();
        assert_eq!(list["configs"].as_array().unwrap().len(), 2, "{list}");
        for (task, id) in [(&task["id"], "none"), (&json!("no-such-task"), "mine")] {
            let params = json!({"taskId": task, "id": id});
            let fault = talk.call(binding, "GetTaskPushNotificationConfig", &params).unwrap_err();
            assert_eq!(fault.reason(), "TASK_NOT_FOUND", "{fault:?}");
        }
    }
}

#[test]
fn a_webhook_that_is_deleted_is_gone_and_may_be_deleted_again() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let (gone, stays) = (Receiver::start(), Receiver::start());
        let task = talk.task(binding, "tck-input-required");
        let config = made(&talk, binding, &gone.config(&task));
        made(&talk, binding, &stays.config(&task));
        let params = json!({"taskId": task["id"], "id": config["id"]});
        for _ in 0..2 {
            talk.call(binding, "DeleteTaskPushNotificationConfig", &params).unwrap();
        }
        let fault = talk.call(binding, "GetTaskPushNotificationConfig", &params).unwrap_err();
        assert_eq!(fault.reason(), "TASK_NOT_FOUND", "{fault:?}");
        talk.send(binding, reply(&task, "this")).unwrap();
        stays.until("COMPLETED");
        assert!(gone.words().is_empty(), "{:?}", gone.words());
    }
}
