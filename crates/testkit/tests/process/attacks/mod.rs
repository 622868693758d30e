//! What attackers do with credentials, over the real program: tokens that are forged or not for us,
//! issuers that hang or lie, are asked too often or replace their key, credentials where none
//! belong, addresses that are made up, what was revoked, and a link that is not for everyone.
//! Meanwhile others are served.

mod site;
mod tokens;
mod issuers;
mod rotation;
mod requests;
mod keys;
mod links;
