//! Assembles a server from a project and a data folder, and explains why that fails.

use crate::environment::{ADMIN_KEY, API_KEY, Environment, SECRET_KEY};
use crate::exit::{Exit, Failure, Result};
use kernel::definition::plan::mistake::Mistake;
use project::folder::Project;
use server::{AssembleError, Assembled, Extra, Lookup, ProjectPart, Setup};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Any free port of this machine; also the address of a server that no one reaches by HTTP.
pub(crate) const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What the environment and the command line may bring.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// With it only who has it administers.
    admin: Option<String>,
    /// Who the client on a pipe is, where everybody needs a credential.
    api: Option<String>,
    /// What seals what clients carry for us.
    secret: Option<String>,
    /// What the settings of upstreams may name.
    environment: Environment,
    /// Whether nothing outside is reached.
    isolated: bool,
    /// Whether a data folder that has lost its database gets a new one.
    renew: bool,
    /// Whether a database is taken that has lost acknowledged writes.
    after_loss: bool,
    /// Whether every caller needs a credential, whatever the settings say.
    never_local: bool,
}

impl Keys {
    /// Nothing from outside, and nothing outside is reached.
    pub(crate) fn none() -> Self {
        Self { isolated: true, ..Self::default() }
    }

    /// Those of this environment.
    pub(crate) fn of(environment: &Environment) -> Self {
        let key = |name: &str| environment.text(name).map(str::to_owned);
        let admin = key(ADMIN_KEY);
        let api = key(API_KEY);
        let secret = key(SECRET_KEY);
        Self { admin, api, secret, environment: environment.clone(), ..Self::default() }
    }

    /// The same, for a data folder that may get a new database where it has lost its own.
    #[must_use]
    pub(crate) fn renewing(self, renew: bool) -> Self {
        Self { renew, ..self }
    }

    /// The same, for a data folder whose database may have lost acknowledged writes.
    #[must_use]
    pub(crate) fn after_loss(self, after_loss: bool) -> Self {
        Self { after_loss, ..self }
    }

    /// The same with this admin key.
    #[must_use]
    pub(crate) fn with_admin(self, key: String) -> Self {
        Self { admin: Some(key), ..self }
    }

    /// The same, for a server that asks every caller for a credential where this says so.
    #[must_use]
    pub(crate) fn never_local(self, never_local: bool) -> Self {
        Self { never_local, ..self }
    }

    /// What the settings of a server may name whose data is here.
    pub(crate) fn variables(&self, data: &Path) -> Lookup {
        let environment = self.environment.with_data(data);
        Arc::new(move |name: &str| environment.any(name))
    }
}

/// A server over this project and this data, for a socket of this address.
pub(crate) async fn assemble(
    project: Project,
    data: PathBuf,
    address: SocketAddr,
    keys: Keys,
) -> Result<Assembled, AssembleError> {
    assemble_with(project, data, address, keys, Extra::default()).await
}

/// The same with more than the project has.
pub(crate) async fn assemble_with(
    project: Project,
    data: PathBuf,
    address: SocketAddr,
    keys: Keys,
    extra: Extra,
) -> Result<Assembled, AssembleError> {
    let fatal = Arc::new(|why: String| end_now(&why));
    let variables = keys.variables(&data);
    let Keys { admin, api, secret, isolated, renew, after_loss, never_local, .. } = keys;
    let setup = Setup {
        renew,
        after_loss,
        admin_key: admin,
        api_key: api,
        secret_key: secret,
        variables,
        // Without it the children of upstreams are watched over by no one but us.
        supervisor: std::env::current_exe().ok(),
        isolated,
        never_local,
        extra,
        ..Setup::new(project, data, address, fatal)
    };
    server::assemble(setup).await
}

/// A server of these tools and endpoints only, over this data, for a socket of this address.
pub(crate) async fn assemble_only(
    extra: Extra,
    data: PathBuf,
    address: SocketAddr,
) -> Result<Assembled, AssembleError> {
    let fatal = Arc::new(|why: String| end_now(&why));
    let setup = Setup::new(Project::default(), data, address, fatal);
    server::assemble(Setup { extra, only_extra: true, isolated: true, ..setup }).await
}

/// The store says why: what is on the disk is known only after a restart, or the folder is not ours
/// alone any more. Nothing more is written.
fn end_now(why: &str) {
    tracing::error!("{why}");
    std::process::exit(i32::from(Exit::Failed.number()));
}

/// Why nothing can be served, in our words.
pub(crate) fn refused(error: AssembleError) -> Failure {
    match error {
        AssembleError::Store(_) if error.went_back() => {
            Failure::new(Exit::Usage, "store_went_back", error.to_string())
        }
        AssembleError::Store(error) => Failure::new(Exit::Usage, "data_folder", error.to_string())
            .hint("`--data DIR` names another folder, `--ephemeral` takes one of its own"),
        AssembleError::Mistakes { part, mistakes } => mistaken(part, &mistakes),
        AssembleError::Secret(error) => Failure::new(Exit::Usage, "secret_key", error.to_string()),
        AssembleError::CardKeys(error) => Failure::new(Exit::Usage, "card_keys", error.to_string()),
        AssembleError::Start(refusal) => {
            Failure::new(Exit::Usage, "not_open_to_others", refusal.message).hint(refusal.hint)
        }
        AssembleError::Stored(why) => Failure::new(Exit::Failed, "stored", why),
    }
}

fn mistaken(part: ProjectPart, mistakes: &[Mistake]) -> Failure {
    let failure = |code: &str, what: &str| {
        let errors = mistakes.iter().filter(|mistake| mistake.is_error());
        Failure::new(Exit::Usage, code, format!("there are mistakes in {what}")).lines(errors)
    };
    match part {
        ProjectPart::Upstreams => failure("invalid_upstreams", "the upstreams")
            .hint("mend them, or set `disabled = true` in `[mcp.servers.<name>]`"),
        ProjectPart::Models => failure("invalid_models", "the models")
            .hint("mend them, and set the variables that they name"),
        ProjectPart::Sinks => failure("invalid_sinks", "the sinks of events")
            .hint("mend `[events.sinks.<name>]`, and set the variables that it names"),
        ProjectPart::Agents => failure("invalid_agent", "the project's agents"),
        ProjectPart::Tools => failure("invalid_tools", "the tools")
            .hint("name and describe them so that every endpoint can serve them"),
        ProjectPart::Plans => failure("invalid_plan", "the project's plans")
            .hint("mend them; `waypost plan validate` checks again"),
        ProjectPart::Pipelines => failure("invalid_pipeline", "the project's pipelines")
            .hint("mend them; `waypost pipeline test FILE` checks one again"),
        ProjectPart::Principals => failure("invalid_principals", "`principals.yaml`")
            .hint("mend it, or change what is stored: `waypost principal ls`"),
        ProjectPart::Policies => failure("invalid_policy", "the project's policies")
            .hint("mend them; `waypost policy validate` checks again"),
        ProjectPart::Types => failure("invalid_types", "the types of records")
            .hint("mend them; `waypost config check` checks the files again"),
        ProjectPart::Realms => failure("invalid_realm", "the files of `realms/`")
            .hint("mend them; `waypost config check` checks again"),
    }
}
