//! Coverage of the simulation: step kind by pause by crash point, and counts of rare situations.

use crate::sim::machine::power::Point;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is easily missed: large values, pointers into the past, answers from inside, policy, and
/// what agents do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// A value was kept as a blob.
    BlobNamed,
    /// A blob was fetched, because a pointer or a loop goes into it.
    BlobRead,
    /// A power cut met a blob before it was durable.
    BlobCut,
    /// A blob that nothing named was removed.
    BlobSwept,
    /// A pointer named a step.
    StepReference,
    /// A pointer named an entry by its age.
    EntryByAge,
    /// A pointer asked the store for entries.
    HistoryQuery,
    /// An answer was given inside a branch or a loop.
    AnswerInside,
    /// A branch or an iteration was cut off.
    FrameCut,
    /// Before that, a write of it was waited for.
    WriteWaitedFor,
    /// Policy had a person asked.
    PolicyAsked,
    /// Policy denied a call when it was judged.
    PolicyDenied,
    /// Policy denied a call when it was to be sent, after it had let it pass.
    DeniedAtStart,
    /// A tool wanted something first.
    ToolWanted,
    /// It wanted more once it had that.
    ToolWantedMore,
    /// A call was sent again with what it wanted.
    CallResumed,
    /// A model answered.
    TurnDone,
    /// A turn whose process died was begun again.
    TurnAgain,
    /// A call of an agent was started because a person approved it.
    AgentApproved,
    /// A command's output was an agent's answer.
    CommandDone,
    /// A step told the world something.
    Published,
    /// A tool panicked, and its call has the outcome of that.
    ToolPanicked,
    /// Someone whom a driver asked panicked.
    DriverPanicked,
    /// A claim says that a process died of its run.
    DiedOf,
    /// A run was given up after such deaths.
    GivenUp,
    /// A session that cannot be read was parked.
    Parked,
    /// A process began with limits that admit no plan.
    LimitsLowered,
    /// A run was held at a limit that is lower than before.
    RunHeld,
    /// Rules of the policy changed, or a subject vanished or came back.
    PolicyChanged,
    /// A call or a turn was refused because the starter of its run is not known any more.
    StarterGone,
    /// Someone tried an id of another realm.
    OtherRealmTried,
    /// A rule acted on a failed step.
    RuleActed,
    /// Somebody answered an ask that a rule held.
    RuleBeaten,
    /// A correction's answer was acted upon.
    CorrectionActed,
    /// A correction came to nothing.
    CorrectionLeft,
    /// A process was gone while a correction was under way.
    CorrectionClaimed,
    /// Arguments that a model proposed were sent unasked.
    ProposalActed,
    /// A correction that a model wrote ran unasked.
    DraftRan,
    /// Somebody took what a model proposed.
    ProposalTaken,
    /// The second of two supervisors acted on a failed step.
    SecondActed,
    /// One of two supervisors acted on a failed step, and was refused.
    SecondRefused,
    /// A session was taken over from a supervisor that still ran.
    SecondFenced,
    /// A message answered an ask.
    MessageTaken,
    /// A message came too late for its ask.
    MessageBeaten,
    /// A message that was sent again got what the first one got.
    MessageRepeated,
}

impl Seen {
    /// All that plans without agents can meet.
    pub const ALL: [Seen; 16] = [
        Seen::BlobNamed,
        Seen::BlobRead,
        Seen::BlobCut,
        Seen::BlobSwept,
        Seen::StepReference,
        Seen::EntryByAge,
        Seen::HistoryQuery,
        Seen::AnswerInside,
        Seen::FrameCut,
        Seen::WriteWaitedFor,
        Seen::PolicyAsked,
        Seen::PolicyDenied,
        Seen::DeniedAtStart,
        Seen::ToolWanted,
        Seen::ToolWantedMore,
        Seen::CallResumed,
    ];

    /// What only plans that talk can meet.
    pub const TALK: [Seen; 5] =
        [Seen::TurnDone, Seen::TurnAgain, Seen::AgentApproved, Seen::CommandDone, Seen::Published];

    /// What only rough seeds can meet.
    pub const ROUGH: [Seen; 7] = [
        Seen::ToolPanicked,
        Seen::DriverPanicked,
        Seen::DiedOf,
        Seen::GivenUp,
        Seen::Parked,
        Seen::LimitsLowered,
        Seen::RunHeld,
    ];

    /// What only realms that share a machine can meet.
    pub const SHARED: [Seen; 3] = [Seen::PolicyChanged, Seen::StarterGone, Seen::OtherRealmTried];

    /// What only plans with rules can meet.
    pub const HEAL: [Seen; 5] = [
        Seen::RuleActed,
        Seen::RuleBeaten,
        Seen::CorrectionActed,
        Seen::CorrectionLeft,
        Seen::CorrectionClaimed,
    ];

    /// What only two supervisors can meet.
    pub const TWO: [Seen; 3] = [Seen::SecondActed, Seen::SecondRefused, Seen::SecondFenced];

    /// What only tasks in contexts can meet.
    pub const MESSAGES: [Seen; 3] =
        [Seen::MessageTaken, Seen::MessageBeaten, Seen::MessageRepeated];

    /// What only models that are asked about failed steps can meet.
    pub const ADVISED: [Seen; 3] = [Seen::ProposalActed, Seen::DraftRan, Seen::ProposalTaken];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Seen::BlobNamed => "value kept as a blob",
            Seen::BlobRead => "blob fetched for a pointer or a loop",
            Seen::BlobCut => "power cut met a blob before it was durable",
            Seen::BlobSwept => "blob removed because nothing named it",
            Seen::StepReference => "pointer to a step's latest entry",
            Seen::EntryByAge => "pointer to the newest entry",
            Seen::HistoryQuery => "history query",
            Seen::AnswerInside => "answer from a branch or a loop",
            Seen::FrameCut => "branch or iteration cut off",
            Seen::WriteWaitedFor => "write waited for before that",
            Seen::PolicyAsked => "policy asked",
            Seen::PolicyDenied => "policy denied at the judgement",
            Seen::DeniedAtStart => "policy denied at the start",
            Seen::ToolWanted => "tool wanted something first",
            Seen::ToolWantedMore => "tool wanted more once it had that",
            Seen::CallResumed => "call sent again with what it wanted",
            Seen::TurnDone => "model answered",
            Seen::TurnAgain => "turn begun again after a power cut",
            Seen::AgentApproved => "agent's call approved and started",
            Seen::CommandDone => "command's output was the answer",
            Seen::Published => "event published by a step",
            Seen::ToolPanicked => "tool panicked",
            Seen::DriverPanicked => "model, policy or observer panicked",
            Seen::DiedOf => "death of a process counted against a run",
            Seen::GivenUp => "run given up after such deaths",
            Seen::Parked => "session parked because it cannot be read",
            Seen::LimitsLowered => "process began with limits that admit no plan",
            Seen::RunHeld => "run held at a limit",
            Seen::PolicyChanged => "policy changed, or a subject vanished or came back",
            Seen::StarterGone => "call or turn refused because its starter vanished",
            Seen::OtherRealmTried => "id of another realm tried",
            Seen::RuleActed => "rule acted on a failed step",
            Seen::RuleBeaten => "ask answered that a rule held",
            Seen::CorrectionActed => "correction acted upon",
            Seen::CorrectionLeft => "correction came to nothing",
            Seen::CorrectionClaimed => "correction went on after a power cut",
            Seen::ProposalActed => "proposed arguments sent unasked",
            Seen::DraftRan => "drafted correction ran unasked",
            Seen::ProposalTaken => "proposal taken by a person",
            Seen::SecondActed => "second supervisor acted",
            Seen::SecondRefused => "supervisor acted and was refused",
            Seen::SecondFenced => "session taken over from a supervisor that still ran",
            Seen::MessageTaken => "ask answered by a message",
            Seen::MessageBeaten => "message came after the answer",
            Seen::MessageRepeated => "message sent again",
        }
    }
}

/// How often each was met.
pub type Counts = BTreeMap<Seen, u64>;

/// Where a crash met a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The kind of its step.
    kind: &'static str,
    /// How the run stood.
    run: &'static str,
    point: Point,
}

/// How often a crash met a run at such a step, so paused, at such a point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    met: BTreeMap<Place, u64>,
    counts: Counts,
}

impl Coverage {
    /// A crash met a run.
    pub fn note(&mut self, kind: &'static str, run: &'static str, point: Point) {
        *self.met.entry(Place { kind, run, point }).or_default() += 1;
    }

    /// So many of these were seen.
    pub fn count(&mut self, seen: Seen, times: u64) {
        *self.counts.entry(seen).or_default() += times;
    }

    /// How often this was seen.
    pub fn seen(&self, seen: Seen) -> u64 {
        self.counts.get(&seen).copied().unwrap_or_default()
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Coverage) {
        for (place, count) in &other.met {
            *self.met.entry(*place).or_default() += count;
        }
        for (seen, times) in &other.counts {
            self.count(*seen, *times);
        }
    }

    /// How many different places were met.
    pub fn places(&self) -> usize {
        self.met.len()
    }

    /// How often a crash point was met, at any step.
    pub fn at(&self, point: Point) -> u64 {
        self.met.iter().filter(|(met, _)| met.point == point).map(|(_, count)| *count).sum()
    }

    /// The table, in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from("| step | run |");
        for point in Point::ALL {
            let _ = write!(text, " {} |", point.name());
        }
        text.push_str("\n|---|---|");
        text.push_str(&"---:|".repeat(Point::ALL.len()));
        text.push('\n');
        let mut rows: Vec<(&str, &str)> =
            self.met.keys().map(|place| (place.kind, place.run)).collect();
        rows.dedup();
        for (kind, run) in rows {
            let _ = write!(text, "| {kind} | {run} |");
            for point in Point::ALL {
                let is_here = |met: &Place| (met.kind, met.run, met.point) == (kind, run, point);
                let count = self.met.iter().find(|(met, _)| is_here(met));
                let _ = write!(text, " {} |", count.map_or(0, |(_, count)| *count));
            }
            text.push('\n');
        }
        text
    }

    /// The table of what is easily missed, in Markdown.
    pub fn counts(&self) -> String {
        let mut text = String::from("| seen | times |\n|---|---:|\n");
        for seen in Seen::ALL.into_iter().chain(Seen::TALK).chain(Seen::ROUGH) {
            let _ = writeln!(text, "| {} | {} |", seen.name(), self.seen(seen));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rare_situation_has_a_row_even_if_unseen() {
        let mut coverage = Coverage::default();
        coverage.count(Seen::BlobNamed, 2);
        coverage.add(&coverage.clone());
        assert_eq!(coverage.seen(Seen::BlobNamed), 4);
        let rows = Seen::ALL.len() + Seen::TALK.len() + Seen::ROUGH.len();
        assert_eq!(coverage.counts().lines().count(), 2 + rows);
        assert!(coverage.counts().contains("| policy asked | 0 |"));
    }

    #[test]
    fn the_table_has_a_row_for_each_step_and_pause() {
        let mut coverage = Coverage::default();
        coverage.note("match", "running", Point::Step);
        coverage.note("match", "running", Point::Durable);
        coverage.note("match", "stuck", Point::Step);
        assert_eq!(coverage.table().lines().count(), 4);
        assert_eq!(coverage.at(Point::Step), 2);
        assert_eq!(coverage.places(), 3);
    }
}
