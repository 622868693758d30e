//! The realm that a JSON body names: it counts like that of `?realm=`, and is known only once the
//! body is read.

use super::auth::Visitor;
use super::realms::{self, Sender, is_asked, two_realms};
use super::server_state::{EndpointState, Shared, visitor};
use crate::problem::{Failure, Result};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use identity::VerifiedCaller;
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use std::sync::Arc;

/// Who sends a request whose body may name a realm.
pub struct BodyRealm {
    pub server: Shared,
    visitor: Visitor,
    /// Whether `?realm=` or `X-Realm` names one.
    is_asked: bool,
}

impl<S: EndpointState> FromRequestParts<S> for BodyRealm {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let visitor = visitor(parts)?.clone();
        if visitor.verified.is_none() {
            realms::only_usual(&parts.uri, &parts.headers)?;
        }
        let is_asked = is_asked(&parts.uri, &parts.headers);
        Ok(Self { server: state.server().clone(), visitor, is_asked })
    }
}

impl BodyRealm {
    /// The caller in the realm that the body names; in that of the frame where it names none.
    pub fn caller(&self, named: Option<&str>) -> Result<Arc<Caller>> {
        let caller = &self.visitor.caller;
        let Some(named) = named else { return Ok(caller.clone()) };
        if caller.realm.as_str() == named {
            return Ok(caller.clone());
        }
        if self.is_asked {
            return Err(two_realms());
        }
        let Some(verified) = &self.visitor.verified else {
            realms::usual(named)?;
            return Ok(caller.clone());
        };
        self.entered(verified, named)
    }

    fn entered(&self, verified: &Arc<VerifiedCaller>, named: &str) -> Result<Arc<Caller>> {
        if self.visitor.caller.subject != verified.subject {
            let message = "who acts for another names the realm with `X-Realm` or `?realm=`";
            return Err(Failure::bad_request("two_realms", message));
        }
        let identity = &self.server.identity;
        let directory = identity.directory();
        let subject = &*verified.subject;
        let grants = &*verified.realms;
        let sender = Sender { subject, grants, directory: &directory };
        let realm: RealmId = realms::named(named, sender)
            .inspect_err(|_| identity.realm_refused(verified, named))?;
        let via = self.visitor.caller.via.clone();
        let caller = Caller { via, ..verified.caller(realm, &directory) };
        self.server.engine.audits().check_room(&caller)?;
        Ok(Arc::new(caller))
    }
}
