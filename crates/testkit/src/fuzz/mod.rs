//! Hostile input out of a seed. Messages of a committed corpus are mangled as JSON, as bytes and in
//! their headers; a target looks at each, and what fails is made small before it is shown. Nothing
//! measures which code was reached, so the stable compiler will do, and a seed means the same
//! inputs on every machine. What was found once is kept as a file of the corpus.

pub mod tree;
pub mod mangle;
pub mod corpus;
pub mod watch;
pub mod hunt;
pub mod post;
pub mod answers;
pub mod hostile;
pub mod grammar;
pub mod access;
pub mod queries;
