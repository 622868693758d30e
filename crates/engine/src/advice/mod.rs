//! What models advise where no agent works: plans for goals and for failed steps, other arguments
//! for failed calls. A model that is asked here calls nothing, and what it says is data: the gate
//! reads it like anything that a caller sends, and others decide what becomes of it.

pub(crate) mod asking;
pub(crate) mod drafting;
pub(crate) mod proposing;
