//! Lists, and what came of keyed requests.

use super::super::read;
use super::SqliteStore;
use crate::sqlite::tables::keys;
use crate::sqlite::tables::tallies;
use kernel::contracts::{
    AskFilter, Keys, Lists, OpenAsks, OpenSessions, Page, Paged, Read, SessionAsk, SessionFilter,
    SessionRef, SessionRun,
};
use kernel::definition::pipeline::TallyRow;
use kernel::journal::projection::{OnceRow, SessionRow};
use kernel::values::ids::{AskId, PipelineName, RealmId, RunId};

impl Lists for SqliteStore {
    fn session<'a>(
        &'a self,
        realm: &'a RealmId,
        session: &'a SessionRef,
    ) -> Read<'a, Option<SessionRow>> {
        let (realm, session) = (realm.clone(), session.clone());
        self.readers.read(move |connection| read::find_session(connection, &realm, &session))
    }

    fn sessions<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a SessionFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<SessionRow>> {
        let (realm, filter, page) = (realm.clone(), filter.clone(), page.clone());
        self.readers.read(move |connection| read::sessions(connection, &realm, &filter, &page))
    }

    fn run<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Option<SessionRun>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::find_run(connection, &realm, run))
    }

    fn ask<'a>(&'a self, realm: &'a RealmId, ask: AskId) -> Read<'a, Option<SessionAsk>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::find_ask(connection, &realm, ask))
    }

    fn asks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a AskFilter,
        page: &'a Page,
    ) -> Read<'a, Paged<SessionAsk>> {
        let (realm, filter, page) = (realm.clone(), filter.clone(), page.clone());
        self.readers.read(move |connection| read::asks(connection, &realm, &filter, &page))
    }

    fn open_asks<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenAsks>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::open_asks(connection, &realm))
    }

    fn open_sessions<'a>(&'a self, realm: &'a RealmId) -> Read<'a, Vec<OpenSessions>> {
        let realm = realm.clone();
        self.readers.read(move |connection| read::open_sessions(connection, &realm))
    }

    fn tallies<'a>(
        &'a self,
        realm: &'a RealmId,
        pipeline: &'a PipelineName,
    ) -> Read<'a, Vec<TallyRow>> {
        let (realm, pipeline) = (realm.clone(), pipeline.clone());
        self.readers.read(move |connection| tallies::list(connection, &realm, &pipeline))
    }
}

impl Keys for SqliteStore {
    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        route: &'a str,
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>> {
        let (subject, route, key) = (subject.to_owned(), route.to_owned(), key.to_owned());
        let realm = realm.clone();
        self.readers
            .read(move |connection| keys::find(connection, &realm, (&subject, &route, &key)))
    }
}
