//! Puts a project and a data folder together, and tells in our words what does not fit.

use crate::exit::{Exit, Failure};
use kernel::plan::mistake::Mistake;
use server::project::Project;
use server::{AssembleError, Assembled, Setup};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// A server over this project and this data, for a socket of this address; with a key only who has
/// it administers.
pub(crate) async fn assemble(
    project: Project,
    data: PathBuf,
    address: SocketAddr,
    admin_key: Option<String>,
) -> Result<Assembled, Failure> {
    let setup =
        Setup { project, data, address, admin_key, fatal: Arc::new(|why: String| end_now(&why)) };
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
