//! Which credentials callers show, as the card says it: the schemes follow from the settings. A
//! server in local mode asks for none.

use crate::state::A2a;
use identity::PublicIssuer;
use kernel::values::caller::Scope;
use kernel::values::ids::RealmId;
use std::collections::BTreeMap;
use wire::a2a::card::{
    ApiKeySecurityScheme, HttpAuthSecurityScheme, Oauth2SecurityScheme, OauthFlows,
    OpenIdConnectSecurityScheme, RequiredFlow, SecurityRequirement, SecurityScheme, StringList,
};

/// What a caller needs, and for what.
const SCOPES: [(Scope, &str); 2] = [
    (Scope::Read, "Read cards, tasks and what they made"),
    (Scope::Use, "Send messages, cancel tasks and make webhooks"),
];
/// The name of the scheme in the card, and of the scheme of HTTP.
const BEARER: &str = "bearer";
const API_KEY: &str = "apiKey";
const OAUTH: &str = "oauth2";
/// What stands before the name of an issuer.
const OPEN_ID: &str = "openId-";

/// The schemes of a card by name, and which of them are wanted: one is enough.
#[derive(Default)]
pub(super) struct Security {
    pub(super) schemes: BTreeMap<String, SecurityScheme>,
    pub(super) requirements: Vec<SecurityRequirement>,
}

impl Security {
    /// That of a realm's card which is read under this address.
    pub(super) fn of(a2a: &A2a, base: &str, realm: &RealmId) -> Self {
        let mut security = Self::default();
        if a2a.server.entrance.base().is_none() {
            return security;
        }
        let issuers = a2a.server.identity.issuers_of(realm, &SCOPES.map(|(scope, _)| scope));
        let ours = SCOPES.map(|(scope, _)| scope.name().to_owned()).to_vec();
        security.add(BEARER.to_owned(), bearer(!issuers.is_empty()), ours.clone());
        security.add(API_KEY.to_owned(), api_key(), ours.clone());
        security.add(OAUTH.to_owned(), client_credentials(base), ours);
        for issuer in issuers {
            let name = format!("{OPEN_ID}{}", issuer.name);
            let scheme = open_id(&issuer);
            security.add(name, scheme, issuer.scopes);
        }
        security
    }

    /// One of the SDKs leaves out what is empty before it looks at a signature: nothing is.
    fn add(&mut self, name: String, scheme: SecurityScheme, list: Vec<String>) {
        let schemes = [(name.clone(), StringList { list })].into();
        self.requirements.push(SecurityRequirement { schemes });
        self.schemes.insert(name, scheme);
    }
}

fn bearer(has_issuers: bool) -> SecurityScheme {
    let description = match has_issuers {
        true => "A key of this server, or a token of it or of an issuer that it trusts",
        false => "A key of this server, or a token of it",
    };
    let scheme = HttpAuthSecurityScheme {
        // In lower case, as cards of 0.3 always had it: clients of 1.0 do not mind.
        scheme: BEARER.to_owned(),
        description: description.to_owned(),
        ..HttpAuthSecurityScheme::default()
    };
    SecurityScheme { http_auth_security_scheme: Some(scheme), ..SecurityScheme::default() }
}

fn api_key() -> SecurityScheme {
    let scheme = ApiKeySecurityScheme {
        location: "header".to_owned(),
        name: "X-Api-Key".to_owned(),
        description: "A key of this server".to_owned(),
    };
    SecurityScheme { api_key_security_scheme: Some(scheme), ..SecurityScheme::default() }
}

/// Every key can be exchanged for a token.
fn client_credentials(base: &str) -> SecurityScheme {
    let scopes = SCOPES.map(|(scope, about)| (scope.name().to_owned(), about.to_owned()));
    let flow = RequiredFlow {
        token_url: format!("{base}/oauth/token"),
        scopes: scopes.into(),
        ..RequiredFlow::default()
    };
    let scheme = Oauth2SecurityScheme {
        description: "The id of a key and the key itself, for a token".to_owned(),
        flows: OauthFlows { client_credentials: Some(flow), ..OauthFlows::default() },
        ..Oauth2SecurityScheme::default()
    };
    SecurityScheme { oauth2_security_scheme: Some(scheme), ..SecurityScheme::default() }
}

fn open_id(issuer: &PublicIssuer) -> SecurityScheme {
    let scheme = OpenIdConnectSecurityScheme {
        description: "A token of an issuer that this server trusts".to_owned(),
        open_id_connect_url: issuer.discovery.clone(),
    };
    SecurityScheme { open_id_connect_security_scheme: Some(scheme), ..SecurityScheme::default() }
}
