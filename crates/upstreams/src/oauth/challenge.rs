//! Parses `WWW-Authenticate` challenges (RFC 9110, 6750, 9728). A response may have several headers
//! with several challenges each, and commas occur within and between challenges.

use super::scopes::Scopes;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use std::net::IpAddr;

/// A longer header is not looked at.
const HEADER_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) lacks: MissingGrant,
    /// Whether it says that it wants a bearer token; a bare 401 says nothing.
    pub(crate) is_bearer: bool,
    /// URL of its protected resource metadata.
    pub(crate) resource_metadata: Option<String>,
    /// Required scopes.
    pub(crate) scope: Option<Scopes>,
    /// From which address it says so.
    pub(crate) from: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingGrant {
    /// A token that it takes.
    Token,
    /// A token that is good for more.
    Scope,
}

impl Challenge {
    /// The challenge of this response, if a login can resolve it.
    pub(crate) fn of(
        status: StatusCode,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Option<Self> {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let mut said = Vec::new();
        for header in headers.get_all(WWW_AUTHENTICATE) {
            let text = header.to_str().ok().filter(|text| text.len() <= HEADER_BYTES_MAX);
            said.extend(text.map(parse).unwrap_or_default());
        }
        let is_silent = said.is_empty();
        let mut bearers = said.into_iter().filter(|one| one.scheme == "bearer");
        let bearer = bearers.next();
        // The one that says most, should there be several.
        let bearer = bearers.find(|one| one.get("resource_metadata").is_some()).or(bearer);
        let lacks = match (status, &bearer) {
            (StatusCode::UNAUTHORIZED, Some(_)) => MissingGrant::Token,
            (StatusCode::UNAUTHORIZED, None) if is_silent => MissingGrant::Token,
            (_, Some(bearer)) if bearer.get("error") == Some("insufficient_scope") => {
                MissingGrant::Scope
            }
            _ => return None,
        };
        let get = |name: &str| bearer.as_ref().and_then(|bearer| bearer.get(name));
        Some(Self {
            lacks,
            is_bearer: bearer.is_some(),
            resource_metadata: get("resource_metadata").map(str::to_owned),
            scope: get("scope").map(Scopes::read).filter(|scopes| !scopes.is_empty()),
            from,
        })
    }

    /// A challenge without details, before the server was asked.
    pub(crate) fn unknown(from: Option<IpAddr>) -> Self {
        Self {
            lacks: MissingGrant::Token,
            is_bearer: false,
            resource_metadata: None,
            scope: None,
            from,
        }
    }
}

/// One challenge: a scheme in lower case and what it says.
#[derive(Debug, PartialEq, Eq)]
struct ParsedChallenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl ParsedChallenge {
    /// A parameter; the first, should it be said twice.
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The challenges of one header. What cannot be read ends it; what was read before it counts.
fn parse(text: &str) -> Vec<ParsedChallenge> {
    let mut reader = Reader { rest: text };
    let mut said = Vec::new();
    loop {
        reader.skip(|c| matches!(c, ' ' | '\t' | ','));
        let Some(scheme) = reader.token() else { return said };
        reader.blanks();
        let mut one =
            ParsedChallenge { scheme: scheme.to_ascii_lowercase(), parameters: Vec::new() };
        if !reader.token68() {
            while let Some(parameter) = reader.parameter() {
                one.parameters.push(parameter);
            }
        }
        said.push(one);
    }
}

/// Reads a header from its beginning.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn skip(&mut self, is_one: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_one);
    }

    fn blanks(&mut self) {
        self.skip(|c| matches!(c, ' ' | '\t'));
    }

    fn take(&mut self, is_one: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c: char| !is_one(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn token(&mut self) -> Option<&'t str> {
        let token = self.take(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c));
        (!token.is_empty()).then_some(token)
    }

    /// Skips credentials that stand in the place of parameters: `abc==`.
    fn token68(&mut self) -> bool {
        let mut ahead = Reader { rest: self.rest };
        let text = ahead.take(|c| c.is_ascii_alphanumeric() || "-._~+/".contains(c));
        ahead.take(|c| c == '=');
        ahead.blanks();
        let is_one = !text.is_empty() && (ahead.rest.is_empty() || ahead.rest.starts_with(','));
        if is_one {
            self.rest = ahead.rest;
        }
        is_one
    }

    /// The next parameter of this challenge; none where another challenge begins, or nothing can
    /// be read.
    fn parameter(&mut self) -> Option<(String, String)> {
        let mut ahead = Reader { rest: self.rest };
        ahead.skip(|c| matches!(c, ' ' | '\t' | ','));
        let name = ahead.token()?;
        ahead.blanks();
        ahead.rest = ahead.rest.strip_prefix('=')?;
        ahead.blanks();
        let value = match ahead.rest.strip_prefix('"') {
            Some(quoted) => {
                ahead.rest = quoted;
                ahead.quoted()?
            }
            // Some servers write URLs without quotes.
            None => ahead.take(|c| !matches!(c, ' ' | '\t' | ',' | '"')).to_owned(),
        };
        self.rest = ahead.rest;
        Some((name.to_ascii_lowercase(), value))
    }

    /// A text up to its closing quote; none where there is no such quote.
    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\\' => text.push(chars.next()?.1),
                c => text.push(c),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn told(text: &str) -> String {
        let one = |said: ParsedChallenge| {
            let parameters: Vec<String> =
                said.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{}({})", said.scheme, parameters.join("|"))
        };
        parse(text).into_iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn several_challenges_are_parsed() {
        for (text, expected) in [
            ("", ""),
            ("Bearer", "bearer()"),
            (r#"Bearer realm="a, b", Scope = "x y""#, "bearer(realm=a, b|scope=x y)"),
            (r#"Basic realm="x", Bearer scope="y""#, "basic(realm=x) bearer(scope=y)"),
            ("Negotiate, Bearer error=invalid_token", "negotiate() bearer(error=invalid_token)"),
            (r#"Negotiate YWJj==, Bearer a="1""#, "negotiate() bearer(a=1)"),
            ("NTLM YWJj, Basic", "ntlm() basic()"),
            (r#"Bearer a="say \"hi\" \\", b="=,=""#, r#"bearer(a=say "hi" \|b==,=)"#),
            (r#",, Bearer ,a="1",,b="2" , "#, "bearer(a=1|b=2)"),
            (
                "Bearer resource_metadata=https://a.test/x",
                "bearer(resource_metadata=https://a.test/x)",
            ),
            (r#"Bearer a="1", b="open"#, "bearer(a=1) b()"),
            (r#"Bearer a="1" @@ c="2""#, "bearer(a=1)"),
            ("\"Bearer\"", ""),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    fn of(status: u16, headers: &[&'static str]) -> Option<Challenge> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(WWW_AUTHENTICATE, HeaderValue::from_static(header));
        }
        Challenge::of(StatusCode::from_u16(status).unwrap(), &map, None)
    }

    #[test]
    fn only_challenges_that_a_login_resolves_count() {
        let bare = of(401, &[]).unwrap();
        assert_eq!((bare.lacks, bare.is_bearer), (MissingGrant::Token, false));
        let full = of(401, &["Basic realm=\"x\"", "bearer resource_metadata=\"u\", scope=\"a b\""]);
        let full = full.unwrap();
        assert_eq!((full.lacks, full.is_bearer), (MissingGrant::Token, true));
        assert_eq!(full.resource_metadata.as_deref(), Some("u"));
        assert_eq!(full.scope, Some(Scopes::read("a b")));
        let more = of(403, &["Bearer error=\"insufficient_scope\", scope=\"w\""]).unwrap();
        assert_eq!((more.lacks, more.scope), (MissingGrant::Scope, Some(Scopes::read("w"))));
        for (status, headers) in [
            (401, vec!["Basic realm=\"x\""]),
            (403, vec!["Bearer error=\"invalid_token\""]),
            (403, vec!["Bearer"]),
            (403, vec![]),
            (200, vec!["Bearer"]),
            (500, vec!["Bearer error=\"insufficient_scope\""]),
        ] {
            assert_eq!(of(status, &headers), None, "{status} {headers:?}");
        }
    }

    #[test]
    fn the_most_specific_challenge_counts() {
        let both = of(401, &["Bearer realm=\"a\", Bearer resource_metadata=\"u\""]).unwrap();
        assert_eq!(both.resource_metadata.as_deref(), Some("u"));
        let empty = of(401, &["Bearer scope=\"\""]).unwrap();
        assert_eq!(empty.scope, None);
    }
}
