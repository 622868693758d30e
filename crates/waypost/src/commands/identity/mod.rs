//! Who calls, and who may do what: the keys, principals and realms of a server, who it thinks that
//! we are, what it decided, and the policies of a project. How a key is sent with requests is in
//! `context` and `remote`.

mod new_key;
mod first_key;
pub(crate) mod key;
pub(crate) mod principal;
pub(crate) mod realm;
pub(crate) mod policy;
pub(crate) mod whoami;
pub(crate) mod audit;

use std::collections::BTreeMap;

/// `member of acme, viewer of shop-*`.
fn grants(realms: &BTreeMap<String, Vec<String>>) -> String {
    let one = |(realm, roles): (&String, &Vec<String>)| format!("{} of {realm}", roles.join("+"));
    realms.iter().map(one).collect::<Vec<_>>().join(", ")
}
