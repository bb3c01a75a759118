SELECT u.email, u.type AS user_type, u.active, s.id AS staff_id, s.school_id, s.campus_id, s.active AS staff_active,
       (SELECT json_agg(json_build_array(c.id, c.name) ORDER BY c.name, c.id)
          FROM campuses c WHERE c.school_id = s.school_id) AS campuses,
       (SELECT json_agg(json_build_array(p.action, p.resource, true, null, d.campus_id))
          FROM department_members m
          JOIN departments d ON d.school_id = m.school_id AND d.id = m.department_id
          JOIN department_permissions p ON p.school_id = d.school_id AND p.department_id = d.id
         WHERE m.school_id = s.school_id AND m.staff_id = s.id AND p.resource = ANY ($2)) AS department_rules,
       (SELECT json_agg(json_build_array(p.action, p.resource, p.effect = 'allow', p.condition, ur.campus_id)
                        ORDER BY r.rank, p.position)
          FROM user_roles ur
          JOIN roles r ON r.school_id = ur.school_id AND r.id = ur.role_id
          JOIN role_permissions p ON p.school_id = r.school_id AND p.role_id = r.id
         WHERE ur.school_id = s.school_id AND ur.staff_id = s.id AND p.resource = ANY ($2)) AS role_rules
  FROM users u
  LEFT JOIN staff s ON s.user_id = u.id AND u.type <> 'PLATFORM_ADMIN'
 WHERE u.id = $1
