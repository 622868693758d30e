//! Opens a page in the user's browser, if there is a terminal and a graphical session. Otherwise
//! nothing happens: the address is printed anyway.

use crate::context::Context;
use crate::environment::OWN_KEYS;
use reqwest::Url;
use std::io::IsTerminal;
use std::process::{Command, Stdio};

/// Opens the page, if that can be done; whether it was tried.
pub(super) fn open(url: &str, context: &Context) -> bool {
    let is_watched = std::io::stdout().is_terminal() && context.output.talks();
    if !is_watched || !is_page(url) {
        return false;
    }
    let Some(mut command) = opener(url, |name| context.environment.any(name)) else { return false };
    // What it prints would stand between our lines.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // It ends at once, and hands the page on.
            tokio::task::spawn_blocking(move || child.wait());
            true
        }
        Err(_) => false,
    }
}

/// Another server chose the address: only pages are opened, never a file or another program.
fn is_page(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
}

/// What opens a page on this system.
fn opener(url: &str, variable: impl Fn(&str) -> Option<String>) -> Option<Command> {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        let has = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if !has("DISPLAY") && !has("WAYLAND_DISPLAY") {
            return None;
        }
        Command::new("xdg-open")
    };
    for key in OWN_KEYS {
        command.env_remove(key);
    }
    command.arg(url);
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_addresses_are_opened() {
        assert!(is_page("https://login.example.com/authorize?a=b"));
        assert!(is_page("http://127.0.0.1:9000/authorize"));
        for url in ["file:///etc/passwd", "javascript:alert(1)", "-x", "", "vscode://x/y"] {
            assert!(!is_page(url), "{url}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn without_a_screen_nothing_is_opened() {
        let url = "https://a.example";
        assert!(opener(url, |_| None).is_none());
        assert!(opener(url, |_| Some(String::new())).is_none());
        let command = opener(url, |name| (name == "DISPLAY").then(|| ":0".to_owned())).unwrap();
        assert_eq!(command.get_args().collect::<Vec<_>>(), [url]);
        let kept_from_it: Vec<_> = command.get_envs().collect();
        for key in OWN_KEYS {
            assert!(kept_from_it.contains(&(key.as_ref(), None)), "{kept_from_it:?}");
        }
    }
}
