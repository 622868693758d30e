//! Values of the kernel in the shapes that clients read. A view decides nothing.

pub(crate) mod rows;
pub(crate) mod threads;
pub(crate) mod content;
