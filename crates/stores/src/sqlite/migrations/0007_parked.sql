-- Why a session that cannot be read is left alone for now, as JSON; null for all others.
ALTER TABLE sessions ADD COLUMN parked TEXT;
CREATE INDEX sessions_parked ON sessions (realm) WHERE parked IS NOT NULL;
