//! Keeps one MCP server connected for as long as Waypost runs: connects, watches the connection,
//! and reconnects with back-off. Its last lists stay while it is away.

use super::attend::{AttendedConnection, Event};
use crate::children::Program;
use crate::config::{EraSetting, UpstreamKind};
use crate::lock;
use crate::mcp::calls::ServerMessages;
use crate::mcp::http::HttpLine;
use crate::mcp::lanes::{self, LineFuture, LineKind};
use crate::mcp::line::{PeerError, PeerErrorKind, Result};
use crate::mcp::lists::Lists;
use crate::mcp::peer::{AskError, Era, EraChoice, Peer};
use crate::mcp::stdio::ChildLine;
use crate::mcp::tool::{RemoteTool, told};
use crate::mcp::{CONNECTING_MS, Connection, Link};
use crate::state::{Board, Check, UpstreamState};
use futures::future::{join, select};
use kernel::contracts::Tool;
use kernel::tool::call::CallProgress;
use kernel::values::fault::Fault;
use kernel::values::ids::Millis;
use serde_json::Value;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Of how many tools that are left out the log tells one by one; of more it tells how many.
const LEFT_OUT_TOLD_MAX: usize = 10;

/// Keeps a server until the board says stop; then its lines are closed.
pub(crate) async fn keep(link: Arc<Link>, board: Arc<Board>, checks: mpsc::Receiver<Check>) {
    let keeper = Keeper {
        link: link.clone(),
        board: board.clone(),
        checks,
        waiting: Vec::new(),
        transport: LineKind::Current,
        era: None,
        failures: 0,
        last_failure: String::new(),
    };
    select(pin!(keeper.run()), pin!(board.stopping())).await;
    let closed = PeerError::new(CallProgress::NotSent, PeerErrorKind::Closed, "the server stops");
    link.set(Connection::Failing(closed));
    join(link.hang_up(), lanes::close(&link)).await;
    board.end_stop();
}

/// A line as the configuration says.
pub(crate) fn dial(link: Arc<Link>, transport: LineKind) -> LineFuture {
    Box::pin(async move {
        let Link { config, parts, .. } = &*link;
        match (&config.kind, transport) {
            (UpstreamKind::Http { url, headers, .. }, LineKind::Current) => {
                HttpLine::new(url, headers.clone(), link.account.clone(), parts)
            }
            (UpstreamKind::Http { url, headers, .. }, LineKind::LegacySse) => {
                HttpLine::connect_legacy_sse(url, headers.clone(), link.account.clone(), parts)
                    .await
            }
            (UpstreamKind::Stdio { command, args, env, cwd }, _) => {
                let program = Program { command, args, env, cwd: cwd.as_deref() };
                ChildLine::start(&config.name, &program, parts)
            }
            (UpstreamKind::Rest(_) | UpstreamKind::Rpc { .. } | UpstreamKind::A2a(_), _) => {
                let message = "this upstream does not speak MCP";
                Err(PeerError::new(CallProgress::NotSent, PeerErrorKind::NotMcp, message))
            }
        }
    })
}

struct Keeper {
    link: Arc<Link>,
    board: Arc<Board>,
    checks: mpsc::Receiver<Check>,
    /// Pending checks.
    waiting: Vec<Check>,
    /// Over which transport the server was reached last, and of which era it was.
    transport: LineKind,
    era: Option<Era>,
    /// How often it failed in a row.
    failures: u32,
    last_failure: String,
}

impl Keeper {
    async fn run(mut self) {
        loop {
            let (error, ready_since) = match self.connect().await {
                Ok((peer, server_messages)) => self.attend(peer, server_messages).await,
                Err(error) => {
                    // Whatever answers there next time may be another server.
                    self.transport = LineKind::Current;
                    self.era = None;
                    (error, None)
                }
            };
            let wait_ms = self.lost(error, ready_since);
            self.link.hang_up().await;
            self.rest(wait_ms).await;
        }
    }

    async fn connect(&mut self) -> Result<(Arc<Peer>, ServerMessages)> {
        let (peer, server_messages) = match self.connect_by(self.transport, self.era).await {
            Ok(connected) => connected,
            Err(error) => self.connect_otherwise(error).await?,
        };
        let peer = Arc::new(peer);
        self.era = Some(peer.era());
        self.link.reached(self.transport);
        self.board.greeted(peer.version(), peer.server());
        self.link.set(Connection::Ready(peer.clone()));
        Ok((peer, server_messages))
    }

    /// After a failure that another way, or another first word, may not meet.
    async fn connect_otherwise(&mut self, error: PeerError) -> Result<(Peer, ServerMessages)> {
        let is_http = matches!(self.link.config.kind, UpstreamKind::Http { .. });
        let setting = self.link.config.era;
        let (transport, era) = match (self.transport, error.kind) {
            // A server of the older kind may end at a first message that is not its handshake.
            (LineKind::Current, PeerErrorKind::Closed)
                if self.era.is_none() && setting == EraSetting::Auto =>
            {
                (LineKind::Current, Some(Era::Legacy))
            }
            // No one is posted to there: so answers a server of the oldest kind.
            (LineKind::Current, PeerErrorKind::Refused(400 | 404 | 405))
                if is_http && setting != EraSetting::Stateless =>
            {
                (LineKind::LegacySse, Some(Era::Legacy))
            }
            // It was one, and is none any more.
            (LineKind::LegacySse, PeerErrorKind::Refused(_) | PeerErrorKind::NotMcp) => {
                (LineKind::Current, None)
            }
            _ => return Err(error),
        };
        self.link.hang_up().await;
        match self.connect_by(transport, era).await {
            Ok(connected) => {
                self.transport = transport;
                Ok(connected)
            }
            // What the usual way met says more than what an old one did, unless it is there.
            Err(again) if transport == LineKind::LegacySse && !again.kind.wants_login() => {
                Err(error)
            }
            Err(again) => Err(again),
        }
    }

    async fn connect_by(
        &self,
        transport: LineKind,
        era: Option<Era>,
    ) -> Result<(Peer, ServerMessages)> {
        let line = (self.link.dial)(self.link.clone(), transport).await?;
        self.link.hold(line.clone());
        let meet = match self.link.config.era {
            EraSetting::Auto => EraChoice::Any(era),
            EraSetting::Handshake => EraChoice::Only(Era::Legacy),
            EraSetting::Stateless => EraChoice::Only(Era::Modern),
        };
        let Link { config, parts, .. } = &*self.link;
        let connected = Peer::connect(line, parts, meet, &config.roots).await;
        connected.map_err(|error| self.in_this_era(error))
    }

    /// A server that is not of the era that is set for it may be of the other.
    fn in_this_era(&self, error: PeerError) -> PeerError {
        let config = &self.link.config;
        match (config.era, error.kind) {
            (EraSetting::Auto, _) => error,
            (era, PeerErrorKind::NotMcp | PeerErrorKind::Refused(_)) => error.hint(format!(
                "`era = \"{}\"` is set for it in {}; without that Waypost finds out what it speaks",
                era.word(),
                config.origin
            )),
            _ => error,
        }
    }

    /// Attends to a connection until it is lost; says why, and since when it was ready.
    async fn attend(
        &mut self,
        peer: Arc<Peer>,
        server_messages: ServerMessages,
    ) -> (PeerError, Option<Millis>) {
        let mut attended =
            AttendedConnection::new(self.link.clone(), peer, server_messages, self.waiting.len());
        let mut ready_since = None;
        loop {
            match attended.next(&mut self.checks).await {
                Event::Listed(listed) => {
                    let now = self.link.parts.clock.now();
                    let is_new = self.take(listed.lists);
                    self.board.enter(UpstreamState::Ready, now, None);
                    if is_new {
                        self.board.tell_change();
                    }
                    ready_since = ready_since.or(Some(now));
                    let answered = attended.answered_checks().min(self.waiting.len());
                    for check in self.waiting.drain(..answered) {
                        // The one who asked may have gone.
                        let _ = check.send(Ok(self.board.status()));
                    }
                }
                Event::Stumbled(error) => {
                    let upstream = self.link.config.name.as_str();
                    match self.board.status().last_error {
                        None => tracing::warn!(upstream, %error, "an upstream cannot be listed"),
                        Some(_) => {
                            tracing::debug!(upstream, %error, "an upstream still cannot be listed");
                        }
                    }
                    let fault = self.fault(&error);
                    self.board.stumbled(fault.clone());
                    self.fail_checks(&fault);
                }
                Event::Check(check) => self.waiting.push(check),
                Event::Lost(error) => return (error, ready_since),
            }
        }
    }

    /// Shows what was listed; whether it is not what was known.
    fn take(&self, lists: Lists) -> bool {
        let known = self.link.lists();
        if *known == lists {
            return false;
        }
        let upstream = self.link.config.name.as_str();
        if known.tools != lists.tools {
            let tools = self.tools(&lists.tools);
            tracing::info!(upstream, tools = tools.len(), "an upstream's tools are known");
            self.board.replace_tools(tools);
        }
        let resources = known.resources != lists.resources || known.templates != lists.templates;
        self.board.changed_lists(known.prompts != lists.prompts, resources);
        self.board.counts(lists.prompts.len(), lists.resources.len() + lists.templates.len());
        *lock(&self.link.lists) = Arc::new(lists);
        true
    }

    /// The tools that can be used; of the others the log and the board tell.
    fn tools(&self, listed: &[Value]) -> Vec<Arc<dyn Tool>> {
        let upstream = self.link.config.name.as_str();
        let mut names = BTreeSet::new();
        let mut tools = Vec::with_capacity(listed.len());
        let mut left_out = 0;
        let mut reasons = Vec::new();
        for (index, entry) in listed.iter().enumerate() {
            let name = entry["name"].as_str().unwrap_or_default();
            let why = match RemoteTool::listed(self.link.clone(), entry.clone()) {
                Ok(tool) if names.insert(name) => {
                    tools.push(tool);
                    continue;
                }
                Ok(_) => format!("`{name}` is listed twice"),
                Err(why) => why,
            };
            left_out += 1;
            // A server that lists nothing else must not fill the log.
            if left_out <= LEFT_OUT_TOLD_MAX {
                let why = told(&why);
                tracing::warn!(upstream, index, "a tool of an upstream is left out: {why}");
                reasons.push(why);
            }
        }
        if left_out > LEFT_OUT_TOLD_MAX {
            tracing::warn!(upstream, left_out, "more tools of an upstream are left out");
        }
        self.board.leave_out(reasons);
        tools
    }

    /// Notes that there is no connection, and says how long to wait before the next try.
    fn lost(&mut self, error: PeerError, ready_since: Option<Millis>) -> u64 {
        if error.kind.wants_login() && self.link.login_url().is_some() {
            return self.wait_for_login(error);
        }
        let now = self.link.parts.clock.now();
        let lasted_ms = ready_since.map_or(0, |since| now.0.saturating_sub(since.0).max(0));
        let steady_ms = self.link.parts.limits.upstream_backoff_ms_max;
        // One that never lasts is not tried again and again without a pause.
        let was_steady = lasted_ms.unsigned_abs() >= steady_ms;
        let was_ready = ready_since.is_some();
        self.failures = if was_ready && was_steady { 0 } else { self.failures.saturating_add(1) };
        let wait_ms = self.link.parts.backoff_ms(self.failures);
        let upstream = self.link.config.name.as_str();
        let hint = match (self.link.last_words(), error.hint.as_deref()) {
            (Some(words), hint) => {
                let hint = hint.unwrap_or("our log has all of it at level debug");
                Some(format!("it wrote last: {words}; {hint}"))
            }
            (None, hint) => hint.map(str::to_owned),
        };
        let hint = hint.as_deref();
        let failures = self.failures;
        let is_other = self.last_failure != error.message;
        if failures <= 1 {
            let told = "an upstream is lost or cannot be reached";
            tracing::warn!(upstream, %error, hint, wait_ms, "{told}");
        } else if is_other || failures.is_power_of_two() {
            let told = "an upstream still cannot be reached";
            tracing::warn!(upstream, %error, hint, wait_ms, failures, "{told}");
        } else {
            tracing::debug!(upstream, %error, wait_ms, "an upstream still cannot be reached");
        }
        self.last_failure.clone_from(&error.message);
        let fault = Fault { hint: hint.map(str::to_owned), ..error.fault(upstream) };
        let state = if was_ready && wait_ms < CONNECTING_MS {
            // Soon enough for calls to wait for it.
            self.link.set(Connection::Connecting);
            UpstreamState::Connecting
        } else {
            self.link.set(Connection::Failing(error));
            UpstreamState::Failing
        };
        self.board.enter(state, now, Some(fault.clone()));
        self.fail_checks(&fault);
        wait_ms
    }

    /// Waits for a login. The server is still checked occasionally, because it may not require a
    /// login any more.
    fn wait_for_login(&mut self, error: PeerError) -> u64 {
        let now = self.link.parts.clock.now();
        let upstream = self.link.config.name.as_str();
        if self.board.status().state != UpstreamState::Login {
            tracing::warn!(upstream, %error, "an upstream wants a login");
        }
        let fault = error.fault(upstream);
        self.failures = 0;
        self.link.set(Connection::Failing(error));
        self.board.enter(UpstreamState::Login, now, Some(fault.clone()));
        self.fail_checks(&fault);
        self.link.parts.limits.upstream_list_interval_ms
    }

    /// Waits, unless someone wants to know sooner, or has logged in.
    async fn rest(&mut self, wait_ms: u64) {
        let is_login = self.board.status().state == UpstreamState::Login;
        tokio::select! {
            biased;
            () = self.link.parts.clock.sleep_ms(wait_ms) => {}
            () = self.link.login_over(), if is_login => {}
            Some(check) = self.checks.recv() => self.waiting.push(check),
        }
    }

    /// Answers all who wait to know how it is, those included who began to while it was found out.
    fn fail_checks(&mut self, fault: &Fault) {
        while let Ok(check) = self.checks.try_recv() {
            self.waiting.push(check);
        }
        for check in self.waiting.drain(..) {
            // The one who asked may have gone.
            let _ = check.send(Err(fault.clone()));
        }
    }

    fn fault(&self, error: &AskError) -> Fault {
        let upstream = self.link.config.name.as_str();
        match error {
            AskError::Peer(error) => error.fault(upstream),
            AskError::Rpc(_) => {
                Fault::new("UpstreamError", format!("upstream `{upstream}`: {error}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
