//! Who may do what, as far as it is pure: keys as they are stored, issuers of tokens, the roles
//! that someone has in each realm, what the built-in roles permit, and whether a server asks for
//! credentials at all.

pub mod roles;
pub mod grants;
pub mod key;
pub mod issuer;
pub mod directory;
pub mod start;
