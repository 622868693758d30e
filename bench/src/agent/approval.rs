//! Latency from an approval to the next steps: the approved call, the next turn, the answer.

use std::time::{Duration, Instant};

use kernel::ask::{Ask, AskBody, AskedCall, CallDecision, Reply};

use super::commits::Bare;
use super::world::{WRITES, World, refused};
use super::{Beyond, WAIT_MS, signed_ms};
use crate::Result;
use crate::load::median;
use crate::report::{Table, ms};

/// What the section's numbers are.
pub const NOTE: &str = "From `Asks::reply` in the same process. One bare commit is that of the \
    row with the decision, by turns with the replies; the run itself makes one commit until the \
    call is sent, another until the model is asked, another until the answer.";

/// How an event that decides an ask is written.
const DECIDED: &str = r#""type":"ask.decided""#;

/// The moments after an approval, beside one commit.
#[derive(Debug)]
pub struct Approval {
    sent: Beyond,
    /// Until the model is asked again.
    pub asked: Beyond,
    answered: Beyond,
}

impl Approval {
    /// All moments.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            "from the approval until",
            "p50 ms",
            "one bare commit ms",
            "beyond it ms",
        ]);
        for (moment, beyond) in [
            ("the approved call is sent", &self.sent),
            ("the model is asked again", &self.asked),
            ("the run's answer is there", &self.answered),
        ] {
            let taken = ms(beyond.taken);
            let commit = ms(beyond.commits);
            table.row(vec![moment.to_owned(), taken, commit, signed_ms(beyond.ms())]);
        }
        table
    }
}

/// How long one approval took until each moment.
struct Moments {
    sent: Duration,
    asked: Duration,
    answered: Duration,
}

/// One round: so many approvals, each in a thread of its own, and a bare commit after each.
pub async fn measure(
    world: &World,
    bare: &mut Bare,
    name: &str,
    runs: usize,
) -> Result<(Approval, Vec<Vec<String>>)> {
    let mut moments = Vec::with_capacity(runs);
    let mut commits = Vec::with_capacity(runs);
    let mut decision = Vec::new();
    for index in 0..runs {
        let thread = format!("{name}-{index}");
        moments.push(one_approval(world, &thread).await?);
        if decision.is_empty() {
            let mut rows = world.journal(&thread)?;
            rows.retain(|body| body.contains(DECIDED));
            decision = vec![rows];
        }
        commits.extend(bare.replay(&decision).await?);
    }
    let commit = median(commits);
    let beyond = |of: fn(&Moments) -> Duration| Beyond {
        taken: median(moments.iter().map(of).collect()),
        commits: commit,
    };
    let sent = beyond(|moments| moments.sent);
    let asked = beyond(|moments| moments.asked);
    let answered = beyond(|moments| moments.answered);
    Ok((Approval { sent, asked, answered }, decision))
}

async fn one_approval(world: &World, thread: &str) -> Result<Moments> {
    world.model.begin(WRITES, 1);
    let waiting = world.say(thread).await?;
    let [asked] = waiting.asks.as_slice() else {
        return Err(format!("a run is {} without its ask", waiting.run.status.name()).into());
    };
    let ask = &asked.row.ask;
    let reply = approval(ask)?;
    let begun = Instant::now();
    let replied = world.engine.asks().reply(&World::caller(), ask.id, reply, None, WAIT_MS).await;
    let ended = Instant::now();
    let status = replied.map_err(refused)?.run.run.status.name();
    if status != "completed" {
        return Err(format!("an approved run is {status}").into());
    }
    let sent = world.called().ok_or("the approved call was not sent")?;
    let last = world.model.asked().pop().ok_or("the model was not asked")?;
    Ok(Moments { sent: sent - begun, asked: last.at - begun, answered: ended - begun })
}

fn approval(ask: &Ask) -> Result<Reply> {
    let AskBody::Approve { calls } = &ask.body else {
        return Err(format!("the ask is a `{}`", ask.body.kind()).into());
    };
    let approve = |call: &AskedCall| CallDecision {
        call_id: call.call_id,
        approve: true,
        feedback: None,
        arguments: None,
    };
    Ok(Reply::Approve { decisions: calls.iter().map(approve).collect() })
}
