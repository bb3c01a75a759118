-- Conversations: threads, their turns, and what happened in each.

create table threads (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    staff_id uuid not null,
    campus_id uuid,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint threads_staff_fkey foreign key (school_id, staff_id) references staff (school_id, id),
    constraint threads_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id)
);
create index threads_staff_idx on threads (school_id, staff_id, id);
create index threads_campus_idx on threads (school_id, campus_id);
comment on table threads is 'Conversations of a member of staff with the agents.';
comment on column threads.school_id is 'The tenant.';
comment on column threads.id is 'The thread, unique within its school.';
comment on column threads.staff_id is 'Whose it is; nobody else sees it.';
comment on column threads.campus_id is 'The campus that its turns are pinned to; null: the whole school.';
comment on column threads.created_at is 'When it was opened.';

alter table threads enable row level security, force row level security;
create policy tenant on threads
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on threads to school_app, school_platform;

create table turns (
    school_id uuid not null,
    id uuid not null,
    thread_id uuid not null,
    status text not null default 'running',
    message text not null,
    outcome text,
    deadline_at timestamptz not null,
    cancelled boolean not null default false,
    created_at timestamptz not null default now(),
    ended_at timestamptz,
    primary key (school_id, id),
    constraint turns_thread_fkey foreign key (school_id, thread_id) references threads (school_id, id),
    constraint turns_status_check check (status in ('running', 'waiting', 'answered', 'failed', 'cancelled')),
    constraint turns_message_check check (char_length(message) between 1 and 20000),
    constraint turns_ended_check check ((status in ('running', 'waiting')) = (ended_at is null) and (outcome is null) = (ended_at is null))
);
create unique index turns_open_key on turns (school_id, thread_id) where ended_at is null;
create index turns_thread_idx on turns (school_id, thread_id, id);
comment on table turns is 'Messages of a thread, each with what came of it. One at a time is open in a thread.';
comment on column turns.school_id is 'The tenant.';
comment on column turns.id is 'The turn, unique within its school; part of the keys of its calls.';
comment on column turns.thread_id is 'The thread that it belongs to.';
comment on column turns.status is 'Whether it runs, waits for somebody, or how it ended.';
comment on column turns.message is 'What the person wrote.';
comment on column turns.outcome is 'What the person was told at its end; null until then.';
comment on column turns.deadline_at is 'When it must have ended.';
comment on column turns.cancelled is 'Whether its person has asked for it to be stopped.';
comment on column turns.created_at is 'When it was dispatched.';
comment on column turns.ended_at is 'When it ended; null until then.';

alter table turns enable row level security, force row level security;
create policy tenant on turns
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on turns to school_app, school_platform;
grant update (status, outcome, cancelled, ended_at) on turns to school_app, school_platform;

create table turn_events (
    school_id uuid not null,
    turn_id uuid not null,
    attempt integer not null,
    place integer not null,
    event jsonb not null,
    created_at timestamptz not null default now(),
    primary key (school_id, turn_id, attempt, place),
    constraint turn_events_turn_fkey foreign key (school_id, turn_id) references turns (school_id, id),
    constraint turn_events_attempt_check check (attempt between 1 and 1000),
    constraint turn_events_place_check check (place >= 1),
    constraint turn_events_event_check check (jsonb_typeof(event) = 'object')
);
create unique index turn_events_end_key on turn_events (school_id, turn_id) where event ->> 'type' = 'ended';
comment on table turn_events is 'What happened in a turn, as its workers reported it, each event once, and one end.';
comment on column turn_events.school_id is 'The tenant.';
comment on column turn_events.turn_id is 'The turn.';
comment on column turn_events.attempt is 'Which delivery of the turn this is from, from 1.';
comment on column turn_events.place is 'Its place among the events of the attempt, from 1 and without gaps.';
comment on column turn_events.event is 'The event; its type is a member.';
comment on column turn_events.created_at is 'When it was stored.';

alter table turn_events enable row level security, force row level security;
create policy tenant on turn_events
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on turn_events to school_app, school_platform;
