//! For which machine a package is built: linked with musl where this machine can do that, so that
//! the binary needs no C library of its host; else with glibc. Which it is, and why, is said.

use std::path::Path;
use std::process::Command;

use crate::shell::{self, Failure};

/// A target of a build, and how the binary gets its C library.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// `x86_64-unknown-linux-musl`.
    pub triple: String,
    /// In words, for the user and for the package.
    pub linkage: String,
}

/// The best target that this machine can build for.
pub fn choose() -> Result<Target, Failure> {
    let host = host(&shell::output_of("rustc -vV", Command::new("rustc").arg("-vV"))?)?;
    let sysroot = shell::output_of("rustc", Command::new("rustc").args(["--print", "sysroot"]))?;
    let Some(musl) = musl_of(&host) else {
        return Ok(Target { linkage: format!("as `{host}` links by default"), triple: host });
    };
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib").join(&musl).join("lib");
    let why_not = if !libraries.is_dir() {
        format!("the target `{musl}` is not installed (`rustup target add {musl}`)")
    } else if !shell::is_installed("musl-gcc") {
        "there is no `musl-gcc` for the parts that are in C".to_owned()
    } else {
        let linkage = "static: musl is part of the binary, which needs no C library".to_owned();
        return Ok(Target { triple: musl, linkage });
    };
    let glibc = shell::output_of("getconf", Command::new("getconf").arg("GNU_LIBC_VERSION"));
    let glibc = glibc.map_or_else(|_| "glibc".to_owned(), |text| text.trim().to_owned());
    let linkage = format!("dynamic: it needs {glibc} or newer, because {why_not}");
    Ok(Target { triple: host, linkage })
}

/// The machine that rustc itself runs on.
fn host(told: &str) -> Result<String, Failure> {
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure::new("`rustc -vV` names no host; run it by hand and look"))
}

/// The same machine with musl; none where there is no such thing.
fn musl_of(host: &str) -> Option<String> {
    let (before, after) = host.split_once("-linux-")?;
    let is_plain = matches!(after, "gnu" | "musl");
    is_plain.then(|| format!("{before}-linux-musl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_what_rustc_says() {
        let told =
            "rustc 1.95.0\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(host(told).ok().as_deref(), Some("aarch64-unknown-linux-gnu"));
        assert!(host("rustc 1.95.0\n").is_err());
    }

    #[test]
    fn linux_has_musl_and_others_do_not() {
        let musl = "x86_64-unknown-linux-musl";
        for host in ["x86_64-unknown-linux-gnu", musl] {
            assert_eq!(musl_of(host).as_deref(), Some(musl));
        }
        for host in ["aarch64-apple-darwin", "x86_64-pc-windows-msvc", "arm-linux-gnueabihf"] {
            assert_eq!(musl_of(host), None, "{host}");
        }
    }
}
