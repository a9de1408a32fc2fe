-- The tables that a Nexus with schema 1 made on a server, as it made them.
create schema nexus;
create table nexus.about (version bigint not null);
create table nexus.branches (
    id text collate "C" primary key,
    parent text collate "C" references nexus.branches,
    position bigint not null
);
create table nexus.steps (
    id text collate "C" primary key,
    parent text collate "C" references nexus.steps,
    turn text collate "C" not null,
    branch text collate "C" not null references nexus.branches,
    position bigint not null,
    kind text not null,
    closes smallint not null,
    tokens bigint not null,
    counter text not null,
    total bigint not null,
    compaction text collate "C" references nexus.steps,
    created bigint not null,
    digest text not null,
    chain text not null,
    data text not null,
    messages text not null,
    unique (branch, position)
);
create table nexus.sessions (
    id text collate "C" primary key,
    label text collate "C" not null unique,
    head text collate "C" references nexus.steps,
    tip text collate "C" references nexus.steps,
    open_turn text collate "C" references nexus.steps,
    status text not null,
    origin text not null,
    created bigint not null,
    updated bigint not null,
    data text not null,
    seal text not null
);
create table nexus.aliases (
    alias text collate "C" primary key,
    session text collate "C" not null references nexus.sessions,
    created bigint not null,
    seal text not null
);
create table nexus.history (
    session text collate "C" not null references nexus.sessions,
    step text collate "C" not null references nexus.steps,
    reason text not null,
    changed bigint not null,
    seal text not null,
    primary key (session, step)
);
create table nexus.blobs (digest text collate "C" primary key, content bytea not null);
create function nexus.refuse() returns trigger language plpgsql as $$
    begin raise exception 'steps are only ever added'; end
$$;
create trigger steps_never_change before update or delete on nexus.steps
    for each row execute function nexus.refuse();
insert into nexus.about (version) values (1);
