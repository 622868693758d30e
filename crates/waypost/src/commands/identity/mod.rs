//! Who calls: the keys, principals and realms of a server, who it thinks that we are, and what it
//! decided. How a key is sent with requests is in `context` and `remote`.

mod new_key;
mod first;
pub(crate) mod key;
pub(crate) mod principal;
pub(crate) mod realm;
pub(crate) mod whoami;
pub(crate) mod audit;
