-- The tenant itself and its sites.

create table schools (
    id uuid primary key default uuid_v7(),
    slug text not null,
    name text not null,
    time_zone text not null,
    motto text,
    description text,
    colours text[] not null default '{}',
    logo_url text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint schools_slug_key unique (slug),
    constraint schools_slug_check check (slug ~ '^[a-z][a-z0-9-]{0,62}$'),
    constraint schools_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint schools_time_zone_check check (time_zone ~ '^[A-Za-z][A-Za-z0-9_+/-]{0,62}$'),
    constraint schools_motto_check check (char_length(motto) between 1 and 500),
    constraint schools_description_check check (char_length(description) between 1 and 2000),
    constraint schools_colours_check check (
        cardinality(colours) <= 8 and array_position(colours, null) is null and char_length(colours::text) <= 600),
    constraint schools_logo_url_check check (logo_url ~ '^https?://' and char_length(logo_url) <= 2000)
);
comment on table schools is 'A tenant. Not a tenant table itself: its own id is what every tenant table carries as school_id.';
comment on column schools.id is 'The tenant: the value of school_id everywhere, and of the setting app.school_id.';
comment on column schools.slug is 'Short name for addresses and commands, unique in the whole installation.';
comment on column schools.name is 'The name by which people know the school.';
comment on column schools.time_zone is 'IANA time zone in which the school''s days begin and end, such as Africa/Kampala.';
comment on column schools.motto is 'The motto, as printed on letters and reports.';
comment on column schools.description is 'What a visitor should know about the school.';
comment on column schools.colours is 'The school''s colours, the most important first.';
comment on column schools.logo_url is 'Where the logo can be fetched.';
comment on column schools.created_at is 'When the school joined.';
comment on column schools.updated_at is 'When this row last changed.';

create trigger touch before update on schools for each row execute function touch_updated_at();

-- Not forced: the owner (migrations and seeds only) opens schools before there is a tenant to be in.
alter table schools enable row level security;
create policy tenant on schools to school_app
    using (id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (id = nullif(current_setting('app.school_id', true), '')::uuid);
create policy directory on schools for select to school_directory using (true);

grant select on schools to school_app, school_platform;
grant select (id, slug, name, time_zone) on schools to school_directory;

create table campuses (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    name text not null,
    description text,
    address text,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint campuses_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint campuses_description_check check (char_length(description) between 1 and 2000),
    constraint campuses_address_check check (char_length(address) between 1 and 500)
);
create unique index campuses_name_key on campuses (school_id, lower(name));
comment on table campuses is 'A site of a school. Rules can be limited to campuses.';
comment on column campuses.school_id is 'The tenant.';
comment on column campuses.id is 'The campus, unique within its school.';
comment on column campuses.name is 'The name by which people know the campus, unique in the school whatever its case.';
comment on column campuses.description is 'What a visitor should know about the campus.';
comment on column campuses.address is 'Where the campus is.';
comment on column campuses.created_at is 'When the campus was entered.';

alter table campuses enable row level security, force row level security;
-- For everyone, the owner too: without a tenant a tenant table has no rows, whoever asks.
create policy tenant on campuses
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);
create policy directory on campuses for select to school_directory using (true);

grant select on campuses to school_app, school_platform;
grant select (school_id, id, name) on campuses to school_directory;
