//! `waypost session prune`: removes old sessions, and says why the others are kept.

use crate::commands::{LIST_ITEMS_MAX, age};
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::{Client, Request};
use crate::terminal::output::counted;
use clap::Args;
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use serde_json::json;
use wire::rest::{PruneAnswer, PruneBody, Session};

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// How long they have been unused: 90s, 30m, 12h or 30d
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: u64,
    /// Only say what would be removed, and what stays
    #[arg(long)]
    dry_run: bool,
}

/// How many seconds a large removal may take.
const PRUNE_SECONDS: u64 = 600;

/// Runs `waypost session prune`.
pub(super) async fn run(args: &PruneArgs, context: &Context, client: &Client) -> Result<Exit> {
    if args.dry_run {
        return tell(context, &selection(args, context, client).await?);
    }
    let request = Request::to(&["sessions", "prune"]);
    let request = request.taking(PRUNE_SECONDS).keyed(context.admin_key()?);
    let body = json!(PruneBody { older_than_ms: args.older_than });
    let posted = context.progress().during("removing old sessions", client.post(request, &body));
    let body = posted.await?;
    context.show(&body, |PruneAnswer { sessions, runs, rows }| {
        let told = format!(
            "{} removed, {} of others, {} in all",
            counted(sessions, "session"),
            counted(runs, "run"),
            counted(rows, "row")
        );
        context.output.text(&told)
    })?;
    if context.output.talks() {
        let kept = selection(args, context, client).await?;
        context.output.talk(&kept.staying());
    }
    Ok(Exit::Ok)
}

/// The sessions that the server lists, by what becomes of them.
#[derive(Debug, Default)]
struct PruneSelection {
    /// Over and unused for long enough.
    going: Vec<String>,
    active: usize,
    recent: usize,
    parked: usize,
}

async fn selection(args: &PruneArgs, context: &Context, client: &Client) -> Result<PruneSelection> {
    let request = Request::to(&["sessions"]).keyed(context.admin_key()?);
    let sessions: Vec<Session> = client.items(request, LIST_ITEMS_MAX).await?;
    let age = i64::try_from(args.older_than).unwrap_or(i64::MAX);
    let before = SystemClock.now().0.saturating_sub(age);
    let mut judged = PruneSelection::default();
    for session in sessions {
        let used = session.updated_at.parse::<jiff::Timestamp>();
        let is_old = used.is_ok_and(|used| used.as_millisecond() <= before);
        let is_over = session.run.is_none() || session.status.is_over();
        match (session.parked.is_some(), is_over, is_old) {
            (true, ..) => judged.parked += 1,
            (false, false, _) => judged.active += 1,
            (false, true, false) => judged.recent += 1,
            (false, true, true) => judged.going.push(session.id),
        }
    }
    Ok(judged)
}

impl PruneSelection {
    /// What stays after a removal, and why.
    fn staying(&self) -> String {
        let Self { going, active, recent, parked } = self;
        let reasons = [
            (*active, "not over: `waypost session cancel` ends a run"),
            (*recent, "used more recently"),
            (*parked, "cannot be read: `waypost session show` says why"),
            (going.len(), "still in use by the server: try again in a few seconds"),
        ];
        let total: usize = reasons.iter().map(|(count, _)| count).sum();
        let named = reasons.iter().filter(|(count, _)| *count > 0);
        let named: Vec<String> = named.map(|(count, why)| format!("{count} {why}")).collect();
        if total == 0 {
            return "no sessions stay".to_owned();
        }
        format!("{} kept: {}", counted(total, "session"), named.join("; "))
    }
}

/// Prints what would be removed.
fn tell(context: &Context, judged: &PruneSelection) -> Result<Exit> {
    let PruneSelection { going, active, recent, parked } = judged;
    let document = json!({
        "dryRun": true,
        "sessions": going,
        "kept": {"active": active, "recent": recent, "parked": parked},
    });
    let output = context.output;
    output.either(&document, || {
        going.iter().try_for_each(|id| output.text(id))?;
        output.talk(&format!("{} would be removed; nothing was", counted(going.len(), "session")));
        let active = *active;
        let recent = *recent;
        let parked = *parked;
        output.talk(&PruneSelection { going: Vec::new(), active, recent, parked }.staying());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_sessions_have_a_reason() {
        let judged = PruneSelection { going: Vec::new(), active: 1, recent: 2, parked: 0 };
        let expected = "3 sessions kept: 1 not over: `waypost session cancel` ends a run; 2 used \
                        more recently";
        assert_eq!(judged.staying(), expected);
        assert_eq!(PruneSelection::default().staying(), "no sessions stay");
    }
}
