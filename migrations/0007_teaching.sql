-- What is taught, in which streams, and by whom.

create table subjects (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    code text not null,
    name text not null,
    description text,
    primary key (school_id, id),
    constraint subjects_code_key unique (school_id, code),
    constraint subjects_code_check check (char_length(code) <= 40 and btrim(code) <> ''),
    constraint subjects_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint subjects_description_check check (char_length(description) between 1 and 2000)
);
create unique index subjects_name_key on subjects (school_id, lower(name));
comment on table subjects is 'A subject that the school teaches, on whatever campus.';
comment on column subjects.school_id is 'The tenant.';
comment on column subjects.id is 'The subject, unique within its school.';
comment on column subjects.code is 'The short form on timetables, unique in the school.';
comment on column subjects.name is 'The name of the subject, unique in the school whatever its case.';
comment on column subjects.description is 'What the subject covers.';

alter table subjects enable row level security, force row level security;
create policy tenant on subjects
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on subjects to school_app, school_platform;

create table classes (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    name text not null,
    level integer not null,
    description text,
    primary key (school_id, id),
    constraint classes_level_key unique (school_id, level),
    constraint classes_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint classes_level_check check (level between 1 and 20),
    constraint classes_description_check check (char_length(description) between 1 and 2000)
);
create unique index classes_name_key on classes (school_id, lower(name));
comment on table classes is 'A level of the school, such as Senior 2.';
comment on column classes.school_id is 'The tenant.';
comment on column classes.id is 'The class, unique within its school.';
comment on column classes.name is 'What people call the level, unique in the school whatever its case.';
comment on column classes.level is 'The level''s place, the youngest first.';
comment on column classes.description is 'What the level is about.';

alter table classes enable row level security, force row level security;
create policy tenant on classes
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on classes to school_app, school_platform;

create table streams (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    class_id uuid not null,
    campus_id uuid not null,
    campus_academic_year_id uuid not null,
    name text not null,
    primary key (school_id, id),
    -- Enrolments name the stream and its year together, so that the two always agree.
    constraint streams_year_key unique (school_id, id, campus_academic_year_id),
    constraint streams_class_fkey foreign key (school_id, class_id) references classes (school_id, id),
    constraint streams_campus_academic_year_fkey foreign key (school_id, campus_id, campus_academic_year_id)
        references campus_academic_years (school_id, campus_id, id),
    constraint streams_name_check check (char_length(name) <= 200 and btrim(name) <> '')
);
create unique index streams_name_key on streams (school_id, campus_academic_year_id, lower(name));
create index streams_class_idx on streams (school_id, class_id);
comment on table streams is 'A group of students who are taught together: a class on a campus in a year, such as S2 East.';
comment on column streams.school_id is 'The tenant.';
comment on column streams.id is 'The stream, unique within its school.';
comment on column streams.class_id is 'The level.';
comment on column streams.campus_id is 'The campus; always that of the campus''s year.';
comment on column streams.campus_academic_year_id is 'The campus''s year.';
comment on column streams.name is 'What people call the stream, unique in its campus''s year whatever its case.';

alter table streams enable row level security, force row level security;
create policy tenant on streams
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on streams to school_app, school_platform;

create table class_teachers (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    stream_id uuid not null,
    staff_id uuid not null,
    primary key (school_id, id),
    constraint class_teachers_stream_key unique (school_id, stream_id),
    constraint class_teachers_stream_fkey foreign key (school_id, stream_id) references streams (school_id, id),
    constraint class_teachers_staff_fkey foreign key (school_id, staff_id) references staff (school_id, id)
);
create index class_teachers_staff_idx on class_teachers (school_id, staff_id);
comment on table class_teachers is 'Who answers for a stream; a stream is of one year, and has one class teacher at most.';
comment on column class_teachers.school_id is 'The tenant.';
comment on column class_teachers.id is 'The assignment, unique within its school.';
comment on column class_teachers.stream_id is 'The stream.';
comment on column class_teachers.staff_id is 'Its class teacher.';

alter table class_teachers enable row level security, force row level security;
create policy tenant on class_teachers
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on class_teachers to school_app, school_platform;

create table subject_teachers (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    stream_id uuid not null,
    subject_id uuid not null,
    staff_id uuid not null,
    primary key (school_id, id),
    constraint subject_teachers_staff_key unique (school_id, stream_id, subject_id, staff_id),
    constraint subject_teachers_stream_fkey foreign key (school_id, stream_id) references streams (school_id, id),
    constraint subject_teachers_subject_fkey foreign key (school_id, subject_id) references subjects (school_id, id),
    constraint subject_teachers_staff_fkey foreign key (school_id, staff_id) references staff (school_id, id)
);
create index subject_teachers_staff_idx on subject_teachers (school_id, staff_id);
create index subject_teachers_subject_idx on subject_teachers (school_id, subject_id);
comment on table subject_teachers is 'Who teaches a subject to a stream, in the stream''s year.';
comment on column subject_teachers.school_id is 'The tenant.';
comment on column subject_teachers.id is 'The assignment, unique within its school.';
comment on column subject_teachers.stream_id is 'The stream that is taught.';
comment on column subject_teachers.subject_id is 'The subject that it is taught.';
comment on column subject_teachers.staff_id is 'Who teaches it.';

alter table subject_teachers enable row level security, force row level security;
create policy tenant on subject_teachers
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on subject_teachers to school_app, school_platform;

create table directors_of_studies (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_id uuid not null,
    staff_id uuid not null,
    primary key (school_id, id),
    constraint directors_of_studies_staff_key unique (school_id, campus_id, staff_id),
    constraint directors_of_studies_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id),
    constraint directors_of_studies_staff_fkey foreign key (school_id, staff_id) references staff (school_id, id)
);
create index directors_of_studies_staff_idx on directors_of_studies (school_id, staff_id);
comment on table directors_of_studies is 'Who directs the studies on a campus.';
comment on column directors_of_studies.school_id is 'The tenant.';
comment on column directors_of_studies.id is 'The appointment, unique within its school.';
comment on column directors_of_studies.campus_id is 'The campus.';
comment on column directors_of_studies.staff_id is 'Its director of studies.';

alter table directors_of_studies enable row level security, force row level security;
create policy tenant on directors_of_studies
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on directors_of_studies to school_app, school_platform;
