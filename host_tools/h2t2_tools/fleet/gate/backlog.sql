
CREATE TABLE waiting (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, key TEXT NOT NULL, identity TEXT NOT NULL, topic TEXT NOT NULL,
    score TEXT NOT NULL, label TEXT NOT NULL, lesson TEXT NOT NULL, url TEXT NOT NULL, media TEXT NOT NULL, data BLOB NOT NULL,
    tensor TEXT NOT NULL, decided INTEGER NOT NULL
);
CREATE TABLE decisions (topic TEXT NOT NULL, identity TEXT NOT NULL, at REAL NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (topic, identity));
CREATE INDEX by_time ON decisions (at);
