//! Pipelines as people write them, YAML or JSON, in the shape that such files have elsewhere. Every
//! mistake is reported with its place. What is read is compiled to a plan and an agent at once.

mod compile;
mod schema;
mod handlers;
mod tools;
mod llm;

use crate::definition::pipeline::{Addresses, PIPELINES, Pipeline};
use crate::definition::plan::mistake::{CheckResult, Mistake, checked, meant};
use crate::definition::plan::read::{DURATION_MS_MAX, Origin, Reader, Spot, quoted};
use crate::definition::plan::source::{Node, Subject};
use crate::limits::Limits;
use crate::values::ids::{AgentName, PipelineName, PlanId};
use crate::values::names::is_plain_name;
use compile::Runner;
use serde_json::Value;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A pipeline with warnings, or all that is wrong with it.
pub type ReadPipeline = CheckResult<Pipeline>;

const KEYS: &[&str] = &[
    "name", "description", "addresses", "http", "schema", "agent", "handlers", "tools", "llm",
    "mcp", "$schema",
];

/// How long a request is waited for where the file does not say.
const REQUEST_TIMEOUT_MS: u64 = 10_000;
/// What an agent may take for one case where the file does not say.
const RUNNER: Runner = Runner { max_steps: 5, timeout_ms: 10_000 };

/// How mistakes of a pipeline's text are reported.
const PIPELINE: Subject = Subject {
    noun: "pipeline",
    if_empty: "a pipeline has at least `http`, `schema` and `llm`",
    if_large: "raise the limit, or make two of it",
    if_deep: "a pipeline is not that deep",
};

/// Reads a pipeline's file: its text, how mistakes name it, and its name if it gives none.
pub fn read_text(text: &str, file: &str, default_name: &str, limits: &Limits) -> ReadPipeline {
    let origin = Origin { file: Some(file.to_owned()), default_id: None };
    let node = Node::parse_as(&PIPELINE, text, limits).map_err(|found| origin.all_filed(found))?;
    let mut form = Form { reader: Reader::new(&origin, limits) };
    let pipeline = form.pipeline(&Spot::root(&node), default_name);
    checked(pipeline, form.reader.mistakes)
}

/// Where a pipeline is reached over HTTP.
struct Http {
    route: String,
    port: Option<u16>,
    request_timeout_ms: u64,
}

/// Reads the parts of a pipeline. A function that gives nothing for a value that is there has noted
/// a mistake.
struct Form<'a> {
    reader: Reader<'a>,
}

impl Form<'_> {
    fn pipeline(&mut self, spot: &Spot<'_>, default_name: &str) -> Option<Pipeline> {
        if !self.reader.object(spot, "a pipeline", KEYS) {
            return None;
        }
        let name = self.name(spot, default_name);
        let known_as = name.as_ref().map_or(default_name, PipelineName::as_str);
        let own = format!("{PIPELINES}{known_as}");
        let description = spot.field("description").and_then(|field| self.reader.text(&field));
        let addresses = self.addresses(spot, known_as);
        let http = self.http(spot);
        let schema = self.case_schema(spot);
        let runner = self.runner(spot);
        let handlers = self.handlers(spot);
        let tools = self.tools(spot);
        let llm = self.llm(spot, &own);
        self.idle_mcp(spot);
        let http = http?;
        let nothing = Arc::new(Value::Null);
        let mut pipeline = Pipeline {
            name: name?,
            description: description.unwrap_or_default().trim().to_owned(),
            addresses,
            route: http.route,
            port: http.port,
            request_timeout_ms: http.request_timeout_ms,
            schema: schema?,
            handlers,
            tools,
            llm: llm?,
            plan: PlanId::from(own.as_str()),
            plan_source: nothing.clone(),
            agent: AgentName::from(own),
            agent_source: nothing,
        };
        pipeline.plan_source = Arc::new(compile::plan(&pipeline));
        pipeline.agent_source = Arc::new(compile::agent(&pipeline, &runner));
        Some(pipeline)
    }

    fn name(&mut self, spot: &Spot<'_>, default_name: &str) -> Option<PipelineName> {
        let field = spot.field("name");
        let text = match &field {
            Some(field) => self.reader.name(field)?,
            None => default_name,
        };
        if is_plain_name(text) {
            return Some(PipelineName::from(text));
        }
        let mistake = Mistake::error(format!("`{text}` cannot be the name of a pipeline"));
        let fits = "a name has letters, digits, `_`, `.` and `-`";
        match &field {
            Some(field) => self.reader.note(field, mistake.hint(fits)),
            None => {
                let hint = format!("{fits}: call the file otherwise, or add `name: ..`");
                self.reader.note(spot, mistake.hint(hint));
            }
        }
        None
    }

    fn addresses(&mut self, spot: &Spot<'_>, name: &str) -> Addresses {
        let mut addresses = Addresses {
            inbound: format!("{name}.inbound"),
            agent: format!("{name}.agent"),
            events: "events.out".to_owned(),
        };
        let Some(field) = spot.field("addresses") else { return addresses };
        if self.reader.object(&field, "`addresses`", &["inbound", "agent", "events"]) {
            self.address(&field, "inbound", &mut addresses.inbound);
            self.address(&field, "agent", &mut addresses.agent);
            self.address(&field, "events", &mut addresses.events);
        }
        addresses
    }

    /// An address stands where others expect a URI.
    fn address(&mut self, spot: &Spot<'_>, key: &str, address: &mut String) {
        let Some(field) = spot.field(key) else { return };
        let Some(text) = self.reader.name(&field) else { return };
        if text.chars().any(char::is_whitespace) {
            let mistake = Mistake::error(format!("`{key}` cannot be `{text}`"));
            self.reader.note(&field, mistake.hint("an address has no spaces: `events.out`"));
        }
        text.clone_into(address);
    }

    fn http(&mut self, spot: &Spot<'_>) -> Option<Http> {
        let field = self.reader.need(spot, "http")?;
        if !self.reader.object(&field, "`http`", &["port", "route", "requestTimeoutMs"]) {
            return None;
        }
        let port = self.whole(&field, "port", 0..=u64::from(u16::MAX));
        let longest = self.reader.limits.run_wait_ms_max;
        let timeout = self.whole(&field, "requestTimeoutMs", 1..=longest);
        Some(Http {
            route: self.route(&field)?,
            port: port.and_then(|port| u16::try_from(port).ok()),
            request_timeout_ms: timeout.unwrap_or_else(|| REQUEST_TIMEOUT_MS.min(longest)),
        })
    }

    fn route(&mut self, spot: &Spot<'_>) -> Option<String> {
        let field = self.reader.need(spot, "route")?;
        let text = self.reader.text(&field)?;
        if is_sent_so(text) {
            return Some(text.to_owned());
        }
        let mistake = Mistake::error(format!("`route` cannot be `{text}`"));
        let hint = "write a path as requests have it, such as `/trade/failures`: plain letters, \
            digits, `-`, `_`, `.` and `~`, no patterns";
        self.reader.note(&field, mistake.hint(hint));
        None
    }

    fn runner(&mut self, spot: &Spot<'_>) -> Runner {
        let Some(field) = spot.field("agent") else { return RUNNER };
        if !self.reader.object(&field, "`agent`", &["maxSteps", "timeoutMs"]) {
            return RUNNER;
        }
        let max_steps = self.whole(&field, "maxSteps", 1..=u64::from(u32::MAX));
        let max_steps = max_steps.and_then(|steps| u32::try_from(steps).ok());
        let timeout_ms = self.whole(&field, "timeoutMs", 1..=DURATION_MS_MAX);
        Runner {
            max_steps: max_steps.unwrap_or(RUNNER.max_steps),
            timeout_ms: timeout_ms.unwrap_or(RUNNER.timeout_ms),
        }
    }

    /// `mcp` is a key of such files elsewhere.
    fn idle_mcp(&mut self, spot: &Spot<'_>) {
        let Some(field) = spot.field("mcp") else { return };
        let mistake = Mistake::warning("`mcp` has no effect: all tools are at `/mcp` already");
        self.reader.note(&field, mistake.hint("leave it out"));
    }

    /// A whole number within these bounds; none where it is left out, or wrong.
    fn whole(&mut self, spot: &Spot<'_>, key: &str, bounds: RangeInclusive<u64>) -> Option<u64> {
        let field = spot.field(key)?;
        let number = field.node.whole().filter(|number| bounds.contains(number));
        if number.is_none() {
            let least = bounds.start();
            let most = bounds.end();
            let what = format!("`{key}` must be a whole number from {least} to {most}");
            self.reader.note(&field, Mistake::error(what).hint("leave it out for the default"));
        }
        number
    }

    /// Notes a type that no one knows.
    fn unknown_type(&mut self, spot: &Spot<'_>, what: &str, known: &[&str]) {
        let word = spot.node.text().unwrap_or_default();
        let near = meant(word, known.iter().copied()).map(|near| near + " ");
        let hint = format!("{}the types are {}", near.unwrap_or_default(), quoted(known));
        let mistake = Mistake::error(format!("unknown {what} type `{word}`")).hint(hint);
        self.reader.note(spot, mistake);
    }

    /// One of `params`, which is required and is the only one; `of` is what has it, in words.
    fn param<'n>(&mut self, spot: &Spot<'n>, key: &str, of: &str) -> Option<&'n str> {
        let Some(params) = spot.field("params") else {
            let mistake = Mistake::error(format!("{of} needs `params: {{{key}: ..}}`"));
            self.reader.note(spot, mistake.hint("add it here"));
            return None;
        };
        if !self.reader.object(&params, &format!("the params of {of}"), &[key]) {
            return None;
        }
        self.reader.need_name(&params, key)
    }
}

/// Whether a request can come with this path: routes are compared with it letter by letter, so what
/// clients write in another way, or leave out, would never be found. What elsewhere is a pattern is
/// none here.
fn is_sent_so(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~!$&'()+,;=:@".contains(c);
    let fits = |part: &str| {
        part != "." && part != ".." && !part.starts_with(':') && part.chars().all(plain)
    };
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(fits))
}

#[cfg(test)]
mod tests;
