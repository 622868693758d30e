-- What the models of a run took, as JSON, and what stopped an agent of it before it was done: null
-- for the many runs that asked no model.
ALTER TABLE runs ADD COLUMN spent TEXT;
ALTER TABLE runs ADD COLUMN stopped TEXT;
