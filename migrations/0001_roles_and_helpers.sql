-- The three database roles, what nobody else may do in this schema, and the helpers that every table uses.
-- Roles belong to the cluster, so another database's migration may create the same role at the same moment.

do $$
declare
    wanted record;
    found_role pg_catalog.pg_roles%rowtype;
begin
    for wanted in
        select *
          from (values
            ('school_app', 'login nosuperuser nocreatedb nocreaterole nobypassrls', false,
             'Runs the tool calls of one school: owns nothing and obeys row-level security.'),
            ('school_directory', 'login nosuperuser nocreatedb nocreaterole nobypassrls', false,
             'Answers whose e-mail address this is, before a school is known: reads a few columns, writes nothing.'),
            ('school_platform', 'login nosuperuser nocreatedb nocreaterole bypassrls', true,
             'Runs the tool calls of platform administrators and the operator''s audit tail, across schools.')
          ) as role (name, attributes, bypasses, meaning)
    loop
        if not exists (select from pg_catalog.pg_roles where rolname = wanted.name) then
            begin
                execute format('create role %I %s', wanted.name, wanted.attributes);
                execute format('comment on role %I is %L', wanted.name, wanted.meaning);
            exception
                when duplicate_object or unique_violation then
                    null; -- another database's migration was quicker
                when insufficient_privilege then
                    raise exception '% may not create the database role %', current_user, wanted.name
                        using errcode = 'insufficient_privilege',
                              hint = format('Let a superuser run once: create role %I %s;', wanted.name, wanted.attributes);
            end;
        end if;

        -- A role of that name that was there before is only trusted when it is no stronger than ours.
        select * into strict found_role from pg_catalog.pg_roles where rolname = wanted.name;
        if found_role.rolsuper or found_role.rolbypassrls <> wanted.bypasses then
            raise exception 'the database role % has other rights than it needs', wanted.name
                using errcode = 'invalid_role_specification',
                      hint = format('Let a superuser run once: alter role %I %s;', wanted.name, wanted.attributes);
        end if;
    end loop;
end
$$;

revoke all on schema public from public;
grant usage on schema public to school_app, school_platform, school_directory;

-- PostgreSQL has uuidv7() from version 18 on only. Milliseconds first, so that ids of one table sort by age.
create function uuid_v7() returns uuid
    language plpgsql volatile parallel safe
as $$
declare
    bytes bytea := uuid_send(gen_random_uuid());
    millis bigint := floor(extract(epoch from clock_timestamp()) * 1000);
begin
    bytes := overlay(bytes placing substring(int8send(millis) from 3) from 1 for 6);
    bytes := set_byte(bytes, 6, (get_byte(bytes, 6) & 15) | 112);
    return encode(bytes, 'hex')::uuid;
end
$$;
comment on function uuid_v7() is 'A new time-ordered identifier (UUID version 7), for rows whose writer brings none.';
revoke all on function uuid_v7() from public;
grant execute on function uuid_v7() to school_app, school_platform;

create function touch_updated_at() returns trigger
    language plpgsql
as $$
begin
    new.updated_at := now();
    return new;
end
$$;
comment on function touch_updated_at() is 'Row trigger: keeps updated_at true, whoever writes.';
revoke all on function touch_updated_at() from public;
