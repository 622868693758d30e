//! Parses agent cards: the interfaces that a client can use, and the skills. A card may contain the
//! members of several protocol versions side by side.

use super::schemes::Schemes;
use serde_json::{Value, json};
use wire::a2a::card::{AgentCard, AgentInterface, AgentSkill};
use wire::a2a::v03::CardAddresses;
use wire::a2a::vault::AgentCard as VaultCard;
use wire::a2a::{
    ASKS_EXTENSION, GRPC, HTTP_JSON, JSONRPC, SKILLS_EXTENSION, VERSION, VERSION_UNNAMED,
};

/// The id and the only tag of an entry in the place of skills that are not shown.
const EXTENDED: &str = "extended";

/// In which words an agent is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// 1.0 over JSON-RPC.
    Rpc,
    /// 1.0 over HTTP.
    Rest,
    /// 1.0 over gRPC.
    Grpc,
    /// 0.3 over JSON-RPC.
    OldRpc,
    /// 0.3 over HTTP.
    OldRest,
    /// AgentVault's profile.
    Vault,
}

impl Dialect {
    /// The version and the binding, for people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Dialect::Rpc => "A2A 1.0, JSON-RPC",
            Dialect::Rest => "A2A 1.0, HTTP+JSON",
            Dialect::Grpc => "A2A 1.0, gRPC",
            Dialect::OldRpc => "A2A 0.3, JSON-RPC",
            Dialect::OldRest => "A2A 0.3, HTTP+JSON",
            Dialect::Vault => "AgentVault",
        }
    }

    /// The dialect of an interface, if we speak it.
    fn of(binding: &str, version: &str) -> Option<Self> {
        let mut numbers = version.split('.');
        let version = format!("{}.{}", numbers.next()?, numbers.next()?);
        match (version.as_str(), binding) {
            (VERSION, JSONRPC) => Some(Dialect::Rpc),
            (VERSION, HTTP_JSON) => Some(Dialect::Rest),
            (VERSION, GRPC) => Some(Dialect::Grpc),
            (VERSION_UNNAMED, JSONRPC) => Some(Dialect::OldRpc),
            (VERSION_UNNAMED, HTTP_JSON) => Some(Dialect::OldRest),
            _ => None,
        }
    }

    fn is_of_1_0(self) -> bool {
        matches!(self, Dialect::Rpc | Dialect::Rest | Dialect::Grpc)
    }
}

/// Whose word counts of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CardTrust {
    All,
    /// Only signed members, which are those of 1.0.
    Signed,
}

/// A card, as far as we use it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Card {
    /// The agent's name.
    pub(super) name: String,
    /// Its own version.
    pub(super) version: String,
    pub(super) dialect: Dialect,
    /// Where, as the card says it.
    pub(super) url: String,
    /// The tenant of every request; may be empty.
    pub(super) tenant: String,
    pub(super) skills: Vec<Skill>,
    /// Whether it shows none of its skills to us now, with an entry in their place.
    pub(super) is_withholding: bool,
    /// Whether callers with credentials get another card.
    pub(super) has_extended: bool,
    /// The extensions of ours that it knows.
    pub(super) extensions: Vec<&'static str>,
    pub(super) schemes: Schemes,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Skill {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) tags: Vec<String>,
    /// JSON Schema of what it takes, if it says so.
    pub(super) input: Option<Value>,
}

/// Whether an entry only stands for skills that a card does not show: a card must have one, and
/// Waypost names it so. It cannot be called.
fn is_placeholder(skill: &Skill) -> bool {
    skill.id == EXTENDED && skill.tags == [EXTENDED]
}

/// Whether a card says that callers with credentials get another one, in the words of 1.0 or 0.3.
pub(super) fn offers_extended(document: &Value) -> bool {
    document["capabilities"]["extendedAgentCard"] == true
        || document["supportsAuthenticatedExtendedCard"] == true
}

/// Where an agent is spoken to.
struct CardEndpoint {
    dialect: Dialect,
    url: String,
    tenant: String,
}

impl Card {
    /// Reads a card, for a client that may go to what `permits` lets pass; what is wrong with it,
    /// if something is.
    pub(super) fn read(
        document: &Value,
        believed: CardTrust,
        permits: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let card: AgentCard = read(document)?;
        let chosen = match chosen(&card.supported_interfaces, permits) {
            Some(chosen) => chosen,
            None if believed == CardTrust::Signed => return Err(nothing_spoken(&card)),
            None => older(document)?.ok_or_else(|| nothing_spoken(&card))?,
        };
        let listed = match chosen.dialect {
            Dialect::Vault => vault_skills(document)?,
            _ => card.skills.iter().map(|skill| listed(&card, skill)).collect(),
        };
        let knows = |uri: &&'static str| {
            card.capabilities.extensions.iter().any(|known| known.uri == **uri)
        };
        let extensions = [SKILLS_EXTENSION, ASKS_EXTENSION].into_iter().filter(knows).collect();
        let required = card.capabilities.extensions.iter().find(|known| {
            known.required && ![SKILLS_EXTENSION, ASKS_EXTENSION].contains(&known.uri.as_str())
        });
        if let Some(required) = required {
            return Err(format!("it requires the extension `{}`", required.uri));
        }
        let CardEndpoint { dialect, url, tenant } = chosen;
        let named = listed.into_iter().filter(|skill| !skill.id.is_empty());
        let (placeholders, skills): (Vec<Skill>, Vec<Skill>) = named.partition(is_placeholder);
        let is_withholding = !placeholders.is_empty();
        let version = match card.version.as_str() {
            "" => document["agentVersion"].as_str().unwrap_or_default().to_owned(),
            version => version.to_owned(),
        };
        let schemes = schemes(&card, document, dialect, believed)?;
        let name = card.name;
        let has_extended = offers_extended(document);
        Ok(Self {
            name,
            version,
            dialect,
            url,
            tenant,
            skills,
            is_withholding,
            has_extended,
            extensions,
            schemes,
        })
    }

    /// The same agent, with the skills of its card for callers with credentials. That card leads
    /// nowhere: where and how the agent is spoken to stays as it is.
    #[must_use]
    pub(super) fn with_skills_of(self, extended: Card) -> Self {
        let Card { skills, is_withholding, extensions, .. } = extended;
        Self { skills, is_withholding, extensions, ..self }
    }

    /// Its `serverInfo`, as an upstream shows it.
    pub(super) fn server(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }
}

fn read<T: serde::de::DeserializeOwned>(document: &Value) -> Result<T, String> {
    serde_json::from_value(document.clone()).map_err(|error| format!("it is no card: {error}"))
}

/// The first interface of 1.0 that we speak and may go to, else the first of 0.3: their order is
/// the agent's preference. Where we may go to none, the first says why.
fn chosen(interfaces: &[AgentInterface], permits: impl Fn(&str) -> bool) -> Option<CardEndpoint> {
    let mut spoken: Vec<CardEndpoint> = interfaces
        .iter()
        .filter_map(|interface| {
            let AgentInterface { protocol_binding, tenant, protocol_version, .. } = interface;
            let dialect = Dialect::of(protocol_binding, protocol_version)?;
            let url = interface.address().into_owned();
            Some(CardEndpoint { dialect, url, tenant: tenant.clone() })
        })
        .collect();
    // The order within a version stays.
    spoken.sort_by_key(|chosen| !chosen.dialect.is_of_1_0());
    let first = spoken.iter().position(|chosen| permits(&chosen.url)).unwrap_or(0);
    spoken.into_iter().nth(first)
}

/// Where the members of 0.3 or of AgentVault's profile say that it is.
fn older(document: &Value) -> Result<Option<CardEndpoint>, String> {
    let old: CardAddresses = read(document)?;
    if old.url.is_empty() {
        return Ok(None);
    }
    if document.get("humanReadableId").is_some() && document.get("authSchemes").is_some() {
        let dialect = Dialect::Vault;
        let tenant = String::new();
        return Ok(Some(CardEndpoint { dialect, url: old.url, tenant }));
    }
    // What 0.2 has of this is the same.
    if !["0.2", "0.3"].iter().any(|version| old.protocol_version.starts_with(version)) {
        return Ok(None);
    }
    let preferred = match old.preferred_transport.as_str() {
        "" => JSONRPC,
        transport => transport,
    };
    let first = (old.url.as_str(), preferred);
    let others = old.additional_interfaces.iter();
    let others = others.map(|other| (other.url.as_str(), other.transport.as_str()));
    let chosen = std::iter::once(first).chain(others).find_map(|(url, transport)| {
        let dialect = Dialect::of(transport, VERSION_UNNAMED)?;
        Some(CardEndpoint { dialect, url: url.to_owned(), tenant: String::new() })
    });
    Ok(chosen)
}

fn nothing_spoken(card: &AgentCard) -> String {
    let named = card.supported_interfaces.iter();
    let named: Vec<String> = named
        .map(|interface| format!("`{} {}`", interface.protocol_binding, interface.protocol_version))
        .collect();
    let named = if named.is_empty() { "nothing".to_owned() } else { named.join(", ") };
    format!(
        "it speaks {named}, and we speak JSONRPC and HTTP+JSON of 1.0 and 0.3, and GRPC of 1.0, \
         with agents"
    )
}

fn listed(card: &AgentCard, skill: &AgentSkill) -> Skill {
    let of_ours = card.capabilities.extensions.iter().find(|known| known.uri == SKILLS_EXTENSION);
    let schemas = of_ours.and_then(|known| known.params.as_ref()?.get("skills")?.get(&skill.id));
    let input = schemas.and_then(|schemas| schemas.get("input")?.as_str());
    Skill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: described(&skill.description, &skill.examples),
        tags: skill.tags.clone(),
        input: input.and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object),
    }
}

/// Security schemes. Only members of 1.0 are signed.
fn schemes(
    card: &AgentCard,
    document: &Value,
    dialect: Dialect,
    believed: CardTrust,
) -> Result<Schemes, String> {
    if dialect == Dialect::Vault {
        return Ok(Schemes::of_vault(&read(document)?));
    }
    let schemes = Schemes::of(card);
    let counts = believed == CardTrust::All && schemes.is_empty();
    Ok(if counts { Schemes::of_0_3(document) } else { schemes })
}

fn vault_skills(document: &Value) -> Result<Vec<Skill>, String> {
    let card: VaultCard = read(document)?;
    let skill = |skill: &wire::a2a::vault::Skill| Skill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: card.tags.clone(),
        input: skill.input_schema.clone().filter(Value::is_object),
    };
    Ok(card.skills.iter().map(skill).collect())
}

fn described(description: &str, examples: &[String]) -> String {
    match examples.is_empty() {
        true => description.to_owned(),
        false => format!("{description}\nExamples: {}", examples.join(" | ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(binding: &str, version: &str) -> Value {
        json!({"url": format!("https://a.test/{binding}/{version}"), "protocolBinding": binding,
            "protocolVersion": version, "tenant": "t"})
    }

    fn choose(interfaces: &[Value]) -> Result<Dialect, String> {
        let document = json!({"name": "a", "supportedInterfaces": interfaces});
        Card::read(&document, CardTrust::All, |_| true).map(|card| card.dialect)
    }

    #[test]
    fn the_first_supported_interface_is_chosen_with_1_0_before_0_3() {
        let rpc = interface(JSONRPC, "1.0");
        let rest = interface(HTTP_JSON, "1.0.1");
        let old = interface(JSONRPC, "0.3");
        let older = interface(HTTP_JSON, "0.3.0");
        let others = [interface(GRPC, "0.3"), interface(JSONRPC, "2.0"), interface("x", "1")];
        let grpc = interface(GRPC, "1.0");
        assert_eq!(choose(&[rest.clone(), rpc.clone()]), Ok(Dialect::Rest));
        assert_eq!(choose(&[grpc.clone(), rpc.clone()]), Ok(Dialect::Grpc));
        assert_eq!(choose(&[rpc.clone(), grpc.clone()]), Ok(Dialect::Rpc));
        assert_eq!(choose(&[others.to_vec(), vec![grpc]].concat()), Ok(Dialect::Grpc));
        assert_eq!(choose(&[old.clone(), rpc]), Ok(Dialect::Rpc));
        assert_eq!(choose(&[others.to_vec(), vec![older, old]].concat()), Ok(Dialect::OldRest));
        let told = choose(&others).unwrap_err();
        assert!(told.contains("`GRPC 0.3`"), "{told}");
        assert!(choose(&[]).unwrap_err().contains("nothing"));
    }

    #[test]
    fn forbidden_interface_addresses_are_skipped() {
        let document = json!({"supportedInterfaces": [
            {"url": "a.test:50051", "protocolBinding": GRPC, "protocolVersion": "1.0"},
            interface(JSONRPC, "0.3"), interface(HTTP_JSON, "1.0")]});
        for (permitted, dialect) in [
            ("http://a.test:50051 https://a.test/HTTP+JSON/1.0", Dialect::Grpc),
            ("https://a.test/JSONRPC/0.3 https://a.test/HTTP+JSON/1.0", Dialect::Rest),
            ("https://a.test/JSONRPC/0.3", Dialect::OldRpc),
            ("", Dialect::Grpc),
        ] {
            let permits = |url: &str| permitted.split(' ').any(|one| one == url);
            let card = Card::read(&document, CardTrust::All, permits).unwrap();
            assert_eq!(card.dialect, dialect, "{permitted}");
        }
    }

    #[test]
    fn cards_of_0_3_and_of_the_vault_name_one_address() {
        let old = json!({"protocolVersion": "0.3.0", "url": "https://a.test/grpc",
            "preferredTransport": "GRPC", "additionalInterfaces": [
                {"url": "https://a.test/rest", "transport": "HTTP+JSON"}], "skills": []});
        let card = Card::read(&old, CardTrust::All, |_| true).unwrap();
        assert_eq!((card.dialect, card.url.as_str()), (Dialect::OldRest, "https://a.test/rest"));
        let plain = json!({"protocolVersion": "0.2.6", "url": "https://a.test/"});
        assert_eq!(Card::read(&plain, CardTrust::All, |_| true).unwrap().dialect, Dialect::OldRpc);
        let vault = json!({"humanReadableId": "o/a", "authSchemes": [{"scheme": "none"}],
            "agentVersion": "3", "url": "https://a.test/a2a", "tags": ["x"], "skills": [
                {"id": "s", "name": "S", "description": "d", "input_schema": {"type": "object"}}]});
        let card = Card::read(&vault, CardTrust::All, |_| true).unwrap();
        assert_eq!((card.dialect, card.version.as_str()), (Dialect::Vault, "3"));
        assert_eq!(card.skills[0].input, Some(json!({"type": "object"})));
        assert!(Card::read(&json!({"url": "https://a.test"}), CardTrust::All, |_| true).is_err());
        assert!(Card::read(&json!([]), CardTrust::All, |_| true).is_err());
    }

    #[test]
    fn unsigned_interfaces_are_ignored_where_signatures_are_required() {
        let card = json!({"protocolVersion": "0.3.0", "url": "https://evil.test/"});
        assert!(Card::read(&card, CardTrust::All, |_| true).is_ok());
        assert!(Card::read(&card, CardTrust::Signed, |_| true).is_err());
    }

    #[test]
    fn a_placeholder_skill_of_a_withheld_card_is_ignored() {
        let read = |skills: Value| {
            let card =
                json!({"supportedInterfaces": [interface(JSONRPC, "1.0")], "skills": skills});
            Card::read(&card, CardTrust::All, |_| true).unwrap()
        };
        let skill = |id: &str, tag: &str| json!({"id": id, "name": id, "tags": [tag]});
        let withholding = read(json!([skill("extended", "extended")]));
        assert!(withholding.skills.is_empty() && withholding.is_withholding);
        let showing = read(json!([skill("extended", "t"), skill("s", "extended")]));
        assert_eq!((showing.skills.len(), showing.is_withholding), (2, false));
    }

    #[test]
    fn skill_schemas_come_from_our_extension_and_unknown_required_extensions_are_refused() {
        let card = |required: &str| {
            json!({"supportedInterfaces": [interface(JSONRPC, "1.0")], "skills": [
                {"id": "s", "name": "S", "description": "Does.", "tags": ["t"],
                    "examples": ["do", "it"]}],
                "capabilities": {"extensions": [{"uri": SKILLS_EXTENSION, "params": {
                    "skills": {"s": {"input": "{\"type\":\"object\"}"}}}},
                    {"uri": required, "required": true}]}})
        };
        let read = Card::read(&card(ASKS_EXTENSION), CardTrust::All, |_| true).unwrap();
        assert_eq!(read.extensions, [SKILLS_EXTENSION, ASKS_EXTENSION]);
        assert_eq!(read.skills[0].input, Some(json!({"type": "object"})));
        assert_eq!(read.skills[0].description, "Does.\nExamples: do | it");
        assert_eq!(read.tenant, "t");
        let told = Card::read(&card("https://other.test/x"), CardTrust::All, |_| true).unwrap_err();
        assert!(told.contains("https://other.test/x"), "{told}");
    }
}
