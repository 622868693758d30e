//! Sinks as they are configured, and lines as they are written.

pub(crate) mod samples;

use crate::config::{SinkConfig, SinkKind};
use crate::lines::{LineSink, Lines};
use crate::{Parts, open};
use futures::executor::block_on;
use kernel::contracts::sink::EventSink;
use samples::{Stopped, Threads, event};
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex};

fn parts() -> Parts {
    Parts { clock: Arc::new(Stopped), spawn: Arc::new(Threads) }
}

fn config(kind: SinkKind) -> SinkConfig {
    SinkConfig { name: "audit".to_owned(), kind }
}

fn webhook(url: &str, secret: &str) -> SinkConfig {
    config(SinkKind::Webhook { url: url.to_owned(), secret: secret.into(), timeout_ms: None })
}

fn wrong(config: &SinkConfig) -> Vec<String> {
    let mistakes = open(config, &parts()).err().unwrap_or_default();
    mistakes.iter().map(ToString::to_string).collect()
}

/// Every write, and how many of them fail first.
#[derive(Clone, Default)]
struct Written {
    writes: Arc<Mutex<Vec<String>>>,
    fail: Arc<Mutex<usize>>,
}

impl Lines for Written {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut fail = self.fail.lock().unwrap();
        if *fail > 0 {
            *fail -= 1;
            return Err(io::Error::other("no room"));
        }
        self.writes.lock().unwrap().push(String::from_utf8(lines.to_vec()).unwrap());
        Ok(())
    }
}

#[test]
fn a_batch_is_one_write_of_one_line_per_event() {
    let written = Written::default();
    let sink = LineSink::start("stdout", "standard output", written.clone(), &Threads);
    assert_eq!((sink.kind(), sink.lanes(), sink.is_logged()), ("stdout", 1, false));
    block_on(sink.deliver(&[event(1), event(2)])).unwrap();
    block_on(sink.deliver(&[event(3)])).unwrap();
    let writes = written.writes.lock().unwrap();
    assert_eq!(writes.len(), 2);
    let lines: Vec<Value> =
        writes.concat().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [event(1).id, event(2).id, event(3).id]);
    assert_eq!(lines[0]["data"]["line"], "one\ntwo");
}

#[test]
fn a_failed_batch_is_reported_and_can_be_retried() {
    let written = Written::default();
    *written.fail.lock().unwrap() = 1;
    let sink = LineSink::start("stdout", "standard output", written.clone(), &Threads);
    let error = block_on(sink.deliver(&[event(1)])).unwrap_err();
    assert_eq!(error.message, "standard output cannot be written: no room");
    assert!(!error.is_gone && !error.is_refusal);
    block_on(sink.deliver(&[event(1)])).unwrap();
    assert_eq!(written.writes.lock().unwrap().len(), 1);
}

#[test]
fn a_file_is_opened_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let sink = open(&config(SinkKind::File { path: path.clone() }), &parts()).unwrap();
    assert_eq!(sink.kind(), "file");
    block_on(sink.deliver(&[event(1)])).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", event(1).to_json()));
    assert_eq!(open(&config(SinkKind::Stdout), &parts()).unwrap().kind(), "stdout");
}

#[test]
fn an_unusable_sink_is_reported_at_once_without_secrets() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let good = open(&webhook("https://a.test/x", secret), &parts()).unwrap();
    assert_eq!((good.kind(), good.batch_max(), good.is_logged()), ("webhook", 1, true));
    let told = wrong(&webhook("ftp://a.test/", "whsec_hush"));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("sink `audit`") && told[0].contains("not `ftp`"), "{told:?}");
    assert!(told[1].contains("sink `audit`") && !told[1].contains("hush"), "{told:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let told = wrong(&config(SinkKind::File { path }));
    assert!(told.len() == 1 && told[0].contains("cannot be opened"), "{told:?}");
}
