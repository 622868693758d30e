//! One upstream server as the rest of Waypost uses it. Reading its state never waits; a task keeps
//! that state fresh.

use super::RemoteParts;
use super::config::{UpstreamConfig, UpstreamKind};
use super::mcp::{ManagedServer, RemoteShelf, Users, no_logins};
use super::oauth::{LoginCallback, LoginOutcome, Pending};
use super::{TOOLS_MAX, a2a, rest, rpc};
use crate::state::{Board, Check, ListVersions, UpstreamState, UpstreamStatus};
use futures::future::select;
use kernel::contracts::Tool;
use kernel::contracts::shelf::Shelf;
use kernel::tool::call::Caller;
use kernel::values::fault::Fault;
use kernel::values::ids::ContentHash;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc, watch};
use tracing::Instrument;

/// How a caller's own login at an upstream is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnLogin {
    /// Whether there is one.
    pub is_done: bool,
    /// The page of one that is under way.
    pub url: Option<String>,
}

/// An upstream server.
pub struct Upstream {
    config: UpstreamConfig,
    board: Arc<Board>,
    shelf: Arc<dyn Shelf>,
    /// For MCP servers.
    managed: Option<ManagedServer>,
    /// Tells which pages were opened.
    opened: broadcast::Sender<String>,
}

impl Upstream {
    /// Begins to keep this server.
    pub(crate) fn start(config: UpstreamConfig, parts: &RemoteParts) -> Self {
        match config.kind {
            UpstreamKind::Http { .. } | UpstreamKind::Stdio { .. } => {
                let managed = ManagedServer::start(config.clone(), parts);
                let shelf: Arc<dyn Shelf> = Arc::new(RemoteShelf::new(managed.link.clone()));
                let board = managed.board.clone();
                let opened = managed.link.opened.clone();
                Self { config, board, shelf, managed: Some(managed), opened }
            }
            UpstreamKind::Rest(_) | UpstreamKind::Rpc { .. } | UpstreamKind::A2a(_) => {
                let (board, checks) = Board::new(parts.clock.now());
                let board = Arc::new(board);
                let span = tracing::info_span!("upstream", name = %config.name);
                let loader = Loader {
                    config: config.clone(),
                    parts: parts.clone(),
                    board: board.clone(),
                    checks,
                    failures: 0,
                    document: None,
                    withheld: None,
                };
                let managed = keep_loaded(loader, board.clone());
                parts.spawn.task("upstream", Box::pin(managed.instrument(span)));
                let shelf: Arc<dyn Shelf> = Arc::new(EmptyShelf);
                // It never asks for a page.
                let opened = broadcast::Sender::new(1);
                Self { config, board, shelf, managed: None, opened }
            }
        }
    }

    /// Its stable name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    pub fn status(&self) -> UpstreamStatus {
        self.board.status()
    }

    /// The tools that it had when it was last heard.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.board.tools()
    }

    /// Why tools that it lists cannot be used, one by one, but not of very many.
    pub fn left_out(&self) -> Vec<String> {
        self.board.left_out()
    }

    /// So many of its tools can be called; the others are left out of the catalog.
    pub fn count_tools(&self, tools: usize) {
        self.board.count_tools(tools);
    }

    /// Why calls of some of its tools are denied, whoever calls, if that was noted.
    pub fn unfit(&self) -> Option<Fault> {
        self.board.unfit()
    }

    /// Calls of some of its tools are denied for this reason, or none are.
    pub fn note_unfit(&self, why: Option<Fault>) {
        self.board.note_unfit(why);
    }

    /// How often each of its lists changed.
    pub fn changed(&self) -> ListVersions {
        self.board.changed()
    }

    /// Grows when its tools, prompts or resources changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.board.changes()
    }

    /// Waits until it was tried for the first time: its tools are known then, or it is away.
    pub async fn tried(&self) {
        self.board.tried().await;
    }

    /// The same, and until who keeps the catalog has counted its tools, where it has some.
    pub async fn listed(&self) {
        self.board.listed().await;
    }

    /// Its prompts and resources.
    pub fn shelf(&self) -> Arc<dyn Shelf> {
        self.shelf.clone()
    }

    /// The keys of pages that calls wanted opened and that were, from now on: as far as the server
    /// tells, and logins that were finished here.
    pub fn opened_pages(&self) -> broadcast::Receiver<String> {
        self.opened.subscribe()
    }

    /// Connects now, if it is not connected, and lists what it has.
    pub async fn check(&self) -> Result<UpstreamStatus, Fault> {
        self.board.check().await
    }

    /// The page where someone logs in, if a login is under way: because it wants one (its state is
    /// `Login`), because a call wants more than our token is good for, or because one was begun.
    pub fn login_url(&self) -> Option<String> {
        self.managed.as_ref()?.link.account.as_ref()?.login_url()
    }

    /// Begins a login afresh, also where there is a token, which stays in use until the login is
    /// finished: the URL of the page. A fault if this upstream has no logins that a person does.
    pub async fn begin_login(&self) -> Result<String, Fault> {
        self.managed()?.begin_login().await
    }

    /// Forgets the token and who we are known as there, and connects again. The token is given back
    /// where the server takes it.
    pub async fn log_out(&self) -> Result<(), Fault> {
        self.managed()?.log_out().await
    }

    /// Whether each caller logs in for themselves.
    pub fn has_own_logins(&self) -> bool {
        self.users().is_some()
    }

    /// How the caller's own login is, where callers log in for themselves.
    pub async fn own_login(&self, caller: &Caller) -> Option<OwnLogin> {
        let account = self.users()?.account_of(caller)?;
        Some(OwnLogin { is_done: account.has_token().await, url: account.login_url() })
    }

    /// Begins a login of the caller's own: the URL of the page.
    pub async fn begin_own_login(&self, caller: &Caller) -> Result<String, Fault> {
        self.own(caller)?.begin_login().await
    }

    /// The caller sends the code that the page of a login showed which they began: it is theirs.
    pub async fn prove_own_login(&self, caller: &Caller, code: &str) -> Result<(), Fault> {
        self.of_users()?.prove(caller, code).await
    }

    /// Forgets the caller's own login.
    pub async fn end_own_login(&self, caller: &Caller) -> Result<(), Fault> {
        self.own(caller)?.log_out().await
    }

    /// Lets go of the connections of a subject whose logins are removed.
    pub async fn let_go(&self, subject: &str) {
        if let Some(users) = self.users() {
            users.let_go(subject).await;
        }
    }

    /// Someone came back from a login that a caller began for themselves and that is kept there:
    /// the code that the caller must send, if they must.
    pub(crate) async fn finish_own_login(
        &self,
        place: &str,
        login: Pending,
        returned: LoginCallback,
    ) -> Result<Option<String>, Fault> {
        self.of_users()?.finish(place, login, returned).await
    }

    fn users(&self) -> Option<&Arc<Users>> {
        self.managed.as_ref()?.link.users.as_ref()
    }

    fn of_users(&self) -> Result<&Arc<Users>, Fault> {
        self.users().ok_or_else(|| {
            let message = format!("callers do not log in for themselves at `{}`", self.config.name);
            Fault::new("LoginNotPossible", message).hint("an administrator logs in for all of them")
        })
    }

    fn own(&self, caller: &Caller) -> Result<Arc<ManagedServer>, Fault> {
        self.of_users()?.of(caller)
    }

    /// Someone came back from this login.
    pub(crate) async fn finish_login(
        &self,
        login: Pending,
        returned: LoginCallback,
    ) -> Result<LoginOutcome, Fault> {
        self.managed()?.finish_login(login, returned).await
    }

    fn managed(&self) -> Result<&ManagedServer, Fault> {
        self.managed.as_ref().ok_or_else(|| no_logins(&self.config.name))
    }

    /// Lets it go; its session or process is ended on return, and what was done to our account
    /// there is done: a token that is being renewed would be lost with us.
    pub(crate) async fn stop(&self) {
        match &self.managed {
            Some(managed) => managed.stop().await,
            None => {
                self.board.begin_stop();
                self.board.stopped().await;
            }
        }
    }

    /// Lets it go, without waiting for it.
    pub(crate) fn begin_stop(&self) {
        match &self.managed {
            Some(managed) => managed.begin_stop(),
            None => self.board.begin_stop(),
        }
    }
}

/// The shelf of a server that has only tools.
struct EmptyShelf;

impl Shelf for EmptyShelf {}

/// Keeps the tools of a server without connections: they are loaded, and loaded again now and then.
struct Loader {
    config: UpstreamConfig,
    parts: RemoteParts,
    board: Arc<Board>,
    checks: mpsc::Receiver<Check>,
    failures: u32,
    /// The document that the tools on the board were made of, if they were made of one.
    document: Option<ContentHash>,
    /// How often the card of an agent was read that shows none of its skills; none where it does.
    withheld: Option<u32>,
}

async fn keep_loaded(loader: Loader, board: Arc<Board>) {
    select(pin!(loader.run()), pin!(board.stopping())).await;
    board.end_stop();
}

impl Loader {
    async fn run(mut self) {
        let mut waiting: Option<Check> = None;
        loop {
            let loaded = self.load().await;
            let wait_ms = match &loaded {
                Ok(_) => self.next_look_ms(),
                Err(_) => self.parts.backoff_ms(self.failures.saturating_add(1)),
            };
            let answer = self.take(loaded, wait_ms);
            // Those who asked while it was loaded are answered as well; they may have gone.
            let asked = waiting.take().into_iter();
            for check in asked.chain(std::iter::from_fn(|| self.checks.try_recv().ok())) {
                let _ = check.send(answer.clone());
            }
            tokio::select! {
                biased;
                () = self.parts.clock.sleep_ms(wait_ms) => {}
                check = self.checks.recv() => waiting = check,
            }
        }
    }

    /// When it is looked at again where all went well. An agent that shows none of its skills may
    /// show them soon: it is starting, or does not know us yet.
    fn next_look_ms(&mut self) -> u64 {
        let interval_ms = self.parts.limits.upstream_list_interval_ms;
        let Some(reads) = self.withheld else { return interval_ms };
        let reads = reads.saturating_add(1);
        self.withheld = Some(reads);
        self.parts.backoff_ms(reads).min(interval_ms)
    }

    /// Its tools as they are now; none if those on the board are.
    async fn load(&mut self) -> Result<Option<Vec<Arc<dyn Tool>>>, Fault> {
        match &self.config.kind {
            UpstreamKind::Rest(config) => {
                let known = self.document.as_ref();
                let loaded = rest::load(&self.config, config, &self.parts, known).await?;
                Ok(loaded.map(|rest::RestTools { tools, document }| {
                    self.document = Some(document);
                    tools
                }))
            }
            UpstreamKind::Rpc { url, headers, tools, .. } => {
                let tools = rpc::load(&self.config, url, headers, tools, &self.parts).await?;
                Ok((!same(&tools, &self.board.tools())).then_some(tools))
            }
            UpstreamKind::A2a(config) => {
                let known = self.document.as_ref();
                let board = &self.board;
                let loaded = a2a::load(&self.config, config, &self.parts, board, known).await?;
                Ok(loaded.map(|a2a::AgentTools { tools, card, is_withholding }| {
                    self.document = Some(card);
                    self.withheld = is_withholding.then_some(0);
                    tools
                }))
            }
            UpstreamKind::Http { .. } | UpstreamKind::Stdio { .. } => Ok(None),
        }
    }

    fn take(
        &mut self,
        loaded: Result<Option<Vec<Arc<dyn Tool>>>, Fault>,
        wait_ms: u64,
    ) -> Result<UpstreamStatus, Fault> {
        let upstream = self.config.name.as_str();
        let now = self.parts.clock.now();
        match loaded {
            Ok(loaded) => {
                self.failures = 0;
                let changed = loaded.is_some();
                if let Some(mut tools) = loaded {
                    if tools.len() > TOOLS_MAX {
                        let told = "an upstream has more tools than we take";
                        tracing::warn!(upstream, tools_max = TOOLS_MAX, "{told}");
                        tools.truncate(TOOLS_MAX);
                    }
                    self.board.replace_tools(tools);
                }
                self.board.enter(UpstreamState::Ready, now, None);
                if changed {
                    self.board.tell_change();
                }
                Ok(self.board.status())
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures.is_power_of_two() {
                    let failures = self.failures;
                    let told = "an upstream cannot be loaded";
                    tracing::warn!(upstream, %error, wait_ms, failures, "{told}");
                } else {
                    tracing::debug!(upstream, %error, wait_ms, "an upstream is not loaded yet");
                }
                let any = match self.board.tools().is_empty() {
                    true => rpc::any_method(&self.config, &self.parts),
                    false => None,
                };
                let changed = any.is_some();
                if let Some(any) = any {
                    self.board.replace_tools(vec![any]);
                }
                self.board.enter(UpstreamState::Failing, now, Some(error.clone()));
                if changed {
                    self.board.tell_change();
                }
                Err(error)
            }
        }
    }
}

/// Whether both say the same of themselves; then the ones that are there stay.
fn same(new: &[Arc<dyn Tool>], old: &[Arc<dyn Tool>]) -> bool {
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| new.spec() == old.spec())
}
