-- Inviting somebody to the staff, and taking a role away.

alter table users add column shared boolean not null default false;
comment on column users.shared is 'Whether more than one school has it on its staff, or had: its name is then none of theirs to change.';
update users u set shared = true where (select count(*) from staff s where s.user_id = u.id) > 1;

-- A tenant's frame sees the accounts of its own staff only, so it can neither open one nor find one of another school. This does
-- both for it, and tells nothing about an account but its id: no name, no type, no school.
create function open_account(address text, person_name text) returns uuid
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    account uuid;
begin
    insert into public.users (email, name, type) values (address, person_name, 'STAFF')
        on conflict (email) do nothing
        returning id into account;
    if account is null then
        -- Whoever opened it a moment ago has committed by now: the insert above waited for them.
        update public.users u set shared = true
         where u.email = address and u.active and u.type <> 'PLATFORM_ADMIN'
        returning u.id into account;
    end if;
    return account;
end
$$;
comment on function open_account(text, text) is
    'The account with an address, which is opened where there is none; null where that account is closed or an operator''s. Of one that is there only that it is shared changes.';
revoke all on function open_account(text, text) from public;
grant execute on function open_account(text, text) to school_app, school_platform;

-- whoever names no school comes in to the one that they joined first, whoever invites them later
grant select (created_at) on staff to school_directory;
-- every reader of an account may know it: so may whoever changes one
grant select (shared) on users to school_app, school_platform;
-- nobody is let go or taken back by a tool
revoke update (active) on staff from school_app, school_platform;
grant insert (school_id, id, user_id, campus_id, title) on staff to school_app, school_platform;
grant delete on user_roles to school_app, school_platform;
