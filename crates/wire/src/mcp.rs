//! The Model Context Protocol's names: versions, keys of `_meta`, error numbers, methods.

/// The versions with a handshake that we speak, newest first.
pub const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// The stateless version: every request says who sends it and what it can.
pub const MODERN: &str = "2026-07-28";

/// Headers and body do not say the same.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client lacks a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The version is not one of ours.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// There is no such resource, in the versions with a handshake.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A person must open pages before the request can be done: `data.elicitations` names them. In the
/// versions with a handshake.
pub const PAGES_FIRST: i64 = -32042;
/// The client cancelled the request; told only where HTTP needs an answer.
pub const CANCELLED: i64 = -32800;

/// In `_meta` of a request: the version.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// In `_meta` of a request: what the client can.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// In `_meta` of a request: who the client is.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// In `_meta` of a request: from which level on it wants to hear the log.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// In `_meta` of a result: who we are.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// In `_meta` of a notification: the request that subscribed to it.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Ours. In `_meta` of a call: a key under which it is done once, however often it comes. `true` in
/// `_meta` of a tool: it takes such a key.
pub const META_IDEMPOTENCY_KEY: &str = "waypost/idempotencyKey";
/// In `_meta` of a request, and the same as a header: the span of its sender.
pub const TRACEPARENT: &str = "traceparent";
/// The extension by which a call answers with a task.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The version of a request, as a header.
pub const HEADER_VERSION: &str = "mcp-protocol-version";
/// The method of a request, as a header.
pub const HEADER_METHOD: &str = "mcp-method";
/// What a request is about, as a header.
pub const HEADER_NAME: &str = "mcp-name";
/// The session of the versions with a handshake.
pub const HEADER_SESSION: &str = "mcp-session-id";
/// The beginning of a header that repeats an argument.
pub const HEADER_PARAM: &str = "mcp-param-";
