//! A call that meets a server which wants a login: the caller is shown the page, and the call goes
//! on when somebody has logged in.

use super::super::line::PeerErrorKind;
use super::super::wants::Carried;
use super::calling::Calling;
use kernel::call::{HowFar, ToolError, ToolOutput, Want};
use std::collections::BTreeMap;

/// Our key for the page, which no server's can be.
const KEY: &str = "waypost-login";

impl Calling<'_> {
    /// The page of the login that this error is about, if there is one and the call can begin
    /// again; else the error.
    pub(super) fn wanting_login(self, error: ToolError) -> Result<ToolOutput, ToolError> {
        let words = [PeerErrorKind::Login.word(), PeerErrorKind::Scope.word()];
        // What has begun must not be done twice.
        let has_begun =
            error.how == HowFar::Unknown || Carried::read(&self.call.given.state).task.is_some();
        let wants_login = words.contains(&error.fault.name.as_str()) && !has_begun;
        let Some(url) = self.link().login_url().filter(|_| wants_login) else { return Err(error) };
        let message = format!("{}; log in there, then this call goes on", error.fault.message);
        let inputs = BTreeMap::from([(KEY.to_owned(), Want::Url { message, url })]);
        let carried = Carried { asked: vec![KEY.to_owned()], pages: true, ..Carried::default() };
        Ok(carried.wanting(inputs))
    }

    /// Where the caller was shown such a page: waits a while for the login. To open a page is not
    /// to have logged in, and whoever did so need not be asked again and again meanwhile.
    pub(super) async fn wait_for_login(self, carried: &Carried) {
        if carried.asked.iter().any(|key| key == KEY) && self.link().login_url().is_some() {
            let ms = self.call.timeout_ms / 2;
            // One that is not over by then is wanted again.
            let _ = self.link().parts.within(ms, self.link().login_over()).await;
        }
    }
}
