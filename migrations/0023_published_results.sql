-- The terms whose results are out.

create table published_results (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    term_id uuid not null,
    published_by uuid not null,
    published_at timestamptz not null default now(),
    bands jsonb not null,
    primary key (school_id, id),
    constraint published_results_term_key unique (school_id, term_id),
    constraint published_results_term_fkey foreign key (school_id, term_id) references terms (school_id, id),
    constraint published_results_staff_fkey foreign key (school_id, published_by) references staff (school_id, id),
    constraint published_results_bands_check check (jsonb_typeof(bands) = 'array')
);
create index published_results_staff_idx on published_results (school_id, published_by);
comment on table published_results is 'The terms whose results are published: no score of theirs changes any more.';
comment on column published_results.school_id is 'The tenant.';
comment on column published_results.id is 'The publication, unique within its school.';
comment on column published_results.term_id is 'The term, of one campus; published once.';
comment on column published_results.published_by is 'Who published them.';
comment on column published_results.published_at is 'When they were published.';
comment on column published_results.bands is 'The bands of the campus then, an array of {label, lower_bound}: what is published keeps them.';

alter table published_results enable row level security, force row level security;
create policy tenant on published_results
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on published_results to school_app, school_platform;
