-- How a campus grades: the bands that averages fall into.

create table grading_configs (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    campus_id uuid not null,
    updated_at timestamptz not null default now(),
    primary key (school_id, id),
    constraint grading_configs_campus_key unique (school_id, campus_id),
    constraint grading_configs_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id)
);
comment on table grading_configs is 'How a campus grades: one a campus at most.';
comment on column grading_configs.school_id is 'The tenant.';
comment on column grading_configs.id is 'The configuration, unique within its school.';
comment on column grading_configs.campus_id is 'The campus.';
comment on column grading_configs.updated_at is 'When its bands were last replaced.';

alter table grading_configs enable row level security, force row level security;
create policy tenant on grading_configs
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on grading_configs to school_app, school_platform;
grant update (updated_at) on grading_configs to school_app, school_platform;

-- A band has a lower bound only, and reaches up to the next one: so bands can neither overlap nor leave a gap.
create table grading_bands (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    grading_config_id uuid not null,
    lower_bound integer not null,
    label text not null,
    remark text,
    primary key (school_id, id),
    constraint grading_bands_lower_bound_key unique (school_id, grading_config_id, lower_bound),
    constraint grading_bands_config_fkey
        foreign key (school_id, grading_config_id) references grading_configs (school_id, id),
    constraint grading_bands_lower_bound_check check (lower_bound between 0 and 100),
    constraint grading_bands_label_check check (char_length(label) <= 40 and btrim(label) <> ''),
    constraint grading_bands_remark_check check (char_length(remark) between 1 and 200)
);
create unique index grading_bands_label_key on grading_bands (school_id, grading_config_id, lower(label));
comment on table grading_bands is 'A band of a grading configuration, such as B from 70 on.';
comment on column grading_bands.school_id is 'The tenant.';
comment on column grading_bands.id is 'The band, unique within its school.';
comment on column grading_bands.grading_config_id is 'The configuration that it is part of.';
comment on column grading_bands.lower_bound is 'The percentage from which it counts, up to the next band of the configuration.';
comment on column grading_bands.label is 'What stands on a report, unique in its configuration whatever its case.';
comment on column grading_bands.remark is 'What the band means, in words.';

alter table grading_bands enable row level security, force row level security;
create policy tenant on grading_bands
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert, delete on grading_bands to school_app, school_platform;

create function grading_begins_at_zero() returns trigger
    language plpgsql
as $$
declare
    of_school uuid;
    of_config uuid;
begin
    if tg_table_name = 'grading_configs' then
        of_school := new.school_id;
        of_config := new.id;
    else
        of_school := old.school_id;
        of_config := old.grading_config_id;
    end if;
    if exists (select from grading_configs where school_id = of_school and id = of_config)
        and not exists (select from grading_bands
                         where school_id = of_school and grading_config_id = of_config and lower_bound = 0) then
        raise exception 'the bands of a grading configuration begin at 0'
            using errcode = 'check_violation', constraint = 'grading_bands_begin_at_zero';
    end if;
    return null;
end
$$;
comment on function grading_begins_at_zero() is 'Row trigger, at the end of a transaction: no percentage is without a band.';
revoke all on function grading_begins_at_zero() from public;

create constraint trigger begins_at_zero after insert on grading_configs
    deferrable initially deferred for each row execute function grading_begins_at_zero();
create constraint trigger begins_at_zero after delete or update of lower_bound, grading_config_id on grading_bands
    deferrable initially deferred for each row execute function grading_begins_at_zero();
