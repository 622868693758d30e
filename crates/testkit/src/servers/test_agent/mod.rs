//! The test agent of A2A: our own server with plans that do what test suites ask for by the first
//! words of a message, or by the beginning of its id. It asks for no credential, notifies receivers
//! on this machine, and recognises no repeats, since such suites use one id for many messages.

mod acts;
mod plans;
mod triggers;

use kernel::limits::Limits;
use kernel::tool::rules::Pattern;
use project::a2a_serving::A2aServing;
use project::config::Config;
use project::folder::Project;
use server::{AssembleError, Assembled, Extra, Setup};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tools::HttpSettings;

/// Longer than any of its tools works.
const CALL_TIMEOUT_MS: u64 = 2 * 3_600_000;
/// How long its start may take on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Whom its webhooks may notify beside public addresses: receivers of tests are here.
const HERE: [&str; 2] = ["127.0.0.1", "localhost"];
/// Its plans, which are its skills.
const SKILLS: &str = "tck/*";

/// What its card says that it can do, beside the operations that every agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capabilities {
    /// All that the server can do.
    All,
    /// Neither streams, nor webhooks, nor an extended card.
    Bare,
}

/// The server with the agent, for a socket of this address.
pub async fn assemble(
    data: PathBuf,
    address: SocketAddr,
    capabilities: Capabilities,
) -> Result<Assembled, AssembleError> {
    let extra = Extra {
        tools: acts::all(),
        choose_skill: Some(Arc::new(triggers::chosen)),
        ..Extra::default()
    };
    let setup = Setup::new(
        project(capabilities),
        data,
        address,
        Arc::new(|why: String| {
            eprintln!("a2a-fixture: {why}");
            std::process::exit(1);
        }),
    );
    server::assemble(Setup { extra, ..setup }).await
}

fn project(capabilities: Capabilities) -> Project {
    let limits = Limits { call_timeout_ms: CALL_TIMEOUT_MS, ..Limits::default() };
    let is_whole = capabilities == Capabilities::All;
    let a2a = A2aServing {
        name: "Test agent".to_owned(),
        description: "Does what the first words of a message say".to_owned(),
        expose: vec![Pattern::new(SKILLS).unwrap()],
        repeat_window: 0,
        streaming: is_whole,
        extended_card: is_whole,
        push: is_whole.then(|| HttpSettings::new(&HERE).unwrap()),
        ..A2aServing::default()
    };
    let config = Config { limits, a2a, ..Config::default() };
    Project { config, plans: plans::all(), ..Project::default() }
}

/// The agent on a thread of its own; it ends with its value.
#[derive(Debug)]
pub struct Agent {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts it on a free port.
    pub fn start(capabilities: Capabilities) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (told, listening) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let folder = tempfile::tempdir().unwrap();
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                let address = listener.local_addr().unwrap();
                let assembled = assemble(folder.path().join("data"), address, capabilities).await;
                let assembled = assembled.unwrap_or_else(|error| panic!("{error}"));
                assert!(assembled.warnings.is_empty(), "{:?}", assembled.warnings);
                told.send(address).unwrap();
                let stopped = async move {
                    // An error says the same: no one needs it any more.
                    let _ = stopped.await;
                };
                server::serve(assembled, listener, None, stopped).await;
            });
        });
        let address = listening.recv_timeout(START_LIMIT);
        let address = address.unwrap_or_else(|_| panic!("the agent did not start in time"));
        Self { address, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It is over already where no one hears it.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
