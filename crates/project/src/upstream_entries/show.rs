//! An upstream as `/api/v1` and the command line show it. What went wrong is said in words of other
//! libraries and other servers, so what was given to the upstream is taken out of them.

use super::entry::Facts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use upstreams::{
    CardPlace, Document, RestAuth, Secret, UpstreamConfig, UpstreamKind, UpstreamStatus,
};
use wire::mcp::MODERN;
use wire::rest::{Fault, Upstream, UpstreamAgent, UpstreamServer};

/// The state of one that is left alone.
const DISABLED: &str = "disabled";

/// What is shown of an upstream, and how it is while it runs.
pub fn shown(facts: &Facts, running: Option<(&UpstreamConfig, UpstreamStatus)>) -> Upstream {
    let upstream = as_written(facts);
    let Some((config, status)) = running else { return upstream };
    let era = |version: &String| if version == MODERN { "modern" } else { "legacy" }.to_owned();
    let count = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
    Upstream {
        state: status.state.word().to_owned(),
        since: Some(status.since.rfc3339()),
        // Only MCP has them.
        era: status.version.as_ref().filter(|_| facts.era.is_some()).map(era),
        version: status.version,
        server: status.server.as_ref().and_then(server),
        agent: status.agent.map(|agent| UpstreamAgent {
            card_digest: agent.card.as_str().to_owned(),
            signed: agent.is_signed,
            address: agent.address,
            card_changes: agent.changes,
        }),
        tools: count(status.tools),
        prompts: count(status.prompts),
        resources: count(status.resources),
        restarts: status.restarts,
        last_error: status.last_error.map(|fault| {
            let kernel::values::fault::Fault { name, message, hint, .. } = cleaned(fault, config);
            Fault { name, message, hint, detail: None }
        }),
        ..upstream
    }
}

/// What went wrong with an upstream, without what it was given. A detail could have that anywhere,
/// and is left out.
pub fn cleaned(
    fault: kernel::values::fault::Fault,
    config: &UpstreamConfig,
) -> kernel::values::fault::Fault {
    kernel::values::fault::Fault {
        message: without_secrets(fault.message, config),
        hint: fault.hint.map(|hint| without_secrets(hint, config)),
        detail: None,
        ..fault
    }
}

/// Shorter ones are no secrets, and may be part of any word.
const SECRET_CHARS_MIN: usize = 6;

fn without_secrets(text: String, config: &UpstreamConfig) -> String {
    let (given, addresses, auth, secret) = match &config.kind {
        UpstreamKind::Http { url, headers, oauth } => {
            (headers, [Some(url), None], None, oauth.client_secret.as_ref())
        }
        UpstreamKind::Rpc { url, headers, .. } => (headers, [Some(url), None], None, None),
        UpstreamKind::Stdio { env, .. } => (env, [None, None], None, None),
        UpstreamKind::Rest(rest) => {
            let document = match &rest.document {
                Document::Url(url) => Some(url),
                Document::File(_) => None,
            };
            (&rest.headers, [rest.base_url.as_ref(), document], rest.auth.as_ref(), None)
        }
        UpstreamKind::A2a(agent) => {
            let card = match &agent.card {
                CardPlace::Url(url) | CardPlace::Registry { url, .. } => Some(url),
                CardPlace::File(_) => None,
            };
            let secret = agent.client.as_ref().map(|client| &client.secret);
            (&agent.headers, [card, None], agent.auth.as_ref(), secret)
        }
    };
    let of_auth = auth.map(shown_by).unwrap_or_default();
    let mut secrets = values(given);
    secrets.extend(addresses.into_iter().flatten().flat_map(|url| of_url(url)));
    secrets.extend(of_auth.iter().map(String::as_str).chain(secret.map(Secret::expose)));
    secrets.retain(|secret| secret.chars().count() >= SECRET_CHARS_MIN);
    // One may be the beginning of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.iter().fold(text, |text, secret| text.replace(secret, "***"))
}

/// The values, and what follows the scheme of those that have one: `Bearer ..`.
fn values(named: &[(String, Secret)]) -> Vec<&str> {
    let whole = named.iter().map(|(_, secret)| secret.expose());
    let tokens = whole.clone().filter_map(|value| Some(value.split_once(' ')?.1));
    whole.chain(tokens).collect()
}

/// What `auth` shows, as it is written and as it is sent.
fn shown_by(auth: &RestAuth) -> Vec<String> {
    match auth {
        RestAuth::ApiKey { value: secret, .. } | RestAuth::Bearer(secret) => {
            vec![secret.expose().to_owned()]
        }
        RestAuth::Basic { user, password } => {
            let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
            vec![password.expose().to_owned(), pair]
        }
    }
}

/// The password and the query of an address, and each value in that. One who has no password may be
/// a key.
fn of_url(url: &str) -> Vec<&str> {
    let query = url.split_once('?').map(|(_, query)| query);
    let pairs = query.into_iter().flat_map(|query| query.split('&'));
    let values = pairs.filter_map(|pair| Some(pair.split_once('=')?.1));
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next();
    let user = host.and_then(|host| host.rsplit_once('@')).map(|(user, _)| user);
    let password = user.map(|user| user.split_once(':').map_or(user, |(_, password)| password));
    query.into_iter().chain(values).chain(password).collect()
}

fn as_written(facts: &Facts) -> Upstream {
    let Facts { name, prefix, kind, target, origin, headers, env, trusted, journal, .. } =
        facts.clone();
    Upstream {
        name,
        prefix,
        kind: kind.to_owned(),
        target,
        origin,
        trusted,
        journal,
        timeout_ms: facts.timeout_ms,
        headers,
        env,
        state: DISABLED.to_owned(),
        era_setting: facts.era.map(|era| era.word().to_owned()),
        ..Upstream::default()
    }
}

/// Only what a person reads: the rest is whatever the server likes.
fn server(said: &Value) -> Option<UpstreamServer> {
    let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(UpstreamServer { name: text("name")?, version: text("version") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use upstreams::{EraSetting, KeyPlace, OauthConfig, RestConfig};

    fn config(kind: UpstreamKind) -> UpstreamConfig {
        UpstreamConfig {
            name: "a".to_owned(),
            prefix: "a.".to_owned(),
            kind,
            trusted: false,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            roots: Vec::new(),
            origin: "waypost.toml:1".to_owned(),
        }
    }

    #[test]
    fn secrets_of_a_rest_server_are_masked_in_its_errors() {
        let given = |auth: RestAuth| {
            let document = Document::Url("http://a.example/doc?key=hunter1".to_owned());
            let headers = vec![("X".to_owned(), Secret::new("Token hunter2"))];
            let rest = RestConfig { auth: Some(auth), headers, ..RestConfig::new(document) };
            let text = "?key=hunter1, hunter2, hunter2-and-more".to_owned();
            without_secrets(text, &config(UpstreamKind::Rest(rest)))
        };
        let secret = || Secret::new("hunter2-and-more");
        let name = "key".to_owned();
        let place = KeyPlace::Query;
        for auth in [
            RestAuth::ApiKey { name, place, value: secret() },
            RestAuth::Bearer(secret()),
            RestAuth::Basic { user: "me".to_owned(), password: secret() },
        ] {
            assert_eq!(given(auth), "?***, ***, ***");
        }
    }

    #[test]
    fn an_encoded_password_is_masked_as_well() {
        let auth = RestAuth::Basic { user: "me".to_owned(), password: Secret::new("pass:word") };
        let document = Document::File("a.yaml".into());
        let rest = RestConfig { auth: Some(auth), ..RestConfig::new(document) };
        let text = "no user of `Basic bWU6cGFzczp3b3Jk` has pass:word".to_owned();
        let told = without_secrets(text, &config(UpstreamKind::Rest(rest)));
        assert_eq!(told, "no user of `Basic ***` has ***");
    }

    #[test]
    fn secrets_of_an_upstream_are_masked_in_its_errors() {
        let config = config(UpstreamKind::Http {
            url: "http://u:hunter2@a.example/mcp?key=hunter3".to_owned(),
            headers: vec![("X".to_owned(), Secret::new("hunter4"))],
            oauth: OauthConfig {
                client_id: Some("client".to_owned()),
                client_secret: Some("hunter5".into()),
                ..OauthConfig::default()
            },
        });
        let text = "no answer at http://u:hunter2@a.example/mcp?key=hunter3 (hunter4): hunter5";
        assert_eq!(
            without_secrets(text.to_owned(), &config),
            "no answer at http://u:***@a.example/mcp?*** (***): ***"
        );
        assert!(of_url("http://a.example/x@y").is_empty());
        let told = "the key hunter3 is unknown".to_owned();
        assert_eq!(without_secrets(told, &config), "the key *** is unknown");
        assert_eq!(of_url("http://key@a.example/mcp?a=b&c=d"), ["a=b&c=d", "b", "d", "key"]);
    }
}
