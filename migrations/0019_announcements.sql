-- What the school tells its staff.

create table announcements (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    audience text not null,
    campus_id uuid,
    stream_id uuid,
    title text not null,
    body text not null,
    published_by uuid,
    published_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint announcements_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id),
    constraint announcements_stream_fkey foreign key (school_id, stream_id) references streams (school_id, id),
    constraint announcements_published_by_fkey foreign key (school_id, published_by) references staff (school_id, id),
    constraint announcements_audience_check check (audience in ('school', 'campus', 'stream')),
    constraint announcements_addressee_check check (
        (campus_id is null) = (audience = 'school') and (stream_id is null) = (audience <> 'stream')),
    constraint announcements_title_check check (char_length(title) <= 200 and btrim(title) <> ''),
    -- With the title and the names beside it, and each character as six bytes of JSON, a row fits into a reply.
    constraint announcements_body_check check (char_length(body) <= 4000 and btrim(body) <> '')
);
-- Each of those whom one may be addressed with has its own order, from the newest back: a reader's list is put together from the
-- newest of each, however much is announced to others.
create index announcements_school_idx on announcements (school_id, published_at, id) where audience = 'school';
create index announcements_campus_idx on announcements (school_id, campus_id, audience, published_at, id);
create index announcements_stream_idx on announcements (school_id, stream_id, published_at, id);
create index announcements_published_by_idx on announcements (school_id, published_by);
comment on table announcements is 'Something that staff were told. It is never changed.';
comment on column announcements.school_id is 'The tenant.';
comment on column announcements.id is 'The announcement, unique within its school.';
comment on column announcements.audience is 'Whom it is for: all staff of the school; those of a campus and of the whole school; or those who teach a stream.';
comment on column announcements.campus_id is 'The campus that it is for, or that the stream is on; null for the whole school.';
comment on column announcements.stream_id is 'The stream whose teachers it is for, where it is for those.';
comment on column announcements.title is 'What it is about, in a line.';
comment on column announcements.body is 'What it says.';
comment on column announcements.published_by is 'Who published it; null for a platform administrator.';
comment on column announcements.published_at is 'When it was published.';

alter table announcements enable row level security, force row level security;
create policy tenant on announcements
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on announcements to school_app, school_platform;
