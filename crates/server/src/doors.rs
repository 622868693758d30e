//! What every handler has at hand: the engine, the entrance, the upstreams, and the few things that
//! doors share.

use crate::auth::Entrance;
use crate::error::Failure;
use crate::gateway::Gateway;
use crate::rate::Rate;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use engine::Engine;
use kernel::call::Caller;
use kernel::ids::AgentName;
use kernel::limits::Limits;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The doors of one server.
pub(crate) struct Doors {
    /// What decides and does.
    pub(crate) engine: Engine,
    /// Who may come in.
    pub(crate) entrance: Entrance,
    /// The servers behind this one.
    pub(crate) gateway: Gateway,
    /// The agent of requests that name none, where one is set.
    pub(crate) default_agent: Option<AgentName>,
    /// One permit for each event stream that is open.
    pub(crate) streams: Arc<Semaphore>,
    /// How many logins at upstreams are begun.
    pub(crate) logins_begun: Rate,
    /// How many people come back from one.
    pub(crate) logins_returned: Rate,
    closing: watch::Sender<bool>,
}

/// The doors as handlers get them.
pub(crate) type Shared = Arc<Doors>;

impl Doors {
    /// Doors before this engine and these upstreams.
    pub(crate) fn new(engine: Engine, entrance: Entrance, gateway: Gateway) -> Self {
        let streams = Arc::new(Semaphore::new(engine.limits().streams_max));
        let logins = || Rate::per_minute(engine.limits().logins_per_minute);
        let (logins_begun, logins_returned) = (logins(), logins());
        let (closing, default_agent) = (watch::Sender::new(false), None);
        Self {
            engine,
            entrance,
            gateway,
            default_agent,
            streams,
            logins_begun,
            logins_returned,
            closing,
        }
    }

    /// The same, where requests that name no agent are for this one.
    #[must_use]
    pub(crate) fn talking_to(self, default_agent: Option<AgentName>) -> Self {
        Self { default_agent, ..self }
    }

    /// Who calls.
    pub(crate) fn caller(&self) -> &Caller {
        self.entrance.caller()
    }

    /// The limits.
    pub(crate) fn limits(&self) -> &Limits {
        self.engine.limits()
    }

    /// Room for one more stream, if there is any.
    pub(crate) fn free_stream(&self) -> Option<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().ok()
    }

    /// Streams end: the server is closing.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Wakes when the server is closing.
    pub(crate) fn closing(&self) -> Closing {
        Closing(self.closing.subscribe())
    }
}

/// Wakes when the server is closing.
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Waits for it.
    pub(crate) async fn begun(&mut self) {
        // The sender lives as long as the doors; if it is gone, so is the server.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}

/// A caller who may administer. Asked for before a body is read: a stranger learns nothing of it.
pub(crate) struct Administrator(pub(crate) Caller);

impl FromRequestParts<Shared> for Administrator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, doors: &Shared) -> Result<Self, Failure> {
        let caller = doors.entrance.administrator(&parts.headers)?;
        Ok(Self(caller.clone()))
    }
}
