//! Logs: one line per event on standard error, as text or as flat JSON, so that `jq .session`
//! finds every line of a session whatever span it was written in.

use crate::environment::{Environment, LOG_LEVEL};
use crate::exit::Failure;
use clap::ValueEnum;
use serde::Serializer;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::IsTerminal;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging for the life of the process; `level` holds where `LOG_LEVEL` says nothing.
pub(crate) fn start(
    environment: &Environment,
    format: LogFormat,
    level: &str,
) -> Result<(), Failure> {
    let level = environment.text(LOG_LEVEL).unwrap_or(level);
    let filter = filter(level).ok_or_else(|| {
        Failure::usage(format!("`{LOG_LEVEL}={level}` is no log level"))
            .hint("use error, warn, info, debug or trace")
    })?;
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    let started = match format {
        LogFormat::Text => builder.with_ansi(may_colour()).try_init(),
        LogFormat::Json => builder.fmt_fields(JsonFields::new()).event_format(Flat).try_init(),
    };
    started.map_err(|error| Failure::usage(format!("cannot start logging: {error}")))
}

fn filter(level: &str) -> Option<EnvFilter> {
    // A single word that is no level would be taken for a module, and everything else be silent.
    let is_word = !level.contains(['=', ',']);
    if is_word && level.parse::<LevelFilter>().is_err() {
        return None;
    }
    EnvFilter::builder().parse(level).ok()
}

fn may_colour() -> bool {
    let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stderr().is_terminal() && !asked_not_to && !dumb
}

/// Writes an event and the fields of all spans around it as one flat object; inner fields win.
struct Flat;

impl<S, N> FormatEvent<S, N> for Flat
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = Line::default();
        line.set("timestamp", json!(time));
        line.set("level", json!(event.metadata().level().as_str()));
        line.set("target", json!(event.metadata().target()));
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>();
            let fields = fields.and_then(|text| serde_json::from_str(&text.fields).ok());
            for (name, value) in fields.unwrap_or_else(Map::new) {
                line.set(&name, value);
            }
        }
        event.record(&mut line);
        writeln!(writer, "{}", line.text().map_err(|_| fmt::Error)?)
    }
}

/// A line's fields in the order in which they came.
#[derive(Default)]
struct Line {
    fields: Vec<(String, Value)>,
}

impl Line {
    fn set(&mut self, name: &str, value: Value) {
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name.to_owned(), value)),
        }
    }

    fn text(&self) -> Result<String, serde_json::Error> {
        let mut text = Vec::new();
        let fields = self.fields.iter().map(|(name, value)| (name, value));
        serde_json::Serializer::new(&mut text).collect_map(fields)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), json!(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_levels_are_levels() {
        for level in ["info", "DEBUG", "off", "warn,engine=debug", "engine=trace"] {
            assert!(filter(level).is_some(), "{level}");
        }
        for level in ["verbose", "engine=loud"] {
            assert!(filter(level).is_none(), "{level}");
        }
    }

    #[test]
    fn spans_and_fields_are_one_flat_object() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(Flat)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let _outer = tracing::info_span!("run", realm = "default", step = "a").entered();
            let _inner = tracing::info_span!("step", step = "b").entered();
            tracing::info!(tries = 2u64, "call \"started\"");
        });
        let bytes = written.0.lock().unwrap().clone();
        let line: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(line["realm"], "default");
        assert_eq!(line["step"], "b");
        assert_eq!(line["tries"], 2);
        assert_eq!(line["message"], "call \"started\"");
        assert_eq!(line["level"], "INFO");
    }
}
