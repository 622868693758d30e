//! Runs that continue on the server after their command, and writes with an unknown outcome: the
//! terminal shows both.

use crate::process::{Running, Server, waypost, write};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;
use testkit::harness::wait_for;
use testkit::http::Client;

const LIMIT: Duration = Duration::from_secs(120);

const PAY: &str = r#"description: pays
startStepId: pay
steps:
  - id: pay
    type: tool_call
    toolId: "http::request"
    arguments: {method: POST, url: "http://SHOP/pay", body: {amount: 7}}
    saveAs: paid
    nextStepId: end
  - {id: end, type: final_response, message: "paid {{ context.paid.body.n }}"}
"#;

/// Another system, which takes requests and never answers.
struct Silent {
    address: SocketAddr,
    taken: Receiver<TcpStream>,
}

impl Silent {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, taken) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if sender.send(stream).is_err() {
                    break;
                }
            }
        });
        Self { address, taken }
    }

    /// Waits until a request has come; it stays unanswered for as long as the stream lives.
    fn request(&self) -> TcpStream {
        let mut stream = self.taken.recv_timeout(LIMIT).expect("a request to the other system");
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut first = [0];
        assert_eq!(stream.read(&mut first).unwrap(), 1, "it was connected to and sent nothing");
        stream
    }

    /// Writes a project whose plan `shop/pay` pays here.
    fn project(&self, folder: &Path, limits: &str) {
        let address = self.address.to_string();
        let settings = format!("[tools.http]\nallow = [\"{address}\"]\n[limits]\n{limits}\n");
        let pay = PAY.replace("SHOP", &address);
        let files = [("waypost.toml", settings.as_str()), ("plans/shop/pay.yaml", pay.as_str())];
        write(folder, &files);
    }
}

#[test]
fn an_unknown_outcome_has_its_title_and_no_hint_to_skip() {
    let shop = Silent::start();
    let folder = tempfile::tempdir().unwrap();
    shop.project(folder.path(), "call_timeout_ms = 500");
    let server = Server::of_project(folder.path());
    let paused = server.run(&["plan", "run", "shop/pay", "--session", "p"]).code(3);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let open = &asks["items"][0];
    assert_eq!(open["title"], "outcome unknown: `http::request` at step `pay`", "{asks}");
    let url = &server.url;
    let ask = open["id"].as_str().unwrap();
    let answer = format!("  waypost --server {url} inbox answer {ask} --action");
    let steps = format!(
        "  check in the other system whether it happened, then one of\n\
         {answer} settle --output '..'    # it happened: its result as JSON\n\
         {answer} retry    # it did not happen\n\
         {answer} abort    # end the run as failed\n"
    );
    assert!(paused.stderr.ends_with(&steps), "{paused:#?}");
    let shown = server.run(&["inbox", "show", ask]).code(0);
    assert_eq!(shown.stderr, format!("answer with\n{steps}"));
    assert!(shown.stdout.lines().any(|line| line == "outcome     unknown"), "{shown:#?}");
    server.run(&["inbox", "answer", ask]).code(2).says(
        "hint: check in the other system whether it happened, then `--action settle --output \
         '..'` (it happened: its result as JSON), `--action retry` (it did not happen), `--action \
         abort` (end the run as failed)",
    );
    let output = r#"{"status": 200, "headers": {}, "body": {"n": 7}}"#;
    let settle = ["inbox", "answer", ask, "--action", "settle", "--output", output];
    assert_eq!(server.run(&settle).code(0).stdout, "paid 7\n");
}

/// How many answers of this status a server gave, as its metrics say.
fn answered(metrics: &str, status: &str) -> u64 {
    let begin = format!("waypost_http_responses_total{{code=\"{status}\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&begin));
    count.map_or(0, |count| count.parse().unwrap())
}

/// Waits until somebody other than the test was answered so often.
fn wait_for_answers(server: &Server, count: u64) {
    let mut client = Client::new(server.url.trim_start_matches("http://").parse().unwrap());
    let mut ours = 0;
    wait_for("the command to know its run", LIMIT, || {
        let metrics = client.get("/metrics").unwrap().body;
        let theirs = answered(&metrics, "200").saturating_sub(ours);
        ours += 1;
        (theirs >= count).then_some(())
    });
}

#[test]
fn an_interrupt_says_that_the_run_continues_and_how_to_end_it() {
    let shop = Silent::start();
    let folder = tempfile::tempdir().unwrap();
    shop.project(folder.path(), "cancel_grace_ms = 100");
    let server = Server::of_project(folder.path());
    let running =
        Running::start(folder.path(), &["plan", "run", "shop/pay", "--session", "p"], &[]);
    let _unanswered = shop.request();
    // It asked which server this is, and looked at its run.
    wait_for_answers(&server, 2);
    let ended = running.interrupt().code(130);
    let session = server.json(&["session", "show", "p"]).code(0).json()["session"].clone();
    assert_eq!(session["status"], "running");
    let id = session["id"].as_str().unwrap();
    let expected = format!(
        "error: interrupted\n\
         hint: the run continues on the server: follow it with `waypost session tail {id}`, end \
         it with `waypost session cancel {id}`\n"
    );
    assert_eq!((ended.stdout.as_str(), ended.stderr), ("", expected));

    let cancelled = waypost(folder.path(), &["session", "cancel", id]).code(0);
    assert!(cancelled.stdout.ends_with(" cancelled\n"), "{cancelled:#?}");
    let hint = "nobody knows whether these calls happened: call_";
    let cancelled = cancelled.says(&format!("hint: {hint}"));
    let shown = server.run(&["session", "show", "p"]).code(0);
    let told = cancelled.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    let line = shown.stdout.lines().find(|line| line.starts_with("hint ")).unwrap();
    assert!(line.ends_with(told), "{shown:#?}");
}
