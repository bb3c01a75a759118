-- Which subjects a level takes: what a stream's teaching is held against.

create table class_subjects (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    class_id uuid not null,
    subject_id uuid not null,
    primary key (school_id, id),
    constraint class_subjects_subject_key unique (school_id, class_id, subject_id),
    constraint class_subjects_class_fkey foreign key (school_id, class_id) references classes (school_id, id),
    constraint class_subjects_subject_fkey foreign key (school_id, subject_id) references subjects (school_id, id)
);
create index class_subjects_subject_idx on class_subjects (school_id, subject_id);
comment on table class_subjects is 'The curriculum: which subjects the streams of a class are taught.';
comment on column class_subjects.school_id is 'The tenant.';
comment on column class_subjects.id is 'The row, unique within its school.';
comment on column class_subjects.class_id is 'The class.';
comment on column class_subjects.subject_id is 'A subject that it takes.';

alter table class_subjects enable row level security, force row level security;
create policy tenant on class_subjects
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on class_subjects to school_app, school_platform;
