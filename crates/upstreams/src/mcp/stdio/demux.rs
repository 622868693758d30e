//! Dispatches messages of a child to its requests. Answers and messages that name a request go to
//! that request; all others are notifications. Dispatching never waits: a slow reader must not
//! block others, so messages that it has no room for are dropped, except its answer. Credentials of
//! the process are redacted from every message.

use super::super::line::{Incoming, Outgoing, PeerError, PeerErrorKind, Result};
use super::ending::Ending;
use super::outbox::Ticket;
use super::oversized::Outline;
use crate::lock;
use kernel::contracts::Clock;
use kernel::tool::call::CallProgress;
use kernel::values::ids::Millis;
use outbound::redaction::Redactor;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, watch};
use wire::jsonrpc::{Frame, INTERNAL_ERROR, Id, RpcError};
use wire::mcp::META_SUBSCRIPTION;

/// How many requests are open at the same time.
const OPEN_MAX: usize = 4_096;
/// How many messages wait for the reader of one request, its answer not counted.
const REPLIES_MAX: usize = 64;
/// How many pieces of news wait.
const NEWS_MAX: usize = 256;
/// How many questions of the other side are remembered until they are answered.
const QUESTIONS_MAX: usize = 256;
/// Bytes of a line beside the result in it.
const FRAME_BYTES: usize = 1_024;

const LISTEN: &str = "subscriptions/listen";
const CANCELLED: &str = "notifications/cancelled";
const PROGRESS: &str = "notifications/progress";
const PING: &str = "ping";

/// The open requests of one line.
pub(super) struct Demux {
    clock: Arc<dyn Clock>,
    hidden: Arc<Redactor>,
    /// How large an answer may be.
    bytes_max: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// By their ids, as they stand in JSON.
    open: HashMap<String, Open>,
    /// Which request a progress token is of.
    tokens: HashMap<String, String>,
    /// Unanswered questions of the server. While it waits for us, the timeouts of our requests are
    /// paused.
    questions: HashSet<String>,
    server_messages: Option<mpsc::Sender<Incoming>>,
    over: Option<Ending>,
}

/// An open request.
pub(super) struct Open {
    pub(super) method: String,
    /// Whether it was sent.
    pub(super) ticket: Arc<Ticket>,
    replies: mpsc::Sender<Incoming>,
    /// Room that is kept for the answer.
    answer: mpsc::OwnedPermit<Incoming>,
    due: watch::Sender<Option<Millis>>,
    /// None for a request that may last for ever.
    timeout_ms: Option<u64>,
    token: Option<String>,
}

pub(super) struct RequestWatch {
    /// Its id.
    pub(super) key: String,
    /// Closed when no one waits for it any more.
    pub(super) replies: mpsc::Sender<Incoming>,
    /// When it has taken too long; its sender is gone when the request is over.
    pub(super) due: watch::Receiver<Option<Millis>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineReport {
    /// How many messages that no one waited for.
    pub(super) unasked: u32,
    /// How many answers.
    pub(super) answers: u32,
    /// Whether it was no message at all, or had such in it.
    pub(super) garbage: bool,
    /// Requests of the other side that no one has room for.
    pub(super) refused: Vec<Id>,
}

impl Demux {
    /// One without requests, and its news. In no message is left what is hidden.
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        hidden: Arc<Redactor>,
        bytes_max: usize,
    ) -> (Self, mpsc::Receiver<Incoming>) {
        let (sender, server_messages) = mpsc::channel(NEWS_MAX);
        let table = Mutex::new(Table { server_messages: Some(sender), ..Table::default() });
        (Self { clock, hidden, bytes_max, table }, server_messages)
    }

    /// How long a line may be.
    pub(super) fn line_bytes_max(&self) -> usize {
        self.bytes_max.saturating_add(FRAME_BYTES)
    }

    /// Why the line is over, if it is.
    pub(super) fn over(&self) -> Option<Ending> {
        lock(&self.table).over.clone()
    }

    /// Opens a request that is about to be sent.
    pub(super) fn open(
        &self,
        request: &Outgoing,
        ticket: Arc<Ticket>,
    ) -> Result<(mpsc::Receiver<Incoming>, RequestWatch)> {
        let key = request.id.as_json().to_owned();
        let mut table = lock(&self.table);
        if let Some(over) = &table.over {
            return Err(over.error(CallProgress::NotSent));
        }
        let (replies, receiver) = mpsc::channel(REPLIES_MAX + 1);
        let full = table.open.len() >= OPEN_MAX || table.open.contains_key(&key);
        let answer = replies.clone().try_reserve_owned().ok().filter(|_| !full);
        let Some(answer) = answer else { return Err(too_many()) };
        let timeout_ms = (request.method != LISTEN).then_some(request.timeout_ms);
        let due = timeout_ms.filter(|_| table.questions.is_empty());
        let due = watch::Sender::new(due.map(|ms| self.clock.now().plus_ms(ms)));
        let watched =
            RequestWatch { key: key.clone(), replies: replies.clone(), due: due.subscribe() };
        let token = request.params.said("progressToken").map(Value::to_string);
        if let Some(token) = &token {
            table.tokens.insert(token.clone(), key.clone());
        }
        let method = request.method.clone();
        let open = Open { method, ticket, replies, answer, due, timeout_ms, token };
        table.open.insert(key, open);
        Ok((receiver, watched))
    }

    /// Takes a request out, if it is still open.
    pub(super) fn close(&self, key: &str) -> Option<Open> {
        lock(&self.table).close(key)
    }

    /// We answered something that the other side asked.
    pub(super) fn replied(&self, message: &str) {
        let mut table = lock(&self.table);
        if table.questions.is_empty() {
            return;
        }
        let Ok(frame) = serde_json::from_str::<Frame<'_>>(message) else { return };
        if let (None, Some(id)) = (&frame.method, frame.id) {
            table.answered(id.get(), self.clock.now());
        }
    }

    /// Ends every open request, and takes no more; whether this is the first time.
    pub(super) fn end(&self, ending: &Ending) -> bool {
        let open = {
            let mut table = lock(&self.table);
            if table.over.is_some() {
                return false;
            }
            // The news ends with its sender.
            let ended = Table { over: Some(ending.clone()), ..Table::default() };
            std::mem::replace(&mut *table, ended).open
        };
        for open in open.into_values() {
            let how = open.how_far();
            open.answer(Incoming::Broken(ending.error(how)));
        }
        true
    }

    /// Gives what came to whom it belongs.
    pub(super) fn take(&self, line: &[u8]) -> LineReport {
        let mut heard = LineReport::default();
        let Ok(text) = std::str::from_utf8(line) else {
            heard.garbage = true;
            return heard;
        };
        let text = text.trim();
        if !text.starts_with('[') {
            self.take_one(text, &mut heard);
            return heard;
        }
        // Several at once, as in 2025-03-26.
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(all) => all.iter().for_each(|one| self.take_one(one.get(), &mut heard)),
            Err(_) => heard.garbage = true,
        }
        heard
    }

    /// A message came that was too long to be kept; the one who waits for it learns so.
    pub(super) fn take_too_long(&self, outline: &Outline) -> LineReport {
        let mut heard = LineReport { garbage: !outline.is_message(), ..LineReport::default() };
        let open = outline.answered().and_then(|id| {
            let mut table = lock(&self.table);
            let key = table.key_of(Some(id))?;
            table.close(&key)
        });
        match open {
            Some(open) => {
                heard.answers = 1;
                open.answer(self.too_large());
            }
            None => heard.unasked = 1,
        }
        let asked = outline.asked().and_then(|id| serde_json::from_str::<&RawValue>(id).ok());
        heard.refused.extend(asked.and_then(Id::read));
        heard
    }

    fn take_one(&self, text: &str, heard: &mut LineReport) {
        if text.is_empty() {
            return;
        }
        let frame = serde_json::from_str::<Frame<'_>>(text).ok();
        let frame = frame.filter(|frame| frame.jsonrpc.as_deref() == Some("2.0"));
        let understood = match frame {
            None => None,
            Some(Frame { method: None, id, result, error, .. }) => {
                // An answer to what could not be read has no id, which is written as null.
                let id = id.filter(|id| id.get() != "null");
                self.take_answer(id, result, error, heard)
            }
            Some(Frame { method: Some(method), id: Some(id), params, .. }) => {
                self.take_question(id, method, params, heard)
            }
            Some(Frame { method: Some(method), id: None, params, .. }) => {
                self.take_notification(method, params, heard)
            }
        };
        heard.garbage |= understood.is_none();
    }

    fn take_answer(
        &self,
        id: Option<&RawValue>,
        result: Option<&RawValue>,
        error: Option<&RawValue>,
        heard: &mut LineReport,
    ) -> Option<()> {
        if id.is_none() && error.is_none() {
            return None;
        }
        let open = {
            let mut table = lock(&self.table);
            let key = table.key_of(id.map(RawValue::get));
            key.and_then(|key| table.close(&key))
        };
        // It comes after all, and no one waits for it any more.
        let Some(open) = open else {
            heard.unasked += 1;
            return Some(());
        };
        heard.answers += 1;
        let incoming = match (result, error) {
            (_, Some(error)) => Incoming::Error(self.rpc_error(error)),
            (Some(result), None) => self.read_result(result),
            (None, None) => Incoming::Result(Value::Null),
        };
        open.answer(incoming);
        Some(())
    }

    fn take_question(
        &self,
        id: &RawValue,
        method: Cow<'_, str>,
        params: Option<&RawValue>,
        heard: &mut LineReport,
    ) -> Option<()> {
        let id = Id::read(id)?;
        let params = self.read_params(params)?;
        heard.unasked += 1;
        let mut table = lock(&self.table);
        let waits = method != PING && table.questions.len() < QUESTIONS_MAX;
        let incoming = Incoming::Request { id: id.clone(), method: method.into_owned(), params };
        if !table.tell(incoming) {
            heard.refused.push(id);
        } else if waits {
            table.questions.insert(id.as_json().to_owned());
            table.open.values().for_each(Open::pause);
        }
        Some(())
    }

    fn take_notification(
        &self,
        method: Cow<'_, str>,
        params: Option<&RawValue>,
        heard: &mut LineReport,
    ) -> Option<()> {
        let params = self.read_params(params)?;
        heard.unasked += 1;
        let now = self.clock.now();
        let mut table = lock(&self.table);
        if method == CANCELLED {
            let id = params["requestId"].to_string();
            // So a server ends a stream of news over a pipe: in good order.
            if table.open.get(&id).is_some_and(|open| open.method == LISTEN) {
                let open = table.close(&id)?;
                open.answer(Incoming::Result(Value::Object(Map::new())));
                return Some(());
            }
            table.answered(&id, now);
        }
        let owner = table.owner(&method, &params);
        let incoming = Incoming::Notification { method: method.into_owned(), params };
        match owner.and_then(|key| table.open.get(&key)) {
            Some(open) => {
                open.renew(table.questions.is_empty(), now);
                open.give(incoming);
            }
            // News that no one has time for is left out.
            None => {
                table.tell(incoming);
            }
        }
        Some(())
    }

    /// The value of a part of a message, without what is hidden. All parts are read here.
    fn read(&self, raw: &RawValue) -> serde_json::Result<Value> {
        let mut value = serde_json::from_str(raw.get())?;
        if self.hidden.may_be_in(raw.get()) {
            self.hidden.mask(&mut value);
        }
        Ok(value)
    }

    /// Parameters, which may be missing; none if they cannot be read.
    fn read_params(&self, raw: Option<&RawValue>) -> Option<Value> {
        raw.map_or(Some(Value::Null), |raw| self.read(raw).ok())
    }

    fn read_result(&self, result: &RawValue) -> Incoming {
        if result.get().len() > self.bytes_max {
            return self.too_large();
        }
        match self.read(result) {
            Ok(result) => Incoming::Result(result),
            Err(error) => {
                let message = format!("its answer cannot be read: {error}");
                let error = PeerError::new(CallProgress::Unknown, PeerErrorKind::NotMcp, message);
                Incoming::Broken(error)
            }
        }
    }

    fn too_large(&self) -> Incoming {
        let message = format!("its answer has more than {} bytes", self.bytes_max);
        let error = PeerError::new(CallProgress::Unknown, PeerErrorKind::TooLarge, message)
            .hint("ask it for less, or raise `call_output_bytes_max` in `[limits]`");
        Incoming::Broken(error)
    }

    fn rpc_error(&self, raw: &RawValue) -> RpcError {
        let error = self.read(raw).unwrap_or_default();
        let code = error["code"].as_i64().unwrap_or(INTERNAL_ERROR);
        let message = error["message"].as_str().unwrap_or("the server gives no reason");
        RpcError { code, message: message.to_owned(), data: error.get("data").cloned() }
    }
}

impl Table {
    fn close(&mut self, key: &str) -> Option<Open> {
        let open = self.open.remove(key)?;
        // Of two requests with one token the later one has it.
        if let Some(token) = &open.token
            && self.tokens.get(token).is_some_and(|of| of == key)
        {
            self.tokens.remove(token);
        }
        // What was asked for calls that are gone is not answered any more: it must not stop the
        // time of those to come.
        if self.open.is_empty() {
            self.questions.clear();
        }
        Some(open)
    }

    /// Which request an answer is to. Some servers make texts of numbers, and one that could not
    /// read a request cannot say which it was.
    fn key_of(&self, id: Option<&str>) -> Option<String> {
        let known = |key: &&str| self.open.contains_key(*key);
        match id {
            Some(id) => [id, id.trim_matches('"')].into_iter().find(known).map(str::to_owned),
            None => self.open.keys().next().filter(|_| self.open.len() == 1).cloned(),
        }
    }

    /// Which request a notification names.
    fn owner(&self, method: &str, params: &Value) -> Option<String> {
        if method == PROGRESS {
            return self.tokens.get(&params["progressToken"].to_string()).cloned();
        }
        let subscription = params.get("_meta")?.get(META_SUBSCRIPTION)?;
        let key = subscription.to_string();
        // The id may have been made a text on its way.
        let plain = subscription.as_str().map(str::to_owned);
        [Some(key), plain].into_iter().flatten().find(|key| self.open.contains_key(key))
    }

    /// Tells news; whether there is room for it.
    fn tell(&self, incoming: Incoming) -> bool {
        self.server_messages
            .as_ref()
            .is_some_and(|server_messages| server_messages.try_send(incoming).is_ok())
    }

    /// A question of the other side is settled; after the last one our requests' time runs again.
    fn answered(&mut self, id: &str, now: Millis) {
        if self.questions.remove(id) && self.questions.is_empty() {
            self.open.values().for_each(|open| open.renew(true, now));
        }
    }
}

impl Open {
    /// How far it got. To be asked once: from then on it is not sent.
    pub(super) fn how_far(&self) -> CallProgress {
        if self.ticket.take() { CallProgress::NotSent } else { CallProgress::Unknown }
    }

    pub(super) fn answer(self, incoming: Incoming) {
        self.answer.send(incoming);
    }

    /// Gives something that is not the answer, if there is room.
    fn give(&self, incoming: Incoming) {
        let _ = self.replies.try_send(incoming);
    }

    /// Its time begins again: something came for it.
    fn renew(&self, runs: bool, now: Millis) {
        let due = self.timeout_ms.filter(|_| runs).map(|ms| now.plus_ms(ms));
        self.due.send_replace(due);
    }

    /// Its time stands still: the other side waits for us.
    fn pause(&self) {
        self.due.send_replace(None);
    }
}

fn too_many() -> PeerError {
    let message = format!("more than {OPEN_MAX} requests wait for its answer");
    // As an HTTP server says it: too many requests.
    PeerError::new(CallProgress::NotSent, PeerErrorKind::Refused(429), message)
        .hint("try again later")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::BoxFuture;
    use serde_json::json;

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Millis {
            Millis(0)
        }

        fn elapsed(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }

        fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    fn demux() -> (Demux, mpsc::Receiver<Incoming>) {
        Demux::new(Arc::new(Still), Arc::default(), 1_000)
    }

    fn open(demux: &Demux, id: u64, method: &str) -> (mpsc::Receiver<Incoming>, RequestWatch) {
        let request = Outgoing {
            id: Id::number(id),
            method: method.to_owned(),
            params: json!({"_meta": {"progressToken": id}}).into(),
            name: None,
            param_headers: Vec::new(),
            timeout_ms: 10,
            is_watched: false,
        };
        demux.open(&request, Arc::default()).unwrap()
    }

    fn heard(unasked: u32, answers: u32) -> LineReport {
        LineReport { unasked, answers, ..LineReport::default() }
    }

    #[test]
    fn invalid_messages_count_as_garbage() {
        let (demux, _news) = demux();
        let lines: [&[u8]; 7] =
            [b"ready", b"\xff", b"7", b"{}", br#"{"id":1}"#, b"[1]", br#"{"jsonrpc":"2.0"}"#];
        for line in lines {
            assert!(demux.take(line).garbage, "{}", String::from_utf8_lossy(line));
        }
        assert_eq!(demux.take(b" \r"), LineReport::default());
    }

    #[test]
    fn batched_answers_are_dispatched_and_late_ones_dropped() {
        let (demux, _news) = demux();
        let (mut first, _) = open(&demux, 1, "tools/call");
        let (mut second, _) = open(&demux, 2, "tools/call");
        let line = r#"[{"jsonrpc":"2.0","id":2,"result":2},
            {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}},
            {"jsonrpc":"2.0","id":9,"result":9}]"#;
        assert_eq!(demux.take(line.as_bytes()), heard(1, 2));
        assert_eq!(first.try_recv(), Ok(Incoming::Error(RpcError::new(-1, "no"))));
        assert_eq!(second.try_recv(), Ok(Incoming::Result(json!(2))));
    }

    #[test]
    fn credentials_of_the_process_are_redacted_in_messages() {
        let hidden = Arc::new(Redactor::default().credentials(["s3cret/key"]));
        let (demux, mut server_messages) = Demux::new(Arc::new(Still), hidden, 1_000);
        let (mut result, _) = open(&demux, 1, "tools/call");
        let (mut error, _) = open(&demux, 2, "tools/call");
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"s3cret/key"}}"#,
            r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create",
                "params":{"message":"is it s3cret\/key?"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"s3cret/key":["a s3cret\u002fkey"]}}"#,
            r#"{"jsonrpc":"2.0","id":2,
                "error":{"code":1,"message":"no s3cret/key","data":{"key":"s3cret/key"}}}"#,
        ] {
            demux.take(line.as_bytes());
        }
        let method = "notifications/message".to_owned();
        let params = json!({"data": "***"});
        assert_eq!(server_messages.try_recv(), Ok(Incoming::Notification { method, params }));
        let method = "elicitation/create".to_owned();
        let params = json!({"message": "is it ***?"});
        let id = Id::read(&RawValue::from_string("\"q\"".to_owned()).unwrap()).unwrap();
        assert_eq!(server_messages.try_recv(), Ok(Incoming::Request { id, method, params }));
        assert_eq!(result.try_recv(), Ok(Incoming::Result(json!({"***": ["a ***"]}))));
        let masked =
            RpcError { code: 1, message: "no ***".to_owned(), data: Some(json!({"key": "***"})) };
        assert_eq!(error.try_recv(), Ok(Incoming::Error(masked)));
    }

    #[test]
    fn an_error_without_an_id_belongs_to_the_only_request() {
        let (demux, _news) = demux();
        let line = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#;
        let (mut first, _) = open(&demux, 1, "server/discover");
        let (_second, _) = open(&demux, 2, "tools/list");
        assert_eq!(demux.take(line), heard(1, 0));
        drop(demux.close("2"));
        assert_eq!(demux.take(line), heard(0, 1));
        assert!(matches!(first.try_recv(), Ok(Incoming::Error(error)) if error.code == -32700));
    }

    #[test]
    fn a_subscription_gets_its_notifications_and_ends_cleanly() {
        let (demux, mut server_messages) = demux();
        let (mut replies, watched) = open(&demux, 1, LISTEN);
        assert_eq!(*watched.due.borrow(), None, "it lasts as long as it lasts");
        let tagged = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": {"_meta": {META_SUBSCRIPTION: 1}}});
        demux.take(tagged.to_string().as_bytes());
        assert!(matches!(replies.try_recv(), Ok(Incoming::Notification { .. })));
        demux.take(
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        );
        assert_eq!(replies.try_recv(), Ok(Incoming::Result(json!({}))));
        demux.take(tagged.to_string().as_bytes());
        assert!(matches!(server_messages.try_recv(), Ok(Incoming::Notification { .. })));
    }

    #[test]
    fn a_slow_reader_loses_notifications_and_never_the_answer() {
        let (demux, mut server_messages) = demux();
        let (mut replies, _) = open(&demux, 1, "tools/call");
        let progress = br#"{"jsonrpc":"2.0","method":"notifications/progress",
            "params":{"progressToken":1,"progress":1}}"#;
        let asked = br#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
        (0..2 * NEWS_MAX).for_each(|_| drop(demux.take(progress)));
        let refused = (0..2 * NEWS_MAX).filter(|_| !demux.take(asked).refused.is_empty()).count();
        assert_eq!(refused, NEWS_MAX);
        demux.take(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let mut came = 0;
        while let Ok(Incoming::Notification { .. }) = replies.try_recv() {
            came += 1;
        }
        assert_eq!(came, REPLIES_MAX, "the next one was the answer");
        assert!(server_messages.try_recv().is_ok());
    }

    #[test]
    fn the_timeout_pauses_while_the_server_waits_for_us() {
        let (demux, _news) = demux();
        let (_replies, watched) = open(&demux, 1, "tools/call");
        assert_eq!(*watched.due.borrow(), Some(Millis(10)));
        demux.take(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
        assert_eq!(*watched.due.borrow(), Some(Millis(10)), "it hardly waits for that");
        demux.take(br#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}"#);
        assert_eq!(*watched.due.borrow(), None);
        demux.replied(r#"{"jsonrpc":"2.0","id":"q","result":{}}"#);
        assert_eq!(*watched.due.borrow(), Some(Millis(10)));
    }

    #[test]
    fn an_unanswered_question_pauses_the_timeout_only_for_a_while() {
        let (demux, _news) = demux();
        let (_replies, _watched) = open(&demux, 1, "tools/call");
        demux.take(br#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}"#);
        drop(demux.close("1"));
        let (_replies, watched) = open(&demux, 2, "tools/call");
        assert_eq!(*watched.due.borrow(), Some(Millis(10)));
    }

    #[test]
    fn the_end_is_reported_to_every_request_once() {
        let (demux, mut server_messages) = demux();
        let (mut replies, watched) = open(&demux, 1, "tools/call");
        assert!(demux.end(&Ending::exited("with exit code 3")));
        assert!(!demux.end(&Ending::closed()));
        let Ok(Incoming::Broken(error)) = replies.try_recv() else { panic!("not broken") };
        assert_eq!((error.how, error.kind), (CallProgress::NotSent, PeerErrorKind::Closed));
        assert!(error.message.ends_with("exit code 3"), "{error}");
        assert!(watched.due.has_changed().is_err(), "nothing is left to watch");
        assert_eq!(server_messages.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
        assert!(demux.over().is_some());
    }
}
