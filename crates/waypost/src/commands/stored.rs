//! Definitions that a server stores under their names: agents and plans.

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::read;
use crate::remote::suggestions::{self, Names};
use serde::de::DeserializeOwned;
use serde_json::json;

/// A kind of definition.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredKind {
    /// The names of those that are there.
    pub(super) names: Names,
    /// The member of what is printed that holds a name.
    pub(super) member: &'static str,
}

/// The outcome of storing a definition.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreResult {
    /// `created`, `updated` or `unchanged`.
    pub(super) result: &'static str,
    /// The one that holds now; none where a file has it.
    pub(super) version: Option<u64>,
}

impl StoredKind {
    /// Prints what became of the definition of this name.
    pub(super) fn tell(self, context: &Context, name: &str, stored: StoreResult) -> Result<Exit> {
        let StoreResult { result, version } = stored;
        let line = json!({(self.member): name, "result": result, "version": version});
        let version = version.map_or("a file".to_owned(), |version| format!("version {version}"));
        context.output.data(&line, &format!("{result:<9}  {name}  {version}"))
    }

    /// Removes the definition of this name.
    pub(super) async fn remove(self, context: &Context, name: &str) -> Result<Exit> {
        let client = context.client().await?;
        let request = self.names.item(name).keyed(context.admin_key()?);
        suggestions::or_suggest(&client, self.names, name, client.delete(request)).await?;
        let document = json!({(self.member): name, "removed": true});
        context.output.done(&document, &format!("removed `{name}`"))
    }

    /// Says what would be removed; `version` is that of the server's answer, if it is stored.
    pub(super) async fn would_remove<T: DeserializeOwned>(
        self,
        context: &Context,
        name: &str,
        version: impl FnOnce(T) -> Option<u64>,
    ) -> Result<Exit> {
        let client = context.client().await?;
        let body = suggestions::get_or_suggest(&client, self.names, name).await?;
        let version = version(read(&body)?);
        let told = match version {
            Some(version) => format!(
                "version {version} of `{name}` would be removed; runs that began continue with \
                 it; nothing was removed"
            ),
            None => format!("`{name}` would stay: it is from a file of the server's project"),
        };
        let document = json!({"dryRun": true, (self.member): name, "removed": version.is_some()});
        context.output.data(&document, &told)
    }
}
