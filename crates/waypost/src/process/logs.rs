//! Logs: one line per event on standard error, as text or as flat JSON, so that `jq .session`
//! finds every line of a session whatever span it was written in. Nothing that others wrote can end
//! a line, begin another or steer a terminal.

use crate::environment::{Environment, LOG_LEVEL};
use crate::exit::{Failure, Result};
use crate::terminal::screen::stderr_has_colour;
use clap::ValueEnum;
use serde::Serializer;
use serde_json::{Map, Value, json};
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{JsonFields, Writer, debug_fn};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
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
pub(crate) fn start(environment: &Environment, format: LogFormat, level: &str) -> Result<()> {
    let level = environment.text(LOG_LEVEL).unwrap_or(level);
    let filter = filter(level).ok_or_else(|| {
        Failure::usage(format!("`{LOG_LEVEL}={level}` is no log level"))
            .hint("use error, warn, info, debug or trace")
    })?;
    let builder = tracing_subscriber::fmt().with_writer(StandardError).with_env_filter(filter);
    let started = match format {
        LogFormat::Text => {
            builder.with_ansi(stderr_has_colour()).fmt_fields(text_fields()).try_init()
        }
        LogFormat::Json => {
            builder.fmt_fields(JsonFields::new()).event_format(FlatFormat).try_init()
        }
    };
    started.map_err(|error| Failure::usage(format!("cannot start logging: {error}")))
}

/// The lines that wait until a person has read what is said first; nothing where none has to.
static WAITING: Mutex<Option<Vec<u8>>> = Mutex::new(None);

fn waiting() -> MutexGuard<'static, Option<Vec<u8>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For as long as this lives, log lines wait; they are written when it is dropped. Warnings and
/// errors never wait.
pub(crate) struct HeldLogs;

impl HeldLogs {
    /// Holds lines back from a person; a program gets them as they come.
    pub(crate) fn at_terminal() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        *waiting() = Some(Vec::new());
        Some(Self)
    }
}

impl Drop for HeldLogs {
    fn drop(&mut self) {
        let lines = waiting().take().unwrap_or_default();
        // No one is left to tell when standard error is gone.
        let _ = std::io::stderr().lock().write_all(&lines);
    }
}

/// Where log lines go.
struct StandardError;

impl<'a> MakeWriter<'a> for StandardError {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        LineWriter { may_wait: false }
    }

    fn make_writer_for(&'a self, line: &Metadata<'_>) -> LineWriter {
        LineWriter { may_wait: *line.level() > Level::WARN }
    }
}

/// Writes one line.
struct LineWriter {
    may_wait: bool,
}

impl io::Write for LineWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.may_wait
            && let Some(lines) = waiting().as_mut()
        {
            lines.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        io::stderr().lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

fn filter(level: &str) -> Option<EnvFilter> {
    // A single word that is no level would be taken for a module, and everything else be silent.
    let is_word = !level.contains(['=', ',']);
    if is_word && level.parse::<LevelFilter>().is_err() {
        return None;
    }
    EnvFilter::builder().parse(level).ok()
}

/// The message and the fields of a text line, as the library writes them but for one thing: what is
/// hidden in them is shown.
fn text_fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(text_field).delimited(" ")
}

fn text_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let name = field.name();
    if name != "message" {
        let name = name.strip_prefix("r#").unwrap_or(name);
        match writer.has_ansi_escapes() {
            true => write!(writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m")?,
            false => write!(writer, "{name}=")?,
        }
    }
    write!(EscapingWriter(writer), "{value:?}")
}

/// Passes text on in which every hidden character is shown by its escape.
struct EscapingWriter<'a, 'w>(&'a mut Writer<'w>);

impl fmt::Write for EscapingWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, hidden)) = rest.char_indices().find(|(_, it)| is_hidden(*it)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", hidden.escape_default())?;
            rest = &rest[at + hidden.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// Whether a reader would not see it, or see the text around it in another order.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Writes an event and the fields of all spans around it as one flat object; inner fields win.
struct FlatFormat;

impl<S, N> FormatEvent<S, N> for FlatFormat
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
    fn unknown_log_levels_are_refused() {
        for level in ["info", "DEBUG", "off", "warn,engine=debug", "engine=trace"] {
            assert!(filter(level).is_some(), "{level}");
        }
        for level in ["verbose", "engine=loud"] {
            assert!(filter(level).is_none(), "{level}");
        }
    }

    /// What is logged as text while this is done, without the time before each line.
    fn text_of(ansi: bool, logging: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(ansi)
            .without_time()
            .with_target(false)
            .fmt_fields(text_fields())
            .finish();
        tracing::subscriber::with_default(subscriber, logging);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn logged_text_cannot_forge_a_line_or_control_a_terminal() {
        let said = "x\n2026-01-01 ERROR forged\r\u{1b}[2J\u{202e}\u{200b}";
        let shown = "x\\n2026-01-01 ERROR forged\\r\\u{1b}[2J\\u{202e}\\u{200b}";
        let text = text_of(false, || {
            let _span = tracing::info_span!("run", tool = %said).entered();
            tracing::info!(why = %said, tries = 2, "{said}");
        });
        let line = format!(" INFO run{{tool={shown}}}: {shown} why={shown} tries=2\n");
        assert_eq!(text, line);
    }

    #[test]
    fn a_terminal_gets_our_colours_and_no_others() {
        let text = text_of(true, || tracing::info!(why = %"\u{1b}[31mred", "said"));
        assert!(
            text.contains("said \u{1b}[3mwhy\u{1b}[0m\u{1b}[2m=\u{1b}[0m\\u{1b}[31mred"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn spans_and_fields_are_one_flat_object() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(FlatFormat)
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
