//! Values of the kernel in the shapes that clients read: rows of `/api/v1`, conversations of
//! `/run`, results of tools. A view decides nothing. Bodies are types of crate `wire`.

pub mod ask_details;
mod remedies;
pub mod rows;
pub mod drafts;
pub mod threads;
pub mod content;
