//! URLs of OAuth: where metadata is looked for, and which URLs of servers and metadata are
//! accepted.

use super::error::{OauthError, Result};
use outbound::addresses::is_loopback;
use reqwest::Url;

const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
const OAUTH_METADATA: &str = "/.well-known/oauth-authorization-server";
const OPENID_METADATA: &str = "/.well-known/openid-configuration";

/// Longer URLs are refused: they are stored, and shown in messages.
const URL_BYTES_MAX: usize = 8 * 1024;

/// An http or https URL without a user; `what` it is, for messages.
pub(super) fn web(what: &str, text: &str) -> Result<Url> {
    if text.len() > URL_BYTES_MAX {
        return Err(misfit(what, text, "is too long for a URL"));
    }
    let url = Url::parse(text).map_err(|_| misfit(what, text, "is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(misfit(what, text, "is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(OauthError::refused(format!("{what} has a user in its URL")));
    }
    Ok(url)
}

/// An endpoint of an authorization server, which secrets are sent to: https, or on this machine.
pub(super) fn endpoint(what: &str, text: &str) -> Result<Url> {
    let url = web(what, text)?;
    if url.scheme() != "https" && !is_loopback(&url) {
        return Err(misfit(what, text, "is not https"));
    }
    if url.fragment().is_some() {
        return Err(misfit(what, text, "has a fragment"));
    }
    Ok(url)
}

/// An authorization server's name, which is a URL without a query.
pub(super) fn issuer(text: &str) -> Result<Url> {
    let url = endpoint("its authorization server", text)?;
    match url.query() {
        Some(_) => Err(misfit("its authorization server", text, "has a query")),
        None => Ok(url),
    }
}

/// A document about the server: https, on this machine, or at the server itself.
pub(super) fn document(text: &str, server: &Url) -> Result<Url> {
    let url = web("`resource_metadata`", text)?;
    if url.scheme() != "https" && !is_loopback(&url) && url.origin() != server.origin() {
        return Err(misfit("`resource_metadata`", text, "is not https"));
    }
    Ok(url)
}

/// The root of a server, without a slash at its end.
pub(super) fn root(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// A URL without what may be secret in it, and without a slash for an empty path: so a server is
/// named in tokens.
pub(super) fn plain(url: &Url) -> String {
    let path = if url.path() == "/" { "" } else { url.path() };
    format!("{}{path}", root(url))
}

/// Whether a token for this resource is one for the server: the same origin, and a path that the
/// server's begins with.
pub(super) fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(path);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && resource.query().is_none_or(|query| server.query() == Some(query))
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where a server says who gives tokens for it.
pub(super) fn resource_documents(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut paths = vec![format!("{RESOURCE_METADATA}{path}")];
    if !path.is_empty() {
        paths.push(RESOURCE_METADATA.to_owned());
    }
    paths.iter().map(|path| at(server, path)).collect()
}

/// Where an authorization server describes itself, in the order in which it is asked.
pub(super) fn issuer_documents(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let paths = match path {
        "" => vec![OAUTH_METADATA.to_owned(), OPENID_METADATA.to_owned()],
        path => {
            vec![
                format!("{OAUTH_METADATA}{path}"),
                format!("{OPENID_METADATA}{path}"),
                format!("{path}{OPENID_METADATA}"),
            ]
        }
    };
    paths.iter().map(|path| at(issuer, path)).collect()
}

fn at(server: &Url, path: &str) -> Url {
    let mut url = server.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn misfit(what: &str, text: &str, why: &str) -> OauthError {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    OauthError::refused(format!("{what}, `{shown}`, {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_resource_covers_its_own_server_only() {
        let server = url("https://a.test/mcp/v1");
        for (resource, expected) in [
            ("https://a.test/mcp/v1", true),
            ("https://a.test/mcp/v1/", true),
            ("https://a.test/mcp", true),
            ("https://A.test:443/", true),
            ("https://a.test", true),
            ("https://a.test/mc", false),
            ("https://a.test/mcp/v1/more", false),
            ("https://a.test/mcp?x=1", false),
            ("https://a.test/mcp#x", false),
            ("http://a.test/mcp", false),
            ("https://b.test/mcp/v1", false),
            ("https://a.test.b.test/", false),
            ("a.test", false),
        ] {
            assert_eq!(covers(resource, &server), expected, "{resource}");
        }
    }

    #[test]
    fn metadata_urls_are_tried_in_order() {
        let texts = |urls: Vec<Url>| urls.iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(resource_documents(&url("https://a.test/mcp/?key=1#x"))),
            [
                "https://a.test/.well-known/oauth-protected-resource/mcp",
                "https://a.test/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(texts(resource_documents(&url("https://a.test/"))).len(), 1);
        assert_eq!(
            texts(issuer_documents(&url("https://a.test"))),
            [
                "https://a.test/.well-known/oauth-authorization-server",
                "https://a.test/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            texts(issuer_documents(&url("https://a.test/t/1/"))),
            [
                "https://a.test/.well-known/oauth-authorization-server/t/1",
                "https://a.test/.well-known/openid-configuration/t/1",
                "https://a.test/t/1/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn secrets_are_sent_over_https_or_loopback_only() {
        for text in
            ["https://a.test/t", "http://127.0.0.1:1/t", "http://[::1]/", "http://localhost"]
        {
            assert!(endpoint("it", text).is_ok(), "{text}");
        }
        for text in [
            "http://a.test/t",
            "http://10.0.0.7/t",
            "http://localhost.a.test/",
            "ftp://a.test",
            "javascript:alert(1)",
            "https://me:pass@a.test/",
            "https://a.test/#x",
            "/token",
            &format!("https://a.test/{}", "x".repeat(URL_BYTES_MAX)),
        ] {
            let trouble = endpoint("it", text).unwrap_err();
            assert!(!trouble.why.contains("pass") && trouble.why.len() < 300, "{trouble}");
        }
        assert!(issuer("https://a.test/?x=1").is_err());
        let server = url("http://a.test/mcp");
        assert!(document("http://a.test/x", &server).is_ok());
        assert!(document("http://b.test/x", &server).is_err());
        assert!(document("https://b.test/x", &server).is_ok());
    }

    #[test]
    fn a_shown_server_url_has_no_secrets() {
        assert_eq!(plain(&url("https://A.test:443/?key=1")), "https://a.test");
        assert_eq!(plain(&url("https://a.test/mcp/?key=1#x")), "https://a.test/mcp/");
    }
}
