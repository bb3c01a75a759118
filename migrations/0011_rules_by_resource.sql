-- A call reads the rules about what it asks about, and no others.

create index role_permissions_resource_idx on role_permissions (school_id, role_id, resource);

-- Each of these held the school's row against every other write of the same school, and says nothing that does not hold without it: a
-- department's school is its campus's, and a key or an entry is written only in a frame whose tenant was found active just before.
alter table departments drop constraint departments_school_id_fkey;
alter table tool_calls drop constraint tool_calls_school_id_fkey;
alter table audit_log drop constraint audit_log_school_id_fkey;

comment on column tool_calls.created_at is 'When the call''s transaction began.';

-- Whether an account is on the school's staff is looked up for each account that a statement reaches. Without OFFSET 0 the planner may
-- read the whole staff of the school instead, for one account as well.
alter policy tenant on users
    using (exists (select from staff s where s.user_id = users.id offset 0))
    with check (exists (select from staff s where s.user_id = users.id offset 0));
