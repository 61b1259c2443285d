(comment) @comment
(function_declaration) @function
(assignment_statement (variable_list . name: (_)) (expression_list . value: (function_definition))) @function
(assignment_statement (variable_list . name: (_)) (expression_list . value: (table_constructor))) @holder
(field name: (identifier) value: (function_definition)) @function

; calls
(function_call name: [(identifier) @call (dot_index_expression field: (identifier) @call)
  (method_index_expression method: (identifier) @call)])
