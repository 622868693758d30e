//! Webhooks of A2A: a real receiver is notified in order, again after failures and after a restart,
//! and only where that is allowed.

use crate::a2a::{ADD, SETTINGS, house, message, open, project, reply, rpc, send};
use crate::credentials::{Guarded, OPEN};
use crate::house::{Answer, House, is_in_clear, read, request, wait_for};
use crate::mcp_client::LIMIT;
use axum::body::Body;
use axum::http::Method;
use kernel::contracts::Policy;
use kernel::contracts::policy::{Decision, Request};
use kernel::identity::roles::Role;
use kernel::values::caller::Act;
use serde_json::{Value, json};
use server::Extra;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use testkit::damage::{make_webhook_unreadable, webhook_ids};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt;

/// Webhooks may be on this machine, and are tried again soon.
pub const PUSH: &str = "[a2a.push]\nallow = [\"127.0.0.1\"]\n\
     [limits]\ndelivery_backoff_ms = 1\ndelivery_backoff_ms_max = 20\n";
pub const OK: &str = "200 OK";

/// What a receiver got.
#[derive(Debug, Clone)]
pub struct Got {
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl Got {
    /// The update in a word.
    fn word(&self) -> &str {
        match self.body["statusUpdate"]["status"]["state"].as_str() {
            Some(state) => state.strip_prefix("TASK_STATE_").unwrap(),
            None if self.body["artifactUpdate"].is_object() => "artifact",
            None => "?",
        }
    }
}

/// A receiver of webhooks, as long as the test runs.
pub struct Receiver {
    pub url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Receiver {
    /// Answers with these first lines and headers, one after the other, and then with the last one.
    fn answering(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let got = Arc::<Mutex<Vec<Got>>>::default();
        let kept = got.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let got = kept.clone();
                let answers = answers.clone();
                thread::spawn(move || serve(stream, &got, &answers));
            }
        });
        Self { url, got }
    }

    pub fn new(answers: &[&str]) -> Self {
        Self::answering(answers.iter().map(|one| (*one).to_owned()).collect())
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Waits until it got so many notifications.
    pub async fn wait(&self, count: usize) -> Vec<Got> {
        let is_enough = |got: &Vec<Got>| got.len() >= count;
        wait_for(&format!("{count} notifications"), async || self.got(), is_enough).await
    }

    /// Waits until it got an update of this word; all words until then.
    pub async fn until(&self, word: &str) -> Vec<String> {
        let is_there = |got: &Vec<Got>| got.iter().any(|got| got.word() == word);
        let got = wait_for(&format!("the update {word}"), async || self.got(), is_there).await;
        got.iter().map(|got| got.word().to_owned()).collect()
    }

    /// A webhook here.
    pub fn config(&self) -> Value {
        json!({"url": self.url, "token": "mine",
            "authentication": {"scheme": "Bearer", "credentials": "hush-hush-hush"}})
    }
}

/// Reads one request, keeps it and answers; who breaks off is let go.
fn serve(stream: TcpStream, got: &Mutex<Vec<Got>>, answers: &[String]) {
    let mut reader = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut bytes = vec![0; length];
    if reader.read_exact(&mut bytes).is_err() {
        return;
    }
    let body = serde_json::from_slice(&bytes).unwrap();
    let number = {
        let mut got = got.lock().unwrap();
        got.push(Got { headers, body });
        got.len() - 1
    };
    let answer = answers.get(number).or(answers.last()).unwrap();
    let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let _ = reader.get_mut().write_all(answer.as_bytes());
}

/// Sends a message with a webhook.
async fn send_with(house: &House, message: Value, config: Value) -> Value {
    let configuration = json!({"taskPushNotificationConfig": config});
    let params = json!({"message": message, "configuration": configuration});
    let answer = rpc(house, "SendMessage", params).await;
    let task = answer["result"]["task"].clone();
    assert!(task.is_object(), "{answer}");
    task
}

fn add(id: &str) -> Value {
    message(id, ADD, json!({"data": {"a": 1, "b": 2}}))
}

fn question(id: &str) -> Value {
    message(id, "it/question", json!({"data": {}}))
}

/// A webhook for a task that is there.
async fn create(house: &House, task: &Value, mut config: Value) -> Value {
    config["taskId"] = task["id"].clone();
    rpc(house, "CreateTaskPushNotificationConfig", config).await
}

/// Waits until one webhook has ended.
async fn until_ended(house: &House) {
    let metrics = async || house.get("/metrics").await.text;
    let ended = "waypost_pushes_total{outcome=\"ended\"} 1";
    let is_shown = |text: &String| text.lines().any(|line| line == ended);
    wait_for("the end of the webhook", metrics, is_shown).await;
}

#[tokio::test]
async fn a_webhook_that_comes_with_a_message_gets_what_a_stream_gets() {
    let house = house(&format!("{SETTINGS}{PUSH}")).await;
    let receiver = Receiver::new(&[OK]);
    let task = send_with(&house, add("m1"), receiver.config()).await;
    assert_eq!(receiver.until("COMPLETED").await, ["WORKING", "artifact", "COMPLETED"]);
    let got = receiver.got();
    for one in &got {
        assert_eq!(one.headers["content-type"], "application/a2a+json");
        assert_eq!(one.headers["x-a2a-notification-token"], "mine");
        assert_eq!(one.headers["authorization"], "Bearer hush-hush-hush");
    }
    assert_eq!(got[2].body["statusUpdate"]["taskId"], task["id"]);
    assert_eq!(got[1].body["artifactUpdate"]["artifact"], task["artifacts"][0]);
    // A repeat of the message makes no second webhook, and nothing is posted twice.
    send_with(&house, add("m1"), receiver.config()).await;
    let listed = rpc(&house, "ListTaskPushNotificationConfigs", json!({"taskId": task["id"]}));
    assert_eq!(listed.await["result"]["configs"].as_array().unwrap().len(), 1);
    send_with(&house, add("m2"), receiver.config()).await;
    assert_eq!(receiver.wait(6).await.len(), 6);
}

#[tokio::test]
async fn a_webhook_of_a_task_that_waits_gets_what_follows() {
    let house = house(&format!("{SETTINGS}{PUSH}")).await;
    let receiver = Receiver::new(&[OK]);
    let task = send(&house, question("m1")).await;
    let made = create(&house, &task, receiver.config()).await["result"].clone();
    assert_eq!((&made["url"], &made["taskId"]), (&json!(receiver.url), &task["id"]), "{made}");
    assert!(!made["id"].as_str().unwrap().is_empty());
    send(&house, reply("m2", &task, json!({"text": "yes"}))).await;
    assert_eq!(receiver.until("COMPLETED").await, ["WORKING", "artifact", "COMPLETED"]);
    // One that is made for a task that is over is kept, and has nothing to post.
    let late = create(&house, &task, json!({"id": "late", "url": receiver.url})).await;
    assert_eq!(late["result"]["id"], "late", "{late}");
    assert_eq!(receiver.got().len(), 3);
}

/// Allows everything, and stops once, at one of the reads that it is asked about, until the test
/// lets it continue: what happens meanwhile happens between two looks at the store.
struct Stopping {
    /// How many reads are asked about until then; 0 where it does not stop.
    reads: AtomicU32,
    reached: Semaphore,
    resumed: Mutex<mpsc::Receiver<()>>,
}

impl Policy for Stopping {
    fn decide(&self, asked: &Request<'_>) -> Decision {
        let counted = |reads: u32| reads.checked_sub(1);
        let is_read = asked.act == Act::Read;
        if is_read && self.reads.fetch_update(SeqCst, SeqCst, counted) == Ok(1) {
            self.reached.add_permits(1);
            let resumed = self.resumed.lock().unwrap();
            let waited = tokio::task::block_in_place(|| resumed.recv_timeout(LIMIT));
            waited.expect("the test did not let the request continue");
        }
        Decision::allow()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_webhook_that_is_made_while_its_task_ends_gets_the_end() {
    // The request looks at the task, at the end of its journal, at the task again, and at whether
    // its caller may do this. A task that is over at the second look has nothing more to post.
    for look in 2..=4 {
        let (resume, resumed) = mpsc::channel();
        let reads = AtomicU32::new(0);
        let reached = Semaphore::new(0);
        let stopping = Arc::new(Stopping { reads, reached, resumed: Mutex::new(resumed) });
        // Each in a house of its own: a webhook that is there reads its task, too.
        let extra = Extra { policy: Some(stopping.clone()), ..Extra::default() };
        let house = House::furnished(project(&format!("{SETTINGS}{PUSH}")), extra).await;
        let receiver = Receiver::new(&[OK]);
        let task = send(&house, question("m1")).await;
        let mut config = receiver.config();
        config["taskId"] = task["id"].clone();
        let body = json!({"jsonrpc": "2.0", "id": 1,
            "method": "CreateTaskPushNotificationConfig", "params": config});
        let mut making = request(Method::POST, "/a2a/v1", Body::from(body.to_string()));
        making.headers_mut().insert("a2a-version", "1.0".parse().unwrap());
        stopping.reads.store(look, SeqCst);
        let router = house.router();
        let made = tokio::spawn(async move { read(router.oneshot(making).await.unwrap()).await });
        let reached = timeout(LIMIT, stopping.reached.acquire()).await;
        reached.unwrap_or_else(|_| panic!("waited in vain for look {look}")).unwrap().forget();
        let ended = send(&house, reply("m2", &task, json!({"text": "yes"}))).await;
        assert_eq!(ended["status"]["state"], "TASK_STATE_COMPLETED", "{ended}");
        resume.send(()).unwrap();
        let made = timeout(LIMIT, made).await.expect("the webhook was not made").unwrap();
        assert_eq!(made.body["result"]["url"], json!(receiver.url), "look {look}: {made:?}");
        receiver.until("COMPLETED").await;
    }
}

#[tokio::test]
async fn a_refused_update_is_posted_again_before_the_next() {
    let house = house(&format!("{SETTINGS}{PUSH}")).await;
    let receiver = Receiver::new(&["503 Not now", "500 Oh", OK]);
    send_with(&house, add("m1"), receiver.config()).await;
    receiver.until("COMPLETED").await;
    let got = receiver.got();
    let words: Vec<&str> = got.iter().map(Got::word).collect();
    assert_eq!(words, ["WORKING", "WORKING", "WORKING", "artifact", "COMPLETED"]);
    assert_eq!((&got[0].body, &got[1].body), (&got[2].body, &got[2].body));
}

#[tokio::test]
async fn a_receiver_that_takes_nothing_gets_no_more_after_so_many_tries() {
    let settings = format!("{SETTINGS}{PUSH}push_attempts_max = 2\n");
    let house = house(&settings).await;
    let deaf = Receiver::new(&["500 No"]);
    let well = Receiver::new(&[OK]);
    let gone = Receiver::new(&["410 Gone"]);
    let elsewhere = Receiver::answering(vec![format!("302 Found\r\nlocation: {}", well.url)]);
    let task = send(&house, question("m1")).await;
    for receiver in [&deaf, &gone, &elsewhere] {
        let made = create(&house, &task, receiver.config()).await;
        assert!(made["result"].is_object(), "{made}");
    }
    send_with(&house, question("m2"), deaf.config()).await;
    deaf.wait(2).await;
    let first = deaf.got();
    assert_eq!(first[0].body, first[1].body, "{first:?}");
    send(&house, reply("m3", &task, json!({"text": "yes"}))).await;
    // Each of these ends after its own number of tries; this one, made last, takes all.
    deaf.wait(4).await;
    gone.wait(1).await;
    elsewhere.wait(2).await;
    let last = send_with(&house, add("m4"), well.config()).await;
    well.until("COMPLETED").await;
    assert!(
        well.got().iter().all(|got| got.body.to_string().contains(last["id"].as_str().unwrap()))
    );
    assert_eq!((deaf.got().len(), gone.got().len(), elsewhere.got().len()), (4, 1, 2));
}

#[tokio::test]
async fn an_end_that_is_never_taken_is_given_up_though_what_comes_with_it_is_taken() {
    let house = house(&format!("{SETTINGS}{PUSH}push_attempts_max = 3\n")).await;
    let no = "500 No";
    // The artifact and the end are of one event, and are posted again together.
    let receiver = Receiver::new(&[OK, OK, no, OK, no, OK, no, OK]);
    send_with(&house, add("m1"), receiver.config()).await;
    until_ended(&house).await;
    let got = receiver.got();
    let words: Vec<&str> = got.iter().map(Got::word).collect();
    let artifact = "artifact";
    let end = "COMPLETED";
    assert_eq!(words, ["WORKING", artifact, end, artifact, end, artifact, end]);
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_before_anything_begins() {
    let house = house(SETTINGS).await;
    let task = send(&house, question("m1")).await;
    for url in [
        "http://127.0.0.1:9/hook",
        "http://localhost:9/hook",
        "http://[::1]/",
        "http://10.1.2.3/",
        "http://169.254.169.254/latest/meta-data",
        "http://2130706433/",
        "ftp://hooks.example.com/",
        "https://ann:hush@hooks.example.com/",
        "",
    ] {
        let made = create(&house, &task, json!({"url": url})).await;
        assert_eq!(made["error"]["code"], -32602, "{url}: {made}");
        assert!(!made.to_string().contains("hush"), "{made}");
        let configuration = json!({"taskPushNotificationConfig": {"url": url}});
        let params = json!({"message": question("m2"), "configuration": configuration});
        let answer = rpc(&house, "SendMessage", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{url}: {answer}");
    }
    let made = create(&house, &task, json!({"url": "https://a.test/", "token": "a\nb"})).await;
    assert_eq!(made["error"]["code"], -32602, "{made}");
    let listed = rpc(&house, "ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 1, "no task began: {listed}");
    let listed = rpc(&house, "ListTaskPushNotificationConfigs", json!({"taskId": task["id"]}));
    assert_eq!(listed.await["result"], json!({}));
}

#[tokio::test]
async fn webhooks_are_kept_over_a_restart_and_their_secrets_are_sealed() {
    let data = tempfile::tempdir().unwrap();
    let settings = format!("{SETTINGS}{PUSH}");
    let receiver = Receiver::new(&[OK]);
    let (house, stopper) = House::over(|| project(&settings), &data, None).await;
    let task = send_with(&house, question("m1"), receiver.config()).await;
    receiver.until("INPUT_REQUIRED").await;
    let before = receiver.got().len();
    stopper.stop().await;
    drop((house, stopper));
    let secrets = ["hush-hush-hush".to_owned(), receiver.url.clone()];
    assert!(!is_in_clear(data.path(), &secrets), "a secret can be read in the data folder");
    let (house, stopper) = House::over(|| project(&settings), &data, None).await;
    send(&house, reply("m2", &task, json!({"text": "yes"}))).await;
    receiver.until("COMPLETED").await;
    let rest: Vec<String> =
        receiver.got()[before..].iter().map(|got| got.word().to_owned()).collect();
    assert!(rest.ends_with(&["WORKING", "artifact", "COMPLETED"].map(str::to_owned)), "{rest:?}");
    let got = receiver.got();
    assert_eq!(got.last().unwrap().headers["authorization"], "Bearer hush-hush-hush");
    stopper.stop().await;
}

#[tokio::test]
async fn a_restored_server_notifies_the_webhooks_of_its_tasks() {
    let settings = format!("{SETTINGS}{PUSH}");
    let house = house(&settings).await;
    let receiver = Receiver::new(&[OK]);
    let task = send_with(&house, question("m1"), receiver.config()).await;
    receiver.until("INPUT_REQUIRED").await;
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("backup");
    let made = house.post("/api/v1/backup", json!({"dir": into})).await;
    assert_eq!(made.status, 200, "{made:?}");
    drop(house);
    server::restore(&into, &folder.path().join("data")).unwrap();
    let (restored, stopper) = House::over(|| project(&settings), &folder, None).await;
    send(&restored, reply("m2", &task, json!({"text": "yes"}))).await;
    receiver.until("COMPLETED").await;
    let last = receiver.got().pop().unwrap();
    assert_eq!(last.headers["authorization"], "Bearer hush-hush-hush");
    stopper.stop().await;
}

#[tokio::test]
async fn an_address_that_is_not_allowed_any_more_gets_nothing() {
    let data = tempfile::tempdir().unwrap();
    let receiver = Receiver::new(&[OK]);
    let allowed = format!("{SETTINGS}{PUSH}");
    let (house, stopper) = House::over(|| project(&allowed), &data, None).await;
    let task = send(&house, question("m1")).await;
    let made = create(&house, &task, receiver.config()).await;
    assert!(made["result"].is_object(), "{made}");
    stopper.stop().await;
    drop((house, stopper));
    let (house, stopper) = House::over(|| project(SETTINGS), &data, None).await;
    send(&house, reply("m2", &task, json!({"text": "yes"}))).await;
    until_ended(&house).await;
    assert!(receiver.got().is_empty(), "{:?}", receiver.got());
    stopper.stop().await;
}

#[tokio::test]
async fn webhooks_are_read_listed_replaced_and_removed_in_both_bindings() {
    let settings = format!("{SETTINGS}{PUSH}push_configs_max = 2\n");
    let house = house(&settings).await;
    let receiver = Receiver::new(&[OK]);
    let task = send(&house, question("m1")).await;
    let path = format!("/a2a/v1/tasks/{}/pushNotificationConfigs", task["id"].as_str().unwrap());
    let mut config = receiver.config();
    config["id"] = json!("one");
    let made = open(&house, Method::POST, &path, &config).await;
    let shown = json!({"id": "one", "taskId": task["id"], "url": receiver.url, "token": "mine",
        "authentication": {"scheme": "Bearer"}});
    assert_eq!((made.status, &made.body), (200, &shown), "credentials are not read back");
    let named = json!({"taskId": task["id"], "id": "one"});
    let got = rpc(&house, "GetTaskPushNotificationConfig", named.clone()).await;
    assert_eq!(got["result"], shown);
    let got = open(&house, Method::GET, &format!("{path}/one"), &Value::Null).await;
    assert_eq!(got.body, shown);
    create(&house, &task, json!({"id": "two", "url": receiver.url})).await;
    let third = create(&house, &task, json!({"url": receiver.url})).await;
    assert_eq!(third["error"]["code"], -32000, "{third}");
    let again = create(&house, &task, json!({"id": "one", "url": receiver.url})).await;
    assert_eq!(again["result"].get("token"), None, "it takes the place of the other: {again}");
    let page = open(&house, Method::GET, &format!("{path}?pageSize=1"), &Value::Null).await;
    let ids = |answer: &Answer| -> Vec<String> {
        let configs = answer.body["configs"].as_array().unwrap();
        configs.iter().map(|config| config["id"].as_str().unwrap().to_owned()).collect()
    };
    let token = page.body["nextPageToken"].as_str().unwrap();
    let rest = open(&house, Method::GET, &format!("{path}?pageToken={token}"), &Value::Null).await;
    assert_eq!((ids(&page), ids(&rest)), (vec!["one".to_owned()], vec!["two".to_owned()]));
    assert_eq!(rest.body.get("nextPageToken"), None);
    for _ in 0..2 {
        let gone = open(&house, Method::DELETE, &format!("{path}/one"), &Value::Null).await;
        assert_eq!((gone.status, &gone.body), (200, &json!({})), "once and again");
    }
    let gone = rpc(&house, "DeleteTaskPushNotificationConfig", named.clone()).await;
    assert_eq!(gone["result"], json!({}));
    let got = rpc(&house, "GetTaskPushNotificationConfig", named).await;
    assert_eq!(got["error"]["code"], -32001, "{got}");
    let card = open(&house, Method::GET, "/.well-known/agent-card.json", &Value::Null).await;
    assert_eq!(card.body["capabilities"]["pushNotifications"], true);
}

#[tokio::test]
async fn a_webhook_that_cannot_be_read_takes_no_room_and_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::new(&[OK]);
    let data = folder.path().join("data");
    let settings = format!("{SETTINGS}{PUSH}push_configs_max = 2\n");
    let (house, stopper) = House::over(|| project(&settings), &folder, None).await;
    let task = send(&house, question("m1")).await;
    let config = |id: &str| json!({"id": id, "url": receiver.url});
    for id in ["lost", "kept"] {
        let made = create(&house, &task, config(id)).await;
        assert_eq!(made["result"]["id"], id, "{made}");
    }
    stopper.stop().await;
    drop((house, stopper));
    make_webhook_unreadable(&data, "lost");
    let (house, stopper) = House::over(|| project(&settings), &folder, None).await;
    let made = create(&house, &task, config("new")).await;
    assert_eq!(made["result"]["id"], "new", "{made}");
    let beyond = create(&house, &task, config("beyond")).await;
    assert_eq!(beyond["error"]["code"], -32000, "{beyond}");
    let named = json!({"taskId": task["id"], "id": "lost"});
    let removed = rpc(&house, "DeleteTaskPushNotificationConfig", named).await;
    assert_eq!(removed["result"], json!({}), "{removed}");
    stopper.stop().await;
    drop((house, stopper));
    assert_eq!(webhook_ids(&data), ["kept", "new"]);
}

#[tokio::test]
async fn a_webhook_goes_with_its_task() {
    let house = house(&format!("{SETTINGS}{PUSH}")).await;
    let receiver = Receiver::new(&[OK]);
    let task = send_with(&house, add("m1"), receiver.config()).await;
    receiver.until("COMPLETED").await;
    house.prune(1).await;
    let listed = rpc(&house, "ListTaskPushNotificationConfigs", json!({"taskId": task["id"]}));
    assert_eq!(listed.await["error"]["code"], -32001);
}

#[tokio::test]
async fn a_server_without_webhooks_says_so_before_it_looks_for_a_task() {
    let house = house(&format!("{SETTINGS}[a2a.push]\nenabled = false\n")).await;
    for method in ["Create", "Get", "Delete"] {
        let method = format!("{method}TaskPushNotificationConfig");
        let answer = rpc(&house, &method, json!({"taskId": "x", "id": "y"})).await;
        assert_eq!(answer["error"]["code"], -32003, "{method}: {answer}");
    }
    let listed = rpc(&house, "ListTaskPushNotificationConfigs", json!({"taskId": "x"})).await;
    assert_eq!(listed["error"]["code"], -32003, "{listed}");
    let configuration = json!({"taskPushNotificationConfig": {"url": "https://a.test/"}});
    let params = json!({"message": add("m1"), "configuration": configuration});
    assert_eq!(rpc(&house, "SendMessage", params).await["error"]["code"], -32003);
    let card = open(&house, Method::GET, "/.well-known/agent-card.json", &Value::Null).await;
    assert_eq!(card.body["capabilities"]["pushNotifications"], false);
}

#[tokio::test]
async fn a_webhook_is_its_maker_s_alone() {
    let settings = format!("{OPEN}[a2a]\nexpose = [\"math::*\"]\n{PUSH}");
    let guarded = Guarded::start(&settings).await;
    let receiver = Receiver::new(&[OK]);
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Operator).await;
    let call = async |key: &str, method: &str, params: &Value| -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = [("a2a-version", "1.0"), ("x-api-key", key)];
        read(guarded.open(Method::POST, "/a2a/v1", &headers, &body).await).await.body
    };
    let configuration = json!({"taskPushNotificationConfig": receiver.config()});
    let params = json!({"message": add("m1"), "configuration": configuration});
    let task = call(&ann, "SendMessage", &params).await["result"]["task"].clone();
    assert_eq!(receiver.until("COMPLETED").await.len(), 3, "{task}");
    let of_task = json!({"taskId": task["id"]});
    let listed = call(&ann, "ListTaskPushNotificationConfigs", &of_task).await;
    let id = listed["result"]["configs"][0]["id"].clone();
    let url = &receiver.url;
    let params = json!({"taskId": task["id"], "id": id, "url": url});
    for method in ["CreateTask", "GetTask", "ListTask", "DeleteTask"] {
        let end = if method == "ListTask" { "s" } else { "" };
        let method = format!("{method}PushNotificationConfig{end}");
        let answer = call(&bob, &method, &params).await;
        assert_eq!(answer["error"]["code"], -32001, "{method}: {answer}");
    }
    let own = call(&ann, "GetTaskPushNotificationConfig", &params).await;
    assert_eq!(own["result"]["url"], *url, "{own}");
}
