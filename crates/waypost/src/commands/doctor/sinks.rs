//! Event sinks: whether their settings are valid, whether their files can be written, and their
//! state in the running server. No webhook is called.

use super::Site;
use super::disk;
use super::report::Finding;
use crate::commands::upstream::lookup;
use project::event_sinks::ResolvedSink;
use std::path::PathBuf;
use wire::rest::{Sink, SinkStatus};

/// The check's name.
const NAME: &str = "sinks";
const MEND: &str = "mend it, and set the variables that it names";

/// What there is to say of them; nothing where the project cannot be read, which is reported
/// already.
pub(super) async fn check(site: &Site<'_>) -> Vec<Finding> {
    let Ok(project) = &site.project else { return Vec::new() };
    let sendings = match project.sinks(&site.data, &lookup(&site.environment)) {
        Ok(sendings) => sendings,
        Err(mistakes) => return vec![Finding::mistaken(NAME, &mistakes, MEND)],
    };
    let names: Vec<String> = sendings
        .iter()
        .map(|sending| format!("{} ({})", sending.config.name, sending.word()))
        .collect();
    let what = match names.is_empty() {
        true => "no events go out".to_owned(),
        false => format!("{} sinks of events: {}", names.len(), names.join(", ")),
    };
    let mut findings = vec![Finding::ok(NAME, what)];
    findings.extend(sendings.iter().filter_map(unwritable));
    findings.extend(site.listed("sinks").await.into_iter().filter_map(troubled));
    findings
}

/// A file whose folder cannot be written.
fn unwritable(sending: &ResolvedSink) -> Option<Finding> {
    let path = PathBuf::from(sending.target.as_deref().filter(|_| sending.word() == "file")?);
    let name = &sending.config.name;
    if path.is_dir() {
        let what = format!("the file of `{name}` is a folder: {}", path.display());
        return Some(Finding::fail(NAME, what, "name a file in `path`"));
    }
    let error = disk::try_to_write(path.parent()?).err()?;
    let what = format!("the file of `{name}` cannot be written: {}: {error}", path.display());
    Some(Finding::fail(NAME, what, "check the rights of its folder, or name another in `path`"))
}

/// One that does not take what it is sent, or is not configured any more.
fn troubled(sink: Sink) -> Option<Finding> {
    if sink.status == SinkStatus::Unconfigured {
        return Some(unconfigured(&sink));
    }
    let why = sink.last_error.filter(|_| sink.retrying + sink.failed > 0)?;
    let what = format!(
        "`{}` does not take events: {why}; {} are tried again, {} were given up",
        sink.name, sink.retrying, sink.failed
    );
    let hint = format!("`waypost events deliveries {}`", sink.name);
    Some(Finding::warn(NAME, what, &hint))
}

/// One that keeps its place although nothing is sent to it.
fn unconfigured(Sink { name, lag, .. }: &Sink) -> Finding {
    let what = format!(
        "`{name}` is not configured any more and is {lag} rows of the feed behind: retention keeps \
         what it has not passed"
    );
    let hint = format!("`waypost events forget {name}`, or configure it again");
    Finding::warn(NAME, what, &hint)
}
