-- Whose a session and a run are: a subject. Null in local mode, and for all that came before. There
-- is no index: it would cost every run a page, and nothing is looked for by owner alone.
ALTER TABLE sessions ADD COLUMN owner TEXT;
ALTER TABLE runs ADD COLUMN owner TEXT;
