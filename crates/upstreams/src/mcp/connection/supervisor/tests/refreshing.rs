//! Lists that are read again: in time, after failures, and whatever else the server tells.

use super::*;
use crate::RemoteParts;
use crate::mcp::line::{Line, Replies};
use futures::future::{BoxFuture, Either};

#[test]
fn a_constantly_changing_list_does_not_block_others() {
    let server = Server::new(|request: &Outgoing| match request.method.as_str() {
        "initialize" => {
            let capabilities = json!({"tools": {"listChanged": true}, "resources": {}});
            Scripted::result(greeting("2025-11-25", capabilities))
        }
        "resources/list" => Scripted::result(json!({"resources": []})),
        "resources/templates/list" => Scripted::result(json!({"resourceTemplates": []})),
        _ => legacy(request),
    });
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        for _ in 0..20 {
            server.say(told(TOOLS_CHANGED));
            world.stage.pass(60_000).await;
        }
        assert!(world.times("tools/list") > 20);
        let resources = world.times("resources/list");
        assert!((4..=6).contains(&resources), "{resources} times in twenty minutes");
    });
}

#[test]
fn a_failed_list_is_retried_soon() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        server.script(|request: &Outgoing| match request.method.as_str() {
            "tools/list" => Scripted::fails(PeerErrorKind::Refused(503)),
            _ => legacy(request),
        });
        server.say(told(TOOLS_CHANGED));
        world.stage.pass(1_000).await;
        assert!(world.board.status().last_error.is_some());
        server.script(|request: &Outgoing| match request.method.as_str() {
            "tools/list" => Scripted::result(json!({"tools": [tool("b")]})),
            _ => legacy(request),
        });
        world.stage.pass(5_000).await;
        assert_eq!(world.tools(), ["far.b"]);
        assert_eq!((world.state(), server.transports().len()), (UpstreamState::Ready, 1));
        assert!(world.board.status().last_error.is_none());
    });
}

#[test]
fn a_failing_list_is_retried_with_back_off() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        server.script(|_: &Outgoing| Scripted::error(-32603));
        server.say(told(TOOLS_CHANGED));
        world.stage.pass(600_000).await;
        let times = world.times("tools/list");
        assert!((10..=40).contains(&times), "{times} times in ten minutes");
        assert_eq!((world.state(), world.tools().len()), (UpstreamState::Ready, 1));
    });
}

#[test]
fn a_constantly_changing_server_is_still_checked() {
    let server = Server::new(legacy);
    let world = World::new(&server);
    world.stage.run(async {
        world.board.check().await.unwrap();
        server.script(|request: &Outgoing| match request.method.as_str() {
            "tools/list" => Scripted::Silence,
            _ => legacy(request),
        });
        let changing = pin!(async {
            for _ in 0..10 {
                world.stage.pass(300).await;
                server.say(told(TOOLS_CHANGED));
                world.stage.pass(1).await;
                let listed = json!({"tools": [tool("a"), tool("b")]});
                server.tell("tools/list", &Incoming::Result(listed));
            }
        });
        match select(pin!(world.board.check()), changing).await {
            Either::Left((checked, _)) => assert_eq!(checked.unwrap().tools, 2),
            Either::Right(_) => panic!("nobody was told how it is"),
        }
    });
}

#[test]
fn a_remembered_transport_that_fails_is_dropped() {
    let is_legacy_sse = Arc::new(Mutex::new(true));
    let oldest = is_legacy_sse.clone();
    let server = Server::new(move |request| match request.method.as_str() {
        "initialize" if *oldest.lock().unwrap() => Scripted::fails(PeerErrorKind::Refused(405)),
        _ => legacy(request),
    });
    let elsewhere = Server::new(legacy);
    let usual = server.dial();
    let oldest = elsewhere.dial();
    let was = is_legacy_sse.clone();
    let dial: Dial = Arc::new(move |link: Arc<Link>, transport: LineKind| -> LineFuture {
        match transport {
            LineKind::Current => usual(link, transport),
            LineKind::LegacySse if *was.lock().unwrap() => oldest(link, transport),
            // There is a stream, but it never says where to post.
            LineKind::LegacySse => {
                let late = PeerError::new(CallProgress::NotSent, PeerErrorKind::Timeout, "silence");
                Box::pin(std::future::ready(Err(late)))
            }
        }
    });
    let world = World::over(&server, dial);
    world.stage.run(async {
        world.board.check().await.unwrap();
        assert_eq!(elsewhere.transports(), [LineKind::LegacySse]);
        *is_legacy_sse.lock().unwrap() = false;
        let gone = PeerError::new(CallProgress::NotSent, PeerErrorKind::Gone, "who are you?");
        elsewhere.say(Incoming::Broken(gone));
        world.stage.pass(10_000).await;
        assert_eq!(world.state(), UpstreamState::Ready);
        assert_eq!(server.transports(), [LineKind::Current, LineKind::Current]);
    });
}

/// A line that takes a while to close.
struct Slow {
    line: Arc<dyn Line>,
    parts: RemoteParts,
}

impl Line for Slow {
    fn request(&self, request: Outgoing) -> BoxFuture<'_, Result<Replies, PeerError>> {
        self.line.request(request)
    }

    fn send(&self, message: String) -> BoxFuture<'_, Result<(), PeerError>> {
        self.line.send(message)
    }

    fn server_messages(&self) -> Option<mpsc::Receiver<Incoming>> {
        self.line.server_messages()
    }

    fn agreed(&self, version: &str) {
        self.line.agreed(version);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let clock = &self.parts.clock;
            clock.sleep_until(clock.now().plus_ms(1_000)).await;
            self.line.close().await;
        })
    }
}

#[test]
fn an_upstream_removed_while_closing_is_closed() {
    let server = Server::new(legacy);
    let dialled = server.clone();
    let dial: Dial = Arc::new(move |link: Arc<Link>, _way: LineKind| -> LineFuture {
        let line: Arc<dyn Line> =
            Arc::new(Slow { line: dialled.line(), parts: link.parts.clone() });
        Box::pin(std::future::ready(Ok(line)))
    });
    let world = World::over(&server, dial);
    world.stage.run(async {
        world.board.check().await.unwrap();
        let gone = PeerError::new(CallProgress::NotSent, PeerErrorKind::Gone, "who are you?");
        server.say(Incoming::Broken(gone));
        world.stage.pass(500).await;
        assert_eq!(server.closed(), 0, "it is being closed");
        world.board.begin_stop();
        world.board.stopped().await;
        assert_eq!(server.closed(), 1);
    });
}
