//! Servers that come, go, change and misbehave.

mod refreshing;

use super::*;
use crate::mcp::lanes::Dial;
use crate::mcp::line::{Incoming, Outgoing};
use crate::mcp::peer::Request;
use crate::mcp::scripted::{Scripted, Server, config, discovered, greeting, told, tool};
use crate::stage::Stage;
use crate::state::UpstreamState;
use futures::FutureExt;
use serde_json::json;
use std::sync::Mutex;
use wire::jsonrpc::{self, Id};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

struct World {
    stage: Stage,
    server: Server,
    link: Arc<Link>,
    board: Arc<Board>,
}

impl World {
    fn new(server: &Server) -> Self {
        Self::over(server, server.dial())
    }

    /// The same where the server is reached in this way.
    fn over(server: &Server, dial: Dial) -> Self {
        let stage = Stage::new();
        let link = Arc::new(Link::new(config(), stage.parts(), dial));
        let (board, checks) = Board::new(Millis(0));
        let board = Arc::new(board);
        let kept = keep(link.clone(), board.clone(), checks);
        stage.parts().spawn.task("upstream", Box::pin(kept));
        Self { stage, server: server.clone(), link, board }
    }

    fn tools(&self) -> Vec<String> {
        self.board.tools().iter().map(|tool| tool.spec().name.to_string()).collect()
    }

    fn state(&self) -> UpstreamState {
        self.board.status().state
    }

    fn times(&self, method: &str) -> usize {
        self.server.methods().iter().filter(|asked| *asked == method).count()
    }
}

/// A server of today with these capabilities, and tools that can be changed.
fn modern(capabilities: Value, tools: &Arc<Mutex<Vec<Value>>>) -> Server {
    let tools = tools.clone();
    Server::new(move |request| match request.method.as_str() {
        "server/discover" => Scripted::result(discovered(capabilities.clone())),
        "tools/list" => Scripted::result(json!({"tools": *tools.lock().unwrap(), "ttlMs": 30_000})),
        "subscriptions/listen" | "tools/call" => Scripted::Silence,
        _ => Scripted::error(-32601),
    })
}

fn legacy(request: &Outgoing) -> Scripted {
    match request.method.as_str() {
        "initialize" => {
            let capabilities = json!({"tools": {"listChanged": true}});
            Scripted::result(greeting("2025-11-25", capabilities))
        }
        "tools/list" => Scripted::result(json!({"tools": [tool("a")]})),
        "tools/call" => Scripted::Silence,
        _ => Scripted::error(-32601),
    }
}

fn some_tools(names: &[&str]) -> Arc<Mutex<Vec<Value>>> {
    Arc::new(Mutex::new(names.iter().map(|name| tool(name)).collect()))
}

#[test]
fn tools_stay_while_their_server_is_away() {
    let server = modern(json!({"tools": {}}), &some_tools(&["a", "b"]));
    let world = World::new(&server);
    world.stage.run(async {
        let mut changes = world.board.changes();
        changes.changed().await.unwrap();
        assert_eq!(world.tools(), ["far.a", "far.b"]);
        world.stage.pass(1).await;
        assert_eq!(world.state(), UpstreamState::Ready);
        let peer = world.link.peer().await.unwrap();

        server.reachable(false);
        assert!(peer.ask("tools/list", Value::Null, None, 1_000).await.is_err());
        assert!(peer.is_lost());
        world.stage.pass(5_000).await;
        let status = world.board.status();
        assert_eq!((status.state, status.tools, status.restarts), (UpstreamState::Failing, 2, 1));
        let error = status.last_error.unwrap();
        assert!(error.message.contains("upstream `far`: no server is there"), "{error}");
        let before = world.stage.now_ms();
        let away = world.link.peer().await.err().unwrap();
        assert_eq!(
            (away.how, world.stage.now_ms()),
            (CallProgress::NotSent, before),
            "it comes at once"
        );
        assert!(away.hint.is_some());
        assert_eq!(world.tools(), ["far.a", "far.b"]);

        server.reachable(true);
        world.stage.pass(70_000).await;
        assert_eq!(world.state(), UpstreamState::Ready);
        assert!(world.board.status().last_error.is_none());
        assert!(world.link.peer().await.is_ok());
        assert!(!changes.has_changed().unwrap(), "it has what it had");
    });
}

#[test]
fn a_non_http_answer_does_not_affect_the_next_call() {
    let mut garbled = 1;
    let server = Server::new(move |request| match request.method.as_str() {
        "server/discover" => Scripted::result(discovered(json!({"tools": {}}))),
        "tools/list" => Scripted::result(json!({"tools": [tool("a")]})),
        "tools/call" if garbled > 0 => {
            garbled -= 1;
            Scripted::fails(PeerErrorKind::Garbled)
        }
        _ => Scripted::result(json!({"content": []})),
    });
    let world = World::new(&server);
    world.stage.run(async {
        world.board.changes().changed().await.unwrap();
        let peer = world.link.peer().await.unwrap();
        let failed = peer.ask("tools/call", Value::Null, None, 1_000).await.unwrap_err();
        assert!(matches!(failed, AskError::Peer(error) if error.kind == PeerErrorKind::Garbled));
        assert!(!peer.is_lost());
        world.stage.pass(1).await;
        assert_eq!(world.state(), UpstreamState::Ready);
        assert!(peer.ask("tools/call", Value::Null, None, 1_000).await.is_ok());
        assert_eq!(world.times("server/discover"), 1, "it is the same connection");
    });
}

#[test]
fn a_server_that_never_answered_is_retried_with_back_off() {
    let server = modern(json!({}), &some_tools(&["a"]));
    server.reachable(false);
    let world = World::new(&server);
    world.stage.run(async {
        world.stage.pass(600_000).await;
        assert_eq!((world.state(), world.tools().len()), (UpstreamState::Failing, 0));
        let tries = server.transports().len();
        assert!((10..=40).contains(&tries), "{tries} tries in ten minutes");
        assert_eq!(server.closed(), tries, "every line is closed");
    });
}

#[test]
fn a_requested_check_skips_the_back_off() {
    let server = modern(json!({"tools": {}}), &some_tools(&["a"]));
    server.reachable(false);
    let world = World::new(&server);
    world.stage.run(async {
        let fault = world.board.check().await.unwrap_err();
        assert_eq!(fault.name, "UpstreamUnreachable");
        world.stage.pass(200_000).await;
        server.reachable(true);
        let before = world.stage.now_ms();
        let status = world.board.check().await.unwrap();
        assert_eq!((status.state, status.tools), (UpstreamState::Ready, 1));
        assert_eq!(status.version.as_deref(), Some("2026-07-28"));
        assert_eq!(status.server.unwrap()["name"], "new");
        assert_eq!(world.stage.now_ms(), before);
        let listed = world.times("tools/list");
        world.board.check().await.unwrap();
        assert_eq!(world.times("tools/list"), listed + 1);
    });
}

#[test]
fn simultaneous_change_notifications_cause_one_listing() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.stage.pass(100).await;
        assert_eq!(world.times("tools/list"), 1);
        for _ in 0..5 {
            server.say(told(TOOLS_CHANGED));
            world.stage.pass(10).await;
        }
        world.stage.pass(1_000).await;
        assert_eq!(world.times("tools/list"), 2);
        assert_eq!(*world.board.changes().borrow(), 1, "nothing has changed");
    });
}

#[test]
fn the_notification_stream_is_kept_open() {
    let tools = some_tools(&["a"]);
    let server = modern(json!({"tools": {"listChanged": true}}), &tools);
    let world = World::new(&server);
    world.stage.run(async {
        world.stage.pass(100).await;
        assert_eq!(server.open("subscriptions/listen"), 1);
        let listen = server.asked().pop().unwrap();
        assert_eq!(listen.params.to_value()["notifications"], json!({"toolsListChanged": true}));
        tools.lock().unwrap().push(tool("b"));
        server.tell("subscriptions/listen", &told(TOOLS_CHANGED));
        world.stage.pass(1_000).await;
        assert_eq!(world.tools(), ["far.a", "far.b"]);
        world.stage.pass(100_000).await;
        assert_eq!(world.times("tools/list"), 2, "whoever hears of changes need not look");

        tools.lock().unwrap().push(tool("c"));
        server.tell("subscriptions/listen", &Incoming::Result(json!({})));
        world.stage.pass(5_000).await;
        assert_eq!(server.open("subscriptions/listen"), 1, "it is opened again");
        assert_eq!(world.tools().len(), 3, "and what happened meanwhile is seen");
    });
}

#[test]
fn a_server_without_notifications_is_polled_at_its_ttl() {
    let tools = some_tools(&["a"]);
    let server = modern(json!({"tools": {}}), &tools);
    let world = World::new(&server);
    world.stage.run(async {
        world.stage.pass(29_000).await;
        tools.lock().unwrap().clear();
        assert_eq!(world.times("tools/list"), 1);
        world.stage.pass(2_000).await;
        assert_eq!(world.times("tools/list"), 2);
        assert_eq!((world.tools().len(), *world.board.changes().borrow()), (0, 2));
        assert_eq!(server.open("subscriptions/listen"), 0);
    });
}

#[test]
fn invalid_tools_do_not_remove_valid_ones() {
    let tools = some_tools(&["a", "a", "b"]);
    tools.lock().unwrap().insert(1, json!({"inputSchema": 7}));
    let world = World::new(&modern(json!({"tools": {}}), &tools));
    world.stage.run(async {
        let status = world.board.check().await.unwrap();
        assert_eq!(world.tools(), ["far.a", "far.b"]);
        assert_eq!(status.tools, 2);
    });
}

#[test]
fn a_failed_relisting_keeps_the_previous_list() {
    let server = modern(json!({"tools": {}}), &some_tools(&["a"]));
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        server.script(|_| Scripted::error(-32603));
        let fault = world.board.check().await.unwrap_err();
        assert_eq!(fault.name, "UpstreamError");
        assert_eq!((world.state(), world.tools().len()), (UpstreamState::Ready, 1));
        assert!(world.board.status().last_error.is_some());
    });
}

#[test]
fn a_server_that_closes_on_the_first_request_gets_the_handshake_next() {
    let server = Server::new(|request: &Outgoing| match request.method.as_str() {
        "server/discover" => Scripted::fails(PeerErrorKind::Closed),
        _ => legacy(request),
    });
    let world = World::new(&server);
    world.stage.run(async {
        assert_eq!(world.board.check().await.unwrap().tools, 1);
        assert_eq!(server.methods()[..2], ["server/discover", "initialize"]);
        assert_eq!((server.transports().len(), server.closed()), (2, 1));
        assert_eq!(world.stage.now_ms(), 0, "without a pause");
    });
}

#[test]
fn a_failure_before_the_handshake_does_not_affect_the_connection() {
    let server = Server::new(|request: &Outgoing| match request.method.as_str() {
        "server/discover" => Scripted::fails(PeerErrorKind::Gone),
        _ => legacy(request),
    });
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        world.stage.pass(10_000).await;
        assert_eq!((world.state(), server.transports().len()), (UpstreamState::Ready, 1));
    });
}

#[test]
fn an_unsendable_call_reports_not_sent() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        let peer = world.link.peer().await.unwrap();
        server.reachable(false);
        let request = Request::new("tools/call", json!({"name": "a"}), 1_000);
        let mut replies = peer.open(request).await.unwrap();
        let broken = replies.recv().await;
        assert!(
            matches!(broken, Some(Incoming::Broken(error)) if error.how == CallProgress::NotSent)
        );
        assert!(peer.is_lost());
    });
}

#[test]
fn the_legacy_sse_transport_is_tried_last_and_remembered() {
    let refused = Arc::new(Mutex::new(true));
    let refuses = refused.clone();
    let server = Server::new(move |request| {
        let mut refuses = refuses.lock().unwrap();
        if *refuses && request.method == "initialize" {
            *refuses = false;
            return Scripted::fails(PeerErrorKind::Refused(405));
        }
        legacy(request)
    });
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        assert_eq!(server.transports(), [LineKind::Current, LineKind::LegacySse]);
        let gone = PeerError::new(CallProgress::NotSent, PeerErrorKind::Gone, "who are you?");
        server.say(Incoming::Broken(gone));
        world.stage.pass(10_000).await;
        assert_eq!(
            server.transports(),
            [LineKind::Current, LineKind::LegacySse, LineKind::LegacySse]
        );
        assert_eq!(world.state(), UpstreamState::Ready);
    });
}

#[test]
fn a_silent_connection_is_listed_again() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.stage.pass(100).await;
        server.mute();
        world.stage.pass(100).await;
        assert_eq!((world.times("tools/list"), world.state()), (2, UpstreamState::Ready));
    });
}

#[test]
fn messages_without_an_id_belong_to_the_only_call() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    let ask = |number| Incoming::Request {
        id: Id::number(number),
        method: "elicitation/create".to_owned(),
        params: json!({"message": "sure?"}),
    };
    let progress = Incoming::Notification {
        method: "notifications/progress".to_owned(),
        params: json!({"progressToken": "t", "progress": 1}),
    };
    world.stage.run(async {
        world.board.check().await.unwrap();
        let peer = world.link.peer().await.unwrap();
        let call = |token: &str| {
            let params = json!({"name": "a", "_meta": {"progressToken": token}});
            Request::new("tools/call", params, 60_000)
        };
        let mut first = peer.open(call("t")).await.unwrap();
        server.say(ask(1));
        assert_eq!(first.recv().await, Some(ask(1)));
        peer.reply(&Id::number(1), Ok(json!({"action": "accept"}))).await.unwrap();

        let mut second = peer.open(call("u")).await.unwrap();
        server.say(ask(2));
        server.say(progress.clone());
        assert_eq!(first.recv().await, Some(progress.clone()));
        let nothing = second.recv().now_or_never();
        assert!(nothing.is_none(), "nobody knows whose it is");
        let sent = server.sent();
        assert_eq!((&sent[1]["id"], &sent[2]["id"]), (&json!(1), &json!(2)));
        assert_eq!(sent[2]["error"]["code"], jsonrpc::INVALID_REQUEST);

        drop(second);
        world.stage.pass(1).await;
        assert_eq!(server.open("tools/call"), 1, "dropping it cancels it");
        // It may be of the one that was left, for a while.
        server.say(ask(3));
        world.stage.pass(1).await;
        assert!(first.recv().now_or_never().is_none(), "it may be another's");
        assert_eq!(server.sent()[3]["error"]["code"], jsonrpc::INVALID_REQUEST);
        world.stage.pass(600_000).await;
        server.say(ask(4));
        assert_eq!(first.recv().await, Some(ask(4)));
    });
}

#[test]
fn server_requests_outside_of_calls_are_answered() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        for (number, method) in [(1, "ping"), (2, "roots/list"), (3, "sampling/createMessage")] {
            let id = Id::number(number);
            let params = Value::Null;
            server.say(Incoming::Request { id, method: method.to_owned(), params });
        }
        world.stage.pass(1).await;
        let sent = server.sent();
        assert_eq!(sent[1], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        assert_eq!(sent[2]["result"], json!({"roots": []}));
        assert_eq!(sent[3]["error"]["code"], jsonrpc::INVALID_REQUEST);
    });
}

#[test]
fn updates_and_opened_pages_reach_their_waiters() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        let tell = |method: &str, params: Value| {
            server.say(Incoming::Notification { method: method.to_owned(), params });
        };
        let mut updates = world.link.updates.subscribe();
        tell("notifications/resources/updated", json!({"uri": "a:b"}));
        assert_eq!(updates.recv().await.unwrap(), "a:b");
        let mut opened = world.link.opened.subscribe();
        tell("notifications/elicitation/complete", json!({"elicitationId": "e1"}));
        assert_eq!(opened.recv().await.unwrap(), "e1");
    });
}

#[test]
fn a_removed_upstream_is_closed() {
    let server = modern(json!({"tools": {}}), &some_tools(&["a"]));
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        world.board.begin_stop();
        world.board.stopped().await;
        assert_eq!(server.closed(), 1);
        let error = world.link.peer().await.err().unwrap();
        assert_eq!((error.how, error.kind), (CallProgress::NotSent, PeerErrorKind::Closed));
        assert_eq!(world.board.check().await.unwrap_err().name, "UpstreamClosed");
    });
}

#[test]
fn a_call_waits_a_little_for_the_first_connection() {
    let server = Server::new(|_: &Outgoing| Scripted::Silence);
    let world = World::new(&server);
    world.stage.run(async {
        let error = world.link.peer().await.err().unwrap();
        assert_eq!((error.how, error.kind), (CallProgress::NotSent, PeerErrorKind::Timeout));
        assert_eq!(world.stage.now_ms(), 2_000);
        server.script(legacy);
        assert!(world.board.check().await.is_ok());
        assert!(world.link.peer().await.is_ok());
    });
}

/// A server that knows one era only, as it is met in it: any other request is refused so.
fn only(era: Era, code: i64) -> impl FnMut(&Outgoing) -> Scripted {
    move |request| {
        let is_modern = request.params.version().is_some();
        if is_modern != (era == Era::Modern) {
            return Scripted::error(code);
        }
        match request.method.as_str() {
            "server/discover" => Scripted::result(discovered(json!({"tools": {}}))),
            "tools/call" => Scripted::error(jsonrpc::INVALID_PARAMS),
            _ => legacy(request),
        }
    }
}

#[test]
fn a_server_that_changed_its_era_is_negotiated_again() {
    let server = Server::new(only(Era::Modern, -32022));
    let world = World::new(&server);
    let version = || world.board.status().version.unwrap();
    world.stage.run(async {
        world.board.check().await.unwrap();
        let ways = [(Era::Legacy, -32600, "2025-11-25"), (Era::Modern, -32022, "2026-07-28")];
        for (era, code, expected) in ways {
            let peer = world.link.peer().await.unwrap();
            server.script(only(era, code));
            assert_ne!(version(), expected);
            assert!(peer.ask("tools/call", json!({"name": "a"}), None, 1_000).await.is_err());
            world.stage.pass(5_000).await;
            assert_eq!((version().as_str(), world.state()), (expected, UpstreamState::Ready));
            assert_eq!(world.tools(), ["far.a"]);
        }
        assert_eq!(*world.board.changes().borrow(), 1, "it has what it had");
    });
}

#[test]
fn ordinary_errors_do_not_indicate_an_era_change() {
    let server = Server::new(only(Era::Modern, -32022));
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        let listed = world.times("tools/list");
        let peer = world.link.peer().await.unwrap();
        for _ in 0..3 {
            assert!(peer.ask("tools/call", json!({"name": "a"}), None, 1_000).await.is_err());
            world.stage.pass(100).await;
        }
        assert_eq!((world.times("tools/list"), server.transports().len()), (listed, 1));
        // An answer that may be another server's is looked into, but not each time.
        server.script(|request: &Outgoing| match request.method.as_str() {
            "tools/call" => Scripted::error(jsonrpc::INVALID_REQUEST),
            _ => only(Era::Modern, -32022)(request),
        });
        for _ in 0..3 {
            assert!(peer.ask("tools/call", json!({"name": "a"}), None, 1_000).await.is_err());
            world.stage.pass(100).await;
        }
        assert_eq!((world.times("tools/list"), server.transports().len()), (listed + 1, 1));
        assert_eq!(world.state(), UpstreamState::Ready);
    });
}

#[test]
fn the_era_of_an_unreachable_server_is_forgotten() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        assert_eq!(world.times("server/discover"), 1);
        server.reachable(false);
        let gone = PeerError::new(CallProgress::NotSent, PeerErrorKind::Gone, "who are you?");
        server.say(Incoming::Broken(gone));
        // Long enough for one try, and too short for the next.
        world.stage.pass(600).await;
        assert_eq!(world.times("server/discover"), 1, "what is known is tried first");
        assert_eq!(world.times("initialize"), 2);
        server.reachable(true);
        world.stage.pass(70_000).await;
        assert_eq!(world.state(), UpstreamState::Ready);
        assert!(world.times("server/discover") >= 2);
    });
}
