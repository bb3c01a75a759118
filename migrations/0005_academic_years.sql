-- School years, what each campus makes of them, and their terms.

create table academic_years (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    name text not null,
    year integer not null,
    primary key (school_id, id),
    constraint academic_years_year_key unique (school_id, year),
    constraint academic_years_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint academic_years_year_check check (year between 1900 and 2200)
);
comment on table academic_years is 'A school year.';
comment on column academic_years.school_id is 'The tenant.';
comment on column academic_years.id is 'The year, unique within its school.';
comment on column academic_years.name is 'What people call the year.';
comment on column academic_years.year is 'The calendar year in which it begins.';

alter table academic_years enable row level security, force row level security;
create policy tenant on academic_years
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on academic_years to school_app, school_platform;

create table campus_academic_years (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_id uuid not null,
    academic_year_id uuid not null,
    is_current boolean not null default false,
    primary key (school_id, id),
    constraint campus_academic_years_year_key unique (school_id, campus_id, academic_year_id),
    -- What belongs to a campus's year names both, so that it cannot name the year of another campus.
    constraint campus_academic_years_campus_key unique (school_id, campus_id, id),
    constraint campus_academic_years_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id),
    constraint campus_academic_years_year_fkey
        foreign key (school_id, academic_year_id) references academic_years (school_id, id)
);
create unique index campus_academic_years_current_key on campus_academic_years (school_id, campus_id) where is_current;
comment on table campus_academic_years is 'A school year on one campus: what classes, terms and enrolments hang on.';
comment on column campus_academic_years.school_id is 'The tenant.';
comment on column campus_academic_years.id is 'The campus''s year, unique within its school.';
comment on column campus_academic_years.campus_id is 'The campus.';
comment on column campus_academic_years.academic_year_id is 'The school year.';
comment on column campus_academic_years.is_current is 'True for the year that the campus is in: one a campus at most.';

alter table campus_academic_years enable row level security, force row level security;
create policy tenant on campus_academic_years
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on campus_academic_years to school_app, school_platform;

create table terms (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_academic_year_id uuid not null,
    term_number integer not null,
    name text not null,
    starts_on date not null,
    ends_on date not null,
    primary key (school_id, id),
    constraint terms_number_key unique (school_id, campus_academic_year_id, term_number),
    constraint terms_campus_academic_year_fkey
        foreign key (school_id, campus_academic_year_id) references campus_academic_years (school_id, id),
    constraint terms_number_check check (term_number between 1 and 12),
    constraint terms_name_check check (char_length(name) <= 200 and btrim(name) <> ''),
    constraint terms_dates_check check (starts_on < ends_on)
);
comment on table terms is 'A term of a campus''s year.';
comment on column terms.school_id is 'The tenant.';
comment on column terms.id is 'The term, unique within its school.';
comment on column terms.campus_academic_year_id is 'The campus''s year that the term is part of.';
comment on column terms.term_number is 'The term''s place in its year, from 1.';
comment on column terms.name is 'What people call the term.';
comment on column terms.starts_on is 'The first day of term.';
comment on column terms.ends_on is 'The last day of term.';

alter table terms enable row level security, force row level security;
create policy tenant on terms
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select on terms to school_app, school_platform;
