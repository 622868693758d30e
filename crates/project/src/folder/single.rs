//! The files of a project that there is one of each: `principals.yaml`, `application.properties`
//! and `.mcp.json`; and the folder of its policies, which are read together.

use super::{CLIENTS_FILE, ProjectError, mistake};
use crate::config::Config;
use crate::policies::PolicyFiles;
use crate::realms::{PROPERTIES_FILE, of_properties};
use crate::upstream_entries::client_files;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::principal::{PRINCIPALS_FILE, Principal};
use kernel::identity::principal_reader::{KnownNames, read_text};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The principals of a file, none where there is no such file, with warnings.
pub type FilePrincipals = (Option<Vec<Arc<Principal>>>, Vec<Mistake>);

/// Who may do what by the files of a folder, each part as it was read by itself.
#[derive(Debug)]
pub struct RightsFiles {
    /// The policies; none where there is no folder for them.
    pub policies: Result<Option<PolicyFiles>, ProjectError>,
    pub principals: Result<FilePrincipals, ProjectError>,
}

impl RightsFiles {
    /// Those of this folder, with these settings.
    pub fn load(folder: &Path, config: &Config) -> Self {
        let policies = policies(folder);
        let known = policies.as_ref().ok().and_then(Option::as_ref);
        let principals = principals(folder, config, known);
        Self { policies, principals }
    }
}

/// The policies of the folder; none where it has no place for them.
pub(super) fn policies(folder: &Path) -> Result<Option<PolicyFiles>, ProjectError> {
    PolicyFiles::load(folder).map_err(ProjectError::Mistakes)
}

/// What the folder's `.mcp.json` lists; nothing where there is none.
pub(super) fn clients(folder: &Path) -> Result<client_files::ImportedServers, ProjectError> {
    match text_of(folder, CLIENTS_FILE)? {
        Some(text) => client_files::read(CLIENTS_FILE, &text, None).map_err(ProjectError::Mistakes),
        None => Ok(client_files::ImportedServers::default()),
    }
}

/// Adds what the folder's properties file says of realms; the settings go before it.
pub(super) fn properties(folder: &Path, config: &mut Config) -> Result<(), ProjectError> {
    let text = text_of(folder, PROPERTIES_FILE)?.unwrap_or_default();
    let read = of_properties(&text, PROPERTIES_FILE).map_err(ProjectError::Mistakes)?;
    for (realm, said) in read.realms {
        let own = config.realms.entry(realm).or_default();
        *own = std::mem::take(own).or(said);
    }
    for (realm, ttl_ms) in read.session_ttls {
        config.session_ttls.entry(realm).or_insert(ttl_ms);
    }
    Ok(())
}

/// The principals of the folder's file, all of them or none.
pub(super) fn principals(
    folder: &Path,
    config: &Config,
    policies: Option<&PolicyFiles>,
) -> Result<FilePrincipals, ProjectError> {
    let Some(text) = text_of(folder, PRINCIPALS_FILE)? else { return Ok((None, Vec::new())) };
    let issuers: Vec<Arc<str>> = config.issuers.iter().map(|entry| entry.name.clone()).collect();
    let has_policies = policies.is_some_and(|files| !files.policies.is_empty());
    let names = KnownNames { issuers: Some(&issuers), has_policies };
    let read = read_text(&text, PRINCIPALS_FILE, names, &config.limits);
    let (principals, warnings) = read.map_err(ProjectError::Mistakes)?;
    Ok((Some(principals), warnings))
}

/// The text of a file in the folder; none where there is no such file.
fn text_of(folder: &Path, file: &str) -> Result<Option<String>, ProjectError> {
    let path = folder.join(file);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) if why.kind() == io::ErrorKind::InvalidData => {
            let message = "it is no text: it is not in UTF-8".to_owned();
            Err(mistake(file.to_owned(), message, "save it in UTF-8"))
        }
        Err(why) => Err(ProjectError::Unreadable { path, why }),
    }
}
