(comment) @comment
[(function_definition) (method_declaration)] @function
(assignment_expression left: (variable_name) right: [(anonymous_function) (arrow_function)]) @function
(class_declaration) @class
(interface_declaration) @interface
(trait_declaration) @trait
(enum_declaration) @enum

; calls
(function_call_expression function: [(name) @call (qualified_name (name) @call)])
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression [(name) @call (qualified_name (name) @call)])
