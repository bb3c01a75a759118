-- What makes a repeated message harmless. A key is claimed in the transaction of its call: a row that is seen is done.

create table tool_calls (
    school_id uuid not null references schools (id),
    key text not null,
    event text not null,
    actor_sub uuid not null,
    arguments_digest bytea not null,
    reply jsonb,
    created_at timestamptz not null default now(),
    finished_at timestamptz,
    primary key (school_id, key),
    constraint tool_calls_key_check check (char_length(key) between 1 and 512),
    constraint tool_calls_event_check check (event ~ '^[a-z]+\.[a-z0-9_]+$' and char_length(event) <= 200),
    constraint tool_calls_arguments_digest_check check (octet_length(arguments_digest) = 32),
    constraint tool_calls_finished_check check ((reply is null) = (finished_at is null))
);
comment on table tool_calls is 'Writes that were done, by their idempotency key, so that a repeated one gets the first one''s reply.';
comment on column tool_calls.school_id is 'The tenant of the caller.';
comment on column tool_calls.key is 'The message''s key, such as <turn>:<tool call>; it means something within its school only.';
comment on column tool_calls.event is 'The tool''s event; the same key with another event is refused.';
comment on column tool_calls.actor_sub is 'The account that called; the same key from another account is refused.';
comment on column tool_calls.arguments_digest is 'SHA-256 of the arguments; the same key with other arguments is refused.';
comment on column tool_calls.reply is 'What was answered.';
comment on column tool_calls.created_at is 'When the key was claimed.';
comment on column tool_calls.finished_at is 'When the reply was known.';

alter table tool_calls enable row level security, force row level security;
create policy tenant on tool_calls
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on tool_calls to school_app, school_platform;
grant update (reply, finished_at) on tool_calls to school_app, school_platform;

create table operator_tool_calls (
    key text primary key,
    event text not null,
    actor_sub uuid not null,
    arguments_digest bytea not null,
    reply jsonb,
    created_at timestamptz not null default now(),
    finished_at timestamptz,
    constraint operator_tool_calls_key_check check (char_length(key) between 1 and 512),
    constraint operator_tool_calls_event_check check (event ~ '^[a-z]+\.[a-z0-9_]+$' and char_length(event) <= 200),
    constraint operator_tool_calls_arguments_digest_check check (octet_length(arguments_digest) = 32),
    constraint operator_tool_calls_finished_check check ((reply is null) = (finished_at is null))
);
comment on table operator_tool_calls is 'The same for platform administrators, who call from no school. Only their role reads or writes it.';
comment on column operator_tool_calls.key is 'The message''s key.';
comment on column operator_tool_calls.event is 'The tool''s event.';
comment on column operator_tool_calls.actor_sub is 'The account that called.';
comment on column operator_tool_calls.arguments_digest is 'SHA-256 of the arguments.';
comment on column operator_tool_calls.reply is 'What was answered.';
comment on column operator_tool_calls.created_at is 'When the key was claimed.';
comment on column operator_tool_calls.finished_at is 'When the reply was known.';

grant select, insert on operator_tool_calls to school_platform;
grant update (reply, finished_at) on operator_tool_calls to school_platform;

create table delivery_attempts (
    key text primary key,
    attempts integer not null default 1,
    first_at timestamptz not null default now(),
    last_at timestamptz not null default now(),
    constraint delivery_attempts_key_check check (char_length(key) between 1 and 512),
    constraint delivery_attempts_attempts_check check (attempts >= 1),
    constraint delivery_attempts_order_check check (first_at <= last_at)
);
comment on table delivery_attempts is 'How often a message was begun, so that one which kills its server is given up. Global: it holds message keys, and nothing of any school.';
comment on column delivery_attempts.key is 'The message''s key.';
comment on column delivery_attempts.attempts is 'How often a server began it.';
comment on column delivery_attempts.first_at is 'When a server first began it.';
comment on column delivery_attempts.last_at is 'When a server last began it.';

grant select, insert, delete on delivery_attempts to school_app, school_platform;
grant update (attempts, last_at) on delivery_attempts to school_app, school_platform;
