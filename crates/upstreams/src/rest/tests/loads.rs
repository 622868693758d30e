//! Many documents at once: few large ones, and small ones beside them.

use super::{json_answer, loaded, parts, request};
use crate::config::{Document, RestConfig};
use crate::rest::{LARGE_MAX, SMALL_BYTES};
use futures::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);
/// How long we look whether one more comes.
const QUIET: Duration = Duration::from_millis(300);

/// A server of large documents. Who comes for one again, with room for all of it, waits until the
/// test says so.
struct Slow {
    seen: Mutex<BTreeSet<String>>,
    waiting: AtomicUsize,
    most: AtomicUsize,
    answers: Semaphore,
}

impl Slow {
    async fn answer(&self, mut stream: TcpStream) {
        let first_line = request(&mut stream).await.lines().next().unwrap().to_owned();
        let is_large = first_line.contains("/large");
        if is_large && !self.seen.lock().unwrap().insert(first_line) {
            let waiting = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(waiting, Ordering::SeqCst);
            self.answers.acquire().await.unwrap().forget();
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        let filler = "x".repeat(if is_large { SMALL_BYTES } else { 1 });
        let paths = json!({"/x": {"get": {"operationId": "x"}}});
        let document = json!({"openapi": "3.1.0", "paths": paths, "x-filler": filler});
        // Who takes less than all of it hangs up.
        let _ = stream.write_all(json_answer("200 OK", &document).as_bytes()).await;
    }
}

#[tokio::test]
async fn few_large_documents_are_fetched_at_once_and_small_ones_do_not_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let slow = Arc::new(Slow {
        seen: Mutex::default(),
        waiting: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        answers: Semaphore::new(0),
    });
    let serving = slow.clone();
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let slow = serving.clone();
            tokio::spawn(async move { slow.answer(stream).await });
        }
    });
    let count = 3 * LARGE_MAX;
    let parts = parts();
    let config = |name: String| RestConfig::new(Document::Url(format!("http://{address}/{name}")));
    let loads = join_all((0..count).map(|no| loaded(config(format!("large{no}")), &parts)));
    let watched = async {
        while slow.waiting.load(Ordering::SeqCst) < LARGE_MAX {
            sleep(LOOK).await;
        }
        sleep(QUIET).await;
        assert_eq!(slow.most.load(Ordering::SeqCst), LARGE_MAX, "more at once than may be");
        let small = loaded(config("small".to_owned()), &parts).await.unwrap();
        assert_eq!(small.len(), 1);
        assert_eq!(slow.waiting.load(Ordering::SeqCst), LARGE_MAX, "none was answered meanwhile");
        slow.answers.add_permits(count);
    };
    let all = timeout(LIMIT, async { tokio::join!(loads, watched).0 }).await;
    for tools in all.expect("all documents within the limit") {
        assert_eq!(tools.unwrap().len(), 1);
    }
    assert_eq!(slow.most.load(Ordering::SeqCst), LARGE_MAX);
    server.abort();
}
