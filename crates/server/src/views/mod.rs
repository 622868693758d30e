//! Values of the kernel in the shapes that clients read: rows of `/api/v1`, conversations of
//! `/run`, results of tools. A view decides nothing. Bodies are types of crate `wire`.

pub(crate) mod asked;
mod held;
pub(crate) mod rows;
pub(crate) mod drafts;
pub(crate) mod threads;
pub(crate) mod content;
