//! The types that every server with types has: its agents and its providers of tools. Their
//! records are what other endpoints store, as far as it may be shown.

use super::OWN_NAMESPACE;
use query::types::{Field, Kind, RecordType, TypeSet};
use std::sync::LazyLock;

/// The full names of the built-in types.
pub const AGENT: &str = "waypost.Agent";
pub const TOOL_PROVIDER: &str = "waypost.ToolProviderConfig";

/// Whether records of the type with this full name are changed at endpoints of their own only.
pub fn is_built_in(full_name: &str) -> bool {
    [AGENT, TOOL_PROVIDER].contains(&full_name)
}

/// These types and the built-in ones.
pub fn beside(declared: &TypeSet) -> TypeSet {
    static TYPES: LazyLock<[RecordType; 2]> = LazyLock::new(|| [agent(), tool_provider()]);
    TypeSet::new(declared.all().iter().chain(TYPES.iter()).cloned().collect())
}

fn agent() -> RecordType {
    let fields = vec![
        text("description"),
        text("llmConfigRef"),
        text("routerModel"),
        text("mode"),
        Field::new("enabledTools", Kind::array(Kind::String)),
        Field::new("toolTypes", Kind::array(Kind::String)),
        Field::new("approve", Kind::array(Kind::String)),
        text("timeZone"),
    ];
    RecordType::new(OWN_NAMESPACE, "agents", "Agent", fields)
}

fn tool_provider() -> RecordType {
    let header = Kind::Object(vec![text("name"), text("value")]);
    let fields = vec![
        text("providerType"),
        text("baseUrl"),
        text("document"),
        Field::new("headers", Kind::array(header)),
        text("login"),
        text("prefix"),
        Field::new("include", Kind::array(Kind::String)),
        Field::new("tools", Kind::array(Kind::String)),
        Field::new("trusted", Kind::Boolean),
        Field::new("enabled", Kind::Boolean),
        Field::new("timeoutMs", Kind::Integer),
    ];
    RecordType::new(OWN_NAMESPACE, "tool_provider_configs", "ToolProviderConfig", fields)
}

fn text(name: &str) -> Field {
    Field::new(name, Kind::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::OWN_COLLECTIONS;

    #[test]
    fn the_built_in_types_have_the_names_that_no_file_can_take() {
        let types = beside(&TypeSet::default());
        let names: Vec<String> = types.all().iter().map(RecordType::full_name).collect();
        assert_eq!(names, [AGENT, TOOL_PROVIDER]);
        assert!(names.iter().all(|name| is_built_in(name)) && !is_built_in("shop.Agent"));
        let collections = types.all().iter().map(|known| known.collection.as_str());
        assert_eq!(collections.collect::<Vec<_>>(), OWN_COLLECTIONS);
    }
}
