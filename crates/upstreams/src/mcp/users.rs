//! Per-user logins at one upstream: each user has a connection, an account, pages and pending
//! questions of their own. Lists are shared; all other requests use the login of their caller.

use super::Link;
use super::managed::ManagedServer;
use super::tool::LOGIN_PAGE;
use crate::config::{LoginOf, UpstreamConfig, UpstreamKind};
use crate::oauth::{Account, LoginCallback, LoginOutcome, Pending};
use crate::{RemoteParts, lock, subject_mark};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kernel::tool::call::Caller;
use kernel::values::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

/// How many people are connected at the same time; of more, who called longest ago is let go, and
/// connected again with the next call.
const USERS_MAX: usize = 256;
/// The subject of everyone on a machine whose server asks for no credentials.
const LOCAL: &str = "local";

/// The people at one upstream.
pub(crate) struct Users {
    config: UpstreamConfig,
    parts: RemoteParts,
    /// Notifies that a user has logged in.
    opened: broadcast::Sender<String>,
    all: Mutex<KnownUsers>,
}

#[derive(Default)]
struct KnownUsers {
    /// By where what their logins bring is kept.
    users: BTreeMap<String, User>,
    /// How often a user was looked for.
    looks: u64,
}

struct User {
    server: Arc<ManagedServer>,
    /// When it was looked for last.
    looked: u64,
}

impl Users {
    /// The people at this upstream; none where all use one login.
    pub(crate) fn new(
        config: &UpstreamConfig,
        parts: &RemoteParts,
        opened: &broadcast::Sender<String>,
    ) -> Option<Arc<Self>> {
        let mut config = config.clone();
        let UpstreamKind::Http { oauth, .. } = &mut config.kind else { return None };
        // Each of them has one login.
        if std::mem::take(&mut oauth.login) == LoginOf::Shared {
            return None;
        }
        let parts = parts.clone();
        let opened = opened.clone();
        Some(Arc::new(Self { config, parts, opened, all: Mutex::default() }))
    }

    /// The upstream as this caller uses it. Who acts as another does not use the other's login.
    pub(crate) fn of(&self, caller: &Caller) -> Result<Arc<ManagedServer>, Fault> {
        if caller.actor.is_some() {
            let name = &self.config.name;
            let why = format!("upstream `{name}`: no caller uses the login of another there");
            return Err(Fault::new("LoginNotOurs", why).hint("call it as yourself"));
        }
        Ok(self.at(&self.place(caller)))
    }

    /// The account of this caller. Nothing is connected for it, unless it is already.
    pub(crate) fn account_of(&self, caller: &Caller) -> Option<Arc<Account>> {
        if caller.actor.is_some() {
            return None;
        }
        let place = self.place(caller);
        let known = lock(&self.all).users.get(&place).map(|user| user.server.clone());
        match known {
            Some(server) => server.link.account.clone(),
            None => Account::new(&self.config, &self.parts.kept_at(&place)),
        }
    }

    /// Someone came back from a login that is kept at this place: the code that the user who began
    /// it must send, if they must.
    pub(crate) async fn finish(
        &self,
        place: &str,
        login: Pending,
        returned: LoginCallback,
    ) -> Result<Option<String>, Fault> {
        match self.at(place).finish_login(login, returned).await? {
            LoginOutcome::LoggedIn => {
                self.tell();
                Ok(None)
            }
            LoginOutcome::Unproven(code) => Ok(Some(code)),
        }
    }

    /// The caller proves that the login which they began came back to them.
    pub(crate) async fn prove(&self, caller: &Caller, code: &str) -> Result<(), Fault> {
        self.of(caller)?.prove_login(code).await?;
        self.tell();
        Ok(())
    }

    /// Forgets a question that a call of a user kept open; whether one was there.
    pub(crate) fn forget(&self, token: &str) -> bool {
        let known = lock(&self.all);
        known.users.values().any(|user| user.server.link.pending.forget(token))
    }

    /// Lets go of the connections of a user whose logins are removed.
    pub(crate) async fn let_go(&self, subject: &str) {
        let mark = subject_mark(subject);
        let is_theirs = |place: &String| place.rsplit('/').next() == Some(mark.as_str());
        let gone: Vec<User> = {
            let mut known = lock(&self.all);
            let places: Vec<String> =
                known.users.keys().filter(|one| is_theirs(one)).cloned().collect();
            places.iter().filter_map(|place| known.users.remove(place)).collect()
        };
        for user in gone {
            user.server.stop().await;
        }
    }

    /// Lets go of all of them.
    pub(crate) fn stop(&self) -> BoxFuture<'_, ()> {
        let all = std::mem::take(&mut lock(&self.all).users);
        let stops = all.into_values().map(|user| async move { user.server.stop().await });
        Box::pin(join_all(stops).map(drop))
    }

    /// The same, without waiting for it.
    pub(crate) fn begin_stop(&self) {
        lock(&self.all).users.values().for_each(|user| user.server.begin_stop());
    }

    /// Where what a caller's login brings is kept, below where those of the upstream are.
    fn place(&self, caller: &Caller) -> String {
        let mark = subject_mark(&caller.subject);
        match self.parts.scope.place {
            Some(_) => mark,
            None => format!("{}/{}/{mark}", caller.realm, self.config.name),
        }
    }

    fn at(&self, place: &str) -> Arc<ManagedServer> {
        let mut known = lock(&self.all);
        known.looks += 1;
        let looked = known.looks;
        if let Some(user) = known.users.get_mut(place) {
            user.looked = looked;
            return user.server.clone();
        }
        if known.users.len() >= USERS_MAX {
            let first = known.users.iter().min_by_key(|(_, user)| user.looked);
            let first = first.map(|(place, _)| place.clone());
            if let Some(user) = first.and_then(|place| known.users.remove(&place)) {
                user.server.begin_stop();
            }
        }
        // Everyone on this machine is the same person: there is nobody to prove it to.
        let proves = place.rsplit('/').next() != Some(subject_mark(LOCAL).as_str());
        let parts = self.parts.kept_at(place).of_person(proves);
        let server = Arc::new(ManagedServer::start(self.config.clone(), &parts));
        known.users.insert(place.to_owned(), User { server: server.clone(), looked });
        server
    }

    fn tell(&self) {
        // An error means that no one waits.
        let _ = self.opened.send(LOGIN_PAGE.to_owned());
    }
}

impl Link {
    /// The way to the upstream that this caller's requests go.
    pub(crate) fn of(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Self>, Fault> {
        let Some(users) = &self.users else { return Ok(self.clone()) };
        Ok(users.of(caller)?.link.clone())
    }
}
