//! Tables of `waypost.toml` that are small enough for a file each: how the server is reached and by
//! whom, what decides, and what happens to failed steps. The whole file is read in `config`.

pub mod tls;
pub mod decisions;
pub mod public_url;
pub(crate) mod issuers;
pub(crate) mod supervisor;
