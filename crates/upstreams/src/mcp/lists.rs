//! Reads all pages of a server's tools, prompts, resources and templates, within limits. A failure
//! of one list does not affect the others.

use super::line::{PeerError, PeerErrorKind};
use super::peer::{AskError, Era, Peer};
use crate::{PAGES_MAX, TOOLS_MAX};
use kernel::limits::Limits;
use kernel::tool::call::CallProgress;
use serde_json::{Value, json};
use std::ops::BitOr;

/// How many prompts of one server are taken, and resources, and families of resources.
const ITEMS_MAX: usize = 10_000;

/// Which lists are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListSet(u8);

impl ListSet {
    /// None of them.
    pub(crate) const NONE: ListSet = ListSet(0);
    pub(crate) const TOOLS: ListSet = ListSet(1);
    const PROMPTS: ListSet = ListSet(2);
    /// The resources and their templates.
    const RESOURCES: ListSet = ListSet(4);
    pub(crate) const ALL: ListSet = ListSet(7);
    /// Each of them, as a server names it.
    const EACH: [(&str, ListSet); 3] = [
        ("tools", ListSet::TOOLS),
        ("prompts", ListSet::PROMPTS),
        ("resources", ListSet::RESOURCES),
    ];

    /// Which lists a notification says have changed.
    pub(crate) fn changed(method: &str) -> Self {
        let what = method.strip_prefix("notifications/");
        let what = what.and_then(|rest| rest.strip_suffix("/list_changed"));
        Self::of(|name| what == Some(name))
    }

    /// Of which lists a server tells when they change.
    pub(crate) fn told(capabilities: &Value) -> Self {
        Self::of(|name| capabilities[name]["listChanged"] == true)
    }

    /// The filter of a stream that tells of these.
    pub(crate) fn filter(self) -> Value {
        let wanted = Self::EACH.into_iter().filter(|(_, which)| self.has(*which));
        wanted.map(|(name, _)| (format!("{name}ListChanged"), true)).collect()
    }

    fn of(is_meant: impl Fn(&str) -> bool) -> Self {
        let meant = Self::EACH.into_iter().filter(|(name, _)| is_meant(name));
        meant.fold(Self::NONE, |all, (_, which)| all | which)
    }

    fn has(self, which: ListSet) -> bool {
        self.0 & which.0 != 0
    }
}

impl BitOr for ListSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        ListSet(self.0 | other.0)
    }
}

/// What a server lists, each item as it came.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Lists {
    pub(crate) tools: Vec<Value>,
    pub(crate) prompts: Vec<Value>,
    pub(crate) resources: Vec<Value>,
    /// Its families of resources.
    pub(crate) templates: Vec<Value>,
}

/// Result of a listing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListResult {
    /// Everything that is known now.
    pub(crate) lists: Lists,
    /// For how long the server says that its lists can be kept, if it says so.
    pub(crate) ttl_ms: Option<u64>,
}

/// Lists these again; the others stay as they are known. It fails only where tools cannot be
/// listed, or the connection is lost.
pub(crate) async fn list(
    peer: &Peer,
    which: ListSet,
    known: Lists,
) -> Result<ListResult, AskError> {
    let mut listing = Listing { peer, limits: peer.limits(), ttl_ms: None, missed: false };
    let mut lists = known;
    let can = |what: &str| peer.capabilities()[what].is_object();
    if which.has(ListSet::TOOLS) {
        lists.tools = listing.tools(can("tools")).await?;
    }
    if which.has(ListSet::PROMPTS) && can("prompts") {
        listing.minor("prompts/list", "prompts", &mut lists.prompts).await?;
    }
    if which.has(ListSet::RESOURCES) && can("resources") {
        listing.minor("resources/list", "resources", &mut lists.resources).await?;
        let method = "resources/templates/list";
        listing.minor(method, "resourceTemplates", &mut lists.templates).await?;
    }
    // For how long the others hold says nothing of a list that could not be read.
    let most_ms = if listing.missed { listing.limits.upstream_list_interval_ms } else { u64::MAX };
    Ok(ListResult { lists, ttl_ms: listing.ttl_ms.map(|ttl_ms| ttl_ms.min(most_ms)) })
}

struct Listing<'a> {
    peer: &'a Peer,
    limits: &'a Limits,
    ttl_ms: Option<u64>,
    /// Whether a list could not be read.
    missed: bool,
}

impl Listing<'_> {
    /// The tools. A server that has some but does not say so is asked as well; then an error only
    /// means that it has none.
    async fn tools(&mut self, declared: bool) -> Result<Vec<Value>, AskError> {
        match self.pages("tools/list", "tools", TOOLS_MAX).await {
            Err(AskError::Rpc(_)) if !declared => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// A list that is not worth losing the server for.
    async fn minor(
        &mut self,
        method: &'static str,
        key: &'static str,
        known: &mut Vec<Value>,
    ) -> Result<(), AskError> {
        match self.pages(method, key, ITEMS_MAX).await {
            Ok(listed) => *known = listed,
            Err(AskError::Peer(error)) if error.kind.loses_connection() => return Err(error.into()),
            Err(error) => {
                tracing::warn!(method, %error, "an upstream's list cannot be read");
                self.missed = true;
            }
        }
        Ok(())
    }

    async fn pages(
        &mut self,
        method: &'static str,
        key: &'static str,
        items_max: usize,
    ) -> Result<Vec<Value>, AskError> {
        let mut items = Vec::new();
        let mut params = json!({});
        let mut bytes_left = self.limits.call_output_bytes_max;
        let timeout_ms = self.limits.upstream_connect_timeout_ms;
        for _ in 0..PAGES_MAX {
            let mut result = self.peer.ask(method, params.clone(), None, timeout_ms).await?;
            if self.peer.era() == Era::Modern
                && let Some(ttl_ms) = result["ttlMs"].as_u64()
            {
                self.ttl_ms = Some(self.ttl_ms.map_or(ttl_ms, |least| least.min(ttl_ms)));
            }
            let Some(Value::Array(page)) = result.get_mut(key).map(Value::take) else {
                return Err(AskError::Peer(no_list(method, key)));
            };
            let bytes: usize = page.iter().map(|item| item.to_string().len()).sum();
            items.extend(page);
            if items.len() > items_max || bytes > bytes_left {
                items.truncate(items_max);
                tracing::warn!(method, items_max, "an upstream lists more than we take");
                return Ok(items);
            }
            bytes_left -= bytes;
            match result["nextCursor"].as_str() {
                // A server that gives the same cursor again would never come to an end.
                Some(next) if !next.is_empty() && params["cursor"] != next => {
                    params = json!({"cursor": next});
                }
                _ => return Ok(items),
            }
        }
        tracing::warn!(method, pages_max = PAGES_MAX, "an upstream has more pages than we take");
        Ok(items)
    }
}

fn no_list(method: &str, key: &str) -> PeerError {
    let message = format!("`{method}` was not answered with a list of `{key}`");
    PeerError::new(CallProgress::Failed, PeerErrorKind::NotMcp, message)
}

#[cfg(test)]
mod tests {
    use super::super::line::Outgoing;
    use super::super::peer::EraChoice;
    use super::super::scripted::{Scripted, Server, discovered, tool};
    use super::*;
    use crate::stage::Stage;

    fn listed(
        capabilities: Value,
        mut script: impl FnMut(&Outgoing) -> Scripted + Send + 'static,
    ) -> (Server, Result<ListResult, AskError>) {
        let stage = Stage::new();
        let server = Server::new(move |request| match request.method.as_str() {
            "server/discover" => Scripted::result(discovered(capabilities.clone())),
            _ => script(request),
        });
        let listed = stage.run(async {
            let parts = stage.parts();
            let connecting = Peer::connect(server.line(), &parts, EraChoice::Any(None), &[]);
            let (peer, _news) = connecting.await.unwrap();
            list(&peer, ListSet::ALL, Lists::default()).await
        });
        (server, listed)
    }

    #[test]
    fn all_pages_are_read_and_the_shortest_ttl_counts() {
        let (_, listed) = listed(json!({"tools": {}}), |request| {
            Scripted::result(match request.params.to_value()["cursor"].as_str() {
                None => json!({"tools": [tool("a")], "nextCursor": "2", "ttlMs": 90_000}),
                Some("2") => json!({"tools": [tool("b")], "nextCursor": "3", "ttlMs": 60_000}),
                // The same place again: it would never end.
                _ => json!({"tools": [tool("c")], "nextCursor": "3", "ttlMs": 70_000}),
            })
        });
        let listed = listed.unwrap();
        assert_eq!(listed.lists.tools, [tool("a"), tool("b"), tool("c")]);
        assert_eq!(listed.ttl_ms, Some(60_000));
    }

    #[test]
    fn endless_lists_are_cut_off() {
        let mut page = 0;
        let (server, listed) = listed(json!({"tools": {}}), move |_| {
            page += 1;
            let name = format!("t{page}");
            Scripted::result(json!({"tools": [tool(&name)], "nextCursor": name}))
        });
        assert_eq!(listed.unwrap().lists.tools.len(), PAGES_MAX);
        assert_eq!(server.methods().len(), PAGES_MAX + 1);
        let many: Vec<Value> = (0..2_500).map(|number| tool(&format!("t{number}"))).collect();
        let (_, listed) = self::listed(json!({"tools": {}}), move |_| {
            Scripted::result(json!({"tools": many, "nextCursor": "more"}))
        });
        assert_eq!(listed.unwrap().lists.tools.len(), TOOLS_MAX);
    }

    #[test]
    fn only_declared_lists_are_read_and_a_bad_one_affects_no_other() {
        let (server, listed) = listed(json!({"prompts": {}, "resources": {}}), |request| {
            match request.method.as_str() {
                "tools/list" | "prompts/list" => Scripted::error(-32601),
                "resources/list" => Scripted::result(json!({"resources": [{"uri": "a:b"}]})),
                _ => Scripted::result(json!({"resourceTemplates": 7})),
            }
        });
        let resources = vec![json!({"uri": "a:b"})];
        assert_eq!(listed.unwrap().lists, Lists { resources, ..Lists::default() });
        let (server_without, _) =
            self::listed(json!({"tools": {}}), |_| Scripted::result(json!({"tools": []})));
        assert_eq!(server.methods().len(), 5);
        assert_eq!(server_without.methods(), ["server/discover", "tools/list"]);
    }

    #[test]
    fn an_unread_list_expires_sooner() {
        fn held_ms(prompts: fn() -> Scripted) -> Option<u64> {
            let (_, listed) = listed(json!({"tools": {}, "prompts": {}}), move |request| {
                match request.method.as_str() {
                    "tools/list" => Scripted::result(json!({"tools": [], "ttlMs": 86_400_000})),
                    _ => prompts(),
                }
            });
            listed.unwrap().ttl_ms
        }
        let usual_ms = Limits::default().upstream_list_interval_ms;
        assert_eq!(held_ms(|| Scripted::result(json!({"prompts": []}))), Some(86_400_000));
        assert_eq!(held_ms(|| Scripted::error(-32603)), Some(usual_ms));
    }

    #[test]
    fn a_failed_tools_list_is_an_error() {
        let (_, refused) = listed(json!({"tools": {}}), |_| Scripted::error(-32603));
        assert!(matches!(refused, Err(AskError::Rpc(error)) if error.code == -32603));
        let (_, strange) = listed(json!({"tools": {}}), |_| Scripted::result(json!({"tools": 1})));
        assert_eq!(strange, Err(AskError::Peer(no_list("tools/list", "tools"))));
    }

    #[test]
    fn list_changes_are_recognised_in_both_eras() {
        let told = ListSet::told(&json!({"tools": {"listChanged": true}, "prompts": {},
            "resources": {"listChanged": true, "subscribe": true}}));
        assert_eq!(told, ListSet::TOOLS | ListSet::RESOURCES);
        assert_eq!(told.filter(), json!({"toolsListChanged": true, "resourcesListChanged": true}));
        assert_eq!(ListSet::changed("notifications/tools/list_changed") | told, told);
        assert_eq!(ListSet::changed("notifications/message"), ListSet::NONE);
    }
}
