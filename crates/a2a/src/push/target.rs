//! Where a webhook is and what it is shown: sealed in the store, and read back without credentials.

use crate::error::{Result, invalid};
use crate::push_parts::PushParts;
use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::contracts::webhooks::WebhookName;
use outbound::addresses::web_url;
use outbound::words::place;
use serde::{Deserialize, Serialize};
use wire::a2a::request::{AuthenticationInfo, TaskPushNotificationConfig};

/// How long each text of a webhook may be.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// The header by which a receiver knows its own task.
const TOKEN: &str = "x-a2a-notification-token";

/// A webhook's address and secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Target {
    pub(super) url: String,
    token: String,
    scheme: String,
    credentials: String,
}

impl Target {
    /// That of a client's wish, or what is wrong with it; `field` is where the wish stands.
    pub(super) fn checked(
        parts: &PushParts,
        config: &TaskPushNotificationConfig,
        field: &str,
    ) -> Result<Self> {
        let at = |member: &str| match field {
            "" => member.to_owned(),
            field => format!("{field}.{member}"),
        };
        let AuthenticationInfo { scheme, credentials } =
            config.authentication.clone().unwrap_or_default();
        let url = config.url.clone();
        let token = config.token.clone();
        if url.is_empty() {
            return Err(invalid(&at("url"), "`url` is required"));
        }
        let texts = [
            ("url", &url),
            ("token", &token),
            ("authentication.scheme", &scheme),
            ("authentication.credentials", &credentials),
        ];
        for (member, text) in texts {
            if text.len() > TEXT_BYTES_MAX {
                let why = format!("`{member}` has at most {TEXT_BYTES_MAX} bytes");
                return Err(invalid(&at(member), why));
            }
            if member != "url" && HeaderValue::from_str(text).is_err() {
                let why = format!("`{member}` cannot stand in a header");
                return Err(invalid(&at(member), why));
            }
        }
        check_address(parts, &url, &at("url"))?;
        Ok(Self { url, token, scheme, credentials })
    }

    /// That of an address alone, which stands in this field, or what is wrong with it.
    pub(super) fn at(parts: &PushParts, url: &str, field: &str) -> Result<Self> {
        if url.len() > TEXT_BYTES_MAX {
            return Err(invalid(field, format!("`{field}` has at most {TEXT_BYTES_MAX} bytes")));
        }
        check_address(parts, url, field)?;
        let none = String::new;
        Ok(Self { url: url.to_owned(), token: none(), scheme: none(), credentials: none() })
    }

    /// As it is stored. The salt is used once.
    pub(super) fn sealed(
        &self,
        parts: &PushParts,
        name: &WebhookName,
        salt: u128,
    ) -> Option<String> {
        let plain = serde_json::to_vec(self).ok()?;
        Some(URL_SAFE_NO_PAD.encode(parts.envelopes.seal(&bound(name), salt, &plain)?))
    }

    /// As it was before, if its seal opens.
    pub(super) fn opened(parts: &PushParts, name: &WebhookName, sealed: &str) -> Option<Self> {
        let envelope = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let plain = parts.envelopes.open(&bound(name), &envelope).ok()?;
        serde_json::from_slice(&plain).ok()
    }

    /// The headers by which a receiver knows who posts.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if !self.token.is_empty() {
            headers.push((TOKEN, self.token.clone()));
        }
        // A scheme alone proves nothing.
        if !self.scheme.is_empty() && !self.credentials.is_empty() {
            headers.push(("authorization", format!("{} {}", self.scheme, self.credentials)));
        }
        headers
    }

    /// Where it is, as others than its maker may know it: scheme, host and port.
    pub(super) fn place(&self) -> Option<String> {
        web_url("it", &self.url).ok().map(|url| place(&url))
    }

    /// As its maker reads it back: without credentials.
    pub(super) fn shown(&self, name: &WebhookName) -> TaskPushNotificationConfig {
        let authentication = (!self.scheme.is_empty()).then(|| AuthenticationInfo {
            scheme: self.scheme.clone(),
            credentials: String::new(),
        });
        TaskPushNotificationConfig {
            tenant: String::new(),
            id: name.id.to_string(),
            task_id: name.run.to_string(),
            url: self.url.clone(),
            token: self.token.clone(),
            authentication,
        }
    }
}

/// Refuses an address where nothing is posted; it stands in this field.
fn check_address(parts: &PushParts, url: &str, field: &str) -> Result<()> {
    parts.notifier.check(url).map_err(|why| {
        let hint = "a webhook is at a public address, or at one of `[a2a.push] allow`";
        invalid(field, format!("the webhook's address cannot be used: {why}; {hint}"))
    })
}

/// A target opens for its own webhook alone.
fn bound(name: &WebhookName) -> Vec<u8> {
    let WebhookName { realm, run, id } = name;
    format!("{realm}\n{run}\n{id}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_out_and_are_never_shown() {
        let target = Target {
            url: "https://a.test:444/hush?hush=hush".to_owned(),
            token: "mine".to_owned(),
            scheme: "Bearer".to_owned(),
            credentials: "hush".to_owned(),
        };
        let sent = target.headers();
        assert_eq!(sent, [(TOKEN, "mine".to_owned()), ("authorization", "Bearer hush".to_owned())]);
        assert_eq!(target.place().as_deref(), Some("https://a.test:444"));
        let run = format!("run_{:032x}", 7).parse().unwrap();
        let name = WebhookName { realm: "r".into(), run, id: "one".into() };
        let shown = target.shown(&name);
        assert_eq!((shown.id.as_str(), shown.token.as_str()), ("one", "mine"));
        let authentication = shown.authentication.unwrap();
        assert_eq!(
            (authentication.scheme.as_str(), authentication.credentials.as_str()),
            ("Bearer", "")
        );
        let bare = Target { credentials: String::new(), token: String::new(), ..target };
        assert_eq!(bare.headers(), []);
    }
}
