-- What students are assessed by, and the scores that they have in it.

-- What is of a year and of a term names both, so that the two always agree.
alter table terms add constraint terms_of_year_key unique (school_id, campus_academic_year_id, id);

create table assessments (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    stream_id uuid not null,
    subject_id uuid not null,
    campus_academic_year_id uuid not null,
    term_id uuid not null,
    name text not null,
    out_of integer not null,
    weight integer not null,
    held_on date not null,
    created_at timestamptz not null default now(),
    primary key (school_id, id),
    -- Scores name what they are out of, so that no score can be more.
    constraint assessments_out_of_key unique (school_id, id, out_of),
    constraint assessments_stream_fkey foreign key (school_id, stream_id, campus_academic_year_id)
        references streams (school_id, id, campus_academic_year_id),
    constraint assessments_term_fkey foreign key (school_id, campus_academic_year_id, term_id)
        references terms (school_id, campus_academic_year_id, id),
    constraint assessments_subject_fkey foreign key (school_id, subject_id) references subjects (school_id, id),
    constraint assessments_name_check check (char_length(name) <= 120 and btrim(name) <> ''),
    constraint assessments_out_of_check check (out_of between 1 and 1000),
    constraint assessments_weight_check check (weight between 1 and 100)
);
create unique index assessments_name_key on assessments (school_id, stream_id, subject_id, term_id, lower(name));
-- Lists are in this order, and go on from the last day and id of a page.
create index assessments_list_idx on assessments (school_id, stream_id, subject_id, term_id, held_on, id);
create index assessments_term_idx on assessments (school_id, campus_academic_year_id, term_id);
create index assessments_subject_idx on assessments (school_id, subject_id);
comment on table assessments is 'A test, an examination or another piece of work by which a stream is assessed in a subject.';
comment on column assessments.school_id is 'The tenant.';
comment on column assessments.id is 'The assessment, unique within its school.';
comment on column assessments.stream_id is 'The stream that is assessed.';
comment on column assessments.subject_id is 'The subject that it is assessed in.';
comment on column assessments.campus_academic_year_id is 'The campus''s year; always that of the stream and of the term.';
comment on column assessments.term_id is 'The term that it counts for.';
comment on column assessments.name is 'What people call it, unique in its stream, subject and term whatever its case.';
comment on column assessments.out_of is 'The highest score.';
comment on column assessments.weight is 'How much it counts beside the others of its term.';
comment on column assessments.held_on is 'The day on which it is held; from then on a score is owed.';
comment on column assessments.created_at is 'When it was entered.';

alter table assessments enable row level security, force row level security;
create policy tenant on assessments
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on assessments to school_app, school_platform;

create table scores (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    assessment_id uuid not null,
    student_id uuid not null,
    out_of integer not null,
    score numeric(6, 2) not null,
    recorded_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint scores_student_key unique (school_id, assessment_id, student_id),
    constraint scores_assessment_fkey foreign key (school_id, assessment_id, out_of)
        references assessments (school_id, id, out_of),
    constraint scores_student_fkey foreign key (school_id, student_id) references students (school_id, id),
    constraint scores_score_check check (score between 0 and out_of)
);
create index scores_student_idx on scores (school_id, student_id, assessment_id);
comment on table scores is 'What a student reached in an assessment. It stays with the student, whatever stream they move to.';
comment on column scores.school_id is 'The tenant.';
comment on column scores.id is 'The score, unique within its school.';
comment on column scores.assessment_id is 'The assessment.';
comment on column scores.student_id is 'The student: one score each in an assessment.';
comment on column scores.out_of is 'The highest score; always that of the assessment.';
comment on column scores.score is 'What the student reached, from 0 to the highest.';
comment on column scores.recorded_at is 'When it was last recorded.';

alter table scores enable row level security, force row level security;
create policy tenant on scores
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on scores to school_app, school_platform;
grant update (score, recorded_at) on scores to school_app, school_platform;
