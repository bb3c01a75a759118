-- Inviting somebody to the staff, and taking a role away.

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
        select u.id into account
          from public.users u
         where u.email = address and u.active and u.type <> 'PLATFORM_ADMIN';
    end if;
    return account;
end
$$;
comment on function open_account(text, text) is
    'The account with an address, which is opened where there is none; null where that account is closed or an operator''s. Never changes one that is there.';
revoke all on function open_account(text, text) from public;
grant execute on function open_account(text, text) to school_app, school_platform;

grant insert (school_id, id, user_id, campus_id, title) on staff to school_app, school_platform;
grant delete on user_roles to school_app, school_platform;
