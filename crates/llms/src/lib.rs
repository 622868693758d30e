//! Models behind the `Llm` contract: one made of rules, and the dialects of the providers. To add a
//! provider, write its file and give it an arm in `open`.

pub mod config;
