//! Expands and checks addresses, headers and variables before use. They are shown as they are
//! written, since the values of variables may be secrets.

use super::expand::{ExpandContext, expanded};
use crate::settings::{Named, Text};
use hyper::http::{HeaderName, HeaderValue, Uri};
use kernel::definition::plan::mistake::Mistake;
use std::path::{Path, PathBuf};
use upstreams::Secret;

/// A program that is named with a relative path is found from where it is started.
pub(super) fn program(command: &str, cwd: &Path) -> String {
    let path = PathBuf::from(command);
    if path.is_relative() && path.components().count() > 1 {
        return cwd.join(path).to_string_lossy().into_owned();
    }
    command.to_owned()
}

/// The address of a server that the text says, if it is one.
pub(super) fn url_of(text: &Text, around: &ExpandContext<'_>) -> Result<String, Mistake> {
    address(text, around, "server", "https://mcp.example.com/mcp")
}

/// The address that the text says, if it is one: whose, and how one is written.
pub fn address(
    text: &Text,
    around: &ExpandContext<'_>,
    whose: &str,
    example: &str,
) -> Result<String, Mistake> {
    let url = expanded(text, around)?;
    let uri = url.parse::<Uri>().ok();
    let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    match uri.filter(is_http).and_then(|uri| uri.host().map(|host| !host.is_empty())) {
        Some(true) => Ok(url),
        // Told as it is written: what its variables hold may be a secret.
        Some(false) | None => {
            let what = format!("`{}` is not the address of a {whose}", shown_url(&text.text));
            let hint = format!("write it as `{example}`");
            Err(text.mistake(Mistake::error(what).hint(hint)))
        }
    }
}

/// Headers that can be sent.
pub fn headers_of(
    headers: &Named,
    around: &ExpandContext<'_>,
) -> Result<Vec<(String, Secret)>, Mistake> {
    let header = |(name, text): &(String, Text)| {
        let value = expanded(text, around)?;
        let named = HeaderName::from_bytes(name.as_bytes());
        if named.is_err() || HeaderValue::from_str(&value).is_err() {
            let what = format!("the header `{name}` cannot be sent");
            let hint = "a header has no line breaks and only visible ASCII letters";
            return Err(text.mistake(Mistake::error(what).hint(hint)));
        }
        Ok((name.clone(), Secret::new(value)))
    };
    headers.iter().map(header).collect()
}

/// Variables that can be set.
pub(super) fn env_of(
    env: &Named,
    around: &ExpandContext<'_>,
) -> Result<Vec<(String, Secret)>, Mistake> {
    let variable = |(name, text): &(String, Text)| {
        let value = expanded(text, around)?;
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let what = format!("the variable `{name}` cannot be set");
            return Err(text.mistake(Mistake::error(what)));
        }
        Ok((name.clone(), Secret::new(value)))
    };
    env.iter().map(variable).collect()
}

/// An address without what may be a secret: password, query and fragment. Also of what is none yet:
/// a slip of the pen shows no more than an address does.
pub fn shown_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.rsplit('@').next().unwrap_or_default().to_owned();
    };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_possible_secrets() {
        for (url, expected) in [
            ("https://u:hunter2@a.example/mcp?key=hunter3#x", "https://a.example/mcp"),
            ("https://hunter2@a.example", "https://a.example"),
            ("https://a.example/x@y", "https://a.example/x@y"),
            ("u:hunter2@a.example/mcp?key=hunter3", "a.example/mcp"),
            ("https:/u:hunter2@a.example/mcp", "a.example/mcp"),
            ("${HUB}/mcp", "${HUB}/mcp"),
            ("", ""),
        ] {
            assert_eq!(shown_url(url), expected, "{url}");
        }
    }
}
