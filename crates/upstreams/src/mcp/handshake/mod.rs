//! How Waypost and an MCP server get to know each other, and how it notices that another server
//! answers at the same address. Logins are in `oauth`.

pub(crate) mod negotiate;
pub(crate) mod era_change;
