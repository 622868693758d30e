//! What a project defines: plans, agents and pipelines, each with its reader. A reader reports
//! every mistake with its place.

pub mod agent;
pub mod pipeline;
pub mod plan;
pub mod agent_reader;
pub mod pipeline_reader;
