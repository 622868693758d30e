//! Who may do what, as far as it is pure: keys and principals as they are stored and written,
//! issuers of tokens, which realms there are and the roles that someone has in each, what the
//! built-in roles permit, which part of the limits each realm and caller may use, whose turn it is
//! and for whom something is read, whether a server asks for credentials at all, and the audit.

pub mod roles;
pub mod grants;
pub mod key;
pub mod issuer;
pub mod principal;
pub mod principal_reader;
pub mod shares;
pub mod fair_queue;
pub mod reads_for;
pub mod realm;
pub mod directory;
pub mod start;
pub mod audit;
pub mod chain;
pub mod starts;
