//! A server that asks everybody for a key, with two realms and people who have names: it is killed
//! and loses no decision, its audit is damaged and that is found, and no secret is in anything that
//! it writes.

mod site;
mod ledger;
mod kill;
mod audit;
mod secrets;
