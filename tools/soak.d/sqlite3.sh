# idea: 120,000 rows, indices, updates, vacuum, integrity check
"$PYTHON" -c '
import hashlib
import sqlite3

db = sqlite3.connect("base.db")
lines = open("words.txt").read().splitlines()
db.execute("create table t (id integer primary key, word text, data blob, n real)")
rows = ((line, line.encode() * (i % 9), i / 7) for i, line in enumerate(lines[:120000]))
db.executemany("insert into t (word, data, n) values (?, ?, ?)", rows)
db.execute("create index by_word on t (word, n)")
db.commit()
db.execute("update t set data = data || zeroblob(id % 3000) where id % 25 = 0")
db.execute("delete from t where id % 7 = 3")
db.commit()
db.execute("vacuum")
print(db.execute("pragma integrity_check").fetchall())
print(db.execute("select count(*), sum(length(t.data)), max(word) from t join t u using (word)").fetchall())
print(hashlib.sha256("".join(db.iterdump()).encode()).hexdigest())'
if command -v sqlite3 > /dev/null; then
    sqlite3 base.db 'pragma integrity_check; select word, sum(n) from t group by 1 order by 2 desc limit 9'
fi
