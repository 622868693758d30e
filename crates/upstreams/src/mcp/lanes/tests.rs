//! Who is asked what, where questions come through pipes and say nothing of their call; and in
//! which era a server of both is spoken to.

use super::assignment::OWN_MAX;
use super::{Dial, LineFuture, LineKind};
use crate::config::{EraSetting, UpstreamConfig, UpstreamKind};
use crate::mcp::connection::supervisor::keep;
use crate::mcp::line::{Incoming, Line, Outgoing, PeerError, PeerErrorKind, Replies};
use crate::mcp::scripted::{config, discovered, greeting, tool};
use crate::mcp::tool::RemoteTool;
use crate::mcp::tool::test_server::{call, caller, given, text, wants};
use crate::mcp::{Link, RemoteShelf};
use crate::stage::Stage;
use crate::state::Board;
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all, ready};
use kernel::contracts::shelf::Shelf;
use kernel::contracts::{Spawn, Tool};
use kernel::tool::call::{
    Abilities, CallProgress, InputRequest, InputRequired, InputResponses, ToolError, ToolOutput,
};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use wire::jsonrpc::{Id, RpcError};

/// How a server is met that has a handshake, and one that is stateless.
const HANDSHAKE: &str = "initialize";
const STATELESS: &str = "server/discover";

/// A server, and all that was started of it.
#[derive(Clone)]
struct Server {
    /// How it is met.
    speaks: &'static [&'static str],
    /// Whether it keeps sessions.
    is_apart: bool,
    children: Arc<Mutex<Vec<Arc<Child>>>>,
}

/// One process of it, or one session.
struct Child {
    speaks: &'static [&'static str],
    is_apart: bool,
    state: Mutex<State>,
    heard: Mutex<Option<mpsc::Receiver<Incoming>>>,
}

struct State {
    /// Gone once it is dead.
    server_messages: Option<mpsc::Sender<Incoming>>,
    methods: Vec<String>,
    /// The calls under way, by the number of what they asked.
    open: Vec<(u64, mpsc::Sender<Incoming>)>,
    asked: u64,
    /// It does not know its session any more.
    is_forgotten: bool,
    is_closed: bool,
}

impl Server {
    fn new(speaks: &'static [&'static str]) -> Self {
        Self { speaks, is_apart: true, children: Arc::default() }
    }

    fn dial(&self) -> Dial {
        let server = self.clone();
        Arc::new(move |_link: Arc<Link>, _way: LineKind| -> LineFuture {
            let (server_messages, heard) = mpsc::channel(64);
            let methods = Vec::new();
            let open = Vec::new();
            let is_forgotten = false;
            let is_closed = false;
            let state = State {
                server_messages: Some(server_messages),
                methods,
                open,
                asked: 0,
                is_forgotten,
                is_closed,
            };
            let state = Mutex::new(state);
            let heard = Mutex::new(Some(heard));
            let Server { speaks, is_apart, .. } = server;
            let child = Arc::new(Child { speaks, is_apart, state, heard });
            server.children.lock().unwrap().push(child.clone());
            let line: Arc<dyn Line> = Arc::new(Pipe(child));
            Box::pin(ready(Ok(line)))
        })
    }

    fn child(&self, number: usize) -> Arc<Child> {
        self.children.lock().unwrap()[number].clone()
    }

    fn started(&self) -> usize {
        self.children.lock().unwrap().len()
    }

    /// How many calls were made of all of them.
    fn calls(&self) -> usize {
        self.children.lock().unwrap().iter().map(|child| child.calls()).sum()
    }

    fn living(&self) -> usize {
        let children = self.children.lock().unwrap();
        children.iter().filter(|child| !child.state.lock().unwrap().is_closed).count()
    }
}

impl Child {
    /// Ends it as a process ends that is killed.
    fn kill(&self) {
        let mut state = self.state.lock().unwrap();
        state.server_messages = None;
        state.is_closed = true;
        for (_, call) in state.open.drain(..) {
            let _ = call.try_send(Incoming::Broken(dead(CallProgress::Unknown)));
        }
    }

    /// Refuses all calls from now on.
    fn forget(&self) {
        self.state.lock().unwrap().is_forgotten = true;
    }

    /// Says this outside of any request.
    fn say(&self, method: &str, params: Value) {
        let said = Incoming::Notification { method: method.to_owned(), params };
        self.state.lock().unwrap().server_messages.as_ref().unwrap().try_send(said).unwrap();
    }

    fn calls(&self) -> usize {
        let state = self.state.lock().unwrap();
        state.methods.iter().filter(|method| *method == "tools/call").count()
    }

    fn called(&self, params: &Value, replies: mpsc::Sender<Incoming>) {
        let user = &params["arguments"]["user"];
        let mut state = self.state.lock().unwrap();
        if state.is_forgotten {
            let gone = PeerError::new(CallProgress::Failed, PeerErrorKind::Gone, "who are you?");
            replies.try_send(Incoming::Broken(gone)).unwrap();
            return;
        }
        match params["name"].as_str().unwrap() {
            "echo" => {
                replies.try_send(Incoming::Result(text(user.as_str().unwrap()))).unwrap();
            }
            "ask" => {
                state.asked += 1;
                let id = Id::number(state.asked);
                let method = "elicitation/create".to_owned();
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let params = json!({"message": user, "requestedSchema": schema});
                let question = Incoming::Request { id, method, params };
                state.server_messages.as_ref().unwrap().try_send(question).unwrap();
                let asked = state.asked;
                state.open.push((asked, replies));
            }
            // It never ends by itself.
            _ => state.open.push((0, replies)),
        }
    }
}

fn dead(how: CallProgress) -> PeerError {
    PeerError::new(how, PeerErrorKind::Closed, "its process ended by signal 9")
}

/// Our end.
struct Pipe(Arc<Child>);

impl Line for Pipe {
    fn request(&self, request: Outgoing) -> BoxFuture<'_, Result<Replies, PeerError>> {
        let (replies, received) = mpsc::channel(16);
        {
            let mut state = self.0.state.lock().unwrap();
            if state.is_closed {
                return Box::pin(ready(Err(dead(CallProgress::NotSent))));
            }
            state.methods.push(request.method.clone());
        }
        let tools = || json!({"tools": [tool("ask"), tool("echo"), tool("slow")]});
        let capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
        let speaks = |method: &str| self.0.speaks.contains(&method);
        let answer = match request.method.as_str() {
            HANDSHAKE if speaks(HANDSHAKE) => {
                Incoming::Result(greeting("2025-11-25", capabilities))
            }
            STATELESS if speaks(STATELESS) => Incoming::Result(discovered(capabilities)),
            "tools/list" => Incoming::Result(tools()),
            "resources/list" => {
                Incoming::Result(json!({"resources": [{"uri": "a://1", "name": "a"}]}))
            }
            "resources/subscribe" => Incoming::Result(json!({})),
            // It never says whether it tells.
            "subscriptions/listen" => {
                self.0.state.lock().unwrap().open.push((0, replies));
                return Box::pin(ready(Ok(received.into())));
            }
            "tools/call" => {
                self.0.called(&request.params.to_value(), replies);
                return Box::pin(ready(Ok(received.into())));
            }
            _ => Incoming::Error(RpcError::new(-32601, "no")),
        };
        replies.try_send(answer).unwrap();
        Box::pin(ready(Ok(received.into())))
    }

    fn send(&self, message: String) -> BoxFuture<'_, Result<(), PeerError>> {
        let message: Value = serde_json::from_str(&message).unwrap();
        let name = message["result"]["content"]["name"].as_str().map(str::to_owned);
        let mut state = self.0.state.lock().unwrap();
        let of = |(asked, _): &(u64, mpsc::Sender<Incoming>)| message["id"] == *asked;
        if let (Some(name), Some(at)) = (name, state.open.iter().position(of)) {
            let (_, call) = state.open.remove(at);
            let _ = call.try_send(Incoming::Result(text(&name)));
        }
        Box::pin(ready(Ok(())))
    }

    fn server_messages(&self) -> Option<mpsc::Receiver<Incoming>> {
        self.0.heard.lock().unwrap().take()
    }

    fn agreed(&self, _version: &str) {}

    fn is_apart(&self) -> bool {
        self.0.is_apart
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.state.lock().unwrap().is_closed = true;
        Box::pin(ready(()))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().is_closed = true;
    }
}

/// An upstream that is kept.
struct World {
    stage: Stage,
    server: Server,
    link: Arc<Link>,
    board: Arc<Board>,
}

impl World {
    fn new(server: Server, config: UpstreamConfig) -> Self {
        let dial = server.dial();
        Self::dialled(Stage::new(), server, config, dial)
    }

    fn dialled(stage: Stage, server: Server, config: UpstreamConfig, dial: Dial) -> Self {
        let link = Arc::new(Link::new(config, stage.parts(), dial));
        let (board, checks) = Board::new(Millis(0));
        let board = Arc::new(board);
        stage.task("upstream", Box::pin(keep(link.clone(), board.clone(), checks)));
        Self { stage, server, link, board }
    }

    /// Does this once the upstream is ready.
    fn run(&self, test: impl Future<Output = ()>) {
        self.stage.run(async {
            self.board.check().await.unwrap();
            test.await;
        });
    }

    fn over_pipe() -> Self {
        Self::new(Server::new(&[HANDSHAKE]), piped())
    }

    fn over_http() -> Self {
        Self::new(Server::new(&[HANDSHAKE]), config())
    }

    /// Calls a tool that does not end, and leaves it.
    async fn leave(&self, tool: &dyn Tool) {
        let caller = caller();
        let call = call(json!({"user": "left"}), InputResponses::default());
        let mut left = tool.call(&caller, &call);
        assert!((&mut left).now_or_never().is_none());
        self.stage.pass(1).await;
        drop(left);
        self.stage.pass(1).await;
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        RemoteTool::listed(self.link.clone(), tool(name)).unwrap()
    }
}

fn piped() -> UpstreamConfig {
    let command = "x".to_owned();
    let args = Vec::new();
    let env = Vec::new();
    let kind = UpstreamKind::Stdio { command, args, env, cwd: None };
    UpstreamConfig { kind, ..config() }
}

fn said(called: Result<ToolOutput, ToolError>) -> String {
    match called {
        Ok(ToolOutput::Value(result)) => result["content"][0]["text"].as_str().unwrap().to_owned(),
        other => panic!("it should be answered: {other:?}"),
    }
}

async fn echo(tool: &dyn Tool, user: &str) -> String {
    said(tool.call(&caller(), &call(json!({"user": user}), InputResponses::default())).await)
}

/// What this user is asked, which must be its own question.
async fn asked(tool: &dyn Tool, user: &str) -> InputRequired {
    let call = call(json!({"user": user}), InputResponses::default());
    let wants = wants(tool.call(&caller(), &call).await);
    let is_own =
        |want: &InputRequest| matches!(want, InputRequest::Form { message, .. } if message == user);
    assert!(wants.inputs.len() == 1 && wants.inputs.values().all(is_own), "{user}: {wants:?}");
    wants
}

/// The outcome of this user's answer.
async fn answered(tool: &dyn Tool, user: &str, wants: &InputRequired) -> String {
    let reply = json!({"action": "accept", "content": {"name": user}});
    let call = call(json!({"user": user}), given(wants, &reply));
    said(tool.call(&caller(), &call).await)
}

fn users(many: usize) -> Vec<String> {
    (0..many).map(|number| format!("user {number}")).collect()
}

async fn all_are_asked_and_answered(tool: &dyn Tool, users: &[String]) {
    let wants = join_all(users.iter().map(|user| asked(tool, user))).await;
    let said = join_all(users.iter().zip(&wants).map(|(user, wants)| answered(tool, user, wants)));
    assert_eq!(said.await, users);
}

#[test]
fn ten_users_at_once_are_each_asked_their_own_question() {
    let world = World::over_pipe();
    let tool = world.tool("ask");
    world.run(async {
        all_are_asked_and_answered(&*tool, &users(10)).await;
        assert_eq!(world.server.started(), 10, "the first on the main one, each other on its own");
        all_are_asked_and_answered(&*tool, &users(10)).await;
        assert_eq!(world.server.started(), 11, "those that are there are used again");
    });
}

#[test]
fn tools_that_ask_nothing_share_one_process() {
    let world = World::over_pipe();
    let tool = world.tool("echo");
    world.run(async {
        let users = users(8);
        let said = join_all(users.iter().map(|user| echo(&*tool, user))).await;
        assert_eq!(said, users);
        assert_eq!((world.server.started(), world.stage.now_ms() < 1_000), (1, true));
    });
}

#[test]
fn a_question_beside_a_long_call_is_answered() {
    let world = World::over_pipe();
    let ask = world.tool("ask");
    let slow = world.tool("slow");
    let quick = world.tool("echo");
    world.run(async {
        let one = asked(&*ask, "one").await;
        assert_eq!(answered(&*ask, "one", &one).await, "one");
        let long = call(json!({"user": "long"}), InputResponses::default());
        let long_caller = caller();
        let mut long = slow.call(&long_caller, &long);
        assert!((&mut long).now_or_never().is_none());
        world.stage.pass(1).await;
        let two = asked(&*ask, "two").await;
        // A tool that is not known yet may ask, too. It waits for the long call, but not for its
        // end.
        let before = world.stage.now_ms();
        assert_eq!(echo(&*quick, "three").await, "three");
        assert!(world.stage.now_ms() - before <= 2_000, "it waited too long");
        assert_eq!(answered(&*ask, "two", &two).await, "two");
        assert_eq!((world.server.started(), world.server.child(0).calls()), (3, 2));
        assert_eq!(echo(&*quick, "four").await, "four");
        assert_eq!(world.server.child(0).calls(), 3, "what asks nothing shares the first process");
        drop(long);
    });
}

#[test]
fn a_first_call_beside_a_short_one_shares_its_process() {
    let world = World::over_pipe();
    let ask = world.tool("ask");
    let slow = world.tool("slow");
    let quick = world.tool("echo");
    world.run(async {
        let one = asked(&*ask, "one").await;
        assert_eq!(answered(&*ask, "one", &one).await, "one");
        let caller = caller();
        let calls =
            ["short", "long"].map(|user| call(json!({"user": user}), InputResponses::default()));
        let mut short = quick.call(&caller, &calls[0]);
        let mut long = slow.call(&caller, &calls[1]);
        assert!((&mut short).now_or_never().is_none() && (&mut long).now_or_never().is_none());
        let before = world.stage.now_ms();
        assert_eq!(said(short.await), "short");
        assert!((&mut long).now_or_never().is_none(), "it does not end by itself");
        world.stage.pass(1).await;
        // Who looks there for what the long call does finds it.
        assert_eq!((world.server.started(), world.server.child(0).calls()), (1, 3));
        assert!(world.stage.now_ms() - before < 2_000, "it waits no longer than for the short one");
        drop(long);
    });
}

#[test]
fn a_first_call_after_an_abandoned_one_shares_its_process() {
    let world = World::over_pipe();
    let ask = world.tool("ask");
    let slow = world.tool("slow");
    let quick = world.tool("echo");
    world.run(async {
        let one = asked(&*ask, "one").await;
        assert_eq!(answered(&*ask, "one", &one).await, "one");
        world.leave(&*slow).await;
        let before = world.stage.now_ms();
        assert_eq!(echo(&*quick, "two").await, "two");
        assert_eq!((world.server.started(), world.server.child(0).calls()), (1, 3));
        assert!(world.stage.now_ms() - before <= 3_000, "it waited too long");
    });
}

#[test]
fn a_server_that_never_asked_has_one_process_whatever_is_called_at_once() {
    let world = World::over_pipe();
    let slow = world.tool("slow");
    let quick = world.tool("echo");
    world.run(async {
        let long = call(json!({"user": "long"}), InputResponses::default());
        let long_caller = caller();
        let mut long = slow.call(&long_caller, &long);
        assert!((&mut long).now_or_never().is_none());
        let before = world.stage.now_ms();
        // It waits for the first call of the other, but not for its end.
        assert_eq!(echo(&*quick, "one").await, "one");
        assert!(world.stage.now_ms() - before <= 2_000, "it waited too long");
        assert_eq!(world.server.started(), 1);
        // Who leaves a call changes nothing of that.
        drop(long);
        world.stage.pass(1).await;
        assert_eq!(echo(&*quick, "two").await, "two");
        assert_eq!(world.server.started(), 1);
    });
}

#[test]
fn more_users_than_processes_are_all_asked_and_answered() {
    let world = World::over_pipe();
    let tool = world.tool("ask");
    let many = OWN_MAX + 5;
    world.run(async {
        all_are_asked_and_answered(&*tool, &users(many)).await;
        world.stage.pass(1).await;
        assert!(world.server.living() <= OWN_MAX + 1, "{} live", world.server.living());
    });
}

#[test]
fn repeatable_calls_are_first_in_the_queue() {
    let trusted = UpstreamConfig { trusted: true, ..piped() };
    let world = World::new(Server::new(&[HANDSHAKE]), trusted);
    let writes = world.tool("ask");
    let schema = json!({"type": "object"});
    let hints = json!({"readOnlyHint": true});
    let listed = json!({"name": "ask", "inputSchema": schema, "annotations": hints});
    let reads: Arc<dyn Tool> = RemoteTool::listed(world.link.clone(), listed).unwrap();
    world.run(async {
        // The first one has the main process, and the others one of their own.
        asked(&*writes, "first").await;
        let oldest = asked(&*writes, "oldest").await;
        let reader = asked(&*reads, "reader").await;
        for user in users(OWN_MAX - 2) {
            asked(&*writes, &user).await;
        }
        assert_eq!(world.server.started(), OWN_MAX + 1);
        asked(&*writes, "one more").await;
        let made = world.server.calls();
        assert_eq!(answered(&*writes, "oldest", &oldest).await, "oldest");
        assert_eq!(world.server.calls(), made, "it was kept");
        assert_eq!(answered(&*reads, "reader", &reader).await, "reader");
        assert_eq!(world.server.calls(), made + 1, "it was made again");
    });
}

#[test]
fn processes_that_are_killed_are_replaced() {
    let world = World::over_pipe();
    let tool = world.tool("ask");
    world.run(async {
        let users = users(10);
        let wants = join_all(users.iter().map(|user| asked(&*tool, user))).await;
        (1..5).for_each(|number| world.server.child(number).kill());
        world.stage.pass(1).await;
        // The calls there are gone, and are made again with the same answers.
        let answering = users.iter().zip(&wants);
        let said = join_all(answering.map(|(user, wants)| answered(&*tool, user, wants))).await;
        assert_eq!(said, users);
    });
}

#[test]
fn an_abandoned_call_leaves_no_question_to_the_next() {
    let world = World::over_pipe();
    let tool = world.tool("ask");
    world.run(async {
        drop(asked(&*tool, "first").await);
        let left = asked(&*tool, "left").await;
        tool.forget(&left.state);
        world.stage.pass(1).await;
        assert_eq!((world.server.started(), world.server.living()), (2, 1));
        asked(&*tool, "next").await;
        assert_eq!(world.server.started(), 3, "a process that may still ask is not used again");
    });
}

#[test]
fn idle_processes_are_ended_and_all_end_with_the_upstream() {
    let world = World::over_pipe();
    let tool = world.tool("ask");
    world.run(async {
        all_are_asked_and_answered(&*tool, &users(3)).await;
        world.stage.pass(30_000).await;
        assert_eq!(world.server.living(), 3);
        world.stage.pass(31_000).await;
        assert_eq!(world.server.living(), 1, "the main one stays");
        all_are_asked_and_answered(&*tool, &users(3)).await;
        assert!(world.server.living() > 1);
        world.board.begin_stop();
        world.board.stopped().await;
        assert_eq!(world.server.living(), 0);
    });
}

#[test]
fn a_process_that_starts_while_the_upstream_stops_is_ended() {
    let stage = Stage::new();
    let server = Server::new(&[HANDSHAKE]);
    let at_once = server.dial();
    let clock = stage.parts().clock;
    let dial: Dial = Arc::new(move |link: Arc<Link>, transport: LineKind| -> LineFuture {
        let line = at_once(link, transport);
        let over = clock.sleep_ms(100);
        Box::pin(async move {
            over.await;
            line.await
        })
    });
    let world = World::dialled(stage, server, piped(), dial);
    let tool = world.tool("ask");
    world.run(async {
        let _first = asked(&*tool, "first").await;
        let caller = caller();
        let second = call(json!({"user": "second"}), InputResponses::default());
        let stopping = async {
            world.stage.pass(50).await;
            assert_eq!(world.server.started(), 2, "it is being started");
            world.board.begin_stop();
            world.board.stopped().await;
        };
        let (called, ()) = join(tool.call(&caller, &second), stopping).await;
        assert!(called.is_err(), "{called:?}");
        world.stage.pass(1).await;
        assert_eq!(world.server.living(), 0);
    });
}

#[test]
fn a_tool_that_asks_on_the_general_stream_gets_a_session_per_call() {
    let world = World::over_http();
    let ask = world.tool("ask");
    let slow = world.tool("slow");
    let quick = world.tool("echo");
    world.run(async {
        let first = asked(&*ask, "first").await;
        assert_eq!(answered(&*ask, "first", &first).await, "first");
        assert_eq!(world.server.started(), 1, "it was the only call");
        all_are_asked_and_answered(&*ask, &users(10)).await;
        assert_eq!(world.server.started(), 11);
        // A call that was left in another session may ask what it likes there.
        world.leave(&*slow).await;
        let second = asked(&*ask, "second").await;
        assert_eq!(answered(&*ask, "second", &second).await, "second");
        assert_eq!(echo(&*quick, "third").await, "third");
        assert_eq!((world.server.started(), world.server.child(0).calls()), (11, 3));
        world.stage.pass(62_000).await;
        assert_eq!(world.server.living(), 1, "sessions that no one needs are ended");
    });
}

#[test]
fn tools_active_during_an_ambiguous_question_are_tried_alone() {
    let world = World::over_http();
    let ask = world.tool("ask");
    let slow = world.tool("slow");
    let quick = world.tool("echo");
    world.run(async {
        let caller = caller();
        let calls =
            ["one", "two"].map(|user| call(json!({"user": user}), InputResponses::default()));
        let mut one = slow.call(&caller, &calls[0]);
        let mut two = ask.call(&caller, &calls[1]);
        assert!((&mut one).now_or_never().is_none() && (&mut two).now_or_never().is_none());
        world.stage.pass(1).await;
        // It could be of either, so no one was asked.
        drop((one, two));
        world.stage.pass(1).await;
        let three = asked(&*ask, "three").await;
        assert_eq!(answered(&*ask, "three", &three).await, "three");
        assert_eq!((world.server.started(), world.server.child(0).calls()), (2, 2));
        // One that asks nothing where it would be heard shares the session again.
        world.link.lanes.asked_outside(&["echo".into()]);
        assert_eq!(echo(&*quick, "four").await, "four");
        assert_eq!(world.server.child(0).calls(), 2);
        assert_eq!(echo(&*quick, "five").await, "five");
        assert_eq!(world.server.child(0).calls(), 3);
    });
}

#[test]
fn a_session_forgotten_by_the_server_is_reopened_for_the_call() {
    let world = World::over_http();
    let tool = world.tool("ask");
    world.run(async {
        let first = asked(&*tool, "first").await;
        assert_eq!(answered(&*tool, "first", &first).await, "first");
        all_are_asked_and_answered(&*tool, &users(2)).await;
        assert_eq!(world.server.started(), 3);
        (1..3).for_each(|number| world.server.child(number).forget());
        let second = asked(&*tool, "second").await;
        assert_eq!(answered(&*tool, "second", &second).await, "second");
        assert_eq!(world.server.started(), 4, "all that were kept are gone");
    });
}

#[test]
fn a_server_without_sessions_has_one_connection() {
    let server = Server { is_apart: false, ..Server::new(&[HANDSHAKE]) };
    let world = World::new(server, config());
    let tool = world.tool("ask");
    world.run(async {
        for user in users(3) {
            let wants = asked(&*tool, &user).await;
            assert_eq!(answered(&*tool, &user, &wants).await, user);
        }
        assert_eq!(world.server.started(), 1, "a question could come over any of several");
    });
}

#[test]
fn a_server_of_both_eras_is_spoken_to_in_the_callers_era() {
    for (era, of_handshake, of_others) in [
        (EraSetting::Auto, HANDSHAKE, STATELESS),
        (EraSetting::Handshake, HANDSHAKE, HANDSHAKE),
        (EraSetting::Stateless, STATELESS, STATELESS),
    ] {
        let server = Server::new(&[HANDSHAKE, STATELESS]);
        let world = World::new(server, UpstreamConfig { era, ..config() });
        let tool = world.tool("echo");
        world.run(async {
            for (handshake, greeted) in [(true, of_handshake), (false, of_others)] {
                let before = calls(&world.server);
                let mut call = call(json!({"user": "one"}), InputResponses::default());
                call.can = Abilities { handshake, ..Abilities::PERSON };
                assert_eq!(said(tool.call(&caller(), &call).await), "one");
                let after = calls(&world.server);
                let used = (0..after.len()).find(|at| Some(&after[*at]) != before.get(*at));
                let child = world.server.child(used.unwrap());
                let first = child.state.lock().unwrap().methods[0].clone();
                assert_eq!(first, greeted, "{era:?}, handshake {handshake}");
            }
        });
    }
}

fn calls(server: &Server) -> Vec<usize> {
    server.children.lock().unwrap().iter().map(|child| child.calls()).collect()
}

#[test]
fn a_server_without_a_handshake_is_asked_for_one_once() {
    let world = World::new(Server::new(&[STATELESS]), config());
    let tool = world.tool("echo");
    world.run(async {
        let mut call = call(json!({"user": "one"}), InputResponses::default());
        call.can = Abilities { handshake: true, ..Abilities::PERSON };
        for _ in 0..3 {
            assert_eq!(said(tool.call(&caller(), &call).await), "one");
        }
        assert_eq!(world.server.started(), 2, "it is not tried with each call");
        assert_eq!(world.server.child(0).calls(), 3);
    });
}

#[test]
fn a_tool_for_tasks_alone_is_called_without_a_handshake() {
    let world = World::new(Server::new(&[HANDSHAKE, STATELESS]), config());
    world.run(async {
        let mut listed = tool("echo");
        listed["execution"] = json!({"taskSupport": "required"});
        let tool = RemoteTool::listed(world.link.clone(), listed).unwrap();
        let mut call = call(json!({"user": "one"}), InputResponses::default());
        call.can = Abilities { handshake: true, ..Abilities::PERSON };
        assert_eq!(said(tool.call(&caller(), &call).await), "one");
        assert_eq!(world.server.started(), 1, "no session is opened for it");
    });
}

#[test]
fn a_subscription_that_is_never_acknowledged_is_made_with_a_handshake() {
    let world = World::new(Server::new(&[HANDSHAKE, STATELESS]), config());
    let shelf = RemoteShelf::new(world.link.clone());
    world.run(async {
        let caller = caller();
        let mut changes = shelf.changes(&caller, "a://1").await.unwrap().unwrap();
        assert!(world.stage.now_ms() < 10_000, "{} ms", world.stage.now_ms());
        world.server.child(1).say("notifications/resources/updated", json!({"uri": "a://1"}));
        changes.next().await;
    });
    let world = World::new(Server::new(&[STATELESS]), config());
    let shelf = RemoteShelf::new(world.link.clone());
    world.run(async {
        let error = shelf.changes(&caller(), "a://1").await.err().unwrap();
        assert_eq!(error.name, "UpstreamTimeout");
        assert!(world.stage.now_ms() < 10_000, "{} ms", world.stage.now_ms());
    });
}
