//! Calls that meet a server which requires a login: the caller is shown the login page, and the
//! call continues after the login. The account is shared, so the page is shown only to callers that
//! may administer it; for others the error says who logs in. In a run the page is shown to whoever
//! answers its ask, which is not known beforehand, so there the rule for all callers applies.

use super::super::line::PeerErrorKind;
use super::invocation::Invocation;
use crate::mcp::questions::CarriedState;
use kernel::tool::call::{CallProgress, InputRequest, ToolError, ToolOutput};
use std::collections::BTreeMap;

/// Our key for the page, which no server's can be.
pub(crate) const LOGIN_PAGE: &str = "waypost-login";

impl Invocation<'_> {
    /// The page of the login that this error is about, if there is one and the call can begin
    /// again; else the error.
    pub(super) fn wanting_login(self, error: ToolError) -> Result<ToolOutput, ToolError> {
        let words = [PeerErrorKind::Login.word(), PeerErrorKind::Scope.word()];
        // What has begun must not be done twice.
        let has_begun = error.how == CallProgress::Unknown
            || CarriedState::read(&self.call.given.state).task.is_some();
        let is_login = words.contains(&error.fault.name.as_str());
        if is_login && self.is_for_another() {
            return Err(error.hint(format!(
                "this realm acts as a principal of its own (`run_as_user_id`), which logs in there \
                 with its own credential: `waypost mcp login {} --mine`",
                self.link().config.name
            )));
        }
        let wants_login = is_login && !has_begun;
        let offered = wants_login && self.may_log_in();
        let Some(url) = self.link().login_url().filter(|_| offered) else { return Err(error) };
        let message = format!("{}; log in there, then this call continues", error.fault.message);
        let inputs = BTreeMap::from([(LOGIN_PAGE.to_owned(), InputRequest::Url { message, url })]);
        let carried = CarriedState {
            asked: vec![LOGIN_PAGE.to_owned()],
            pages: true,
            ..CarriedState::default()
        };
        Ok(carried.wanting(inputs))
    }

    /// Whether the login is the own one of a principal that is not who calls: only that principal
    /// can finish it, so no one else is shown its page.
    fn is_for_another(self) -> bool {
        let is_own = self.link().parts.scope.person.is_some();
        let user = self.caller.acting_as(self.call.context.acts_as.as_ref());
        is_own && user.subject != self.caller.subject
    }

    fn may_log_in(self) -> bool {
        let places = self.link().parts.login.as_ref();
        // One's own login is for oneself.
        let is_own = self.link().parts.scope.person.is_some();
        is_own || self.caller.admin || places.is_some_and(|places| places.shown_to_callers)
    }

    /// Where the caller was shown such a page: waits a while for the login. To open a page is not
    /// to have logged in, and a person who did so need not be asked again and again meanwhile.
    pub(super) async fn wait_for_login(self, carried: &CarriedState) {
        if carried.asked.iter().any(|key| key == LOGIN_PAGE) && self.link().login_url().is_some() {
            let ms = self.call.timeout_ms / 2;
            // One that is not over by then is wanted again.
            let _ = self.link().parts.within(ms, self.link().login_over()).await;
        }
    }
}
