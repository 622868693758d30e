//! The demo's project folder, carried inside the binary: the files of the examples.

/// The demo's plans, by their path in its project folder.
pub const DEMO_PLANS: &[(&str, &str)] = &[
    (
        "plans/interaction/greeting.plan.json",
        include_str!("../../../../examples/plans/plans/interaction/greeting.plan.json"),
    ),
    (
        "plans/math/conditional_add.yaml",
        include_str!("../../../../examples/plans/plans/math/conditional_add.yaml"),
    ),
    ("plans/math/fan_out.yaml", include_str!("../../../../examples/plans/plans/math/fan_out.yaml")),
    (
        "plans/test/plan_that_fails.yaml",
        include_str!("../../../../examples/plans/plans/test/plan_that_fails.yaml"),
    ),
];

/// The demo's settings: those of the calendar example.
pub const DEMO_SETTINGS: (&str, &str) =
    ("examples/calendar/waypost.toml", include_str!("../../../../examples/calendar/waypost.toml"));

/// What the demo adds to them: the tool server of the vault-proxy example, for the skill
/// `mcp.execute_tool`. Its temporary files are in the data folder too, so that they go with the
/// demo even if the process is killed.
pub const DEMO_PROXY: (&str, &str) = (
    "the settings of the demo",
    r#"[mcp.servers.filesystem]
command = "${WAYPOST_BIN}"
args = ["example", "filesystem-server", "--stdio", "--data", "${WAYPOST_DATA}/files"]
env = { TMPDIR = "${WAYPOST_DATA}" }
prefix = ""
trusted = true

[a2a]
proxy = true
"#,
);

/// The name of that server.
pub const DEMO_PROXY_SERVER: &str = "filesystem";

/// What the demo adds to them for its records: the model of the agent that answers questions about
/// them.
pub const DEMO_RECORDS: (&str, &str) = (
    "the settings of the demo's records",
    r#"[models.analyst]
provider = "rules"
rules = "rules/analyst.yaml"
"#,
);

/// The agent of the records example, by its path in a project folder.
pub(crate) const ANALYST: (&str, &str) =
    ("agents/analyst.yaml", include_str!("../../../../examples/records/agents/analyst.yaml"));

/// The rules of its model.
pub(crate) const ANALYST_RULES: (&str, &str) =
    ("rules/analyst.yaml", include_str!("../../../../examples/records/rules/analyst.yaml"));

/// The demo's agents, by their path in its project folder.
pub const DEMO_AGENTS: &[(&str, &str)] = &[
    ("agents/assistant.yaml", include_str!("../../../../examples/calendar/agents/assistant.yaml")),
    ANALYST,
];

/// The demo's types of records, by their path in its project folder: those of the records example.
pub const DEMO_ENTITIES: &[(&str, &str)] = &[
    ("entities/Customer.yaml", include_str!("../../../../examples/records/entities/Customer.yaml")),
    ("entities/Location.yaml", include_str!("../../../../examples/records/entities/Location.yaml")),
    ("entities/Order.yaml", include_str!("../../../../examples/records/entities/Order.yaml")),
    ("entities/Product.yaml", include_str!("../../../../examples/records/entities/Product.yaml")),
];

/// The first records of these types, by the paths that the types name.
pub const DEMO_SEEDS: &[(&str, &str)] = &[
    ("data/customers.csv", include_str!("../../../../examples/records/data/customers.csv")),
    ("data/locations.csv", include_str!("../../../../examples/records/data/locations.csv")),
    ("data/orders.jsonl", include_str!("../../../../examples/records/data/orders.jsonl")),
    ("data/products.csv", include_str!("../../../../examples/records/data/products.csv")),
];

/// The rules that the demo's models are made of, by their path in its project folder.
pub const DEMO_RULES: &[(&str, &str)] = &[
    ("rules/calendar.yaml", include_str!("../../../../examples/calendar/rules/calendar.yaml")),
    ("rules/drafts.yaml", include_str!("../../../../examples/calendar/rules/drafts.yaml")),
    ANALYST_RULES,
];

/// The demo's pipelines, by their path in its project folder: those of the trade-failures example.
pub const DEMO_PIPELINES: &[(&str, &str)] = &[(
    "pipelines/trade-failures.yaml",
    include_str!("../../../../examples/trade-failures/pipelines/trade-failures.yaml"),
)];

/// The plans that those pipelines run, by their path in its project folder.
pub const DEMO_PIPELINE_PLANS: &[(&str, &str)] = &[(
    "plans/trades/isin_of_cusip.yaml",
    include_str!("../../../../examples/trade-failures/plans/trades/isin_of_cusip.yaml"),
)];
