//! Translates the server's hints: what they name as an endpoint is named as a command.

/// Phrases of the server's hints, each with what replaces it at the command line.
const COMMANDS: &[(&str, &str)] = &[
    ("`GET /api/v1/agents`", "`waypost agent ls`"),
    ("`GET /api/v1/asks`", "`waypost inbox ls`"),
    ("`GET /api/v1/keys`", "`waypost key ls`"),
    ("`GET /api/v1/pipelines`", "`waypost pipeline ls`"),
    ("`GET /api/v1/plans`", "`waypost plan ls`"),
    ("`GET /api/v1/principals`", "`waypost principal ls`"),
    ("`GET /api/v1/realms`", "`waypost realm ls`"),
    ("`GET /api/v1/sinks`", "`waypost events sinks`"),
    ("`GET /api/v1/tools`", "`waypost tool ls`"),
    ("`GET /api/v1/upstreams`", "`waypost mcp ls`"),
    ("`GET /openapi.json` lists the routes", "is the path in `--server` right?"),
    ("`mayAnswer` names who may answer it", "`waypost inbox show` says who may answer it"),
    ("`query_rootTypes` lists the types", "`waypost record types` lists them"),
    ("GET the ask to see it", "`waypost inbox show` shows it"),
    ("GET the session to see where it stands", "`waypost session show` says where it stands"),
    ("send `Authorization: Bearer <WAYPOST_ADMIN_KEY>`", "set `WAYPOST_ADMIN_KEY`"),
    ("POST /sessions makes one", "`waypost session ls` lists the sessions"),
    ("POST /run begins one", "`waypost run --thread` begins one"),
    ("POST /run says something new in it", "`waypost run --thread` says something new in it"),
];

/// A hint for a user of the command line, not of the server's HTTP API.
pub(super) fn in_commands(hint: String) -> String {
    COMMANDS.iter().fold(hint, |hint, (phrase, replacement)| hint.replace(phrase, replacement))
}
