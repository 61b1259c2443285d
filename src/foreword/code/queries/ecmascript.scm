(comment) @comment
[(function_declaration) (generator_function_declaration) (method_definition)] @function
(class_declaration) @class
(variable_declarator name: (identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) value: (call_expression function: (identifier)
  arguments: (arguments . [(arrow_function) (function_expression)]))) @function
(variable_declarator name: (identifier) value: (class)) @class
(variable_declarator name: (identifier) value: (object)) @holder
(assignment_expression left: [(identifier) (member_expression)]
  right: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression left: [(identifier) (member_expression)] right: (object)) @holder
(pair key: (property_identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function
(export_statement value: [(arrow_function) (function_expression)]) @function
(export_statement value: (object)) @holder

; calls
(call_expression function: [(identifier) @call (member_expression property: (property_identifier) @call)])
(new_expression constructor: [(identifier) @call (member_expression property: (property_identifier) @call)])
