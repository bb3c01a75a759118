-- Who can sign in, and as whom they work in a school.

create table users (
    id uuid primary key default uuid_v7(),
    email text not null,
    name text not null,
    type text not null,
    active boolean not null default true,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint users_email_key unique (email),
    constraint users_email_check check (
        email = lower(email) and email ~ '^[^@[:space:]]+@[^@[:space:]]+$' and char_length(email) <= 254),
    constraint users_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint users_type_check check (type in ('PLATFORM_ADMIN', 'SCHOOL_ADMIN', 'STAFF'))
);
comment on table users is 'An account. Global: one person signs in with one address; the school comes with the staff row.';
comment on column users.id is 'The account: what an identity calls sub.';
comment on column users.email is 'The address that the person signs in with, in lower case.';
comment on column users.name is 'The person''s name, as they write it.';
comment on column users.type is 'PLATFORM_ADMIN runs the installation, SCHOOL_ADMIN a school, STAFF works in one. It gives no rights inside a school; roles do.';
comment on column users.active is 'False once the account is closed: nothing may be done with it any more.';
comment on column users.created_at is 'When the account was opened.';
comment on column users.updated_at is 'When this row last changed.';

create trigger touch before update on users for each row execute function touch_updated_at();

create table staff (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    user_id uuid not null references users (id),
    campus_id uuid,
    title text,
    active boolean not null default true,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint staff_user_key unique (school_id, user_id),
    constraint staff_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id),
    constraint staff_title_check check (char_length(title) <= 200 and btrim(title) <> '')
);
create index staff_campus_idx on staff (school_id, campus_id, id);
-- The only index that does not begin with the tenant: the directory asks in which schools an account is.
create index staff_account_idx on staff (user_id, school_id);
comment on table staff is 'A person''s profile in a school. Lists page by id, which follows the order of joining.';
comment on column staff.school_id is 'The tenant.';
comment on column staff.id is 'The profile: what an identity calls profileId.';
comment on column staff.user_id is 'The account that this person signs in with.';
comment on column staff.campus_id is 'The campus where the person works; null for the whole school.';
comment on column staff.title is 'What the person is called in the school, such as Head of Sciences.';
comment on column staff.active is 'False once the person has left; the row stays for what they did.';
comment on column staff.created_at is 'When the person joined the school''s list.';
comment on column staff.updated_at is 'When this row last changed.';

create trigger touch before update on staff for each row execute function touch_updated_at();

alter table staff enable row level security, force row level security;
create policy tenant on staff
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);
create policy directory on staff for select to school_directory using (true);

-- An account is seen where it is on the staff; the policy of staff limits the inner query to the tenant.
-- Not forced: the owner (migrations and seeds only) opens accounts before anybody employs them.
alter table users enable row level security;
create policy tenant on users to school_app
    using (exists (select 1 from staff s where s.user_id = users.id))
    with check (exists (select 1 from staff s where s.user_id = users.id));
create policy directory on users for select to school_directory using (true);

grant select on users to school_app, school_platform;
grant update (name, updated_at) on users to school_app, school_platform;
grant select (id, email, name, type, active) on users to school_directory;

grant select on staff to school_app, school_platform;
grant update (campus_id, title, active, updated_at) on staff to school_app, school_platform;
grant select (school_id, id, user_id, campus_id, active) on staff to school_directory;
