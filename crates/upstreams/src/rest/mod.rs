//! REST servers: every operation of an OpenAPI or Swagger document becomes a tool. What cannot be
//! called is left out with a warning; the rest of the document still works.
//!
//! The order of the modules below is the order of reading and of import.

mod encode;
mod document;
mod dialect;
mod schema;
mod parameter;
mod path;
mod body;
mod swagger;
mod operation;
mod request;
mod credentials;
mod spooled;
mod send;
mod output;
mod location;
mod tool;
#[cfg(test)]
mod tests;

use self::document::OpenApi;
use self::location::DocumentLocation;
use self::operation::{ReadOptions, Warning};
use self::request::Request;
use self::send::Sender;
use self::tool::RestTool;
use super::config::{Document, RestConfig, UpstreamConfig};
use super::{RemoteParts, TOOLS_MAX};
use kernel::contracts::Tool;
use kernel::tool::call::ToolError;
use kernel::tool::rules::Pattern;
use kernel::values::fault::Fault;
use kernel::values::ids::ContentHash;
use outbound::answer::{BodyDestination, Effect};
use outbound::client::GuardedClient;
use std::path::Path;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, oneshot};

pub(crate) use self::credentials::Credentials;

/// How many parts the schema of one operation's arguments has.
const SCHEMA_PARTS_MAX: usize = 5_000;
/// How many parts the schemas of all operations of a document have together, 64 bytes of text being
/// one.
const DOCUMENT_PARTS_MAX: usize = 2_000_000;

/// Larger documents than this are large.
const SMALL_BYTES: usize = 4 * 1024 * 1024;
/// How many large documents are fetched at once by all callers: memory is the process's. A
/// slow server holds up none but other large ones.
const LARGE_MAX: usize = 2;
/// How many documents are read at once: their values may take several times the memory of a text.
const READINGS_MAX: usize = 2;

static LARGE: Semaphore = Semaphore::const_new(LARGE_MAX);
static READINGS: Semaphore = Semaphore::const_new(READINGS_MAX);

pub(crate) struct RestTools {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The hash of the document that they were made of.
    pub(crate) document: ContentHash,
}

/// Loads the tools of a REST server from its document; `None` if the document still has this hash.
/// The tools alone do not suffice to compare: two documents with the same tools can have different
/// URLs.
pub(crate) async fn load(
    upstream: &UpstreamConfig,
    config: &RestConfig,
    parts: &RemoteParts,
    known: Option<&ContentHash>,
) -> Result<Option<RestTools>, Fault> {
    let loader = Loader::new(upstream, config, parts).map_err(|why| {
        Fault::new("BadSettings", format!("`{}`: {why}", upstream.name))
            .hint(format!("correct it in {}", upstream.origin))
    })?;
    let bytes_max = parts.limits.upstream_document_bytes_max;
    let (large, text) = match loader.text(bytes_max.min(SMALL_BYTES)).await? {
        Some(text) => (None, text),
        None if bytes_max <= SMALL_BYTES => return Err(loader.too_large()),
        None => {
            // Neither semaphore is ever closed.
            let large = LARGE.acquire().await.ok();
            let text = loader.text(bytes_max).await?;
            (large, text.ok_or_else(|| loader.too_large())?)
        }
    };
    let reading = READINGS.acquire().await.ok();
    let (answer, answered) = oneshot::channel();
    let known = known.cloned();
    // A large document takes seconds to read, in which this thread serves others.
    let read = async move {
        // An error means that no one waits for it any more.
        let _ = answer.send(loader.read(text, known.as_ref()));
        drop((reading, large));
    };
    parts.spawn.thread("document", Box::pin(read));
    answered.await.unwrap_or_else(|_| {
        let message = format!("reading the OpenAPI document of `{}` broke off", upstream.name);
        Err(Fault::new("DocumentUnusable", message))
    })
}

struct Loader {
    upstream: UpstreamConfig,
    config: RestConfig,
    parts: RemoteParts,
    places: DocumentLocation,
    include: Option<Vec<Pattern>>,
    credentials: Credentials,
    outbound: Arc<GuardedClient>,
}

/// The tools of a document, and what of it was left out.
type DocumentTools = (Vec<Arc<dyn Tool>>, Vec<Warning>);

impl Loader {
    fn new(
        upstream: &UpstreamConfig,
        config: &RestConfig,
        parts: &RemoteParts,
    ) -> Result<Self, String> {
        let places = DocumentLocation::new(config)?;
        let settings = places.settings(config.allow_private)?;
        let outbound = GuardedClient::new(settings, parts.client_options());
        let patterns = |texts: &Vec<String>| {
            let read = texts.iter().map(|text| Pattern::new(text));
            read.collect::<Result<Vec<_>, _>>()
        };
        let include = config.include.as_ref().map(patterns).transpose();
        let include = include.map_err(|error| format!("`include`: {error}"))?;
        // Before the document is fetched, so that a mistake is reported also where it cannot be.
        let credentials = Credentials::new(config)?;
        Ok(Self {
            upstream: upstream.clone(),
            config: config.clone(),
            parts: parts.clone(),
            places,
            include,
            credentials,
            outbound: Arc::new(outbound),
        })
    }

    /// The document's text; none if it has more bytes than this.
    async fn text(&self, bytes_max: usize) -> Result<Option<String>, Fault> {
        let bytes = match (&self.config.document, &self.places.document) {
            (Document::File(path), _) => {
                file(path, bytes_max).await.map_err(|why| self.fault(&why))?
            }
            (Document::Url(_), Some(url)) => {
                let credentials = match self.places.document_is_at_base() {
                    true => self.credentials.clone(),
                    false => Credentials::default(),
                };
                let limits = &self.parts.limits;
                let wait_ms = self.upstream.timeout_ms.unwrap_or(limits.call_timeout_ms);
                let sender = self.sender(credentials.hiding(url), Some(wait_ms));
                let destination = BodyDestination { bytes_max, blobs: None };
                let answer =
                    sender.send(Request::get(url.clone()), Effect::Reads, destination).await;
                match answer {
                    Err(error) if error.fault.name == "OutputTooLarge" => None,
                    answer => Some(answer.map_err(|error| self.unread(error))?.body),
                }
            }
            (Document::Url(_), None) => return Err(self.fault("its URL is none")),
        };
        bytes.map(String::from_utf8).transpose().map_err(|_| self.fault("it is not UTF-8"))
    }

    /// Parses a document, unless it has this hash.
    fn read(&self, text: String, known: Option<&ContentHash>) -> Result<Option<RestTools>, Fault> {
        let document = ContentHash::of(text.as_bytes());
        if known == Some(&document) {
            return Ok(None);
        }
        let (tools, warnings) = self.tools(text).map_err(|why| self.fault(&why))?;
        tell(&self.upstream.name, &warnings);
        Ok(Some(RestTools { tools, document }))
    }

    /// The tools of a document, and what was left out.
    fn tools(&self, text: String) -> Result<DocumentTools, String> {
        let document = OpenApi::parse(text)?;
        let base = self.places.server(&document, !self.credentials.is_empty())?;
        let supplied = self.credentials.supplied();
        let reading = ReadOptions {
            supplied: &supplied,
            trusted: self.upstream.trusted,
            nodes_max: SCHEMA_PARTS_MAX,
            parts_max: DOCUMENT_PARTS_MAX,
            operations_max: TOOLS_MAX,
        };
        let wanted = |name: &str| {
            let patterns = self.include.as_deref();
            patterns.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.fits(name)))
        };
        let (operations, mut warnings) = operation::all(&document, &reading, wanted);
        let sender = Arc::new(self.sender(self.credentials.clone(), self.upstream.timeout_ms));
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for operation in operations {
            let what = format!("{} `{}`", operation.method, operation.name);
            match self.places.server_of(&operation, &base) {
                Ok(base) => {
                    let tool = RestTool::new(&self.upstream, operation, base, sender.clone());
                    tools.push(Arc::new(tool));
                }
                Err(why) => warnings.push(Warning { operation: what, why }),
            }
        }
        warnings.extend(self.idle(&document, &tools));
        Ok((tools, warnings))
    }

    /// Warnings of patterns that fit no operation, which are most likely mistakes.
    fn idle(&self, document: &OpenApi, tools: &[Arc<dyn Tool>]) -> Vec<Warning> {
        let prefix = self.upstream.prefix.len();
        let fits = |pattern: &&Pattern| {
            tools.iter().any(|tool| pattern.fits(&tool.spec().name.as_str()[prefix..]))
        };
        let idle = self.include.iter().flatten().filter(|pattern| !fits(pattern));
        let mut warnings: Vec<Warning> = idle
            .map(|pattern| Warning {
                operation: format!("include `{pattern}`"),
                why: "it fits no operation that can be called".to_owned(),
            })
            .collect();
        if document.paths().next().is_none() {
            let why = "the document has no paths".to_owned();
            warnings.push(Warning { operation: "all".to_owned(), why });
        }
        warnings
    }

    fn sender(&self, credentials: Credentials, timeout_ms: Option<u64>) -> Sender {
        let outbound = self.outbound.clone();
        let parts = self.parts.clone();
        Sender { outbound, credentials, parts, timeout_ms }
    }

    /// The fault of a document that did not come.
    fn unread(&self, error: ToolError) -> Fault {
        let fault = self.fault(&error.fault.message);
        Fault { hint: error.fault.hint.or(fault.hint), ..fault }
    }

    /// The fault of a document that is too large.
    fn too_large(&self) -> Fault {
        let most = self.parts.limits.upstream_document_bytes_max;
        let why = format!("it has more than `upstream_document_bytes_max` = {most} bytes");
        self.fault(&why).hint("raise `upstream_document_bytes_max` in `[limits]` of `waypost.toml`")
    }

    /// The fault of a document that cannot be used.
    fn fault(&self, why: &str) -> Fault {
        let place = match (&self.config.document, &self.places.document) {
            (_, Some(url)) => location::shown(url),
            (Document::File(path), None) => path.display().to_string(),
            (Document::Url(_), None) => String::new(),
        };
        let message = format!(
            "the OpenAPI document of `{}` at `{place}` cannot be used: {why}",
            self.upstream.name
        );
        Fault::new("DocumentUnusable", message)
            .hint(format!("see `document` in {}", self.upstream.origin))
    }
}

/// The bytes of a file, if they are no more than these.
async fn file(path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let file = tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
    file.take(most).read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok((bytes.len() <= bytes_max).then_some(bytes))
}

/// One line for all, since a document may have thousands; the whole list for who looks for it.
fn tell(provider: &str, warnings: &[Warning]) {
    let Some(Warning { operation, why }) = warnings.first() else { return };
    let count = warnings.len();
    tracing::warn!(provider, count, operation, why, "parts of an OpenAPI document are left out");
    for Warning { operation, why } in warnings {
        tracing::debug!(provider, operation, why, "a part of an OpenAPI document is left out");
    }
}
