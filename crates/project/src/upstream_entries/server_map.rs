//! `MCP_SERVER_MAP` and `MCP_CALL_TIMEOUT`: servers by name, as the MCP tool proxy of AgentVault is
//! told them. What cannot be read is no server; the server says so in its log.

use super::entry::Entry;
use super::expand::Variables;
use crate::layer::Location;
use serde_json::{Map, Value};

/// A JSON object of names and base URLs.
pub const SERVER_MAP: &str = "MCP_SERVER_MAP";
/// How many seconds a call of these servers may take.
pub const CALL_TIMEOUT: &str = "MCP_CALL_TIMEOUT";

const TIMEOUT_S: u64 = 60;
const TIMEOUT_S_MAX: u64 = 24 * 60 * 60;
/// The end of the address of a server that speaks MCP itself.
const MCP: &str = "/mcp";
/// The same of plain JSON-RPC.
const RPC: &str = "/rpc";

/// The servers of the map, and what is wrong with the rest of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ServerMap {
    pub entries: Vec<Entry>,
    pub faults: Vec<String>,
}

/// Reads the map; none where there is no such variable.
pub fn server_map(variables: &Variables<'_>) -> Option<ServerMap> {
    let set = |name: &str| variables(name).filter(|text| !text.trim().is_empty());
    let text = set(SERVER_MAP)?;
    let mut map = ServerMap::default();
    let timeout_s = match set(CALL_TIMEOUT).map(|text| text.trim().parse::<f64>()) {
        None => TIMEOUT_S,
        Some(Ok(seconds)) if (1.0..=TIMEOUT_S_MAX as f64).contains(&seconds) => seconds as u64,
        Some(_) => {
            let why = format!("`{CALL_TIMEOUT}` is no number of 1 to {TIMEOUT_S_MAX} seconds");
            map.faults.push(why);
            TIMEOUT_S
        }
    };
    let servers: Map<String, Value> = serde_json::from_str(&text).unwrap_or_else(|_| {
        map.faults.push(format!("`{SERVER_MAP}` is no JSON object of names and base URLs"));
        Map::new()
    });
    for (name, url) in servers {
        match entry(&name, &url) {
            Some(mut entry) => {
                entry.keys.timeout_ms = Some(timeout_s.saturating_mul(1_000));
                map.entries.push(entry);
            }
            None => map.faults.push(format!("`{SERVER_MAP}`: server `{name}` cannot be used")),
        }
    }
    Some(map)
}

/// A server: one whose address ends as that of MCP speaks it, any other has JSON-RPC below it.
fn entry(name: &str, url: &Value) -> Option<Entry> {
    let place = Location::whole(&format!("environment {SERVER_MAP}"));
    let url = url.as_str()?.trim().trim_end_matches('/');
    let entry = if url.ends_with(MCP) {
        Entry::of_url(name, url, &[], &place)
    } else {
        let url = url.strip_suffix(RPC).unwrap_or(url);
        Entry::of_open_rpc(name, &format!("{url}{RPC}"), &place)
    };
    entry.unusable().is_none().then_some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(map: &str, timeout: &str) -> ServerMap {
        let variables = |name: &str| match name {
            SERVER_MAP => Some(map.to_owned()),
            CALL_TIMEOUT => Some(timeout.to_owned()),
            _ => None,
        };
        server_map(&variables).unwrap()
    }

    #[test]
    fn a_server_is_plain_json_rpc_unless_its_address_says_mcp() {
        let text = r#"{"filesystem": "http://localhost:8001/", "code": "http://localhost:8002/rpc",
            "hub": "http://localhost:8003/mcp"}"#;
        let map = read(text, "7");
        assert_eq!(map.faults, Vec::<String>::new());
        let facts: Vec<_> = map.entries.iter().map(Entry::facts).collect();
        let mut told: Vec<_> = facts
            .iter()
            .map(|one| (one.name.as_str(), one.kind.as_str(), one.target.as_str()))
            .collect();
        told.sort_unstable();
        assert_eq!(
            told,
            [
                ("code", "rpc", "http://localhost:8002/rpc"),
                ("filesystem", "rpc", "http://localhost:8001/rpc"),
                ("hub", "http", "http://localhost:8003/mcp"),
            ]
        );
        assert!(facts.iter().all(|one| one.timeout_ms == Some(7_000)));
        assert!(facts.iter().all(|one| one.prefix == format!("{}.", one.name)));
    }

    #[test]
    fn unreadable_entries_are_left_out_and_reported() {
        assert_eq!(server_map(&|_| None), None);
        for (map, timeout, servers, faults) in [
            ("nope", "", 0, 1),
            ("[1]", "", 0, 1),
            (r#"{"a": 7, "b c": "http://x", "d": "ftp://x", "e": "http://x"}"#, "", 1, 3),
            (r#"{"a": "http://x"}"#, "soon", 1, 1),
            (r#"{"a": "http://x"}"#, "0", 1, 1),
        ] {
            let read = read(map, timeout);
            let told = (read.entries.len(), read.faults.len());
            assert_eq!(told, (servers, faults), "{map}: {read:?}");
        }
    }
}
