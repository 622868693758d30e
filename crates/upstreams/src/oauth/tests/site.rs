//! A server on this machine that answers as a test says, and remembers what it was asked.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// `GET /path?query`
    pub(super) line: String,
    /// Its headers, in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Asked {
    /// Its path without the query.
    pub(super) fn path(&self) -> &str {
        let place = self.line.split(' ').nth(1).unwrap();
        place.split('?').next().unwrap()
    }

    /// Its body as a form.
    pub(super) fn form(&self) -> BTreeMap<String, String> {
        let url = reqwest::Url::parse(&format!("http://a.test/?{}", self.body)).unwrap();
        url.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
    }

    /// Its body as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The token that came with it.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.headers.get("authorization")?.strip_prefix("Bearer ")
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Reply {
    /// Only a status.
    pub(super) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    /// JSON with a status.
    pub(super) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string() }
    }

    /// The same with another header.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A server.
#[derive(Clone)]
pub(super) struct Site {
    /// Its root, without a slash at the end.
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Answers to paths that begin with this wait.
    held: watch::Sender<Option<&'static str>>,
    counted: watch::Sender<usize>,
}

type Answer = Arc<dyn Fn(&str, &Asked) -> Reply + Send + Sync>;

impl Site {
    /// A server that answers so; it is told its own root.
    pub(super) async fn start(
        answer: impl Fn(&str, &Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            asked: Arc::default(),
            held: watch::Sender::new(None),
            counted: watch::Sender::new(0),
        };
        let answer: Answer = Arc::new(answer);
        let served = site.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream, answer.clone()));
            }
        });
        site
    }

    /// All that it was asked on paths that begin with this.
    pub(super) fn asked(&self, path: &str) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|asked| asked.path().starts_with(path)).cloned().collect()
    }

    /// The lines of all that it was asked.
    pub(super) fn lines(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.line.clone()).collect()
    }

    /// Waits until it was asked so many things on paths that begin with this.
    pub(super) async fn was_asked(&self, path: &str, times: usize) {
        let mut counted = self.counted.subscribe();
        while self.asked(path).len() < times {
            counted.changed().await.unwrap();
        }
    }

    /// Answers to such paths wait until others are said.
    pub(super) fn hold(&self, path: Option<&'static str>) {
        self.held.send_replace(path);
    }

    async fn serve(self, mut stream: TcpStream, answer: Answer) {
        let mut unread = Vec::new();
        while let Some(asked) = read(&mut stream, &mut unread).await {
            let path = asked.path().to_owned();
            self.asked.lock().unwrap().push(asked.clone());
            self.counted.send_modify(|count| *count += 1);
            let mut held = self.held.subscribe();
            let is_free = |held: &Option<&'static str>| held.is_none_or(|at| !path.starts_with(at));
            held.wait_for(is_free).await.unwrap();
            let Reply { status, headers, body } = answer(&self.url, &asked);
            let headers: String =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} Said\r\n{headers}content-length: {length}\r\n\r\n{body}"
            );
            if stream.write_all(text.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn read(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Asked> {
    loop {
        if let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(unread[..end].to_vec()).unwrap();
            let mut lines = head.lines();
            let line = lines.next().unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned();
            let pair = |line: &str| {
                let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                (name.to_ascii_lowercase(), value.to_owned())
            };
            let headers: BTreeMap<String, String> = lines.map(pair).collect();
            let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
            let whole = end + 4 + length;
            if unread.len() >= whole {
                let body = String::from_utf8(unread[end + 4..whole].to_vec()).unwrap();
                unread.drain(..whole);
                return Some(Asked { line, headers, body });
            }
        }
        let mut part = [0u8; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => unread.extend_from_slice(&part[..count]),
        }
    }
}
