-- What tools change about subjects, streams and students, and the orders in which they list them.

-- Lists are in this order, and go on from the last name and id of a page.
create index subjects_list_idx on subjects (school_id, name, id);
create index streams_list_idx on streams (school_id, name, id);

grant insert on subjects, class_subjects, streams, class_teachers, subject_teachers, students, enrolments
    to school_app, school_platform;
grant update (staff_id) on class_teachers to school_app, school_platform;
grant delete on subject_teachers to school_app, school_platform;
grant update (campus_id, admission_number, given_name, family_name, born_on, notes, active) on students
    to school_app, school_platform;
grant update (stream_id, campus_academic_year_id, enrolled_on) on enrolments to school_app, school_platform;
