//! Every limit of the runtime, each with its name and default.

use serde::{Deserialize, Serialize};

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr;)*) => {
        /// The named limits; `[limits]` in `waypost.toml` sets them.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits { $($(#[$doc])* pub $name: $kind,)* }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            /// The names of all limits, for "did you mean".
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}

limits! {
    /// A value larger than this goes to a blob; only its reference stays in the journal.
    context_inline_bytes_max: usize = 16 * 1024;
    /// How many keys a context may hold.
    context_keys_max: usize = 1_000;
    /// How many entries a history query looks at.
    history_query_max: usize = 1_000;
    /// How often one step may be entered by jumps in one frame.
    step_visits_max: u32 = 1_000;
    /// How many items a loop takes.
    loop_items_max: usize = 100_000;
    /// How many iterations of one loop run at the same time.
    loop_concurrency_max: u32 = 64;
    /// How many frames of one run live at the same time.
    frames_max: usize = 1_024;
    /// How deep plans call plans.
    plan_depth_max: usize = 16;
    /// How many steps a plan has, inner ones included.
    plan_steps_max: usize = 2_000;
    /// The size of a plan's text.
    plan_bytes_max: usize = 1024 * 1024;
    /// How many plans one run pins.
    closure_plans_max: usize = 256;
    /// How many branches a parallel step has.
    branches_max: usize = 64;
    /// How many times a run is claimed without progress before a person is asked.
    recover_attempts_max: u32 = 5;
    /// How often recovery looks for sessions that should move.
    recover_interval_ms: u64 = 1_000;
    /// How many sessions one recovery pass claims.
    recover_batch_max: usize = 256;
    /// How long a cancelled call has to end by itself.
    cancel_grace_ms: u64 = 2_000;
    /// How long a stop waits for what is under way.
    stop_wait_ms: u64 = 3_000;
    /// How long one tool call may take.
    call_timeout_ms: u64 = 30_000;
    /// The size of a tool's output.
    call_output_bytes_max: usize = 8 * 1024 * 1024;
    /// How many calls run at the same time, over all sessions.
    calls_active_max: usize = 1_024;
    /// How many sessions move at the same time.
    runs_active_max: usize = 4_096;
    /// How many commands wait for one session.
    session_queue_max: usize = 64;
    /// How many appends wait for the store's writer.
    append_queue_max: usize = 16_384;
    /// A snapshot is written only when the journal's tail is larger than this.
    snapshot_floor_bytes: usize = 64 * 1024;
    /// How many sessions that nobody drives stay in memory, for whoever comes next.
    sessions_rested_max: usize = 256;
    /// A larger session does not stay.
    session_rested_bytes_max: usize = 64 * 1024;
    /// How long `/sessions/{id}/execute-plan` and `/resume` wait for the run.
    execute_wait_ms: u64 = 60_000;
    /// How long `/api/v1` waits for a run unless `?wait=` says otherwise.
    run_wait_ms: u64 = 30_000;
    /// The longest `?wait=`.
    run_wait_ms_max: u64 = 300_000;
    /// The size of a request's body.
    body_bytes_max: usize = 4 * 1024 * 1024;
    /// How deep a request's JSON nests.
    body_depth_max: usize = 64;
    /// The size of a page when the caller names none.
    page_items_default: usize = 50;
    /// The largest page.
    page_items_max: usize = 200;
    /// The length of an id that a client chooses.
    client_id_chars_max: usize = 255;
    /// How many events a session may have to be forked or exported.
    export_events_max: usize = 100_000;
    /// Sessions that are over and that nobody touched for so long are removed; 0 keeps them.
    session_ttl_ms: u64 = 0;
    /// How many sessions one slice of a removal takes, or blobs.
    prune_batch_max: usize = 64;
    /// How long a blob stays that nothing names any more, or nothing yet.
    blob_grace_ms: u64 = 24 * 60 * 60 * 1_000;
    /// How many event streams are open at the same time.
    streams_max: usize = 1_024;
}
