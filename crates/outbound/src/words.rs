//! Errors and URLs formatted for messages, without secrets.

use reqwest::Url;
use std::error::Error;

/// An error and what caused it, in one line.
pub fn reasons(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        told.push_str(": ");
        told.push_str(&cause.to_string());
        source = cause.source();
    }
    told
}

/// Scheme, host and port: whatever else is in an address may be a secret.
pub fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}", url.scheme())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Because(&'static str, Option<Box<Because>>);

    impl fmt::Display for Because {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Because {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn Error + 'static))
        }
    }

    #[test]
    fn an_error_is_shown_with_its_causes() {
        let error = Because("a", Some(Box::new(Because("b", Some(Box::new(Because("c", None)))))));
        assert_eq!(reasons(&error), "a: b: c");
    }

    #[test]
    fn a_shown_url_holds_no_secret() {
        for (url, told) in [
            ("https://me:hush@a.test/x?key=hush#hush", "https://a.test"),
            ("http://a.test:81/", "http://a.test:81"),
            ("http://[::1]:81/", "http://[::1]:81"),
        ] {
            assert_eq!(place(&Url::parse(url).unwrap()), told);
        }
    }
}
