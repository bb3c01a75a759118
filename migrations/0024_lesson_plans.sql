-- What teachers plan to teach, and the templates that they plan by.

create table lesson_templates (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    subject_id uuid,
    name text not null,
    description text,
    sections text[] not null,
    primary key (school_id, id),
    constraint lesson_templates_subject_fkey foreign key (school_id, subject_id) references subjects (school_id, id),
    constraint lesson_templates_name_check check (char_length(name) <= 120 and btrim(name) <> ''),
    constraint lesson_templates_description_check check (char_length(description) between 1 and 1000),
    constraint lesson_templates_sections_check check (
        cardinality(sections) between 1 and 20 and array_position(sections, null) is null and char_length(sections::text) <= 2000)
);
create unique index lesson_templates_name_key on lesson_templates (school_id, lower(name));
-- Lists are in this order, and go on from the last name and id of a page.
create index lesson_templates_list_idx on lesson_templates (school_id, name, id);
create index lesson_templates_subject_idx on lesson_templates (school_id, subject_id);
comment on table lesson_templates is 'A way to plan a lesson that the school recommends.';
comment on column lesson_templates.school_id is 'The tenant.';
comment on column lesson_templates.id is 'The template, unique within its school.';
comment on column lesson_templates.subject_id is 'The subject that it is for; null where it fits any.';
comment on column lesson_templates.name is 'The name of the template, unique in the school whatever its case.';
comment on column lesson_templates.description is 'When it is the right one.';
comment on column lesson_templates.sections is 'The headings of such a lesson, in their order.';

alter table lesson_templates enable row level security, force row level security;
create policy tenant on lesson_templates
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on lesson_templates to school_app, school_platform;

create table lesson_plans (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_id uuid not null,
    campus_academic_year_id uuid not null,
    stream_id uuid not null,
    subject_id uuid not null,
    teacher_id uuid not null,
    template_id uuid,
    topic text not null,
    objectives text not null,
    activities text not null,
    materials text,
    taught_on date not null,
    status text not null default 'draft',
    submitted_at timestamptz,
    reviewer_id uuid,
    reviewed_at timestamptz,
    review_comment text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (school_id, id),
    -- The two agree on the campus: a stream's year is the year of one campus.
    constraint lesson_plans_campus_academic_year_fkey foreign key (school_id, campus_id, campus_academic_year_id)
        references campus_academic_years (school_id, campus_id, id),
    constraint lesson_plans_stream_fkey foreign key (school_id, stream_id, campus_academic_year_id)
        references streams (school_id, id, campus_academic_year_id),
    constraint lesson_plans_subject_fkey foreign key (school_id, subject_id) references subjects (school_id, id),
    constraint lesson_plans_teacher_fkey foreign key (school_id, teacher_id) references staff (school_id, id),
    constraint lesson_plans_template_fkey foreign key (school_id, template_id) references lesson_templates (school_id, id),
    constraint lesson_plans_reviewer_fkey foreign key (school_id, reviewer_id) references staff (school_id, id),
    constraint lesson_plans_topic_check check (char_length(topic) <= 200 and btrim(topic) <> ''),
    constraint lesson_plans_objectives_check check (char_length(objectives) <= 1000 and btrim(objectives) <> ''),
    constraint lesson_plans_activities_check check (char_length(activities) <= 2000 and btrim(activities) <> ''),
    constraint lesson_plans_materials_check check (char_length(materials) between 1 and 500),
    constraint lesson_plans_review_comment_check check (char_length(review_comment) <= 500 and btrim(review_comment) <> ''),
    constraint lesson_plans_taught_on_check check (taught_on between '2000-01-01' and '2199-12-31'),
    constraint lesson_plans_status_check check (status in ('draft', 'submitted', 'approved', 'returned')),
    -- A draft was never handed in; whatever is none was.
    constraint lesson_plans_submitted_check check ((status = 'draft') = (submitted_at is null)),
    constraint lesson_plans_review_check check ((reviewer_id is null) = (reviewed_at is null)),
    -- The review of an earlier submission stays beside a new one, so that whoever reviews again sees what was asked for.
    constraint lesson_plans_reviewed_check check (
        status not in ('approved', 'returned') or (reviewed_at is not null and reviewed_at >= submitted_at)),
    constraint lesson_plans_draft_check check (status <> 'draft' or reviewed_at is null),
    constraint lesson_plans_returned_check check (status <> 'returned' or review_comment is not null),
    constraint lesson_plans_reviewer_check check (reviewer_id <> teacher_id)
);
create index lesson_plans_year_idx on lesson_plans (school_id, campus_id, campus_academic_year_id);
create index lesson_plans_stream_idx on lesson_plans (school_id, stream_id, campus_academic_year_id);
create index lesson_plans_subject_idx on lesson_plans (school_id, subject_id);
create index lesson_plans_template_idx on lesson_plans (school_id, template_id);
create index lesson_plans_reviewer_idx on lesson_plans (school_id, reviewer_id);
-- A teacher's own, from the newest back.
create index lesson_plans_teacher_idx on lesson_plans (school_id, teacher_id, taught_on, id);
-- What waits for review, the longest first, and what is late; both stay small however many plans there are.
create index lesson_plans_waiting_idx on lesson_plans (school_id, campus_academic_year_id, submitted_at, id)
    where status = 'submitted';
create index lesson_plans_unfinished_idx on lesson_plans (school_id, campus_academic_year_id, taught_on)
    where status in ('draft', 'returned');
comment on table lesson_plans is 'What a teacher plans to teach a stream in a lesson: draft, submitted, then approved or returned.';
comment on column lesson_plans.school_id is 'The tenant.';
comment on column lesson_plans.id is 'The plan, unique within its school.';
comment on column lesson_plans.campus_id is 'The campus; always that of the stream.';
comment on column lesson_plans.campus_academic_year_id is 'The campus''s year; always that of the stream.';
comment on column lesson_plans.stream_id is 'The stream that is taught.';
comment on column lesson_plans.subject_id is 'The subject that it is taught.';
comment on column lesson_plans.teacher_id is 'Who wrote the plan, and teaches by it.';
comment on column lesson_plans.template_id is 'The template that it follows, if any.';
comment on column lesson_plans.topic is 'What the lesson is about.';
comment on column lesson_plans.objectives is 'What students can do after it.';
comment on column lesson_plans.activities is 'What happens in it, in order.';
comment on column lesson_plans.materials is 'What has to be there.';
comment on column lesson_plans.taught_on is 'The day of the lesson.';
comment on column lesson_plans.status is 'draft, submitted, approved or returned.';
comment on column lesson_plans.submitted_at is 'When it was last handed in; null for a draft.';
comment on column lesson_plans.reviewer_id is 'Who reviewed it last; never its teacher.';
comment on column lesson_plans.reviewed_at is 'When it was last reviewed.';
comment on column lesson_plans.review_comment is 'What the last reviewer wrote; always there where it was returned.';
comment on column lesson_plans.created_at is 'When the plan was begun.';
comment on column lesson_plans.updated_at is 'When this row last changed.';

create trigger touch before update on lesson_plans for each row execute function touch_updated_at();

alter table lesson_plans enable row level security, force row level security;
create policy tenant on lesson_plans
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on lesson_plans to school_app, school_platform;
grant update (
    template_id, topic, objectives, activities, materials, taught_on,
    status, submitted_at, reviewer_id, reviewed_at, review_comment, updated_at
) on lesson_plans to school_app, school_platform;
