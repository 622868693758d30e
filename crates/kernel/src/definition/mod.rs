//! What a project defines: plans, agents and pipelines, and the readers that make them of YAML or
//! JSON and report every mistake with its place. Nothing runs here: steps are carried out by
//! `decide`. Files are found by crate `project`.

pub mod agent;
pub mod pipeline;
pub mod rule;
pub mod plan;
pub mod agent_reader;
pub mod pipeline_reader;
