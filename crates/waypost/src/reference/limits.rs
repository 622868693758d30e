//! Every limit with its default and the values that it can have.

use super::head;
use kernel::limits::Limits;
use serde_json::json;

const ABOUT: &str = "\
Every limit has a name and can be set in `[limits]` of `waypost.toml`, or by a variable such as
`WAYPOST_LIMITS_BODY_BYTES_MAX`; [configuration](../guides/configuration.md) says which overrides
which, and `waypost config show --origin` which value holds and why. Names end in their unit: `_ms`
milliseconds, `_bytes` bytes.

A value outside of its range is an error with its file and line, or its variable: `waypost up` does
not start with it. Some limits must not be larger than another one: `page_items_default` than
`page_items_max`, and `authorize_poll_ms`, `turn_backoff_ms`, `run_wait_ms`, `delivery_backoff_ms`
and `upstream_backoff_ms` than the same name with `_max`.";

/// What each limit bounds, in the words of `kernel::limits`.
const MEANINGS: &[(&str, &str)] = &[
    (
        "context_inline_bytes_max",
        "A value larger than this goes to a blob; only its reference stays in the journal.",
    ),
    (
        "blob_value_bytes_max",
        "A larger blob is not read as a value: its URI stands for it everywhere.",
    ),
    ("context_keys_max", "How many keys a context may hold."),
    ("history_query_max", "How many entries a history query looks at."),
    (
        "pointer_nodes_max",
        "How many nodes of JSON the pointers of one step visit, compare and copy, 64 bytes of \
         text being one.",
    ),
    ("step_visits_max", "How often one step may be entered by jumps in one frame."),
    ("loop_items_max", "How many items a loop takes."),
    ("loop_concurrency_max", "How many iterations of one loop run at the same time."),
    (
        "run_calls_max",
        "How many calls one run makes before a person is asked whether it may make as many again.",
    ),
    (
        "run_events_max",
        "How many events one run records before a person is asked whether it may record as many \
         again.",
    ),
    (
        "run_bytes_max",
        "About how many bytes of journal and blobs one run stores before a person is asked whether \
         it may store as many again.",
    ),
    ("frames_max", "How many frames of one run live at the same time."),
    ("plan_depth_max", "How deep plans call plans."),
    ("plan_steps_max", "How many steps a plan has, inner ones included."),
    ("plan_bytes_max", "The size of a plan's text."),
    ("closure_plans_max", "How many plans one run pins."),
    ("branches_max", "How many branches a parallel step has."),
    (
        "recover_attempts_max",
        "How many times the recovery of a run may end the process, or panic, before a person is \
         asked.",
    ),
    ("recover_interval_ms", "How often recovery looks for sessions that should move."),
    ("recover_batch_max", "How many sessions one recovery pass claims."),
    ("cancel_grace_ms", "How long a cancelled call has to end by itself; 0 gives it no time."),
    ("stop_wait_ms", "How long a stop waits for what is under way; 0 waits for nothing."),
    ("call_timeout_ms", "How long one tool call may take."),
    ("call_output_bytes_max", "The size of a tool's output."),
    ("blob_bytes_max", "The size of an output that a tool puts into a blob piece by piece."),
    ("event_bytes_max", "The size of an event that a step publishes."),
    (
        "call_wants_max",
        "How often one call in a run may want something before it does what it is called for.",
    ),
    (
        "authorize_poll_ms",
        "The first delay before Waypost checks whether a login for a thread has completed. It \
         doubles each time.",
    ),
    ("authorize_poll_ms_max", "The longest of these waits."),
    (
        "authorize_polls_max",
        "How often Waypost checks; then a person has to say so. 0 never checks.",
    ),
    (
        "turn_timeout_ms",
        "How long one turn of a model may take, where the model's entry says nothing.",
    ),
    ("turn_attempts_max", "How often one turn is tried before a person is asked."),
    (
        "turn_backoff_ms",
        "How long to wait before a failed turn is tried again: twice as long each time.",
    ),
    ("turn_backoff_ms_max", "The longest of these waits."),
    (
        "turn_retry_after_ms_max",
        "The longest wait that a provider may ask for; with a longer one the turn has failed.",
    ),
    ("turn_calls_max", "How many tools one turn may call."),
    (
        "turn_result_bytes_max",
        "How many bytes of one result a model reads; the rest is cut off, and that is said.",
    ),
    ("turns_active_max", "How many turns of models run at the same time."),
    (
        "turn_deltas_max",
        "How many pieces of a turn wait for a listener; one that is slower loses some.",
    ),
    (
        "talk_cached_bytes_max",
        "How much of its conversations a session keeps at hand while it is driven.",
    ),
    ("calls_active_max", "How many calls run at the same time, over all sessions."),
    ("call_rates_max", "How many callers' rates of calls are remembered."),
    ("runs_active_max", "How many sessions move at the same time."),
    ("session_queue_max", "How many commands wait for one session."),
    ("case_queue_max", "How many requests wait for one case of a pipeline."),
    ("case_requests_read_max", "How many earlier requests of a case its agent reads."),
    ("tally_reasons_max", "How many unknown reasons of one pipeline are counted, each by itself."),
    (
        "tally_reason_chars_max",
        "How many characters of a reason are kept where reasons are counted.",
    ),
    ("append_queue_max", "How many appends wait for the store's writer."),
    (
        "snapshot_floor_bytes",
        "A snapshot is written only when the journal's tail is larger than this; 0 sets no floor.",
    ),
    (
        "sessions_rested_max",
        "How many idle sessions stay in memory for the next request; 0 keeps none.",
    ),
    ("session_rested_bytes_max", "A larger session does not stay."),
    (
        "execute_wait_ms",
        "How long `/sessions/{id}/execute-plan` and `/resume` wait for the run; 0 does not wait.",
    ),
    (
        "run_wait_ms",
        "How long `/api/v1` waits for a run unless `?wait=` says otherwise; 0 does not wait.",
    ),
    ("run_wait_ms_max", "The longest `?wait=`."),
    ("body_bytes_max", "The size of a request's body."),
    (
        "bodies_bytes_max",
        "The size of all requests' bodies that are being read or worked on, together.",
    ),
    ("body_depth_max", "How deep a request's JSON nests."),
    ("schema_bytes_max", "The size of a JSON Schema."),
    (
        "schema_nodes_max",
        "How many parts a JSON Schema has once its references are followed; what repeats in a \
         pattern counts as often.",
    ),
    (
        "schema_depth_max",
        "How deep a JSON Schema nests, and how many references follow each other in it.",
    ),
    (
        "schema_ways_max",
        "How many ways there are to hold one value against a JSON Schema, members and items left \
         aside.",
    ),
    ("schema_steps_max", "How many steps the check of one value against its JSON Schema may take."),
    ("rpc_batch_max", "How many requests one batch at `/rpc` may hold."),
    ("page_items_default", "The size of a page when the caller names none."),
    ("page_items_max", "The largest page."),
    ("client_id_chars_max", "The length of an id that a client chooses."),
    ("export_events_max", "How many events a session may have to be forked or exported."),
    ("session_ttl_ms", "Sessions that are over and unused for so long are removed; 0 keeps them."),
    ("prune_batch_max", "How many sessions one slice of a removal takes, or blobs."),
    ("blob_grace_ms", "How long a blob stays that nothing names any more, or nothing yet."),
    ("outbox_window_max", "How many events that one sink has not taken yet are in memory."),
    ("outbox_window_bytes_max", "The size of the journal's rows that they are made of."),
    (
        "outbox_ahead_max",
        "How many events one sink is read ahead of the oldest that it has not taken yet: so many \
         may be sent twice after a crash.",
    ),
    (
        "delivery_timeout_ms",
        "How long one delivery to a sink may take, whatever the sink itself allows.",
    ),
    (
        "delivery_attempts_max",
        "How often one event is tried that a sink refuses, or does not take while it takes others.",
    ),
    (
        "delivery_backoff_ms",
        "How long to wait before a failed delivery is tried again: twice as long each time.",
    ),
    (
        "delivery_backoff_ms_max",
        "The longest of these waits, and the longest that a receiver may ask for.",
    ),
    ("deliveries_kept_max", "How many deliveries the log keeps of each sink; failed ones go last."),
    (
        "unsent_wait_ms",
        "How long the removal of a session waits for sinks that have not passed its events; 0 \
         does not wait.",
    ),
    ("streams_max", "How many event streams are open at the same time."),
    (
        "logins_per_minute",
        "How many logins at upstream servers are begun in a minute, and how many people come back \
         from one that is not under way.",
    ),
    (
        "traces_per_second_max",
        "How many traces of our own begin in a second, where no sampler is named; 0 records none.",
    ),
    (
        "span_content_bytes_max",
        "How many bytes each content of a span has, where content is wanted; the rest is cut off.",
    ),
    (
        "metric_names_max",
        "How many tools, models or upstreams the metrics tell apart; more are counted as `other`.",
    ),
    (
        "telemetry_stop_ms",
        "How long a stop waits until the last spans are exported; 0 does not wait.",
    ),
    (
        "mcp_list_items_max",
        "How many items one answer to an MCP list has; more are paged, which many clients ignore.",
    ),
    (
        "mcp_list_cache_max",
        "How many written `tools/list` answers are kept, one for each caller and shape of version.",
    ),
    (
        "mcp_list_ttl_ms",
        "How long an MCP client may keep a list of tools, prompts or templates; 0 keeps none.",
    ),
    (
        "mcp_task_after_ms",
        "How long an MCP call that could be a task is waited for before it becomes one; 0 makes \
         it one at once.",
    ),
    ("mcp_call_wait_ms", "How long an MCP call is waited for where the client takes no tasks."),
    ("mcp_state_ttl_ms", "How long an MCP client may take to answer what a call asks for."),
    ("mcp_task_poll_ms", "How often an MCP client should look at a task."),
    (
        "mcp_progress_ms",
        "The shortest time between two tellings of a run's progress to an MCP client.",
    ),
    (
        "mcp_rounds_max",
        "How often one MCP call asks its client again: for more, or because an answer did not fit.",
    ),
    (
        "mcp_shown_chars_max",
        "How many characters of a call's arguments an MCP form shows; a longer call is decided \
         elsewhere.",
    ),
    ("mcp_sessions_max", "How many MCP sessions are open at the same time."),
    ("mcp_session_idle_ms", "An MCP session that is unused for so long is over."),
    (
        "mcp_session_requests_max",
        "How many requests of one MCP session are under way at the same time, in each direction.",
    ),
    ("mcp_session_streams_max", "How many streams of one MCP session can be taken up again."),
    (
        "mcp_replay_events_max",
        "How many events of one MCP stream are kept for a client that comes back.",
    ),
    (
        "mcp_replay_bytes_max",
        "The size of these events together; the newest is kept, however large it is.",
    ),
    ("mcp_subscriptions_max", "How many resources one MCP client watches."),
    ("mcp_ask_wait_ms", "How long an MCP client may take to answer what is asked of it."),
    (
        "mcp_quiet_ms",
        "An answer that takes longer than this becomes a stream, where the client takes one.",
    ),
    (
        "upstream_connect_timeout_ms",
        "How long an upstream server may take for a connection, a handshake, or a page of a list.",
    ),
    (
        "upstream_wait_ms",
        "How long a call waits for an upstream that is being connected to; 0 does not wait.",
    ),
    (
        "upstream_backoff_ms",
        "The first wait before an upstream is tried again; it doubles with every failure.",
    ),
    ("upstream_backoff_ms_max", "The longest of these waits."),
    (
        "upstream_list_interval_ms",
        "How often an upstream is listed that says neither for how long its lists hold nor when \
         they change.",
    ),
    ("upstream_tools_max", "How many tools of one upstream are taken."),
    (
        "upstream_items_max",
        "How many prompts of one upstream are taken, and resources, and families of resources.",
    ),
    ("upstream_pages_max", "How many pages of one list of an upstream are read."),
    (
        "upstream_stop_ms",
        "How long an upstream's process has to end by itself once its standard input is closed; \
         0 gives it no time.",
    ),
    (
        "upstream_pending_max",
        "How many calls of one upstream server wait for an answer that it asked us for; of more, \
         the oldest is cancelled.",
    ),
    ("upstream_pending_ms", "How long such a call is kept."),
    ("upstream_login_ms", "How long a user may take for a login at an upstream server."),
    ("upstream_document_bytes_max", "The size of an OpenAPI document."),
    ("upstream_schema_nodes_max", "How many parts the schema of one operation's arguments has."),
    (
        "upstream_document_parts_max",
        "How many parts the schemas of all operations of an OpenAPI document have together, 64 \
         bytes of text being one.",
    ),
];

/// The page.
pub(super) fn page() -> String {
    let defaults = json!(Limits::default());
    let mut page = head("Limits", ABOUT);
    page.push_str("\n| limit | default | range | what it bounds |\n|---|---|---|---|\n");
    for name in Limits::NAMES {
        let (default, (min, max)) = (&defaults[*name], Limits::range(name).into_inner());
        let about = meaning(name);
        page.push_str(&format!("| `{name}` | {default} | {min} to {max} | {about} |\n"));
    }
    page
}

fn meaning(limit: &str) -> &'static str {
    let found = MEANINGS.iter().copied().find(|(name, _)| *name == limit);
    found.map_or("", |(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_its_sentence() {
        let told: Vec<&str> = MEANINGS.iter().map(|(name, _)| *name).collect();
        assert_eq!(told, Limits::NAMES, "write what a new limit bounds into `MEANINGS`");
    }
}
