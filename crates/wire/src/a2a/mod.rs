//! Agent2Agent on the wire: the types of 1.0 as ProtoJSON writes them. Reading takes what peers
//! really send (both spellings of names, numbers for words, null for nothing, unknown members);
//! writing has one form, in which required members are always there and defaults never. `proto` has
//! 1.0 in Protocol Buffers, `v03` reads and writes it as 0.3, and `vault` as AgentVault's profile.

pub mod value;
pub mod message;
pub mod task;
pub mod request;
pub mod card;
pub mod error;
pub mod proto;
pub mod v03;
pub mod vault;

/// The version of A2A that we speak by choice.
pub const VERSION: &str = "1.0";
/// The version of who names none.
pub const VERSION_UNNAMED: &str = "0.3";

/// The version of a request, as a header and as a field of the query.
pub const HEADER_VERSION: &str = "a2a-version";
/// The extensions that a request uses.
pub const HEADER_EXTENSIONS: &str = "a2a-extensions";
/// The same in 0.3.
pub const HEADER_EXTENSIONS_OLD: &str = "x-a2a-extensions";
/// The media type of HTTP bodies.
pub const MEDIA_TYPE: &str = "application/a2a+json";

/// Where an agent has its card.
pub const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// Where it has the keys that sign its card.
pub const KEY_SET: &str = "/.well-known/jwks.json";

/// The binding of JSON-RPC, as cards name it.
pub const JSONRPC: &str = "JSONRPC";
/// The binding of HTTP with JSON.
pub const HTTP_JSON: &str = "HTTP+JSON";
/// The binding of gRPC.
pub const GRPC: &str = "GRPC";

/// Where the service of gRPC is: below it are its methods.
pub const GRPC_SERVICE: &str = "/lf.a2a.v1.A2AService";

/// Ours: schemas of skills in the card (`params.skills.<id>.input` and `.output`, each as JSON
/// text), and the skill that a message is for in its metadata (`{"skill": <id>}`).
pub const SKILLS_EXTENSION: &str = "https://waypost.dev/a2a/skills/v1";
/// Ours: through how many agents a message came, as a number in its metadata.
pub const HOPS: &str = "https://waypost.dev/a2a/hops/v1";
/// Ours: what a task that waits wants, as a `data` part of its status message, and the answer as a
/// `data` part of the message that replies.
pub const ASKS_EXTENSION: &str = "https://waypost.dev/a2a/asks/v1";
