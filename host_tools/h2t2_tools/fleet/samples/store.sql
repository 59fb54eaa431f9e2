
CREATE TABLE samples (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, device TEXT NOT NULL, model INTEGER NOT NULL, boot INTEGER NOT NULL,
    sequence INTEGER NOT NULL, chance INTEGER NOT NULL, share REAL NOT NULL, bin INTEGER NOT NULL, dtype INTEGER NOT NULL,
    shape TEXT NOT NULL, media TEXT NOT NULL, data BLOB NOT NULL, label INTEGER NOT NULL, score INTEGER NOT NULL,
    UNIQUE (device, boot, sequence)
);
CREATE INDEX by_time ON samples (at);
