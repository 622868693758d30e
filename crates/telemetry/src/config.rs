//! Configuration of exporters from the standard `OTEL_*` variables and Langfuse's own three.
//! Nothing is exported without an endpoint. Invalid or unsupported settings are logged as warnings
//! and ignored: telemetry never prevents a start.

use crate::names::key::SERVICE_NAME;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::values::percent::decoded;
use kernel::values::secret::Secret;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use std::fmt;

/// Gives the text of a variable, where it is set.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

const SERVICE: &str = "waypost";
/// Name of the Langfuse exporter.
pub(crate) const LANGFUSE_PLACE: &str = "langfuse";
const LANGFUSE: &str = "https://cloud.langfuse.com";
const EXPORT_TIMEOUT_MS: u64 = 10_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where spans go; nowhere where this is empty.
    pub destinations: Vec<Destination>,
    /// Which traces are recorded.
    pub sampling: Sampling,
    /// Resource attributes, `service.name` first.
    pub resource: Vec<(String, String)>,
    /// How spans are collected.
    pub batch: Batch,
    /// Whether what is said, called and answered is exported too.
    pub content: bool,
    /// Warnings about settings that are ignored. They contain no header or key.
    pub warnings: Vec<String>,
}

/// A place that takes spans.
#[derive(Clone, PartialEq)]
pub struct Destination {
    /// `otlp` or `langfuse`.
    pub name: &'static str,
    pub url: Url,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// How long one request may take.
    pub timeout_ms: u64,
}

impl Destination {
    /// Scheme, host and port: what may be shown.
    pub fn place(&self) -> String {
        outbound::words::place(&self.url)
    }
}

/// Without what the URL or the headers may hide.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.place())
    }
}

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Which of those that begin here.
    pub rule: Rule,
    /// Whether a caller who sent a trace decides about it.
    pub follows_caller: bool,
}

/// Which traces are recorded that no one decided about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    All,
    None,
    /// This share of them, by their ids.
    Share(f64),
    /// All, up to so many new ones a second as the limit says.
    Limited,
}

/// How spans are collected before they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// How long the first of them waits for others.
    pub delay_ms: u64,
    /// How many wait; more are dropped.
    pub queue_max: usize,
    /// How many are sent together.
    pub spans_max: usize,
    /// How long it may take to send them, with all retries.
    pub export_ms: u64,
}

impl Config {
    /// Whether anything is exported.
    pub fn is_on(&self) -> bool {
        !self.destinations.is_empty()
    }

    /// Where spans go, in words.
    pub fn told(&self) -> String {
        if !self.is_on() {
            return "no spans are exported: neither OTEL_EXPORTER_OTLP_ENDPOINT nor LANGFUSE_* \
                    names a place"
                .to_owned();
        }
        let places: Vec<String> =
            self.destinations.iter().map(|to| format!("{} ({})", to.place(), to.name)).collect();
        let content = if self.content { ", with content" } else { "" };
        format!("spans go to {}{content}", places.join(" and "))
    }

    pub fn read(variables: Variables<'_>) -> Self {
        let mut reading = Reading { variables, warnings: Vec::new() };
        let destinations = match reading.is_true("OTEL_SDK_DISABLED") {
            true => Vec::new(),
            false => reading.otlp().into_iter().chain(reading.langfuse()).collect(),
        };
        let sampling = reading.sampling();
        let resource = reading.resource();
        let batch = reading.batch();
        let content = reading.content();
        let mut warnings = reading.warnings;
        if destinations.is_empty() {
            // No one need mend what has no effect, unless it is why nothing is exported.
            warnings.retain(|warning| warning.contains("nothing is exported"));
        }
        Self { destinations, sampling, resource, batch, content, warnings }
    }
}

/// Reads variables and notes what is wrong with them.
struct Reading<'a> {
    variables: Variables<'a>,
    warnings: Vec<String>,
}

impl Reading<'_> {
    /// A variable that is set to something.
    fn get(&self, name: &str) -> Option<String> {
        let text = (self.variables)(name)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A variable of traces, else the one of all signals; with its name.
    fn of_traces(&self, what: &str) -> Option<(String, String)> {
        let names =
            [format!("OTEL_EXPORTER_OTLP_TRACES_{what}"), format!("OTEL_EXPORTER_OTLP_{what}")];
        names.into_iter().find_map(|name| self.get(&name).map(|text| (name, text)))
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    fn number(&mut self, name: &str, default: u64) -> u64 {
        match self.get(name).map(|text| text.parse::<u64>()) {
            None => default,
            Some(Ok(number)) => number,
            Some(Err(_)) => {
                self.warn(format!("{name} is no whole number: {default} holds"));
                default
            }
        }
    }

    fn otlp(&mut self) -> Option<Destination> {
        let (name, url) = self.endpoint()?;
        if let Some(exporter) = self.get("OTEL_TRACES_EXPORTER") {
            match exporter.as_str() {
                "otlp" => {}
                "none" => return None,
                other => {
                    self.warn(format!(
                        "OTEL_TRACES_EXPORTER is `{other}`, which is not built in: nothing is \
                         exported to {name}; `otlp` and `none` are"
                    ));
                    return None;
                }
            }
        }
        if let Some((variable, protocol)) = self.of_traces("PROTOCOL")
            && protocol != "http/protobuf"
        {
            self.warn(format!(
                "{variable} is `{protocol}`, which is not built in: nothing is exported to {name}; \
                 set `http/protobuf`, which collectors take on port 4318"
            ));
            return None;
        }
        if let Some((variable, compression)) = self.of_traces("COMPRESSION")
            && compression != "none"
        {
            self.warn(format!("{variable} is `{compression}`: spans are sent as they are"));
        }
        let headers = self.of_traces("HEADERS");
        let headers = headers.map(|(name, text)| self.headers(&name, &text)).unwrap_or_default();
        let timeout_ms = self.timeout_ms();
        Some(Destination { name: "otlp", url, headers, timeout_ms })
    }

    /// The one of traces as it is; that of all signals with the path of traces.
    fn endpoint(&mut self) -> Option<(&'static str, Url)> {
        const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        if let Some(text) = self.get(TRACES) {
            return self.url(TRACES, &text).map(|url| (TRACES, url));
        }
        let text = self.get(ALL)?;
        self.url(ALL, &text).map(|url| (ALL, below(url, "v1/traces")))
    }

    fn url(&mut self, name: &str, text: &str) -> Option<Url> {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        if url.is_none() {
            self.warn(format!(
                "{name} is no http or https URL: nothing is exported there; write it as \
                 `http://localhost:4318`"
            ));
        }
        url
    }

    fn timeout_ms(&mut self) -> u64 {
        match self.of_traces("TIMEOUT") {
            Some((name, _)) => self.number(&name, EXPORT_TIMEOUT_MS).max(1),
            None => EXPORT_TIMEOUT_MS,
        }
    }

    fn headers(&mut self, variable: &str, text: &str) -> Vec<(String, Secret)> {
        let mut headers = Vec::new();
        for (index, (name, value)) in pairs(text).into_iter().enumerate() {
            let fits = HeaderName::from_bytes(name.as_bytes()).is_ok()
                && HeaderValue::from_str(&value).is_ok();
            if fits && !name.is_empty() {
                headers.push((name, Secret::new(value)));
            } else {
                self.warn(format!(
                    "entry {} of {variable} is no header and left out; write `name=value`, several \
                     with commas between them",
                    index + 1
                ));
            }
        }
        headers
    }

    fn langfuse(&mut self) -> Option<Destination> {
        const KEYS: [&str; 2] = ["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"];
        // The second is what the vendor's SDKs called it before; they still read it.
        const PLACES: [&str; 2] = ["LANGFUSE_BASE_URL", "LANGFUSE_HOST"];
        let (public, secret) = match KEYS.map(|name| self.get(name)) {
            [Some(public), Some(secret)] => (public, secret),
            [None, None] => return None,
            [public, _] => {
                let missing = if public.is_none() { KEYS[0] } else { KEYS[1] };
                self.warn(format!("{missing} is not set: nothing is exported to Langfuse"));
                return None;
            }
        };
        let place = PLACES.iter().find_map(|name| Some((*name, self.get(name)?)));
        let (name, base) = place.unwrap_or_else(|| (PLACES[0], LANGFUSE.to_owned()));
        let url = self.url(name, &base)?;
        let basic = format!("Basic {}", STANDARD.encode(format!("{public}:{secret}")));
        let headers = vec![
            ("authorization".to_owned(), Secret::new(basic)),
            // Without it traces are shown minutes later.
            ("x-langfuse-ingestion-version".to_owned(), Secret::new("4")),
        ];
        let url = below(url, "api/public/otel/v1/traces");
        let timeout_ms = self.timeout_ms();
        Some(Destination { name: LANGFUSE_PLACE, url, headers, timeout_ms })
    }

    fn sampling(&mut self) -> Sampling {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        let default = Sampling { rule: Rule::Limited, follows_caller: true };
        let Some(name) = self.get(NAME) else { return default };
        let (follows_caller, rule) = match name.strip_prefix("parentbased_") {
            Some(rule) => (true, rule),
            None => (false, name.as_str()),
        };
        let rule = match rule {
            "always_on" => Rule::All,
            "always_off" => Rule::None,
            "traceidratio" => Rule::Share(self.share()),
            _ => {
                self.warn(format!("{NAME} is `{name}`, which is unknown: the default holds"));
                return default;
            }
        };
        Sampling { rule, follows_caller }
    }

    fn share(&mut self) -> f64 {
        const NAME: &str = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.get(NAME) else { return 1.0 };
        match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => share,
            _ => {
                self.warn(format!("{NAME} is no number from 0 to 1: 1 holds"));
                1.0
            }
        }
    }

    fn resource(&self) -> Vec<(String, String)> {
        let given = self.get("OTEL_RESOURCE_ATTRIBUTES").map(|text| pairs(&text));
        let mut given = given.unwrap_or_default();
        given.retain(|(name, _)| !name.is_empty());
        let service = given.iter().position(|(name, _)| name == SERVICE_NAME);
        let service = service.map(|index| given.remove(index).1);
        let service = self.get("OTEL_SERVICE_NAME").or(service);
        let service = service.unwrap_or_else(|| SERVICE.to_owned());
        [(SERVICE_NAME.to_owned(), service)].into_iter().chain(given).collect()
    }

    fn batch(&mut self) -> Batch {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        // A longer queue would be memory, and no telemetry.
        let queue_max = whole(self.number("OTEL_BSP_MAX_QUEUE_SIZE", 2_048)).min(1 << 20);
        let spans_max = whole(self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512));
        Batch {
            delay_ms: self.number("OTEL_BSP_SCHEDULE_DELAY", 5_000),
            queue_max,
            spans_max: spans_max.min(queue_max),
            export_ms: self.number("OTEL_BSP_EXPORT_TIMEOUT", 30_000).max(1),
        }
    }

    fn content(&self) -> bool {
        let text = self.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        let text = text.unwrap_or_default().to_ascii_lowercase();
        matches!(text.as_str(), "true" | "span_only" | "span_and_event")
    }
}

/// The same address with more at the end of its path.
fn below(mut url: Url, more: &str) -> Url {
    let path = format!("{}/{more}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

/// `name=value,name=value`, with percent signs for what cannot stand there. A piece without `=`
/// has an empty name.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pieces = text.split(',').map(str::trim).filter(|piece| !piece.is_empty());
    let pair = |piece: &str| match piece.split_once('=') {
        Some((name, value)) => (decoded(name.trim()), decoded(value.trim())),
        None => (String::new(), decoded(piece)),
    };
    pieces.map(pair).collect()
}

#[cfg(test)]
mod tests;
