//! Dispatches messages that a server sends outside of any request.

use crate::mcp::Link;
use crate::mcp::line::Incoming;
use crate::mcp::lists::ListSet;
use crate::mcp::peer::Peer;
use crate::mcp::requests::{ELICIT, ROOTS, SAMPLE};

/// Passes it on, or answers it; which lists it says have changed.
pub(crate) async fn hear(link: &Link, peer: &Peer, incoming: Incoming) -> ListSet {
    match incoming {
        Incoming::Notification { .. } => return hear_notification(link, peer, incoming),
        Incoming::Request { id, method, params } if [ELICIT, SAMPLE, ROOTS].contains(&&*method) => {
            let tools = peer.calls().tools();
            let is_pipe = link.is_pipe();
            // Some servers ask for folders when they are connected to, whatever is called.
            if !is_pipe && method != ROOTS {
                link.lanes.asked_outside(&tools);
            }
            let request = Incoming::Request { id, method, params };
            let refused = peer.calls().give_question(request).err();
            if let Some(Incoming::Request { id, method, .. }) = refused {
                if is_pipe {
                    link.lanes.could_not_tell(&tools);
                }
                peer.serve(&id, &method).await;
            }
        }
        Incoming::Request { id, method, .. } => peer.serve(&id, &method).await,
        Incoming::Broken(error) => peer.note(&error),
        // An answer that no one waits for any more.
        Incoming::Result(_) | Incoming::Error(_) => {}
    }
    ListSet::NONE
}

fn hear_notification(link: &Link, peer: &Peer, incoming: Incoming) -> ListSet {
    let Incoming::Notification { method, params } = &incoming else { return ListSet::NONE };
    match method.as_str() {
        "notifications/resources/updated" => {
            if let Some(uri) = params["uri"].as_str() {
                // An error means that no one watches.
                let _ = link.updates.send(uri.to_owned());
            }
        }
        "notifications/elicitation/complete" => {
            if let Some(page) = params["elicitationId"].as_str() {
                // An error means that no one waits.
                let _ = link.opened.send(page.to_owned());
            }
        }
        // What belongs to no call that we know is of no use to anybody.
        "notifications/progress" => drop(peer.calls().give_by_token(incoming)),
        "notifications/message" => drop(peer.calls().give_to_the_only(incoming)),
        method => return ListSet::changed(method),
    }
    ListSet::NONE
}
