//! Connections beside an upstream's main one. A server of both eras is spoken to with a handshake
//! for callers that use one. Where a server's question carries no id of its call, calls of tools
//! that ask get a connection of their own: a process over a pipe, a session over HTTP. Their number
//! is limited. The main connection is in `connection`.

mod notifications;
mod assignment;
#[cfg(test)]
mod tests;

use super::Link;
use super::calls::ServerMessages;
use super::line::{Line, PeerError, PeerErrorKind, Result};
use super::lists::ListSet;
use super::peer::{Era, EraChoice, Peer};
use crate::config::EraSetting;
use assignment::{LaneGrant, Shared};
use futures::future::{BoxFuture, Either, join_all, select};
use kernel::tool::call::{Abilities, CallProgress};
use std::pin::pin;
use std::sync::{Arc, Weak};

pub(crate) use assignment::{LanePermit, Lanes};
pub(crate) use notifications::hear;

/// For how long a server that has no handshake is not asked for one again.
const REFUSED_MS: u64 = 60 * 60 * 1_000;
/// The same for one that could not be reached.
const UNREACHED_MS: u64 = 10_000;
/// How long a session that is let go is kept, so that the server hears first which of its calls
/// are cancelled.
const ENDING_MS: u64 = 1_000;

/// How a line to an upstream is made.
pub(crate) type Dial = Arc<dyn Fn(Arc<Link>, LineKind) -> LineFuture + Send + Sync>;
/// A line that is being made.
pub(crate) type LineFuture = BoxFuture<'static, Result<Arc<dyn Line>>>;

/// Over which transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Streamable HTTP, or a pipe.
    Current,
    /// HTTP+SSE of 2024-11-05: a stream for answers, and posts.
    LegacySse,
}

/// Where a call is made.
pub(crate) struct CallConnection {
    pub(crate) peer: Arc<Peer>,
    /// Its place among the calls there, where that matters.
    pub(crate) permit: Option<LanePermit>,
}

/// The connection for a call of this tool, by a caller that can do this.
pub(crate) async fn seat(
    link: &Arc<Link>,
    tool: &Arc<str>,
    can: Abilities,
) -> Result<CallConnection> {
    let main = link.peer().await?;
    let peer = match main.era() {
        Era::Legacy => main,
        Era::Modern if can.handshake => match Box::pin(handshake(link)).await {
            Some(peer) => peer,
            None => return Ok(CallConnection { peer: main, permit: None }),
        },
        Era::Modern => return Ok(CallConnection { peer: main, permit: None }),
    };
    if !link.is_pipe() {
        return Ok(over_http(link, peer, tool).await);
    }
    match Box::pin(share(link, &peer, tool)).await {
        Some(permit) => Ok(CallConnection { peer, permit: Some(permit) }),
        None => Box::pin(own(link, tool)).await,
    }
}

/// The session for a call of this tool. Most questions come in the answer to the call that they
/// belong to. A tool that asks on the general stream has a session of its own, as far as the server
/// gives us more than one.
async fn over_http(link: &Arc<Link>, peer: Arc<Peer>, tool: &Arc<str>) -> CallConnection {
    if !link.lanes.wants_own(tool) || !peer.is_apart() {
        return CallConnection { peer, permit: None };
    }
    match Box::pin(own(link, tool)).await {
        Ok(seat) => seat,
        Err(error) => {
            let upstream = link.config.name.as_str();
            let passing = error.kind.is_passing();
            tracing::debug!(upstream, %error, "an upstream gives a call no session of its own");
            link.lanes.refused_own(if passing { UNREACHED_MS } else { REFUSED_MS });
            CallConnection { peer, permit: None }
        }
    }
}

/// The session with a handshake of a server whose main connection is stateless; none where it has
/// no handshake, cannot be reached so now, or is not to be.
pub(crate) async fn handshake(link: &Arc<Link>) -> Option<Arc<Peer>> {
    let lanes = &link.lanes;
    if link.config.era != EraSetting::Auto {
        return None;
    }
    if let Some(peer) = lanes.session() {
        return Some(peer);
    }
    let _one = lanes.opening.lock().await;
    // Another may have opened it meanwhile.
    if let Some(peer) = lanes.session() {
        return Some(peer);
    }
    if lanes.is_refused() {
        return None;
    }
    match open(link).await {
        Ok(peer) if lanes.keep_session(&peer) => Some(peer),
        Ok(peer) => {
            peer.let_go();
            None
        }
        Err(error) => {
            let upstream = link.config.name.as_str();
            let lost = error.kind.loses_connection();
            tracing::debug!(upstream, %error, "an upstream cannot be met with a handshake");
            lanes.refused(if lost { UNREACHED_MS } else { REFUSED_MS });
            None
        }
    }
}

/// Closes all of them.
pub(crate) async fn close(link: &Link) {
    let all = link.lanes.take_all();
    join_all(all.iter().map(|peer| peer.close())).await;
}

/// A place on the shared connection with this peer; none if the call needs one of its own.
async fn share(link: &Link, peer: &Peer, tool: &Arc<str>) -> Option<LanePermit> {
    let lanes = &link.lanes;
    let clock = &link.parts.clock;
    let began = clock.elapsed();
    loop {
        let mut changes = lanes.changes();
        let waited = clock.elapsed().saturating_sub(began);
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        match lanes.share(tool, waited_ms, peer.calls().is_in_doubt()) {
            Shared::Place(permit) => return Some(permit),
            Shared::NeedsOwn => return None,
            Shared::Later => {}
        }
        // Whichever comes first, it is checked again.
        let _ = link.parts.within(assignment::wait_ms(waited_ms), changes.changed()).await;
    }
}

/// A connection that no other call uses. Where there are too many, one goes that waits for a
/// person: its call is made again when the answer comes. Else it is waited for.
async fn own(link: &Arc<Link>, tool: &Arc<str>) -> Result<CallConnection> {
    loop {
        let mut changes = link.lanes.changes();
        match link.lanes.take_own(tool) {
            LaneGrant::Place(peer, permit) => {
                return Ok(CallConnection { peer, permit: Some(permit) });
            }
            LaneGrant::Open(opening) => {
                let peer = open(link).await?;
                return match opening.done(&peer, tool) {
                    Some(permit) => Ok(CallConnection { peer, permit: Some(permit) }),
                    // No one else knows of it: it would stay for ever.
                    None => {
                        peer.let_go();
                        Err(stopped())
                    }
                };
            }
            LaneGrant::Full if link.pending.let_go_of_oldest() => {}
            LaneGrant::Full => {
                // The lanes are the link's, so it cannot fail.
                let _ = changes.changed().await;
            }
        }
    }
}

/// Opens a connection with a handshake, and attends to it until it is lost.
async fn open(link: &Arc<Link>) -> Result<Arc<Peer>> {
    let line = (link.dial)(link.clone(), link.transport()).await?;
    let meet = EraChoice::Only(Era::Legacy);
    let roots = &link.config.roots;
    let (peer, server_messages) = Peer::connect(line, &link.parts, meet, roots).await?;
    let peer = Arc::new(peer);
    let attending = attend(Arc::downgrade(link), peer.clone(), server_messages);
    link.parts.spawn.task("upstream lane", Box::pin(attending));
    Ok(peer)
}

async fn attend(link: Weak<Link>, peer: Arc<Peer>, mut server_messages: ServerMessages) {
    loop {
        let heard = match select(pin!(server_messages.next()), pin!(peer.lost())).await {
            Either::Left((heard, _)) => heard,
            Either::Right(_) => return end(&link, &peer).await,
        };
        let (Some(link), Some(incoming)) = (link.upgrade(), heard) else {
            // Its process is gone, or no one needs it.
            return peer.let_go();
        };
        let said = incoming.clone();
        if hear(&link, &peer, incoming).await != ListSet::NONE {
            link.tell_main(said);
        }
    }
}

/// Ends a session that was let go. A process ends when no one has its line any more.
async fn end(link: &Weak<Link>, peer: &Peer) {
    let Some(link) = link.upgrade().filter(|link| !link.is_pipe()) else { return };
    link.parts.clock.sleep_ms(ENDING_MS).await;
    peer.close().await;
}

fn stopped() -> PeerError {
    PeerError::new(CallProgress::NotSent, PeerErrorKind::Closed, "the server stops")
}
