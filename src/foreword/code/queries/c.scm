(comment) @comment
(function_definition) @function
(preproc_function_def) @macro
(struct_specifier name: (_) body: (_)) @struct
(union_specifier name: (_) body: (_)) @union
(enum_specifier name: (_) body: (_)) @enum
(type_definition type: [(struct_specifier !name body: (_)) (union_specifier !name body: (_))
  (enum_specifier !name body: (_))] declarator: (type_identifier)) @type

; calls
(call_expression function: [(identifier) @call (field_expression field: (field_identifier) @call)])
