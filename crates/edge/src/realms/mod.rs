//! The realms beside the one that every server has: how they get what the project's files bring,
//! and how they are made and removed while the server runs. Which realm a request is in is in
//! `request`.

pub mod files;
pub mod keeper;
