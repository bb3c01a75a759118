-- Who was there: one mark a student and day.

create table attendance_marks (
    school_id uuid not null,
    id uuid not null default uuid_v7(),
    student_id uuid not null,
    stream_id uuid not null,
    on_date date not null,
    status text not null,
    note text,
    recorded_by uuid not null,
    created_at timestamptz not null default now(),
    recorded_at timestamptz not null default now(),
    primary key (school_id, id),
    -- Also the order in which a student's marks of a period are read.
    constraint attendance_marks_day_key unique (school_id, student_id, on_date),
    constraint attendance_marks_student_fkey foreign key (school_id, student_id) references students (school_id, id),
    constraint attendance_marks_stream_fkey foreign key (school_id, stream_id) references streams (school_id, id),
    constraint attendance_marks_recorded_by_fkey foreign key (school_id, recorded_by) references staff (school_id, id),
    constraint attendance_marks_status_check check (status in ('present', 'absent', 'late', 'excused')),
    constraint attendance_marks_note_check check (char_length(note) <= 300 and btrim(note) <> '')
);
create index attendance_marks_stream_idx on attendance_marks (school_id, stream_id, on_date);
create index attendance_marks_recorded_by_idx on attendance_marks (school_id, recorded_by);
comment on table attendance_marks is 'Whether a student was there on a day. A mark is the student''s, and stays so when the student changes streams.';
comment on column attendance_marks.school_id is 'The tenant.';
comment on column attendance_marks.id is 'The mark, unique within its school.';
comment on column attendance_marks.student_id is 'The student.';
comment on column attendance_marks.stream_id is 'The stream that the student was in when the mark was recorded.';
comment on column attendance_marks.on_date is 'The day, as the school''s time zone has it.';
comment on column attendance_marks.status is 'present; absent; late, but there; or excused, which is away with leave.';
comment on column attendance_marks.note is 'What the class teacher wrote beside the mark.';
comment on column attendance_marks.recorded_by is 'The class teacher who recorded it last.';
comment on column attendance_marks.created_at is 'When the day was first recorded for the student.';
comment on column attendance_marks.recorded_at is 'When it was last recorded; later than created_at where one mark has replaced another.';

alter table attendance_marks enable row level security, force row level security;
create policy tenant on attendance_marks
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on attendance_marks to school_app, school_platform;
grant update (stream_id, status, note, recorded_by, recorded_at) on attendance_marks to school_app, school_platform;
