//! Where it is kept who may call and what they did: API keys, the claims of tokens, principals,
//! realms and the audit. What these are is in `kernel::identity`.

pub mod api_keys;
pub mod claims;
pub mod principals;
pub mod realms;
pub mod audit;
