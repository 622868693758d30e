//! What clients hear without having asked: that lists changed, and resources that they watch. The
//! stateless version opens a stream for it (`subscriptions/listen`); with a handshake it goes where
//! the session wants it.

use super::resources;
use crate::answer::{AnswerResult, Outcome};
use crate::exchange::Exchange;
use crate::messages::outbox::Outbox;
use crate::sessions::{Session, SubscriptionChange, WATCHED_MAX};
use crate::state::McpState;
use engine::ListChanges;
use futures::future::{BoxFuture, Either, join_all, select};
use kernel::contracts::shelf::Changes;
use kernel::values::ids::RealmId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{mpsc, watch};
use wire::jsonrpc::{INTERNAL_ERROR, RpcError};
use wire::mcp::META_SUBSCRIPTION;

/// The method that opens a stream of news.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// What a client wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

impl Filter {
    /// All lists.
    const LISTS: Filter = Filter {
        tools_list_changed: true,
        prompts_list_changed: true,
        resources_list_changed: true,
        resource_subscriptions: Vec::new(),
    };

    /// The notifications of this notice that are wanted.
    fn notifications(&self, notice: Notice) -> Vec<(&'static str, Map<String, Value>)> {
        match notice {
            Notice::Lists(ListChanges { tools, prompts, resources }) => [
                ("notifications/tools/list_changed", self.tools_list_changed, tools),
                ("notifications/prompts/list_changed", self.prompts_list_changed, prompts),
                ("notifications/resources/list_changed", self.resources_list_changed, resources),
            ]
            .into_iter()
            .filter(|(_, wanted, changes)| *wanted && *changes > 0)
            .map(|(method, ..)| (method, Map::new()))
            .collect(),
            Notice::Updated(uri) => {
                let params = Map::from_iter([("uri".to_owned(), Value::String(uri))]);
                vec![("notifications/resources/updated", params)]
            }
        }
    }
}

/// `subscriptions/listen`: acknowledged first, then news until either side is done.
pub(crate) async fn listen(exchange: Exchange) -> AnswerResult {
    #[derive(Deserialize)]
    struct Listen {
        notifications: Filter,
    }
    let Listen { notifications: mut filter } = exchange.params()?;
    let mcp = &exchange.mcp;
    if filter.resource_subscriptions.len() > WATCHED_MAX {
        let message = format!("at most {WATCHED_MAX} resources can be watched on one stream");
        return Err(RpcError::invalid_params(message));
    }
    let mut closing = mcp.server.closing();
    let mut news = News::new(mcp, &exchange.caller.realm);
    let mut kept = Vec::new();
    let uris = std::mem::take(&mut filter.resource_subscriptions);
    // All at once, and each for itself: a server that is slow or away takes nothing from the rest.
    let found = uris.iter().map(|uri| resources::changes(mcp, &exchange.caller, uri));
    for (found, uri) in join_all(found).await.into_iter().zip(&uris) {
        if let Ok(Some(changes)) = found {
            news.watch(uri.clone(), changes);
            kept.push(uri.clone());
        }
    }
    filter.resource_subscriptions = kept;
    let id: Value = serde_json::from_str(exchange.id.as_json()).unwrap_or_default();
    let tag = Map::from_iter([(META_SUBSCRIPTION.to_owned(), id)]);
    let tagged = |mut params: Map<String, Value>| {
        params.insert("_meta".to_owned(), Value::Object(tag.clone()));
        Value::Object(params)
    };
    let gone = || RpcError::new(INTERNAL_ERROR, "the client left");
    let agreed = Map::from_iter([("notifications".to_owned(), json!(filter))]);
    let acknowledged = "notifications/subscriptions/acknowledged";
    if !exchange.outbox.notify(acknowledged, &tagged(agreed)).await {
        return Err(gone());
    }
    while let Either::Left((heard, _)) = select(pin!(news.next()), pin!(closing.begun())).await {
        for (method, params) in filter.notifications(heard) {
            if !exchange.outbox.notify(method, &tagged(params)).await {
                return Err(gone());
            }
        }
    }
    Ok(Outcome::empty().with_meta(tag))
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

/// `resources/subscribe`.
pub(crate) async fn subscribe(exchange: Exchange, session: Arc<Session>) -> AnswerResult {
    let Resource { uri } = exchange.params()?;
    let found = resources::changes(&exchange.mcp, &exchange.caller, &uri).await?;
    let Some(changes) = found else {
        return Err(resources::not_found(exchange.client.version, &uri));
    };
    session.watch(uri, changes).await?;
    Ok(Outcome::empty())
}

/// `resources/unsubscribe`; of what was not watched is as good.
pub(crate) async fn unsubscribe(exchange: Exchange, session: Arc<Session>) -> AnswerResult {
    let Resource { uri } = exchange.params()?;
    session.unwatch(uri).await;
    Ok(Outcome::empty())
}

/// Tells a session's client the news of its realm, until the session is gone or the server closes.
pub(crate) async fn herald(
    mcp: Arc<McpState>,
    realm: RealmId,
    outbox: Outbox,
    mut wishes: mpsc::Receiver<SubscriptionChange>,
) {
    let mut closing = mcp.server.closing();
    let mut news = News::new(&mcp, &realm);
    drop(mcp);
    loop {
        let wish = {
            let heard = pin!(news.next());
            let wished = pin!(wishes.recv());
            let closed = pin!(closing.begun());
            match select(heard, select(wished, closed)).await {
                Either::Left((heard, _)) => {
                    for (method, params) in Filter::LISTS.notifications(heard) {
                        outbox.notify(method, &Value::Object(params)).await;
                    }
                    continue;
                }
                Either::Right((Either::Left((Some(wish), _)), _)) => wish,
                Either::Right(_) => return,
            }
        };
        match wish {
            SubscriptionChange::Hear(uri, changes) => news.watch(uri, changes),
            SubscriptionChange::Forget(uri) => news.forget(&uri),
        }
    }
}

/// What was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Notice {
    /// These lists of the realm have changed.
    Lists(ListChanges),
    /// The resource at this URI has.
    Updated(String),
}

/// Waits for news.
struct News {
    lists: watch::Receiver<ListChanges>,
    /// What is known of them.
    seen: ListChanges,
    watched: BTreeMap<String, BoxFuture<'static, Box<dyn Changes>>>,
}

impl News {
    /// News of what is there for a realm from now on.
    fn new(mcp: &McpState, realm: &RealmId) -> Self {
        Self::of(mcp.server.engine.catalog().list_changes(realm))
    }

    fn of(mut lists: watch::Receiver<ListChanges>) -> Self {
        let seen = *lists.borrow_and_update();
        Self { lists, seen, watched: BTreeMap::new() }
    }

    /// News of this resource, too.
    fn watch(&mut self, uri: String, changes: Box<dyn Changes>) {
        self.watched.insert(uri, changed(changes));
    }

    /// No news of this resource any more.
    fn forget(&mut self, uri: &str) {
        self.watched.remove(uri);
    }

    async fn next(&mut self) -> Notice {
        let Self { lists, seen, watched } = self;
        let mut changed_lists = pin!(async {
            if lists.changed().await.is_err() {
                // The engine is gone, and so are we soon.
                pending::<()>().await;
            }
            *lists.borrow_and_update()
        });
        poll_fn(|context| {
            if let Poll::Ready(now) = changed_lists.as_mut().poll(context) {
                let before = std::mem::replace(seen, now);
                return Poll::Ready(Notice::Lists(now.since(before)));
            }
            for (uri, waiting) in watched.iter_mut() {
                if let Poll::Ready(changes) = waiting.as_mut().poll(context) {
                    *waiting = changed(changes);
                    return Poll::Ready(Notice::Updated(uri.clone()));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Waits for one change, and gives back what waits for the next.
fn changed(mut changes: Box<dyn Changes>) -> BoxFuture<'static, Box<dyn Changes>> {
    Box::pin(async move {
        changes.next().await;
        changes
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    struct Counted(mpsc::UnboundedReceiver<()>);

    impl Changes for Counted {
        fn next(&mut self) -> BoxFuture<'_, ()> {
            Box::pin(async move {
                if self.0.recv().await.is_none() {
                    pending::<()>().await;
                }
            })
        }
    }

    #[test]
    fn each_change_is_notified_once_and_dropped_ones_not() {
        let lists = watch::Sender::new(ListChanges::default());
        let mut news = News::of(lists.subscribe());
        let (sender, receiver) = mpsc::unbounded_channel();
        news.watch("a://b".to_owned(), Box::new(Counted(receiver)));
        assert_eq!(news.next().now_or_never(), None);
        sender.send(()).unwrap();
        lists.send_modify(|lists| lists.tools += 1);
        lists.send_modify(|lists| lists.prompts += 1);
        let both = ListChanges { tools: 1, prompts: 1, resources: 0 };
        assert_eq!(news.next().now_or_never(), Some(Notice::Lists(both)));
        assert_eq!(news.next().now_or_never(), Some(Notice::Updated("a://b".to_owned())));
        assert_eq!(news.next().now_or_never(), None);
        news.forget("a://b");
        assert!(sender.is_closed());
    }

    #[test]
    fn only_wanted_notifications_are_sent() {
        let filter: Filter =
            serde_json::from_value(json!({"promptsListChanged": true, "more": 1})).unwrap();
        let all = ListChanges { tools: 1, prompts: 2, resources: 1 };
        let methods: Vec<&str> = filter
            .notifications(Notice::Lists(all))
            .into_iter()
            .map(|(method, _)| method)
            .collect();
        assert_eq!(methods, ["notifications/prompts/list_changed"]);
        assert_eq!(json!(filter), json!({"promptsListChanged": true}));
        assert_eq!(Filter::LISTS.notifications(Notice::Lists(all)).len(), 3);
        let tools = ListChanges { tools: 1, ..ListChanges::default() };
        let (method, _) = Filter::LISTS.notifications(Notice::Lists(tools)).remove(0);
        assert_eq!(method, "notifications/tools/list_changed");
        assert_eq!(
            Filter::LISTS.notifications(Notice::Lists(tools)).len(),
            1,
            "one change is told once"
        );
        let (method, params) = filter.notifications(Notice::Updated("a://b".to_owned())).remove(0);
        assert_eq!(method, "notifications/resources/updated");
        assert_eq!(Value::Object(params), json!({"uri": "a://b"}));
    }
}
