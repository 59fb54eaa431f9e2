
CREATE TABLE devices (device TEXT PRIMARY KEY, boot INTEGER, since REAL, usual TEXT) WITHOUT ROWID;
CREATE TABLE minutes (device TEXT, at INTEGER, boot, samples, offloads, replies, fallbacks, unasked, saturated, own, always, never, PRIMARY KEY (device, at)) WITHOUT ROWID;
CREATE INDEX by_time ON minutes (at);
CREATE TABLE log (number INTEGER PRIMARY KEY, at REAL, device TEXT, kind TEXT, text TEXT);
CREATE INDEX by_device ON log (device, number);
