-- The students, and the streams that they are in.

create table students (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_id uuid not null,
    admission_number text not null,
    given_name text not null,
    family_name text not null,
    born_on date,
    notes text,
    active boolean not null default true,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint students_admission_number_key unique (school_id, admission_number),
    constraint students_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id),
    constraint students_admission_number_check check (char_length(admission_number) <= 40 and btrim(admission_number) <> ''),
    constraint students_given_name_check check (char_length(given_name) <= 200 and btrim(given_name) <> ''),
    constraint students_family_name_check check (char_length(family_name) <= 200 and btrim(family_name) <> ''),
    constraint students_notes_check check (char_length(notes) between 1 and 2000)
);
create index students_list_idx on students (school_id, family_name, given_name, id);
create index students_campus_idx on students (school_id, campus_id);
comment on table students is 'A student of the school.';
comment on column students.school_id is 'The tenant.';
comment on column students.id is 'The student, unique within the school.';
comment on column students.campus_id is 'The campus that the student attends.';
comment on column students.admission_number is 'The number under which the school admitted the student.';
comment on column students.given_name is 'The given name, as the family writes it.';
comment on column students.family_name is 'The family name, as the family writes it.';
comment on column students.born_on is 'The date of birth, where it is known.';
comment on column students.notes is 'What teachers should know about the student.';
comment on column students.active is 'False once the student has left; the row stays for their marks.';
comment on column students.created_at is 'When the student was entered.';

alter table students enable row level security, force row level security;
create policy tenant on students
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on students to school_app, school_platform;

create table enrolments (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    student_id uuid not null,
    stream_id uuid not null,
    campus_academic_year_id uuid not null,
    enrolled_on date not null default current_date,
    primary key (school_id, id),
    constraint enrolments_student_key unique (school_id, campus_academic_year_id, student_id),
    constraint enrolments_student_fkey foreign key (school_id, student_id) references students (school_id, id),
    constraint enrolments_stream_fkey foreign key (school_id, stream_id, campus_academic_year_id)
        references streams (school_id, id, campus_academic_year_id)
);
create index enrolments_stream_idx on enrolments (school_id, stream_id, student_id);
create index enrolments_student_idx on enrolments (school_id, student_id);
comment on table enrolments is 'Which stream a student is in: one in a campus''s year.';
comment on column enrolments.school_id is 'The tenant.';
comment on column enrolments.id is 'The enrolment, unique within its school.';
comment on column enrolments.student_id is 'The student.';
comment on column enrolments.stream_id is 'The stream that the student is in.';
comment on column enrolments.campus_academic_year_id is 'The campus''s year; always that of the stream.';
comment on column enrolments.enrolled_on is 'The day from which the student is in the stream.';

alter table enrolments enable row level security, force row level security;
create policy tenant on enrolments
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on enrolments to school_app, school_platform;
