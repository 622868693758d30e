//! What the official conformance suite looks at when it tests a client: the client of the product,
//! the very code that reaches upstreams, with someone at it who does what a scenario asks for. The
//! suite plays the server, starts one process for each scenario, and judges what it was sent.

mod assignment;
mod person;
mod client;
mod scenarios;

use assignment::Assignment;
use client::Client;
use engine::system::clock::SystemClock;

/// The last line of a scenario that went as it should on our side, too. The suite judges only what
/// it saw; the program that runs it looks for this line.
const DONE: &str = "mcp-client: done";

/// How long a scenario may take: less than the suite waits, which cannot end a process that hangs.
/// All scenarios of a set are played at once, so that each may take long on a busy machine.
const SCENARIO_MS: u64 = 180_000;

/// Plays the scenario that the environment names, against the server at this URL.
pub fn run(url: Option<String>) -> Result<(), String> {
    let assignment = Assignment::read(url.ok_or("the URL of the suite's server is missing")?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let played = runtime.block_on(async {
        let client = Client::start(&assignment)?;
        let playing = scenarios::play(&assignment, &client);
        let played = engine::timeout(&SystemClock, SCENARIO_MS, playing).await;
        let played = played.unwrap_or_else(|| Err(format!("not done within {SCENARIO_MS} ms")));
        let status = client.stop().await;
        played.map_err(|why| format!("{}: {why}\n{status}", assignment.scenario))
    });
    // What still runs belongs to a scenario that is over.
    runtime.shutdown_background();
    played.map(|()| println!("{DONE}"))
}
