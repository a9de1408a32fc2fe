"""SQL statements that both databases understand, each of them a constant.

Parameters are written as `?`; `postgres/` replaces them by `$1`, `$2`, …, and `instr` by `strpos`.
"""

from __future__ import annotations

_STEP = (
    "select id, parent, turn, branch, position, kind, closes, messages, tokens, counter, data, total, compaction,"
    " created, digest, chain from steps "
)
_SESSION = "select id, label, head, tip, open_turn, status, origin, created, updated, data, seal from sessions "

SESSION = _SESSION + "where label = ?"
SESSION_BY_ALIAS = _SESSION + "where id = (select session from aliases where alias = ?)"  # noqa: S608 - constants
SESSIONS = _SESSION + "order by id"
NEWEST_SESSIONS = _SESSION + "where (? = '' or status = ?) and instr(data, ?) > 0 order by updated desc, label limit ?"
COUNT_SESSIONS = "select count(*) from sessions where (? = '' or status = ?)"
SESSION_TIPS = (
    "select s.label, s.tip, t.branch, t.position from sessions s left join steps t on t.id = s.tip"
    " order by s.updated desc, s.label"
)
SAVE_SESSION = (
    "insert into sessions (id, label, head, tip, open_turn, status, origin, created, updated, data, seal)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " on conflict (id) do update set label = excluded.label, head = excluded.head, tip = excluded.tip,"
    " open_turn = excluded.open_turn, status = excluded.status, origin = excluded.origin, created = excluded.created,"
    " updated = excluded.updated, data = excluded.data, seal = excluded.seal"
)
# The most frequent update changes no indexed column.
MOVE_SESSION = "update sessions set head = ?, tip = ?, open_turn = ?, updated = ?, seal = ? where id = ?"

ADD_ALIAS = "insert into aliases (alias, session, created, seal) values (?, ?, ?, ?)"
DROP_ALIAS = "delete from aliases where alias = ?"
ALIASES = "select alias, session, created, seal from aliases order by alias"

ADD_HISTORY = "insert into history (session, step, reason, changed, seal) values (?, ?, ?, ?, ?)"
HISTORY = "select session, step, reason, changed, seal from history order by session, step"
HISTORY_OF = "select session, step, reason, changed, seal from history where session = ? order by step"

# Every name that a session has or had, a second time: if the row of a session or alias is lost, its name is still here.
ADD_NAME = "insert into names (name, session) values (?, ?) on conflict (name) do nothing"
_NAMES = "select name, session from names"
_NAMES_USED = (
    "select name, session from"
    " (select label as name, id as session from sessions union all select alias, session from aliases) u"
)
NAMES_LOST = (
    "select n.name, n.session, s.label from (" + _NAMES + " except " + _NAMES_USED + ") n"  # noqa: S608 - constants
    " left join sessions s on s.id = n.session order by 1"
)
NAMES_ADDED = _NAMES_USED + " except " + _NAMES + " order by 1"

ADD_BRANCH = "insert into branches (id, parent, position) values (?, ?, ?)"
BRANCH = "select id, parent, position from branches where id = ?"
BRANCHES = "select id, parent, position from branches order by id"
FORKED_BRANCHES = "select id, parent, position from branches where parent is not null"

ADD_STEP = (
    "insert into steps (id, parent, turn, branch, position, kind, closes, messages, tokens, counter, data, total,"
    " compaction, created, digest, chain) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
STEP = _STEP + "where id = ?"
PLACE = "select id, turn, branch, position, closes, counter, total, compaction, chain from steps where id = ?"
TAKEN = "select 1 from steps where branch = ? and position = ?"
TAIL = (
    _STEP + "where branch = (select branch from steps where id = ?)"  # noqa: S608 - constants, both of them
    " and position <= (select position from steps where id = ?) and position >= ?"
    " order by position desc limit ?"
)
SEARCH = (
    _STEP + "where branch = ? and position >= ? and position < ? and instr(messages, ?) > 0"
    " order by position desc limit ?"
)
STEPS_AFTER = _STEP + "where branch = ? and position > ? order by position limit ?"
NEXT_BRANCH = "select min(branch) from steps where branch > ?"
NEXT_STEPS = _STEP + "where (branch, position) > (?, ?) order by branch, position limit ?"
COUNT_STEPS = "select count(*) from steps"
BRANCHES_WITH = "select branch, min(position) from steps where instr(messages, ?) > 0 group by branch"
TIP_BRANCHES = (
    "select t.id, t.branch, f.parent, p.branch from sessions s join steps t on t.id = s.tip"
    " join steps f on f.id = t.branch left join steps p on p.id = f.parent"
)

ADD_BLOB = "insert into blobs (digest, content) values (?, ?) on conflict (digest) do nothing"
DROP_BLOB = "delete from blobs where digest = ?"
BLOB = "select content from blobs where digest = ?"
NEXT_BLOB = "select digest, content from blobs where digest > ? order by digest limit 1"

_DELETION = "select id, number, session, reason, created, steps, blobs, digest, chain, purged from deletions "
ADD_DELETION = (
    "insert into deletions (id, number, session, reason, created, steps, blobs, digest, chain, purged)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
DELETIONS = _DELETION + "order by number, id"
NOTE_PURGED = "update deletions set purged = 1 where purged = 0"
UNPURGED = "select 1 from deletions where purged = 0 limit 1"
ADD_ERASED = "insert into erased (deletion, kind, name, rest) values (?, ?, ?, ?)"
ERASED = "select deletion, kind, name, rest from erased where kind = ? and name = ?"
ALL_ERASED = "select deletion, kind, name, rest from erased order by deletion, kind, name"
ERASE_STEP = "update steps set messages = '[]', data = '{}' where id = ?"
DROP_SESSION = (
    "delete from history where session = ?",
    "delete from aliases where session = ?",
    "delete from names where session = ?",
    "delete from sessions where id = ?",
)
