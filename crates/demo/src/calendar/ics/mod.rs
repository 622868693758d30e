//! iCalendar (RFC 5545) as text: lines, texts and the tree of components. What we do not know is
//! kept as it came, so that a file that another program wrote loses nothing here.

mod line;
mod text;
mod component;

pub(super) use component::Component;
pub(super) use line::Property;
pub(super) use text::{escaped, plain};
