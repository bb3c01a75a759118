//! The checks of the catalog: what each says, its query, whose every row is a finding, and statements that it must find.

/// One check.
pub(super) struct Check {
    pub(super) says: &'static str,
    pub(super) query: &'static str,
    pub(super) breaches: &'static [&'static str],
}

/// Tables without `school_id`, and why they are right without it.
pub(super) const GLOBAL: &[(&str, &str)] = &[
    ("schools", "the tenants themselves; a tenant sees its own row"),
    (
        "users",
        "one account may work in several schools; a tenant sees those of its staff",
    ),
    (
        "operator_tool_calls",
        "calls of platform administrators, who belong to no school; only their role reads it",
    ),
    (
        "delivery_attempts",
        "counts by message key; holds nothing of any school",
    ),
    ("_sqlx_migrations", "sqlx's own; none of the server's roles reads it"),
];

/// What every query may name: our tables, those of tenants among them, our roles.
pub(super) const PREFIX: &str = "with tables as (
    select c.oid as rel, c.oid::regclass::text as name, c.relkind, c.relrowsecurity, c.relforcerowsecurity, a.attnum as tenant
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      left join pg_attribute a on a.attrelid = c.oid and a.attname = 'school_id' and not a.attisdropped
     where c.relkind in ('r', 'p', 'f')
), tenants as (
    select * from tables where tenant is not null
), ours as (
    select * from pg_roles where rolname in ('school_app', 'school_directory', 'school_platform')
) ";

pub(super) const CHECKS: &[Check] = &[
    Check {
        says: "a table is a tenant's, or on the short list",
        query: "select name from tables where tenant is null and name not in
            ('schools', 'users', 'operator_tool_calls', 'delivery_attempts', '_sqlx_migrations')",
        breaches: &["create table notes (id uuid primary key)", "create schema more create table notes (id uuid)"],
    },
    Check {
        says: "the tenant is never unknown or assumed",
        query: "select name from tenants join pg_attribute a on a.attrelid = rel and a.attnum = tenant
             where not a.attnotnull or a.atthasdef or a.atttypid <> 'uuid'::regtype",
        breaches: &[
            "create table notes (school_id uuid, id uuid)",
            "alter table departments alter school_id set default uuid_v7()",
            "create table notes (school_id text not null)",
        ],
    },
    Check {
        says: "row-level security is on and forced",
        query: "select name from tenants where not relrowsecurity or not relforcerowsecurity",
        breaches: &["alter table students disable row level security", "alter table students no force row level security"],
    },
    Check {
        says: "each tenant table has the tenant's policy, word for word",
        query: "select name from tenants where not exists (
              select from pg_policy p where p.polrelid = rel and p.polname = 'tenant' and p.polcmd = '*' and p.polpermissive
                 and p.polroles = '{0}' and pg_get_expr(p.polqual, rel) = pg_get_expr(p.polwithcheck, rel)
                 and pg_get_expr(p.polqual, rel)
                     = '(school_id = (NULLIF(current_setting(''app.school_id''::text, true), ''''::text))::uuid)')",
        breaches: &[
            "drop policy tenant on students",
            "alter policy tenant on students using (true)",
            "alter policy tenant on students with check (true)",
            "alter policy tenant on students to school_platform",
            "alter policy tenant on students using (school_id = nullif(current_setting('app.school_id', true), '')::uuid
                or current_setting('app.unscoped', true) = 'on')",
        ],
    },
    Check {
        says: "no other policy lets more in, but the directory's few",
        query: "select name || '.' || p.polname from tables join pg_policy p on p.polrelid = rel
             where p.polname <> 'tenant' and p.polpermissive and not (name in ('schools', 'campuses', 'users', 'staff')
               and p.polcmd = 'r' and p.polroles = array[(select r.oid from ours r where rolname = 'school_directory')])",
        breaches: &[
            "create policy more on students using (true)",
            "create policy more on students for select to school_app using (true)",
            "create policy more on students for select to school_directory using (true)",
            "alter policy directory on staff to school_app",
        ],
    },
    Check {
        says: "the server's role reads a global table through a policy of its own, or not at all",
        query: "select name from tables where tenant is null and name <> 'delivery_attempts'
               and has_any_column_privilege('school_app', rel, 'select, insert, update')
               and not (relrowsecurity and exists (select from pg_policy p where p.polrelid = rel and p.polname = 'tenant'
                 and pg_get_expr(p.polqual, rel) ~ 'app.school_id|FROM staff' and pg_get_expr(p.polqual, rel) !~* '\\mor\\M'
                 and pg_get_expr(p.polqual, rel) = pg_get_expr(p.polwithcheck, rel)))",
        breaches: &[
            "alter table users disable row level security",
            "alter policy tenant on schools using (true)",
            "grant select on operator_tool_calls to school_app",
        ],
    },
    Check {
        says: "a key begins with the tenant",
        query: "select name from tenants where not exists (
              select from pg_constraint k where k.conrelid = rel and k.contype = 'p' and k.conkey[1] = tenant)",
        breaches: &[
            "alter table subject_teachers drop constraint subject_teachers_pkey",
            "alter table subject_teachers drop constraint subject_teachers_pkey, add primary key (id, school_id)",
        ],
    },
    Check {
        says: "a reference to a tenant table carries the tenant, in its place",
        query: "select k.conrelid::regclass || '.' || k.conname from pg_constraint k join tenants far on far.rel = k.confrelid
              left join tenants near on near.rel = k.conrelid
             where k.contype = 'f' and not exists (select from unnest(k.conkey, k.confkey) as pair (here, there)
               where pair.here = near.tenant and pair.there = far.tenant)",
        breaches: &[
            "alter table campuses add unique (id);
             alter table departments add constraint loose foreign key (campus_id) references campuses (id)",
            "alter table departments add constraint crossed foreign key (id, campus_id) references campuses (school_id, id) not valid",
            "alter table users add staff_school uuid, add staff_id uuid,
                add constraint global foreign key (staff_school, staff_id) references staff (school_id, id)",
        ],
    },
    Check {
        // what is written only beside a write's own rows says its tenant by the policy that it is inserted under
        says: "the tenant of a tenant table is a school, itself or through a row that each of its rows must name",
        query: "select name from tenants where name not in ('audit_log', 'tool_calls')
               and not exists (select from pg_constraint k where k.conrelid = rel and k.contype = 'f' and k.convalidated
               and (k.confrelid = 'schools'::regclass and k.conkey = array[tenant]
                    or k.confrelid in (select far.rel from tenants far) and tenant = any(k.conkey) and k.confrelid <> rel
                       and not exists (select from pg_attribute a where a.attrelid = rel and a.attnum = any(k.conkey)
                                          and not a.attnotnull)))",
        breaches: &[
            "alter table students drop constraint students_school_id_fkey, drop constraint students_campus_fkey",
            "alter table departments drop constraint departments_campus_fkey",
            "alter table departments alter campus_id drop not null",
        ],
    },
    Check {
        says: "an index begins with the tenant, but the one by which the directory finds an account's schools",
        query: "select i.indexrelid::regclass::text from pg_index i join tenants on rel = i.indrelid
             where i.indkey[0] <> tenant and (i.indisunique or i.indexrelid::regclass::text <> 'staff_account_idx')",
        breaches: &[
            "create index by_name on students (family_name)",
            "create unique index by_number on students (admission_number, school_id)",
            "create index by_lower_name on students (lower(family_name), school_id)",
            "drop index staff_account_idx; create unique index staff_account_idx on staff (user_id, school_id)",
        ],
    },
    Check {
        says: "our roles are no stronger than they need",
        query: "select rolname from ours where rolsuper or rolcreaterole or rolcreatedb or rolreplication
               or rolbypassrls <> (rolname = 'school_platform') or not rolcanlogin
             union all select m.roleid::regrole || ' to ' || m.member::regrole from pg_auth_members m
             where m.member in (select oid from ours) or m.roleid in (select oid from ours)",
        breaches: &[
            "alter role school_app bypassrls",
            "alter role school_directory superuser",
            "alter role school_app createrole",
            "alter role school_platform nobypassrls",
            "grant school_platform to school_app",
            "grant pg_read_all_data to school_app",
        ],
    },
    Check {
        says: "our roles own nothing and create nothing",
        query: "select o.rolname || ' owns ' || c.oid::regclass from pg_class c join ours o on o.oid = c.relowner
             union all select o.rolname || ' owns ' || p.oid::regprocedure from pg_proc p join ours o on o.oid = p.proowner
             union all select o.rolname || ' owns ' || n.nspname from pg_namespace n join ours o on o.oid = n.nspowner
             union all select o.rolname || ' owns ' || d.datname from pg_database d join ours o on o.oid = d.datdba
             union all select o.rolname || ' creates in ' || n.nspname from pg_namespace n, ours o
             where n.nspname !~ '^pg_' and has_schema_privilege(o.oid, n.oid, 'create')
             union all select o.rolname || ' creates schemas' from ours o
             where has_database_privilege(o.oid, current_database(), 'create')",
        breaches: &[
            "grant create on schema public to school_app; alter table subjects owner to school_app",
            "alter function touch_updated_at() owner to school_platform",
            "grant create on schema public to school_app",
            "create schema theirs authorization school_directory",
        ],
    },
    Check {
        says: "nobody gets anything by being anybody",
        query: "select what || ': ' || a.privilege_type from (
                select c.oid::regclass::text, c.relacl from pg_class c where c.relnamespace = 'public'::regnamespace
                union all select p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)) from pg_proc p
                 where p.pronamespace = 'public'::regnamespace
                union all select t.attrelid::regclass || '.' || t.attname, t.attacl from pg_attribute t
                 where t.attrelid in (select rel from tables)
                union all select nspname, nspacl from pg_namespace where nspname = 'public'
             ) as granted (what, acl), aclexplode(acl) as a where a.grantee = 0",
        breaches: &[
            "grant select on subjects to public",
            "grant update (name) on subjects to public",
            "create function f() returns int language sql as 'select 1'",
            "grant usage on schema public to public",
        ],
    },
    Check {
        says: "a view sees what its reader may see, and nothing is kept outside of policies",
        query: "select oid::regclass::text from pg_class where relnamespace = 'public'::regnamespace and (relkind in ('m', 'f')
               or relkind = 'v' and not coalesce(reloptions && '{security_invoker=true,security_invoker=on}'::text[], false))",
        breaches: &[
            "create view names as select given_name from students",
            "create view names with (security_invoker = false) as select given_name from students",
            "create materialized view names as select given_name from students",
        ],
    },
    Check {
        // open_account opens or finds the account of somebody who is invited, whom no tenant sees yet, and answers an id
        says: "no function but one runs as its owner, that one in a path of its own, and none sees rows before the policies do",
        query: "select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace and (prosecdef or proleakproof)
               and not (oid = to_regprocedure('open_account(text, text)') and not proleakproof and prorettype = 'uuid'::regtype
                 and not proretset
                 and proconfig is not distinct from array['search_path=pg_catalog, pg_temp'])",
        breaches: &[
            "alter function open_account(text, text) reset search_path",
            "alter function open_account(text, text) leakproof",
            "drop function open_account(text, text);
             create function open_account(text, text) returns setof users language sql security definer
                set search_path = pg_catalog, pg_temp as 'select * from public.users'",
            "create function f() returns int language sql security definer as 'select 1'",
            "create function f() returns int language sql leakproof as 'select 1'",
        ],
    },
    Check {
        says: "nobody of ours may change or empty the audit log, or turn its triggers",
        query: "select o.rolname from ours o where has_any_column_privilege(o.oid, 'audit_log', 'update')
               or has_table_privilege(o.oid, 'audit_log', 'delete, truncate, trigger, references')",
        breaches: &[
            "grant update (arguments) on audit_log to school_platform",
            "grant delete on audit_log to school_app",
            "grant truncate on audit_log to school_platform",
            "grant trigger on audit_log to school_app",
        ],
    },
    Check {
        says: "a trigger that always fires refuses changes of the audit log",
        query: "select 'audit_log' where not exists (select from pg_trigger where tgrelid = 'audit_log'::regclass and tgenabled = 'A'
               and tgfoid = 'refuse_audit_change'::regproc and tgtype & (2 | 8 | 16 | 32) = (2 | 8 | 16 | 32) and tgqual is null)",
        breaches: &[
            "alter table audit_log disable trigger append_only",
            "alter table audit_log enable trigger append_only",
            "drop trigger append_only on audit_log",
            "create or replace trigger append_only before update or delete on audit_log
                for each statement execute function refuse_audit_change()",
        ],
    },
    Check {
        says: "no table is emptied, and no row moved to another school or id",
        query: "select o.rolname || ' empties ' || t.name from tables t, ours o where has_table_privilege(o.oid, t.rel, 'truncate')
             union all select o.rolname || ' moves rows of ' || t.name from tenants t, ours o
              where has_column_privilege(o.oid, t.rel, 'school_id', 'update')
             union all select o.rolname || ' renames rows of ' || t.name from tables t, ours o, pg_attribute a
              where a.attrelid = t.rel and a.attname = 'id' and has_column_privilege(o.oid, t.rel, a.attnum, 'update')",
        breaches: &[
            "grant truncate on subjects to school_platform",
            "grant update on departments to school_app",
            "grant update (id) on departments to school_app",
        ],
    },
    Check {
        says: "the directory reads its few columns and writes nothing",
        query: "select t.name || '.' || a.attname from tables t join pg_attribute a on a.attrelid = t.rel and a.attnum > 0
             where has_column_privilege('school_directory', t.rel, a.attnum, 'insert, update, references')
                or has_table_privilege('school_directory', t.rel, 'delete')
                or has_column_privilege('school_directory', t.rel, a.attnum, 'select') and (t.name, a.attname) not in (
                    ('users', 'id'), ('users', 'email'), ('users', 'name'), ('users', 'type'), ('users', 'active'),
                    ('staff', 'school_id'), ('staff', 'id'), ('staff', 'user_id'), ('staff', 'campus_id'), ('staff', 'active'),
                    ('staff', 'created_at'),
                    ('schools', 'id'), ('schools', 'slug'), ('schools', 'name'), ('schools', 'time_zone'),
                    ('campuses', 'school_id'), ('campuses', 'id'), ('campuses', 'name'))",
        breaches: &[
            "grant select (title) on staff to school_directory",
            "grant select on students to school_directory",
            "grant update (name) on users to school_directory",
            "grant delete on staff to school_directory",
        ],
    },
    Check {
        says: "every table, column, view and function says what it is",
        query: "select c.oid::regclass || coalesce('.' || a.attname, '') from pg_class c
              left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
             where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v') and c.relname <> '_sqlx_migrations'
               and (coalesce(obj_description(c.oid, 'pg_class'), '') !~ '\\S'
                 or a.attnum is not null and coalesce(col_description(c.oid, a.attnum), '') !~ '\\S')
             union all select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace
               and coalesce(obj_description(oid, 'pg_proc'), '') !~ '\\S'",
        breaches: &[
            "create table notes (school_id uuid)",
            "alter table subjects add colour text",
            "comment on table subjects is ' '",
            "comment on column subjects.name is null",
            "comment on function uuid_v7() is null",
        ],
    },
];
