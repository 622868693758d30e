//! The binary as its users meet it: offline commands, a server in a process of its own, and the
//! commands that talk to it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "for tests only: a failed step ends its test, and processes are waited for"
)]

#[path = "../../../fixture/tests/it/readme/blocks.rs"]
mod blocks;
#[path = "../../../fixture/tests/it/readme/mask.rs"]
mod mask;
mod process;
mod rest;
mod help;
mod errors;
mod offline;
mod lifecycle;
mod session;
mod servers;
mod interrupted;
mod talk;
mod completing;
#[cfg(unix)]
mod screen;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod pty;
#[cfg(unix)]
mod editing;
#[cfg(unix)]
mod screens;
#[cfg(unix)]
mod tables;
#[cfg(unix)]
mod inline;
mod typed_input;
mod tool;
mod pipeline;
mod record;
mod plan_stored;
mod plan_record;
mod watch;
mod demo;
mod policies;
mod records_example;
mod crash;
mod deployment;
mod agent;
mod logs;
mod config;
mod doctor;
mod heal;
#[cfg(unix)]
mod proposals;
mod backup;
mod keys;
mod child;
mod upstreams;
mod a2a;
mod clients;
#[cfg(unix)]
mod notify;
mod reference;
mod guide;
mod peer;
mod mcp;
mod calendar;
mod vault_proxy;
mod case_contract;
mod thread_client;
mod thread_contract;
mod thread_contract_drawn;
mod thread_contract_kill;
mod traced;
mod telemetry;
mod telemetry_kill;
mod metric_names;
mod connect_guide;
#[cfg(unix)]
mod every_command;
mod events_out;
