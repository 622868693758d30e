//! Puts a project and a data folder together, and tells in our words what does not fit.

use crate::exit::{Exit, Failure};
use kernel::plan::mistake::Mistake;
use server::project::Project;
use server::{AssembleError, Assembled, Setup};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Who may administer, where this is set.
const ADMIN_KEY_VARIABLE: &str = "WAYPOST_ADMIN_KEY";

/// The admin key of this environment; an empty one is none.
pub(crate) fn admin_key() -> Option<String> {
    std::env::var(ADMIN_KEY_VARIABLE).ok().filter(|key| !key.is_empty())
}

/// A server over this project and this data, for a socket of this address.
pub(crate) async fn assemble(
    project: Project,
    data: PathBuf,
    address: SocketAddr,
) -> Result<Assembled, Failure> {
    let setup = Setup {
        project,
        data,
        address,
        admin_key: admin_key(),
        fatal: Arc::new(|why: String| end_now(&why)),
    };
    server::assemble(setup).await.map_err(refused)
}

/// A sync failed: what is on the disk is known only after a restart, so nothing more is written.
fn end_now(why: &str) {
    tracing::error!("{why}");
    std::process::exit(i32::from(Exit::Failed.number()));
}

fn refused(error: AssembleError) -> Failure {
    match error {
        AssembleError::Store(error) => Failure::new(Exit::Usage, "data_folder", error.to_string())
            .hint("`--data DIR` names another folder, `--ephemeral` takes one of its own"),
        AssembleError::Plans(mistakes) => {
            let errors = mistakes.iter().filter(|mistake| mistake.is_error());
            let lines = errors.map(Mistake::to_string).collect();
            Failure::new(Exit::Usage, "invalid_plan", "there are mistakes in the project's plans")
                .lines(lines)
                .hint("mend them; `waypost plan validate` checks again")
        }
        AssembleError::Stored(why) => Failure::new(Exit::Failed, "stored", why),
    }
}
