//! Rules for an agent card. They are applied to the card as it was sent, before our lenient reader.

use super::finding::{Report, none_of};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::Value;
use std::collections::BTreeSet;
use wire::a2a::card::AgentInterface;

/// What a security scheme can be.
const SCHEMES: [&str; 5] = [
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
];
/// Members of other versions that may stand beside those of 1.0, as they are spelt there.
const OF_OTHERS: [&str; 1] = ["service_identifier"];

/// Holds a card against them.
pub(super) fn check(card: &Value, report: &mut Report) {
    let whole = match card.is_object() {
        true => Ok(()),
        false => Err("it is something else".to_owned()),
    };
    let is_object = whole.is_ok();
    report.must("4.4.1", "the card is a JSON object", whole);
    if !is_object {
        return;
    }
    let texts = ["name", "description", "version"];
    let missing = texts.iter().filter_map(|name| lacks_text(card, name)).collect();
    report.must("4.4.1", "the card has a name, a description and a version", none_of(missing));
    let capabilities = match card["capabilities"].is_object() {
        true => Ok(()),
        false => Err("`capabilities` is no object".to_owned()),
    };
    report.must("4.4.1", "the card has capabilities", capabilities);
    let lists = ["supportedInterfaces", "skills", "defaultInputModes", "defaultOutputModes"];
    let empty = |name: &&str| match card[*name].as_array() {
        Some(items) if !items.is_empty() => None,
        _ => Some(format!("`{name}` has no entry")),
    };
    let empty = lists.iter().filter_map(empty).collect();
    report.must("5.7", "required lists have at least one entry", none_of(empty));
    let snake = card.as_object().into_iter().flatten().map(|(name, _)| name);
    let snake = snake.filter(|name| name.contains('_') && !OF_OTHERS.contains(&name.as_str()));
    let snake = snake.map(|name| format!("`{name}`")).collect();
    report.must("5.5", "members are written in camelCase", none_of(snake));
    interfaces(card, report);
    skills(card, report);
    security(card, report);
    signatures(card, report);
}

fn lacks_text(object: &Value, name: &str) -> Option<String> {
    match object[name].as_str() {
        Some(text) if !text.is_empty() => None,
        _ => Some(format!("there is no `{name}`")),
    }
}

/// The objects of a list, each with how it is named in complaints.
fn listed<'c>(card: &'c Value, name: &str) -> Vec<(String, &'c Value)> {
    let items = card[name].as_array().into_iter().flatten().enumerate();
    items.map(|(index, item)| (format!("/{name}/{index}"), item)).collect()
}

fn interfaces(card: &Value, report: &mut Report) {
    let mut wrong = Vec::new();
    let mut patched = Vec::new();
    let mut plain = Vec::new();
    for (place, interface) in listed(card, "supportedInterfaces") {
        let names = ["url", "protocolBinding", "protocolVersion"];
        let missing = names.iter().filter_map(|name| lacks_text(interface, name));
        wrong.extend(missing.map(|what| format!("{place}: {what}")));
        let version = interface["protocolVersion"].as_str().unwrap_or_default();
        if version.split('.').count() > 2 {
            patched.push(format!("{place}: `{version}`"));
        }
        let written = interface["url"].as_str().unwrap_or_default();
        let binding = interface["protocolBinding"].as_str().unwrap_or_default();
        let url = written.to_owned();
        let protocol_binding = binding.to_owned();
        let interface = AgentInterface { url, protocol_binding, ..AgentInterface::default() };
        match Url::parse(&interface.address()) {
            Ok(url) if url.scheme() == "http" && !is_local(&url) => {
                plain.push(format!("{place}: `{written}`"));
            }
            Ok(_) => {}
            Err(error) if !written.is_empty() => wrong.push(format!("{place}: `url`: {error}")),
            Err(_) => {}
        }
    }
    report.must("4.4.6", "an interface has a url, a binding and a version", none_of(wrong));
    report.should("3.6", "versions have no patch number", none_of(patched));
    report.must("7.1", "what is in production is encrypted", none_of(plain));
}

fn is_local(url: &Url) -> bool {
    url.host_str().is_some_and(project::upstream_entries::is_loopback)
}

fn skills(card: &Value, report: &mut Report) {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (place, skill) in listed(card, "skills") {
        let missing = ["id", "name", "description"];
        let missing = missing.iter().filter_map(|name| lacks_text(skill, name));
        wrong.extend(missing.map(|what| format!("{place}: {what}")));
        if skill["tags"].as_array().is_none_or(Vec::is_empty) {
            wrong.push(format!("{place}: `tags` has no entry"));
        }
        let id = skill["id"].as_str().unwrap_or_default();
        if !id.is_empty() && !seen.insert(id) {
            wrong.push(format!("{place}: `{id}` is there twice"));
        }
    }
    report.must("4.4.5", "a skill has its own id, a name, a description and tags", none_of(wrong));
}

fn security(card: &Value, report: &mut Report) {
    let schemes = card["securitySchemes"].as_object();
    let mut wrong = Vec::new();
    for (name, scheme) in schemes.into_iter().flatten() {
        let known = SCHEMES.iter().filter(|kind| scheme.get(**kind).is_some()).count();
        // A card of several versions has members of 0.3 beside them.
        if known != 1 {
            wrong.push(format!("`{name}` is {known} of the known schemes"));
        }
    }
    report.must("4.5.1", "a security scheme is exactly one of those known", none_of(wrong));
    let mut unknown = Vec::new();
    for (place, requirement) in listed(card, "securityRequirements") {
        let named = requirement["schemes"].as_object().into_iter().flatten();
        let missing = named.filter(|(name, _)| schemes.is_none_or(|all| !all.contains_key(*name)));
        unknown.extend(missing.map(|(name, _)| format!("{place}: `{name}`")));
    }
    report.must("4.4.1", "requirements name schemes of the card", none_of(unknown));
}

fn signatures(card: &Value, report: &mut Report) {
    let mut wrong = Vec::new();
    let mut untyped = Vec::new();
    for (place, signature) in listed(card, "signatures") {
        wrong.extend(lacks_text(signature, "signature").map(|what| format!("{place}: {what}")));
        let header = signature["protected"].as_str().unwrap_or_default();
        let header = URL_SAFE_NO_PAD.decode(header).ok();
        let header: Option<Value> = header.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let Some(header) = header else {
            wrong.push(format!("{place}: `protected` is no JSON in base64url"));
            continue;
        };
        let missing = ["alg", "kid"].iter().filter_map(|name| lacks_text(&header, name));
        wrong.extend(missing.map(|what| format!("{place}: {what} in the header")));
        if header["typ"] != "JOSE" {
            untyped.push(format!("{place}: `typ` is {}", header["typ"]));
        }
    }
    report.must("8.4.2", "a signature has a protected header with `alg` and `kid`", none_of(wrong));
    report.should("8.4.2", "the header of a signature has the type `JOSE`", none_of(untyped));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({"name": "A", "description": "Does.", "version": "1", "capabilities": {},
            "supportedInterfaces": [{"url": "https://a.test/", "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0"}],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}],
            "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header",
                "name": "X"}}},
            "securityRequirements": [{"schemes": {"key": {}}}]})
    }

    /// The sections and words of what does not hold.
    fn broken(card: &Value) -> Vec<(&'static str, String)> {
        let mut report = Report::default();
        check(card, &mut report);
        let wrong = report.findings.iter().filter(|finding| finding.word() != "ok");
        wrong.map(|finding| (finding.section, finding.seen().to_owned())).collect()
    }

    #[test]
    fn a_valid_card_has_no_finding() {
        let found = broken(&good());
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn an_address_of_grpc_is_a_host_and_a_port() {
        let mut card = good();
        let interface = |url: &str| {
            json!({"url": url, "protocolBinding": "GRPC",
            "protocolVersion": "1.0"})
        };
        for url in ["127.0.0.1:8420", "localhost:8420", "https://a.test", "a.test:443"] {
            card["supportedInterfaces"][0] = interface(url);
            assert!(broken(&card).is_empty(), "{url}");
        }
        card["supportedInterfaces"][0] = interface("a.test:80");
        assert_eq!(broken(&card)[0].0, "7.1", "not encrypted");
    }

    #[test]
    fn each_fault_is_reported_with_its_section() {
        let header = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for (pointer, value, section, told) in [
            ("/name", json!(""), "4.4.1", "`name`"),
            ("/capabilities", json!([]), "4.4.1", "no object"),
            ("/skills", json!([]), "5.7", "`skills`"),
            ("/skills/0/tags", json!([]), "4.4.5", "/skills/0: `tags`"),
            ("/supportedInterfaces/0/url", json!("a"), "4.4.6", "`url`"),
            ("/supportedInterfaces/0/url", json!("http://a.test"), "7.1", "http://a.test"),
            ("/supportedInterfaces/0/protocolVersion", json!("1.0.1"), "3.6", "1.0.1"),
            ("/securityRequirements/0/schemes", json!({"other": {}}), "4.4.1", "`other`"),
            ("/securitySchemes/key", json!({"x": {}}), "4.5.1", "`key` is 0"),
            ("/supported_interfaces", json!([]), "5.5", "supported_interfaces"),
            ("/signatures", json!([{"protected": "?", "signature": "x"}]), "8.4.2", "base64url"),
            (
                "/signatures",
                json!([{"protected": header(r#"{"alg":"ES256","typ":"JOSE"}"#),
                    "signature": "x"}]),
                "8.4.2",
                "`kid`",
            ),
        ] {
            let mut card = good();
            match card.pointer_mut(pointer) {
                Some(place) => *place = value,
                None => card[&pointer[1..]] = value,
            }
            let found = broken(&card);
            assert_eq!(found.len(), 1, "{pointer}: {found:?}");
            assert!(found[0].0 == section && found[0].1.contains(told), "{pointer}: {found:?}");
        }
        assert_eq!(broken(&json!([]))[0].0, "4.4.1");
    }
}
