//! An MCP server with the task that keeps it connected, its state and its login. Where callers log
//! in for themselves, each of them has one.

use super::Link;
use super::connection::supervisor::{dial, keep};
use super::tool::LOGIN_PAGE;
use crate::RemoteParts;
use crate::config::UpstreamConfig;
use crate::oauth::{Account, LoginCallback, LoginOutcome, Pending};
use crate::state::{Board, UpstreamState};
use kernel::values::fault::Fault;
use std::sync::Arc;
use tracing::Instrument;

/// A server, and the task that keeps it.
pub(crate) struct ManagedServer {
    pub(crate) link: Arc<Link>,
    pub(crate) board: Arc<Board>,
}

impl ManagedServer {
    /// Begins to keep this server.
    pub(crate) fn start(config: UpstreamConfig, parts: &RemoteParts) -> Self {
        let (board, checks) = Board::new(parts.clock.now());
        let board = Arc::new(board);
        let span = tracing::info_span!("upstream", name = %config.name);
        let link = Arc::new(Link::new(config, parts.clone(), Arc::new(dial)));
        let kept = keep(link.clone(), board.clone(), checks);
        parts.spawn.task("upstream", Box::pin(kept.instrument(span)));
        Self { link, board }
    }

    /// Begins a login afresh: the URL of the page.
    pub(crate) async fn begin_login(&self) -> Result<String, Fault> {
        self.account()?.begin().await
    }

    /// Forgets the token and who we are known as there, and connects again.
    pub(crate) async fn log_out(&self) -> Result<(), Fault> {
        self.account()?.log_out().await?;
        self.board.look_soon();
        Ok(())
    }

    /// Someone came back from this login.
    pub(crate) async fn finish_login(
        &self,
        login: Pending,
        returned: LoginCallback,
    ) -> Result<LoginOutcome, Fault> {
        let finished = self.account()?.finish(login, returned).await;
        // One that waits for a login connects by itself; any other has more than before, or less.
        if self.board.status().state != UpstreamState::Login {
            self.board.look_soon();
        }
        if finished.is_ok() {
            // An error means that no one waits.
            let _ = self.link.opened.send(LOGIN_PAGE.to_owned());
        }
        finished
    }

    /// The caller that began the login sends its code.
    pub(crate) async fn prove_login(&self, code: &str) -> Result<(), Fault> {
        self.account()?.prove(code).await
    }

    /// Lets it go; its session or process is ended on return, and what was done to our account
    /// there is done: a token that is being renewed would be lost with us.
    pub(crate) async fn stop(&self) {
        self.board.begin_stop();
        self.board.stopped().await;
        if let Some(account) = &self.link.account {
            account.at_rest().await;
        }
        if let Some(users) = &self.link.users {
            users.stop().await;
        }
    }

    /// Lets it go, without waiting for it.
    pub(crate) fn begin_stop(&self) {
        self.board.begin_stop();
        if let Some(users) = &self.link.users {
            users.begin_stop();
        }
    }

    fn account(&self) -> Result<&Arc<Account>, Fault> {
        self.link.account.as_ref().ok_or_else(|| no_logins(&self.link.config.name))
    }
}

/// An upstream at which no one can log in.
pub(crate) fn no_logins(name: &str) -> Fault {
    Fault::new("LoginNotPossible", format!("upstream `{name}` has no logins"))
        .hint("only MCP servers behind a URL have them, and not with a fixed `Authorization`")
}
