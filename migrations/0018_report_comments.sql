-- What a class teacher writes on a student's report of a term.

create table report_comments (
    school_id uuid not null,
    id uuid not null default uuid_v7(),
    student_id uuid not null,
    term_id uuid not null,
    stream_id uuid not null,
    comment text not null,
    written_by uuid not null,
    created_at timestamptz not null default now(),
    written_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint report_comments_term_key unique (school_id, student_id, term_id),
    constraint report_comments_student_fkey foreign key (school_id, student_id) references students (school_id, id),
    constraint report_comments_term_fkey foreign key (school_id, term_id) references terms (school_id, id),
    constraint report_comments_stream_fkey foreign key (school_id, stream_id) references streams (school_id, id),
    constraint report_comments_written_by_fkey foreign key (school_id, written_by) references staff (school_id, id),
    constraint report_comments_comment_check check (char_length(comment) <= 2000 and btrim(comment) <> '')
);
create index report_comments_term_idx on report_comments (school_id, term_id);
create index report_comments_stream_idx on report_comments (school_id, stream_id);
create index report_comments_written_by_idx on report_comments (school_id, written_by);
comment on table report_comments is 'The class teacher''s comment on a student''s report: one a student and term.';
comment on column report_comments.school_id is 'The tenant.';
comment on column report_comments.id is 'The comment, unique within its school.';
comment on column report_comments.student_id is 'The student.';
comment on column report_comments.term_id is 'The term that the report is of.';
comment on column report_comments.stream_id is 'The stream that the student was in when the comment was written.';
comment on column report_comments.comment is 'The comment, as the family will read it.';
comment on column report_comments.written_by is 'The class teacher who wrote it last.';
comment on column report_comments.created_at is 'When the student first had a comment for the term.';
comment on column report_comments.written_at is 'When it was last written; later than created_at where one comment has replaced another.';

alter table report_comments enable row level security, force row level security;
create policy tenant on report_comments
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on report_comments to school_app, school_platform;
grant update (stream_id, comment, written_by, written_at) on report_comments to school_app, school_platform;
