//! What a project defines: plans, agents and pipelines, and the readers that make them of YAML or
//! JSON and report every mistake with its place; how they are found by a text. Nothing runs here:
//! steps are carried out by `decide`. Files are found by crate `project`.

pub mod finding;
pub mod agent;
pub mod pipeline;
pub mod rule;
pub mod plan;
pub mod agent_reader;
pub mod pipeline_reader;
