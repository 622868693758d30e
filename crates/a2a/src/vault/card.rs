//! The card of AgentVault: a document of its own, for the clients that read no other. Strangers see
//! in it what they see in the card of A2A.

use super::super::card::{inputs, sent, shown};
use super::super::error::{Result, no_realm};
use super::super::incoming_request::IncomingRequest;
use super::super::skills::{self, Skill};
use crate::state::A2a;
use axum::response::Response;
use edge::request::answer::documents::Document;
use kernel::values::canonical;
use kernel::values::ids::RealmId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wire::a2a::value::Timestamp;
use wire::a2a::vault::{self, AgentCard, AuthScheme, Capabilities, Provider};

/// The version of the card's form, and of the profile.
const VERSION: &str = "1.0";
/// What stands in the address of another realm than the usual one, before its name.
const OTHER_REALM: &str = "?realm=";
/// Addresses of this machine: the profile's clients take them only by this name.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// The card of a realm for who sends this request; an error where it has none for strangers.
pub(super) fn card(arrived: &IncomingRequest, realm: &RealmId) -> Result<AgentCard> {
    let a2a = &arrived.a2a;
    // Who may not enter the realm is a stranger there.
    let client = arrived.caller.as_ref().and_then(|_| arrived.client(realm).ok());
    let is_usual = *realm == a2a.serving.realm;
    let skills = match &client {
        Some(client) => skills::visible(a2a, &client.caller),
        None => skills::public(a2a, realm),
    };
    if client.is_none() && !is_usual && skills.is_empty() {
        // As if there were no such realm.
        return Err(no_realm());
    }
    let base = base(&arrived.base);
    let address = format!("{base}/a2a");
    let url = if is_usual { address } else { format!("{address}{OTHER_REALM}{realm}") };
    let card = AgentCard {
        schema_version: VERSION.to_owned(),
        human_readable_id: a2a.serving.vault_id_of(realm),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: a2a.serving.name.clone(),
        description: a2a.serving.description.clone(),
        url,
        provider: Provider { name: a2a.serving.name.clone(), ..Provider::default() },
        capabilities: Capabilities {
            a2a_version: VERSION.to_owned(),
            supported_message_parts: ["text", "file", "data"].map(str::to_owned).to_vec(),
            supports_push_notifications: Some(a2a.push.is_some()),
            ..Capabilities::default()
        },
        auth_schemes: schemes(a2a, &base),
        skills: of_card(&skills),
        tags: tags(&skills),
        last_updated: Some(Timestamp(a2a.server.started.0)),
    };
    Ok(if is_usual { with_file(a2a, card) } else { card })
}

/// The same with what the operator's file says. Where the server is and what it asks for is never
/// the file's.
fn with_file(a2a: &A2a, card: AgentCard) -> AgentCard {
    let mut members = json!(card);
    for (name, value) in a2a.serving.vault_card.iter().filter(|(name, _)| is_free(name)) {
        members[name] = value.clone();
    }
    // What does not fit the form is left as it was.
    serde_json::from_value(members).unwrap_or(card)
}

fn is_free(name: &str) -> bool {
    !matches!(name, "url" | "authSchemes" | "capabilities")
}

/// A card as it is sent, with what the file has beside the members that we know.
pub(super) fn written(a2a: &A2a, card: &AgentCard) -> Value {
    let mut written = json!(card);
    // The file is about the realm of the card at its own address.
    let is_usual = !card.url.contains(OTHER_REALM);
    let more = a2a.serving.vault_card.iter().filter(|(name, _)| is_usual && is_free(name));
    for (name, value) in more {
        if written.get(name).is_none() {
            written[name] = value.clone();
        }
    }
    written
}

fn of_card(skills: &[Skill]) -> Vec<vault::Skill> {
    let schemas = |id: &str| skills.iter().find(|skill| skill.id() == id);
    let shown = shown(skills).into_iter();
    let skill = shown.map(|skill| {
        let known = schemas(&skill.id);
        vault::Skill {
            input_schema: known.map(|known| (*known.input).clone()),
            output_schema: known.and_then(|known| known.output.as_deref().cloned()),
            id: skill.id,
            name: skill.name,
            description: skill.description,
        }
    });
    skill.collect()
}

/// The tags of all skills: the profile's have none.
fn tags(skills: &[Skill]) -> Vec<String> {
    let tags: BTreeSet<String> = skills.iter().flat_map(|skill| skill.shown().tags).collect();
    tags.into_iter().collect()
}

/// A server in local mode asks for no credential. Clients take the first that they have.
fn schemes(a2a: &A2a, base: &str) -> Vec<AuthScheme> {
    if a2a.server.entrance.base().is_none() {
        return vec![AuthScheme { scheme: "none".to_owned(), ..AuthScheme::default() }];
    }
    let scheme = |scheme: &str, description: &str| AuthScheme {
        scheme: scheme.to_owned(),
        description: Some(description.to_owned()),
        service_identifier: Some(a2a.serving.service_identifier.clone()),
        ..AuthScheme::default()
    };
    let oauth = AuthScheme {
        token_url: Some(format!("{base}/oauth/token")),
        ..scheme("oauth2", "The id of a key and the key itself, for a token")
    };
    vec![scheme("apiKey", "A key of this server, as `X-Api-Key`"), oauth]
}

/// The address with the name that the profile's clients take for this machine.
fn base(base: &str) -> String {
    let Some((scheme, host)) = base.split_once("://") else { return base.to_owned() };
    let is_here = |name: &&str| {
        let rest = host.strip_prefix(*name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    match LOOPBACK.into_iter().find(is_here) {
        Some(name) => format!("{scheme}://localhost{}", &host[name.len()..]),
        None => base.to_owned(),
    }
}

/// `GET /agent-card.json`: open to strangers, and kept by clients for a while.
pub(super) fn public(arrived: &IncomingRequest) -> Result<Response> {
    let a2a = &arrived.a2a;
    let realm = &a2a.serving.realm;
    let client = arrived.caller.as_ref().and_then(|_| arrived.client(realm).ok());
    let caller = client.as_ref().map(|client| &*client.caller);
    let document = a2a.vault_cards.get(inputs(a2a, &arrived.base, realm, caller), || {
        card(arrived, realm).map(|card| {
            let card = written(a2a, &card);
            Document::new(&card, canonical::digest(&card).as_str())
        })
    })?;
    let is_private = a2a.server.entrance.base().is_some() && arrived.caller.is_some();
    Ok(sent(&document, arrived, is_private))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_the_name_that_clients_take() {
        for (given, told) in [
            ("http://127.0.0.1:8420", "http://localhost:8420"),
            ("http://[::1]:8420", "http://localhost:8420"),
            ("https://localhost", "https://localhost"),
            ("https://agents.test", "https://agents.test"),
            ("http://127.0.0.100:1", "http://127.0.0.100:1"),
            ("http://localhost.test", "http://localhost.test"),
            ("", ""),
        ] {
            assert_eq!(base(given), told);
        }
    }
}
