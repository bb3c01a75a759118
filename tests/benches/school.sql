-- The data of the peers, in the tables of the server: 6 schools of 3 campuses; in each school 4 heads, 6 campus admins, 12 teachers
-- and a clerk; roles of 60 rules; 12 departments a campus; 8 streams a campus, of which a teacher teaches 5.

insert into schools (id, slug, name, time_zone)
select md5('school' || s)::uuid, 'school-' || s, 'School ' || s, 'Africa/Kampala' from generate_series(1, 6) s;

insert into campuses (school_id, id, name)
select md5('school' || s)::uuid, md5('campus' || s || '/' || c)::uuid, 'Campus ' || s || '.' || c
  from generate_series(1, 6) s, generate_series(1, 3) c;

create temporary table people as
select s, k.kind, md5('school' || s)::uuid as school_id,
       md5('user' || k.kind || s || '/' || n)::uuid as user_id, md5('staff' || k.kind || s || '/' || n)::uuid as staff_id,
       case when k.kind <> 'head' then md5('campus' || s || '/' || (n % 3 + 1))::uuid end as campus_id,
       k.kind || n || '@school' || s || '.test' as email
  from generate_series(1, 6) s,
       (values ('head', 4), ('campus', 6), ('teacher', 12), ('clerk', 1)) k (kind, many),
       lateral generate_series(1, k.many) n;

insert into users (id, email, name, type) select user_id, email, email, 'STAFF' from people;
insert into staff (school_id, id, user_id, campus_id) select school_id, staff_id, user_id, campus_id from people;

insert into roles (school_id, id, name, rank)
select md5('school' || s)::uuid, md5('role' || r.name || s)::uuid, r.name, r.rank
  from generate_series(1, 6) s, (values ('head', 1), ('campus', 2), ('teacher', 3), ('clerk', 4)) r (name, rank);

insert into role_permissions (school_id, role_id, position, action, resource, effect, condition)
select ro.school_id, ro.id, (x.i - 1) * 5 + a.j, a.action, x.resource,
       case when ro.name = 'teacher' and a.action = 'DELETE' then 'deny' else 'allow' end,
       case when ro.name = 'campus' or ro.name = 'teacher' and a.action in ('CREATE', 'UPDATE')
            then '{"campusId": "$own"}'::jsonb end
  from roles ro,
       unnest(array['DEPARTMENT', 'STAFF', 'STUDENT', 'STREAM', 'SUBJECT', 'LESSON_PLAN', 'GRADEBOOK', 'ACADEMIC_YEAR',
                    'ANNOUNCEMENT', 'REPORT', 'ATTENDANCE', 'CAMPUS']) with ordinality x (resource, i),
       unnest(array['LIST', 'READ', 'CREATE', 'UPDATE', 'DELETE']) with ordinality a (action, j)
 where ro.name <> 'clerk' and not (ro.name = 'teacher' and x.resource = 'DEPARTMENT' and a.action = 'CREATE');
insert into role_permissions (school_id, role_id, position, action, resource)
select school_id, id, 1, 'LIST', 'STUDENT' from roles where name = 'clerk';

insert into user_roles (school_id, staff_id, role_id)
select school_id, staff_id, md5('role' || kind || s)::uuid from people
 union all
select school_id, staff_id, md5('roleteacher' || s)::uuid from people where kind = 'campus';

insert into departments (school_id, campus_id, name, description)
select md5('school' || s)::uuid, md5('campus' || s || '/' || c)::uuid, 'Department ' || d, 'Teaches subject group ' || d
  from generate_series(1, 6) s, generate_series(1, 3) c, generate_series(1, 12) d;

insert into academic_years (school_id, id, name, year)
select id, md5('year' || slug)::uuid, 'Year 2026', 2026 from schools;
insert into campus_academic_years (school_id, id, campus_id, academic_year_id, is_current)
select c.school_id, md5('year' || c.name)::uuid, c.id, y.id, true from campuses c join academic_years y using (school_id);

insert into subjects (school_id, id, code, name) select id, md5('subject' || slug)::uuid, 'MATH', 'Mathematics' from schools;
insert into classes (school_id, id, name, level)
select s.id, md5('class' || s.slug || k)::uuid, 'Senior ' || k, k from schools s, generate_series(1, 8) k;
insert into streams (school_id, class_id, campus_id, campus_academic_year_id, name)
select c.school_id, k.id, y.campus_id, y.id, k.name || case k.level % 2 when 0 then ' East' else ' West' end
  from campuses c
  join campus_academic_years y on y.school_id = c.school_id and y.campus_id = c.id
  join classes k on k.school_id = c.school_id;
insert into subject_teachers (school_id, stream_id, subject_id, staff_id)
select p.school_id, t.id, j.id, p.staff_id
  from people p
  join streams t on t.school_id = p.school_id and t.campus_id = p.campus_id
  join classes k on k.school_id = t.school_id and k.id = t.class_id and k.level <= 5
  join subjects j on j.school_id = p.school_id
 where p.kind = 'teacher';

analyze;
