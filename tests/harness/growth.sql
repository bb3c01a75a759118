-- Hilltop Academy with 20,000 students, and everything else in proportion: streams, staff, words for search, marks, scores, plans,
-- announcements, audit rows. What the seeds have stays as it is, so that every example is about the same rows in a larger school.

create temporary table grown as select id as school_id, 20000 as wanted from schools where slug = 'hilltop';

create temporary table new_campuses as
select c.school_id, c.id, y.id as year_id, row_number() over (order by c.id) - 1 as n
  from campuses c
  join grown g on g.school_id = c.school_id
  join campus_academic_years y on y.school_id = c.school_id and y.campus_id = c.id and y.is_current;

-- A member of staff a stream, and some more.
create temporary table new_staff as
select g.school_id, uuid_v7() as id, uuid_v7() as user_id, c.id as campus_id, i.n
  from grown g
  cross join generate_series(1, 1000) as i (n)
  join new_campuses c on c.n = i.n % 2;
insert into users (id, email, name, type)
select user_id, 'member' || n || '@hilltop.example', 'Member of Staff ' || n, 'STAFF' from new_staff;
insert into staff (school_id, id, user_id, campus_id, title) select school_id, id, user_id, campus_id, 'Teacher' from new_staff;
insert into user_roles (school_id, staff_id, role_id)
select s.school_id, s.id, r.id from new_staff s join roles r on r.school_id = s.school_id and r.name = 'subject_teacher';
insert into departments (school_id, campus_id, name)
select c.school_id, c.id, 'Department ' || lpad(d.n::text, 3, '0') from new_campuses c cross join generate_series(1, 60) as d (n);
insert into department_members (school_id, department_id, staff_id)
select s.school_id, d.id, s.id
  from new_staff s
  join departments d on d.school_id = s.school_id and d.campus_id = s.campus_id and d.name = 'Department ' || lpad((s.n % 60 + 1)::text, 3, '0');

-- 36 students a stream.
create temporary table new_streams as
select g.school_id, uuid_v7() as id, i.n, c.id as campus_id, c.year_id, k.id as class_id
  from grown g
  cross join generate_series(0, (select (wanted - count(s.id)) / 36 from grown join students s using (school_id) group by wanted)::int) as i (n)
  join new_campuses c on c.n = i.n % 2
  join classes k on k.school_id = g.school_id and k.level = i.n % 4 + 1;
insert into streams (school_id, id, class_id, campus_id, campus_academic_year_id, name)
select school_id, id, class_id, campus_id, year_id, 'Stream ' || lpad(n::text, 4, '0') from new_streams;
insert into class_teachers (school_id, stream_id, staff_id)
select t.school_id, t.id, s.id from new_streams t join new_staff s on s.n = t.n + 1;
insert into subject_teachers (school_id, stream_id, subject_id, staff_id)
select t.school_id, t.id, cs.subject_id, s.id
  from new_streams t
  join class_subjects cs on cs.school_id = t.school_id and cs.class_id = t.class_id
  join new_staff s on s.n = (t.n + ascii(cs.subject_id::text)) % 1000 + 1;

-- The seeds' names, each with every other; a trigger makes the words for search.
create temporary table new_students as
select g.school_id, uuid_v7() as id, t.id as stream_id, t.campus_id, t.year_id, i.n, given.name as given_name, family.name as family_name
  from grown g
  cross join generate_series(0, g.wanted - (select count(*) from students where school_id = g.school_id)::int - 1) as i (n)
  join new_streams t on t.n = i.n / 36
  join (select given_name as name, row_number() over (order by given_name) - 1 as at, count(*) over () as many
          from (select distinct given_name from students join grown using (school_id)) d) given on given.at = i.n % given.many
  join (select family_name as name, row_number() over (order by family_name) - 1 as at, count(*) over () as many
          from (select distinct family_name from students join grown using (school_id)) d) family on family.at = i.n / 7 % family.many;
insert into students (school_id, id, campus_id, admission_number, given_name, family_name, notes, born_on)
select school_id, id, campus_id, 'HG-' || lpad(n::text, 5, '0'), given_name, family_name, 'Walks to school.', '2012-01-01'::date + n % 1000
  from new_students;
insert into enrolments (school_id, student_id, stream_id, campus_academic_year_id, enrolled_on)
select s.school_id, s.id, s.stream_id, s.year_id, (select min(starts_on) from terms t where t.school_id = s.school_id and t.campus_academic_year_id = s.year_id)
  from new_students s;
insert into guardians (school_id, student_id, place, name, relation, phone)
select school_id, id, 1, 'Guardian of ' || given_name, 'aunt', '+256 700 ' || lpad(n::text, 6, '0') from new_students;

-- Five days of attendance, and a comment a student.
insert into attendance_marks (school_id, student_id, stream_id, on_date, status, recorded_by)
select s.school_id, s.id, s.stream_id, day, case (s.n + day - current_date) % 20 when 0 then 'absent' else 'present' end, t.staff_id
  from new_students s
  join class_teachers t on t.school_id = s.school_id and t.stream_id = s.stream_id
  cross join (select current_date - d as day from generate_series(1, 5) d) days;
insert into report_comments (school_id, student_id, term_id, stream_id, comment, written_by)
select s.school_id, s.id, term.id, s.stream_id, 'Works with care.', t.staff_id
  from new_students s
  join class_teachers t on t.school_id = s.school_id and t.stream_id = s.stream_id
  join terms term on term.school_id = s.school_id and term.campus_academic_year_id = s.year_id and term.term_number = 1;

-- An assessment a subject in the first term and the last, and the scores of the first.
create temporary table new_assessments as
select x.school_id, uuid_v7() as id, x.stream_id, x.subject_id, x.term_number, t.year_id, term.id as term_id, term.starts_on
  from (select st.*, o.term_number from subject_teachers st cross join (values (1), (3)) as o (term_number)) x
  join new_streams t on t.school_id = x.school_id and t.id = x.stream_id
  join terms term on term.school_id = t.school_id and term.campus_academic_year_id = t.year_id and term.term_number = x.term_number;
insert into assessments (school_id, id, stream_id, subject_id, campus_academic_year_id, term_id, name, out_of, weight, held_on)
select school_id, id, stream_id, subject_id, year_id, term_id, 'Test', 50, 40, starts_on + 14 from new_assessments;
insert into scores (school_id, assessment_id, student_id, out_of, score)
select a.school_id, a.id, s.id, 50, s.n % 51
  from new_assessments a join new_students s on s.stream_id = a.stream_id
 where a.term_number = 1;

-- Two plans a stream and subject, of which one in eight waits for review.
insert into lesson_plans (school_id, campus_id, campus_academic_year_id, stream_id, subject_id, teacher_id, topic, objectives, activities,
                          taught_on, status, submitted_at)
select t.school_id, t.campus_id, t.year_id, t.id, st.subject_id, st.staff_id, 'Topic ' || p, 'To know more', 'Reading', current_date - p,
       case when (t.n + p) % 8 = 0 then 'submitted' else 'draft' end, case when (t.n + p) % 8 = 0 then now() - p * interval '1 day' end
  from new_streams t
  join subject_teachers st on st.school_id = t.school_id and st.stream_id = t.id
  cross join generate_series(1, 2) p;
-- Most of what is announced is for one stream.
insert into announcements (school_id, audience, campus_id, stream_id, title, body, published_at)
select school_id, audience, case when audience <> 'school' then campus_id end, case when audience = 'stream' then id end,
       'News ' || n || '.' || p, 'What there is to say.', now() - n * interval '1 hour' - p * interval '1 minute'
  from (select t.*, p, case when t.n % 20 = 0 and p = 1 then 'school' when t.n % 20 < 3 and p = 1 then 'campus' else 'stream' end as audience
          from new_streams t cross join generate_series(1, 4) p) news;
insert into subjects (school_id, code, name) select school_id, 'X' || n, 'Subject ' || n from grown cross join generate_series(1, 200) n;
insert into audit_log (school_id, campus_id, actor_sub, actor_email, actor_type, action, resource_type, resource_id, event, door, turn_id, tool_call_id)
select s.school_id, s.campus_id, uuid_v7(), 'member' || s.n % 1000 + 1 || '@hilltop.example', 'STAFF', 'UPDATE', 'STUDENT', s.id,
       'update.student', 'chat', 'turn ' || s.n, 'call ' || s.n
  from new_students s;

analyze;
