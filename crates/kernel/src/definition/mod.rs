//! What a project defines: plans, agents and pipelines, and the readers that make them of YAML or
//! JSON and report every mistake with its place; the schemas of their files; how they are found by
//! a text. Nothing runs here: steps are carried out by `decide`. Files are found by `project`.

pub mod schemas;
pub mod text_search;
pub mod agent;
pub mod reasons;
pub mod pipeline;
pub mod rule;
pub mod plan;
pub mod agent_reader;
pub mod pipeline_reader;
