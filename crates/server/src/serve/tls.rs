//! TLS that the server handles itself: the certificate and its key, as their files have them. The
//! files are checked now and then, so that a certificate is renewed without a restart; a new pair
//! that cannot be used leaves the old one in use.

use project::folder::Project;
use project::tables::tls::TlsConfig;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};
use tokio_rustls::{Accept, TlsAcceptor};

/// How many bytes of a file are read. Real ones have some kilobytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// What is spoken over TLS, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {why}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        why: io::Error,
    },
    /// A file does not have what it should.
    #[error("`{}` {what}", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The key belongs to another certificate.
    #[error(
        "the key in `{}` does not belong to the first certificate in `{}`",
        .key.display(),
        .certificate.display()
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

impl TlsError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "check `certificate` and `key` of `[server.tls]`, and the rights of both files"
            }
            Self::Unusable { .. } => {
                "both files are in PEM format, and the key is not protected by a password"
            }
            Self::Mismatch { .. } => {
                "name the key that the certificate was issued for; the server's own certificate \
                 goes first, those of its issuers follow"
            }
        }
    }

    fn unusable(path: &Path, what: impl Into<String>) -> Self {
        Self::Unusable { path: path.to_owned(), what: what.into() }
    }
}

/// TLS with a certificate of ours.
pub struct Tls {
    files: Files,
    current: Mutex<TlsState>,
}

/// What new connections get.
struct TlsState {
    config: Arc<ServerConfig>,
    /// The files as they were when they were last looked at.
    stamps: [Stamp; 2],
}

/// Without the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS as the project's settings say; none where the server does not handle it itself.
    pub async fn open(project: &Project) -> Result<Option<Self>, TlsError> {
        let Some(TlsConfig::Files { certificate, key }) = &project.config.server.tls else {
            return Ok(None);
        };
        let folder = &project.folder;
        let files = Files { certificate: folder.join(certificate), key: folder.join(key) };
        // Taken first: a change while the files are read is found at the next look.
        let stamps = files.stamps().await;
        let config = files.config().await?;
        Ok(Some(Self { files, current: Mutex::new(TlsState { config, stamps }) }))
    }

    /// Agrees with a client on how to encrypt.
    pub(super) fn accept(&self, stream: TcpStream) -> Accept<TcpStream> {
        let config = self.current().config.clone();
        TlsAcceptor::from(config).accept(stream)
    }

    /// Reads the files again if they have changed. What cannot be used is reported once.
    pub(super) async fn renew(&self) {
        let stamps = self.files.stamps().await;
        if self.current().stamps == stamps {
            return;
        }
        match self.files.config().await {
            Ok(config) => {
                *self.current() = TlsState { config, stamps };
                tracing::info!("new connections get the certificate that is in its file now");
            }
            Err(error) => {
                self.current().stamps = stamps;
                let hint = error.hint();
                tracing::warn!(%error, hint, "the new certificate is not used, the old one stays");
            }
        }
    }

    fn current(&self) -> MutexGuard<'_, TlsState> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a file was changed last, and its size; none where there is no such file.
type Stamp = Option<(SystemTime, u64)>;

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    async fn stamps(&self) -> [Stamp; 2] {
        [stamp(&self.certificate).await, stamp(&self.key).await]
    }

    async fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let Self { certificate, key } = self;
        let chain = chain(certificate, &read(certificate).await?)?;
        let private = private_key(key, &read(key).await?)?;
        let made = config(chain, private).map_err(|why| match why {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::Mismatch { certificate: certificate.clone(), key: key.clone() }
            }
            rustls::Error::InvalidCertificate(why) => TlsError::unusable(
                certificate,
                format!("has a certificate that cannot be used: {why}"),
            ),
            why => TlsError::unusable(key, format!("has a key that cannot be used: {why}")),
        });
        made.map(Arc::new)
    }
}

async fn stamp(path: &Path) -> Stamp {
    let about = tokio::fs::metadata(path).await.ok()?;
    Some((about.modified().ok()?, about.len()))
}

async fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |why: io::Error| TlsError::Unreadable { path: path.to_owned(), why };
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).await.map_err(unreadable)?;
    Ok(bytes)
}

/// The certificates of a file, the server's own first.
fn chain(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<CertificateDer<'static>>, PemError> =
        CertificateDer::pem_slice_iter(text).collect();
    let chain = read.map_err(|_| TlsError::unusable(path, "is not in PEM format"))?;
    if chain.is_empty() {
        return Err(TlsError::unusable(path, "has no certificate"));
    }
    Ok(chain)
}

/// The first private key of a file. What is wrong with it is not quoted: it is secret.
fn private_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        PemError::NoItemsFound => {
            TlsError::unusable(path, "has no private key that can be read without a password")
        }
        _ => TlsError::unusable(path, "is not in PEM format"),
    })
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::config::{Config, ServerConfig as Settings};
    use tempfile::TempDir;

    const CERTIFICATE: &str = include_str!("../../tests/it/tls/first.pem");
    const KEY: &str = include_str!("../../tests/it/tls/first.key.pem");
    const OTHER_KEY: &str = include_str!("../../tests/it/tls/second.key.pem");

    fn put(folder: &TempDir, certificate: Option<&str>, key: Option<&str>) {
        for (name, text) in [("cert.pem", certificate), ("key.pem", key)] {
            if let Some(text) = text {
                std::fs::write(folder.path().join(name), text).unwrap();
            }
        }
    }

    fn project(folder: &TempDir, tls: Option<TlsConfig>) -> Project {
        let server = Settings { tls, ..Settings::default() };
        let config = Config { server, ..Config::default() };
        Project { config, folder: folder.path().to_owned(), ..Project::default() }
    }

    async fn opened(folder: &TempDir) -> Result<Option<Tls>, TlsError> {
        let files = TlsConfig::Files { certificate: "cert.pem".into(), key: "key.pem".into() };
        Tls::open(&project(folder, Some(files))).await
    }

    #[tokio::test]
    async fn only_a_server_that_handles_tls_itself_reads_files() {
        let folder = tempfile::tempdir().unwrap();
        let proxy = TlsConfig::Proxy { proxies: Vec::new() };
        for tls in [None, Some(proxy)] {
            assert!(Tls::open(&project(&folder, tls)).await.unwrap().is_none());
        }
        put(&folder, Some(CERTIFICATE), Some(KEY));
        assert!(opened(&folder).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn an_unusable_certificate_is_refused_with_its_file() {
        let no_base64 = "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n";
        let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        for (certificate, key, told) in [
            (None, Some(KEY), "cannot read `cert.pem`: "),
            (Some(CERTIFICATE), None, "cannot read `key.pem`: "),
            (Some(""), Some(KEY), "`cert.pem` has no certificate"),
            (Some(KEY), Some(KEY), "`cert.pem` has no certificate"),
            (Some(no_base64), Some(KEY), "`cert.pem` is not in PEM format"),
            (Some(no_certificate), Some(KEY), "`cert.pem` has a certificate that cannot be used: "),
            (Some(CERTIFICATE), Some(CERTIFICATE), "`key.pem` has no private key that can be read"),
            (Some(CERTIFICATE), Some(no_key), "`key.pem` has a key that cannot be used: "),
            (Some(CERTIFICATE), Some(OTHER_KEY), "the key in `key.pem` does not belong to the"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            put(&folder, certificate, key);
            let error = opened(&folder).await.unwrap_err().to_string();
            let error = error.replace(&format!("{}/", folder.path().display()), "");
            assert!(error.starts_with(told), "{told}: {error}");
        }
    }

    #[tokio::test]
    async fn a_new_pair_replaces_the_old_one_if_it_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        put(&folder, Some(CERTIFICATE), Some(KEY));
        let tls = opened(&folder).await.unwrap().unwrap();
        let config = || tls.current().config.clone();
        let first = config();
        tls.renew().await;
        assert!(Arc::ptr_eq(&first, &config()), "nothing has changed");
        // Of another size, so that it is a change whatever time the system says.
        put(&folder, None, Some("no key"));
        tls.renew().await;
        std::fs::remove_file(folder.path().join("cert.pem")).unwrap();
        tls.renew().await;
        assert!(Arc::ptr_eq(&first, &config()), "nothing better has come");
        put(&folder, Some(CERTIFICATE), Some(KEY));
        tls.renew().await;
        assert!(!Arc::ptr_eq(&first, &config()));
    }
}
