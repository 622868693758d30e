//! The doors in process: a whole server over a temporary data folder, one module per surface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, reason = "tests")]

mod contract;
mod house;
mod talk;
mod runs;
mod sessions;
mod asks;
mod catalog;
mod events;
mod feed;
mod keys;
mod openapi;
mod seed001;
mod seed001_misuse;
mod seed004;
mod refusals;
mod rpc;
mod rest_provider;
mod rules;
mod upstreams;
mod providers;
mod login_server;
mod logins;
mod agents;
mod seed002;
mod ops;
mod serving;
mod mcp_client;
mod mcp_transport;
mod mcp_stdio;
mod mcp_place;
mod mcp_lists;
mod mcp_calls;
mod mcp_tasks;
mod mcp_hostile;
mod fuzz_mcp;
