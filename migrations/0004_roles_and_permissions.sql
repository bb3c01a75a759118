-- What people may do. Rules are ordered by the role's rank, then by position, and the last one that matches decides.

create table roles (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    name text not null,
    description text,
    rank integer not null,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    -- Two roles of one rank would leave the order of their rules to chance.
    constraint roles_rank_key unique (school_id, rank),
    constraint roles_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint roles_description_check check (char_length(description) between 1 and 2000),
    constraint roles_rank_check check (rank between 1 and 100000)
);
create unique index roles_name_key on roles (school_id, lower(name));
comment on table roles is 'A named set of rules that a school gives to its people.';
comment on column roles.school_id is 'The tenant.';
comment on column roles.id is 'The role, unique within its school.';
comment on column roles.name is 'The name of the role, unique in the school whatever its case.';
comment on column roles.description is 'Whom the role is for.';
comment on column roles.rank is 'Rules of a higher rank come later, and so outweigh those of a lower one. What a department grants comes before every rank.';
comment on column roles.created_at is 'When the role was made.';

alter table roles enable row level security, force row level security;
create policy tenant on roles
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on roles to school_app, school_platform;

create table role_permissions (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    role_id uuid not null,
    position integer not null,
    action text not null,
    resource text not null,
    effect text not null default 'allow',
    condition jsonb,
    primary key (school_id, id),
    constraint role_permissions_position_key unique (school_id, role_id, position),
    constraint role_permissions_role_fkey
        foreign key (school_id, role_id) references roles (school_id, id) on delete cascade,
    constraint role_permissions_position_check check (position between 0 and 10000),
    constraint role_permissions_action_check check (action in ('CREATE', 'READ', 'UPDATE', 'DELETE', 'LIST', 'MANAGE')),
    constraint role_permissions_resource_check check (resource in (
        'SCHOOL', 'CAMPUS', 'ACADEMIC_YEAR', 'DEPARTMENT', 'STAFF', 'ROLE', 'SUBJECT', 'STREAM', 'STUDENT', 'ATTENDANCE',
        'GRADING_CONFIG', 'ASSESSMENT', 'GRADEBOOK', 'REPORT', 'LESSON_TEMPLATE', 'LESSON_PLAN', 'ANNOUNCEMENT',
        'AUDIT_LOG', 'ALL')),
    constraint role_permissions_effect_check check (effect in ('allow', 'deny')),
    -- A condition that the server could not read would have to be refused at each call; so it cannot be stored.
    constraint role_permissions_condition_check check (
        case
            when condition is null then true
            when jsonb_typeof(condition) <> 'object' then false
            when not condition ? 'campusId' or condition - 'campusId' <> '{}'::jsonb then false
            when jsonb_typeof(condition -> 'campusId') = 'null' then true
            when jsonb_typeof(condition -> 'campusId') <> 'string' then false
            else condition ->> 'campusId' ~ '^(\$own|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$'
        end)
);
comment on table role_permissions is 'The rules of a role.';
comment on column role_permissions.school_id is 'The tenant.';
comment on column role_permissions.id is 'The rule, unique within its school.';
comment on column role_permissions.role_id is 'The role that this rule belongs to.';
comment on column role_permissions.position is 'The rule''s place in its role; a later rule outweighs an earlier one.';
comment on column role_permissions.action is 'What the rule is about doing; MANAGE stands for every action.';
comment on column role_permissions.resource is 'What it is done to; ALL stands for every resource.';
comment on column role_permissions.effect is 'Whether the rule allows or denies.';
comment on column role_permissions.condition is 'Null: always. {"campusId": …}: only for what is on that campus; "$own" is the campus of the holder; null is what has no campus.';

alter table role_permissions enable row level security, force row level security;
create policy tenant on role_permissions
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on role_permissions to school_app, school_platform;

create table user_roles (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    staff_id uuid not null,
    role_id uuid not null,
    campus_id uuid,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint user_roles_grant_key unique nulls not distinct (school_id, staff_id, role_id, campus_id),
    constraint user_roles_staff_fkey foreign key (school_id, staff_id) references staff (school_id, id),
    constraint user_roles_role_fkey foreign key (school_id, role_id) references roles (school_id, id),
    constraint user_roles_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id)
);
create index user_roles_role_idx on user_roles (school_id, role_id);
comment on table user_roles is 'Which member of staff holds which role, and where.';
comment on column user_roles.school_id is 'The tenant.';
comment on column user_roles.id is 'The grant, unique within its school.';
comment on column user_roles.staff_id is 'Who holds the role.';
comment on column user_roles.role_id is 'The role that is held.';
comment on column user_roles.campus_id is 'Null: the role as it is. A campus: each of its rules counts on that campus only, and "$own" means it.';
comment on column user_roles.created_at is 'When the role was given.';

alter table user_roles enable row level security, force row level security;
create policy tenant on user_roles
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on user_roles to school_app, school_platform;
