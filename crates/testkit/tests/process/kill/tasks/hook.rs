//! A receiver of webhooks that is never killed. It refuses a try now and then, and keeps what it
//! took.

use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use testkit::http::Connection;

/// One try in so many is refused.
const REFUSES_ONE_IN: u64 = 5;
/// A server may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const REFUSED: &[u8] = b"HTTP/1.1 503 Not now\r\ncontent-length: 0\r\n\r\n";

/// The receiver; it serves until the process ends.
pub(super) struct Hook {
    pub(super) url: String,
    desk: Arc<Mutex<Desk>>,
}

#[derive(Default)]
struct Desk {
    tries: u64,
    taken: Vec<Value>,
}

impl Hook {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let desk = Arc::<Mutex<Desk>>::default();
        let kept = desk.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = kept.clone();
                thread::spawn(move || take(stream, &desk));
            }
        });
        Self { url, desk }
    }

    /// What it took for this task, in order.
    pub(super) fn taken(&self, task: &str) -> Vec<Value> {
        let is_of_it = |update: &&Value| {
            ["statusUpdate", "artifactUpdate"].iter().any(|kind| update[kind]["taskId"] == task)
        };
        locked(&self.desk).taken.iter().filter(is_of_it).cloned().collect()
    }
}

fn take(stream: TcpStream, desk: &Mutex<Desk>) {
    let mut connection = Connection::new(stream).unwrap();
    while let Ok(Some(message)) = connection.read(IDLE_LIMIT) {
        let answer = {
            let mut desk = locked(desk);
            desk.tries += 1;
            match desk.tries.is_multiple_of(REFUSES_ONE_IN) {
                true => REFUSED,
                false => {
                    desk.taken.push(serde_json::from_str(&message.body).unwrap());
                    TAKEN
                }
            }
        };
        if connection.write(answer).is_err() {
            return;
        }
    }
}

fn locked(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}
