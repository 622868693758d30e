//! The realms of a simulation, and who calls in them: the same names in each.

/// The realm of a machine that nobody shares.
pub const ALONE: &str = "default";
/// Those of one that two share. No name is a part of anything else that is shown, so that each can
/// be searched for.
pub const SHARED: [&str; 2] = ["acme", "globex"];
/// Who is always there.
pub const ANN: &str = "ann";
/// Who vanishes and comes back, where two realms share the machine.
pub const BOB: &str = "bob";
