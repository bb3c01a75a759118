-- Who answers for a student at home.

create table guardians (
    school_id uuid not null,
    id uuid not null default uuid_v7(),
    student_id uuid not null,
    place integer not null,
    name text not null,
    relation text not null,
    phone text,
    email text,
    primary key (school_id, id),
    constraint guardians_place_key unique (school_id, student_id, place),
    constraint guardians_student_fkey
        foreign key (school_id, student_id) references students (school_id, id) on delete cascade,
    constraint guardians_place_check check (place between 1 and 4),
    constraint guardians_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint guardians_relation_check check (char_length(relation) <= 60 and btrim(relation) <> ''),
    constraint guardians_phone_check check (char_length(phone) <= 40 and btrim(phone) <> ''),
    constraint guardians_email_check check (char_length(email) <= 320 and btrim(email) <> '')
);
comment on table guardians is 'Whom the school speaks to about a student; four people at the most.';
comment on column guardians.school_id is 'The tenant.';
comment on column guardians.id is 'The guardian of this student, unique within the school.';
comment on column guardians.student_id is 'The student.';
comment on column guardians.place is 'Whom to ask first, from 1.';
comment on column guardians.name is 'The guardian''s name, as they write it.';
comment on column guardians.relation is 'What the guardian is to the student, such as aunt.';
comment on column guardians.phone is 'The telephone number, where there is one.';
comment on column guardians.email is 'The e-mail address, where there is one.';

alter table guardians enable row level security, force row level security;
create policy tenant on guardians
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert, delete on guardians to school_app, school_platform;
