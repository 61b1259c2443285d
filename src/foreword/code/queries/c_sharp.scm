(comment) @comment
[(method_declaration) (constructor_declaration) (local_function_statement)] @function
(class_declaration) @class
(struct_declaration) @struct
(interface_declaration) @interface
(record_declaration) @record
(enum_declaration) @enum

; calls
(invocation_expression function: [(identifier) @call (generic_name (identifier) @call)
  (member_access_expression name: [(identifier) @call (generic_name (identifier) @call)])])
(object_creation_expression type: [(identifier) @call (generic_name (identifier) @call)])
