
ALTER TABLE waiting ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX by_attempts ON waiting (attempts, id);
