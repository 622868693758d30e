//! Parameters of one simulation, and its outcome.

use super::coverage::Coverage;
use super::faults::Planted;

/// What one simulation is made of. The same knobs give the same simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knobs {
    pub seed: u64,
    /// How many plans there are.
    pub plans: usize,
    /// How many commands clients give in each life.
    pub commands: u64,
    /// How often the process dies.
    pub crashes: u64,
    /// Whether plans have agents, and tell the world something.
    pub talks: bool,
    /// Whether plans have rules and corrections for their failed steps.
    pub heals: bool,
    /// Whether models are asked about some of these.
    pub advised: bool,
    /// Whether a second supervisor works on the same sessions, where the store serves two.
    pub two: bool,
    /// What is wrong on purpose.
    pub planted: Option<Planted>,
    /// Whether events go out.
    pub sink: bool,
    /// Whether tasks have webhooks, and some of them share a context, where some asks are answered
    /// by messages.
    pub webhooks: bool,
    /// Whether someone else writes to the same sessions.
    pub other_writer: bool,
    /// Whether there are panics, deaths of recoveries, other limits after a restart, and sessions
    /// that cannot be read.
    pub rough: bool,
    /// Whether two realms share the machine, with a policy that changes and subjects that vanish.
    pub shared: bool,
}

impl Knobs {
    /// The usual size.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            plans: 3,
            commands: 14,
            crashes: 3,
            talks: false,
            heals: false,
            advised: false,
            two: false,
            planted: None,
            sink: false,
            webhooks: false,
            other_writer: false,
            rough: false,
            shared: false,
        }
    }

    /// The same with more that goes wrong, and one crash more to be met by it.
    #[must_use]
    pub fn rough(mut self) -> Self {
        self.rough = true;
        self.crashes += 1;
        self
    }

    /// The same with agents, and with steps that tell the world something.
    #[must_use]
    pub fn talking(mut self) -> Self {
        self.talks = true;
        self
    }

    /// The same with two realms, and some commands more for the second.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self.commands += 6;
        self
    }

    /// The same with rules for failed steps, and with clients that answer just when rules act.
    #[must_use]
    pub fn healing(mut self) -> Self {
        self.heals = true;
        self
    }

    /// The same with rules that ask a model, which proposes arguments and writes corrections.
    #[must_use]
    pub fn advised(mut self) -> Self {
        self.heals = true;
        self.advised = true;
        self
    }

    /// The same with rules, and with two engines over one store that act by them.
    #[must_use]
    pub fn supervised_by_two(mut self) -> Self {
        self.heals = true;
        self.two = true;
        self
    }

    /// The same with a planted fault, and with what it takes to meet it.
    #[must_use]
    pub fn with(mut self, planted: Planted) -> Self {
        self.planted = Some(planted);
        self.sink |= planted == Planted::PlaceAhead;
        self.webhooks |= planted.takes_contexts();
        self.other_writer |= planted.takes_two();
        self.heals |= planted.heals();
        if planted.takes_advice() {
            self = self.advised();
        }
        if planted.takes_two_supervisors() {
            self = self.supervised_by_two();
        }
        if planted.takes_two_realms() {
            self = self.shared();
        }
        if planted.is_rough() { self.rough() } else { self }
    }
}

/// The outcome of a simulation.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What it was made of.
    pub knobs: Knobs,
    /// How many steps were taken.
    pub steps: u64,
    /// In which order, as one number.
    pub trace: u64,
    /// How many runs were acknowledged.
    pub runs: usize,
    /// How many events got out, or updates to webhooks, and how many of them again.
    pub events: (usize, usize),
    /// How often the other writer wrote to a session.
    pub other_writes: u64,
    /// What crashes met.
    pub coverage: Coverage,
    /// What is wrong; nothing if all is well.
    pub wrong: Vec<String>,
}

impl Outcome {
    /// Of a simulation that panics ended.
    pub fn ended(knobs: Knobs, panics: Vec<String>) -> Self {
        Self {
            knobs,
            steps: 0,
            trace: 0,
            runs: 0,
            events: (0, 0),
            other_writes: 0,
            coverage: Coverage::default(),
            wrong: panics.into_iter().map(|panic| format!("panic: {panic}")).collect(),
        }
    }
}
