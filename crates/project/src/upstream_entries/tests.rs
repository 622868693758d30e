//! Both files together: what they make, and what is wrong with them.

use super::*;
use crate::config::Config;
use upstreams::{
    CardPlace, Document, Grant, KeyPlace, OauthConfig, RestAuth, Secret, UpstreamKind,
};

const VARIABLES: &[(&str, &str)] = &[("TOKEN", "abc"), ("HOST", "a.example")];

fn looked_up(name: &str) -> Option<String> {
    let found = VARIABLES.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| (*value).to_owned())
}

fn combine(toml: &str, json: &str) -> Result<Upstreams, Vec<Mistake>> {
    let config = Config::parse("waypost.toml", toml)?;
    let found = client_files::read(".mcp.json", json, None)?;
    let written = WrittenEntries { ours: &config.upstreams, theirs: &found.entries };
    Upstreams::combine(Path::new("/shop"), written, &looked_up)
}

fn configs(toml: &str, json: &str) -> Vec<UpstreamConfig> {
    combine(toml, json).unwrap().configs(&looked_up).unwrap()
}

fn wrong(toml: &str, json: &str) -> Vec<String> {
    let combined = combine(toml, json).and_then(|upstreams| upstreams.configs(&looked_up));
    combined.unwrap_err().iter().map(Mistake::to_string).collect()
}

#[test]
fn both_files_name_upstreams() {
    let toml = "[mcp.servers.web]\nurl = \"https://${HOST}/mcp\"\ntimeout_ms = 5\n\
                headers = { Authorization = \"Bearer ${TOKEN}\" }\njournal = false\n";
    let json = r#"{"mcpServers": {"git": {"command": "./bin/git", "args": ["${HOST}"],
        "env": {"T": "${TOKEN}"}, "cwd": "sub"}}}"#;
    let all = configs(toml, json);
    let [git, web] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((git.name.as_str(), git.prefix.as_str()), ("git", "git."));
    assert_eq!(git.origin, ".mcp.json:1");
    let UpstreamKind::Stdio { command, args, env, cwd } = &git.kind else { panic!("{git:?}") };
    assert_eq!(command, "/shop/sub/./bin/git");
    assert_eq!((args.as_slice(), env[0].1.expose()), (&["a.example".to_owned()][..], "abc"));
    assert_eq!(cwd.as_deref(), Some(Path::new("/shop/sub")));
    assert!(git.journal && !git.trusted && git.timeout_ms.is_none());
    let UpstreamKind::Http { url, headers, .. } = &web.kind else { panic!("{web:?}") };
    assert_eq!((url.as_str(), headers[0].1.expose()), ("https://a.example/mcp", "Bearer abc"));
    assert_eq!((web.origin.as_str(), web.journal), ("waypost.toml:1", false));
    assert_eq!(web.timeout_ms, Some(5));
    assert!(!format!("{all:?}").contains("abc"), "a secret is shown");
}

#[test]
fn our_keys_are_added_to_an_entry_of_a_client() {
    let json = r#"{"mcpServers": {"git": {"command": "git"}, "b": {"command": "b"}}}"#;
    let toml =
        "[mcp.servers.git]\nprefix = \"\"\ntrusted = true\n[mcp.servers.b]\ndisabled = true\n";
    let all = configs(toml, json);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].prefix.as_str(), all[0].trusted), ("", true));
    assert_eq!(all[0].origin, ".mcp.json:1");
    let upstreams = combine(toml, json).unwrap();
    assert_eq!(upstreams.entries().len(), 2, "one that is left alone is known");
    assert_eq!(upstreams.prefixes(), [""]);
}

#[test]
fn folders_are_expanded_like_other_values() {
    let toml = "[mcp.servers.a]\nurl = \"http://a.example\"\n\
                roots = [\"file:///srv/a\", \"file://${TOKEN}\"]\n";
    let folder = looked_up("TOKEN").unwrap();
    let roots = vec!["file:///srv/a".to_owned(), format!("file://{folder}")];
    assert_eq!(configs(toml, "")[0].roots, roots);
    let bare = configs("[mcp.servers.a]\nurl = \"http://a.example\"\n", "");
    assert!(bare[0].roots.is_empty());
}

#[test]
fn two_upstreams_cannot_share_a_name() {
    let json = r#"{"mcpServers": {"git": {"command": "git"}}}"#;
    assert_eq!(
        wrong("[mcp.servers.git]\nurl = \"http://a.example\"\n", json),
        ["waypost.toml:1:14: error: upstream `git` is in .mcp.json:1 already; hint: give one of \
          them another name; `[mcp.servers.<name>]` without `command` and `url` adds its keys to \
          the other"]
    );
    let told = wrong("[mcp.servers.gti]\ntrusted = true\n", json);
    assert!(told[0].contains("`gti` has neither `command` nor `url`"), "{told:?}");
    assert!(told[0].ends_with("hint: did you mean `git`?"), "{told:?}");
    let told = wrong("[mcp.servers.a]\ncommand = \"x\"\nprefix = \"git.\"\n", json);
    assert!(told[0].contains("begin with `git.`, as those of `git` (.mcp.json:1)"), "{told:?}");
    assert!(
        combine(
            "[mcp.servers.a]\ncommand = \"x\"\nprefix = \"\"\n[mcp.servers.b]\n\
                     command = \"y\"\nprefix = \"\"\n",
            json
        )
        .is_ok()
    );
}

#[test]
fn providers_are_upstreams_too() {
    let toml = "[providers.crm]\ntype = \"rest\"\nbase_url = \"https://${HOST}/v1/\"\n\
                include = [\"list*\"]\nauth = { type = \"bearer\", token = \"${TOKEN}\" }\n\
                [providers.docs]\ntype = \"rest\"\ndocument = \"api/openapi.yaml\"\n\
                auth = { type = \"api_key\", name = \"k\", in = \"query\", value = \"${TOKEN}\" }\n\
                allow_private = true\n\
                [providers.old]\ntype = \"RPC\"\nbase_url = \"http://a.example/rpc\"\n\
                tools = [\"files.read\"]\nopen = true\n\
                [providers.other]\ntype = \"mcp\"\nbase_url = \"http://a.example/mcp\"\n";
    let all = configs(toml, "");
    let [crm, docs, old, other] = all.as_slice() else { panic!("{all:?}") };
    let UpstreamKind::Rest(crm) = &crm.kind else { panic!("{crm:?}") };
    assert_eq!(crm.document, Document::Url("https://a.example/v1/openapi.json".to_owned()));
    assert_eq!(crm.base_url.as_deref(), Some("https://a.example/v1/"));
    assert_eq!(crm.include.as_deref(), Some(&["list*".to_owned()][..]));
    assert!(matches!(&crm.auth, Some(RestAuth::Bearer(token)) if token.expose() == "abc"));
    let UpstreamKind::Rest(docs) = &docs.kind else { panic!("{docs:?}") };
    assert_eq!(docs.document, Document::File(PathBuf::from("/shop/api/openapi.yaml")));
    assert!(docs.allow_private && docs.include.is_none());
    assert!(matches!(&docs.auth, Some(RestAuth::ApiKey { place: KeyPlace::Query, .. })));
    let UpstreamKind::Rpc { tools, open, .. } = &old.kind else { panic!("{old:?}") };
    assert_eq!((tools.as_slice(), *open), (&["files.read".to_owned()][..], true));
    assert!(matches!(&other.kind, UpstreamKind::Http { .. }));
}

#[test]
fn agents_are_upstreams_too() {
    let x = "A".repeat(43);
    let toml = format!(
        "[a2a.agents.trips]\ncard = \"https://${{HOST}}\"\njournal = false\n\
         auth = {{ type = \"bearer\", token = \"${{TOKEN}}\" }}\n\
         keys = [{{ kid = \"k1\", x = \"{x}\", y = \"{x}\" }}]\n\
         [a2a.agents.file]\ncard = \"cards/a.json\"\nallow_private = true\n\
         [a2a.agents.vault]\ncard = \"org/proxy\"\nregistry = \"https://${{HOST}}\"\n\
         origin = \"https://b.example\"\n"
    );
    let all = configs(&toml, "");
    let [file, trips, vault] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((trips.prefix.as_str(), trips.journal), ("trips.", false));
    let UpstreamKind::A2a(trips) = &trips.kind else { panic!("{trips:?}") };
    assert_eq!(trips.card, CardPlace::Url("https://a.example".to_owned()));
    assert!(trips.require_signature && trips.keys[0].id.as_deref() == Some("k1"));
    assert!(matches!(&trips.auth, Some(RestAuth::Bearer(token)) if token.expose() == "abc"));
    let UpstreamKind::A2a(file) = &file.kind else { panic!("{file:?}") };
    assert_eq!(file.card, CardPlace::File(PathBuf::from("/shop/cards/a.json")));
    assert!(file.allow_private && !file.require_signature);
    let UpstreamKind::A2a(vault) = &vault.kind else { panic!("{vault:?}") };
    let url = "https://a.example".to_owned();
    let id = "org/proxy".to_owned();
    assert_eq!(vault.card, CardPlace::Registry { url, id });
    let entries = combine(&toml, "").unwrap();
    let targets: Vec<String> = entries.entries().iter().map(|e| e.facts().target).collect();
    let expected = ["cards/a.json", "https://${HOST}", "org/proxy at https://${HOST}"];
    assert_eq!(targets, expected);
}

#[test]
fn keys_of_agents_are_found_in_files_first() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.env", "# keys\nother=x\nProbe = hunter1 \n"),
        ("b.json", r#"{"other": "x", "probe": "hunter1"}"#),
        ("c.json", r#"{"probe": {"oauth": {}, "apiKey": "hunter1"}}"#),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let agent = |service: &str| {
            format!(
                "[a2a.agents.a]\ncard = \"https://b\"\nservice = \"{service}\"\n\
                 key_file = '{}'\n",
                path.display()
            )
        };
        let all = configs(&agent("probe"), "");
        let UpstreamKind::A2a(config) = &all[0].kind else { panic!("{all:?}") };
        assert_eq!(config.key.as_ref().map(Secret::expose), Some("hunter1"));
        assert!(config.auth.is_none() && config.keys_by_card.is_none(), "{name}");
        let told = wrong(&agent("unknown"), "");
        assert!(
            told[0].contains("has no key `unknown`") && !told[0].contains("hunter"),
            "{told:?}"
        );
    }
}

#[test]
fn a_card_names_the_key_where_the_settings_name_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let kept = r#"{"Trips": "hunter1", "org/desk": {"oauth": {"clientId": "me",
        "clientSecret": "hunter2"}}, "half": {"oauth": {"clientId": "me"}}}"#;
    std::fs::write(&path, kept).unwrap();
    let agent = |more: &str| format!("[a2a.agents.a]\ncard = \"https://b\"\n{more}\n");
    let by_card = |more: &str| {
        let all = configs(&agent(more), "");
        let UpstreamKind::A2a(config) = &all[0].kind else { panic!("{all:?}") };
        assert!(config.key.is_none() && config.client.is_none() && config.keyring.is_none());
        config.keys_by_card.clone()
    };
    assert_eq!(by_card(""), None, "no stored key is asked for");
    let file = format!("key_file = '{}'", path.display());
    let keys = by_card(&file).unwrap();
    assert_eq!(keys.file.keys().collect::<Vec<_>>(), ["org/desk", "trips"]);
    assert_eq!(keys.file["trips"].key.as_ref().map(Secret::expose), Some("hunter1"));
    let client = keys.file["org/desk"].client.as_ref();
    assert_eq!(client.map(|client| client.secret.expose()), Some("hunter2"));
    assert!(keys.keyring.is_none());
    let keys = by_card("keyring = true").unwrap();
    assert!(keys.keyring.is_some() && keys.file.is_empty());
    let auth = "auth = { type = \"bearer\", token = \"x\" }";
    for (other, key) in [(file.as_str(), "key_file"), ("keyring = true", "keyring")] {
        let told = wrong(&agent(&format!("{auth}\n{other}")), "");
        assert!(told[0].contains(&format!("both `auth` and `{key}` are there")), "{told:?}");
    }
}

#[test]
fn clients_of_agents_are_found_beside_keys_and_the_keyring_is_asked_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let kept = r#"{"both": {"apiKey": "hunter1", "oauth": {"clientId": "me", "clientSecret": "s"}},
        "half": {"oauth": {"clientId": "me"}}, "token": {"oauth": {"clientId": "me",
        "clientSecret": "hunter2"}}}"#;
    std::fs::write(&path, kept).unwrap();
    let agent = |service: &str| {
        format!(
            "[a2a.agents.a]\ncard = \"https://b\"\nservice = \"{service}\"\nkeyring = true\n\
             key_file = '{}'\n",
            path.display()
        )
    };
    for (service, has_key, secret, in_keyring) in [
        ("both", true, Some("s"), None),
        ("Token", false, Some("hunter2"), None),
        ("half", false, None, Some("half")),
        ("Other", false, None, Some("other")),
    ] {
        let all = configs(&agent(service), "");
        let UpstreamKind::A2a(config) = &all[0].kind else { panic!("{all:?}") };
        assert_eq!(config.key.is_some(), has_key, "{service}");
        let found = config.client.as_ref().map(|client| client.secret.expose());
        assert_eq!(found, secret, "{service}");
        assert_eq!(config.keyring.as_ref().map(|keyring| keyring.id.as_str()), in_keyring);
    }
}

#[test]
fn mistakes_of_agents_are_reported_with_their_line() {
    for (text, expected) in [
        ("", "`a`: `card` is missing"),
        ("card = \"https://b\"\nrequire_signature = true\n", "and there are no `keys`"),
        ("card = \"https://b\"\nkeys = [{ x = \"AA\" }]\n", "`x` of a key is not a coordinate"),
        ("card = \"https://b\"\nservice = \"probe\"\n", "`AGENTVAULT_KEY_PROBE` is not set"),
        ("card = \"https://b\"\ncolour = 1\n", "unknown key `colour` in `[a2a.agents.a]`"),
    ] {
        let told = wrong(&format!("[a2a.agents.a]\n{text}"), "");
        assert!(told[0].contains(expected), "{told:?}");
    }
}

#[test]
fn mistakes_in_our_settings_are_reported_with_their_line() {
    for (text, expected) in [
        (
            "[mcp.servers.a]\ncommand = \"x\"\ncolour = 5\n",
            "waypost.toml:3:1: error: unknown key `colour` in `[mcp.servers.a]`; hint: known here",
        ),
        (
            "[mcp.servers.a]\ncommand = \"x\"\ntimeout_ms = 86400001\n",
            "waypost.toml:3:14: error: `timeout_ms` = 86400001 is out of range: it can be 1 to \
             86400000",
        ),
        (
            "[mcp.servers.a]\ncommand = \"x\"\nera = \"2027\"\n",
            "waypost.toml:3:7: error: `2027` is no era of MCP",
        ),
        (
            "[providers.a]\ntype = \"rpc\"\nbase_url = \"http://a.test\"\nera = \"2025\"\n",
            "waypost.toml:4:7: error: `era` goes with an MCP server",
        ),
        (
            "[mcp.servers.a]\ncommand = \"x\"\nroots = [\"file:///a\", \"/srv\"]\n",
            "waypost.toml:3:23: error: `/srv` is no root: a root is a `file:` URI",
        ),
        (
            "[providers.a]\ntype = \"rpc\"\nbase_url = \"http://a.test\"\n\
             roots = [\"file:///a\"]\n",
            "waypost.toml:4:10: error: `roots` go with an MCP server",
        ),
        (
            "[mcp.servers.a]\ncommnd = \"x\"\n",
            "waypost.toml:2:1: error: unknown key `commnd` in `[mcp.servers.a]`; \
             hint: did you mean `command`?",
        ),
        (
            "[mcp.servers.a]\ncommand = \"x\"\nheaders = { A = \"b\" }\n",
            "waypost.toml:1:14: error: `a`: `headers` goes with `url`, not with `command`",
        ),
        (
            "[mcp.servers.a]\nargs = [\"x\"]\n",
            "waypost.toml:1:14: error: `a`: `args` is there, but neither `command` nor `url`",
        ),
        (
            "[mcp.servers.a]\nurl = \"a.example\"\n",
            "waypost.toml:2:7: error: `a.example` is not the address of a server; hint: write it",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\nheaders = { \"A B\" = \"x\" }\n",
            "waypost.toml:3:21: error: the header `A B` cannot be sent",
        ),
        (
            "[mcp.servers.\"a b\"]\ncommand = \"x\"\n",
            "waypost.toml:1:14: error: `a b` cannot be the name of an upstream",
        ),
        (
            "[mcp.servers.a]\ncommand = \"x\"\nprefix = \"a b\"\n",
            "waypost.toml:3:10: error: `a b` cannot stand before the name of a tool",
        ),
        (
            "[mcp.servers.a]\ncommand = \"x\"\nrealms = [\"Acme\"]\n",
            "waypost.toml:3:11: error: `Acme` is not the name of a realm",
        ),
        ("[mcp]\nservers = 1\n", "waypost.toml:2:11: error: `servers` must be a table"),
        ("[providers.a]\nbase_url = \"x\"\n", "waypost.toml:1:12: error: `a`: `type` is missing"),
        (
            "[providers.a]\ntype = \"rset\"\n",
            "waypost.toml:1:12: error: `a`: `rset` is no type of provider; hint: did you mean",
        ),
        (
            "[providers.a]\ntype = \"rest\"\ndocument = \"x\"\nauth = { type = \"bearer\" }\n",
            "waypost.toml:4:8: error: `auth.token` is missing",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example?k=${NONE}\"\n",
            "waypost.toml:2:7: error: the variable `NONE` is not set",
        ),
    ] {
        let told = wrong(text, "");
        assert!(told[0].starts_with(expected), "{expected}\n{told:#?}");
    }
}

#[test]
fn mistakes_in_a_login_are_reported_with_their_line() {
    for (text, expected) in [
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = { client_idd = \"x\" }\n",
            "waypost.toml:3:11: error: unknown key `client_idd` in `[mcp.servers.a.oauth]`; \
             hint: did you mean `client_id`?",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = { colour = \"x\" }\n",
            "waypost.toml:3:11: error: unknown key `colour` in `[mcp.servers.a.oauth]`; \
             hint: known here: client_id, client_secret, scopes, grant",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = { grant = \"persn\" }\n",
            "waypost.toml:3:19: error: `persn` is not a kind of login; \
             hint: did you mean `person`?",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = { client_id = 1 }\n",
            "waypost.toml:3:23: error: `client_id` must be a text, and is a number",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = { grant = \"ourselves\" }\n",
            "waypost.toml:3:9: error: `grant` is `ourselves`, and that needs `client_id` and",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = { client_secret = \"x\" }\n",
            "waypost.toml:3:9: error: `client_secret` is there, and `client_id` is missing",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = { scopes = [\"a b\"] }\n",
            "waypost.toml:3:21: error: `a b` is no scope",
        ),
        (
            "[mcp.servers.a]\nurl = \"http://a.example\"\noauth = true\n",
            "waypost.toml:3:9: error: `oauth` must be a table, and is true or false",
        ),
        (
            "[mcp.servers.a]\ncommand = \"x\"\noauth = { client_id = \"x\" }\n",
            "waypost.toml:3:9: error: `oauth` goes with an MCP server behind a URL",
        ),
        (
            "[providers.a]\ntype = \"rpc\"\nbase_url = \"http://a.example\"\noauth = {}\n",
            "waypost.toml:4:9: error: `oauth` goes with an MCP server behind a URL",
        ),
    ] {
        let told = wrong(text, "");
        assert!(told[0].starts_with(expected), "{expected}\n{told:#?}");
    }
}

#[test]
fn layers_are_merged_key_by_key() {
    let below = "[mcp.servers.a]\nurl = \"http://a.example\"\nheaders = { A = \"1\", B = \"2\" }\n";
    let above = "[mcp.servers.a]\nheaders = { B = \"3\" }\ntrusted = true\n";
    let layers = [
        crate::layer::Layer::file("below.toml", below),
        crate::layer::Layer::file("above.toml", above),
    ];
    let config = Config::layered(&layers).unwrap();
    let written = WrittenEntries { ours: &config.upstreams, ..WrittenEntries::default() };
    let upstreams = Upstreams::combine(Path::new("/shop"), written, &|_| None).unwrap();
    let all = upstreams.configs(&|_| None).unwrap();
    let UpstreamKind::Http { headers, .. } = &all[0].kind else { panic!("{all:?}") };
    let told: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(told, [("A", "1"), ("B", "3")]);
    assert_eq!((all[0].origin.as_str(), all[0].trusted), ("above.toml:1", true));
}

/// How a login at each goes.
fn logins(all: &[UpstreamConfig]) -> Vec<OauthConfig> {
    let login = |config: &UpstreamConfig| match &config.kind {
        UpstreamKind::Http { oauth, .. } => oauth.clone(),
        other => panic!("{other:?}"),
    };
    all.iter().map(login).collect()
}

#[test]
fn a_login_is_configured_where_the_server_does_not_say_all() {
    let toml = "[mcp.servers.a]\nurl = \"https://a.example/mcp\"\n[mcp.servers.b]\n\
                url = \"https://b.example/mcp\"\n\
                oauth = { client_id = \"me\", client_secret = \"${TOKEN}\", grant = \"ourselves\", \
                scopes = [\"read\", \"write:all\"] }\n\
                [providers.c]\ntype = \"mcp\"\nbase_url = \"https://c.example/mcp\"\n\
                oauth = { client_id = \"you\", client_secret = \"${NONE:-}\" }\n";
    let all = configs(toml, "");
    let [a, b, c]: [OauthConfig; 3] = logins(&all).try_into().unwrap();
    assert_eq!(a, OauthConfig::default());
    assert_eq!((b.client_id.as_deref(), b.grant), (Some("me"), Grant::Ourselves));
    assert_eq!(b.client_secret.unwrap().expose(), "abc");
    assert_eq!(b.scopes.unwrap(), ["read", "write:all"]);
    assert_eq!((c.client_id.as_deref(), c.client_secret), (Some("you"), None));
    assert_eq!((c.scopes, c.grant), (None, Grant::Person));
    assert!(!format!("{all:?}").contains("abc"), "a secret is shown");
}

#[test]
fn a_login_is_written_in_the_words_of_clients_and_ours_are_added() {
    let json = r#"{"mcpServers": {
        "claude": {"url": "https://a.example/mcp", "oauth": {"clientId": "one",
            "callbackPort": 8080, "scopes": "read write"}},
        "cursor": {"url": "https://b.example/mcp", "auth": {"CLIENT_ID": "two",
            "CLIENT_SECRET": "${TOKEN}", "scopes": ["x"]}},
        "off": {"url": "https://c.example/mcp", "oauth": false},
        "other": {"url": "https://d.example/mcp", "auth": {"type": "bearer", "value": "t"}},
        "pipe": {"command": "x", "oauth": {"clientId": "idle"}}
    }}"#;
    let found = client_files::read(".mcp.json", json, None).unwrap();
    let warnings: Vec<String> = found.warnings.iter().map(Mistake::to_string).collect();
    assert!(warnings[0].contains("`callbackPort` of `mcpServers.claude.oauth`"), "{warnings:?}");
    assert!(warnings[1].contains("`mcpServers.other.auth` is not followed"), "{warnings:?}");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let toml = "[mcp.servers.claude]\noauth = { client_secret = \"${TOKEN}\" }\n";
    let all = configs(toml, json);
    let [claude, cursor, off, other]: [OauthConfig; 4] = logins(&all[..4]).try_into().unwrap();
    assert_eq!(claude.client_id.as_deref(), Some("one"));
    assert_eq!(claude.client_secret.unwrap().expose(), "abc", "ours is added to theirs");
    assert_eq!(claude.scopes.unwrap(), ["read", "write"]);
    assert_eq!(cursor.client_id.as_deref(), Some("two"));
    assert_eq!(cursor.client_secret.unwrap().expose(), "abc");
    assert_eq!((off, other), (OauthConfig::default(), OauthConfig::default()));
    let told = wrong("[mcp.servers.pipe]\noauth = { client_id = \"x\" }\n", json);
    assert!(told[0].starts_with("waypost.toml:2:9: error: `oauth` goes with"), "{told:?}");
    let slip = json.replace("clientId", "clientIdd");
    let told = wrong("", &slip);
    assert!(told[0].contains("unknown key `clientIdd` in `mcpServers.claude.oauth`"), "{told:?}");
}

#[test]
fn a_variable_names_one_upstream_by_its_url() {
    let variables =
        |name: &str| (name == ASSISTANT_URL).then(|| " http://127.0.0.1:8000/mcp ".to_owned());
    let nothing = WrittenEntries::default();
    let upstreams = Upstreams::combine(Path::new(""), nothing, &variables).unwrap();
    let all = upstreams.configs(&variables).unwrap();
    assert_eq!((all[0].name.as_str(), all[0].prefix.as_str()), ("assistant", ""));
    assert_eq!(all[0].origin, "environment ASSISTANT_MCP_URL");
    let facts = upstreams.entries()[0].facts();
    assert_eq!((facts.kind.as_str(), facts.target.as_str()), ("http", "http://127.0.0.1:8000/mcp"));
    let unset = |name: &str| (name == ASSISTANT_URL).then(String::new);
    assert!(Upstreams::combine(Path::new(""), nothing, &unset).unwrap().entries().is_empty());
}

#[test]
fn an_upstream_is_visible_in_the_realms_it_names() {
    let toml = "[mcp.servers.a]\ncommand = \"x\"\n[mcp.servers.b]\ncommand = \"x\"\n\
        realms = [\"acme\", \"shop-*\"]\n[providers.c]\ntype = \"mcp\"\n\
        base_url = \"https://c.example\"\nrealms = [\"default\", \"acme\"]\n";
    let config = Config::parse("waypost.toml", toml).unwrap();
    let written = WrittenEntries { ours: &config.upstreams, theirs: &[] };
    let upstreams = Upstreams::combine(Path::new("/shop"), written, &|_| None).unwrap();
    let prefixes = |realm: &str| upstreams.prefixes_for(&realm.into());
    assert_eq!(prefixes("default"), ["a.", "c."]);
    assert_eq!(prefixes("acme"), ["b.", "c."]);
    assert_eq!(prefixes("shop-eu"), ["b."]);
    assert_eq!(prefixes("other"), Vec::<String>::new());
}
