-- What happened: one row for each change that a tool made, written in the transaction of that change.

create table audit_log (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_id uuid,
    actor_sub uuid not null,
    actor_email text not null,
    actor_type text not null,
    action text not null,
    resource_type text not null,
    resource_id uuid,
    event text not null,
    door text not null,
    turn_id text,
    tool_call_id text,
    approval_id uuid,
    arguments jsonb not null default '{}'::jsonb,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint audit_log_actor_email_check check (char_length(actor_email) between 1 and 254),
    constraint audit_log_actor_type_check check (actor_type in ('PLATFORM_ADMIN', 'SCHOOL_ADMIN', 'STAFF')),
    constraint audit_log_action_check check (action ~ '^[A-Z][A-Z_]{0,62}$'),
    constraint audit_log_resource_type_check check (resource_type ~ '^[A-Z][A-Z_]{0,62}$'),
    constraint audit_log_event_check check (event ~ '^[a-z]+\.[a-z0-9_]+$' and char_length(event) <= 200),
    constraint audit_log_door_check check (door ~ '^[a-z][a-z_]{0,62}$'),
    constraint audit_log_turn_id_check check (char_length(turn_id) between 1 and 512),
    constraint audit_log_tool_call_id_check check (char_length(tool_call_id) between 1 and 512),
    constraint audit_log_arguments_check check (jsonb_typeof(arguments) = 'object')
);
-- The primary key, read backwards, is the list itself; these serve its filters in the same order.
create index audit_log_actor_idx on audit_log (school_id, actor_email, id);
create index audit_log_resource_idx on audit_log (school_id, resource_type, resource_id, id);
comment on table audit_log is 'What was changed, by whom, and how they came in. Rows are added and never altered. They name rows without foreign keys, because they outlive them.';
comment on column audit_log.school_id is 'The tenant in which the change shows: that of the changed row.';
comment on column audit_log.id is 'The entry (UUID version 7, so entries of a school sort by age).';
comment on column audit_log.campus_id is 'The campus of the changed row; null when it has none.';
comment on column audit_log.actor_sub is 'The account of the person who did it.';
comment on column audit_log.actor_email is 'That person''s address at the time.';
comment on column audit_log.actor_type is 'That account''s type at the time.';
comment on column audit_log.action is 'What was done, such as CREATE.';
comment on column audit_log.resource_type is 'The kind of what was changed, such as DEPARTMENT.';
comment on column audit_log.resource_id is 'The row that was changed; null when the change is not of one row.';
comment on column audit_log.event is 'The tool''s event, such as create.department.';
comment on column audit_log.door is 'The way in: chat, rest, mcp and the like.';
comment on column audit_log.turn_id is 'The turn of a conversation that made the call, if one did.';
comment on column audit_log.tool_call_id is 'The call within that turn.';
comment on column audit_log.approval_id is 'The approval under which the change was made, if it needed one.';
comment on column audit_log.arguments is 'What the tool was called with, sensitive fields removed.';
comment on column audit_log.created_at is 'When the change''s transaction began.';

alter table audit_log enable row level security, force row level security;
create policy tenant on audit_log
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on audit_log to school_app, school_platform;

create function refuse_audit_change() returns trigger
    language plpgsql
as $$
begin
    raise exception 'the audit log is append-only: % is refused', lower(tg_op)
        using errcode = 'insufficient_privilege';
end
$$;
comment on function refuse_audit_change() is 'Trigger: refuses every change of what is already in the audit log, to every role.';
revoke all on function refuse_audit_change() from public;

create trigger append_only before update or delete or truncate on audit_log
    for each statement execute function refuse_audit_change();
-- Also for a session that plays a replica, which skips ordinary triggers.
alter table audit_log enable always trigger append_only;

-- A commit that notifies takes a lock of the whole database and waits for the disk under it, which halves the rate of writes.
-- So it is done only while somebody follows: followers hold this advisory lock, exclusively, from before they read what is there.
create function announce_audit_entry() returns trigger
    language plpgsql
as $$
begin
    if not pg_try_advisory_xact_lock_shared(7165905771442992641) then
        perform pg_notify('audit_log', json_build_object('schoolId', new.school_id, 'id', new.id)::text);
    end if;
    return null;
end
$$;
comment on function announce_audit_entry() is 'Row trigger: tells followers of channel audit_log that an entry was committed, by its ids only. Says nothing while nobody holds advisory lock 7165905771442992641.';
revoke all on function announce_audit_entry() from public;

create trigger announce after insert on audit_log for each row execute function announce_audit_entry();

create view audit_trail with (security_invoker = true) as
    select a.created_at at time zone s.time_zone as local_time,
           s.slug as school,
           c.name as campus,
           a.actor_email as actor,
           a.actor_type,
           a.action,
           a.resource_type,
           a.resource_id,
           a.event,
           a.door,
           a.turn_id,
           a.tool_call_id,
           a.approval_id,
           a.arguments,
           a.created_at,
           a.school_id,
           a.campus_id,
           a.actor_sub,
           a.id
      from audit_log a
      join schools s on s.id = a.school_id
      left join campuses c on c.school_id = a.school_id and c.id = a.campus_id;
comment on view audit_trail is 'The audit log for people: names beside the ids, and the school''s own time. Sees what the reader may see.';
comment on column audit_trail.local_time is 'When it happened, by the school''s clock.';
comment on column audit_trail.school is 'The school''s short name.';
comment on column audit_trail.campus is 'The campus''s name, as it is now.';
comment on column audit_trail.actor is 'The address of the person who did it.';
comment on column audit_trail.actor_type is 'That account''s type at the time.';
comment on column audit_trail.action is 'What was done.';
comment on column audit_trail.resource_type is 'The kind of what was changed.';
comment on column audit_trail.resource_id is 'The row that was changed.';
comment on column audit_trail.event is 'The tool''s event.';
comment on column audit_trail.door is 'The way in.';
comment on column audit_trail.turn_id is 'The turn that made the call.';
comment on column audit_trail.tool_call_id is 'The call within that turn.';
comment on column audit_trail.approval_id is 'The approval under which it was made.';
comment on column audit_trail.arguments is 'What the tool was called with.';
comment on column audit_trail.created_at is 'When it happened, as a point in time.';
comment on column audit_trail.school_id is 'The tenant.';
comment on column audit_trail.campus_id is 'The campus of the changed row.';
comment on column audit_trail.actor_sub is 'The account of the person who did it.';
comment on column audit_trail.id is 'The entry.';

grant select on audit_trail to school_app, school_platform;
