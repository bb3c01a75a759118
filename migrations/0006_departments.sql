-- Departments of a campus, who leads them, who is in them, and what that lets people do.

create table departments (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_id uuid not null,
    name text not null,
    description text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint departments_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id),
    constraint departments_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint departments_description_check check (char_length(description) between 1 and 2000)
);
create unique index departments_name_key on departments (school_id, campus_id, lower(name));
-- Lists are in this order, and go on from the last name and id of a page.
create index departments_list_idx on departments (school_id, name, id);
comment on table departments is 'A department of a campus.';
comment on column departments.school_id is 'The tenant.';
comment on column departments.id is 'The department, unique within its school.';
comment on column departments.campus_id is 'The campus that it belongs to; it never moves.';
comment on column departments.name is 'The name of the department, unique on its campus whatever its case.';
comment on column departments.description is 'What the department is for.';
comment on column departments.created_at is 'When the department was made.';
comment on column departments.updated_at is 'When this row last changed.';

create trigger touch before update on departments for each row execute function touch_updated_at();

alter table departments enable row level security, force row level security;
create policy tenant on departments
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert, delete on departments to school_app, school_platform;
grant update (name, description, updated_at) on departments to school_app, school_platform;

create table department_heads (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    department_id uuid not null,
    staff_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint department_heads_staff_key unique (school_id, department_id, staff_id),
    constraint department_heads_department_fkey
        foreign key (school_id, department_id) references departments (school_id, id) on delete cascade,
    constraint department_heads_staff_fkey foreign key (school_id, staff_id) references staff (school_id, id)
);
create index department_heads_staff_idx on department_heads (school_id, staff_id);
comment on table department_heads is 'Who leads a department; several people may.';
comment on column department_heads.school_id is 'The tenant.';
comment on column department_heads.id is 'The appointment, unique within its school.';
comment on column department_heads.department_id is 'The department that is led.';
comment on column department_heads.staff_id is 'Who leads it.';
comment on column department_heads.created_at is 'When the person was appointed.';

alter table department_heads enable row level security, force row level security;
create policy tenant on department_heads
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert, delete on department_heads to school_app, school_platform;

create table department_members (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    department_id uuid not null,
    staff_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint department_members_staff_key unique (school_id, department_id, staff_id),
    constraint department_members_department_fkey
        foreign key (school_id, department_id) references departments (school_id, id) on delete cascade,
    constraint department_members_staff_fkey foreign key (school_id, staff_id) references staff (school_id, id)
);
create index department_members_staff_idx on department_members (school_id, staff_id);
comment on table department_members is 'Who works in a department.';
comment on column department_members.school_id is 'The tenant.';
comment on column department_members.id is 'The membership, unique within its school.';
comment on column department_members.department_id is 'The department.';
comment on column department_members.staff_id is 'Who works in it.';
comment on column department_members.created_at is 'When the person joined the department.';

alter table department_members enable row level security, force row level security;
create policy tenant on department_members
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

-- No tool changes members yet; those of a deleted department go with it, by the foreign key.
grant select on department_members to school_app, school_platform;

create table department_permissions (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    department_id uuid not null,
    action text not null,
    resource text not null,
    primary key (school_id, id),
    constraint department_permissions_rule_key unique (school_id, department_id, action, resource),
    constraint department_permissions_department_fkey
        foreign key (school_id, department_id) references departments (school_id, id) on delete cascade,
    constraint department_permissions_action_check check (action in ('CREATE', 'READ', 'UPDATE', 'DELETE', 'LIST', 'MANAGE')),
    constraint department_permissions_resource_check check (resource in (
        'SCHOOL', 'CAMPUS', 'ACADEMIC_YEAR', 'DEPARTMENT', 'STAFF', 'ROLE', 'SUBJECT', 'STREAM', 'STUDENT', 'ATTENDANCE',
        'GRADING_CONFIG', 'ASSESSMENT', 'GRADEBOOK', 'REPORT', 'LESSON_TEMPLATE', 'LESSON_PLAN', 'ANNOUNCEMENT',
        'AUDIT_LOG', 'ALL'))
);
comment on table department_permissions is 'What the members of a department may do on its campus. Every role outweighs it.';
comment on column department_permissions.school_id is 'The tenant.';
comment on column department_permissions.id is 'The permission, unique within its school.';
comment on column department_permissions.department_id is 'The department whose members have it.';
comment on column department_permissions.action is 'What they may do; MANAGE stands for every action.';
comment on column department_permissions.resource is 'What they may do it to; ALL stands for every resource.';

alter table department_permissions enable row level security, force row level security;
create policy tenant on department_permissions
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert, delete on department_permissions to school_app, school_platform;
